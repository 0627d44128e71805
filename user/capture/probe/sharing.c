// SPDX-License-Identifier: BSD-2-Clause
/*
 * In which processes the probes of a file fire.
 *
 * A shared file has one set of links for all processes that map it: a forked child has its probes
 * from its first instruction on, and the set costs the same for any number of targets. But another
 * process that maps the file, a bystander, pays for each of its hits, even though the BPF program
 * leaves at once. A filtered file has a set of links for each target, and bystanders pay nothing.
 *
 * KPROF_CHILDREN_AUTO shares the files that no bystander maps. Where there are many targets, a few
 * bystanders are put up with: those are most often launchers, which do nothing while their workers
 * run. What all bystanders together may pay is bounded in either case (probe_set__tend()).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/set_impl.h"
#include "util/error.h"
#include "util/util.h"

/* A file is shared where at least so many targets map it for each bystander. */
#define TARGETS_A_BYSTANDER 4
/* How long it counts who mapped what. Whoever comes later is found by its hits. */
#define LOOK_NS NSEC_PER_SEC

/* How many processes map a file's code. */
struct mapper {
	uint32_t nr_targets, nr_bystanders;
	uint32_t bystander; /* one of them */
	uint32_t latest;    /* the process that was counted last */
};

/* ---- who maps what ---- */

/*
 * A file is known here by its inode and name, not by its device: a container's file is another
 * container's, too, on a device of its own (overlayfs), and probes fire in both.
 */
static uint64_t file_id(uint64_t inode, const char *name)
{
	return hash64_text(hash64(inode), name) >> 1;
}

struct look {
	struct probe_set *ps;
	uint32_t pid;
	bool target;
	int err;
};

static void on_file(void *ctx, uint64_t inode, const char *name)
{
	struct look *look = ctx;
	struct probe_set *ps = look->ps;
	uint64_t *at = map64__at(&ps->mapper_at, file_id(inode, name));
	struct mapper *m;

	if (!at || (!*at && vec_grow((void **)&ps->mappers, &ps->cap_mappers, ps->nr_mappers,
				     sizeof(*ps->mappers)))) {
		look->err = -ENOMEM;
		return;
	}
	if (!*at) {
		ps->mappers[ps->nr_mappers++] = (struct mapper){0};
		*at = ps->nr_mappers;
	}
	m = &ps->mappers[*at - 1];
	if (m->latest == look->pid) /* a file may be mapped in pieces */
		return;
	m->latest = look->pid;
	m->nr_targets += look->target;
	m->nr_bystanders += !look->target;
	if (!look->target)
		m->bystander = look->pid;
}

static void forget_mappers(struct probe_set *ps)
{
	map64__free(&ps->mapper_at);
	ps->nr_mappers = 0;
	ps->mappers_ns = 0;
}

/* A process that cannot be read is found by its hits, if it has any. */
int sharing__look(struct probe_set *ps)
{
	struct look look = {.ps = ps};
	pid_t *pids;
	size_t nr;
	int err = proc_pids(&pids, &nr);

	if (err)
		return err;
	forget_mappers(ps);
	for (size_t i = 0; i < nr && !look.err; i++) {
		look.pid = (uint32_t)pids[i];
		look.target = targets__find(ps->opts.targets, look.pid) != NULL;
		proc_code_files(pids[i], on_file, &look);
	}
	free(pids);
	ps->mappers_ns = clock_mono_ns();
	return look.err;
}

void sharing__free(struct probe_set *ps)
{
	forget_mappers(ps);
	free(ps->mappers);
}

/* ---- decisions ---- */

bool sharing__allowed(struct probe_set *ps, struct file *f)
{
	uint64_t known = map64__get(&ps->mapper_at, file_id(f->key.inode, f->name));
	const struct mapper *m = known ? &ps->mappers[known - 1] : NULL;

	f->bystander = m ? m->bystander : 0;
	return !m || m->nr_bystanders * TARGETS_A_BYSTANDER <= m->nr_targets;
}

static enum file_sharing decide(struct probe_set *ps, struct file *f)
{
	if (ps->opts.children == KPROF_CHILDREN_EXACT)
		return FILE_SHARED;
	if (ps->opts.children != KPROF_CHILDREN_AUTO)
		return FILE_FILTERED;
	if (clock_mono_ns() > ps->mappers_ns + LOOK_NS && sharing__look(ps))
		return FILE_FILTERED;
	if (sharing__allowed(ps, f))
		return FILE_SHARED;
	log_debug("process %u maps %s, too: its probes are placed in the targets only",
		  f->bystander, f->name);
	return FILE_FILTERED;
}

struct attach_links *sharing__links(struct probe_set *ps, struct target *t, struct file *f)
{
	if (f->sharing == FILE_UNDECIDED)
		f->sharing = decide(ps, f);
	return f->sharing == FILE_SHARED ? &f->links : &probe_set__of(ps, t)->links;
}

/* ---- children ---- */

/* Does the file have probes, of which events are recorded or libraries found? */
static bool has_probes(const struct target_file *tf)
{
	return tf->attached_for || tf->extras || tf->own_probe;
}

int probe_set__inherit(struct probe_set *ps, struct target *child, struct target *parent,
		       uint32_t *bystander)
{
	const struct target_probes *from = probe_set__known(ps, parent);
	int err = followed__share(ps, child, parent), complete = 1;

	*bystander = 0;
	for (size_t i = 0; from && i < from->nr && !err; i++) {
		const struct target_file *theirs = &from->files[i];
		struct file *f = theirs->file;
		struct target_file *tf;

		if (f->sharing != FILE_SHARED && !f->hook.nr) {
			if (has_probes(theirs) && file__nr_begins(f))
				*bystander = f->bystander;
			complete &= !has_probes(theirs);
			continue;
		}
		err = target_probes__file(probe_set__of(ps, child), f, &tf);
		if (err)
			break;
		tf->own_probe = f->hook.nr > 0;
		if (f->sharing != FILE_SHARED)
			continue;
		tf->attached_for = theirs->attached_for;
		tf->extras = theirs->extras;
		tf->lost_ns = theirs->lost_ns ? child->start_ns : 0;
	}
	return err ? err : complete;
}
