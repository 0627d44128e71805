/* SPDX-License-Identifier: BSD-2-Clause */
/* Lets a profiler learn where a target's calls return to, before the calls that count. */
#ifndef KPROF_WORKLOADS_SETTLE_H
#define KPROF_WORKLOADS_SETTLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * Rounds before the measured ones, while a profiler learns where calls return to: until its probes,
 * which change this program's code, have come, and no more of them for a while.
 */
#define SETTLE_QUIET_ROUNDS 6
#define SETTLE_MOST_ROUNDS 60
#define SETTLE_PAUSE_US 150000

/* Of all code that comes from files. */
static uint64_t text_sum(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start, end;
	uint64_t sum = 0;
	char line[4200];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx r-xp", &start, &end) == 2 && strchr(line, '/') &&
		    strstr(line, " r-xp "))
			for (; start < end; start += sizeof(sum))
				sum = sum * 31 + *(const uint64_t *)start;
	if (maps)
		fclose(maps);
	return sum;
}

static int settle(void (*round)(void))
{
	uint64_t before = text_sum(), now;
	bool probed = false;
	int n = 0;

	for (int quiet = 0; n < SETTLE_MOST_ROUNDS && (!probed || quiet < SETTLE_QUIET_ROUNDS);
	     n++) {
		round();
		usleep(SETTLE_PAUSE_US);
		now = text_sum();
		quiet = now == before ? quiet + 1 : 0;
		probed = probed || now != before;
		before = now;
	}
	return n;
}

#endif
