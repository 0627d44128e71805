// SPDX-License-Identifier: BSD-2-Clause
/* user/model/why/: captures of which every moment is known. */
#include <math.h>

#include "stacks_fixture.h"

#include "kprof/why.h"

#define STEP_NS 10000000ull
#define STEPS 20
#define FUTEX 203 /* numbers of system calls + 1 */
#define PREAD 18
#define SLEEP 231

static uint32_t main_thread, loader;
static struct made m;

static void put_wait(uint64_t start_ns, uint64_t end_ns, uint32_t thread, uint32_t call,
		     uint32_t flags, uint32_t waker)
{
	made__put(&m,
		  (struct store_record){STORE_WAIT, .wait = {MONO_NS + start_ns, MONO_NS + end_ns,
							     MONO_NS + end_ns, thread, 0, call, 0,
							     flags | STORE_WAIT_SLEEPING,
							     waker ? 7 : 0, waker, 0, 0}});
}

static void begin(const char *name, bool waits)
{
	made__start(&m, in_scratch(name));
	made__process(&m, 7, 1, "python3");
	main_thread = made__thread(&m, 7, 7, "main");
	loader = made__thread(&m, 7, 8, "loader");
	if (waits)
		made__meta(&m, "waits", "{}");
}

/*
 * Steps of 10 ms: from 1 to 4 ms an operator; from 5 to 9 ms a wait for the loader, which waits
 * from 6 to 9 ms as the call says.
 */
static void training(const char *name, bool waits, uint32_t call, uint32_t flags)
{
	uint32_t op, step;

	begin(name, waits);
	op = made__what(&m, "aten::mm", "", "cpu_op", 0);
	step = made__what(&m, "train_step", "", "user_annotation", 0);
	for (uint64_t i = 0; i < STEPS; i++) {
		uint64_t at = i * STEP_NS;

		made__begin(&m, at, main_thread, step);
		made__begin(&m, at + 1000000, main_thread, op);
		made__end(&m, at + 4000000, main_thread, 0);
		made__end(&m, at + STEP_NS, main_thread, 0);
		if (!waits)
			continue;
		put_wait(at + 5000000, at + 9000000, main_thread, FUTEX, 0, 8);
		put_wait(at + 6000000, at + 9000000, loader, call, flags, 0);
	}
	made__finish(&m);
}

static struct kprof_why *why(const char *name, struct kprof_capture **c)
{
	const struct kprof_why_opts opts = {.sz = sizeof(opts)};
	struct kprof_why *w = NULL;

	CHECK_EQ(kprof_capture_open(in_scratch(name), c), 0);
	if (kprof_why_new(*c, &opts, &w))
		printf("# %s\n", kprof_error_cause());
	return w;
}

static struct kprof_why_row row_of(const struct kprof_why *w, enum kprof_why_cause cause)
{
	struct kprof_why_row none = {0};

	for (size_t i = 0; i < kprof_why_nr_rows(w); i++)
		if (kprof_why_row(w, i)->cause == cause)
			return *kprof_why_row(w, i);
	return none;
}

static void share_is(const struct kprof_why *w, enum kprof_why_cause cause, double share)
{
	struct kprof_why_row row = row_of(w, cause);

	if (fabs(row.share - share) > 1e-3)
		printf("# %s: %g, not %g\n", kprof_why_cause_key(cause), row.share, share);
	CHECK(fabs(row.share - share) <= 1e-3);
	CHECK(row.low <= row.share && row.share <= row.high);
}

static void followed(void)
{
	struct kprof_capture *c;
	struct kprof_why *w;

	training("disk", true, PREAD, STORE_WAIT_IO);
	w = why("disk", &c);
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
	kprof_capture_close(c);
	/* Who waits for a CPU is waited for all the same. */
	training("cpu", true, 0, 0);
	w = why("cpu", &c);
	share_is(w, KPROF_WHY_THREAD, 0.4);
	share_is(w, KPROF_WHY_CPU, 0);
	kprof_why_free(w);
	kprof_capture_close(c);
	training("sleep", true, SLEEP, 0);
	w = why("sleep", &c);
	share_is(w, KPROF_WHY_SLEEP, 0.3);
	kprof_why_free(w);
	kprof_capture_close(c);
}

static void not_seen(void)
{
	const char *what, *how;
	struct kprof_capture *c;
	struct kprof_why *w;
	bool sched = false;

	training("plain", false, 0, 0);
	w = why("plain", &c);
	CHECK(w != NULL);
	share_is(w, KPROF_WHY_COMPUTE, 0.3);
	share_is(w, KPROF_WHY_UNKNOWN, 0.7); /* on a CPU or not: nobody knows */
	for (size_t i = 0; i < kprof_why_nr_rows(w); i++)
		CHECK(!kprof_why_row(w, i)->found);
	for (size_t i = 0; kprof_why_missing(w, i, &what, &how); i++)
		sched |= strstr(how, "--sched") != NULL;
	CHECK(sched);
	kprof_why_free(w);
	kprof_capture_close(c);
}

static void hostile(void)
{
	struct kprof_capture *c;
	struct kprof_why *w;

	/* Threads that wait for each other, at the same time, in no order. */
	begin("circle", true);
	for (uint64_t i = 0; i < 1000; i++) {
		put_wait(i * 1000, i * 3000, main_thread, FUTEX, 0, 8);
		put_wait(i * 500, i * 2000, loader, FUTEX, 0, 7);
		put_wait(i * 500, i * 2000, loader, FUTEX, 0, 8);
	}
	made__finish(&m);
	w = why("circle", &c);
	CHECK(w != NULL);
	if (w) {
		double sum = 0;

		for (size_t i = 0; i < kprof_why_nr_rows(w); i++)
			sum += kprof_why_row(w, i)->share;
		CHECK(fabs(sum - 1) < 1e-6);
	}
	kprof_why_free(w);
	kprof_capture_close(c);
	begin("nothing", false);
	made__finish(&m);
	CHECK(why("nothing", &c) == NULL);
	kprof_capture_close(c);
}

static void in_directory(void)
{
	scratch__make();
	followed();
	not_seen();
	hostile();
	scratch__remove();
}

UNIT_MAIN(TEST(in_directory))
