/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of kprof_dump(): dump.c opens a process and reports its threads; take.c gets the stack
 * of each thread, while the thread is off the CPU or as it was at a timer's tick; python.c walks
 * Python frames; frames.c gives names to frames; state.c describes in words what a thread does.
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
	DUMP_TAKEN,   /* its stack was read while the thread did not run */
	DUMP_CAUGHT,  /* its stack was copied at a timer's tick */
	DUMP_WITHOUT, /* it has no stack, for the reason in .why */
	DUMP_GONE,
};

struct dump_thread {
	pid_t tid;
	char name[PROC_COMM_BYTES];
	enum dump_status status;
	struct kprof_task task;    /* registers and state that belong to the stack */
	char why[DUMP_TEXT_BYTES]; /* why the stack is missing or incomplete; "": it is complete */
	struct walk_frame *native;
	size_t nr_native;
	struct walk_end end;
	struct kprof_python_frame *python;
	size_t nr_python;
	uint32_t python_flags; /* enum kprof_python_walk_flags */
	/* Used while the stack is being taken. */
	bool seen; /* the thread was in the latest reading of registers */
	/* a stack was read, but it is not yet proven that the thread did not run meanwhile */
	bool copied;
	struct kprof_task_running *caught; /* copy of a running thread, which is not walked yet */
};

struct dump_process {
	pid_t pid;
	pid_t alive; /* a thread that lives: its entry in /proc shows the memory */
	const struct kprof_dump_opts *opts;
	struct dump_tasks *tasks;
	struct modules *modules;
	struct address_space *space;
	struct proc_maps *maps; /* its mappings, which tell where stacks end */
	/* Its interpreter; python_elf NULL: it has none that kprof knows. */
	struct python_elf *python_elf;
	struct module *python_module;
	struct kprof_python python;
	char python_note[DUMP_TEXT_BYTES];       /* why there are no Python frames; "" */
	struct python_thread_name *thread_names; /* the names that Python has for its threads */
	size_t nr_thread_names;
	struct dump_thread *threads; /* by tid */
	size_t nr_threads, cap_threads;
	/* Used while stacks are taken. */
	uint8_t *stack;            /* DUMP_STACK_BYTES: copy of the stack of the current thread */
	struct walk_frame *frames; /* DUMP_MAX_FRAMES: frames of the current thread */
	size_t batch;
	unsigned int refreshes;
	/* ns spent on building tables, which does not count as time spent waiting */
	uint64_t built_ns;
};

/* take.c: fills p->threads. -ESRCH: the process is gone. */
int dump_take(struct dump_process *p);
void dump_free_threads(struct dump_process *p);

/* python.c */
int dump_find_python(struct dump_process *p);
/* Reads the names that Python has for its threads. It is no error if there are none. */
void dump_name_threads(struct dump_process *p);
/* Walks the Python frames of a thread that is off the CPU. */
int dump_walk_python(struct dump_process *p, struct dump_thread *t);
/* Takes the Python frames that a walk in the kernel has found. */
int dump_keep_python(struct dump_thread *t, const struct kprof_python_walk *w);
int dump_read_memory(void *ctx, void *to, size_t bytes, uint64_t address);
/* The area of code that holds the address, and its mapping (may be NULL); NULL: there is none. */
const struct code_area *dump_area(const struct dump_process *p, uint64_t address,
				  const struct kprof_unwind_mapping **mapping);

/* frames.c: names for the frames of all threads. Of the process only code objects are read. */
struct dump_names;
int dump_names__new(struct dump_process *p, struct dump_names **out);
void dump_names__free(struct dump_names *n);
/* Frames of the thread with this index, innermost first. They are owned by n. */
const struct kprof_frame *dump_names__frames(const struct dump_names *n, size_t thread, size_t *nr);

/* state.c */
enum kprof_thread_state dump_state(const struct dump_thread *t);
/* What the thread does, such as "waits in futex(0x7f…)"; "": nothing to say. */
void dump_doing(const struct dump_thread *t, char text[DUMP_TEXT_BYTES]);
/* Name of the system call that the thread is in; NULL: none. */
const char *dump_call(const struct dump_thread *t);
/* Why a walk ended, as a sentence; "": it reached the root. */
void dump_end_text(const struct dump_process *p, const struct walk_end *end, uint64_t ip,
		   char text[DUMP_TEXT_BYTES]);

#endif
