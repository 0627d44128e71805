/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * kprof_dump(): dump.c goes through processes and hands threads over; take.c gets each
 * thread's stack while it lies still, or as it was at a tick; python.c walks Python;
 * frames.c gives names; state.c says in words what a thread does.
 */
#ifndef KPROF_CAPTURE_DUMP_PRIV_H
#define KPROF_CAPTURE_DUMP_PRIV_H

#include "capture/dump/tasks.h"
#include "capture/process/process.h"
#include "capture/unwind/unwind.h"
#include "kprof.h"
#include "symbol/python/python.h"

#define DUMP_MAX_FRAMES 4096
#define DUMP_TEXT_BYTES 256

enum dump_status {
	DUMP_WAITS,   /* its stack is not known yet */
	DUMP_TAKEN,   /* as it is while it does not run */
	DUMP_CAUGHT,  /* as it was at a tick */
	DUMP_WITHOUT, /* it has none: .why */
	DUMP_GONE,
};

struct dump_thread {
	pid_t tid;
	char name[PROC_COMM_BYTES];
	enum dump_status status;
	struct kprof_task task;    /* that the stack belongs to */
	char why[DUMP_TEXT_BYTES]; /* there is no stack, or not all of it; "" whole */
	struct walk_frame *native;
	size_t nr_native;
	struct walk_end end;
	struct kprof_python_frame *python;
	size_t nr_python;
	uint32_t python_flags; /* enum kprof_python_walk_flags */
	/* While it is tried. */
	bool seen;   /* in this round's reading */
	bool copied; /* what is here waits for the proof that it did not run meanwhile */
	struct kprof_task_running *caught; /* a copy that waits for tables */
};

struct dump_process {
	pid_t pid;
	pid_t alive; /* a thread of it that lives: where its memory is seen */
	const struct kprof_dump_opts *opts;
	struct dump_tasks *tasks;
	struct modules *modules;
	struct address_space *space;
	struct proc_maps *maps; /* where stacks end */
	/* Its interpreter; elf NULL: none that is known. */
	struct python_elf *python_elf;
	struct module *python_module;
	struct kprof_python python;
	char python_note[DUMP_TEXT_BYTES];       /* why there are no Python frames; "" */
	struct python_thread_name *thread_names; /* what Python calls its threads */
	size_t nr_thread_names;
	struct dump_thread *threads; /* by tid */
	size_t nr_threads, cap_threads;
	/* While stacks are taken. */
	uint8_t *stack; /* DUMP_STACK_BYTES: the copy of the thread that is being taken */
	struct walk_frame *frames; /* DUMP_MAX_FRAMES: its walk */
	size_t batch;
	unsigned int refreshes;
	uint64_t built_ns; /* spent on tables: does not count as waiting */
};

/* take.c: fills threads; -ESRCH: the process is gone. */
int dump_take(struct dump_process *p);
void dump_free_threads(struct dump_process *p);

/* python.c */
int dump_find_python(struct dump_process *p);
/* Without names it goes on. */
void dump_name_threads(struct dump_process *p);
/* The frames of a thread whose stack lies still. */
int dump_walk_python(struct dump_process *p, struct dump_thread *t);
/* … and those that a walk in the kernel has found. */
int dump_keep_python(struct dump_thread *t, const struct kprof_python_walk *w);
int dump_read_memory(void *ctx, void *to, size_t bytes, uint64_t address);

/*
 * frames.c: names for all threads' frames; nothing of the process is read but its code
 * objects.
 */
struct dump_names;
int dump_names__new(struct dump_process *p, struct dump_names **out);
void dump_names__free(struct dump_names *n);
/* The i-th thread's, innermost first; they belong to n. */
const struct kprof_frame *dump_names__frames(const struct dump_names *n, size_t thread, size_t *nr);

/* state.c */
enum kprof_thread_state dump_state(const struct dump_thread *t);
/* "waits in futex(0x7f…)"; "" nothing to say. */
void dump_doing(const struct dump_thread *t, char text[DUMP_TEXT_BYTES]);
/* The system call that it is in; NULL: none. */
const char *dump_call(const struct dump_thread *t);
/* Why a walk ended, as a sentence; "" at the root. */
void dump_end_text(const struct dump_process *p, const struct walk_end *end, uint64_t ip,
		   char text[DUMP_TEXT_BYTES]);

#endif
