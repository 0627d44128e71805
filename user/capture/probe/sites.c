// SPDX-License-Identifier: BSD-2-Clause
/*
 * Return sites: where the end of a call is seen without touching its return address. An entry probe
 * reports where its call will return to; the code there is decoded once per file, an ordinary probe goes on
 * the first cheap instruction, and from then on every end is seen exactly.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/session/session.h"
#include "symbol/x86/insn.h"
#include "util/error.h"
#include "util/util.h"

#define DECODE_BYTES 256
/* Of one process. PyTorch with everything loaded has some thousands that call an operator. */
#define MAX_RETURNS 262144

/* What another process has taught about this code counts at once: the very first end may be exact. */
static void take_known(struct kprof_session *s, const struct target *t, struct span_return *ret)
{
	const struct proc_map *map = target__known_map(s, t, ret->addr);
	const struct file_return *learnt;
	const uint64_t *known;
	struct file_key key;
	struct file *f;

	if (!map || !(map->flags & PROC_MAP_FILE))
		return;
	key = (struct file_key){.inode = map->inode, .dev = map->dev};
	HASH_FIND(hh, s->files, &key, sizeof(key), f);
	known = f ? map64__at(&f->returns, ret->addr - map->start + map->offset) : NULL;
	if (!known || !*known)
		return;
	learnt = &f->learnt[*known - 1];
	if (learnt->kind == RA_SITE) {
		ret->sp_delta_bytes = learnt->delta_bytes;
		ret->keeps_result = learnt->keeps_result;
		ret->site = learnt->site;
	}
}

static int queue(struct kprof_session *s, struct target *t, struct span_return *ret)
{
	int err =
		vec_grow((void **)&s->pending, &s->cap_pending, s->nr_pending, sizeof(*s->pending));

	if (!err)
		s->pending[s->nr_pending++] = (struct pending){t, ret};
	return err;
}

struct span_return *sites__return(struct kprof_session *s, struct target *t, uint64_t addr,
				  bool wants_result)
{
	uint64_t *slot = map64__at(&t->returns, addr);
	struct span_return *ret;

	if (!slot)
		return NULL;
	if (*slot) {
		ret = (struct span_return *)(uintptr_t)*slot;
		/* Its site may stand already, and tell no result. */
		if (wants_result && !ret->wants_result && !queue(s, t, ret))
			ret->wants_result = true;
		return ret;
	}
	if (t->returns.used > MAX_RETURNS) /* code made anew for ever: its ends are not exact */
		return NULL;
	ret = calloc(1, sizeof(*ret));
	if (!ret || queue(s, t, ret)) {
		free(ret);
		return NULL;
	}
	ret->addr = addr;
	ret->wants_result = wants_result;
	take_known(s, t, ret);
	s->nr_returns++;
	*slot = (uint64_t)(uintptr_t)ret;
	return ret;
}

void sites__forget(struct kprof_session *s, struct target *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr_pending; i++)
		if (s->pending[i].target != t)
			s->pending[kept++] = s->pending[i];
	s->nr_pending = kept;
	for (size_t i = 0; i < t->returns.cap; i++) {
		struct span_return *ret = (void *)(uintptr_t)t->returns.slots[i].value;

		if (ret && !ret->site)
			attacher__unfollow(s->attacher, t->pid, ret->addr);
		free(ret);
	}
	map64__free(&t->returns);
}

static int add_site(struct file *f, uint64_t offset, uint32_t index, bool result)
{
	struct point_list *list = &f->points[result ? ATTACH_SITE_RESULT : ATTACH_SITE];
	int err = vec_grow((void **)&list->points, &list->cap, list->nr, sizeof(*list->points));

	if (!err)
		list->points[list->nr++] = (struct attach_point){
			.offset = offset,
			.cookie = KPROF_COOKIE(KPROF_WIRE_SOURCE_SITES, 0, index),
		};
	return err;
}

/*
 * The index of the site at this offset of the file, a new one if need be. 0: no room. One that stands already and
 * tells no result gets a second probe that does: the kernel runs the latest first, and the other's hit is idle.
 */
static uint32_t site_at(struct kprof_session *s, struct file *f, uint64_t offset, bool result)
{
	uint64_t *known = map64__at(&f->site_at, offset);
	uint32_t index;

	if (!known)
		return 0;
	index = (uint32_t)(*known >> 1);
	if (index && (!result || *known & 1))
		return index;
	if (!index && s->nr_sites >= SESSION_MAX_SITES)
		return 0;
	if (add_site(f, offset, index ? index : (uint32_t)s->nr_sites + 1, result))
		return index;
	if (!index)
		index = (uint32_t)++s->nr_sites; /* from 1: 0 is no site */
	*known = (uint64_t)index << 1 | result;
	return index;
}

static struct file_return decode(struct kprof_session *s, struct file *f, uint64_t offset,
				 bool wants_result)
{
	struct file_return r = {.kind = RA_NONE};
	struct insn_return insn;
	const uint8_t *code;
	size_t avail;

	if (!f->elf || !elffile__executable(f->elf, offset))
		return r;
	code = elffile__bytes(f->elf, offset, DECODE_BYTES, &avail);
	if (!code || insn_return_site(code, avail, &insn))
		return r;
	r.keeps_result = insn.keeps_result;
	if (insn.kind == INSN_RETURN_SITE) {
		r.site_offset = offset + insn.skip_bytes;
		r.site = site_at(s, f, r.site_offset, wants_result && r.keeps_result);
		r.delta_bytes = insn.sp_delta_bytes;
		if (r.site)
			r.kind = RA_SITE;
		if (insn.cost == INSN_STEPPED)
			s->site_stepped++;
	} else if (insn.kind == INSN_RETURN_FOLLOW) {
		r.kind = RA_FOLLOW;
		r.follow_bytes = (uint32_t)insn.follow_bytes;
	}
	return r;
}

/* What the file says about a return address in it; decoded once. */
static int file_return(struct kprof_session *s, struct file *f, uint64_t offset, bool wants_result,
		       struct file_return *out)
{
	uint64_t *known = map64__at(&f->returns, offset);

	if (!known)
		return -ENOMEM;
	if (!*known) {
		int err = vec_grow((void **)&f->learnt, &f->cap_learnt, f->nr_learnt,
				   sizeof(*f->learnt));

		if (err)
			return err;
		f->learnt[f->nr_learnt++] = decode(s, f, offset, wants_result);
		*known = f->nr_learnt;
	}
	*out = f->learnt[*known - 1];
	if (wants_result && out->kind == RA_SITE && out->keeps_result)
		site_at(s, f, out->site_offset, true);
	return 0;
}

static struct target_file *target_file(struct target *t, const struct file *f)
{
	for (size_t i = 0; i < t->nr_files; i++)
		if (t->files[i].file == f)
			return &t->files[i];
	return NULL;
}

static int learn_one(struct kprof_session *s, struct target *t, struct span_return *ret)
{
	const struct proc_map *map = target__map(s, t, ret->addr);
	struct file_return r;
	struct file *f;
	int err;

	if (!map ||
	    !(map->flags & PROC_MAP_FILE)) { /* code without a file: no site can be placed */
		s->returns_none++;
		return 0;
	}
	err = session__file(s, t, map, &f);
	if (!err)
		err = file_return(s, f, ret->addr - map->start + map->offset, ret->wants_result,
				  &r);
	if (err)
		return err;
	if (!target_file(t, f)) {
		err = vec_grow((void **)&t->files, &t->cap_files, t->nr_files, sizeof(*t->files));
		if (err)
			return err;
		t->files[t->nr_files++] = (struct target_file){.file = f};
	}
	switch (r.kind) {
	case RA_SITE:
		ret->sp_delta_bytes = r.delta_bytes;
		ret->keeps_result = r.keeps_result;
		ret->site = r.site;
		break;
	case RA_FOLLOW:
		s->returns_followed++;
		if (attacher__follow(s->attacher, t->pid, ret->addr, r.follow_bytes,
				     r.keeps_result))
			s->returns_none++;
		break;
	case RA_NONE:
		s->returns_none++;
		break;
	}
	return 0;
}

static size_t *attached_counts(const struct kprof_session *s, struct target_file *tf)
{
	return s->opts.children == KPROF_CHILDREN_EXACT ? tf->file->nr_attached : tf->nr_attached;
}

void sites__attach(struct kprof_session *s, struct target *t, struct target_file *tf,
		   const char *path)
{
	size_t *done = attached_counts(s, tf);
	struct file *f = tf->file;
	bool exact = s->opts.children == KPROF_CHILDREN_EXACT;

	for (int i = ATTACH_SITE; i <= ATTACH_SITE_RESULT; i++) {
		const struct point_list *list = &f->points[i];
		size_t nr = list->nr - done[i];
		int err = attacher__attach(s->attacher, (enum attach_program)i,
					   exact ? -1 : (pid_t)t->pid, path, list->points + done[i],
					   nr, exact ? &f->links : &t->links);

		if (err == -ESRCH || err == -ENOENT) /* gone meanwhile */
			return;
		/* Descriptors have run out, say. Nothing is lost but exactness, and each end says so. */
		if (err)
			log_warn(err == -EMFILE ? "raise the limit on open files (ulimit -n)"
						: NULL,
				 "cannot place %zu return sites in %s of process %u: %s", nr,
				 f->name, t->pid, strerror(-err));
		done[i] = list->nr;
	}
}

static bool lacks_sites(const struct kprof_session *s, struct target_file *tf)
{
	const size_t *done = attached_counts(s, tf);

	for (int i = ATTACH_SITE; i <= ATTACH_SITE_RESULT; i++)
		if (tf->file->points[i].nr > done[i])
			return true;
	return false;
}

static void attach_new_sites(struct kprof_session *s, struct target *t)
{
	for (size_t i = 0; i < t->nr_files; i++) {
		struct target_file *tf = &t->files[i];
		char path[512];

		if (!lacks_sites(s, tf))
			continue;
		for (size_t k = 0; k < proc_maps__nr(t->maps); k++) {
			const struct proc_map *map = proc_maps__at(t->maps, k);

			if (map->inode != tf->file->key.inode || map->dev != tf->file->key.dev ||
			    proc_map_open_path((pid_t)t->pid, map, path, sizeof(path)))
				continue;
			sites__attach(s, t, tf, path);
			break;
		}
	}
}

int sites__learn(struct kprof_session *s)
{
	struct target *t, *tmp;
	int err = 0;

	if (!s->nr_pending)
		return 0;
	for (size_t i = 0; i < s->nr_pending && !err; i++)
		err = learn_one(s, s->pending[i].target, s->pending[i].ret);
	s->nr_pending = 0;
	/* A site learnt in one process serves every process that maps the file. */
	HASH_ITER (hh, s->targets, t, tmp) {
		if (!err && t->maps)
			attach_new_sites(s, t);
	}
	return err;
}
