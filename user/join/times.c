// SPDX-License-Identifier: BSD-2-Clause
/* Waits that were split, threads' times, which are added up, and gaps. */
#include "join/impl.h"

#include <string.h>

#include "store/store.h"

#define GAP_NS NSEC_PER_MSEC /* between two captures, a shorter time is none */
#define MOST_GAPS (1u << 20)

/* ---- waits ---- */

/* The part before of a wait that goes on; `r` becomes all of it. */
static void put_together(struct store_record *r, const struct store_record *before)
{
	uint32_t of_start = before->wait.flags & STORE_WAIT_FROM_START;

	r->wait.start_ns = before->wait.start_ns;
	if (before->wait.wake_ns < before->wait.end_ns)
		r->wait.wake_ns = before->wait.wake_ns;
	r->wait.flags = (r->wait.flags & ~(uint32_t)STORE_WAIT_FROM_START) | of_start;
	r->wait.left_cpu = before->wait.left_cpu;
	if (!r->wait.stack) {
		r->wait.stack = before->wait.stack;
		r->wait.flags |= before->wait.flags & (KPROF_SAMPLE_END | STORE_WAIT_GIL);
	}
	if (!r->wait.call)
		r->wait.call = before->wait.call;
	if (!r->wait.object)
		r->wait.object = before->wait.object;
}

/* Cuts it where another recording begins. False: it is all of that. */
static bool cut(const struct join *j, struct store_record *r)
{
	uint64_t until_ns = j->now->until_ns;

	if (r->wait.start_ns >= until_ns)
		return false;
	if (r->wait.end_ns > until_ns && until_ns < j->now->end_ns) {
		r->wait.end_ns = until_ns;
		r->wait.flags |= STORE_WAIT_TO_END;
		if (r->wait.wake_ns > until_ns)
			r->wait.wake_ns = until_ns;
	}
	return true;
}

int join_wait(struct join *j, struct store_record *r)
{
	struct join_thread *t = join_thread(j, r->wait.thread);
	int err = 0;

	if (!t || !cut(j, r))
		return 0;
	if (t->wait.type && r->wait.flags & STORE_WAIT_FROM_START &&
	    r->wait.start_ns <= t->wait.wait.end_ns + GAP_NS) {
		put_together(r, &t->wait);
		t->joined_waits++;
	} else if (t->wait.type) {
		err = store_writer__put(j->out, &t->wait);
	}
	t->wait.type = 0;
	if (err || !(r->wait.flags & STORE_WAIT_TO_END))
		return err ? err : store_writer__put(j->out, r);
	t->wait = *r;
	return 0;
}

/* ---- threads' times ---- */

int join_time(struct join *j, const struct store_record *r)
{
	struct vec *times = &j->now->times;

	while (times->nr <= r->thread_time.thread)
		if (!vec_push(times, sizeof(*r)))
			return join_no_memory();
	((struct store_record *)times->data)[r->thread_time.thread] = *r;
	return 0;
}

static uint64_t share(uint64_t ns, double part)
{
	return (uint64_t)((double)ns * part);
}

/* Leaves out of it what lies before that time, as another recording has it. */
static void leave_out(struct store_record *r, uint64_t before_ns)
{
	uint64_t life_ns = r->thread_time.end_ns - r->thread_time.start_ns, left_ns;
	double part;

	if (before_ns <= r->thread_time.start_ns || !life_ns)
		return;
	left_ns = before_ns < r->thread_time.end_ns ? r->thread_time.end_ns - before_ns : 0;
	part = (double)left_ns / (double)life_ns;
	r->thread_time.start_ns = r->thread_time.end_ns - left_ns;
	r->thread_time.runnable_ns = share(r->thread_time.runnable_ns, part);
	r->thread_time.blocked_ns = share(r->thread_time.blocked_ns, part);
	r->thread_time.switches = share(r->thread_time.switches, part);
	r->thread_time.on_ns = left_ns - r->thread_time.runnable_ns - r->thread_time.blocked_ns;
}

static void add_time(struct join_thread *t, struct store_record *r)
{
	struct store_record *sum = &t->time;

	if (!sum->type) {
		*sum = *r;
		return;
	}
	leave_out(r, sum->thread_time.end_ns);
	if (r->thread_time.end_ns > sum->thread_time.end_ns)
		sum->thread_time.end_ns = r->thread_time.end_ns;
	add_capped(&sum->thread_time.on_ns, r->thread_time.on_ns);
	add_capped(&sum->thread_time.runnable_ns, r->thread_time.runnable_ns);
	add_capped(&sum->thread_time.blocked_ns, r->thread_time.blocked_ns);
	add_capped(&sum->thread_time.switches, r->thread_time.switches);
	add_capped(&sum->thread_time.told, r->thread_time.told);
}

int join_end_times(struct join *j)
{
	struct store_record *times = j->now->times.data;

	for (size_t i = 0; i < j->now->times.nr; i++) {
		struct join_thread *t = times[i].type ? join_thread(j, i) : NULL;

		if (t)
			add_time(t, &times[i]);
	}
	free(j->now->times.data);
	j->now->times = (struct vec){0};
	return 0;
}

/* ---- gaps ---- */

int join_gap(struct join *j, const struct store_record *r)
{
	uint64_t of = join_mix(join_mix(join_mix(j->seed, r->gap.pid), r->gap.what), r->gap.reason);
	uint64_t *last = map64__at(&j->last_gap, of);
	struct store_record *gaps = j->gaps.data, *gap;

	if (!last)
		return join_no_memory();
	if (*last && r->gap.start_ns <= gaps[*last - 1].gap.end_ns &&
	    r->gap.end_ns >= gaps[*last - 1].gap.start_ns) {
		gap = &gaps[*last - 1];
		if (r->gap.end_ns > gap->gap.end_ns)
			gap->gap.end_ns = r->gap.end_ns;
		if (r->gap.start_ns < gap->gap.start_ns)
			gap->gap.start_ns = r->gap.start_ns;
		return 0;
	}
	if (j->gaps.nr >= MOST_GAPS)
		return store_writer__put(j->out, r);
	gap = vec_push(&j->gaps, sizeof(*gap));
	if (!gap)
		return join_no_memory();
	*gap = *r;
	*last = j->gaps.nr;
	return 0;
}

int join_missing(struct join *j, const struct chunk *before, const struct chunk *next)
{
	static const char missing[] = "a part of the recording is missing";
	static const char cut_short[] = "the recording was cut short";
	const char *reason = before->complete ? missing : cut_short;
	struct store_record r = {
		.type = STORE_GAP,
		.gap = {.start_ns = before->until_ns, .end_ns = next->start_ns},
	};

	if (next->start_ns < before->until_ns + (before->complete ? GAP_NS : 1))
		return 0;
	j->info.missing++;
	r.gap.what = store_writer__string(j->out, "anything", strlen("anything"));
	r.gap.reason = store_writer__string(j->out, reason, strlen(reason));
	return join_gap(j, &r);
}

int join_put_times(struct join *j)
{
	struct join_thread *threads = j->threads.data;
	const struct store_record *gaps = j->gaps.data;
	int err = 0;

	for (size_t i = 0; i < j->threads.nr && !err; i++) {
		struct join_thread *t = &threads[i];

		if (t->wait.type)
			err = store_writer__put(j->out, &t->wait);
		if (err || !t->time.type)
			continue;
		t->time.thread_time.told -= t->joined_waits < t->time.thread_time.told
						    ? t->joined_waits
						    : t->time.thread_time.told;
		err = store_writer__put(j->out, &t->time);
	}
	for (size_t i = 0; i < j->gaps.nr && !err; i++)
		err = store_writer__put(j->out, &gaps[i]);
	return err;
}
