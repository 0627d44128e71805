// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes that are given up while the recording runs. The kernel removes a link as a whole, and
 * where two links have a probe at one place, both programs run. So the links of a file are closed
 * first, and then what stays of its probes is placed anew.
 */
#include <errno.h>
#include <string.h>

#include "capture/probe/set_impl.h"
#include "util/util.h"

/* It may be placed again for bursts. Without memory it is not. */
static void give_up(struct point_list *list, struct attach_point point)
{
	point.cookie |= KPROF_COOKIE_BURST;
	point_list__add(list, point);
}

/* Takes the points for which dropped() says so out of the file's lists. Returns how many. */
static int drop_points(struct file *f, bool (*dropped)(void *ctx, bool site, uint32_t index),
		       void *ctx)
{
	int nr = 0;

	for (int i = 0; i < NR_FILE_PROGRAMS; i++) {
		struct point_list *list = &f->points[i];
		size_t kept = 0;

		for (size_t k = 0; k < list->nr; k++) {
			uint32_t index = KPROF_COOKIE_INDEX(list->points[k].cookie);

			if (dropped(ctx, i >= NR_BEGIN_PROGRAMS, index)) {
				give_up(&f->given_up[i], list->points[k]);
				nr++;
			} else {
				list->points[kept++] = list->points[k];
			}
		}
		list->nr = kept;
	}
	return nr;
}

/* The file's links go to the set `old`. It is as if they had never been. */
static void take_links(struct probe_set *ps, struct file *f, struct attach_links *old)
{
	struct target *t, *next;

	attach_links_take(old, &f->links, f);
	f->attached = 0;
	memset(f->nr_attached, 0, sizeof(f->nr_attached));
	TARGETS_EACH (ps->opts.targets, t, next) {
		struct target_probes *tp = t->slot[ps->slot];

		for (size_t i = 0; tp && i < tp->nr; i++) {
			if (tp->files[i].file != f)
				continue;
			attach_links_take(old, &tp->links, f);
			tp->files[i].attached_for = 0;
			memset(tp->files[i].nr_attached, 0, sizeof(tp->files[i].nr_attached));
		}
	}
}

/* The probes that stay are placed when the mappings of the file's processes are next read. */
static void place_again(struct probe_set *ps, uint64_t now_ns)
{
	struct target *t, *next;

	TARGETS_EACH (ps->opts.targets, t, next) {
		const struct target_probes *tp = probe_set__known(ps, t);
		bool concerned = false;

		for (size_t i = 0; tp && i < tp->nr; i++)
			concerned |= tp->files[i].file->shed_ns == now_ns;
		if (!concerned)
			continue;
		target__maps_changed(t, now_ns, false);
		return_sites__attach_missing(ps, t);
	}
}

int probe_set__shed(struct probe_set *ps, bool (*dropped)(void *ctx, bool site, uint32_t index),
		    void *ctx)
{
	uint64_t now_ns = clock_mono_ns();
	struct attach_links old = {0};
	int all = 0;

	for (struct file *f = ps->files; f; f = f->hh.next) {
		int nr = drop_points(f, dropped, ctx);

		if (!nr)
			continue;
		take_links(ps, f, &old);
		f->shed_ns = now_ns;
		all += nr;
	}
	if (!all)
		return 0;
	placed__forget(ps);
	attach_links_close(&old);
	place_again(ps, now_ns);
	return all;
}

void probe_set__shed_all(struct probe_set *ps)
{
	struct attach_links old = {0};

	ps->shed_all = true;
	placed__forget(ps);
	for (struct file *f = ps->files; f; f = f->hh.next)
		take_links(ps, f, &old);
	attach_links_close(&old);
}

void probe_set__keep_links(struct probe_set *ps, struct attach_links *links)
{
	attach_links_move(&ps->stale, links);
}
