// SPDX-License-Identifier: BSD-2-Clause
/* user/model/why/sweep.c: how far it is followed who waits for whom, and until when. */
#include "why_fixture.h"

/* The main thread waits for the loader, that one for the next, and so on; the last one reads. */
static void chain(uint32_t threads, enum kprof_why_cause cause)
{
	struct kprof_why *w;
	uint32_t step;

	begin("chain", true);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	for (uint32_t i = 2; i < threads; i++)
		made__thread(m, 7, 7 + i, "next");
	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		put_span(at, at + STEP_NS, step);
		for (uint32_t i = 0; i + 1 < threads; i++)
			put_wait(at + 2 * MS, at + 8 * MS, i, FUTEX, 0, 7 + i + 1);
		put_wait(at + 2 * MS, at + 8 * MS, threads - 1, PREAD, STORE_WAIT_IO, 0);
	}
	made__finish(m);
	w = why("chain");
	share_is(w, cause, 0.6);
	kprof_why_free(w);
}

/* Half of each step is a wait for the disk, until waits were given up in the middle. */
static void given_up(void)
{
	uint64_t until_ns = STEPS / 2 * STEP_NS;
	struct kprof_why *w;
	char waits[64];
	uint32_t step;

	begin("given_up", false);
	snprintf(waits, sizeof(waits), "{\"until_ns\":%llu}", MONO_NS + until_ns);
	made__meta(m, "waits", waits);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		put_span(at, at + STEP_NS, step);
		if (at < until_ns)
			put_wait(at, at + STEP_NS / 2, main_thread, PREAD, STORE_WAIT_IO, 0);
	}
	made__finish(m);
	w = why("given_up");
	share_is(w, KPROF_WHY_DISK, 0.25);
	share_is(w, KPROF_WHY_UNKNOWN, 0.5);
	CHECK(misses(w, "given up"));
	kprof_why_free(w);
}

/* In each step a message, of which a half is waited for and the other spun, and a collective. */
static void messages(void)
{
	uint32_t step, receive, reduce;
	struct kprof_why *w;

	begin("messages", true);
	step = made__what(m, "train_step", "", "user_annotation", 0);
	receive = made__what(m, "MPI_Recv", "", "collective_comm", 0);
	reduce = made__what(m, "MPI_Allreduce", "", "collective_comm", 0);
	for (uint64_t at = 0; at < STEPS * STEP_NS; at += STEP_NS) {
		made__begin(m, at, main_thread, step);
		put_span(at + MS, at + 5 * MS, receive);
		put_span(at + 6 * MS, at + 7 * MS, reduce);
		made__end(m, at + STEP_NS, main_thread, 0);
		put_wait(at + MS, at + 3 * MS, main_thread, FUTEX, 0, 0);
	}
	made__finish(m);
	w = why("messages");
	share_is(w, KPROF_WHY_MESSAGE, 0.4);
	share_is(w, KPROF_WHY_COLLECTIVE, 0.1);
	kprof_why_free(w);
}

static void in_directory(void)
{
	scratch__make();
	messages();
	given_up();
	chain(2, KPROF_WHY_DISK);
	chain(5, KPROF_WHY_DISK);
	chain(6, KPROF_WHY_THREAD);
	kprof_capture_close(c);
	scratch__remove();
}

UNIT_MAIN(TEST(in_directory))
