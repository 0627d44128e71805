// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of waits: what for, by which threads, and who woke them. A row is a reason and the
 * threads of one name in a process. What is too short for a record is in rows of its own, so that
 * all rows add up to the time that threads were off a CPU.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/report/impl.h"
#include "store/store.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

/*
 * How many wakers of a row are kept. When there are more, the one with the least time makes room,
 * and its time is inherited: the share of the first is then too high by that at most.
 */
#define MOST_WAKERS 16
#define INTERRUPT UINT64_MAX

struct waker {
	uint64_t number; /* PID << 32 | TID, or INTERRUPT; 0: free */
	uint64_t ns;
	uint32_t comm; /* string id */
};

struct wait_row {
	struct waker wakers[MOST_WAKERS];
};

struct wait_table {
	struct kprof_result *result;
	struct kprof_capture *t;
	struct map64 by_thread; /* index + 1, by a hash of the reason's address and the thread */
	struct map64 by_text;   /* the same, by a hash of the reason, the process and the title */
	struct wait_row *rows;  /* beside those of the result */
	size_t cap;
	uint64_t *recorded_ns; /* by thread */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for a table of waits");
}

/* ---- rows ---- */

/* The row of this reason and of threads with this title in the process. */
static int find_row(struct wait_table *w, const char *reason, const struct tl_thread *th,
		    size_t *index)
{
	struct kprof_result *r = w->result;
	char *text = xasprintf("%d %s", th->pid, th->title);
	uint64_t *slot =
		text ? map64__at(&w->by_text, hash64_text(hash64_text(0, reason), text) >> 1)
		     : NULL;
	const char *kept = slot && !*slot ? result__keep(r, text) : "";
	struct kprof_row *row;

	free(text);
	if (!slot || vec_grow((void **)&w->rows, &w->cap, r->nr, sizeof(*w->rows)))
		return no_memory();
	if (!*slot) {
		w->rows[r->nr] = (struct wait_row){0};
		row = kept ? result__row(r, strdup(reason)) : NULL;
		if (!row)
			return -ENOMEM;
		row->category = kept;
		row->caller = "";
		row->pid = th->pid;
		*slot = r->nr;
	}
	*index = *slot - 1;
	return 0;
}

static int row_of(struct wait_table *w, const char *reason, uint32_t thread, size_t *index)
{
	uint64_t *slot = map64__at(&w->by_thread, hash64(hash64((uintptr_t)reason) + thread) >> 1);
	int err;

	if (!slot)
		return no_memory();
	if (!*slot) {
		err = find_row(w, reason, timeline__thread(w->t, thread), index);
		if (err)
			return err;
		*slot = *index + 1;
	}
	*index = *slot - 1;
	return 0;
}

/* ---- waits ---- */

static void count_waker(struct wait_row *row, uint64_t number, uint32_t comm, uint64_t ns)
{
	struct waker *least = &row->wakers[0], *to = NULL;

	for (size_t i = 0; i < MOST_WAKERS && !to; i++) {
		if (!row->wakers[i].number || row->wakers[i].number == number)
			to = &row->wakers[i];
		else if (row->wakers[i].ns < least->ns)
			least = &row->wakers[i];
	}
	if (!to)
		to = least;
	to->number = number;
	to->comm = comm;
	add_capped(&to->ns, ns);
}

/* The part of a stretch of time that is in the selected range. */
static uint64_t part_of(const struct kprof_capture *t, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t beyond;

	return timeline__part(t, &start_ns, &end_ns, &beyond) ? end_ns - start_ns : 0;
}

/* A wait comes whole: whether it begins in the selected range counts. */
static int count_wait(void *ctx, const struct store_record *r)
{
	struct wait_table *w = ctx;
	uint64_t ns = part_of(w->t, r->wait.start_ns, r->wait.end_ns);
	struct kprof_row *row;
	size_t index;
	int err = row_of(w, timeline__wait_reason(w->t, r), r->wait.thread, &index);

	if (err)
		return err;
	row = &w->result->entries[index].row;
	result__count_part(row, w->t, r->wait.start_ns, r->wait.end_ns);
	add_capped(&row->runnable_ns, part_of(w->t, r->wait.wake_ns, r->wait.end_ns));
	add_capped(&w->recorded_ns[r->wait.thread], ns);
	if (timeline__woken_by_interrupt(w->t, r))
		count_waker(&w->rows[index], INTERRUPT, 0, ns);
	else if (r->wait.waker_tid)
		count_waker(&w->rows[index], (uint64_t)r->wait.waker_pid << 32 | r->wait.waker_tid,
			    r->wait.waker_comm, ns);
	return 0;
}

/* ---- what has no record ---- */

static int count_short(struct wait_table *w, uint32_t thread)
{
	const struct tl_thread_time *time = timeline__thread_time(w->t, thread);
	struct kprof_row *row;
	uint64_t off_ns;
	size_t index;
	int err;

	if (!time || time->switches <= time->told)
		return 0;
	off_ns = time->runnable_ns;
	add_capped(&off_ns, time->blocked_ns);
	err = row_of(w, "[shorter waits]", thread, &index);
	if (err)
		return err;
	row = &w->result->entries[index].row;
	off_ns -= off_ns < w->recorded_ns[thread] ? off_ns : w->recorded_ns[thread];
	row->calls += time->switches - time->told;
	row->timed += time->switches - time->told;
	add_capped(&row->total_ns, off_ns);
	add_capped(&row->self_ns, off_ns);
	return 0;
}

/* ---- the whole ---- */

/* Tells who woke most of a row's time. */
static int tell_waker(struct wait_table *w, size_t i)
{
	const struct wait_row *from = &w->rows[i];
	struct kprof_result *r = w->result;
	struct kprof_row *row = &r->entries[i].row;
	const struct waker *most = &from->wakers[0];
	char *text;

	for (size_t k = 1; k < MOST_WAKERS; k++)
		if (from->wakers[k].ns > most->ns)
			most = &from->wakers[k];
	if (!most->ns || !row->total_ns)
		return 0;
	if (most->number == INTERRUPT)
		text = strdup("an interrupt");
	else
		text = xasprintf("%s (%u)", timeline__string(w->t, most->comm),
				 (uint32_t)most->number);
	row->caller = text ? result__keep(r, text) : NULL;
	free(text);
	if (!row->caller)
		return no_memory();
	row->caller_share = (double)most->ns / (double)row->total_ns;
	if (row->caller_share > 1)
		row->caller_share = 1;
	return 0;
}

int result__by_wait(struct kprof_result *r, struct kprof_capture *t)
{
	size_t nr = kprof_capture_info(t)->nr_threads;
	struct wait_table w = {.result = r, .t = t};
	int err = 0;

	w.recorded_ns = calloc(nr + 1, sizeof(*w.recorded_ns));
	if (!w.recorded_ns)
		err = no_memory();
	timeline__cut(t, false);
	if (!err)
		err = timeline__waits(t, 0, count_wait, &w);
	timeline__cut(t, true);
	/* How long shorter waits were is known of the whole recording only. */
	for (size_t i = 0; i < nr && !err && !kprof_capture_selection(t); i++)
		err = count_short(&w, (uint32_t)i);
	for (size_t i = 0; i < r->nr && !err; i++)
		err = tell_waker(&w, i);
	map64__free(&w.by_thread);
	map64__free(&w.by_text);
	free(w.recorded_ns);
	free(w.rows);
	return err;
}
