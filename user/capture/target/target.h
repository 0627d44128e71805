/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes of a recording (targets) and their threads: who they are and what they map. The
 * tables know nothing of probes, stacks or agents: each part of a recording keeps what it knows of
 * a process in a slot of its own.
 */
#ifndef KPROF_CAPTURE_TARGET_H
#define KPROF_CAPTURE_TARGET_H

/*
 * uthash: when there is no memory, an element is not added and its hh.tbl stays NULL, instead of
 * exit().
 */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "capture/process/process.h"
#include "kprof/wire.h"
#include "util/budget.h"

struct span_thread;

#define TARGET_SLOTS 12

/* ---- processes ---- */

struct target {
	UT_hash_handle hh;
	uint64_t number; /* how many were added before it */
	uint32_t pid, ppid, ns_pid;
	uint32_t space; /* number of its address space: KPROF_WIRE_FIRST_SPACE */
	/* not asked for by its number: a descendant of another target, or one of all processes */
	bool followed;
	/* a vfork's child: in its parent's memory until it executes a program */
	bool shares_memory;
	bool forked; /* its memory began as a copy of its parent's */
	bool ended;  /* it has ended, but no record has reported its exit yet */
	/* Of all processes of the machine (session/machine.c). */
	bool kernel_thread; /* one of the kernel's own: it has no user code */
	bool left_out;      /* it is not one of those that are to be recorded */
	/* its name in the last sample, if it had ended when the first record of it was read */
	char met_as[KPROF_WIRE_COMM];
	bool recorded;       /* the capture has a record of it: it was sampled */
	bool ever_recorded;  /* it, or one before that was rotated */
	uint64_t began_ns;   /* when it began, by the kernel: tells who has the PID; 0: unknown */
	uint64_t sampled_ns; /* the latest sample of it */
	uint64_t next_check_ns; /* when to look whether it lives */
	uint64_t used_ns;       /* CPU time so far, as last read (overhead/); 0: not yet */
	bool maps_dirty;   /* libraries were mapped or unmapped since maps_ns, or may have been */
	uint64_t dirty_ns; /* since when maps_dirty is set; 0: it is not */
	bool unplaced;     /* of maps_dirty: probes may be missing from what was mapped */
	uint32_t changes;  /* how often that was said */
	bool executed;     /* a program, whose dynamic linker has told nothing yet */
	/* all that was mapped at this time has its probes; 0: none placed yet */
	uint64_t looked_ns;
	uint64_t start_ns, exit_ns;
	bool exit_known;
	uint32_t exit_status; /* as from wait(2) */
	bool shift_known;
	int64_t clock_shift_ns; /* proc_clock_shift() */
	/* start time in clock ticks: tells apart processes with the same PID; 0: not known */
	uint64_t start_ticks;
	uint32_t comm, cmdline; /* string ids in the capture */
	bool owned;             /* the next two are known */
	uint32_t uid, cgroup;   /* effective user id; string id: the path of its cgroup */
	/* what of the two the capture has, each + 1; 0: nothing yet */
	uint64_t told_uid, told_cgroup;
	uint32_t program;       /* string id: the path of what it executes */
	uint32_t told_program;  /* what of that the capture has */
	struct proc_maps *maps; /* NULL: not read yet, or not readable */
	char *exe;              /* path of the program; NULL: not known */
	uint64_t maps_ns;       /* when maps was read */
	struct budget reads;    /* of its memory */
	struct budget looks;    /* at its mappings, for an address that is in none of the known */
	void *slot[TARGET_SLOTS];
};

struct targets;

int targets__new(struct targets **out);
/* The slots of all targets must be empty. ts may be NULL. */
void targets__free(struct targets *ts);
/* Reserves a slot in each target for the caller alone. There are TARGET_SLOTS of them. */
uint32_t targets__slot(struct targets *ts);
struct target *targets__find(const struct targets *ts, uint32_t pid);
/* Adds a target, which must not be in the table yet. NULL: no memory. */
struct target *targets__add(struct targets *ts, uint32_t pid);
/* Removes the target from the table and frees it. */
void targets__remove(struct targets *ts, struct target *t);
/* The first target; the next ones follow by hh.next. NULL: no target. */
struct target *targets__first(const struct targets *ts);
size_t targets__nr(const struct targets *ts);
/*
 * For a loop over all that begins with the one of this number, or the next after it: the first, and
 * what follows t. NULL: there is none (left). No target may be removed meanwhile.
 */
struct target *targets__from(const struct targets *ts, uint64_t number);
struct target *targets__round(const struct targets *ts, const struct target *t,
			      const struct target *first);
/*
 * For a loop over all of them that is tried again and again: is it its turn? Then not again until
 * 0.1 ms has passed for each target, since with thousands it takes most of a millisecond. *next_ns
 * is the loop's own, and 0 at first.
 */
bool targets__turn(const struct targets *ts, uint64_t *next_ns, uint64_t now_ns);
/* Loops over all targets; the body may remove the current one. */
#define TARGETS_EACH(ts, t, next) \
	for ((t) = targets__first(ts); (t) && ((next) = (t)->hh.next, 1); (t) = (next))

/*
 * Libraries were mapped or unmapped, or may have been. placed: the files that the process maps have
 * their probes.
 */
void target__maps_changed(struct target *t, uint64_t time_ns, bool placed);
/* Reads the process's mappings anew. */
int target__read_maps(struct target *t);
/*
 * A forked child's mappings begin as a copy of its parent's. They are taken over, since the child
 * may end before its own are read.
 */
void target__inherit_maps(struct target *child, const struct target *parent);
/* Forgets the mappings: the process runs another program. */
void target__forget_maps(struct target *t);
/* The mapping that holds an address, without reading mappings. NULL: not known. */
const struct proc_map *target__known_map(const struct target *t, uint64_t addr);
/*
 * The mapping that holds an address. Reads the mappings anew when none holds the address and they
 * are older than the record that the address is from. NULL: none.
 */
const struct proc_map *targets__map(struct targets *ts, struct target *t, uint64_t addr);
/* Sets the time of the record that is being handled. */
void targets__at(struct targets *ts, uint64_t record_ns);
/* The process is gone, or a zombie: nothing of it can be read any more. */
bool target__has_ended(const struct target *t);
/*
 * Reads the target's memory, unless too many of the addresses so far could not be read. As the
 * functions in symbol/python want it.
 */
int target__read(void *target, void *to, size_t bytes, uint64_t address);
/* The same for a string, as process_read_string(). */
int target__read_string(struct target *t, uint64_t address, char *to, size_t bytes);
/*
 * The first thread has ended, so that nothing of the process can be read in /proc/PID, though
 * others may live on.
 */
bool target__leader_ended(const struct target *t);
/*
 * The process is exiting and has given up its memory: whatever could not be found in it just now
 * may be missing for that reason.
 */
bool target__loses_memory(const struct target *t);

/* ---- threads ---- */

struct thread {
	UT_hash_handle hh;
	uint64_t pid_tgid;    /* PID << 32 | TID */
	uint32_t index;       /* in the capture, from 0 */
	uint32_t comm;        /* string id: the name that the kernel has for it (comm) */
	uint32_t given_name;  /* string id: the name that the program gave it for traces; 0: none */
	uint32_t python_name; /* string id: the name that Python has for it; 0: not known */
	int32_t ns_tid;       /* its TID in its own PID namespace; 0: not read yet */
	uint64_t start_ns;
	uint64_t gone_ns; /* when it was found to be no more, without a record; 0: it was not */
	struct target *target;
	struct span_thread *spans; /* open spans of the thread */
	uint64_t around;           /* see sequences__begun() */
	bool left; /* it counts as outside of annotations, until the next (session/within.c) */
	/*
	 * A function's entry that produced two records, begin and stack, of which only one has been
	 * read; all 0: none.
	 */
	struct thread_entry {
		uint64_t sp;
		uint32_t probe;
		uint32_t stack, weight;
		uint64_t span;
	} entry;
	/*
	 * The latest stacks with which it began to wait, and of who woke it, by time; they belong
	 * to a wait if the record of that comes. time_ns 0: none.
	 */
	struct thread_stack {
		uint64_t time_ns;
		uint32_t stack, flags; /* id; enum kprof_sample_flags */
	} wait_stack, waker_stack;
};

struct threads;

int threads__new(struct threads **out);
void threads__free(struct threads *ths);
struct thread *threads__find(struct threads *ths, uint64_t pid_tgid);
/* Adds a thread, with the next index. NULL: no memory. */
struct thread *threads__add(struct threads *ths, struct target *t, uint64_t pid_tgid);
/* Removes the thread from the table and frees it. */
void threads__remove(struct threads *ths, struct thread *th);
struct thread *threads__first(const struct threads *ths);
size_t threads__nr(const struct threads *ths);
/* How many threads have ever been added. */
uint32_t threads__nr_ever(const struct threads *ths);
#define THREADS_EACH(ths, th, next) \
	for ((th) = threads__first(ths); (th) && ((next) = (th)->hh.next, 1); (th) = (next))

#endif
