// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/steps.c, step_parts.c: which steps are outliers, and what differs in them. */
#include "fake_store.h"
#include "kprof/steps.h"
#include "unit.h"

#define NR 9
#define SLOW 4
#define EVERY 1000

static struct kprof_capture *c;
static struct kprof_result *r;
static uint32_t step_what, mm, add, launch, pipes, batch[NR];

static uint64_t start_of(unsigned int i)
{
	return 10000 + (uint64_t)i * EVERY;
}

static const struct kprof_step_info *info(size_t i)
{
	return kprof_result_row(r, i)->in_step;
}

static void describe(void)
{
	static char names[NR][16];

	fake_reset();
	fake_meta("waits", "{}");
	fake_clock(1000, 1000);
	fake_source(0, "operators");
	step_what = fake_what_of("train_step", "", "user_annotation", 0);
	mm = fake_what_of("aten::mm", "", "cpu_op", 0);
	add = fake_what_of("aten::add", "", "cpu_op", 0);
	launch = fake_what_of("cudaLaunchKernel", "", "cuda_runtime", 0);
	for (unsigned int i = 0; i < NR; i++) {
		snprintf(names[i], sizeof(names[i]), "batch %u", i);
		batch[i] = fake_what_of(names[i], "", "user_annotation", 0);
	}
	pipes = fake_string("pipe");
	fake_thread(0, 1, 1, "main")->thread.start_ns = 1000;
	fake_thread(1, 1, 2, "worker")->thread.start_ns = 1000;
}

/* A step of 100 ns and some; in the slow one aten::mm takes 300 more, the rest 50 more. */
static void step(unsigned int i)
{
	bool slow = i == SLOW;
	uint64_t at = start_of(i), mm_ns = slow ? 340 : 40, rest_ns = (slow ? 60 : 10) + i;

	fake_begin(at, 0, step_what);
	fake_begin(at + 1, 0, batch[i]);
	fake_begin(at + 2, 0, mm);
	fake_end(at + 2 + mm_ns, 0);
	fake_end(at + 12 + mm_ns, 0); /* the batch: 11 ns of its own */
	fake_begin(at + 20 + mm_ns, 0, launch);
	fake_end(at + 30 + mm_ns, 0);
	fake_begin(at + 30 + mm_ns, 0, add);
	fake_end(at + 50 + mm_ns, 0);
	fake_end(at + 50 + mm_ns + rest_ns, 0);
}

static void wait(uint32_t thread, uint64_t start_ns, uint64_t end_ns)
{
	struct store_record *w = fake_add(STORE_WAIT);

	w->wait.start_ns = start_ns;
	w->wait.wake_ns = w->wait.end_ns = end_ns;
	w->wait.thread = thread;
	w->wait.flags = STORE_WAIT_SLEEPING;
	w->wait.call = 1; /* read */
	w->wait.object = pipes;
}

static void open_result(void)
{
	fake_finish(start_of(NR) + EVERY);
	c = fake_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_STEP, KPROF_SORT_SELF, &r), 0);
	if (!r)
		abort();
}

static void close_result(void)
{
	kprof_result_free(r);
	kprof_capture_close(c);
	r = NULL;
}

static bool differs(size_t at, enum kprof_step_what what, const char *name, uint64_t ns,
		    uint64_t median_ns)
{
	const struct kprof_step_difference *d = &info(SLOW)->differences[at];

	return at < info(SLOW)->nr_differences && d->what == what && !strcmp(d->name, name) &&
	       d->ns == ns && d->median_ns == median_ns;
}

static void outlier(void)
{
	describe();
	for (unsigned int i = 0; i < NR; i++)
		step(i);
	for (unsigned int i = 0; i < NR; i++) {
		fake_activity(1, KPROF_ACTIVITY_KERNEL, "gemm", 7, start_of(i) + 5,
			      start_of(i) + (i == SLOW ? 205 : 15), i + 1);
		wait(0, start_of(i) + 6, start_of(i) + (i == SLOW ? 106 : 8));
		wait(1, start_of(i), start_of(i) + 90);
	}
	open_result();
	CHECK_EQ(kprof_result_nr_rows(r), NR);
	/* 100 … 108 without the slow one's 454: the median is 105, the distances from it 0 … 5 */
	for (unsigned int i = 0; i < NR; i++) {
		CHECK_EQ(info(i)->median_ns, 105);
		CHECK_EQ(info(i)->mad_ns, 3);
		CHECK_EQ(info(i)->outlier, i == SLOW);
		CHECK_EQ(info(i)->wait_ns, i == SLOW ? 100 : 2);
		CHECK(info(i)->waits_recorded);
		CHECK_EQ(info(i)->nr_differences == 0, i != SLOW);
		CHECK_EQ(kprof_result_row(r, i)->device_ns, i == SLOW ? 200 : 10);
		CHECK_EQ(kprof_result_row(r, i)->calls, 2);
	}
	CHECK(info(SLOW)->of_median > 4.32 && info(SLOW)->of_median < 4.33);
	/* Of the rest: 1 before the batch, 8 after it, rest_ns. Its median is that of step 5. */
	CHECK_EQ(info(SLOW)->nr_differences, 4);
	CHECK(differs(0, KPROF_STEP_OPERATOR, "aten::mm", 340, 40));
	CHECK(differs(1, KPROF_STEP_DEVICE, "gemm", 200, 10));
	CHECK(differs(2, KPROF_STEP_WAIT, "pipe read", 100, 2));
	CHECK(differs(3, KPROF_STEP_REST, "", 73, 24));
	close_result();
}

/* An annotation's number is no name; a name that most steps lack has the median 0. */
static void missing(void)
{
	describe();
	for (unsigned int i = 0; i < NR; i++) {
		uint64_t at = start_of(i);

		fake_begin(at, 0, step_what);
		fake_begin(at, 0, batch[i]);
		fake_end(at + (i == SLOW ? 250 : 90), 0);
		if (i == SLOW || i == 1) {
			fake_begin(at + 250, 0, add);
			fake_end(at + (i == SLOW ? 400 : 251), 0);
		}
		fake_end(at + (i == 1 ? 251 : i == SLOW ? 400 : 100), 0);
	}
	open_result();
	CHECK(info(SLOW)->outlier);
	CHECK(info(1)->outlier);
	CHECK_EQ(info(SLOW)->nr_differences, 2);
	CHECK(differs(0, KPROF_STEP_ANNOTATION, "batch N", 250, 90));
	CHECK(differs(1, KPROF_STEP_OPERATOR, "aten::add", 150, 0));
	close_result();
}

/* Of a few steps, none is an outlier; nor where they differ by hardly anything. */
static void none(void)
{
	describe();
	for (unsigned int i = SLOW - 3; i <= SLOW; i++)
		step(i);
	open_result();
	for (size_t i = 0; i < 4; i++)
		CHECK(!info(i)->outlier);
	close_result();
	describe();
	for (unsigned int i = 0; i < NR; i++) {
		fake_begin(start_of(i), 0, step_what);
		fake_end(start_of(i) + 100 + (i == SLOW ? 10 : 0), 0);
	}
	open_result();
	CHECK_EQ(info(SLOW)->mad_ns, 0);
	CHECK(!info(SLOW)->outlier);
	close_result();
}

/* What lasts for the whole recording is no work for each step; what it fills is counted right. */
static void through_all(void)
{
	describe();
	for (unsigned int i = 0; i < NR; i++)
		step(i);
	fake_activity(1, KPROF_ACTIVITY_KERNEL, "endless", 7, start_of(0) + 50,
		      start_of(NR - 1) + 60, 1);
	open_result();
	CHECK_EQ(kprof_result_row(r, 0)->device_ns, 50);
	for (size_t i = 1; i < NR - 1; i++)
		CHECK_EQ(kprof_result_row(r, i)->device_ns, kprof_result_row(r, i)->total_ns);
	CHECK_EQ(kprof_result_row(r, NR - 1)->device_ns, 60);
	close_result();
}

UNIT_MAIN(TEST(outlier), TEST(missing), TEST(none), TEST(through_all))
