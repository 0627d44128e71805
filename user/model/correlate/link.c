// SPDX-License-Identifier: BSD-2-Clause
/* Finds the call that launched each activity, by process, correlation and time. */
#include "model/correlate/impl.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

/*
 * An activity that starts a little before its launching call is a clock error, which is counted. If
 * it starts earlier than this (nanoseconds), the call is that of another launch: its own call was
 * not recorded, and the correlation was used again.
 */
#define MAX_EARLY_NS NSEC_PER_SEC
/*
 * How many nested records of one correlation are skipped to find the outermost. In practice there
 * are two: the runtime's and the driver's.
 */
#define MAX_NESTED 64

/* ---- orders ---- */

static int by_thread(const void *pa, const void *pb, void *ctx)
{
	const struct corr_call *a = corr_call_at(ctx, *(const uint32_t *)pa);
	const struct corr_call *b = corr_call_at(ctx, *(const uint32_t *)pb);

	if (a->thread != b->thread)
		return order_u64(a->thread, b->thread);
	if (a->start_ns != b->start_ns)
		return order_u64(a->start_ns, b->start_ns);
	if (a->dur_ns != b->dur_ns)
		return order_u64(b->dur_ns, a->dur_ns);
	return order_u64(*(const uint32_t *)pa, *(const uint32_t *)pb);
}

static pid_t pid_of(const struct correlate *c, const struct corr_call *call)
{
	return timeline__thread(c->t, call->thread)->pid;
}

static int by_correlation(const void *pa, const void *pb, void *ctx)
{
	const struct corr_call *a = corr_call_at(ctx, *(const uint32_t *)pa);
	const struct corr_call *b = corr_call_at(ctx, *(const uint32_t *)pb);

	if (a->correlation != b->correlation)
		return order_u64(a->correlation, b->correlation);
	if (pid_of(ctx, a) != pid_of(ctx, b))
		return pid_of(ctx, a) < pid_of(ctx, b) ? -1 : 1;
	return by_thread(pa, pb, ctx);
}

static int by_row(const void *pa, const void *pb, void *ctx)
{
	const struct corr_act *a = corr_act_at(ctx, *(const uint32_t *)pa);
	const struct corr_act *b = corr_act_at(ctx, *(const uint32_t *)pb);

	if (a->start_ns != b->start_ns)
		return order_u64(a->start_ns, b->start_ns);
	if (a->end_ns != b->end_ns)
		return order_u64(a->end_ns, b->end_ns);
	return order_u64(*(const uint32_t *)pa, *(const uint32_t *)pb);
}

static int order(struct correlate *c, struct bulk *numbers, size_t from, size_t to,
		 int (*compare)(const void *a, const void *b, void *ctx))
{
	return bulk__sort(numbers, from, to, compare, c) ? correlate__no_memory(to - from) : 0;
}

static int start_numbers(struct bulk *numbers, size_t nr)
{
	*numbers = (struct bulk){.size = sizeof(uint32_t)};
	return bulk__resize(numbers, nr) ? correlate__no_memory(nr) : 0;
}

/* Distributes the calls to their threads, and sorts those of each. */
static int order_threads(struct correlate *c)
{
	size_t nr = kprof_capture_info(c->t)->nr_threads;
	uint32_t first = 0;
	int err = start_numbers(&c->by_thread, c->calls.nr);

	for (size_t i = 0; i < nr; first += c->threads[i++].nr)
		c->threads[i].first = c->threads[i].next = first;
	for (uint32_t i = 0; i < c->calls.nr && !err; i++) {
		struct corr_thread *th = &c->threads[corr_call_at(c, i)->thread];

		*(uint32_t *)bulk__at(&c->by_thread, th->next++) = i;
	}
	for (size_t i = 0; i < nr && !err; i++)
		err = order(c, &c->by_thread, c->threads[i].first, c->threads[i].next, by_thread);
	return err;
}

/* Distributes the activities to their rows, and sorts those of each. */
static int order_rows(struct correlate *c)
{
	struct corr_row *rows = c->rows.data;
	uint32_t *next = calloc(c->rows.nr + 1, sizeof(*next)), first = 0;
	int err;

	if (!next)
		return correlate__no_memory(c->acts.nr);
	err = start_numbers(&c->by_row, c->acts.nr);
	for (size_t i = 0; i < c->rows.nr && !err; first += rows[i++].nr)
		rows[i].first = next[i] = first;
	for (uint32_t i = 0; i < c->acts.nr && !err; i++) {
		uint32_t row = corr_act_at(c, i)->row;

		if (row != CORRELATE_NONE)
			*(uint32_t *)bulk__at(&c->by_row, next[row]++) = i;
	}
	for (size_t i = 0; i < c->rows.nr && !err; i++)
		err = order(c, &c->by_row, rows[i].first, rows[i].first + rows[i].nr, by_row);
	free(next);
	return err;
}

/* ---- linking ---- */

/*
 * A runtime's call and the driver's call inside it can share one correlation: the outer one then
 * represents both. A later use of the same correlation is a separate launch, which is numbered: how
 * often it had been used before.
 */
static void find_launches(struct correlate *c, const struct bulk *sorted)
{
	struct corr_call *outer = NULL, *last = NULL;
	uint32_t again = 0;

	for (size_t i = 0; i < c->calls.nr; i++) {
		struct corr_call *call = corr_call_at(c, corr_number_at(sorted, i));

		if (outer && call->correlation && outer->correlation == call->correlation &&
		    outer->thread == call->thread &&
		    corr_call_end_ns(call) <= corr_call_end_ns(outer)) {
			call->flags |= CORR_CALL_NESTED;
			continue;
		}
		outer = call;
		if (!call->correlation)
			continue;
		if (last && last->correlation == call->correlation &&
		    pid_of(c, last) == pid_of(c, call))
			again++;
		else
			again = 0;
		call->again = again < UINT16_MAX ? (uint16_t)again : UINT16_MAX;
		last = call;
	}
}

struct key {
	uint64_t correlation, start_ns;
	pid_t pid;
};

/* Whether the call sorts after the key: by correlation, process and start time. */
static bool is_after(const struct correlate *c, const struct corr_call *call, const struct key *k)
{
	pid_t pid;

	if (call->correlation != k->correlation)
		return call->correlation > k->correlation;
	pid = pid_of(c, call);
	if (pid != k->pid)
		return pid > k->pid;
	return call->start_ns > k->start_ns;
}

/*
 * How many calls do not sort after the key. The search begins at the previous result, from, and
 * widens: activities come in nearly the order of their launches.
 */
static size_t calls_until(const struct correlate *c, const struct bulk *sorted, size_t from,
			  const struct key *k)
{
	size_t low = 0, high = c->calls.nr, step = 1;

	if (from < high && !is_after(c, corr_call_at(c, corr_number_at(sorted, from)), k)) {
		low = from + 1;
		while (low + step < high &&
		       !is_after(c, corr_call_at(c, corr_number_at(sorted, low + step)), k))
			low += step, step *= 2;
		if (low + step < high)
			high = low + step;
	} else {
		if (from < high)
			high = from;
		while (high > step &&
		       is_after(c, corr_call_at(c, corr_number_at(sorted, high - step)), k))
			high -= step, step *= 2;
		if (high > step)
			low = high - step;
	}
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (is_after(c, corr_call_at(c, corr_number_at(sorted, mid)), k))
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static bool of_key(const struct correlate *c, uint32_t i, const struct key *k)
{
	const struct corr_call *call = corr_call_at(c, i);

	return call->correlation == k->correlation && pid_of(c, call) == k->pid;
}

/*
 * The call that launched an activity: the latest one with its correlation that had begun by then,
 * or else the next one.
 */
static uint32_t launch_of(const struct correlate *c, const struct bulk *sorted, size_t until,
			  const struct key *k)
{
	size_t i;

	for (i = until; i-- && until - i <= MAX_NESTED && of_key(c, corr_number_at(sorted, i), k);)
		if (!(corr_call_at(c, corr_number_at(sorted, i))->flags & CORR_CALL_NESTED))
			return corr_number_at(sorted, i);
	for (i = until;
	     i < c->calls.nr && i - until < MAX_NESTED && of_key(c, corr_number_at(sorted, i), k);
	     i++) {
		const struct corr_call *call = corr_call_at(c, corr_number_at(sorted, i));

		if (call->start_ns - k->start_ns > MAX_EARLY_NS)
			break;
		if (!(call->flags & CORR_CALL_NESTED))
			return corr_number_at(sorted, i);
	}
	return CORRELATE_NONE;
}

static void count_link(struct correlate *c, const struct corr_act *act,
		       const struct corr_call *call)
{
	uint64_t early_ns = call->start_ns > act->start_ns ? call->start_ns - act->start_ns : 0;

	c->counts.linked++;
	if (!early_ns)
		return;
	c->counts.before_launch++;
	if (early_ns > c->counts.before_launch_max_ns)
		c->counts.before_launch_max_ns = early_ns;
}

/* Whether a thread reported the activity itself, or it was measured: no call launched it. */
static bool of_no_call(const struct correlate *c, const struct corr_act *act)
{
	const struct corr_row *row = (const struct corr_row *)c->rows.data + act->row;

	return act->row != CORRELATE_NONE && (row->of_thread || row->ranges);
}

/* Links activities from last to first, so that each call's chain is in the order of the file. */
static void link_acts(struct correlate *c, const struct bulk *sorted)
{
	size_t at = c->calls.nr;

	for (size_t i = c->acts.nr; i--;) {
		struct corr_act *act = corr_act_at(c, (uint32_t)i);
		struct key key = {.correlation = act->correlation, .start_ns = act->start_ns};
		uint32_t call = CORRELATE_NONE;

		if (key.correlation && act->row != CORRELATE_NONE) {
			key.pid = ((struct corr_row *)c->rows.data)[act->row].pid;
			at = calls_until(c, sorted, at, &key);
			call = launch_of(c, sorted, at, &key);
		}
		act->call = call;
		act->next = CORRELATE_NONE;
		if (call == CORRELATE_NONE) {
			c->counts.without_call += !of_no_call(c, act);
			if (key.pid &&
			    ((at && of_key(c, corr_number_at(sorted, at - 1), &key)) ||
			     (at < c->calls.nr && of_key(c, corr_number_at(sorted, at), &key))))
				act->flags |= CORR_ACT_REUSED;
			continue;
		}
		count_link(c, act, corr_call_at(c, call));
		act->next = corr_call_at(c, call)->first;
		corr_call_at(c, call)->first = (uint32_t)i;
	}
}

static int link_all(struct correlate *c)
{
	struct bulk sorted;
	int err = start_numbers(&sorted, c->calls.nr);

	for (uint32_t i = 0; i < c->calls.nr && !err; i++)
		*(uint32_t *)bulk__at(&sorted, i) = i;
	if (!err)
		err = order(c, &sorted, 0, c->calls.nr, by_correlation);
	if (!err) {
		find_launches(c, &sorted);
		link_acts(c, &sorted);
	}
	bulk__free(&sorted);
	return err;
}

/*
 * Does the work belong to something that was recorded? What has no call of its own does; of a call,
 * its span or an operator or annotation around it.
 */
static bool is_recorded(const struct correlate *c, const struct corr_act *act)
{
	const struct corr_call *call = correlate__call(c, act->call);

	return of_no_call(c, act) || (call && (call->op || call->flags & CORR_CALL_SPAN));
}

static bool is_within(const struct correlate *c, pid_t pid)
{
	return c->within || map64__get(&c->within_pids, (uint32_t)pid);
}

int correlate__leave_out(struct correlate *c)
{
	struct corr_row *rows = c->rows.data;

	if (!c->within && !c->within_pids.cap)
		return 0;
	for (uint32_t i = 0; i < c->acts.nr; i++) {
		struct corr_act *act = corr_act_at(c, i);
		bool linked = act->call != CORRELATE_NONE;

		if (act->row == CORRELATE_NONE || !is_within(c, rows[act->row].pid) ||
		    is_recorded(c, act))
			continue;
		if (linked)
			corr_call_at(c, act->call)->first = CORRELATE_NONE;
		c->counts.linked -= linked;
		c->counts.without_call -= !linked;
		c->counts.activities--;
		rows[act->row].nr--;
		act->row = act->call = CORRELATE_NONE;
	}
	bulk__free(&c->by_row);
	return order_rows(c);
}

int correlate__link(struct correlate *c)
{
	int err = order_threads(c);

	if (!err)
		err = order_rows(c);
	return err ? err : link_all(c);
}
