/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bound on work that comes to nothing, for looking up what a process that may be hostile has
 * named: a thread, an address, a class. Each look-up costs kprof a system call or more, and a
 * process can invent a million names for the price of one. Failures are free at first, and later
 * one is allowed for so many successes: who says what is true mostly is never refused, whatever
 * time it takes, and who does not makes kprof do a number of things that has a limit.
 */
#ifndef KPROF_UTIL_BUDGET_H
#define KPROF_UTIL_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#define BUDGET_FREE 1024
#define BUDGET_SUCCESSES 16 /* for one more failure */

struct budget { /* all zero: nothing has happened */
	uint64_t successes, failures;
};

static inline bool budget_left(const struct budget *b)
{
	return b->failures < BUDGET_FREE + b->successes / BUDGET_SUCCESSES;
}

/* cost: how many failures this one counts as */
static inline void budget_note(struct budget *b, bool success, uint32_t cost)
{
	if (success)
		b->successes++;
	else
		b->failures += cost;
}

#endif
