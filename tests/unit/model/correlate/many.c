// SPDX-License-Identifier: BSD-2-Clause
/* user/model/correlate/: more records than are kept in memory, in an order that is no order. */
#include "device_fixture.h"

#include "model/correlate/correlate.h"
#include "unit.h"

#define NR 110000u /* launches; each array of them is larger than BULK_MEMORY_BYTES */
#define STEP_NS 1000u
#define STREAMS 5u

/* A permutation of the numbers below NR. */
static uint32_t shuffled(uint32_t i)
{
	return (uint32_t)((uint64_t)i * 180001 % NR);
}

static uint64_t call_ns(uint32_t launch)
{
	return 2000 + (uint64_t)launch * STEP_NS;
}

/* Half of the kernels are reported before any call, the others after all calls. */
static void kernels(uint32_t name, uint32_t from, uint32_t to)
{
	for (uint32_t i = from; i < to; i++) {
		struct store_record *r = fake_add(STORE_ACTIVITY);
		uint32_t launch = shuffled(i);

		r->activity.pid = PID;
		r->activity.type = KPROF_ACTIVITY_KERNEL;
		r->activity.name = name;
		r->activity.stream = 7 + launch % STREAMS;
		r->activity.start_ns = call_ns(launch) + 600;
		r->activity.end_ns = call_ns(launch) + 600 + STEP_NS;
		r->activity.correlation = launch + 1;
	}
}

static void calls(uint32_t name)
{
	for (uint32_t i = 0; i < NR; i++) {
		struct store_record *r = fake_add(STORE_API);
		uint32_t launch = shuffled(NR - 1 - i);

		r->api.thread = launch & 1;
		r->api.type = KPROF_ACTIVITY_CUDA_RUNTIME;
		r->api.name = name;
		r->api.start_ns = call_ns(launch);
		r->api.end_ns = call_ns(launch) + 500;
		r->api.correlation = launch + 1;
	}
}

static void check_links(const struct correlate *c)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < NR; i++) {
		const struct corr_act *act = correlate__act(c, i);
		const struct corr_call *call = correlate__call(c, act->call);

		wrong += act->start_ns != call_ns(shuffled(i)) + 600 || !call ||
			 call->correlation != shuffled(i) + 1 || call->first != i ||
			 call->start_ns != call_ns(shuffled(i)) || act->flags;
	}
	CHECK_EQ(wrong, 0);
}

static void check_rows(const struct correlate *c)
{
	const struct corr_row *row;
	uint32_t wrong = 0, seen = 0;

	for (uint32_t i = 0; (row = correlate__row(c, i)); i++) {
		for (uint32_t k = 0; k < row->nr; k++) {
			const struct corr_act *act =
				correlate__act(c, correlate__of_row(c, row, k));

			/* Each stream has every fifth launch, in their order. */
			wrong += act->start_ns != call_ns(k * STREAMS + row->stream - 7) + 600;
			seen++;
		}
		CHECK_EQ(row->nr_lanes, 1);
	}
	CHECK_EQ(wrong, 0);
	CHECK_EQ(seen, NR);
}

static void links_all(void)
{
	static const struct description none = {0};
	struct kprof_capture *t;
	struct correlate *c;
	struct bulk acts;
	uint32_t wrong = 0, kernel, launch;

	start_with("backward", &none);
	kernel = fake_string("k");
	launch = fake_string("cudaLaunchKernel");
	kernels(kernel, 0, NR / 2);
	calls(launch);
	kernels(kernel, NR / 2, NR);
	fake_finish(call_ns(NR) + 10 * STEP_NS);
	CHECK_EQ(kprof_capture_open("fake", &t), 0);
	CHECK_EQ(correlate__new(t, 0, &c), 0);
	if (!c)
		abort();
	CHECK_EQ(correlate__counts(c)->linked, NR);
	CHECK_EQ(correlate__counts(c)->calls_drawn, NR);
	CHECK_EQ(correlate__counts(c)->before_launch, 0);
	check_links(c);
	check_rows(c);
	CHECK_EQ(correlate__of_device(c, PID, 0, &acts), 0);
	CHECK_EQ(acts.nr, NR);
	for (uint32_t i = 0; i < acts.nr; i++)
		wrong += shuffled(*(const uint32_t *)bulk__at(&acts, i)) != i;
	CHECK_EQ(wrong, 0);
	bulk__free(&acts);
	correlate__free(c);
	kprof_capture_close(t);
}

UNIT_MAIN(TEST(links_all))
