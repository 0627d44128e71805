/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the memory that the agent of this process shares with kprof, as kprof finds it. */
#ifndef KPROF_TESTS_FIND_SHM_H
#define KPROF_TESTS_FIND_SHM_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/agent.h"

/* NULL: not there yet. */
static inline struct kprof_agent_shm *find_shm(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	unsigned long start = 0;
	char line[600];

	while (f && !start && fgets(line, sizeof(line), f)) {
		if (strstr(line, "/memfd:" KPROF_AGENT_SHM_NAME))
			start = strtoul(line, NULL, 16);
	}
	if (f)
		fclose(f);
	return (struct kprof_agent_shm *)start; /* NOLINT: an address is what it says */
}

#endif
