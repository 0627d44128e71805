// SPDX-License-Identifier: BSD-2-Clause
/*
 * The recorded time in blocks of as many steps, or of equal length. Steps are what lies between the
 * marks of one thread: the begins of annotations that come once a step. The time before the first
 * mark and after the last one is in no step.
 */
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/activity.h"
#include "model/diff/impl.h"
#include "util/error.h"

#define OPTIMIZER_STEP "Optimizer.step#" /* what PyTorch sets around each optimizer's step */

/* Marks that belong together: of one thread, and of one name if that does not count the steps. */
struct series {
	uint64_t key, nr;
	bool numbered;
};

struct marks {
	const char *glob; /* NULL: the known ones */
	struct map64 nr;  /* by the series' key */
	struct series best;
	/* While the begins at the blocks' edges are looked for. */
	struct diff_blocks *blocks;
	uint64_t seen, each;
};

/* The series that a span is a mark of. False: it is none. */
static bool series_of(const struct marks *m, const struct tl_span *s, struct series *out)
{
	const char *name = s->description->name;
	bool known = !strncmp(name, DIFF_STEP_NAME, strlen(DIFF_STEP_NAME));
	bool optimizer = !strncmp(name, OPTIMIZER_STEP, strlen(OPTIMIZER_STEP));

	if (strcmp(s->description->category,
		   activity_by_id(KPROF_ACTIVITY_USER_ANNOTATION)->name) != 0)
		return false;
	if (m->glob ? fnmatch(m->glob, name, 0) != 0 : !known && !optimizer)
		return false;
	out->numbered = m->glob || known;
	out->key = (uint64_t)s->thread << 32 | (out->numbered ? 0 : s->description->id);
	return true;
}

static bool better(const struct series *a, const struct series *b)
{
	return a->numbered != b->numbered ? a->numbered : a->nr > b->nr;
}

static int count_mark(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct marks *m = ctx;
	struct series series;
	uint64_t *nr;

	if (!series_of(m, s, &series))
		return 0;
	nr = map64__at(&m->nr, series.key);
	if (!nr)
		return error_set(-ENOMEM, NULL, "out of memory for steps");
	series.nr = ++*nr;
	if (better(&series, &m->best))
		m->best = series;
	return 0;
}

static int end_nothing(void *ctx, const struct tl_span *s, void *data)
{
	return 0;
}

static int count_marks(struct kprof_capture *t, struct marks *m)
{
	static const struct tl_walker walker = {.begin = count_mark, .end = end_nothing};
	int err = kprof_capture_info(t)->events ? timeline__walk(t, &walker, m) : 0;

	map64__free(&m->nr);
	return err;
}

int diff_count_steps(struct kprof_capture *t, const char *step, uint64_t *nr)
{
	struct marks m = {.glob = step};
	int err = count_marks(t, &m);

	*nr = m.best.nr ? m.best.nr - 1 : 0;
	return err;
}

static int take_edge(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct marks *m = ctx;
	struct diff_blocks *b = m->blocks;
	struct series series;
	uint64_t at;

	if (!series_of(m, s, &series) || series.key != m->best.key ||
	    series.numbered != m->best.numbered)
		return 0;
	at = m->seen / m->each;
	if (m->seen++ % m->each || at > b->nr)
		return 0;
	b->edge_ns[at] = s->start_ns;
	if (at && b->edge_ns[at] < b->edge_ns[at - 1])
		b->edge_ns[at] = b->edge_ns[at - 1];
	return 0;
}

static int blocks_of_steps(struct kprof_capture *t, const char *step, struct diff_blocks *b)
{
	static const struct tl_walker walker = {.begin = take_edge, .end = end_nothing};
	struct marks m = {.glob = step, .blocks = b};
	uint64_t steps;
	int err = count_marks(t, &m);

	if (err)
		return err;
	steps = m.best.nr ? m.best.nr - 1 : 0;
	if (steps < STATS_MIN_BLOCKS)
		return error_set(-ENODATA,
				 "--per second compares without steps; --step NAME tells which "
				 "annotation begins one",
				 "%s has %llu whole steps: too few to compare by step",
				 timeline__path(t), (unsigned long long)steps);
	m.each = steps < DIFF_BLOCKS ? 1 : steps / DIFF_BLOCKS;
	b->nr = (uint32_t)(steps / m.each);
	b->units = (double)m.each;
	return timeline__walk(t, &walker, &m);
}

static int blocks_of_time(struct kprof_capture *t, bool run, struct diff_blocks *b)
{
	const struct kprof_capture_info *info = kprof_capture_info(t);
	uint64_t window_ns = info->end_mono_ns - info->start_mono_ns;

	b->nr = DIFF_BLOCKS;
	for (uint32_t i = 0; i <= b->nr; i++)
		b->edge_ns[i] =
			info->start_mono_ns + (uint64_t)((unsigned __int128)window_ns * i / b->nr);
	b->units = 1.0 / b->nr;
	if (!run)
		b->units *= (double)window_ns / NSEC_PER_SEC;
	if (b->units > 0)
		return 0;
	return error_set(-ENODATA, NULL, "%s recorded no time at all", timeline__path(t));
}

int diff_blocks__make(struct kprof_capture *t, enum kprof_diff_per per, const char *step,
		      struct diff_blocks *out)
{
	*out = (struct diff_blocks){0};
	if (per == KPROF_DIFF_PER_STEP)
		return blocks_of_steps(t, step, out);
	return blocks_of_time(t, per == KPROF_DIFF_PER_RUN, out);
}

uint32_t diff_blocks__of(const struct diff_blocks *b, uint64_t ns)
{
	uint32_t low = 0, high = b->nr;

	/* What ends with the recording belongs to it. */
	if (ns < b->edge_ns[0] || ns > b->edge_ns[b->nr])
		return DIFF_MAX_BLOCKS;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (b->edge_ns[middle] <= ns)
			low = middle;
		else
			high = middle;
	}
	return low;
}
