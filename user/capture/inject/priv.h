/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of this room, and their tests, only. */
#ifndef KPROF_CAPTURE_INJECT_PRIV_H
#define KPROF_CAPTURE_INJECT_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>
#include <time.h>

#include "capture/process/process.h"
#include "symbol/elf/elf.h"
#include "util/map64.h"

#define NO_AGENT_HINT "--no-agent records the calls of the device's API without it"

/* ---- check.c: the process ---- */

/* A file of the target that is looked at. */
struct inject_file {
	struct elffile *elf; /* NULL: not mapped */
	uint64_t base;       /* address - vaddr */
	/* addresses from the begin of its first mapping to the end of its last */
	uint64_t start, end;
};

#define INJECT_IDENTITY_BYTES 16
#define INJECT_SYSCALL_RET "\x0f\x05\xc3" /* syscall; ret */

struct inject_target {
	pid_t pid;
	struct proc_info info;
	struct proc_maps *maps; /* as read by the last inject_target__refresh() */
	struct inject_file exe, libc, libdl, libpthread, ld;
	uint64_t exe_inode;
	bool exe_allocates;        /* the program brings its own malloc */
	struct map64 code_of_file; /* see code.c */
	/* Identifies the program that runs: the random bytes that the kernel gives at each exec. */
	uint64_t identity_address;
	uint8_t identity[INJECT_IDENTITY_BYTES];
	/* Addresses in the target. */
	/* the instructions `syscall; ret`, and those that end a signal handler */
	uint64_t syscall_ret, restore_rt;
	uint64_t dlopen, dlsym, dlclose, dlerror; /* dlerror is 0 where there is none */
	uint64_t errno_location;
	uint64_t thread_create, thread_detach;
	int dlopen_flags;
	/* address of kprof_agent_start() in an agent that is loaded already; 0: there is none */
	uint64_t start;
	bool seccomp; /* a seccomp filter is installed */
};

/*
 * Finds out, without touching the process, whether the agent can be injected, and all addresses.
 * Sets the error on failure.
 */
int inject_target__open(pid_t pid, struct inject_target *t);
/* Reads the mappings again, and checks that the process still runs the same program. */
int inject_target__refresh(struct inject_target *t);
bool inject_target__same_program(const struct inject_target *t);
void inject_target__close(struct inject_target *t);

/* ---- code.c: what code is ---- */

enum inject_code {
	INJECT_CODE_OTHER = 1, /* a library or the program */
	INJECT_CODE_LIBC,
	INJECT_CODE_LOADER,
	INJECT_CODE_ALLOCATOR,
	INJECT_CODE_UNWINDER, /* libgcc_s: it has a lock that loading a library takes */
	INJECT_CODE_UNKNOWN,  /* in no file, or in one that is not understood: JIT code */
	INJECT_CODE_NR
};

/* Looks at the files that were mapped since the last time. Sets the error. */
int inject_code__learn(struct inject_target *t);
enum inject_code inject_code_at(const struct inject_target *t, uint64_t pc);

/* ---- remote.c: one stopped thread ---- */

#define SYSCALL_BYTES 2 /* of the instruction */

/*
 * A thread that is held by ptrace. From remote__hijack() on, there is a signal frame below its
 * stack that restores it. Whatever the thread is made to do ends by returning into that frame, even
 * if kprof has ended.
 */
struct remote {
	pid_t pid, tid;
	bool seized, stopped;
	bool hijacked; /* the thread's registers are not its own */
	/* it did not come back in time from what it was made to do */
	bool lost;
	/* the thread has ended, or executed a program: there is nothing to restore */
	bool gone;
	struct user_regs_struct regs; /* its own registers, as it was stopped */
	/* number of the interrupted system call, to restart it from its begin */
	uint64_t restart_nr;
	uint64_t stub;   /* address of the stub that it runs; 0: of none */
	uint64_t mask;   /* its own blocked signals */
	uint8_t *xstate; /* its own vector and floating-point state, as XSAVE writes it */
	size_t xstate_bytes;
	uint64_t chain;       /* address of the signal frame below its stack */
	uint64_t text;        /* address of INJECT_TEXT_BYTES bytes for strings, above the frame */
	uint64_t restore_rt;  /* of struct inject_target */
	uint64_t held_from;   /* CLOCK_MONOTONIC, ns */
	uint64_t deadline_ns; /* of everything for which the thread is held, together */
	uint64_t held_ns;
	int stop_signal; /* a stop signal that arrived meanwhile, to be sent again afterwards */
};

#define INJECT_TEXT_BYTES 64
#define INJECT_SIGNAL_SETXID 33 /* glibc's SIGSETXID, nptl/internaltypes.h */

/*
 * Stops one thread. When it is released again, all that remains of the stop is that the kernel has
 * restarted a system call. -EAGAIN: it did not stop.
 */
int remote__stop(struct remote *r, pid_t pid, pid_t tid);
/*
 * Writes the frame and the string; no register is changed yet. -EAGAIN: `why` says what is wrong
 * with the thread's stack.
 */
int remote__hijack(struct remote *r, const struct inject_target *t, const char *text,
		   const char **why);
/*
 * Makes the thread do a system call, after which it is stopped again. *result is negative if the
 * call failed. -EPROTO: the thread did something else. -EDEADLK: it does not come back.
 */
int remote__syscall(struct remote *r, const struct inject_target *t, long nr,
		    const uint64_t args[6], int64_t *result);
/*
 * Lets the thread run from `entry` on another stack with rbx = arg, until the word at `done` in the
 * target says that the stub is done. -EDEADLK: it does not come back.
 */
int remote__run(struct remote *r, uint64_t entry, uint64_t stack, uint64_t arg, uint64_t done);
/*
 * Restores everything, and lets the thread go on. May be called at any point, also after failures:
 * a thread that does not come back is taken out of what it was made to do, wherever it is.
 * False: the thread did not stop and cannot be released; the kernel does that when the calling
 * thread ends.
 */
bool remote__release(struct remote *r);

/* state.c: the thread has just been stopped; reads its own state. -errno. */
int remote_save(struct remote *r);
int remote_write(pid_t pid, uint64_t address, const void *from, size_t bytes);
/*
 * Does this system call end with EINTR when its thread is stopped, handler or not (signal(7))? All
 * that do can be made again.
 */
bool inject_call_ends_when_stopped(uint64_t nr);
/* Is the stopped thread in a system call that the kernel would restart? */
bool remote__in_syscall(const struct remote *r);

/* ---- frame.c ---- */

/*
 * Bytes of `xstate` that its features need, including the header; *features as in a signal frame.
 */
size_t inject_xstate_bytes(const uint8_t *xstate, size_t bytes, uint64_t *features);
#define INJECT_RED_ZONE 128
#define INJECT_FRAME_MAX_BYTES (32 * 1024)
/*
 * Builds the signal frame for a thread with these registers. *chain is the address of its first
 * byte, which must be in the stack pointer when a `ret` enters the frame. out has room for
 * INJECT_FRAME_MAX_BYTES. Returns its size, or -E2BIG.
 */
int inject_frame_build(const struct remote *r, uint64_t restore_rt, const char *text, uint8_t *out,
		       uint64_t *chain, uint64_t *text_at);

/* ---- stub.c: the code that runs in the target ---- */

#define INJECT_STUB_STACK_BYTES (256u * 1024)
#define INJECT_PAGE 4096u
/*
 * The region, as it lies in the memfd after the library: the stub's code, its stack, struct
 * inject_stub_data; then struct inject_task_data, and the task's code. It is mapped shared, so that
 * kprof can read from the file how it went, whatever is mapped still.
 */
#define INJECT_STUB_BYTES (2 * INJECT_PAGE + INJECT_STUB_STACK_BYTES)
#define INJECT_TASK_BYTES (2 * INJECT_PAGE)
#define INJECT_REGION_BYTES (INJECT_STUB_BYTES + INJECT_TASK_BYTES)
#define INJECT_STUB_DATA (INJECT_STUB_BYTES - INJECT_PAGE)
#define INJECT_TASK_DATA INJECT_STUB_BYTES
#define INJECT_TASK_CODE (INJECT_STUB_BYTES + INJECT_PAGE)

enum inject_state {
	INJECT_PREPARED = 0,
	INJECT_ENTERED = 1,
	INJECT_DONE = 2,
	INJECT_LOST = 3, /* of the stub: its thread did not come back, and was put back by kprof */
};

enum inject_step {
	INJECT_STEP_DLOPEN = 0,
	INJECT_STEP_DLSYM = 1,
	INJECT_STEP_START = 2,
	INJECT_STEP_COMPLETE = 3,
};

struct inject_stub_data {
	uint32_t state; /* enum inject_state */
	uint32_t mxcsr;
	int32_t result; /* what pthread_create() returned */
	/* the thread that runs the stub: a forked child has a copy of the mapping */
	int32_t pid, tid;
	uint64_t errno_location;
	uint64_t thread_create;
	uint64_t thread; /* pthread_t */
	/* signals that the thread blocks: all; and while it makes a thread: all but SIGSETXID */
	uint64_t blocked, blocked_in_create;
	uint64_t task, task_data;
	uint64_t region, region_bytes; /* memory to unmap */
	uint64_t syscall_ret, chain;
	struct timespec patience; /* how long to wait for the tracer when all is done */
};

struct inject_task_data {
	/* enum inject_state; ENTERED is set by the stub already, for the task may begin late */
	uint32_t state;
	uint32_t step;  /* enum inject_step: the last step that was begun, or COMPLETE */
	int32_t result; /* what kprof_agent_start() returned */
	int32_t fd;     /* descriptor to close */
	int32_t pid;
	uint64_t dlopen, dlsym, dlclose, dlerror, start;
	uint64_t flags;
	uint64_t thread_detach;
	uint64_t region, region_bytes, syscall_ret;
	uint64_t handle;
	char name[16]; /* of the thread */
	char path[64];
	char symbol[64];
	char error[256]; /* error text of the loader */
};

/* Is this offset, from the region's start, the place where the stub waits for its tracer? */
bool inject_stub_waits_at(uint64_t offset);
const void *inject_stub_code(size_t *bytes);
const void *inject_task_code(size_t *bytes);

/* ---- leftovers.c ---- */

#define INJECT_LEFTOVERS_MAX 32

/* Unused mappings and memfds that killed injectors have left in a process. */
struct inject_leftovers {
	uint64_t since_ns; /* when the first of them was seen */
	struct {
		uint64_t start, end;
	} areas[INJECT_LEFTOVERS_MAX];
	size_t nr_areas;
	int fds[INJECT_LEFTOVERS_MAX];
	size_t nr_fds;
};

/* Is the descriptor that of a memfd from which the library was loaded, or is to be? */
bool inject_is_memfd(pid_t pid, int fd);
/*
 * Finds them. -EAGAIN: one is still in use, or may be. -EDEADLK: a thread was lost in an earlier
 * attempt; the error is set.
 */
int inject_leftovers__find(struct inject_leftovers *l, const struct inject_target *t);
int inject_leftovers__undo(const struct inject_leftovers *l, const struct inject_target *t,
			   struct remote *r);

/* ---- load.c ---- */

struct inject_library {
	char *data;
	size_t bytes;
};

/* What was begun in the target, and goes on there when the borrowed thread is back. */
struct inject_task {
	int fd;           /* kprof's descriptor of the memfd; -1: nothing was begun */
	uint64_t data_at; /* offset in the memfd of struct inject_task_data */
	uint64_t region;  /* its address in the target */
};

/*
 * Makes the thread do all that it is borrowed for, once remote__hijack() has prepared it. Returns 0
 * or an error. The thread is left stopped, unless it goes on alone. After an error, all that was
 * made in the process is removed again, here or by that thread.
 */
int inject_load(const struct inject_target *t, const struct inject_library *l,
		const struct inject_leftovers *leftovers, struct remote *r,
		struct inject_task *task);
/*
 * To be called when no thread is held any more: waits until the library is loaded and started.
 * -ETIMEDOUT: that goes on by itself.
 */
int inject_task__wait(const struct inject_target *t, struct inject_task *task,
		      uint64_t deadline_ns);

/* ---- safe.c, stack.c ---- */

struct inject_frame_pc {
	/* address of the instruction; for callers that of the call: return address - 1 */
	uint64_t pc;
	bool signal; /* the frame was interrupted by a signal */
};

#define INJECT_MAX_FRAMES 256

struct inject_stack {
	struct inject_frame_pc frames[INJECT_MAX_FRAMES];
	size_t nr;
	bool whole;         /* the walk has reached the thread's outermost frame */
	bool table_missing; /* the walk has ended early because a table is not built yet */
	uint64_t reached;   /* stack pointer of the last frame, if the walk is not whole */
};

/*
 * The unwind tables of the files that a process maps. Kept for all its threads until the injection
 * ends.
 */
struct inject_walker;
int inject_walker__new(pid_t pid, struct inject_walker **out);
void inject_walker__free(struct inject_walker *w);
/* Reads the mappings again. To be called before the functions below, while no thread is held. */
int inject_walker__refresh(struct inject_walker *w);
/*
 * Builds the tables that a walk from here may need, as far as that is known while the thread runs.
 * To be called while no thread is held, since it takes up to a second if nothing is cached. True: a
 * table was built.
 */
bool inject_walker__prepare(struct inject_walker *w, uint64_t ip, uint64_t sp);
/*
 * The same for a thread that is running: it may be anywhere by the time it stops. Builds the tables
 * of the smaller files, such as the C library: most programs are in one of them then.
 */
void inject_walker__prepare_small(struct inject_walker *w);
/*
 * Builds the table that the last walk lacked. True: there was one. Not to be called while a thread
 * is held.
 */
bool inject_walker__prepare_missing(struct inject_walker *w);
void inject_walker__walk(struct inject_walker *w, const struct user_regs_struct *regs,
			 struct inject_stack *out);

/* 0: the stopped thread may be used. -EAGAIN: not now, for the reason in `why`. */
int inject_safe(const struct inject_target *t, struct inject_walker *w, const struct remote *r,
		char *why, size_t bytes);

struct inject_candidate {
	pid_t tid;
	int rank;        /* smaller is better */
	uint64_t ip, sp; /* where the thread waits; 0: it runs */
};
/* The threads, in the order in which to try them; *out is malloc'ed. */
int inject_candidates(const struct inject_target *t, struct inject_candidate **out, size_t *nr);

/* ---- loader.c ---- */

/*
 * True as soon as no thread of the target is loading a library. Looks at most `looks` times, at
 * least 20 µs apart.
 */
bool inject_loader_gets_free(const struct inject_target *t, unsigned int looks);

/* ---- seccomp.c ---- */

/*
 * 0: the filters of the stopped thread allow all system calls that will be made. Else an error is
 * set.
 */
int inject_seccomp(const struct inject_target *t, const struct remote *r);

/*
 * The answer of a filter (classic BPF) to a system call: SECCOMP_RET_*. Invalid filters kill. For
 * tests.
 */
struct sock_filter;
struct seccomp_data;
uint32_t inject_seccomp_run(const struct sock_filter *code, size_t nr,
			    const struct seccomp_data *data);

#endif
