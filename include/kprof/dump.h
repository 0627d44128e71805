/* SPDX-License-Identifier: BSD-2-Clause */
/* What every thread of a process does now: a part of kprof.h, which includes it. */
#ifndef KPROF_DUMP_H
#define KPROF_DUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kprof_frame;

enum kprof_thread_state {
	KPROF_THREAD_RUNNING,  /* on a CPU */
	KPROF_THREAD_RUNNABLE, /* waits for a CPU */
	KPROF_THREAD_SLEEPING,
	KPROF_THREAD_BLOCKED, /* sleeps so that no signal wakes it: disk, memory */
	KPROF_THREAD_STOPPED, /* stopped by a signal or a debugger */
	KPROF_THREAD_EXITED,  /* the first thread, if it has exited and others go on */
};

struct kprof_dump_process {
	pid_t pid;
	const char *command; /* its arguments, joined by blanks */
	const char *python;  /* "3.11.2"; "" no interpreter could be read: then see note */
	const char *note;    /* what is missing in this process, and why; "" nothing */
	size_t nr_threads;
	uint64_t time_real_ns; /* when the process was read */
};

struct kprof_dump_thread {
	pid_t tid;
	const char *name;        /* the kernel's name of the thread */
	const char *python_name; /* name of its threading.Thread; "" none */
	enum kprof_thread_state state;
	const char *doing; /* for people, to follow the state: "in futex(0x7f12a4)"; "" */
	const char *call;  /* the system call that it is in; "" none */
	bool python;       /* whether the interpreter knows the thread */
	bool holds_gil, waits_gil;
	const struct kprof_frame *frames; /* innermost first */
	size_t nr_frames;
	const char *cut; /* why outer frames, or all of them, are missing; "" none are missing */
};

struct kprof_dump_opts {
	size_t sz;        /* sizeof(struct kprof_dump_opts), for compatibility */
	bool no_native;   /* only the Python frames of threads that the interpreter knows */
	bool no_python;   /* no Python frames, but the interpreter's own functions */
	bool kernel;      /* include the kernel's frames */
	bool no_lines;    /* no source lines and inlined functions of native code: faster */
	bool interpreter; /* include CPython's own C frames around Python's */
	uint64_t wait_ns; /* how long to try threads that keep running; 0: 500 ms */
};

/*
 * Calls fn with every thread's stack, in order of TID, native and Python frames merged. The process
 * is not stopped: stacks of threads that are off the CPU are read while the threads do not run; the
 * others are copied by the kernel at a tick of a timer. fn returns non-zero to stop; that value is
 * returned. Strings and frames are valid until fn returns.
 */
int kprof_dump(pid_t pid, const struct kprof_dump_opts *opts,
	       int (*fn)(void *ctx, const struct kprof_dump_process *p,
			 const struct kprof_dump_thread *t),
	       void *ctx);

#ifdef __cplusplus
}
#endif
#endif /* KPROF_DUMP_H */
