/* SPDX-License-Identifier: GPL-2.0-only */
/* Maps and helpers that every program shares. */
#ifndef KPROF_BPF_COMMON_H
#define KPROF_BPF_COMMON_H

#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "cost.h"
#include "kprof/wire.h"

/* task_struct.flags, include/linux/sched.h */
#define PF_EXITING 0x00000004
#define PF_IO_WORKER 0x00000010
#define PF_KTHREAD 0x00200000

/*
 * One ring per CPU (up to a bound), so that CPUs don't queue for one ring's lock. User space merges
 * them by time. The sizes here are only a template: user space sets the real ones before loading.
 */
struct kprof_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

struct kprof_rings {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct kprof_ring);
};

/* Counts of hits and of dropped records, by source; per CPU, so that they stay in its cache. */
struct kprof_counts {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KPROF_WIRE_MAX_SOURCES);
	__type(key, __u32);
	__type(value, struct kprof_wire_count);
};

/*
 * The targets, by process id. The value is the number of the process's address space, or
 * KPROF_WIRE_LEFT_OUT. Nothing is recorded of a process that is not in this map.
 */
struct kprof_targets {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u32);
};

/* Hits in other processes that map a file whose probes are in every process. */
struct kprof_foreign {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kprof_wire_foreign);
};

extern struct kprof_rings rings SEC(".maps");
extern struct kprof_counts counts SEC(".maps");
extern struct kprof_targets targets SEC(".maps");
extern struct kprof_foreign foreign SEC(".maps");

/* Set by user space before the programs are loaded. */
extern const volatile __u32 nr_rings;
/* Samples of every process are recorded; targets are those that user space knows already. */
extern const volatile bool all_processes;

/* User space looks often enough by itself. */
extern const volatile bool patient;

/* Flags for the submission of a record of what may be gone soon. */
static __always_inline __u64 at_once(void)
{
	return patient ? BPF_RB_NO_WAKEUP : BPF_RB_FORCE_WAKEUP;
}
/* Every process that a probe is hit in becomes a target. */
extern const volatile bool joining;

/* Only these threads are recorded; none: all. */
extern const volatile __u32 nr_tids;
extern const volatile __u32 tids[KPROF_WIRE_MAX_TIDS];

/* Set by user space: the recording is over, the probes are being removed. */
extern bool stopped;

/* Set by user space: what is left out (KPROF_WIRE_SHED_*). */
extern __u32 shed;
extern const volatile bool books;

/* Set by user space before it sleeps. */
extern __u32 sleeping;

/* The number of a target's address space, or KPROF_WIRE_LEFT_OUT. NULL: it is not known. */
static __always_inline __u32 *target_space(__u32 pid)
{
	return bpf_map_lookup_elem(&targets, &pid);
}

static __always_inline bool is_target(__u32 pid)
{
	__u32 *space = target_space(pid);

	return space && *space != KPROF_WIRE_LEFT_OUT;
}

static __always_inline void count_foreign(__u32 pid)
{
	__u32 zero = 0;
	struct kprof_wire_foreign *f = bpf_map_lookup_elem(&foreign, &zero);

	if (!f)
		return;
	__sync_fetch_and_add(&f->hits, 1);
	f->pid = pid;
}

/*
 * Returns NULL only for an invalid source. The addition is atomic, since a uprobe's program can be
 * preempted.
 */
static __always_inline struct kprof_wire_count *count_fired(__u32 source)
{
	struct kprof_wire_count *c = bpf_map_lookup_elem(&counts, &source);

	if (c)
		__sync_fetch_and_add(&c->fired, 1);
	return c;
}

static __always_inline void *this_ring(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	if (cpu >= nr_rings)
		cpu %= nr_rings;
	return bpf_map_lookup_elem(&rings, &cpu);
}

static __always_inline void fill_header(struct kprof_wire_hdr *h, __u64 pid_tgid, __u64 sp,
					__u32 id, __u16 kind, __u16 size)
{
	/*
	 * The time is read after the record was reserved: user space relies on it when it merges.
	 */
	h->time_ns = bpf_ktime_get_ns();
	h->pid_tgid = pid_tgid;
	h->sp = sp;
	h->id = id;
	h->kind = kind;
	h->size = size;
}

/* The number that a thread has in its own PID namespace. */
static __always_inline __u32 innermost_number(struct task_struct *task)
{
	/* not task->thread_pid: Linux 6.1 allows no computing with a pointer that it knows */
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u64 at = (__u64)pid + bpf_core_field_offset(struct pid, numbers) +
		   (__u64)BPF_CORE_READ(pid, level) * bpf_core_type_size(struct upid) +
		   bpf_core_field_offset(struct upid, nr);
	__u32 nr = 0;

	bpf_probe_read_kernel(&nr, sizeof(nr), (void *)at);
	return nr;
}

/*
 * One of the scratch areas of this CPU that no program uses now: a program may be preempted by
 * another one on the same CPU. Each begins with a __u32, which is to be set to 0 after use. NULL:
 * all are in use.
 */
static __always_inline void *take_scratch(void *areas, const __u32 nr)
{
	for (__u32 i = 0; i < nr; i++) {
		__u32 at = i, *busy = bpf_map_lookup_elem(areas, &at);

		if (busy && !__sync_lock_test_and_set(busy, 1))
			return busy;
	}
	return NULL;
}

static __always_inline void give_scratch(void *area)
{
	__sync_lock_test_and_set((__u32 *)area, 0);
}

/* One hit of a probe, as every program on a probe needs it. */
struct kprof_hit {
	/* sp: the stack pointer at the function's entry, even where the probe is after the entry */
	__u64 cookie, pid_tgid, sp;
	__u32 space; /* number of the address space */
	struct kprof_wire_count *count;
	void *ring;
};

/* Counts the hit as fired. Returns false only for an invalid source or CPU. */
static __always_inline bool count_hit(struct kprof_hit *hit, __u32 source)
{
	hit->count = count_fired(source);
	hit->ring = this_ring();
	return hit->count && hit->ring;
}

/* Tells user space of the process that runs here. Returns 0 if it could not. */
int kprof_tell_of_joining(void);

/*
 * The number of the address space of a process that is a target from now on. NULL: it is none, or
 * not to be recorded. User space is told before, so that no record of it comes earlier.
 */
static __always_inline __u32 *join(__u32 pid)
{
	__u32 space = pid;

	if (!joining || !kprof_tell_of_joining())
		return NULL;
	bpf_map_update_elem(&targets, &pid, &space, BPF_NOEXIST);
	return target_space(pid);
}

/* Is this thread one of those that are recorded? */
static __always_inline bool is_wanted(__u32 tid)
{
	for (__u32 i = 0; i < KPROF_WIRE_MAX_TIDS && i < nr_tids; i++)
		if (tids[i] == tid)
			return true;
	return !nr_tids;
}

/*
 * Fills in and counts a hit, on whichever thread of a target. Returns false if it is to be neither
 * recorded nor counted.
 */
static __always_inline bool take_hit_of_any(struct pt_regs *ctx, struct kprof_hit *hit)
{
	__u32 *space;

	if (stopped)
		return false;
	hit->pid_tgid = bpf_get_current_pid_tgid();
	space = target_space(hit->pid_tgid >> 32);
	if (!space)
		space = join(hit->pid_tgid >> 32);
	if (!space || *space == KPROF_WIRE_LEFT_OUT) {
		count_foreign(hit->pid_tgid >> 32);
		return false;
	}
	hit->space = *space;
	hit->cookie = bpf_get_attach_cookie(ctx);
	if (hit->cookie & KPROF_COOKIE_BURST && shed & KPROF_WIRE_SHED_BURSTS)
		return false;
	hit->sp = PT_REGS_SP(ctx) + KPROF_COOKIE_BIAS(hit->cookie);
	return count_hit(hit, KPROF_COOKIE_SOURCE(hit->cookie));
}

/* The same, on one of the threads that are recorded. */
static __always_inline bool take_hit(struct pt_regs *ctx, struct kprof_hit *hit)
{
	return is_wanted(bpf_get_current_pid_tgid()) && take_hit_of_any(ctx, hit);
}

/*
 * Reserves a record in the ring; `bytes` must be a constant. Returns NULL if the ring has no room;
 * that is counted as dropped.
 */
static __always_inline void *reserve(const struct kprof_hit *hit, const __u64 bytes)
{
	void *e = bpf_ringbuf_reserve(hit->ring, bytes, 0);

	if (!e)
		__sync_fetch_and_add(&hit->count->dropped, 1);
	return e;
}

static __always_inline void fill_hit_header(struct kprof_wire_hdr *h, const struct kprof_hit *hit,
					    __u16 kind, __u16 size)
{
	fill_header(h, hit->pid_tgid, hit->sp, KPROF_COOKIE_INDEX(hit->cookie), kind, size);
}

/*
 * Flags for the submission of a record: the first event after user space went to sleep wakes it,
 * later ones do not.
 */
static __always_inline __u64 wakeup(void)
{
	if (!sleeping)
		return BPF_RB_NO_WAKEUP;
	sleeping = 0;
	return BPF_RB_FORCE_WAKEUP;
}

#endif
