// SPDX-License-Identifier: BSD-2-Clause
/* user/model/correlate/: which call launched what, in which operator, and where it is drawn. */
#include "device_fixture.h"

#include "catalog/runtime.h"
#include "model/correlate/correlate.h"
#include "unit.h"

#define MAX_SPANS 32

static struct kprof_capture *t;
static struct correlate *c;

enum { LINEAR = 1, ADD, STEP, LAUNCH, DRIVER, COPY, SYNC, GRAPH };

static void start(void)
{
	static const struct description descriptions[] = {
		{"aten::linear", "cpu_op"},
		{"aten::add", "cpu_op"},
		{"my range", "user_annotation"},
		{"cudaLaunchKernel", "cuda_runtime"},
		{"cuLaunchKernelEx", "cuda_driver"},
		{"cudaMemcpyAsync", "cuda_runtime"},
		{"cudaDeviceSynchronize", "cuda_runtime"},
		{"cudaGraphLaunch", "cuda_runtime"},
		{0},
	};

	start_with("backward", descriptions);
}

static void kernel(uint32_t stream, uint64_t start_ns, uint64_t end_ns, uint64_t correlation)
{
	fake_activity(PID, KPROF_ACTIVITY_KERNEL, "k", stream, start_ns, end_ns, correlation);
}

static void open_all(pid_t pid)
{
	fake_finish(100000);
	CHECK_EQ(kprof_capture_open("fake", &t), 0);
	CHECK_EQ(correlate__new(t, pid, &c), 0);
	if (!c)
		abort();
}

static void close_all(void)
{
	correlate__free(c);
	kprof_capture_close(t);
}

static const struct corr_call *launch_of(uint32_t act)
{
	return correlate__call(c, correlate__act(c, act)->call);
}

struct seen {
	uint64_t id;
	size_t nr;
	uint64_t primary; /* correlation; 0: none */
};

static struct seen seen[MAX_SPANS + 1];

static int see(void *ctx, const struct tl_span *s)
{
	const uint32_t *calls = correlate__of_span(c, s, &seen[s->id].nr);

	for (size_t i = 0; i < seen[s->id].nr; i++) {
		const struct corr_call *call = correlate__call(c, calls[i]);

		CHECK_EQ(call->span, s->id);
		if (call->flags & CORR_CALL_PRIMARY)
			seen[s->id].primary = call->correlation;
	}
	return 0;
}

/* What each span got, by its id. */
static void see_spans(void)
{
	memset(seen, 0, sizeof(seen));
	correlate__rewind(c);
	CHECK_EQ(timeline__spans(t, see, NULL), 0);
}

static void operator_call_kernel(void)
{
	start();
	kernel(7, 5000, 6000, 11); /* in front of its call */
	fake_api(0, "cudaLaunchKernel_v7000", 2110, 2190, 11);
	fake_begin(2000, 0, LINEAR); /* 1 */
	fake_begin(2050, 0, ADD);    /* 2 */
	span(2100, 2200, LAUNCH);    /* 3 */
	fake_end(2300, 0);
	fake_end(2400, 0);
	open_all(0);
	see_spans();
	CHECK_EQ(seen[3].nr, 1);
	CHECK_EQ(seen[3].primary, 11);
	CHECK_EQ(seen[2].nr, 0);
	CHECK(launch_of(0));
	CHECK_EQ(launch_of(0)->op, 2);
	CHECK_EQ(launch_of(0)->first, 0);
	CHECK(corr_call_drawn(launch_of(0)) && !corr_call_own_slice(launch_of(0)));
	CHECK_EQ(correlate__counts(c)->activities, 1);
	CHECK_EQ(correlate__counts(c)->linked, 1);
	CHECK_EQ(correlate__counts(c)->without_op, 0);
	CHECK_EQ(correlate__counts(c)->calls_matched, 1);
	close_all();
}

static void no_operator_no_launch(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2110, 2190, 1);
	kernel(7, 3000, 3100, 1);
	kernel(7, 1100, 1200, 99); /* launched before the window */
	kernel(7, 4000, 4100, 0);  /* has no number at all */
	span(2100, 2200, LAUNCH);
	open_all(0);
	CHECK_EQ(correlate__counts(c)->linked, 1);
	CHECK_EQ(correlate__counts(c)->without_op, 1);
	CHECK_EQ(correlate__counts(c)->without_call, 2);
	CHECK(!launch_of(1) && !launch_of(2));
	CHECK(!(correlate__act(c, 1)->flags & CORR_ACT_REUSED));
	close_all();
}

/* A clock's error is counted, with how much it was at most. */
static void kernel_before_its_launch(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2110, 2190, 1);
	fake_api(0, "cudaLaunchKernel", 3110, 3190, 2);
	kernel(7, 2050, 2150, 1);
	kernel(7, 3100, 3300, 2);
	span(2100, 2200, LAUNCH);
	span(3100, 3200, LAUNCH);
	open_all(0);
	CHECK_EQ(correlate__counts(c)->linked, 2);
	CHECK_EQ(correlate__counts(c)->before_launch, 2);
	CHECK_EQ(correlate__counts(c)->before_launch_max_ns, 60);
	close_all();
}

/* After 2^32 launches the numbers begin anew. */
static void correlation_used_again(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 50010, 50090, 7);
	fake_api(0, "cudaLaunchKernel", 2010, 2090, 7);
	fake_api(0, "cudaLaunchKernel", 3000000010, 3000000090, 8);
	kernel(7, 60000, 60100, 7);
	kernel(7, 2500, 2600, 7);
	kernel(7, 49999, 50000, 7); /* of the first, though the second is near */
	kernel(7, 5000, 5100, 8);   /* three seconds before: not its launch */
	span(2000, 2100, LAUNCH);
	span(50000, 50100, LAUNCH);
	fake_finish(4000000000);
	open_all(0);
	CHECK_EQ(launch_of(0)->start_ns, 50010);
	CHECK_EQ(launch_of(1)->start_ns, 2010);
	CHECK_EQ(launch_of(2)->start_ns, 2010);
	CHECK(!launch_of(3));
	CHECK(correlate__act(c, 3)->flags & CORR_ACT_REUSED);
	CHECK_EQ(launch_of(0)->again, 1);
	CHECK_EQ(launch_of(1)->again, 0);
	close_all();
}

/* One launch, many kernels; they share its correlation, some run at the same time on one stream. */
static void graph(void)
{
	uint32_t at, nr = 0;

	start();
	kernel(7, 5000, 6000, 3);
	kernel(7, 5500, 6500, 3);
	kernel(7, 6000, 7000, 3);
	kernel(7, 6500, 7000, 3);
	fake_api(0, "cudaGraphLaunch", 2110, 2190, 3);
	span(2100, 2200, GRAPH);
	open_all(0);
	for (at = launch_of(0)->first; at != CORRELATE_NONE; at = correlate__act(c, at)->next)
		nr++;
	CHECK_EQ(nr, 4);
	CHECK_EQ(correlate__row(c, 0)->nr_lanes, 2);
	CHECK_EQ(correlate__act(c, 0)->lane, 0);
	CHECK_EQ(correlate__act(c, 1)->lane, 1);
	CHECK_EQ(correlate__act(c, 2)->lane, 0);
	CHECK_EQ(correlate__act(c, 3)->lane, 1);
	close_all();
}

/* The tool interface numbers runtime and driver alike, or each by itself. */
static void driver_inside_runtime(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2110, 2190, 3);
	fake_api(0, "cuLaunchKernelEx", 2120, 2180, 3);
	kernel(7, 5000, 6000, 3);
	fake_api(0, "cudaLaunchKernel", 3110, 3190, 4);
	fake_api(0, "cuLaunchKernelEx", 3120, 3180, 5);
	kernel(7, 7000, 8000, 5);
	span(2100, 2200, LAUNCH); /* 1 */
	span(3100, 3200, LAUNCH); /* 2 */
	open_all(0);
	see_spans();
	CHECK_EQ(seen[1].nr, 1);
	CHECK_EQ(seen[1].primary, 3);
	CHECK_EQ(launch_of(0)->start_ns, 2110);
	/* Both are the span's; the one that launched something speaks for it. */
	CHECK_EQ(seen[2].nr, 2);
	CHECK_EQ(seen[2].primary, 5);
	CHECK_EQ(correlate__counts(c)->calls_drawn, 0);
	close_all();
}

/*
 * A library with a runtime of its own: only the driver's call is seen, inside the runtime's record.
 */
static void embedded_runtime(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2100, 2300, 3);
	kernel(7, 5000, 6000, 3);
	fake_api(0, "cudaMemcpyAsync", 3100, 3300, 4); /* … and one that has no launching span */
	fake_activity(PID, KPROF_ACTIVITY_GPU_MEMCPY, "Memcpy HtoD", 7, 6000, 7000, 4);
	span(2150, 2250, DRIVER); /* 1 */
	span(3150, 3250, SYNC);   /* 2: no copy */
	open_all(0);
	see_spans();
	CHECK_EQ(seen[1].primary, 3);
	CHECK_EQ(seen[2].nr, 0);
	CHECK(corr_call_own_slice(launch_of(1)));
	CHECK_EQ(correlate__counts(c)->calls_drawn, 1);
	close_all();
}

/*
 * A runtime's span and a driver's inside it, with a record for the runtime only: it is the outer
 * one's.
 */
static void record_between_two_spans(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2110, 2290, 3);
	kernel(7, 5000, 6000, 3);
	fake_begin(2100, 0, LAUNCH); /* 1 */
	span(2150, 2250, DRIVER);    /* 2 */
	fake_end(2300, 0);
	open_all(0);
	see_spans();
	CHECK_EQ(seen[1].primary, 3);
	CHECK_EQ(seen[2].nr, 0);
	close_all();
}

/* A span whose end was not seen lasts until the thread's next event: records may cross its end. */
static void records_tell_that_spans_had_ended(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2300, 2400, 3); /* around the driver's call: its own */
	kernel(7, 5000, 6000, 3);
	fake_api(0, "cudaGetLastError", 2450, 2470, 4); /* a later call, not seen by probes */
	fake_api(0, "cudaLaunchKernel", 3110, 3190, 5); /* inside its span */
	kernel(7, 7000, 8000, 5);
	fake_api(0, "cudaLaunchKernel", 3250, 3350, 6); /* begins later inside the same */
	kernel(7, 9000, 9900, 6);
	fake_begin(2000, 0, LINEAR); /* 1 */
	fake_begin(2100, 0, ADD);    /* 2: over by 2300, closed by the next */
	fake_end_flags(2350, 0, KPROF_EVENT_CLOSED);
	fake_begin(2350, 0, DRIVER); /* 3 */
	fake_end_flags(2600, 0, KPROF_EVENT_CLOSED);
	fake_begin(3100, 0, LAUNCH); /* 4 */
	fake_end_flags(3300, 0, KPROF_EVENT_CLOSED);
	span(3300, 3320, DRIVER); /* 5 */
	fake_end(4000, 0);
	open_all(0);
	see_spans();
	CHECK_EQ(seen[3].nr, 1);
	CHECK_EQ(seen[3].primary, 3);
	CHECK_EQ(launch_of(0)->op, 1);
	CHECK_EQ(seen[4].nr, 1);
	CHECK_EQ(seen[4].primary, 5);
	CHECK_EQ(seen[5].primary, 6);
	CHECK_EQ(launch_of(2)->op, 1);
	CHECK_EQ(correlate__counts(c)->calls_crossing, 0);
	close_all();
}

/* Spans whose probes were given up end at that time, whatever the thread does. */
static void spans_given_up(void)
{
	start();
	fake_api(0, "cudaMemcpyAsync", 2110, 2500, 3); /* in the middle of its call */
	fake_activity(PID, KPROF_ACTIVITY_GPU_MEMCPY, "Memcpy DtoH", 7, 5000, 6000, 3);
	fake_api(0, "cudaLaunchKernel", 3110, 3500, 4); /* of a call without a probe */
	kernel(7, 7000, 8000, 4);
	fake_begin(2000, 0, LINEAR); /* 1 */
	fake_begin(2100, 0, COPY);   /* 2 */
	fake_end_flags(2300, 0, KPROF_EVENT_CLOSED);
	fake_end_flags(2301, 0, KPROF_EVENT_CLOSED);
	fake_begin(3000, 0, ADD); /* 3 */
	fake_end_flags(3300, 0, KPROF_EVENT_CLOSED);
	open_all(0);
	see_spans();
	CHECK_EQ(seen[2].primary, 3);
	CHECK_EQ(launch_of(0)->op, 1);
	/* It would cross the end of the span as that is drawn. */
	CHECK_EQ(launch_of(1)->op, 3);
	CHECK(!corr_call_drawn(launch_of(1)));
	CHECK_EQ(correlate__counts(c)->calls_crossing, 1);
	close_all();
}

/* All that is inside its own record is its own; the one that launched something speaks for it. */
static void records_inside_a_closed_span(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2110, 2190, 4);
	fake_api(0, "cuLaunchKernelEx", 2120, 2180, 5);
	kernel(7, 7000, 8000, 5);
	fake_api(0, "cudaGetLastError", 2250, 2260, 6);
	fake_api(0, "cudaLaunchKernel", 90110, 90190, 7); /* of the last call, drawn to the end */
	kernel(7, 91000, 92000, 7);
	fake_api(0, "cudaGetLastError", 90250, 90260, 8);
	fake_begin(2100, 0, LAUNCH); /* 1 */
	fake_end_flags(2300, 0, KPROF_EVENT_CLOSED);
	fake_begin(90100, 0, LAUNCH); /* 2 */
	open_all(0);
	see_spans();
	CHECK_EQ(seen[1].nr, 2);
	CHECK_EQ(seen[1].primary, 5);
	CHECK_EQ(seen[2].nr, 1);
	CHECK_EQ(seen[2].primary, 7);
	close_all();
}

/* … however many records there are before the call in question. */
static void many_records_around_a_closed_span(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2000, 2900, 3);
	kernel(7, 5000, 6000, 3);
	for (uint64_t i = 0; i < 8; i++)
		fake_api(0, "cuModuleGetFunction", 2010 + 10 * i, 2015 + 10 * i, 10 + i);
	fake_begin(2800, 0, DRIVER); /* 1 */
	fake_end_flags(3000, 0, KPROF_EVENT_CLOSED);
	open_all(0);
	see_spans();
	CHECK_EQ(seen[1].primary, 3);
	CHECK_EQ(correlate__counts(c)->calls_crossing, 0);
	close_all();
}

static void calls_without_spans(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2100, 2200, 1); /* inside the operator: drawn */
	fake_api(0, "cudaLaunchKernel", 2900, 3100, 2); /* across its end: counted */
	fake_api(0, "cudaLaunchKernel", 2500, 2600, 3); /* launched nothing */
	fake_api(1, "cudaLaunchKernel", 2500, 2600, 4); /* a thread without spans */
	fake_api(0, "cudaLaunchKernel", 3400, 3600, 5); /* around a whole operator, ends with it */
	for (uint64_t i = 1; i <= 5; i++)
		if (i != 3)
			kernel(7, 5000 * i, 5000 * i + 10, i);
	span(2000, 3000, LINEAR); /* 1 */
	span(3500, 3600, ADD);    /* 2 */
	open_all(0);
	CHECK(corr_call_own_slice(launch_of(0)));
	CHECK_EQ(launch_of(0)->op, 1);
	CHECK(!corr_call_drawn(launch_of(1)));
	CHECK(corr_call_own_slice(launch_of(2)));
	CHECK_EQ(launch_of(2)->op, 0);
	CHECK(corr_call_own_slice(launch_of(3)));
	CHECK_EQ(launch_of(3)->op, 0);
	CHECK_EQ(correlate__counts(c)->calls, 5);
	CHECK_EQ(correlate__counts(c)->calls_drawn, 3);
	CHECK_EQ(correlate__counts(c)->calls_crossing, 1);
	CHECK_EQ(correlate__counts(c)->without_op, 2);
	close_all();
}

/* The converted clock of a device can be a little off: the record begins before its span. */
static void record_a_little_early(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2095, 2190, 1);
	kernel(7, 5000, 5100, 1);
	fake_begin(2000, 0, LINEAR); /* 1 */
	span(2100, 2200, LAUNCH);    /* 2 */
	fake_end(2300, 0);
	open_all(0);
	see_spans();
	CHECK_EQ(seen[2].primary, 1);
	close_all();
}

static void rows_and_waits(void)
{
	struct store_record *r;

	start();
	kernel(7, 5000, 6000, 1);
	kernel(9, 5000, 6000, 2);
	fake_activity(PID, KPROF_ACTIVITY_CUDA_SYNC, "Stream Sync", 7, 5500, 6000, 3);
	fake_activity(PID, KPROF_ACTIVITY_OVERHEAD, "Buffer Flush", 0, 100, 200, 0);
	r = fake_activity(PID, KPROF_ACTIVITY_KERNEL, "k", 7, 5000, 6000, 4);
	r->activity.device = 1;
	fake_activity(PID + 10, KPROF_ACTIVITY_KERNEL, "k", 7, 5000, 6000, 1);
	open_all(0);
	for (uint32_t i = 0; i < 6; i++)
		CHECK_EQ(correlate__act(c, i)->row, i);
	CHECK(correlate__row(c, 2)->waits);
	CHECK_EQ(correlate__row(c, 3)->device, UINT32_MAX);
	CHECK_EQ(correlate__row(c, 4)->device, 1);
	CHECK_EQ(correlate__row(c, 5)->pid, PID + 10);
	CHECK(!correlate__row(c, 6));
	close_all();
}

/* Two processes use the same numbers, and one alone can be asked for. */
static void two_processes(void)
{
	start();
	fake_thread(2, PID + 10, PID + 10, "other");
	fake_api(0, "cudaLaunchKernel", 2110, 2190, 1);
	fake_api(2, "cudaLaunchKernel", 2510, 2590, 1);
	kernel(7, 5000, 6000, 1);
	fake_activity(PID + 10, KPROF_ACTIVITY_KERNEL, "k", 7, 5000, 6000, 1);
	open_all(0);
	CHECK_EQ(launch_of(0)->thread, 0);
	CHECK_EQ(launch_of(1)->thread, 2);
	CHECK_EQ(launch_of(1)->again, 0);
	correlate__free(c);
	CHECK_EQ(correlate__new(t, PID + 10, &c), 0);
	CHECK_EQ(correlate__counts(c)->activities, 1);
	CHECK_EQ(launch_of(0)->thread, 2);
	CHECK(!correlate__act(c, 1));
	close_all();
}

/* What a device did for a range, stream by stream; the outer range has what the inner one has. */
static void annotations(void)
{
	const struct corr_annotation *a;

	start();
	fake_api(0, "cudaLaunchKernel", 2110, 2190, 1);
	fake_api(0, "cudaLaunchKernel", 2310, 2390, 2);
	fake_api(0, "cudaLaunchKernel", 2510, 2590, 3);
	kernel(7, 5000, 6000, 1);
	kernel(7, 6100, 7000, 2);
	kernel(9, 5500, 8000, 3);
	fake_begin(2000, 0, STEP); /* 1 */
	span(2100, 2200, LAUNCH);  /* 2 */
	fake_begin(2250, 0, STEP); /* 3 */
	span(2300, 2400, LAUNCH);  /* 4 */
	fake_end(2450, 0);
	span(2500, 2600, LAUNCH); /* 5 */
	fake_end(2700, 0);
	open_all(0);
	/* By row, then start, the longer first. */
	a = correlate__annotation(c, 0);
	CHECK_EQ(a->span, 1);
	CHECK_EQ(a->start_ns, 5000);
	CHECK_EQ(a->end_ns, 7000);
	a = correlate__annotation(c, 1);
	CHECK_EQ(a->span, 3);
	CHECK_EQ(a->start_ns, 6100);
	CHECK_EQ(a->end_ns, 7000);
	CHECK_EQ(a->lane, 0);
	a = correlate__annotation(c, 2);
	CHECK_EQ(a->span, 1);
	CHECK_EQ(a->row, 1);
	CHECK_EQ(a->end_ns, 8000);
	CHECK(!correlate__annotation(c, 3));
	CHECK_EQ(correlate__act(c, 1)->lane, 0);
	CHECK_EQ(launch_of(1)->op, 3);
	close_all();
}

/* Ranges of two threads on one stream cross: they do not nest, so they get lanes. */
static void annotations_that_cross(void)
{
	start();
	fake_api(0, "cudaLaunchKernel", 2110, 2190, 1);
	fake_api(0, "cudaLaunchKernel", 2310, 2390, 2);
	fake_api(1, "cudaLaunchKernel", 2110, 2190, 3);
	fake_api(1, "cudaLaunchKernel", 2310, 2390, 4);
	kernel(7, 5000, 5100, 1);
	kernel(7, 5100, 5200, 3);
	kernel(7, 5200, 5300, 2);
	kernel(7, 5300, 5400, 4);
	fake_begin(2000, 0, STEP);
	fake_begin(2000, 1, STEP);
	fake_end(3000, 0);
	fake_end(3000, 1);
	open_all(0);
	CHECK_EQ(correlate__annotation(c, 0)->lane, 0);
	CHECK_EQ(correlate__annotation(c, 1)->lane, 1);
	CHECK_EQ(correlate__act(c, 3)->lane, 0); /* work stays on the stream's own row */
	close_all();
}

static void too_many_at_once(void)
{
	start();
	for (uint64_t i = 0; i < CORRELATE_MAX_LANES + 3; i++)
		kernel(7, 5000 + i, 9000, 0);
	open_all(0);
	CHECK_EQ(correlate__row(c, 0)->nr_lanes, CORRELATE_MAX_LANES);
	CHECK_EQ(correlate__counts(c)->no_lane, 3);
	CHECK(correlate__act(c, CORRELATE_MAX_LANES)->flags & CORR_ACT_NO_LANE);
	close_all();
}

static void nothing_of_a_device(void)
{
	start();
	span(2000, 2100, LINEAR);
	open_all(0);
	CHECK(!correlate__any(c));
	CHECK(!correlate__row(c, 0));
	CHECK_EQ(correlate__type(c, timeline__description(t, LAUNCH - 1)),
		 KPROF_ACTIVITY_CUDA_RUNTIME);
	CHECK(correlate__is_call(c, timeline__description(t, DRIVER - 1)));
	CHECK(correlate__is_op(c, timeline__description(t, STEP - 1)));
	CHECK(!correlate__is_op(c, timeline__description(t, DRIVER - 1)));
	close_all();
}

static void names_of_calls(void)
{
	static const struct {
		const char *name;
		size_t plain;
		bool sync;
	} known[] = {
		{"cudaLaunchKernel", 16, false},
		{"cudaLaunchKernel_v7000", 16, false},
		{"cudaLaunchKernel_ptsz", 16, false},
		{"cuMemcpyHtoD_v2_ptds", 12, true},
		{"cuMemcpyHtoDAsync_v2", 17, false},
		{"cudaMemcpy_v3020", 10, true},
		{"cudaMemcpyAsync_spt", 15, false},
		{"cudaStreamSynchronize_ptsz", 21, true},
		{"clFinish", 8, true},
		{"__cudaPushCallConfiguration", 27, false},
		{"_v2", 3, false},
		{"a_v", 3, false},
		{"", 0, false},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		CHECK_EQ(catalog_call_stem(known[i].name), known[i].plain);
		CHECK_EQ(correlate_is_sync(known[i].name), known[i].sync);
	}
}

static void errors_of_the_file(void)
{
	start();
	kernel(7, 5000, 6000, 1);
	fake.fail_at = fake.nr;
	kernel(7, 5000, 6000, 1);
	fake.fail_at = 0;
	fake_finish(100000);
	CHECK_EQ(kprof_capture_open("fake", &t), 0);
	fake.fail_at = fake.nr - 1;
	CHECK_EQ(correlate__new(t, 0, &c), -EIO);
	CHECK(!c);
	kprof_capture_close(t);
}

UNIT_MAIN(TEST(operator_call_kernel), TEST(no_operator_no_launch), TEST(kernel_before_its_launch),
	  TEST(correlation_used_again), TEST(graph), TEST(driver_inside_runtime),
	  TEST(embedded_runtime), TEST(record_between_two_spans),
	  TEST(records_tell_that_spans_had_ended), TEST(spans_given_up),
	  TEST(records_inside_a_closed_span), TEST(many_records_around_a_closed_span),
	  TEST(calls_without_spans), TEST(record_a_little_early), TEST(rows_and_waits),
	  TEST(two_processes), TEST(annotations), TEST(annotations_that_cross),
	  TEST(too_many_at_once), TEST(nothing_of_a_device), TEST(names_of_calls),
	  TEST(errors_of_the_file))
