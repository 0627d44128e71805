/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a recording costs, and a bound on that. A ledger adds up several times a second what kprof
 * uses itself, and what it takes from the programs: traps, the kernel's programs, interrupts. When
 * the last second was over the bound, something is given up (shed), and the capture says what, and
 * from when on.
 *
 *   overhead.c   the ledger's readings, the bound, the steps
 *   ledger.c     sums over the last second
 *   measure.c    what is read: CPU times, runs of programs, memory
 *   calibrate.c  what a trap and an interrupt cost on this machine
 *   heat.c       which probes are hit how often, and what they tell
 *   choose.c     which of them to give up
 *   room.c       what the last second leaves for what can wait
 *   shed.c       gives things up
 *   back.c       what comes back
 *   bursts.c     these, recorded for moments
 *   tell.c       all of it, for the capture
 */
#ifndef KPROF_CAPTURE_OVERHEAD_H
#define KPROF_CAPTURE_OVERHEAD_H

#include "capture/probe/probe.h"
#include "capture/record/record.h"
#include "capture/sample/sample.h"
#include "capture/target/target.h"
#include "kprof/overhead.h"

struct cJSON;

struct overhead_opts {
	struct recorder *recorder;
	struct targets *targets;
	struct attacher *attacher;
	struct probe_set *probes;
	struct stacks *stacks;  /* NULL: no stacks are recorded */
	struct ration *reading; /* of processes; NULL: it has no bound of its own */
	/*
	 * The bound, as a share of the CPU time that the targets use; with all_processes, of what
	 * all processes use; at least of one CPU. 0: there is none.
	 */
	double most;
	bool all_processes;
	/* it goes on for long: what its begin costs is no reason to shed, and waits come back */
	bool steady;
	bool single;      /* single uprobes */
	bool with_probes; /* on functions and return sites */
	bool children;    /* processes are recorded as they are forked by others */
	/*
	 * Spans that these probes have begun by that time, when they were given up, will have no
	 * ends. -EAGAIN: there are records of before that have not been read yet.
	 */
	int (*given_up)(void *ctx, uint64_t time_ns,
			bool (*is_given_up)(void *given_up, uint32_t probe), void *given_up);
	uint64_t (*agents_ns)(void *ctx); /* CPU time of agents so far */
	/* Ends the recording of waits; NULL: there is none. */
	void (*give_up_waits)(void *ctx);
	/* Begins it again; *from_ns: from when on they are recorded. -EAGAIN: not yet. */
	int (*resume_waits)(void *ctx, uint64_t *from_ns);
	void *ctx;
};

struct overhead;

/*
 * What stacks of waits may take of each CPU in the kernel, where a recording goes on for long with
 * this bound, and so many of the CPUs are used: their part of the bound, over the CPUs that are
 * likely to run something.
 */
double overhead__wait_stacks(double most, double used, long nr_cpus);
int overhead__new(const struct overhead_opts *opts, struct overhead **out);
void overhead__free(struct overhead *o);
/*
 * Before the window opens: finds out what traps and interrupts cost here. spawned: the program that
 * kprof has started, whose time is none of kprof's; 0: none.
 */
void overhead__calibrate(struct overhead *o, pid_t spawned);
/* The window opens. */
int overhead__open(struct overhead *o);
/* Periodic work: reads what was used, records it, and sheds. */
int overhead__tend(struct overhead *o, uint64_t now_ns);
/* The window has closed: the last reading. */
int overhead__close(struct overhead *o);
/* Ends the spans of probes that were given up, once the rings have been read so far. */
int overhead__end_spans(struct overhead *o);
/* Records what was given up as gaps, and adds the ledger to the metadata. */
int overhead__finish(struct overhead *o, struct cJSON *to);

/*
 * The recording's file ends (the last reading of its window), and it goes on in another one: what
 * it costs is summed up anew, and what was given up counts as given up from then on.
 */
int overhead__end_part(struct overhead *o);
void overhead__next_part(struct overhead *o);
/* Once all else of that file has begun: what has been given up, and may be recorded again. */
void overhead__come_back(struct overhead *o);
struct overhead_state {
	double share, last_share; /* since the file began; of the last second */
	uint64_t cost_ns, base_ns, part_ns[KPROF_OVERHEAD_PARTS]; /* since the recording began */
	uint64_t nr_steps;                                        /* the same, without those back */
	uint32_t nr_now;      /* kinds of things, but for samples, that are given up at present */
	double wanted_hz, hz; /* samples a second and CPU */
};
void overhead__state(const struct overhead *o, struct overhead_state *out);

/* What the recording has cost since it began. */
double overhead__share(const struct overhead *o);
/* Is this probe there for bursts only? */
bool overhead__gave_up(const struct overhead *o, uint32_t probe);
/* … and all others, too? */
bool overhead__gave_up_all(const struct overhead *o);
/* Are processes that others fork left out from now on? */
bool overhead__gave_up_children(const struct overhead *o);

/* ---- what the events tell; they cost nothing where there is no bound ---- */

/*
 * A probe was hit. may_go: one that may be given up; call: a call of its own began, not one that is
 * folded into another.
 */
void overhead__hit(struct overhead *o, uint32_t probe, bool may_go, bool call);
/*
 * A span has ended that this probe began (UINT32_MAX: none did); site: the return site at which
 * that was seen, 0: none.
 */
void overhead__ended(struct overhead *o, uint32_t probe, uint32_t site, uint64_t lasted_ns);

#endif
