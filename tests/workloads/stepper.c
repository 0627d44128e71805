// SPDX-License-Identifier: BSD-2-Clause
/*
 * Steps of a known length, one of which is slow: stepper LIBRARY STEPS MS SLOW_STEP SLOW_MS [MIB].
 * It maps the library, so that it passes for a program of a framework. Prints "READY pid", waits
 * for a line, prints {"steps": N, "slow_begin_ns": CLOCK_MONOTONIC, "slow_end_ns": …}, waits for
 * another line, and ends. In the slow step, it uses so much memory.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "kprof/mark.h"

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void use_memory(int mib)
{
	const size_t bytes = 1 << 20;

	while (mib-- > 0) {
		char *at = malloc(bytes);

		for (size_t i = 0; at && i < bytes; i += 1024)
			((volatile char *)at)[i] = 1;
	}
}

int main(int argc, char **argv)
{
	uint64_t begin_ns = 0, end_ns = 0;
	char line[64];
	int steps, slow;

	if (argc < 6 || argc > 7 || !dlopen(argv[1], RTLD_NOW))
		return 2;
	steps = atoi(argv[2]);
	slow = atoi(argv[4]);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 3;
	for (int i = 0; i < steps; i++) {
		KPROF_STEP(i);
		if (i == slow)
			begin_ns = now_ns();
		if (i == slow && argc > 6)
			use_memory(atoi(argv[6]));
		usleep((useconds_t)atoi(argv[i == slow ? 5 : 3]) * 1000);
		if (i == slow)
			end_ns = now_ns();
		KPROF_STEP_END();
	}
	printf("{\"steps\": %d, \"slow_begin_ns\": %" PRIu64 ", \"slow_end_ns\": %" PRIu64 "}\n",
	       steps, begin_ns, end_ns);
	fflush(stdout);
	(void)!fgets(line, sizeof(line), stdin);
	return 0;
}
