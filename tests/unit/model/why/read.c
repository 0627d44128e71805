// SPDX-License-Identifier: BSD-2-Clause
/* user/model/why/read.c: which thread is looked at. */
#include "why_fixture.h"

static void asked_for(void)
{
	struct kprof_why *w;

	training("training", true, PREAD, STORE_WAIT_IO);
	w = why_with("training", (struct kprof_why_opts){.tid = 8}, NULL);
	CHECK_EQ(kprof_why_info(w)->tid, 8);
	CHECK_STR(kprof_why_info(w)->chosen, "was asked for");
	share_is(w, KPROF_WHY_COMPUTE, 0);
	share_is(w, KPROF_WHY_THREAD, 0);
	share_is(w, KPROF_WHY_DISK, 0.3);
	kprof_why_free(w);
	CHECK(!why_with("training", (struct kprof_why_opts){.tid = 9}, NULL));
}

static void from_which_share_on(void)
{
	struct kprof_why *w = why_with("training", (struct kprof_why_opts){.least = 0.29}, NULL);

	CHECK(row_of(w, KPROF_WHY_DISK).found);
	CHECK(!row_of(w, KPROF_WHY_THREAD).found);
	kprof_why_free(w);
	w = why_with("training", (struct kprof_why_opts){.least = 0.31}, NULL);
	CHECK(!row_of(w, KPROF_WHY_DISK).found);
	kprof_why_free(w);
	w = why_with("training", (struct kprof_why_opts){.least = 0.05}, NULL);
	CHECK(row_of(w, KPROF_WHY_THREAD).found);
	kprof_why_free(w);
}

/* A main thread that waits for a worker to end, or leaves its CPU more often than for that. */
static pid_t chosen_of(const char *name, uint64_t told)
{
	struct kprof_why *w;
	pid_t tid;

	begin(name, true);
	put_wait(MS, 9000 * MS, main_thread, FUTEX, 0, 8);
	put_time(main_thread, MS, 8999 * MS, told);
	put_time(loader, 8000 * MS, 1000 * MS, 5);
	made__finish(m);
	w = why(name);
	CHECK(w && !kprof_why_info(w)->by_step);
	tid = w ? kprof_why_info(w)->tid : 0;
	kprof_why_free(w);
	return tid;
}

static void without_steps(void)
{
	CHECK_EQ(chosen_of("waits", 1), 8);
	CHECK_EQ(chosen_of("works", 5), 7);
}

static void in_directory(void)
{
	scratch__make();
	asked_for();
	from_which_share_on();
	without_steps();
	kprof_capture_close(c);
	scratch__remove();
}

UNIT_MAIN(TEST(in_directory))
