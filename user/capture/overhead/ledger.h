/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of costs over the last second. It only computes. */
#ifndef KPROF_CAPTURE_OVERHEAD_LEDGER_H
#define KPROF_CAPTURE_OVERHEAD_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

enum ledger_part {
	LEDGER_TRAPS,   /* entering the kernel at a probe, and leaving it */
	LEDGER_BPF,     /* what the kernel's programs do, but for samples */
	LEDGER_SAMPLES, /* interrupts of the sampling clocks, and their program */
	LEDGER_OWN,     /* kprof's thread that records */
	LEDGER_HELPERS, /* its other threads, and its children */
	LEDGER_AGENTS,  /* what agents use in their processes */
	LEDGER_PARTS,
};

/*
 * What in the kernel is done for what: the parts TRAPS, BPF and SAMPLES once more, by what would
 * save them.
 */
enum ledger_cause {
	LEDGER_FOR_SAMPLES,
	LEDGER_FOR_PROBES, /* on functions and return sites, and annotations */
	LEDGER_FOR_STACKS, /* at entries */
	LEDGER_FOR_WAITS,
	LEDGER_FOR_TASKS, /* forks, execs, exits */
	LEDGER_CAUSES,
};

/* Costs so far, and what is recorded so far, in ns of CPU time. */
struct ledger_reading {
	uint64_t time_ns;
	uint64_t used_ns;     /* what the bound is a share of */
	uint64_t recorded_ns; /* what the recorded processes used; 0 where no calls are recorded */
	uint64_t part_ns[LEDGER_PARTS];
	uint64_t cause_ns[LEDGER_CAUSES];
	uint64_t probe_runs; /* how many runs LEDGER_FOR_PROBES is of; differences have none */
	uint64_t paced_ns;   /* of LEDGER_HELPERS: what gives way to the rest by itself */
	uint64_t switches;   /* between threads, on all CPUs; 0: not read */
};

#define LEDGER_READINGS 32
#define LEDGER_SPAN_NS 1000000000ull

struct ledger { /* all zero: empty */
	struct ledger_reading readings[LEDGER_READINGS];
	uint32_t nr, next;
};

/* Readings must come in the order of time, and sums must not fall. */
void ledger__add(struct ledger *l, const struct ledger_reading *r);
/* Only the latest reading counts from now on, as the begin of what follows. */
void ledger__restart(struct ledger *l);
/*
 * From the oldest reading of the last second, or the one just before, to the latest: the
 * differences in *out, with time_ns the time between, and used_ns at least that time (one CPU).
 * False: there are not two yet.
 */
bool ledger__last(const struct ledger *l, struct ledger_reading *out);
/* The same up to a reading that is not added. */
bool ledger__until(const struct ledger *l, const struct ledger_reading *to,
		   struct ledger_reading *out);
uint64_t ledger_cost(const struct ledger_reading *r);
/*
 * What one cause costs: of kprof's recording thread, it has the same part as of what is done in the
 * kernel.
 */
uint64_t ledger_cost_of(const struct ledger_reading *r, enum ledger_cause cause);
/*
 * The difference as a share of what was used. A time of less than a second counts as a whole one in
 * which nothing more was paid: a short burst is not over the bound.
 */
double ledger_share(const struct ledger_reading *difference, uint64_t cost_ns);
/* What was used, of that time or of a whole second like it. */
double ledger_used(const struct ledger_reading *difference);
/* The difference as it would be if it went on like that for a second; .time_ns is above 0. */
void ledger_go_on(struct ledger_reading *difference);

/* *second: a whole one like the last span_ns. False: these are not known. */
bool ledger__lately(const struct ledger *l, uint64_t span_ns, struct ledger_reading *second);
/* *second, of ledger__last(), becomes a whole one like the last span_ns where that is dearer. */
void ledger__dearer(const struct ledger *l, uint64_t span_ns, struct ledger_reading *second);

#endif
