// SPDX-License-Identifier: BSD-2-Clause
/* The probe set: its probes, what belongs to a process, and how all probes are removed. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/probe/set_impl.h"
#include "util/error.h"
#include "util/util.h"

/* Without uprobe_multi each probe costs a descriptor, and milliseconds to remove. */
#define DEFAULT_MAX_SINGLE_PROBES 160
#define MAX_STALE_LINKS 256

int probe_set__new(const struct probe_set_opts *opts, struct probe_set **out)
{
	struct probe_set *ps = calloc(1, sizeof(*ps));

	if (!ps)
		return error_set(-ENOMEM, NULL, "no memory for probes");
	ps->opts = *opts;
	ps->slot = targets__slot(opts->targets);
	ps->single_left =
		opts->max_single_probes ? opts->max_single_probes : DEFAULT_MAX_SINGLE_PROBES;
	*out = ps;
	return 0;
}

void probe_set__free(struct probe_set *ps)
{
	struct target *t, *next;
	struct file *f, *tmp;

	if (!ps)
		return;
	probe_set__detach(ps);
	TARGETS_EACH (ps->opts.targets, t, next)
		probe_set__forget(ps, t);
	HASH_ITER (hh, ps->files, f, tmp) {
		HASH_DEL(ps->files, f);
		file__free(f);
	}
	for (size_t i = 0; i < ps->nr; i++) {
		free(ps->probes[i].name);
		free(ps->probes[i].overload);
		free(ps->probes[i].signature);
	}
	free(ps->probes);
	free(ps->pending);
	sharing__free(ps);
	map64__free(&ps->placed);
	if (ps->cache_known && ps->cache_dir >= 0)
		close(ps->cache_dir);
	free(ps);
}

/* ---- processes ---- */

void probe_set__retire(struct probe_set *ps, struct target *t)
{
	struct target_probes *tp = t->slot[ps->slot];

	if (!tp)
		return;
	attach_links_move(&ps->stale, &tp->links);
	if (ps->stale.nr > MAX_STALE_LINKS)
		attach_links_close(&ps->stale);
	tp->nr = 0;
}

void probe_set__forget(struct probe_set *ps, struct target *t)
{
	struct target_probes *tp = t->slot[ps->slot];

	if (!tp)
		return;
	probe_set__retire(ps, t);
	probe_set__forget_returns(ps, t);
	free(tp->files);
	free(tp);
	t->slot[ps->slot] = NULL;
}

bool probe_set__has_probes(const struct probe_set *ps, const struct target *t)
{
	const struct target_probes *tp = probe_set__known(ps, t);

	for (size_t i = 0; tp && i < tp->nr; i++)
		if (tp->files[i].extras || file__nr_begins(tp->files[i].file))
			return true;
	return false;
}

bool probe_set__has_framework(const struct probe_set *ps, const struct target *t)
{
	const struct target_probes *tp = probe_set__known(ps, t);

	for (size_t i = 0; tp && i < tp->nr; i++)
		if (tp->files[i].file->by_name | tp->files[i].file->embedded)
			return true;
	return false;
}

static bool says_of_memory(const struct probe_set *ps, const struct file *f)
{
	const struct point_list *list = &f->points[ATTACH_BEGIN_ARGS];

	for (size_t i = 0; i < list->nr; i++) {
		uint32_t index = KPROF_COOKIE_INDEX(list->points[i].cookie);

		if (probe_set__probe(ps, index)->row->memory != CATALOG_MEMORY_NONE)
			return true;
	}
	return false;
}

bool probe_set__has_allocator(const struct probe_set *ps, const struct target *t)
{
	const struct target_probes *tp = probe_set__known(ps, t);

	for (size_t i = 0; tp && i < tp->nr; i++)
		if (says_of_memory(ps, tp->files[i].file))
			return true;
	return false;
}

void probe_set__detach(struct probe_set *ps)
{
	struct target *t;

	/* All are closed at once: one after the other takes longer. */
	for (t = targets__first(ps->opts.targets); t; t = t->hh.next)
		if (t->slot[ps->slot])
			attach_links_move(&ps->stale, &probe_set__of(ps, t)->links);
	for (struct file *f = ps->files; f; f = f->hh.next) {
		attach_links_move(&ps->stale, &f->links);
		attach_links_move(&ps->stale, &f->hook);
	}
	attach_links_move(&ps->stale, &ps->burst);
	attach_links_close(&ps->stale);
}

/* ---- probes ---- */

struct probe *probe_set__probe(const struct probe_set *ps, uint32_t index)
{
	return &ps->probes[index];
}

size_t probe_set__nr(const struct probe_set *ps)
{
	return ps->nr;
}

uint32_t probe_set__mark_source(const struct probe_set *ps)
{
	return ps->mark_source;
}

const struct probe_set_stats *probe_set__stats(const struct probe_set *ps)
{
	return &ps->stats;
}
