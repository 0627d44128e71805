/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: CUPTI's clock. Its own is CLOCK_REALTIME, from which it can be made to
 * lie apart and to drift; a client may register another, to which the device's times are then
 * converted.
 */
#include <stdlib.h>
#include <time.h>

#include "cupti.h"

static cupti_timestamp_fn registered;
static bool same; /* as CLOCK_MONOTONIC: nothing is to be converted */
static struct pair {
	uint64_t mono_ns, other;
} first;

static uint64_t mono(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t real(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Of many readings the one with the least time around it. */
static struct pair tightest(cupti_timestamp_fn fn)
{
	struct pair best = {0, 0};
	uint64_t width = UINT64_MAX;

	for (int i = 0; i < 20; i++) {
		uint64_t a = mono(), other = fn(), b = mono();

		if (b - a < width) {
			width = b - a;
			best.mono_ns = a + (b - a) / 2;
			best.other = other;
		}
	}
	return best;
}

/* As a tool that came before us may have left it: in the processor's ticks. */
static uint64_t ticks(void)
{
	return __builtin_ia32_rdtsc();
}

static void use(cupti_timestamp_fn fn)
{
	same = true;
	for (int i = 0; i < 8 && same; i++) {
		uint64_t a = mono(), other = fn(), b = mono();

		same = a <= other && other <= b;
	}
	first = tightest(fn);
	registered = fn;
}

static void begin(void)
{
	static bool begun;

	if (begun)
		return;
	begun = true;
	first = tightest(real);
	if (cupti_settings.taken)
		use(ticks);
}

static uint64_t own_time(uint64_t mono_ns)
{
	int64_t since = (int64_t)(mono_ns - first.mono_ns);

	return first.other + (uint64_t)(since + cupti_settings.offset_ns +
					since / 1000 * cupti_settings.drift_ppb / 1000000);
}

uint64_t cupti_time(uint64_t mono_ns)
{
	struct pair now;
	double rate;

	begin();
	if (!registered)
		return own_time(mono_ns);
	if (same)
		return mono_ns;
	now = tightest(registered);
	rate = now.mono_ns - first.mono_ns > 1000000
		       ? (double)(now.other - first.other) / (double)(now.mono_ns - first.mono_ns)
		       : 1.0;
	return now.other + (uint64_t)(int64_t)((double)(int64_t)(mono_ns - now.mono_ns) * rate);
}

uint64_t cupti_device_time(uint64_t mono_ns)
{
	/* What is left of the device's clock when CUPTI has converted it. */
	return cupti_time(mono_ns + (uint64_t)cupti_settings.skew_ns);
}

void cupti_take_clock(void)
{
	begin();
	use(ticks);
}

void cupti_lose_clock(void)
{
	first = tightest(real);
	registered = NULL;
}

SIM_EXPORT int cuptiGetTimestamp(uint64_t *time)
{
	if (!time)
		return CUPTI_ERROR_INVALID_PARAMETER;
	begin();
	*time = registered ? registered() : own_time(mono());
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityRegisterTimestampCallback(cupti_timestamp_fn fn)
{
	if (!fn)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	begin();
	if (registered == ticks)
		cupti_misuse("another tool's timestamp callback is replaced");
	if (cupti_enabled)
		cupti_misuse("a timestamp callback is registered while kinds are enabled");
	use(fn);
	return CUPTI_SUCCESS;
}
