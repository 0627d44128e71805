/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The processes that a recording is about, and their threads: who they are and what they map. The
 * tables know nothing of probes, stacks or agents: each part of a recording keeps what it knows of
 * a process or a thread in a slot of its own.
 */
#ifndef KPROF_CAPTURE_TARGET_H
#define KPROF_CAPTURE_TARGET_H

/* Without memory an element stays outside the table, its hh.tbl NULL, instead of exit(). */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "capture/process/process.h"

struct span_thread;

#define TARGET_SLOTS 8

/* ---- processes ---- */

struct target {
	UT_hash_handle hh;
	uint32_t pid, ppid, ns_pid;
	bool child;         /* followed, not asked for */
	bool shares_memory; /* vfork: its parent's memory until it executes a program */
	bool forked;        /* its memory began as a copy of its parent's */
	bool ended;         /* does not live any more, though its exit was not reported yet */
	bool maps_dirty;    /* libraries have come or gone */
	uint64_t dirty_ns;  /* since when; 0: not dirty */
	uint64_t looked_ns; /* what was mapped then has its probes; 0: not looked yet */
	uint64_t start_ns, exit_ns;
	uint64_t start_ticks;   /* who it is, with the pid; 0: not known */
	uint32_t comm, cmdline; /* string ids in the capture */
	struct proc_maps *maps; /* NULL: not read yet, or not readable */
	char *exe;              /* the program among them; NULL: not known */
	uint64_t maps_ns;       /* when they were read */
	void *slot[TARGET_SLOTS];
};

struct targets;

int targets__new(struct targets **out);
/* Their slots must be empty by then. NULL is fine. */
void targets__free(struct targets *ts);
/* A slot for the caller alone, in each process. There are TARGET_SLOTS of them. */
uint32_t targets__slot(struct targets *ts);
struct target *targets__find(const struct targets *ts, uint32_t pid);
/* NULL: no memory. It must not be there yet. */
struct target *targets__add(struct targets *ts, uint32_t pid);
/* Frees it. */
void targets__remove(struct targets *ts, struct target *t);
/* The first one; the others follow by hh.next. NULL: there is none. */
struct target *targets__first(const struct targets *ts);
size_t targets__nr(const struct targets *ts);
/* For a loop whose body may remove the current one. */
#define TARGETS_EACH(ts, t, next) \
	for ((t) = targets__first(ts); (t) && ((next) = (t)->hh.next, 1); (t) = (next))

/* Reads its mappings anew. */
int target__read_maps(struct target *t);
/* Forgets them: the process runs another program. */
void target__forget_maps(struct target *t);
/* The mapping that holds an address, as far as is known; NULL. */
const struct proc_map *targets__known_map(const struct targets *ts, const struct target *t,
					  uint64_t addr);
/*
 * The same, with the mappings read anew when the address is in none of them, and they are older
 * than the record that the address is from.
 */
const struct proc_map *targets__map(struct targets *ts, struct target *t, uint64_t addr);
/* The time of the record that is looked at now. */
void targets__at(struct targets *ts, uint64_t record_ns);
/* It is gone, or a zombie: nothing of it can be read any more. */
bool target__has_ended(const struct target *t);
/* It is on its way out: what could not be found in it just now may be missing for that reason. */
bool target__loses_memory(const struct target *t);

/* ---- threads ---- */

struct thread {
	UT_hash_handle hh;
	uint64_t pid_tgid;    /* process << 32 | thread */
	uint32_t index;       /* in the capture, from 0 */
	uint32_t comm;        /* string ids: the kernel's name for it … */
	uint32_t given_name;  /* … what the program calls it in traces; 0: nothing */
	uint32_t python_name; /* … what Python calls it; 0: not known */
	int32_t ns_tid;       /* its number in its own PID namespace; 0: not looked yet */
	uint64_t start_ns;
	struct target *target;
	struct span_thread *spans; /* its open spans */
	/* An entry of which only one of its two records, begin and stack, has come; all 0: none. */
	struct thread_entry {
		uint64_t sp;
		uint32_t probe;
		uint32_t stack, weight;
		uint64_t span;
	} entry;
};

struct threads;

int threads__new(struct threads **out);
void threads__free(struct threads *ths);
struct thread *threads__find(struct threads *ths, uint64_t pid_tgid);
/* NULL: no memory. It gets the next index. */
struct thread *threads__add(struct threads *ths, struct target *t, uint64_t pid_tgid);
/* Frees it. */
void threads__remove(struct threads *ths, struct thread *th);
struct thread *threads__first(const struct threads *ths);
/* Threads that have ever been added. */
uint32_t threads__nr_ever(const struct threads *ths);
#define THREADS_EACH(ths, th, next) \
	for ((th) = threads__first(ths); (th) && ((next) = (th)->hh.next, 1); (th) = (next))

#endif
