// SPDX-License-Identifier: BSD-2-Clause
/* The OpenCL layer on devices with clocks of their own: commands lie where they were. */
#include "opencl_fixture.h"

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* Soon after boot: nothing says then which of the two a device has that shows their time. */
static bool two_are_one(void)
{
	return fake.clock == CLOCK_MONOTONIC &&
	       distance(gpu_clock_ns(CLOCK_MONOTONIC), gpu_clock_ns(CLOCK_MONOTONIC_RAW)) < 100000;
}

/*
 * Commands on a device with this clock lie where they were: between call and completion. While the
 * rate is not known the device's clock runs away from ours, the further the longer this test has to
 * wait for a CPU.
 */
static void on_one_clock(enum ocl_clock_source source, uint64_t open_ns)
{
	uint64_t began_ns = gpu_now_ns();
	ocl_queue queue = new_queue(0);
	struct ocl_device_object *d = ocl_queue_object(queue)->device;

	open_session(~0ull);
	fake.held = true;
	for (int i = 0; i < 50; i++) {
		uint64_t before = gpu_now_ns(), after, tolerance_ns;
		const struct kprof_agent_activity *a;

		CHECK_EQ(launch(queue, "k", NULL), 0);
		fake_complete(OCL_COMPLETE);
		after = gpu_now_ns();
		tolerance_ns = open_ns + (uint64_t)((double)(after - began_ns) * fake.ppm * 1e-6);
		a = activity((uint32_t)i);
		CHECK(a != NULL);
		if (!a)
			return;
		CHECK(a->queued_ns + tolerance_ns >= before);
		CHECK(a->start_ns + tolerance_ns >= a->queued_ns);
		CHECK(a->start_ns <= after + tolerance_ns);
		CHECK(distance(a->end_ns - a->start_ns, 5000) <= 5);
		if (i % 16 == 0)
			read_clocks(); /* as each second */
	}
	CHECK(d->clock.source == source || (source == OCL_CLOCK_HOST && two_are_one()));
	gpu_opencl.stop();
}

static void device_on_our_clock(void)
{
	cl = fake_opencl(CLOCK_MONOTONIC, false);
	on_one_clock(OCL_CLOCK_HOST, 0);
	CHECK_EQ(fake_shm.clock, KPROF_AGENT_CLOCK_MONOTONIC);
	CHECK_EQ(fake_count(KPROF_AGENT_CLOCK), 0);
}

/* What reading two clocks leaves open, on this machine. */
static uint64_t width_ns(void)
{
	struct gpu_clock_pair pair = {0};

	CHECK(gpu_clock__tightest(read_host, (void *)&host_ids[HOST_REALTIME], PAIR_TRIES, &pair));
	return pair.width_ns;
}

static void device_on_another_clock_of_the_host(void)
{
	cl = fake_opencl(CLOCK_REALTIME, false);
	on_one_clock(OCL_CLOCK_HOST, 1000 + 4 * width_ns());
	CHECK_EQ(fake_shm.clock, KPROF_AGENT_CLOCK_CONVERTED);
	CHECK(fake_count(KPROF_AGENT_CLOCK) > 0);
	CHECK(fake_at(KPROF_AGENT_CLOCK, 0)->clock.device_ns >
	      fake_at(KPROF_AGENT_CLOCK, 0)->clock.mono_ns);
}

static void device_with_a_timer(void)
{
	cl = fake_opencl(CLOCK_MONOTONIC, true);
	fake.ppm = 80;
	fake.offset = (uint64_t)-123456789;
	on_one_clock(OCL_CLOCK_TIMER, 2000 + 4 * width_ns());
	CHECK_EQ(fake_shm.clock, KPROF_AGENT_CLOCK_CONVERTED);
	CHECK(fake_count(KPROF_AGENT_CLOCK) > 0);
}

/* Nothing but the calls themselves says where it stands: as good as they are short. */
static void device_with_a_strange_clock(void)
{
	cl = fake_opencl(CLOCK_MONOTONIC, false);
	fake.offset = 99999999999;
	on_one_clock(OCL_CLOCK_BRACKET, 1000000000);
	CHECK_EQ(fake_shm.clock, KPROF_AGENT_CLOCK_CONVERTED);
}

UNIT_MAIN(TEST(device_on_our_clock), TEST(device_on_another_clock_of_the_host),
	  TEST(device_with_a_timer), TEST(device_with_a_strange_clock))
