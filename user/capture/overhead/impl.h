/* SPDX-License-Identifier: BSD-2-Clause */
/* Structures and functions that the files of this room share. */
#ifndef KPROF_CAPTURE_OVERHEAD_IMPL_H
#define KPROF_CAPTURE_OVERHEAD_IMPL_H

#include "capture/overhead/choose.h"
#include "capture/overhead/ledger.h"
#include "capture/overhead/overhead.h"
#include "util/map64.h"

/* ---- heat.c ---- */

struct heat_probe {
	uint64_t calls, timed, timed_ns, nr_short;
};

/* Of the time since the last heat__forget(). */
struct heat {
	struct heat_probe *probes; /* by index of the probe; NULL: nothing is counted */
	uint64_t *returns;         /* by return site */
	size_t nr_sites;
	struct map64 uses; /* site << 32 | probe → calls of the probe that return there */
	uint64_t since_ns;
	uint64_t short_ns; /* shorter calls are short */
};

int heat__new(struct heat *h);
void heat__free(struct heat *h);
void heat__forget(struct heat *h, uint64_t now_ns);
/* All probes that were hit; *out is malloc'ed. */
int heat__probes(const struct heat *h, struct choose_probe **out, size_t *nr);
/*
 * Of the sites, those that were reached and serve no probe but the dropped ones: sets their bits.
 */
void heat__idle_sites(const struct heat *h, const uint64_t *dropped, uint64_t *sites);

/* ---- calibrate.c ---- */

struct calibration {         /* in ns; 0: not measured */
	double trap_ns;      /* of a probe on an instruction that the kernel emulates */
	double stepped_ns;   /* … on one that it single-steps */
	double clock_ns;     /* what measuring a run adds to it */
	double interrupt_ns; /* of a sampling clock */
};

/* traps, interrupts: which of them to measure. */
void calibrate(struct calibration *c, const struct overhead_opts *opts, bool traps,
	       bool interrupts);

/* ---- measure.c ---- */

struct measured { /* where the readings stand */
	struct kprof_wire_cost programs[KPROF_WIRE_NR_PROGRAMS];
	double program_ns[KPROF_WIRE_NR_PROGRAMS]; /* so far, estimated */
	uint64_t children_ns;                      /* of children that have ended, as last read */
	pid_t spawned;
	uint64_t machine_ns; /* busy time of all CPUs, as last read */
};

/* Continues the sums. */
int measure(struct measured *m, const struct calibration *c, const struct overhead_opts *opts,
	    struct ledger_reading *out);
uint64_t measure_resident_bytes(void);
uint64_t measure_most_resident_bytes(void);

/* ---- overhead.c ---- */

enum shed_kind {
	SHED_RATE,         /* fewer samples … */
	SHED_RATE_BACK,    /* … and more again */
	SHED_PROBES,       /* the probes that cost most and tell least */
	SHED_ENTRY_STACKS, /* stacks of entries */
	SHED_WAIT_STACKS,  /* stacks of waits */
	SHED_ALL_PROBES,
	SHED_CHILDREN, /* those that are forked from now on */
	SHED_KINDS,
};

#define SHED_MOST_STEPS 256 /* that are kept; further ones are counted */

struct shed_step {
	enum shed_kind kind;
	uint64_t time_ns;   /* from then on it is not recorded any more … */
	uint64_t until_ns;  /* … and by then that had been done */
	double share;       /* what the last second cost */
	double from, to;    /* samples a second */
	uint32_t first, nr; /* which of overhead.dropped */
	uint32_t nr_probes; /* places that were given up, return sites among them */
};

struct dropped {
	uint32_t probe;
	double calls_a_second, mean_ns; /* before; mean_ns 0: not known */
	uint64_t time_ns;
};

struct overhead {
	struct overhead_opts opts;
	struct calibration calibration;
	struct measured measured;
	/* of the time before the window */
	struct kprof_wire_cost programs_before[KPROF_WIRE_NR_PROGRAMS];
	double program_ns_before[KPROF_WIRE_NR_PROGRAMS];
	struct ledger ledger, window; /* of the last second; of the time since the last step */
	struct ledger_reading first, latest;
	struct heat heat;
	uint64_t next_ns;
	uint64_t quiet_ns; /* what a step itself costs is not held against what stays */
	uint64_t over_ns;  /* how long the last second was over the bound */
	double share, worst;
	/* samples: as the user wants them; since when it costs little; how long it is to do so */
	uint64_t wanted_period_ns, calm_since_ns, patience_ns;
	uint32_t shed; /* set of 1 << enum shed_kind that can't be done again */
	struct shed_step *steps;
	size_t nr_steps, cap_steps;
	uint64_t more_steps; /* beyond SHED_MOST_STEPS */
	struct dropped *dropped;
	size_t nr_dropped, cap_dropped;
	uint32_t counter_pid, counter_name;
	/* since when spans of the probes from dropped[ended] on, or all, have no ends; 0: none */
	uint64_t endless_ns;
	size_t ended;
	bool open;
};

/* shed.c: the last second was over the bound, by these differences. Gives one thing up. */
int shed__step(struct overhead *o, const struct ledger_reading *last, uint64_t now_ns);
/* The rings have been read since probes were given up: ends their spans. */
int shed__end_spans(struct overhead *o);
/* It was not: more samples again, after a while. */
int shed__recover(struct overhead *o, double share, uint64_t now_ns);

#endif
