/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What bpf/waits.bpf.c keeps of each thread that it watches, and tells user space at the end of a
 * wait.
 */
#ifndef KPROF_WAIT_H
#define KPROF_WAIT_H

#include "kprof/wire.h"

enum kprof_wait_state {
	KPROF_WAIT_RUNS = 0,     /* on a CPU */
	KPROF_WAIT_RUNNABLE = 1, /* waits for a CPU */
	KPROF_WAIT_BLOCKED = 2,  /* waits for something else, or has just been woken */
};

enum kprof_wait_flags {
	KPROF_WAIT_IO = 1 << 0,        /* for a disk, as the kernel counts it (in_iowait) */
	KPROF_WAIT_IN_START = 1 << 1,  /* it was waiting before the recording began */
	KPROF_WAIT_INTERRUPT = 1 << 2, /* woken by an interrupt, not by the thread that it hit */
	KPROF_WAIT_LAST = 1 << 3, /* not the end of a wait: the thread ends, or gets another id */
};

#define KPROF_WAIT_NO_CALL ~0ull /* not in a system call */
#define KPROF_WAIT_KINDS 8       /* for guessing how long a wait will be */

/*
 * Where a thread's struct kprof_wait is: at the same place as its id, among the ids of a bucket,
 * which is chosen by the id. Arrays, since a hash map takes longer than all the rest.
 */
#define KPROF_WAIT_BUCKETS 4096 /* a power of two */
#define KPROF_WAIT_WAYS 8
#define KPROF_WAIT_BUCKET(tid) ((tid) & (KPROF_WAIT_BUCKETS - 1))
#define KPROF_WAIT_TAKEN (1u << 31) /* in an id: the place is being filled in */

struct kprof_wait_bucket {
	kprof_u32 tids[KPROF_WAIT_WAYS]; /* 0: free */
};

struct kprof_wait {
	kprof_u64 number; /* process id << 32 | thread id */
	/* The thread's time since start_ns, up to since_ns; the three sums are all of it. */
	kprof_u64 start_ns, since_ns;
	kprof_u64 on_ns, runnable_ns, blocked_ns;
	/* Of the latest wait: since when it is off the CPU, and when it was woken; 0: not yet. */
	kprof_u64 off_ns, wake_ns;
	/* Times of the records of its stack, and of that of who woke it; 0: there is none. */
	kprof_u64 stack_ns, waker_stack_ns;
	kprof_u64 waker;   /* process id << 32 | thread id; 0: not seen */
	kprof_u64 call;    /* number of the system call, or KPROF_WAIT_NO_CALL */
	kprof_u64 args[2]; /* its first ones */
	char waker_comm[KPROF_WIRE_COMM];
	kprof_u32 task_state; /* task_struct.__state; 0: it was preempted */
	kprof_u16 state;      /* enum kprof_wait_state */
	kprof_u16 flags;      /* enum kprof_wait_flags */
	/* The CPU + 1 that it left, that it got, and on which it was woken; 0: not seen. */
	kprof_u16 left_cpu, got_cpu, waker_cpu;
	kprof_u16 pad;
	/* how long it has run in all, as the scheduler says, when last seen to leave a CPU */
	kprof_u64 ran_ns;
	kprof_u64 switches; /* how often the thread has left a CPU */
	kprof_u64 told;     /* waits that were long enough for a record */
	kprof_u64 asked_ns; /* of all processes: when user space was last told of its process */
	/* By kind of wait (system call): how long the latest ones were on average, in 256 ns. */
	kprof_u32 lengths[KPROF_WAIT_KINDS];
};

/* A thread got a CPU again, or ends. h.id is 0. */
struct kprof_wire_wait {
	struct kprof_wire_hdr h;
	struct kprof_wait w;
};

_Static_assert(sizeof(struct kprof_wait) == 14 * 8 + 16 + 4 + 6 * 2 + 4 * 8 + 32, "wait");
_Static_assert(sizeof(struct kprof_wire_wait) == 32 + sizeof(struct kprof_wait), "wait: record");

#endif
