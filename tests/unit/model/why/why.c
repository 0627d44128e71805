// SPDX-License-Identifier: BSD-2-Clause
/* user/model/why/: captures of which every moment is known. */
#include "why_fixture.h"

#include "model/timeline/timeline.h"

static void followed(void)
{
	struct kprof_why *w;

	training("disk", true, PREAD, STORE_WAIT_IO);
	w = why("disk");
	CHECK(w && kprof_why_info(w)->by_step && kprof_why_info(w)->units == STEPS);
	CHECK_EQ(kprof_why_info(w)->tid, 7);
	share_is(w, KPROF_WHY_COMPUTE, 0.3);
	share_is(w, KPROF_WHY_DISK, 0.3);
	share_is(w, KPROF_WHY_THREAD, 0.1); /* from 5 to 6 ms, in which the loader worked */
	/* The capture says that events were dropped: an operator may be missing there. */
	share_is(w, KPROF_WHY_CODE, 0);
	share_is(w, KPROF_WHY_UNKNOWN, 0.3);
	CHECK(kprof_why_row(w, 0)->found && row_of(w, KPROF_WHY_DISK).found);
	CHECK_STR(row_of(w, KPROF_WHY_DISK).evidence[0].text, "loader (8)");
	kprof_why_free(w);
	/* Who waits for a CPU is waited for all the same. */
	training("cpu", true, 0, 0);
	w = why("cpu");
	share_is(w, KPROF_WHY_THREAD, 0.4);
	share_is(w, KPROF_WHY_CPU, 0);
	kprof_why_free(w);
	training("sleep", true, SLEEP, 0);
	w = why("sleep");
	share_is(w, KPROF_WHY_SLEEP, 0.3);
	kprof_why_free(w);
}

static void not_seen(void)
{
	struct kprof_why *w;

	training("plain", false, 0, 0);
	w = why("plain");
	CHECK(w != NULL);
	share_is(w, KPROF_WHY_COMPUTE, 0.3);
	share_is(w, KPROF_WHY_UNKNOWN, 0.7); /* on a CPU or not: nobody knows */
	for (size_t i = 0; i < kprof_why_nr_rows(w); i++)
		CHECK(!kprof_why_row(w, i)->found);
	CHECK(misses(w, "--sched"));
	kprof_why_free(w);
}

static void hostile(void)
{
	struct kprof_why *w;

	/* Threads that wait for each other, at the same time, in no order. */
	begin("circle", true);
	for (uint64_t i = 0; i < 1000; i++) {
		put_wait(i * 1000, i * 3000, main_thread, FUTEX, 0, 8);
		put_wait(i * 500, i * 2000, loader, FUTEX, 0, 7);
		put_wait(i * 500, i * 2000, loader, FUTEX, 0, 8);
	}
	made__finish(m);
	w = why("circle");
	CHECK(w != NULL);
	if (w) {
		double sum = 0;

		for (size_t i = 0; i < kprof_why_nr_rows(w); i++)
			sum += kprof_why_row(w, i)->share;
		CHECK(fabs(sum - 1) < 1e-6);
	}
	kprof_why_free(w);
	begin("nothing", false);
	made__finish(m);
	CHECK(why("nothing") == NULL);
}

static const struct kprof_why_evidence *evidence(const struct kprof_why *w,
						 enum kprof_why_cause cause, const char *text)
{
	struct kprof_why_row row = row_of(w, cause);

	for (size_t i = 0; i < row.nr_evidence; i++)
		if (strstr(row.evidence[i].text, text))
			return &row.evidence[i];
	return NULL;
}

/* ---- what has no record, and parts of a recording ---- */

/* Of the 120 ms of steps outside of waits a tenth was spent in waits too short for a record. */
static void short_waits(void)
{
	struct kprof_why *w;

	put_training("short", true, PREAD, STORE_WAIT_IO);
	put_time(main_thread, 108 * MS, 92 * MS, 20);
	made__finish(m);
	w = why("short");
	share_is(w, KPROF_WHY_COMPUTE, 0.27);
	share_is(w, KPROF_WHY_UNKNOWN, 0.33);
	share_is(w, KPROF_WHY_DISK, 0.3);
	share_is(w, KPROF_WHY_THREAD, 0.1); /* another thread's work is not in doubt */
	CHECK(misses(w, "--min-wait") && !misses(w, "part of the recording"));
	kprof_why_free(w);
}

/* While it waits for a thread that works, it is not it that may have been off a CPU. */
static void waits_for_work(void)
{
	struct kprof_why *w;
	uint32_t step;

	begin("work", true);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		put_span(at, at + STEP_NS, step);
		put_wait(at + 2 * MS, at + 7 * MS, main_thread, FUTEX, 0, 8);
	}
	put_time(main_thread, 50 * MS, 150 * MS, 20);
	made__finish(m);
	w = why("work");
	share_is(w, KPROF_WHY_THREAD, 0.5);
	share_is(w, KPROF_WHY_UNKNOWN, 0.25);
	kprof_why_free(w);
}

static int first_start(void *ctx, const struct tl_span *s)
{
	uint64_t *least = ctx;

	*least = s->start_ns < *least ? s->start_ns : *least;
	return 0;
}

/* Whose waits are known in sum only, of the whole recording, has none in a part of it. */
static void part(void)
{
	const struct kprof_range range = {.sz = sizeof(range),
					  .has_from = true,
					  .from_ns = 105 * MS,
					  .has_to = true,
					  .to_ns = 200 * MS};
	uint64_t least = UINT64_MAX;
	struct kprof_why *w;

	w = why_with("short", (struct kprof_why_opts){0}, &range);
	CHECK_EQ(kprof_why_info(w)->units, 9);
	share_is(w, KPROF_WHY_COMPUTE, 0.3);
	share_is(w, KPROF_WHY_UNKNOWN, 0.3);
	share_is(w, KPROF_WHY_DISK, 0.3);
	CHECK(misses(w, "part of the recording") && !misses(w, "--min-wait"));
	kprof_why_free(w);
	/* The capture is as it was before: spans come whole, as exports need them. */
	CHECK_EQ(timeline__spans(c, first_start, &least), 0);
	CHECK_EQ(least, MONO_NS + 100 * MS);
}

/* Two operators of half of the time each, half of which is not known. */
static void two_operators(void)
{
	const struct kprof_why_evidence *e;
	uint32_t mm, add, step;
	struct kprof_why *w;

	begin("two", true);
	mm = made__what(m, "aten::mm", "", "cpu_op", 0);
	add = made__what(m, "aten::add", "", "cpu_op", 0);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		made__begin(m, at, main_thread, step);
		put_span(at, at + 5 * MS, mm);
		put_span(at + 5 * MS, at + STEP_NS, add);
		made__end(m, at + STEP_NS, main_thread, 0);
	}
	put_time(main_thread, 100 * MS, 100 * MS, 0);
	made__finish(m);
	w = why("two");
	share_is(w, KPROF_WHY_COMPUTE, 0.5);
	share_is(w, KPROF_WHY_UNKNOWN, 0.5);
	e = evidence(w, KPROF_WHY_COMPUTE, "aten::mm");
	CHECK(e && fabs(e->share - 0.5) < 1e-3);
	e = evidence(w, KPROF_WHY_COMPUTE, "aten::add");
	CHECK(e && fabs(e->share - 0.5) < 1e-3);
	kprof_why_free(w);
}

/* ---- intervals ---- */

/* Steps of which the operator has all in one, and a fifth in the next. */
static void spread(void)
{
	struct kprof_why_row row;
	uint32_t mm, step;
	struct kprof_why *w;

	begin("spread", true);
	mm = made__what(m, "aten::mm", "", "cpu_op", 0);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	for (uint64_t i = 0; i < STEPS; i++) {
		made__begin(m, i * STEP_NS, main_thread, step);
		put_span(i * STEP_NS, i * STEP_NS + (i % 2 ? 2 : 10) * MS, mm);
		made__end(m, (i + 1) * STEP_NS, main_thread, 0);
	}
	made__finish(m);
	w = why("spread");
	share_is(w, KPROF_WHY_COMPUTE, 0.6);
	row = row_of(w, KPROF_WHY_COMPUTE);
	CHECK(row.interval && row.low < 0.59 && row.low > 0.3 && row.high > 0.61 && row.high < 0.9);
	kprof_why_free(w);
}

/* Without waits, samples show half of the operator's time on a CPU, give or take. */
static void sampled(void)
{
	struct kprof_why_row row;
	struct kprof_why *w;

	put_training("sampled", false, 0, 0);
	for (uint64_t i = 0; i < STEPS; i++)
		made__sample(&of, i * STEP_NS + 2 * MS, main_thread, 0, 3 * MS / 2, WHOLE);
	made__finish(m);
	w = why("sampled");
	share_is(w, KPROF_WHY_COMPUTE, 0.15);
	share_is(w, KPROF_WHY_UNKNOWN, 0.85);
	/* Wilson's interval of a half of 40 is from 0.352 to 0.648. */
	row = row_of(w, KPROF_WHY_COMPUTE);
	CHECK(row.interval && fabs(row.low - 0.3 * 0.352) < 1e-3);
	CHECK(fabs(row.high - 0.3 * 0.648) < 1e-3);
	kprof_why_free(w);
}

static void few_steps(void)
{
	struct kprof_why_row row;
	struct kprof_why *w;
	uint32_t step;

	begin("one", true);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	put_span(0, STEP_NS, step);
	put_wait(2 * MS, 4 * MS, main_thread, SLEEP, 0, 0);
	made__finish(m);
	w = why("one");
	share_is(w, KPROF_WHY_SLEEP, 0.2); /* and low and high are on both sides of it */
	row = row_of(w, KPROF_WHY_SLEEP);
	CHECK(!row.interval && row.low == row.share && row.high == row.share);
	kprof_why_free(w);
}

/* ---- several processes ---- */

/* One that waits for the other in two collectives, with two of each kind of evidence. */
static void put_waiting_rank(void)
{
	uint32_t reduce = made__what(m, "c10d::allreduce_", "", "cpu_op", 0);
	uint32_t broadcast = made__what(m, "c10d::broadcast_", "", "cpu_op", 0);
	uint32_t step = made__what(m, "train_step", "", "user_annotation", 0), stacks[4];

	for (uint32_t i = 0; i < 4; i++)
		stacks[i] = made__stack(&of, 0,
					made__frame(&of, STORE_FRAME_PYTHON, 0, "",
						    (const char *[]){"a", "b", "x", "y"}[i],
						    "/app/train.py", i + 1, NULL));
	made__thread(m, 7, 9, "second");
	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		made__begin(m, at, main_thread, step);
		put_span(at + 1 * MS, at + 4 * MS, reduce);
		put_span(at + 5 * MS, at + 8 * MS, broadcast);
		made__end(m, at + STEP_NS, main_thread, 0);
		put_lock(at + 1 * MS, at + 4 * MS, stacks[0], 8, stacks[2]);
		put_lock(at + 5 * MS, at + 8 * MS, stacks[1], 9, stacks[3]);
	}
}

static void ranks(void)
{
	uint32_t other, mm, step;
	struct kprof_why *w;

	begin("ranks", true);
	put_waiting_rank();
	made__process(m, 17, 1, "python3");
	other = made__thread(m, 17, 17, "straggler");
	mm = made__what(m, "aten::mm", "", "cpu_op", 0);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		made__begin(m, at, other, step);
		made__begin(m, at, other, mm);
		made__end(m, at + STEP_NS, other, 0);
		made__end(m, at + STEP_NS + 1, other, 0);
	}
	made__finish(m);
	w = why("ranks");
	CHECK_EQ(kprof_why_info(w)->pid, 7);
	CHECK_EQ(kprof_why_info(w)->peers, 1);
	CHECK_STR(kprof_why_info(w)->chosen, "waits longest for the others");
	share_is(w, KPROF_WHY_COLLECTIVE, 0.6);
	CHECK_EQ(row_of(w, KPROF_WHY_COLLECTIVE).nr_evidence, 9);
	CHECK(evidence(w, KPROF_WHY_COLLECTIVE, "process 17 waits only"));
	kprof_why_free(w);
}

static void in_directory(void)
{
	scratch__make();
	followed();
	not_seen();
	hostile();
	short_waits();
	part();
	waits_for_work();
	two_operators();
	spread();
	sampled();
	few_steps();
	ranks();
	kprof_capture_close(c);
	scratch__remove();
}

UNIT_MAIN(TEST(in_directory))
