/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED NVML, FOR TESTS: two devices, and what NVML_SAMPLES says of them, "DEVICE:PID:PERCENT …". A sample is told once to
 * who asks for those after a time, as NVIDIA's library does: each call makes new ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define NR_DEVICES 2

enum { SUCCESS = 0, INVALID_ARGUMENT = 2, NOT_FOUND = 6, INSUFFICIENT_SIZE = 7 };

struct process_sample {
	unsigned int pid;
	unsigned long long time_us;
	unsigned int sm, memory, encoder, decoder;
};

static char devices[NR_DEVICES];
static int ready;

EXPORT int nvmlInit_v2(void);
EXPORT int nvmlInit_v2(void)
{
	ready = 1;
	return SUCCESS;
}

EXPORT int nvmlShutdown(void);
EXPORT int nvmlShutdown(void)
{
	return ready ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned int *nr);
EXPORT int nvmlDeviceGetCount_v2(unsigned int *nr)
{
	*nr = NR_DEVICES;
	return ready ? SUCCESS : INVALID_ARGUMENT;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device);
EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned int index, void **device)
{
	if (index >= NR_DEVICES)
		return INVALID_ARGUMENT;
	*device = &devices[index];
	return SUCCESS;
}

EXPORT int nvmlDeviceGetProcessUtilization(void *device, struct process_sample *out,
					   unsigned int *nr, unsigned long long since_us);
EXPORT int nvmlDeviceGetProcessUtilization(void *device, struct process_sample *out,
					   unsigned int *nr, unsigned long long since_us)
{
	const char *text = getenv("NVML_SAMPLES");
	unsigned int found = 0, room = out ? *nr : 0, index, pid, percent;
	struct timespec now;
	int used;

	clock_gettime(CLOCK_REALTIME, &now);
	for (; text && sscanf(text, " %u:%u:%u%n", &index, &pid, &percent, &used) == 3;
	     text += used) {
		if (index >= NR_DEVICES || device != &devices[index])
			continue;
		if (found < room)
			out[found] = (struct process_sample){
				.pid = pid,
				.time_us = (unsigned long long)now.tv_sec * 1000000 +
					   (unsigned long long)now.tv_nsec / 1000,
				.sm = percent,
			};
		found++;
	}
	*nr = found;
	if (!found)
		return NOT_FOUND;
	return found > room ? INSUFFICIENT_SIZE : SUCCESS;
}
