// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/idle.c and device.c: tables of devices, and why one was idle. */
#include "device_fixture.h"

#include "kprof.h"
#include "unit.h"

static struct kprof_capture *c;
static struct kprof_result *r;

enum { LINEAR = 1, LOADER, PROFILER_STEP, LAUNCH, MALLOC, SYNC, ITEM };

/* The window is 1000 … 100000 ns. */
static void start(void)
{
	static const struct description descriptions[] = {
		{"aten::linear", "cpu_op"},
		{"enumerate(DataLoader)", "user_annotation"},
		{"ProfilerStep#2", "user_annotation"},
		{"cudaLaunchKernel", "cuda_runtime"},
		{"cudaMalloc", "cuda_runtime"},
		{"cudaDeviceSynchronize", "cuda_runtime"},
		{"aten::item", "cpu_op"},
		{0},
	};

	start_with("worker", descriptions);
}

static void launch(uint64_t start_ns, uint64_t correlation)
{
	fake_api(0, "cudaLaunchKernel", start_ns + 1, start_ns + 99, correlation);
	span(start_ns, start_ns + 100, LAUNCH);
}

static void kernel(uint64_t start_ns, uint64_t end_ns, uint64_t correlation)
{
	fake_activity(PID, KPROF_ACTIVITY_KERNEL, "_Z3addi", 7, start_ns, end_ns, correlation);
}

static void table(enum kprof_by by)
{
	fake_finish(100000);
	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	CHECK_EQ(kprof_result_new(c, by, KPROF_SORT_TOTAL, &r), 0);
	if (!r)
		abort();
}

static void done(void)
{
	kprof_result_free(r);
	kprof_capture_close(c);
}

static const struct kprof_row *row(const char *name)
{
	static const struct kprof_row none = {.category = ""};

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (!strcmp(kprof_result_row(r, i)->name, name))
			return kprof_result_row(r, i);
	printf("# no row %s; there are", name);
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		printf(" '%s'", kprof_result_row(r, i)->name);
	printf("\n");
	CHECK(!"a row of this name");
	return &none;
}

/* The gap 20000 … 50000 is what tests are about; it is filled around so that its parts are seen. */
static void around(uint64_t launch_ns)
{
	launch(1100, 1);
	kernel(1200, 20000, 1);
	kernel(50000, 100000, 2);
	fake_api(0, "cudaLaunchKernel", launch_ns + 1, launch_ns + 99, 2);
}

static void gaps_add_up(void)
{
	start();
	around(45000);
	span(22000, 24000, MALLOC);
	fake_begin(25000, 0, LINEAR);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	table(KPROF_BY_IDLE);
	/*
	 * 1000 … 1101 nothing was submitted yet; 45001 … 50000 and 1101 … 1200 the launches took.
	 */
	CHECK_EQ(kprof_result_self_total_ns(r), 200 + 30000);
	CHECK_EQ(row("launch latency")->total_ns, 99 + 4999);
	CHECK_EQ(row("launch latency")->calls, 2);
	CHECK_STR(row("launch latency")->category, "launch");
	CHECK_EQ(row("aten::linear")->total_ns, 25001);
	CHECK_STR(row("aten::linear")->category, "host-bound");
	CHECK_EQ(row("aten::linear")->calls, 1);
	CHECK_EQ(row("aten::linear")->pid, PID);
	CHECK_EQ(row("outside of operators")->total_ns, 101);
	CHECK(row("launch latency")->self_share > 0.16 && row("launch latency")->self_share < 0.17);
	done();
}

static void call_in_an_operator(void)
{
	start();
	around(45000);
	fake_begin(25000, 0, LINEAR);
	span(26000, 44000, MALLOC);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("cudaMalloc in aten::linear")->total_ns, 25001);
	done();
}

/* The thread waited for the device, which then had nothing more to do. */
static void waited(void)
{
	start();
	around(45000);
	fake_begin(2000, 0, ITEM);
	span(3000, 21000, SYNC);
	fake_end(22000, 0);
	fake_begin(30000, 0, LINEAR);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("cudaDeviceSynchronize in aten::item")->total_ns, 25001);
	CHECK_STR(row("cudaDeviceSynchronize in aten::item")->category, "sync-bound");
	done();
}

/* Then it waited for data for most of the gap: that is why. A step around it all says nothing. */
static void waited_then_for_data(void)
{
	start();
	around(45000);
	fake_begin(1900, 0, PROFILER_STEP);
	span(2000, 21000, SYNC);
	span(22000, 40000, LOADER);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("enumerate(DataLoader)")->total_ns, 25001);
	CHECK_STR(row("enumerate(DataLoader)")->category, "host-bound");
	done();
}

static void a_step_is_no_operator(void)
{
	start();
	around(45000);
	fake_begin(1900, 0, PROFILER_STEP);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("outside of operators")->total_ns, 101 + 25001);
	done();
}

static void no_part_of_the_host(void)
{
	start();
	launch(1100, 1);
	launch(1300, 2);
	kernel(1000, 20000, 1);   /* fills from the start */
	kernel(21000, 30000, 2);  /* launched long before */
	kernel(31000, 50000, 99); /* by nobody that was recorded */
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("work launched before")->total_ns, 1000);
	CHECK_EQ(row("launch not recorded")->total_ns, 1000);
	CHECK_EQ(row("no work submitted")->total_ns, 50000);
	CHECK_EQ(kprof_result_nr_rows(r), 3);
	done();
}

/* Two devices are idle at the same time, for the same thread. */
static void two_devices(void)
{
	start();
	around(45000);
	fake_activity(PID, KPROF_ACTIVITY_KERNEL, "k", 7, 1000, 30000, 3)->activity.device = 1;
	fake_activity(PID, KPROF_ACTIVITY_KERNEL, "k", 7, 50000, 100000, 2)->activity.device = 1;
	fake_begin(22000, 0, LINEAR);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	table(KPROF_BY_IDLE);
	for (size_t i = 0, nr = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *one = kprof_result_row(r, i);

		if (strcmp(one->name, "aten::linear"))
			continue;
		CHECK_EQ(one->device, nr);
		CHECK_EQ(one->total_ns, nr ? 15001 : 25001);
		nr++;
	}
	done();
}

static void streams_and_kernels(void)
{
	start();
	kernel(2000, 4000, 0);
	kernel(5000, 6000, 0);
	fake_activity(PID, KPROF_ACTIVITY_KERNEL, "_Z3addi", 9, 3000, 5500, 0);
	fake_activity(PID, KPROF_ACTIVITY_CUDA_SYNC, "Stream Sync", 7, 2000, 90000, 0);
	fake_activity(PID, KPROF_ACTIVITY_GPU_MEMSET, "Memset (Device)", 9, 99000, 101000, 0);
	table(KPROF_BY_STREAM);
	CHECK_EQ(kprof_result_nr_rows(r), 3);
	CHECK_EQ(row("42 GPU 0")->total_ns, 5000);
	CHECK_EQ(row("42 GPU 0")->idle_ns, 99000 - 5000);
	CHECK_EQ(row("42 GPU 0")->stream, UINT32_MAX);
	CHECK_EQ(row("42 GPU 0 stream 7")->total_ns, 3000);
	CHECK_EQ(row("42 GPU 0 stream 7")->calls, 2);
	CHECK_EQ(row("42 GPU 0 stream 9")->total_ns, 3500);
	CHECK_EQ(row("42 GPU 0 stream 9")->max_ns, 2500);
	done();
	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	CHECK_EQ(kprof_result_new(c, KPROF_BY_KERNEL, KPROF_SORT_TOTAL, &r), 0);
	CHECK_EQ(kprof_result_nr_rows(r), 2); /* waiting is not work */
	CHECK_EQ(row("add(int)")->calls, 3);
	CHECK_EQ(row("add(int)")->total_ns, 5500);
	CHECK_EQ(row("add(int)")->min_ns, 1000);
	CHECK_STR(row("Memset (Device)")->category, "gpu_memset");
	done();
}

static void copies(void)
{
	static struct store_attr bytes = {0, STORE_ATTR_U64, 4000};
	struct store_record *copy;

	start();
	bytes.key = fake_string("bytes");
	for (int i = 0; i < 2; i++) {
		copy = fake_activity(PID, KPROF_ACTIVITY_GPU_MEMCPY, "Memcpy HtoD", 7, 2000, 3000,
				     0);
		copy->attrs = &bytes;
		copy->nr_attrs = 1;
	}
	kernel(2000, 3000, 0);
	table(KPROF_BY_MEMCPY);
	CHECK_EQ(kprof_result_nr_rows(r), 1);
	CHECK_EQ(row("Memcpy HtoD")->bytes, 8000);
	CHECK_EQ(row("Memcpy HtoD")->total_ns, 2000);
	done();
}

static void calls(void)
{
	static struct store_attr error = {0, STORE_ATTR_I64, 2};

	start();
	error.key = fake_string("error");
	fake_args(2, &error, 1);
	launch(1100, 1);
	span(2000, 2300, LAUNCH); /* 2 */
	span(3000, 3100, MALLOC);
	fake_begin(4000, 0, LINEAR);
	span(4100, 4200, MALLOC);
	fake_end(5000, 0);
	/*
	 * Of a thread where no span was seen: the record alone tells of it, under another version's
	 * name.
	 */
	fake_api(1, "cudaLaunchKernel_v7000", 6000, 6050, 5)->attrs = &error;
	fake.records[fake.nr - 1].nr_attrs = 1;
	kernel(7000, 8000, 5);
	table(KPROF_BY_API);
	CHECK_EQ(kprof_result_nr_rows(r), 2);
	CHECK_EQ(row("cudaLaunchKernel")->calls, 3);
	CHECK_EQ(row("cudaLaunchKernel")->errors, 2);
	CHECK_EQ(row("cudaLaunchKernel")->total_ns, 100 + 300 + 50);
	CHECK_EQ(row("cudaMalloc")->calls, 2);
	CHECK_EQ(row("cudaMalloc")->errors, 0);
	CHECK_STR(row("cudaMalloc")->category, "cuda_runtime");
	done();
}

/* A call without the flag may have failed, unless the record of the same function knows. */
static void results_of_calls(void)
{
	static struct store_attr error = {0, STORE_ATTR_I64, 2};

	start();
	error.key = fake_string("error");
	for (uint64_t i = 0; i < 5; i++) {
		fake_begin(2000 + i * 1000, 0, MALLOC);
		fake_end_flags(2500 + i * 1000, 0, i ? 0 : KPROF_EVENT_RESULT);
	}
	/* The 2nd has none; of the 3rd it failed, of the 4th not; of the 5th it is the driver's. */
	fake_api(0, "cudaMalloc_v3020", 4100, 4200, 7)->attrs = &error;
	fake.records[fake.nr - 1].nr_attrs = 1;
	fake_api(0, "cuMemAlloc_v2", 4120, 4180, 7);
	fake_api(0, "cudaMalloc_v3020", 5100, 5200, 8);
	fake_api(0, "cuMemAlloc_v2", 6120, 6180, 9);
	table(KPROF_BY_API);
	CHECK_EQ(row("cudaMalloc")->calls, 5);
	CHECK_EQ(row("cudaMalloc")->errors, 1);
	CHECK_EQ(row("cudaMalloc")->unknown_results, 2);
	done();
}

#define CALL_READ 0
#define CALL_FUTEX 202

/* Woken by this thread of the process; UINT32_MAX: by nobody who was seen. */
static void wait(uint32_t thread, uint64_t start_ns, uint64_t wake_ns, uint64_t end_ns,
		 uint32_t call, uint32_t flags, uint32_t waker)
{
	struct store_record *r = fake_add(STORE_WAIT);

	r->wait.start_ns = start_ns;
	r->wait.wake_ns = wake_ns;
	r->wait.end_ns = end_ns;
	r->wait.thread = thread;
	r->wait.call = call + 1;
	r->wait.flags = flags;
	if (waker == UINT32_MAX)
		return;
	r->wait.waker_pid = PID;
	r->wait.waker_tid = PID + waker;
}

static void with_waits(void)
{
	start();
	fake_meta("waits", "{}");
}

/* The main thread waited for the worker, which was waiting for a disk. */
static void waited_for_who_waited(void)
{
	with_waits();
	around(45000);
	span(45000, 45100, LAUNCH);
	wait(0, 21000, 44000, 44100, CALL_FUTEX, STORE_WAIT_SLEEPING, 1);
	wait(1, 15000, 43000, 43500, CALL_READ, STORE_WAIT_BLOCKED | STORE_WAIT_IO, UINT32_MAX);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("outside of operators, waiting: futex, for worker, waiting: disk")->total_ns,
		 25001);
	/* the first gap is one in which it did not wait */
	CHECK_EQ(row("outside of operators")->total_ns, 101);
	done();
}

/* Who did not wait most of the time had something else to do; a wait may be for a CPU. */
static void waited_in_part(void)
{
	with_waits();
	around(45000);
	fake_begin(20500, 0, LINEAR);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	wait(0, 21000, 30000, 30100, CALL_FUTEX, STORE_WAIT_SLEEPING, 1);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("aten::linear")->total_ns, 25001);
	done();
	with_waits();
	around(45000);
	fake_begin(20500, 0, LINEAR);
	span(45000, 45100, LAUNCH);
	fake_end(46000, 0);
	wait(0, 21000, 22000, 40000, CALL_FUTEX, STORE_WAIT_SLEEPING, 1);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("aten::linear, waiting: run queue")->total_ns, 25001);
	done();
}

/* Two threads that wake each other are not followed for ever. */
static void waited_for_each_other(void)
{
	with_waits();
	around(45000);
	span(45000, 45100, LAUNCH);
	wait(0, 20000, 44000, 44000, CALL_READ, STORE_WAIT_SLEEPING, 1);
	wait(1, 20000, 44000, 44000, CALL_READ, STORE_WAIT_SLEEPING, 0);
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("outside of operators, waiting: file read, for worker, waiting: file read, "
		     "for main, waiting: file read, for worker, waiting: file read, for main")
			 ->total_ns,
		 25001);
	done();
}

/* One text more than are kept is told as "waiting"; those that are kept are told further on. */
static void waited_for_many_things(void)
{
	enum { KEPT = 1024 };
	static char names[KEPT + 1][8];

	with_waits();
	kernel(1200, 1220, 1);
	for (uint64_t i = 0; i < KEPT + 2; i++) {
		uint64_t at = 1220 + i * 90;
		char *name = names[i % (KEPT + 1)];
		uint32_t file;

		snprintf(name, sizeof(names[0]), "f%u", (unsigned int)(i % (KEPT + 1)));
		file = fake_string(name);
		wait(0, at + 1, at + 55, at + 55, CALL_READ, STORE_WAIT_SLEEPING, UINT32_MAX);
		fake.records[fake.nr - 1].wait.object = file;
		fake_api(0, "cudaLaunchKernel", at + 60, at + 65, i + 2);
		span(at + 59, at + 66, LAUNCH);
		kernel(at + 70, at + 90, i + 2);
	}
	table(KPROF_BY_IDLE);
	CHECK_EQ(row("outside of operators, waiting: f0 read")->calls, 2);
	CHECK_EQ(row("outside of operators, waiting: f1023 read")->calls, 1);
	CHECK_EQ(row("outside of operators, waiting")->calls, 1);
	done();
}

static void nothing_of_a_device(void)
{
	start();
	span(2000, 2100, LINEAR);
	fake_finish(100000);
	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	for (int by = KPROF_BY_KERNEL; by <= KPROF_BY_IDLE; by++) {
		CHECK_EQ(kprof_result_new(c, (enum kprof_by)by, KPROF_SORT_SELF, &r), 0);
		CHECK_EQ(kprof_result_nr_rows(r), 0);
		kprof_result_free(r);
	}
	CHECK_EQ(kprof_result_new(c, (enum kprof_by)(KPROF_BY_FLOPS + 1), KPROF_SORT_SELF, &r),
		 -EINVAL);
	kprof_capture_close(c);
}

UNIT_MAIN(TEST(gaps_add_up), TEST(call_in_an_operator), TEST(waited), TEST(waited_then_for_data),
	  TEST(a_step_is_no_operator), TEST(no_part_of_the_host), TEST(two_devices),
	  TEST(streams_and_kernels), TEST(copies), TEST(calls), TEST(results_of_calls),
	  TEST(waited_for_who_waited), TEST(waited_in_part), TEST(waited_for_each_other),
	  TEST(waited_for_many_things), TEST(nothing_of_a_device))
