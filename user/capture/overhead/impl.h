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
	uint64_t hits, calls, timed, timed_ns, nr_short;
};

struct heat {
	/* Of the time since the last heat__forget(). */
	struct heat_probe *probes; /* by index of the probe; NULL: nothing is counted */
	uint64_t hits;             /* of all probes, also of those that are not to go */
	uint64_t since_ns;
	/*
	 * Of all the time, since a probe may be hit rarely, or its calls last long: site << 32 |
	 * probe → 1: calls of the probe return there.
	 */
	struct map64 uses;
	bool uses_full;    /* there may be others */
	uint64_t short_ns; /* shorter calls are short */
};

#define HEAT_SITES (65536 + 1) /* one more than there can be return sites (return_sites.c) */

int heat__new(struct heat *h);
void heat__free(struct heat *h);
void heat__forget(struct heat *h, uint64_t now_ns);
/* All probes with calls that may be given up; *out is malloc'ed. */
int heat__probes(const struct heat *h, struct choose_probe **out, size_t *nr);
/*
 * Of the sites, those at which calls of dropped probes have ended, and none of others: sets their
 * bits. dropped: all probes that were ever given up.
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
	int stat_fd;         /* /proc/stat; -1: not open yet */
};

/* Continues the sums. */
int measure(struct measured *m, const struct calibration *c, const struct overhead_opts *opts,
	    struct ledger_reading *out);
/* What the kernel's programs have cost since the last reading, with traps, roughly; in ns. */
double measure_ahead(const struct measured *m, const struct calibration *c,
		     const struct overhead_opts *opts);
uint64_t measure_resident_bytes(void);
uint64_t measure_most_resident_bytes(void);

enum shed_kind {
	SHED_RATE,         /* fewer samples … */
	SHED_RATE_BACK,    /* … and more again */
	SHED_PROBES,       /* the probes that cost most and tell least */
	SHED_ENTRY_STACKS, /* stacks of entries */
	SHED_WAIT_STACKS,  /* stacks of waits */
	SHED_WAITS,
	SHED_ALL_PROBES,
	SHED_CHILDREN, /* those that are forked from now on */
	SHED_KINDS,
};

#define SHED_MOST_RATES 128 /* changes of the rate that are kept; further ones are counted */

/* What is given up is to bring the cost down to this part of the bound. */
#define SHED_AIM 0.5
#define SHED_MUCH 1.25 /* so many times the bound is clearly over it */

struct shed_step {
	enum shed_kind kind;
	uint64_t time_ns;   /* from then on it is not recorded any more … */
	uint64_t until_ns;  /* … and by then that had been done */
	uint64_t back_ns;   /* from then on it is recorded again; 0: it is not */
	double share;       /* what the last second cost */
	double from, to;    /* samples a second */
	uint32_t first, nr; /* which of overhead.dropped */
	uint32_t nr_probes; /* places that were given up, return sites among them */
};

/* ---- bursts.c ---- */

/*
 * Of bursts: a number in each, and the time that was used meanwhile. Sums of both, and of their
 * squares and products.
 */
struct tally {
	uint32_t nr;
	double value, used, value_value, value_used, used_used;
};

void tally__add(struct tally *t, double value, double used);
/* The number for each unit of time. (Not the mean of rates: in some bursts little was used.) */
double tally__rate(const struct tally *t);
/* The rate's standard error; 0: not known. */
double tally__error(const struct tally *t);

struct dropped {
	uint32_t probe;
	double calls_a_second, mean_ns;  /* before; mean_ns 0: not known */
	uint64_t time_ns, recorded_ns;   /* the latter: CPU time, see struct ledger_reading */
	uint64_t calls, timed, timed_ns; /* in this burst, and of how many the end was seen */
	/* for each ns of CPU time that the program had for itself in bursts: calls; ns in them */
	struct tally rate, busy;
	double traps_ns; /* what traps took of its CPU time meanwhile */
};

struct bursts {
	struct map64 at; /* index of a probe that was given up → index + 1 into dropped[] */
	uint64_t next_ns;
	/* how long the one that is being read has lasted, 0: none is; CPU time meanwhile … */
	uint64_t lasted_ns, recorded_ns;
	uint64_t hits, hits_ns; /* … and how often probes were hit, and what that took of it */
	uint64_t nr_lost;       /* records for which there was no room meanwhile */
	uint64_t cost_ns;       /* what the recording had cost before */
	double sum_cost_ns;     /* what all of them have cost, and how many these are */
	uint32_t nr_costs;
	uint64_t all_ns; /* how long all have lasted */
	uint32_t nr;
	bool too_dear; /* there will be no more */
};

void bursts__free(struct bursts *b);
/* This probe is given up, as dropped[index]. */
int bursts__add(struct bursts *b, uint32_t probe, size_t index, uint64_t now_ns);
/* NULL: the probe was not given up. */
struct dropped *bursts__of(const struct overhead *o, uint32_t probe);
/* Periodic work: a burst, if it is time for one. */
int bursts__tend(struct overhead *o, uint64_t now_ns);

/* ---- room.c ---- */

/*
 * What is left for what can wait, in ns of CPU time: of a second (ledger__until()) with this bound;
 * below 0: nothing.
 */
double room_left(const struct ledger_reading *last, double most, bool near_border);
/* Tells that to the ration. Only where a recording goes on for long, with a bound. */
void room__share_out(struct overhead *o, uint64_t now_ns);
/* Stacks of waits may take o->wait_stacks; less while what can wait rests. */
void room__set_wait_stacks(const struct overhead *o);
/* Nothing rests any more. */
void room__end(struct overhead *o);

/* ---- overhead.c ---- */

struct overhead {
	struct overhead_opts opts;
	struct calibration calibration;
	struct measured measured;
	/* of the time before the window */
	struct kprof_wire_cost programs_before[KPROF_WIRE_NR_PROGRAMS];
	double program_ns_before[KPROF_WIRE_NR_PROGRAMS];
	struct ledger ledger, window; /* of the last second; of the time since the last step */
	struct ledger_reading first, latest; /* of this file; and now */
	struct ledger_reading begin;         /* of the recording */
	struct heat heat;
	uint64_t next_ns, peek_ns; /* the next look, and the next at whether to look earlier */
	uint64_t looked_ns;        /* when the ledger was read last … */
	uint64_t reader_ns;        /* … and what the reader had used */
	uint64_t stepped_ns;       /* the last step; 0: none, or that was to end waits */
	uint64_t quiet_ns;         /* what a step itself costs is not held against what stays */
	/* how long the last second was over the bound: in all, without a break, and so far */
	uint64_t over_ns, longest_over_ns, this_over_ns;
	double share, worst;
	/* samples: as the user wants them; since when it costs little; how long it is to do so */
	uint64_t wanted_period_ns, calm_since_ns, patience_ns;
	bool tried;    /* there are more of them again, since they were made fewer last */
	uint32_t shed; /* set of 1 << enum shed_kind that can't be done again */
	/*
	 * Waits that were given up: what they cost for each switch between threads; since when it
	 * is calm enough for them, and how long it is to be; when they came back last.
	 */
	double wait_switch_ns;
	uint64_t waits_calm_ns, waits_patience_ns, waits_back_ns;
	bool waits_due; /* they come back where the next file begins */
	struct shed_step *steps;
	size_t nr_steps, cap_steps;
	uint64_t nr_given_up;          /* steps in all, but for those back */
	uint64_t nr_rates, more_steps; /* changes of the rate; those that are not kept */
	struct dropped *dropped;
	size_t nr_dropped, cap_dropped;
	struct bursts bursts;
	uint32_t counter_pid, counter_name;
	/* since when spans of the probes from dropped[ended] on, or all, have no ends; 0: none */
	uint64_t endless_ns;
	size_t ended;
	uint64_t opened_ns;
	long nr_cpus;
	uint64_t roomy_ns;  /* when there was room last for what can wait, or it was granted some */
	bool room_granted;  /* … though there was none */
	double wait_stacks; /* what stacks of waits may take of each CPU, as part of it */
	bool begun;         /* of a steady one: its begin is over */
	bool border_is_near; /* a capture's end, or the next one's begin */
	bool nothing_left;   /* it was over the bound with nothing to give up: no early looks */
	bool open;
};

/* overhead.c: reads what was used, and records it. */
int overhead_look(struct overhead *o);
/* tell.c: the name of such a step, as in the capture. */
const char *shed__name(enum shed_kind kind);
/*
 * shed.c: the last second was over the bound, or one would be that goes on like the time since the
 * last step; by these differences. Gives one thing up.
 */
int shed__step(struct overhead *o, const struct ledger_reading *last, uint64_t now_ns);
/* Was it given up, and has not come back? */
static inline bool shed__done(const struct overhead *o, enum shed_kind kind)
{
	return o->shed >> kind & 1;
}
/* Without waits, or without their stacks: what comes back in one (back.c). */
static inline bool shed__without_waits(const struct overhead *o)
{
	return shed__done(o, SHED_WAITS) || shed__done(o, SHED_WAIT_STACKS);
}
/* Either is about to be given up: what they cost, and for how long it is to be calm then … */
void shed__note_waits(struct overhead *o, const struct ledger_reading *last, uint64_t now_ns);
/* … and twice as long. */
void shed__wait_longer(struct overhead *o);
int shed_add_step(struct overhead *o, const struct shed_step *step);

/* ---- back.c ---- */

/* The last second was not over the bound: more samples again, after a while; and waits. */
int back__tend(struct overhead *o, const struct ledger_reading *last, double share,
	       uint64_t now_ns);

#endif
