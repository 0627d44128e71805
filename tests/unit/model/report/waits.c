// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/waits.c: the table of waits, of all of a recording and of a part. */
#include "fake_store.h"
#include "unit.h"

#define READ 1 /* number of the system call + 1 */

static struct kprof_capture *c;
static struct kprof_result *r;

static void wait(uint64_t start_ns, uint64_t end_ns, uint32_t thread, uint32_t object,
		 uint32_t waker)
{
	struct store_record *w = fake_add(STORE_WAIT);

	w->wait.start_ns = start_ns;
	w->wait.wake_ns = end_ns - 10;
	w->wait.end_ns = end_ns;
	w->wait.thread = thread;
	w->wait.flags = STORE_WAIT_SLEEPING;
	w->wait.call = READ;
	w->wait.object = object;
	w->wait.waker_pid = waker ? 1 : 0;
	w->wait.waker_tid = waker;
}

/* Threads 0 and 1 have one name; the window is 1000 … 2000 ns. */
static void begin(void)
{
	fake_reset();
	fake_meta("waits", "{}");
	fake_clock(1000, 1000);
	fake_thread(0, 1, 1, "worker")->thread.start_ns = 1000;
	fake_thread(1, 1, 2, "worker")->thread.start_ns = 1000;
	fake_thread(2, 1, 3, "main")->thread.start_ns = 1000;
}

static void table(const struct kprof_range *range)
{
	kprof_result_free(r);
	CHECK_EQ(kprof_capture_select(c, range), 0);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_WAIT, KPROF_SORT_TOTAL, &r), 0);
	if (!r)
		abort();
}

static const struct kprof_row *row(const char *name, const char *category)
{
	static const struct kprof_row none = {.caller = ""};

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (!strcmp(kprof_result_row(r, i)->name, name) &&
		    !strcmp(kprof_result_row(r, i)->category, category))
			return kprof_result_row(r, i);
	return &none;
}

/* A file may have the same text many times: rows are told by what they show. */
static void rows(void)
{
	begin();
	for (uint64_t i = 0; i < 6; i++)
		wait(1100 + 100 * i, 1130 + 100 * i, i % 3 == 2 ? 2 : i % 3, fake_string("pipe"),
		     2);
	fake_finish(2000);
	c = fake_capture();
	table(NULL);
	CHECK_EQ(kprof_result_nr_rows(r), 2);
	CHECK_EQ(row("pipe read", "1 worker")->calls, 4);
	CHECK_EQ(row("pipe read", "1 worker")->total_ns, 120);
	CHECK_EQ(row("pipe read", "1 worker")->runnable_ns, 40);
	CHECK_EQ(row("pipe read", "1 main")->calls, 2);
	CHECK(row("pipe read", "1 main")->caller_share == 1);
	kprof_capture_close(c);
}

/* Of a part, a wait counts as a call where it begins, and its length is told where it is whole. */
static void part(void)
{
	const struct kprof_range range = {.sz = sizeof(range),
					  .has_from = true,
					  .from_ns = 200,
					  .has_to = true,
					  .to_ns = 500};
	struct store_record *time;
	uint32_t pipe;

	begin();
	pipe = fake_string("pipe");
	wait(1150, 1250, 2, pipe, 0);
	wait(1300, 1340, 2, pipe, 0);
	wait(1495, 1700, 2, pipe, 0);
	time = fake_add(STORE_THREAD_TIME);
	time->thread_time.thread = 2;
	time->thread_time.start_ns = 1000;
	time->thread_time.end_ns = 2000;
	time->thread_time.on_ns = 155;
	time->thread_time.blocked_ns = 845;
	time->thread_time.switches = 13;
	time->thread_time.told = 3;
	fake_finish(2000);
	c = fake_capture();
	table(NULL);
	CHECK_EQ(row("pipe read", "1 main")->calls, 3);
	CHECK_EQ(row("pipe read", "1 main")->total_ns, 345);
	CHECK_EQ(row("[shorter waits]", "1 main")->calls, 10);
	CHECK_EQ(row("[shorter waits]", "1 main")->total_ns, 500);
	table(&range);
	CHECK_EQ(kprof_result_nr_rows(r), 1); /* when shorter ones were is not known */
	CHECK_EQ(row("pipe read", "1 main")->calls, 2);
	CHECK_EQ(row("pipe read", "1 main")->total_ns, 50 + 40 + 5);
	CHECK_EQ(row("pipe read", "1 main")->runnable_ns, 20);
	CHECK_EQ(row("pipe read", "1 main")->min_ns, 40);
	CHECK_EQ(row("pipe read", "1 main")->max_ns, 40);
	kprof_result_free(r);
	kprof_capture_close(c);
}

UNIT_MAIN(TEST(rows), TEST(part))
