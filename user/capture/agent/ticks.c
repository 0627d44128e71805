// SPDX-License-Identifier: BSD-2-Clause
#include "capture/agent/ticks.h"

#include <stdio.h>
#include <string.h>

#include "util/util.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define EVERY_NS NSEC_PER_SEC
#define TRIES 8
/* What a base is away from its entries: no agent that keeps to the protocol comes near. */
#define MOST_TICKS ((int64_t)1 << 40)

static uint64_t read_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

bool agent_ticks__usable(void)
{
	char name[16] = "";
	FILE *f = fopen(CLOCKSOURCE, "re");

	if (!f)
		return false;
	if (!fgets(name, sizeof(name), f))
		name[0] = '\0';
	fclose(f);
	return !strcmp(name, "tsc\n") && read_ticks();
}

/* The pair of readings that nothing came between, of several. */
static struct agent_ticks_pair read_pair(void)
{
	struct agent_ticks_pair best = {0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = read_ticks(), ns = clock_mono_ns(), width = read_ticks() - before;

		if (width >= least)
			continue;
		least = width;
		best = (struct agent_ticks_pair){ns, before + width / 2};
	}
	return best;
}

void agent_ticks__measure(struct agent_ticks *t)
{
	struct agent_ticks_pair now;

	if (t->last.ticks && clock_mono_ns() - t->last.ns < EVERY_NS)
		return;
	now = read_pair();
	t->before = t->last.ticks ? t->last : now;
	t->last = now;
}

uint64_t agent_ticks__ns(struct agent_ticks *t, uint64_t ticks, uint64_t base_ns,
			 uint64_t base_ticks)
{
	int64_t off = (int64_t)(ticks - base_ticks);

	/* at the beginning: no second has passed since the first pair */
	if (t->last.ticks == t->before.ticks)
		t->last = read_pair();
	if (off > MOST_TICKS || off < -MOST_TICKS || t->last.ticks <= t->before.ticks)
		return base_ns;
	return base_ns + (uint64_t)(int64_t)((double)off * (double)(t->last.ns - t->before.ns) /
					     (double)(t->last.ticks - t->before.ticks));
}
