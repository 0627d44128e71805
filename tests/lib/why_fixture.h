/* SPDX-License-Identifier: BSD-2-Clause */
/* What the tests of kprof why share: captures of which every moment is known. */
#ifndef KPROF_TESTS_WHY_FIXTURE_H
#define KPROF_TESTS_WHY_FIXTURE_H

#include <math.h>

#include "stacks_fixture.h"

#include "kprof/why.h"

#define MS 1000000ull
#define STEP_NS (10 * MS)
#define STEPS 20
#define FUTEX 203 /* numbers of system calls + 1 */
#define PREAD 18
#define SLEEP 231

static uint32_t main_thread, loader;
static struct made_stacks of;
static struct made *const m = &of.m;

static inline struct store_record wait_of(uint64_t start_ns, uint64_t end_ns, uint32_t thread,
					  uint32_t call, uint32_t flags, uint32_t waker)
{
	return (struct store_record){STORE_WAIT, .wait = {MONO_NS + start_ns, MONO_NS + end_ns,
							  MONO_NS + end_ns, thread, 0, call, 0,
							  flags | STORE_WAIT_SLEEPING,
							  waker ? 7 : 0, waker, 0, 0}};
}

static inline void put_wait(uint64_t start_ns, uint64_t end_ns, uint32_t thread, uint32_t call,
			    uint32_t flags, uint32_t waker)
{
	made__put(m, wait_of(start_ns, end_ns, thread, call, flags, waker));
}

/* A wait for a futex that thread 8 ends, with stacks of both. */
static inline void put_lock(uint64_t start_ns, uint64_t end_ns, uint32_t stack, uint32_t waker,
			    uint32_t waker_stack)
{
	struct store_record r = wait_of(start_ns, end_ns, main_thread, FUTEX, 0, waker);

	r.wait.stack = stack;
	r.wait.waker_stack = waker_stack;
	made__put(m, r);
}

/* How long a thread ran and did not, of a life of on_ns + off_ns; it left a CPU 1000 times. */
static inline void put_time(uint32_t thread, uint64_t on_ns, uint64_t off_ns, uint64_t told)
{
	made__put(m, (struct store_record){STORE_THREAD_TIME,
					   .thread_time = {.start_ns = MONO_NS,
							   .end_ns = MONO_NS + on_ns + off_ns,
							   .on_ns = on_ns,
							   .blocked_ns = off_ns,
							   .switches = 1000,
							   .told = told,
							   .thread = thread}});
}

static inline void begin(const char *name, bool waits)
{
	of = (struct made_stacks){0};
	made__start(m, in_scratch(name));
	made__process(m, 7, 1, "python3");
	main_thread = made__thread(m, 7, 7, "main");
	loader = made__thread(m, 7, 8, "loader");
	if (waits)
		made__meta(m, "waits", "{}");
}

/* A span of the main thread; others of it may lie within, and come before its end. */
static inline void put_span(uint64_t start_ns, uint64_t end_ns, uint32_t description)
{
	made__begin(m, start_ns, main_thread, description);
	made__end(m, end_ns, main_thread, 0);
}

/*
 * Steps of 10 ms: from 1 to 4 ms an operator; from 5 to 9 ms a wait for the loader, which waits
 * from 6 to 9 ms as the call says. Not finished: more may be put.
 */
static inline void put_training(const char *name, bool waits, uint32_t call, uint32_t flags)
{
	uint32_t op, step;

	begin(name, waits);
	op = made__what(m, "aten::mm", "", "cpu_op", 0);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	for (uint64_t i = 0; i < STEPS; i++) {
		uint64_t at = i * STEP_NS;

		made__begin(m, at, main_thread, step);
		put_span(at + MS, at + 4 * MS, op);
		made__end(m, at + STEP_NS, main_thread, 0);
		if (!waits)
			continue;
		put_wait(at + 5 * MS, at + 9 * MS, main_thread, FUTEX, 0, 8);
		put_wait(at + 6 * MS, at + 9 * MS, loader, call, flags, 0);
	}
}

static inline void training(const char *name, bool waits, uint32_t call, uint32_t flags)
{
	put_training(name, waits, call, flags);
	made__finish(m);
}

static struct kprof_capture *c;

/* Closes the capture of the last call. */
static inline struct kprof_why *why_with(const char *name, struct kprof_why_opts opts,
					 const struct kprof_range *range)
{
	struct kprof_why *w = NULL;

	opts.sz = sizeof(opts);
	kprof_capture_close(c);
	CHECK_EQ(kprof_capture_open(in_scratch(name), &c), 0);
	if (range)
		CHECK_EQ(kprof_capture_select(c, range), 0);
	if (kprof_why_new(c, &opts, &w))
		printf("# %s\n", kprof_error_cause());
	return w;
}

static inline struct kprof_why *why(const char *name)
{
	return why_with(name, (struct kprof_why_opts){0}, NULL);
}

static inline struct kprof_why_row row_of(const struct kprof_why *w, enum kprof_why_cause cause)
{
	struct kprof_why_row none = {0};

	for (size_t i = 0; i < kprof_why_nr_rows(w); i++)
		if (kprof_why_row(w, i)->cause == cause)
			return *kprof_why_row(w, i);
	return none;
}

static inline void share_is(const struct kprof_why *w, enum kprof_why_cause cause, double share)
{
	struct kprof_why_row row = row_of(w, cause);

	if (fabs(row.share - share) > 1e-3)
		printf("# %s: %g, not %g\n", kprof_why_cause_key(cause), row.share, share);
	CHECK(fabs(row.share - share) <= 1e-3);
	CHECK(row.low <= row.share && row.share <= row.high);
}

/* Whether what the capture does not show, or what would, has this word. */
static inline bool misses(const struct kprof_why *w, const char *word)
{
	const char *what, *how;

	for (size_t i = 0; kprof_why_missing(w, i, &what, &how); i++)
		if (strstr(what, word) || strstr(how, word))
			return true;
	return false;
}

#endif
