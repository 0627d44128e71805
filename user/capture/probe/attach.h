/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the BPF programs and places probes with them: through uprobe_multi links where the kernel
 * has them, else as single perf uprobes. The kernel removes what is attached when the file
 * descriptors close, however this process ends.
 */
#ifndef KPROF_CAPTURE_ATTACH_H
#define KPROF_CAPTURE_ATTACH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/probe/links.h"
#include "kprof/within.h"
#include "kprof/wire.h"

struct attacher;
struct unwinder_maps;

struct attacher_opts {
	bool single;          /* single uprobes instead of uprobe_multi */
	bool follow_children; /* a target's child becomes a target at its fork */
	bool until_exec;      /* a target that executes another program is one no more */
	uint64_t asked_by;    /* signals that are looked for (attacher__asked()): 1 << number */
	bool all_processes;   /* samples of all processes are recorded (KPROF_WIRE_SEEN) */
	bool joins;           /* a process becomes a target when it hits a probe (the same) */
	uint32_t nr_rings;
	bool stacks;       /* also load the programs and maps that walk stacks */
	bool no_probes;    /* leave out programs and maps for probes: none will be placed */
	bool entry_stacks; /* also take stacks at the entries of functions */
	/* hits of memory's allocators are never shed, and there are no stacks of frees */
	bool books;
	uint32_t stack_rate;  /* entry stacks per second and thread, at most; 0: all */
	bool waits;           /* also watch the scheduler; with .stacks */
	uint64_t min_wait_ns; /* shorter waits have no record */
	bool patient;         /* processes that are met need not be told of at once */
	/* stacks of waits take so much of each CPU at first; 0: as much as is useful */
	double wait_stacks;
	const pid_t *tids; /* only these threads are recorded; at most KPROF_WIRE_MAX_TIDS */
	size_t nr_tids;    /* 0: all */
	bool inputs;       /* also read operators' inputs (ATTACH_BEGIN_INPUTS, _BOXED) */
	bool modules;      /* also look for calls of modules (kprof/modules.h) */
	bool flow;         /* also read sequence numbers (ATTACH_BEGIN_BOXED, too) */
	/* only what is done inside of what has this name (kprof/within.h); NULL: all */
	const char *within;
	enum kprof_within_of within_of;
	/* also read counters at each hit: where (enum kprof_wire_counter) */
	const uint8_t *counters;
	uint32_t nr_counters;
	uint32_t counter_cpus; /* how many CPUs there may be; 0: none is counted by CPUs */
};

enum attach_program {
	ATTACH_BEGIN,
	ATTACH_BEGIN_TEXT,
	ATTACH_BEGIN_ARGS,
	ATTACH_BEGIN_INPUTS,
	ATTACH_BEGIN_BOXED,
	ATTACH_SITE,
	ATTACH_SITE_RESULT, /* also records the result register */
	ATTACH_MAPS,
	ATTACH_BATCH,
	ATTACH_MARK,
	ATTACH_STACK,   /* beside one of ATTACH_BEGIN*: takes the stack at the entry */
	ATTACH_NOTHING, /* does nothing: what does a hit cost? */
	ATTACH_NR
};

struct attach_point {
	uint64_t offset; /* place in the file */
	uint64_t cookie; /* KPROF_COOKIE() */
	/* ATTACH_MARK: file offset of the mark's semaphore, which counts its watchers; 0: none */
	uint64_t semaphore;
};

/*
 * Opens and loads the BPF programs. The rings must be put into the map before anything is attached.
 */
int attacher__new(const struct attacher_opts *opts, struct attacher **out);
void attacher__free(struct attacher *a);
/* Starts the tracepoints on fork, exec and exit. */
int attacher__start_tasks(struct attacher *a);
void attacher__stop_tasks(struct attacher *a);
/* From here on no event is recorded or counted as fired, however long removing the probes takes. */
void attacher__stop(struct attacher *a);
/* The same for the batches of agents, which are recorded a little longer than events. */
void attacher__stop_batches(struct attacher *a);

int attacher__rings_fd(const struct attacher *a);
/*
 * For walking stacks: the maps, and the program for sampling clocks (a descriptor), whose samples
 * count for this source.
 */
void attacher__stack_maps(const struct attacher *a, struct unwinder_maps *out);
int attacher__sample_program(struct attacher *a, uint32_t source);
/* Sets the source that stacks at entries count for. */
void attacher__stack_source(struct attacher *a, uint32_t source);
/* Sets the source that records of modules' calls count for. */
void attacher__modules_source(struct attacher *a, uint32_t source);
struct kprof_modules;
/* What was told of modules' calls got lost: all of them are told again. */
void attacher__ask_modules(struct attacher *a);
/* Calls of modules are looked for in this process from now on; NULL: no longer. */
int attacher__set_modules(struct attacher *a, uint32_t pid, const struct kprof_modules *m);
int attacher__set_probe(struct attacher *a, uint32_t index, const struct kprof_wire_probe *p);
/* The same, for what ATTACH_BEGIN_INPUTS and _BOXED need besides. */
int attacher__set_inputs(struct attacher *a, uint32_t index, const struct kprof_inputs_plan *plan);
/* Where the processes of this address space keep what sequence numbers follow from. */
int attacher__set_sequence(struct attacher *a, uint32_t space,
			   const struct kprof_wire_sequence *sequence);
/*
 * Events of this process are recorded from here on, until it exits. *space: the number of its
 * address space (KPROF_WIRE_FIRST_SPACE).
 */
int attacher__add_target(struct attacher *a, uint32_t pid, uint32_t *space);
/*
 * Of .joins: this process is no target until it executes another program. was_target: it has become
 * one by itself, and nothing happens if it has ended since.
 */
int attacher__leave_out(struct attacher *a, uint32_t pid, bool was_target);
/* Undoes that. Whether it was left out. */
bool attacher__let_in(struct attacher *a, uint32_t pid);
/*
 * Of .all_processes and .joins: processes that have taken another name since they were last taken
 * here. Returns how many, `most` at most.
 */
size_t attacher__take_renamed(struct attacher *a, uint32_t *pids, size_t most);
/* Only for a process whose exit the kernel's programs did not see. */
int attacher__remove_target(struct attacher *a, uint32_t pid);
/* How many forked children are not recorded, as the kernel's table of targets was full. */
uint64_t attacher__children_refused(const struct attacher *a);
struct attach_asked {
	uint64_t times;
	/* of the last one: to whom, by whom, which */
	pid_t pid;
	uint32_t uid;
	int signal;
};
/* Signals of .asked_by that the owners of targets, or root, have sent them so far. */
void attacher__asked(const struct attacher *a, struct attach_asked *out);
/* With .all_processes: counts the processes that begin from here on and end. */
void attacher__count_ended(struct attacher *a, uint64_t since_ns);
/* A name and its counts. after: the name before, NULL: the first one. -ENOENT: no more. */
int attacher__next_ended(const struct attacher *a, const struct kprof_wire_name *after,
			 struct kprof_wire_name *name, struct kprof_wire_ended *out);
/* Hits in processes that are no targets, summed over CPUs. */
int attacher__foreign(const struct attacher *a, struct kprof_wire_foreign *out);
/*
 * Tells the BPF programs that the code at ret_addr does nothing but return in its turn: the next
 * return address lies `bytes` bytes further up the stack. keeps_result: the code returns the value
 * that was returned to it.
 */
int attacher__follow(struct attacher *a, uint32_t space, uint64_t ret_addr, uint32_t bytes,
		     bool keeps_result);
/* Undoes attacher__follow(), if it was called for this address: the table is small. */
void attacher__unfollow(struct attacher *a, uint32_t space, uint64_t ret_addr);
/*
 * Tells the BPF programs that the ends of calls that return there are seen, or need not be: they
 * stop looking at the stack whether such a call has returned.
 */
void attacher__sited(struct attacher *a, uint32_t space, uint64_t ret_addr);

/* Of this file the BPF programs may take it that its probes are in every process. */
int attacher__placed(struct attacher *a, const struct kprof_wire_file *file,
		     const struct kprof_wire_placed *placed);
/* Takes back what attacher__placed() told, of all files. */
void attacher__forget_placed(struct attacher *a);

/* Asks the BPF programs to wake the reader of the rings at the next event. */
void attacher__wake_me(struct attacher *a);

/*
 * Places probes at the points of the file, for process pid (-1: for every process that maps the
 * file), and adds the links to the set. On error, nothing of this call stays attached. A place at
 * which the kernel refuses a probe is left out and counted (attacher__refused()). -ETXTBSY: the
 * file's file system may block the kernel.
 */
int attacher__attach(struct attacher *a, enum attach_program program, pid_t pid, const char *path,
		     const struct attach_point *points, size_t nr, struct attach_links *links);
/* Why attacher__attach() has failed, for messages. */
const char *attacher__why(int err);
uint32_t attacher__refused(const struct attacher *a);
/* Counters summed over CPUs. */
int attacher__counts(const struct attacher *a, uint32_t source, struct kprof_wire_count *out);
/* ---- waits (attach_waits.c) ---- */

/* Sets the sources that waits, and the stacks of waits, count for. */
void attacher__wait_source(struct attacher *a, uint32_t source);
void attacher__wait_stack_source(struct attacher *a, uint32_t source);
/* Those stacks take so much of each CPU's time from now on, above 0. */
void attacher__wait_stacks(struct attacher *a, double share);
/* The time in which the BPF programs count what threads do. */
void attacher__wait_window(struct attacher *a, uint64_t from_ns, uint64_t until_ns);
/* Switches and wakings cost nothing any more. */
void attacher__stop_waits(struct attacher *a);
/* They are seen again, as if no thread had been known before; then the time is set anew. */
int attacher__start_waits(struct attacher *a);
struct kprof_wait;
/*
 * What the BPF programs know of a thread; -ENOENT: it has run or waited all the time; -EAGAIN: that
 * is being changed.
 */
int attacher__wait_of(const struct attacher *a, uint32_t tid, struct kprof_wait *out);
/*
 * The same for all threads, quickly, also while the kernel's programs go on: calls fn with what is
 * known of each, and a time before that was read. A result other than 0 ends it.
 */
int attacher__wait_each(const struct attacher *a,
			int (*fn)(void *ctx, struct kprof_wait *w, uint64_t before_ns), void *ctx);
/* How many threads they had no room for. */
uint64_t attacher__waits_refused(const struct attacher *a);
/* How often a thread had switched to or from a CPU without their having seen it. */
uint64_t attacher__waits_unseen(const struct attacher *a);

/* ---- counters (attach_counters.c) ---- */

/* The map of the perf events that are read at hits, a descriptor; with .counter_cpus. */
int attacher__counter_events(const struct attacher *a);

/* ---- what is around what is recorded (attach_within.c) ---- */

/* What hits of the row's probes say of ranges: KPROF_COOKIE_WITHIN(). */
struct catalog_row;
uint64_t attach_within_cookie(const struct catalog_row *row, uint32_t annotations);
/* The first characters of the value by which a hit is one of the row's events. */
void attach_within_value(const struct catalog_row *row, struct kprof_wire_probe *to);
/* Threads of a process, or of all (0), may have hits of before that are recorded later. */
struct attach_left {
	uint64_t since_ns; /* from then on they count as outside */
	pid_t pid;
};
/* Takes the next that counts from that time on, or from before. false: there is none. */
bool attacher__within_left(struct attacher *a, uint64_t until_ns, struct attach_left *out);
/* How many may have been of the name, and do not count. */
uint64_t attacher__within_unread(const struct attacher *a);
/* How many annotations of the name have begun, or how often a thread was found inside, at least. */
uint64_t attacher__within_met(const struct attacher *a);
/* Hits that count as outside, because it is not known whether they are. */
uint64_t attacher__within_unknown(const struct attacher *a);
/* This process's interpreter is known from now on, and where PyTorch is in it; NULL: no longer. */
int attacher__within_python(struct attacher *a, uint32_t pid, const struct kprof_modules *m);

/* ---- what the programs cost (attach_costs.c) ---- */

/* Summed over CPUs, by enum kprof_wire_program. */
int attacher__costs(const struct attacher *a, struct kprof_wire_cost out[KPROF_WIRE_NR_PROGRAMS]);
/* The kernel's memory for the programs' maps, in bytes, as it counts it; up to ten seconds old. */
uint64_t attacher__map_bytes(struct attacher *a);
/* From now on the programs leave these out (KPROF_WIRE_SHED_*), too. */
void attacher__shed(struct attacher *a, uint32_t what);
/* They do so no longer. */
void attacher__unshed(struct attacher *a, uint32_t what);
/* The mean period of the sampling clocks, by which samples are weighted. */
void attacher__sample_period(struct attacher *a, uint64_t period_ns);

/* How many runs the kernel skipped, of all programs together. */
uint64_t attacher__missed(const struct attacher *a);

#endif
