// SPDX-License-Identifier: BSD-2-Clause
/* user/model/timeline/waits.c: what waits are for, waits as samples, and hostile ones. */
#include "fake_store.h"
#include "unit.h"

#include "model/timeline/timeline.h"
#include "util/util.h"

static uint32_t nr_frames, nr_modules;

static uint32_t module(const char *path, uint32_t kind)
{
	uint32_t p = fake_string(path);
	struct store_record *r = fake_add(STORE_MODULE);

	r->module.id = ++nr_modules;
	r->module.path = p;
	r->module.kind = kind;
	return nr_modules;
}

/* A stack of one more frame; its number is the frame's. */
static uint32_t stack(uint32_t parent, uint32_t of, uint32_t kind, const char *function)
{
	static struct store_line lines[64];
	struct store_record *r;

	lines[nr_frames].function = fake_string(function);
	r = fake_frame(nr_frames + 1, kind, &lines[nr_frames]);
	nr_frames++;

	r->frame.module = of;
	fake_stack(nr_frames, parent, nr_frames);
	return nr_frames;
}

static struct store_record *wait(uint64_t start_ns, uint64_t wake_ns, uint64_t end_ns,
				 uint32_t flags, uint32_t call, uint32_t of)
{
	struct store_record *r = fake_add(STORE_WAIT);

	r->wait.start_ns = start_ns;
	r->wait.wake_ns = wake_ns;
	r->wait.end_ns = end_ns;
	r->wait.flags = flags;
	r->wait.call = call + 1;
	r->wait.stack = of;
	return r;
}

static void begin(void)
{
	fake_reset();
	nr_frames = nr_modules = 0;
	fake_meta("waits", "{}");
	fake_thread(0, 1, 1, "main");
}

static const char *expected[32];
static size_t nr_expected, nr_seen;
static uint64_t blocked_ns, runnable_ns;

static int check_reason(void *ctx, const struct store_record *r)
{
	CHECK_STR(timeline__wait_reason(ctx, r), expected[nr_seen]);
	nr_seen++;
	return 0;
}

#define NONE UINT32_MAX /* + 1: no system call */

static void add(const char *reason, uint32_t flags, uint32_t call, uint32_t of, const char *object)
{
	uint32_t id = fake_string(object);

	wait(100, 200, 300, flags, call, of)->wait.object = id;
	expected[nr_expected++] = reason;
}

static void reasons(void)
{
	uint32_t program, libc, kernel, cuda, root, mutex, fault;
	struct kprof_capture *t;

	begin();
	nr_expected = nr_seen = 0;
	program = module("/usr/bin/python3.12", STORE_MODULE_FILE);
	libc = module("/lib/x86_64-linux-gnu/libc.so.6", STORE_MODULE_FILE);
	kernel = module("[kernel]", STORE_MODULE_KERNEL);
	cuda = module("/usr/lib/libcudart.so.12", STORE_MODULE_FILE);
	root = stack(0, program, STORE_FRAME_NATIVE, "main");
	mutex = stack(root, libc, STORE_FRAME_NATIVE, "pthread_mutex_lock");
	fault = stack(root, kernel, STORE_FRAME_KERNEL, "asm_exc_page_fault");
	fault = stack(fault, kernel, STORE_FRAME_KERNEL, "__schedule");

	add("run queue", STORE_WAIT_PREEMPTED, 202, mutex, "");
	add("stopped", STORE_WAIT_STOPPED, 202, mutex, "");
	add("futex", STORE_WAIT_SLEEPING, 202, mutex, "");
	add("futex", STORE_WAIT_SLEEPING, 202, 0, "");
	add("GIL", STORE_WAIT_SLEEPING | STORE_WAIT_GIL, 202, mutex, "");
	add("sleep", STORE_WAIT_SLEEPING, 230, root, "");
	add("pipe read", STORE_WAIT_SLEEPING, 0, root, "pipe");
	add("file write", STORE_WAIT_SLEEPING, 1, root, "");
	add("socket read", STORE_WAIT_SLEEPING, 45, root, "");
	add("/dev/nvidia0 ioctl", STORE_WAIT_SLEEPING, 16, root, "/dev/nvidia0");
	add("disk", STORE_WAIT_BLOCKED | STORE_WAIT_IO, 0, root, "file");
	add("page fault", STORE_WAIT_BLOCKED | STORE_WAIT_IO, NONE, fault, "");
	add("disk", STORE_WAIT_BLOCKED | STORE_WAIT_IO, NONE, root, "");
	add("kernel", STORE_WAIT_BLOCKED, NONE, root, "");
	add("mremap", STORE_WAIT_BLOCKED, 25, root, "");
	add("system call 9999", STORE_WAIT_BLOCKED, 9999, root, "");
	/* the function that takes the lock, not one further out */
	add("GIL", STORE_WAIT_SLEEPING, 202,
	    stack(stack(root, program, STORE_FRAME_NATIVE, "take_gil"), libc, STORE_FRAME_NATIVE,
		  "pthread_cond_timedwait"),
	    "");
	add("futex", STORE_WAIT_SLEEPING, 202,
	    stack(stack(stack(root, program, STORE_FRAME_NATIVE, "take_gil"), program,
			STORE_FRAME_NATIVE, "other"),
		  libc, STORE_FRAME_NATIVE, "pthread_cond_wait"),
	    "");
	add("allocator lock", STORE_WAIT_SLEEPING, 202,
	    stack(stack(root, libc, STORE_FRAME_NATIVE, "malloc"), libc, STORE_FRAME_NATIVE,
		  "__lll_lock_wait_private"),
	    "");
	add("Python lock", STORE_WAIT_SLEEPING, 202,
	    stack(stack(root, program, STORE_FRAME_NATIVE, "PyThread_acquire_lock_timed"), libc,
		  STORE_FRAME_NATIVE, "sem_clockwait"),
	    "");
	/* inside of a runtime's call, however it waits; but only in the runtime's library */
	add("cudaStreamSynchronize", STORE_WAIT_SLEEPING, 7,
	    stack(stack(root, cuda, STORE_FRAME_NATIVE, "cudaStreamSynchronize"), libc,
		  STORE_FRAME_NATIVE, "poll"),
	    "");
	add("poll", STORE_WAIT_SLEEPING, 7,
	    stack(stack(root, program, STORE_FRAME_NATIVE, "cudaStreamSynchronize"), libc,
		  STORE_FRAME_NATIVE, "poll"),
	    "");
	fake_finish(1000);
	t = fake_timeline();
	CHECK_EQ(timeline__waits(t, 0, check_reason, t), 0);
	CHECK_EQ(nr_seen, nr_expected);
	nr_seen = 0; /* the same again: what was found out is kept */
	CHECK_EQ(timeline__waits(t, 1, check_reason, t), 0);
	CHECK_EQ(nr_seen, nr_expected);
	CHECK_EQ(timeline__waits(t, 2, check_reason, t), 0);
	CHECK_EQ(nr_seen, nr_expected);
	kprof_capture_close(t);
}

static int add_sample(void *ctx, const struct store_record *r)
{
	CHECK_EQ(r->type, STORE_SAMPLE);
	CHECK_EQ(r->sample.flags & KPROF_SAMPLE_STATE, KPROF_SAMPLE_OFF_CPU);
	if (!strcmp(r->sample.reason, "run queue"))
		runnable_ns += r->sample.weight_ns;
	else
		blocked_ns += r->sample.weight_ns;
	return 0;
}

static void as_samples(void)
{
	struct kprof_capture *t;

	begin();
	blocked_ns = runnable_ns = 0;
	wait(100, 150, 200, STORE_WAIT_SLEEPING, 202, 0);
	wait(300, 300, 310, STORE_WAIT_PREEMPTED, NONE, 0);
	wait(400, 400, 400, STORE_WAIT_SLEEPING, 202, 0);
	/* from a file: times in no order */
	wait(500, 100, 501, STORE_WAIT_SLEEPING, 202, 0);
	wait(600, UINT64_MAX, 603, STORE_WAIT_SLEEPING, 202, 0);
	wait(UINT64_MAX, 5, 0, STORE_WAIT_SLEEPING, 202, 0);
	fake_finish(1000);
	t = fake_timeline();
	CHECK_EQ(timeline__samples(t, 0, add_sample, t), 0); /* it has none */
	CHECK_EQ(blocked_ns + runnable_ns, 0);
	timeline__show_waits(t, true);
	CHECK_EQ(timeline__samples(t, 0, add_sample, t), 0);
	CHECK_EQ(blocked_ns, 50 + 3);
	CHECK_EQ(runnable_ns, 50 + 10 + 1);
	kprof_capture_close(t);
}

static void threads_by_number(void)
{
	struct kprof_capture *t;

	begin();
	fake_thread(1, 1, 5, "first")->thread.start_ns = 100;
	fake_thread(2, 1, 5, "second")->thread.start_ns = 500;
	/* in no order, as a file may have it; and neighbours in number */
	fake_thread(3, 1, 5, "between")->thread.start_ns = 300;
	fake_thread(4, 1, 4, "other")->thread.start_ns = 700;
	fake_thread(5, 1, 7, "other")->thread.start_ns = 10;
	fake_finish(1000);
	t = fake_timeline();
	CHECK_EQ(timeline__thread_at(t, 1, 5, 200)->index, 1);
	CHECK_EQ(timeline__thread_at(t, 1, 5, 299)->index, 1);
	CHECK_EQ(timeline__thread_at(t, 1, 5, 300)->index, 3);
	CHECK_EQ(timeline__thread_at(t, 1, 5, 500)->index, 2);
	CHECK_EQ(timeline__thread_at(t, 1, 5, UINT64_MAX)->index, 2);
	CHECK_EQ(timeline__thread_at(t, 1, 4, 50)->index, 4);
	CHECK_EQ(timeline__thread_at(t, 1, 5, 50)->index, 1);
	CHECK_EQ(timeline__thread_at(t, 1, 1, 50)->index, 0);
	CHECK(!timeline__thread_at(t, 1, 6, 500) && !timeline__thread_at(t, 2, 5, 500));
	CHECK(!timeline__thread_at(t, -1, -1, 500));
	kprof_capture_close(t);
}

static uint64_t times[16][3];

static int note_times(void *ctx, const struct store_record *r)
{
	times[nr_seen][0] = r->wait.start_ns;
	times[nr_seen][1] = r->wait.wake_ns;
	times[nr_seen++][2] = r->wait.end_ns;
	return 0;
}

static bool was(size_t i, uint64_t start_ns, uint64_t wake_ns, uint64_t end_ns)
{
	return times[i][0] == start_ns && times[i][1] == wake_ns && times[i][2] == end_ns;
}

static struct kprof_capture *with_spans(const char *meta)
{
	uint32_t op;

	fake_reset();
	fake_meta("waits", meta);
	fake_thread(0, 1, 1, "main");
	fake_thread(1, 1, 2, "other");
	op = fake_what("aten::add");
	wait(100, 150, 200, STORE_WAIT_SLEEPING, 202, 0); /* within a span: it stays */
	wait(300, 350, 400, STORE_WAIT_SLEEPING, 202, 0); /* over too late */
	wait(500, 510, 600, STORE_WAIT_SLEEPING, 202, 0); /* begun too early */
	wait(700, 710, 800, STORE_WAIT_SLEEPING, 202, 0); /* spans at both of its ends, not in it */
	wait(300, 350, 400, STORE_WAIT_SLEEPING, 202, 0)->wait.thread = 1; /* another thread's */
	fake_begin(90, 0, op);
	fake_end(210, 0);
	fake_begin(380, 0, op);
	fake_begin(390, 0, op);
	fake_end(395, 0);
	fake_end(450, 0);
	fake_begin(490, 0, op);
	fake_end(505, 0);
	fake_begin(515, 0, op);
	fake_end(520, 0);
	fake_begin(690, 0, op);
	fake_end(700, 0);
	fake_begin(800, 0, op);
	fake_end(810, 0);
	fake_finish(1000);
	return fake_timeline();
}

/* The kernel did not report an end of a wait: what its thread did meanwhile tells that. */
static void estimates(void)
{
	struct kprof_capture *t = with_spans("{\"switches_not_seen\":2}");

	for (int again = 0; again < 2; again++) {
		nr_seen = 0;
		CHECK_EQ(timeline__waits(t, 0, note_times, t), 0);
		CHECK_EQ(nr_seen, 5);
		CHECK(was(0, 100, 150, 200) && was(1, 300, 350, 380) && was(2, 520, 520, 600));
		CHECK(was(3, 700, 710, 800) && was(4, 300, 350, 400));
	}
	kprof_capture_close(t);
	/* without estimates, all is as it was recorded */
	t = with_spans("{\"switches_not_seen\":0}");
	nr_seen = 0;
	CHECK_EQ(timeline__waits(t, 0, note_times, t), 0);
	CHECK(was(1, 300, 350, 400) && was(2, 500, 510, 600));
	kprof_capture_close(t);
}

UNIT_MAIN(TEST(reasons), TEST(as_samples), TEST(threads_by_number), TEST(estimates))
