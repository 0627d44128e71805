// SPDX-License-Identifier: BSD-2-Clause
/* A device's clock on ours: every rate and offset, noisy readings, a clock that is set. */
#include "unit.h"

#include "gpu/base/clock.c" /* of the agent: not in the library */

#define SECOND 1000000000ull

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/* A device that runs by ppm faster than we, and started elsewhere. */
static uint64_t device_at(uint64_t mono, double ppm, uint64_t offset)
{
	return mono + (uint64_t)(int64_t)((double)mono * ppm * 1e-6) + offset;
}

static void without_pairs(void)
{
	struct gpu_clock c = {0};

	CHECK(!gpu_clock__ready(&c));
	CHECK_EQ(gpu_clock__to_mono(&c, 42), 42);
}

static void one_pair_shifts(void)
{
	struct gpu_clock c = {0};

	gpu_clock__add(&c, &(struct gpu_clock_pair){1000 * SECOND, 7 * SECOND, 40});
	CHECK(gpu_clock__ready(&c));
	CHECK_EQ(gpu_clock__to_mono(&c, 7 * SECOND), 1000 * SECOND);
	CHECK_EQ(gpu_clock__to_mono(&c, 7 * SECOND + 123), 1000 * SECOND + 123);
	CHECK_EQ(gpu_clock__to_mono(&c, 6 * SECOND), 999 * SECOND);
}

/* Pairs that are off by up to half their width; conversion is as good as they are. */
static void drift(double ppm, uint64_t offset, uint64_t width)
{
	struct gpu_clock c = {0};
	unsigned int seed = 1;
	uint64_t worst = 0;

	for (uint64_t t = 100; t < 400; t++) {
		uint64_t mono = t * SECOND;
		int64_t off =
			(int64_t)(rand_r(&seed) % (unsigned int)(width + 1)) - (int64_t)width / 2;

		gpu_clock__add(&c, &(struct gpu_clock_pair){mono + (uint64_t)off,
							    device_at(mono, ppm, offset), width});
		if (t < 103) /* the rate takes two pairs */
			continue;
		for (uint64_t after = 0; after <= SECOND; after += SECOND / 8) {
			uint64_t d = device_at(mono + after, ppm, offset);
			uint64_t error = distance(gpu_clock__to_mono(&c, d), mono + after);

			worst = error > worst ? error : worst;
		}
	}
	CHECK(worst <= 2 * width + 2);
	if (worst > 2 * width + 2)
		printf("# at %g ppm: %llu ns off\n", ppm, (unsigned long long)worst);
}

static void drifts(void)
{
	static const double ppm[] = {0, 0.6, -19, 50, -200, 500};

	for (size_t i = 0; i < sizeof(ppm) / sizeof(ppm[0]); i++) {
		drift(ppm[i], 12345678901234ull, 50);
		drift(ppm[i], (uint64_t)-5000000000ll, 400);
		drift(ppm[i], 0, 3000);
	}
}

/* What follows on the device follows after conversion, across every new pair, and lasts as long. */
static void never_backwards(void)
{
	struct gpu_clock c = {0};
	unsigned int seed = 7;
	uint64_t before = 0;

	for (uint64_t t = 10; t < 80; t++) {
		uint64_t mono = t * SECOND, noise = (uint64_t)(rand_r(&seed) % 2000);

		gpu_clock__add(&c, &(struct gpu_clock_pair){mono + noise - 1000,
							    device_at(mono, 30, 999), 2000});
		for (uint64_t i = 0; i < 1000; i++) {
			uint64_t d = device_at(mono, 30, 999) + i * (SECOND / 1000);
			uint64_t m = gpu_clock__to_mono(&c, d);

			if (m <= before) {
				CHECK(m > before);
				return;
			}
			before = m;
		}
	}
}

/* An event that ran before the last pairs were read is converted as if they were not there. */
static void old_times_stay(void)
{
	struct gpu_clock c = {0};
	uint64_t d = device_at(12 * SECOND + 5, -40, 77), then;

	for (uint64_t t = 10; t < 13; t++)
		gpu_clock__add(&c, &(struct gpu_clock_pair){t * SECOND,
							    device_at(t * SECOND, -40, 77), 30});
	then = gpu_clock__to_mono(&c, d);
	for (uint64_t t = 13; t < 30; t++)
		gpu_clock__add(&c, &(struct gpu_clock_pair){t * SECOND,
							    device_at(t * SECOND, -40, 77), 30});
	CHECK_EQ(gpu_clock__to_mono(&c, d), then);
	/* Longer ago than pieces are kept: still near, by the oldest. */
	for (uint64_t t = 30; t < 30 + 2 * GPU_CLOCK_PIECES; t++)
		gpu_clock__add(&c, &(struct gpu_clock_pair){t * SECOND,
							    device_at(t * SECOND, -40, 77), 30});
	CHECK(distance(gpu_clock__to_mono(&c, d), then) < 200);
}

/* Wide pairs close together say nothing of the rate. */
static void rate_needs_distance(void)
{
	struct gpu_clock c = {0};

	gpu_clock__add(&c, &(struct gpu_clock_pair){SECOND, SECOND, 5000});
	gpu_clock__add(&c, &(struct gpu_clock_pair){SECOND + 102000, SECOND + 100000, 5000});
	CHECK(c.rate == 0);
	CHECK_EQ(gpu_clock__to_mono(&c, 2 * SECOND), 2 * SECOND);
}

static void a_clock_is_set(void)
{
	struct gpu_clock c = {0};

	for (uint64_t t = 1; t < 4; t++)
		gpu_clock__add(&c, &(struct gpu_clock_pair){t * SECOND, t * SECOND, 30});
	for (uint64_t t = 4; t < 8; t++)
		gpu_clock__add(&c, &(struct gpu_clock_pair){t * SECOND, (t + 3600) * SECOND, 30});
	CHECK_EQ(gpu_clock__to_mono(&c, 3607 * SECOND + 9), 7 * SECOND + 9);
	/* Backwards: passed over; the caller starts another clock. */
	gpu_clock__add(&c, &(struct gpu_clock_pair){9 * SECOND, 9 * SECOND, 30});
	CHECK_EQ(gpu_clock__to_mono(&c, 3607 * SECOND + 9), 7 * SECOND + 9);
}

static bool ours(void *ctx, uint64_t *device_ns)
{
	int *calls = ctx;

	if (++*calls == 6)
		return false;
	*device_ns = gpu_now_ns() + SECOND;
	return true;
}

static void tightest_of_tries(void)
{
	struct gpu_clock_pair p = {0};
	int calls = 0;

	CHECK(gpu_clock__tightest(ours, &calls, 5, &p));
	CHECK_EQ(calls, 5);
	/* The reading lies within what the pair leaves open. */
	CHECK(distance(p.device_ns - SECOND, p.mono_ns) <= p.width_ns / 2 + 1);
	CHECK(!gpu_clock__tightest(ours, &calls, 5, &p));
}

UNIT_MAIN(TEST(without_pairs), TEST(one_pair_shifts), TEST(drifts), TEST(never_backwards),
	  TEST(old_times_stay), TEST(rate_needs_distance), TEST(a_clock_is_set),
	  TEST(tightest_of_tries))
