// SPDX-License-Identifier: BSD-2-Clause
/*
 * Return sites: places where the end of a call is seen without changing its return address. An
 * entry probe reports the return address of its call. The code there is decoded once per file, an
 * ordinary probe is placed on the first instruction that is cheap to probe, and from then on the
 * ends of calls that return there are exact.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/set_impl.h"
#include "symbol/unwind/unwind.h"
#include "util/error.h"
#include "util/util.h"

#define DECODE_BYTES 256
/* How much code of a file is decoded to check addresses, which takes some 10 ns a byte. */
#define MOST_CHECKED_BYTES (32u << 20)
/*
 * The limit per process. PyTorch with everything loaded has some thousands of return addresses in
 * calls of operators.
 */
#define MAX_RETURNS 262144
#define MAX_SITES 65536

static void take(struct span_return *ret, const struct file_return *learnt)
{
	ret->sp_delta_bytes = learnt->code.sp_delta_bytes;
	ret->keeps_result = learnt->code.keeps_result;
	ret->site = learnt->site;
}

/*
 * What was learnt about this code in another process, so that the first end may be exact already.
 * NULL: nothing.
 */
static const struct file_return *known_site(struct probe_set *ps, const struct target *t,
					    uint64_t addr)
{
	const struct proc_map *map = target__known_map(t, addr);
	const struct file *f;
	uint64_t known;

	if (!map || !(map->flags & PROC_MAP_FILE))
		return NULL;
	f = probe_files__known(ps, map);
	known = f ? map64__get(&f->returns, addr - map->start + map->offset) : 0;
	return known && f->learnt[known - 1].site ? &f->learnt[known - 1] : NULL;
}

static int queue(struct probe_set *ps, struct target *t, struct span_return *ret)
{
	int err = vec_grow((void **)&ps->pending, &ps->cap_pending, ps->nr_pending,
			   sizeof(*ps->pending));

	if (!err)
		ps->pending[ps->nr_pending++] = (struct pending_return){t, ret};
	return err;
}

void probe_set__ignore_return(struct probe_set *ps, const struct target *t, uint64_t addr)
{
	attacher__sited(ps->opts.attacher, t->space, addr);
}

struct span_return *probe_set__return(struct probe_set *ps, struct target *t, uint64_t addr,
				      bool wants_result)
{
	struct target_probes *tp = probe_set__of(ps, t);
	uint64_t *slot = tp ? map64__at(&tp->returns, addr) : NULL;
	const struct file_return *known;
	struct span_return *ret;

	if (!slot)
		return NULL;
	if (*slot) {
		ret = (struct span_return *)(uintptr_t)*slot;
		/* The site may exist already, but without recording the result. */
		if (wants_result && !ret->wants_result && !queue(ps, t, ret))
			ret->wants_result = true;
		return ret;
	}
	/* for example JIT code that is generated without end: its ends are not exact */
	if (tp->returns.used > MAX_RETURNS) {
		probe_set__ignore_return(ps, t, addr);
		return NULL;
	}
	ret = calloc(1, sizeof(*ret));
	if (!ret || queue(ps, t, ret)) {
		free(ret);
		return NULL;
	}
	ret->addr = addr;
	ret->wants_result = wants_result;
	known = known_site(ps, t, addr);
	if (known)
		take(ret, known);
	ps->stats.nr_returns++;
	*slot = (uint64_t)(uintptr_t)ret;
	return ret;
}

struct span_return *probe_set__known_return(struct probe_set *ps, struct target *t, uint64_t addr)
{
	const struct target_probes *tp = probe_set__known(ps, t);

	if ((tp && map64__get(&tp->returns, addr)) || known_site(ps, t, addr))
		return probe_set__return(ps, t, addr, false);
	return NULL;
}

/* result: where the call's result is at the site; NULL: it is not recorded. */
static int add_site(struct file *f, uint64_t offset, uint32_t index,
		    const struct insn_result *result)
{
	struct attach_point point = {
		.offset = offset,
		.cookie = KPROF_COOKIE(KPROF_WIRE_SOURCE_SITES, 0, index),
	};

	if (result)
		point.cookie |=
			KPROF_COOKIE_RESULT(result->reg, result->in_memory, result->disp_bytes);
	return point_list__add(&f->points[result ? ATTACH_SITE_RESULT : ATTACH_SITE], point);
}

/*
 * The index of the site at this offset of the file, which is added when it is new. 0: no room. A
 * site that records no result gets a second probe that does, when one is wanted: the kernel runs
 * the latest probe first, and the hit of the first one closes nothing.
 */
static uint32_t site_at(struct probe_set *ps, struct file *f, uint64_t offset,
			const struct insn_result *result)
{
	uint64_t *known = map64__at(&f->site_at, offset);
	uint32_t index;

	if (!known)
		return 0;
	index = (uint32_t)(*known >> 1);
	if (index && (!result || *known & 1))
		return index;
	if (!index && ps->stats.nr_sites >= MAX_SITES)
		return 0;
	if (add_site(f, offset, index ? index : (uint32_t)ps->stats.nr_sites + 1, result))
		return index;
	if (!index)
		index = (uint32_t)++ps->stats.nr_sites; /* from 1: 0 is no site */
	*known = (uint64_t)index << 1 | (result != NULL);
	return index;
}

size_t return_sites__after_call(const struct elffile *e, uint64_t offset, size_t *checked_bytes)
{
	uint64_t vaddr = elffile__vaddr(e, offset), start, end;
	const uint8_t *code;
	size_t bytes, avail;
	struct code_insn insn = {0};

	if (vaddr == UINT64_MAX || !vaddr || !elffile__executable(e, offset) ||
	    unwind_function__find(e, vaddr - 1, &start, &end) ||
	    vaddr - start > MOST_CHECKED_BYTES - *checked_bytes)
		return 0;
	bytes = (size_t)(vaddr - start);
	*checked_bytes += bytes;
	code = elffile__bytes(e, elffile__offset(e, start), bytes, &avail);
	if (!code || avail < bytes)
		return 0;
	for (size_t at = 0; at < bytes; at += insn.length)
		if (!code_insn_decode(code + at, bytes - at, &insn))
			return 0;
	if (insn.kind != CODE_CALL && insn.kind != CODE_CALL_INDIRECT)
		return 0;
	return (size_t)(end - vaddr);
}

static struct file_return decode(struct probe_set *ps, struct file *f, uint64_t offset,
				 bool wants_result)
{
	struct file_return r = {.code.kind = INSN_RETURN_NONE};
	size_t avail, left = return_sites__after_call(f->elf, offset, &f->checked_bytes);
	const uint8_t *code =
		left ? elffile__bytes(f->elf, offset, left < DECODE_BYTES ? left : DECODE_BYTES,
				      &avail)
		     : NULL;

	if (!code)
		return r;
	insn_return_site(code, avail, &r.code);
	if (r.code.kind == INSN_RETURN_SITE) {
		r.site_offset = offset + r.code.skip_bytes;
		r.site = site_at(ps, f, r.site_offset,
				 wants_result && r.code.keeps_result ? &r.code.result : NULL);
		if (r.code.cost == INSN_STEPPED)
			ps->stats.sites_stepped++;
	}
	return r;
}

int return_sites__learn_code(struct probe_set *ps, struct file *f, uint64_t offset,
			     bool wants_result, struct file_return **out)
{
	uint64_t *known = map64__at(&f->returns, offset);

	if (!known)
		return -ENOMEM;
	if (!*known) {
		int err = vec_grow((void **)&f->learnt, &f->cap_learnt, f->nr_learnt,
				   sizeof(*f->learnt));

		if (err)
			return err;
		f->learnt[f->nr_learnt++] = decode(ps, f, offset, wants_result);
		*known = f->nr_learnt;
	}
	*out = &f->learnt[*known - 1];
	if (wants_result && (*out)->site && (*out)->code.keeps_result)
		site_at(ps, f, (*out)->site_offset, &(*out)->code.result);
	return 0;
}

/* Learns what happens where the address lies in this file, which the mapping is of. */
static int learn_in(struct probe_set *ps, struct target *t, struct span_return *ret,
		    const struct proc_map *map, struct file *f)
{
	struct target_probes *tp = probe_set__of(ps, t);
	struct target_file *tf;
	struct file_return *r;
	int err = -ENOMEM;

	if (tp)
		err = return_sites__learn_code(ps, f, ret->addr - map->start + map->offset,
					       ret->wants_result, &r);
	if (!err)
		err = target_probes__file(tp, f, &tf);
	if (err)
		return err;
	r->met = true;
	if (r->code.kind == INSN_RETURN_FOLLOW) {
		ps->stats.returns_followed++;
		if (followed__add(ps, t, ret->addr, &r->code))
			ps->stats.returns_none++;
	} else if (r->site) {
		take(ret, r);
	} else {
		ps->stats.returns_none++;
	}
	return 0;
}

static int learn_one(struct probe_set *ps, struct target *t, struct span_return *ret)
{
	const struct proc_map *map = targets__map(ps->opts.targets, t, ret->addr);
	struct file *f = NULL;
	int err = 0;

	if (map && map->flags & PROC_MAP_FILE)
		err = probe_files__open(ps, t, map, &f);
	if (!err && f && f->elf)
		return learn_in(ps, t, ret, map, f);
	/*
	 * No site can be placed in code without a file. A file that cannot be opened through a
	 * process that is ending may be opened through the next one.
	 */
	ps->stats.returns_none++;
	return err;
}

/*
 * The process has ended, or runs another program, before its return addresses were learnt. They are
 * facts of files that other processes map: where many children live for moments only, all that is
 * learnt is learnt from such.
 */
static void learn_last(struct probe_set *ps, struct target *t, struct span_return *ret)
{
	const struct proc_map *map = target__known_map(t, ret->addr);
	struct file *f = map && map->flags & PROC_MAP_FILE ? probe_files__known(ps, map) : NULL;

	if (f && f->elf && !learn_in(ps, t, ret, map, f))
		ps->unattached = true;
}

void probe_set__forget_returns(struct probe_set *ps, struct target *t)
{
	struct target_probes *tp = t->slot[ps->slot];
	size_t kept = 0;

	if (!tp)
		return;
	for (size_t i = 0; i < ps->nr_pending; i++)
		if (ps->pending[i].target == t)
			learn_last(ps, t, ps->pending[i].ret);
		else
			ps->pending[kept++] = ps->pending[i];
	ps->nr_pending = kept;
	for (size_t i = 0; i < tp->returns.cap; i++) {
		struct span_return *ret = (void *)(uintptr_t)tp->returns.slots[i].value;

		free(ret);
	}
	map64__free(&tp->returns);
	followed__leave(ps, tp);
	for (size_t i = 0; i < tp->nr; i++)
		tp->files[i].told = false;
}

void return_sites__attach(struct probe_set *ps, struct target *t, struct target_file *tf,
			  const char *path)
{
	struct file *f = tf->file;
	struct attach_links *links = sharing__links(ps, t, f);
	size_t *done = target_file__attached(tf), before = links->nr;

	for (int i = ATTACH_SITE; i <= ATTACH_SITE_RESULT && !ps->shed_all; i++) {
		const struct point_list *list = &f->points[i];
		size_t nr = list->nr - done[i];
		int err = attacher__attach(ps->opts.attacher, (enum attach_program)i,
					   sharing__pid(f, t), path, list->points + done[i], nr,
					   links);

		if (err == -ESRCH || err == -ENOENT) /* the process or the mapping is gone */
			break;
		/*
		 * For example, there are no more descriptors. No event is lost, but ends are not
		 * exact, and each end says so.
		 */
		if (err)
			log_warn(err == -EMFILE ? "raise the limit on open files (ulimit -n)"
						: NULL,
				 "cannot place %zu return sites in %s of process %u: %s", nr,
				 f->name, t->pid, attacher__why(err));
		done[i] = list->nr;
	}
	attach_links_mark(links, before, f);
}

static bool lacks_sites(struct target_file *tf)
{
	const size_t *done = target_file__attached(tf);

	for (int i = ATTACH_SITE; i <= ATTACH_SITE_RESULT; i++)
		if (tf->file->points[i].nr > done[i])
			return true;
	return false;
}

void return_sites__attach_missing(struct probe_set *ps, struct target *t)
{
	struct target_probes *tp = t->slot[ps->slot];

	for (size_t i = 0; tp && i < tp->nr; i++) {
		struct target_file *tf = &tp->files[i];
		char path[512];

		if (lacks_sites(tf) && !target_file__path(t, tf->file, path, sizeof(path)))
			return_sites__attach(ps, t, tf, path);
	}
}

bool probe_set__pending(const struct probe_set *ps)
{
	return ps->nr_pending || ps->unattached;
}

int probe_set__learn(struct probe_set *ps)
{
	struct target *t, *next;
	int err = 0;

	if (!probe_set__pending(ps))
		return 0;
	for (size_t i = 0; i < ps->nr_pending && !err; i++)
		err = learn_one(ps, ps->pending[i].target, ps->pending[i].ret);
	/* A site learnt in one process serves every process that maps the file. */
	TARGETS_EACH (ps->opts.targets, t, next)
		if (!err)
			return_sites__attach_missing(ps, t);
	/*
	 * Where no site can be placed, looking at the stack at every event of a call, for good,
	 * would cost too much.
	 */
	for (size_t i = 0; i < ps->nr_pending && !err; i++)
		probe_set__ignore_return(ps, ps->pending[i].target, ps->pending[i].ret->addr);
	ps->nr_pending = 0;
	ps->unattached = false;
	return err;
}
