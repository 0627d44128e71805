/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the injection share; for inject*.c and their tests only. */
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

/* ---- check.c: the process ---- */

/* A file of the target that the decisions are made with. */
struct inject_file {
	struct elffile *elf; /* NULL: not mapped */
	uint64_t base;       /* address - vaddr */
	uint64_t start, end; /* addresses from its first to its last mapping */
};

#define INJECT_IDENTITY_BYTES 16

struct inject_target {
	pid_t pid;
	struct proc_info info;
	struct proc_maps *maps; /* of the last inject_target__refresh() */
	struct inject_file exe, libc, libdl, libpthread, ld;
	bool exe_allocates; /* the program brings its own malloc */
	/* Changed by every exec: the random bytes that the kernel gives a program. */
	uint64_t identity_address;
	uint8_t identity[INJECT_IDENTITY_BYTES];
	/* In the target. */
	uint64_t syscall_ret, restore_rt; /* `syscall; ret`, and what ends a signal handler */
	uint64_t dlopen, dlsym, dlclose, dlerror; /* dlerror 0: there is none */
	uint64_t errno_location;
	int dlopen_flags;
	uint64_t start; /* kprof_agent_start() of an agent that is loaded already; 0: none is */
	bool seccomp;   /* a filter is installed */
};

/*
 * Finds out, without touching the process, whether it can be done, and all addresses. Error text
 * set.
 */
int inject_target__open(pid_t pid, struct inject_target *t);
/* Reads the maps again, and whether it is still the same program. */
int inject_target__refresh(struct inject_target *t);
bool inject_target__same_program(const struct inject_target *t);
void inject_target__close(struct inject_target *t);

/* ---- remote.c: one stopped thread ---- */

/*
 * A thread that is held by ptrace. From remote__hijack() on it has, below its stack, a signal frame
 * that restores it; whatever it is made to do ends by returning into that frame, whether somebody
 * looks or not.
 */
struct remote {
	pid_t pid, tid;
	bool seized, stopped;
	bool hijacked;                /* registers are not its own */
	bool gone;                    /* ended or executed something: nothing to restore */
	struct user_regs_struct regs; /* its own, as it was stopped */
	uint64_t restart_nr; /* the interrupted system call, to make it again from its start */
	uint64_t mask;       /* its own blocked signals */
	uint8_t *xstate;     /* its own vector and floating-point state, as XSAVE writes it */
	size_t xstate_bytes;
	uint64_t chain;     /* address of the signal frame on its stack */
	uint64_t text;      /* address of INJECT_TEXT_BYTES for strings above it */
	uint64_t held_from; /* CLOCK_MONOTONIC, ns */
	uint64_t held_ns;
	int stop_signal; /* that arrived meanwhile, to be sent again afterwards */
};

#define INJECT_TEXT_BYTES 64

/*
 * Stops one thread; nothing but a system call restarted by the kernel remains of it. -EAGAIN: it
 * did not stop.
 */
int remote__stop(struct remote *r, pid_t pid, pid_t tid);
/*
 * Writes the frame and the string; no register is changed yet. `why` says what is wrong with its
 * stack (-EAGAIN).
 */
int remote__hijack(struct remote *r, const struct inject_target *t, const char *text,
		   const char **why);
/* A system call by the thread. The thread is stopped after it; *result is negative on failure. */
int remote__syscall(struct remote *r, const struct inject_target *t, long nr,
		    const uint64_t args[6], int64_t *result);
/*
 * Lets the thread run from `entry` with rbx = arg on another stack, until *done (in the target) is
 * not 0.
 */
int remote__run(struct remote *r, uint64_t entry, uint64_t stack, uint64_t arg, uint64_t done);
/*
 * Everything as it was, and the thread goes on. Also after failures, at any point. False: it did
 * not stop and cannot be let go of; the kernel does that when the calling thread ends.
 */
bool remote__release(struct remote *r);

int remote_read(pid_t pid, uint64_t address, void *to, size_t bytes);
int remote_write(pid_t pid, uint64_t address, const void *from, size_t bytes);
/* The stopped thread is in a system call that the kernel would restart. */
bool remote__in_syscall(const struct remote *r);

/* ---- frame.c ---- */

/* Bytes of `xstate` that its features need, header included; *features as in a signal frame. */
size_t inject_xstate_bytes(const uint8_t *xstate, size_t bytes, uint64_t *features);
#define INJECT_RED_ZONE 128
#define INJECT_FRAME_MAX_BYTES (32 * 1024)
/*
 * The frame for a thread with these registers: *chain is the address of its first byte, which is to
 * be in the stack pointer when something "returns" into it. out has room for
 * INJECT_FRAME_MAX_BYTES. Returns its size, or -E2BIG.
 */
int inject_frame_build(const struct remote *r, uint64_t restore_rt, const char *text, uint8_t *out,
		       uint64_t *chain, uint64_t *text_at);

/* ---- stub.c: what the thread runs ---- */

#define INJECT_STUB_MAGIC 0x4253504bu /* "KPSB" */
#define INJECT_STUB_STACK_BYTES (256u * 1024)
#define INJECT_STUB_PAGE 4096u
#define INJECT_REGION_BYTES (2 * INJECT_STUB_PAGE + INJECT_STUB_STACK_BYTES)

enum inject_stub_state {
	INJECT_STUB_PREPARED = 0,
	INJECT_STUB_ENTERED = 1,
	INJECT_STUB_DONE = 2,
};

enum inject_stub_step {
	INJECT_STUB_DLOPEN = 0,
	INJECT_STUB_DLSYM = 1,
	INJECT_STUB_START = 2,
	INJECT_STUB_COMPLETE = 3,
};

/* In the last page of the region: code, stack, this. Offsets are known to the assembler part. */
struct inject_stub_data {
	uint32_t magic;
	uint32_t state; /* enum inject_stub_state */
	uint32_t mxcsr;
	uint32_t step;  /* enum inject_stub_step: the last one begun, or COMPLETE */
	int32_t result; /* of kprof_agent_start() */
	int32_t fd;     /* to close; -1: none */
	uint64_t errno_location, dlopen, dlsym, dlclose, dlerror, start;
	uint64_t flags;
	uint64_t region, region_bytes; /* to unmap */
	uint64_t syscall_ret, chain;
	uint64_t handle;
	char path[64];
	char symbol[64];
	char error[256];          /* the loader's words */
	struct timespec patience; /* for the tracer, when all is done */
	int32_t pid, tid;         /* whose it is: a forked child has a copy */
};

/* Where the stub waits for its tracer before it goes on alone, from the region's start. */
bool inject_stub_waits_at(uint64_t offset);
const void *inject_stub_code(size_t *bytes);

/* ---- leftovers.c ---- */

#define INJECT_LEFTOVERS_MAX 32

/* What injectors that were killed have left in a process: mappings and memfds that nothing uses. */
struct inject_leftovers {
	uint64_t since_ns; /* when the first was seen */
	uint64_t regions[INJECT_LEFTOVERS_MAX];
	size_t nr_regions;
	int fds[INJECT_LEFTOVERS_MAX];
	size_t nr_fds;
};

/* The descriptor is of a memfd that the library was, or is to be, loaded from. */
bool inject_is_memfd(pid_t pid, int fd);
/* -EAGAIN: one is still in use, or may be. */
int inject_leftovers__find(struct inject_leftovers *l, const struct inject_target *t);
int inject_leftovers__undo(const struct inject_leftovers *l, const struct inject_target *t,
			   struct remote *r);

/* ---- load.c ---- */

struct inject_library {
	char *data;
	size_t bytes;
};

/*
 * Everything that the thread is to do once remote__hijack() has prepared it. 0, or an error.
 * -EAGAIN: how it went is not known, another look will show. The thread is left stopped, unless it
 * goes on alone; what was made in the process is removed again, here or by that thread.
 */
int inject_load(const struct inject_target *t, const struct inject_library *l,
		const struct inject_leftovers *leftovers, struct remote *r);

/* ---- safe.c, stack.c ---- */

struct inject_frame_pc {
	uint64_t pc; /* of the call, for callers: return address - 1 */
	bool signal; /* interrupted by a signal handler */
};

#define INJECT_MAX_FRAMES 256

struct inject_stack {
	struct inject_frame_pc frames[INJECT_MAX_FRAMES];
	size_t nr;
	bool whole;         /* the walk came to the thread's outermost frame */
	bool table_missing; /* it ended where it did because a table is not built yet */
	uint64_t reached;   /* stack pointer of the last frame, where it is not whole */
};

/*
 * The unwind tables of the files that a process maps, for all its threads and for as long as is
 * tried.
 */
struct inject_walker;
int inject_walker__new(pid_t pid, struct inject_walker **out);
void inject_walker__free(struct inject_walker *w);
/* Reads the mappings again. Before anything else below; no thread is to be held. */
int inject_walker__refresh(struct inject_walker *w);
/*
 * Builds the tables that a walk from here may need, so far as that can be known while the thread
 * runs. No thread is to be held: it takes up to a second where nothing is cached. True: one was
 * built.
 */
bool inject_walker__prepare(struct inject_walker *w, uint64_t ip, uint64_t sp);
/*
 * True: the last walk ended for want of a table, which is built now. Not while the thread is held.
 */
bool inject_walker__prepare_missing(struct inject_walker *w);
void inject_walker__walk(struct inject_walker *w, const struct user_regs_struct *regs,
			 struct inject_stack *out);

/* 0: the stopped thread may be used. -EAGAIN: not now, *why. */
int inject_safe(const struct inject_target *t, struct inject_walker *w, const struct remote *r,
		char *why, size_t bytes);

struct inject_candidate {
	pid_t tid;
	int rank;        /* smaller is better */
	uint64_t ip, sp; /* where it waits; 0: it runs */
};
/* Threads in the order in which they are to be tried; *out is malloc'ed. */
int inject_candidates(const struct inject_target *t, struct inject_candidate **out, size_t *nr);

/* ---- loader.c ---- */

/*
 * No thread of the target's is loading a library, now or at one of so many looks, some 20 µs and
 * more from each other.
 */
bool inject_loader_gets_free(const struct inject_target *t, unsigned int looks);

/* ---- seccomp.c ---- */

/* 0: the stopped thread's filters let every system call pass that will be made; error text set. */
int inject_seccomp(const struct inject_target *t, const struct remote *r);

/*
 * What a filter (classic BPF) says to a system call: SECCOMP_RET_*; broken filters kill. For tests.
 */
struct sock_filter;
struct seccomp_data;
uint32_t inject_seccomp_run(const struct sock_filter *code, size_t nr,
			    const struct seccomp_data *data);

#endif
