// SPDX-License-Identifier: BSD-2-Clause
/*
 * What processes that are not recorded pay for probes in files that they share with targets. The
 * BPF programs count their hits; when they are too many, the files are shared no more.
 */
#include <string.h>

#include "capture/probe/set_impl.h"
#include "util/error.h"
#include "util/util.h"

/* Hits a second, of all such processes together: a hundredth of a CPU. */
#define MAX_FOREIGN_A_SECOND 10000

/* The file's probes are removed. They will be placed in each target, as if they had never been. */
static void unshare(struct probe_set *ps, struct file *f, uint64_t now_ns)
{
	struct target *t, *next;

	placed__forget(ps);
	attach_links_close(&f->links);
	f->sharing = FILE_FILTERED;
	f->unshared_ns = now_ns;
	f->attached = 0;
	for (int i = 0; i < NR_EXTRAS; i++)
		f->extras[i].attached = false;
	TARGETS_EACH (ps->opts.targets, t, next) {
		struct target_probes *tp = probe_set__of(ps, t);

		if (t->maps_dirty) /* it may map the file */
			target__maps_changed(t, now_ns, false);
		for (size_t i = 0; tp && i < tp->nr; i++) {
			if (tp->files[i].file != f)
				continue;
			tp->files[i].attached_for = 0;
			tp->files[i].extras = 0;
			memset(tp->files[i].nr_attached, 0, sizeof(tp->files[i].nr_attached));
			target__maps_changed(t, now_ns, false);
		}
		return_sites__attach_missing(ps, t);
	}
}

static int unshare_with_bystanders(struct probe_set *ps, uint64_t now_ns)
{
	int err = sharing__look(ps);

	for (struct file *f = ps->files; f && !err; f = f->hh.next) {
		if (f->sharing != FILE_SHARED || sharing__allowed(ps, f))
			continue;
		log_warn("--children exact keeps them, and lets the other process pay",
			 "process %u uses %s, too: its probes are now placed in the targets only",
			 f->bystander, f->name);
		unshare(ps, f, now_ns);
	}
	return err;
}

int probe_set__tend(struct probe_set *ps, uint64_t now_ns)
{
	struct kprof_wire_foreign foreign;
	uint64_t since_ns = ps->foreign_ns, more;
	int err;

	/* Single uprobes take seconds to remove, during which nothing would be recorded. */
	if (ps->opts.children != KPROF_CHILDREN_AUTO || ps->opts.single ||
	    now_ns < since_ns + NSEC_PER_SEC)
		return 0;
	err = attacher__foreign(ps->opts.attacher, &foreign);
	if (err)
		return err;
	more = foreign.hits - ps->foreign.hits;
	ps->foreign = foreign;
	ps->foreign_ns = now_ns;
	if (!since_ns || more * NSEC_PER_SEC / (now_ns - since_ns) <= MAX_FOREIGN_A_SECOND)
		return 0;
	return unshare_with_bystanders(ps, now_ns);
}
