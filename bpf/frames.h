/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Calls whose end will not be seen, because no return site is placed at their return address (yet).
 * A later event of the thread would appear to lie inside such a call after it has returned. So
 * before the event, user space is told what the stack shows: calls whose slot has been overwritten
 * have returned, and a walk over a copy of the stack finds those that have left their slot as it
 * was.
 */
#ifndef KPROF_BPF_FRAMES_H
#define KPROF_BPF_FRAMES_H

#include "common.h"

/* More such calls, one inside another, are not kept track of. */
#define KPROF_FRAMES 16

/*
 * How often the stack is copied for one call. A slot that nothing overwrites, below a function that
 * runs for long, would cost a copy at every event.
 */
#define KPROF_FRAME_COPIES 512

struct kprof_frames { /* of one thread, the outermost call first */
	__u32 nr;
	struct kprof_frame {
		__u64 slot, ret_addr; /* where the return address is, and which it is */
		__u64 copies_left;
	} at[KPROF_FRAMES];
};

struct kprof_frames_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct kprof_frames);
};

extern struct kprof_frames_map frames SEC(".maps");

/*
 * Where a return probe of another program has replaced return addresses on the stack by this one,
 * the calls have not returned.
 */
static __always_inline bool is_replaced(struct task_struct *task, __u64 ret_addr)
{
	return ret_addr && ret_addr == BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

static __always_inline void report_gone(const struct kprof_hit *hit, __u64 slot)
{
	struct kprof_hit gone = {.pid_tgid = hit->pid_tgid, .sp = hit->sp};
	struct kprof_wire_gone *e;

	if (!count_hit(&gone, KPROF_WIRE_SOURCE_SITES))
		return;
	e = reserve(&gone, sizeof(*e));
	if (!e)
		return;
	fill_header(&e->h, hit->pid_tgid, hit->sp, 0, KPROF_WIRE_GONE, sizeof(*e));
	e->slot = slot;
	bpf_ringbuf_submit(e, BPF_RB_NO_WAKEUP);
}

/* Returns 1 when the copy does not fit into `room` bytes; then nothing was submitted. */
static __always_inline int copy_stack(struct pt_regs *ctx, const struct kprof_hit *hit,
				      const __u32 room, __u64 bytes)
{
	struct kprof_hit copy = {.pid_tgid = hit->pid_tgid, .sp = hit->sp};
	struct kprof_wire_copy *e;
	__u64 used, ring_bytes;

	if (bytes > room)
		return 1;
	used = bpf_ringbuf_query(hit->ring, BPF_RB_AVAIL_DATA);
	ring_bytes = bpf_ringbuf_query(hit->ring, BPF_RB_RING_SIZE);
	/* Copies must not take the room of events: a wrong parent is better than a lost call. */
	if (used > ring_bytes / 2 || !count_hit(&copy, KPROF_WIRE_SOURCE_SITES))
		return 0;
	e = reserve(&copy, sizeof(*e) + room);
	if (!e)
		return 0;
	fill_header(&e->h, hit->pid_tgid, hit->sp, 0, KPROF_WIRE_COPY, sizeof(*e) + room);
	e->bp = ctx->rbp;
	e->bx = ctx->rbx;
	/* Again, where it is used: Linux 6.1 forgets the limit of a number that was spilled. */
	barrier_var(bytes);
	if (bytes > room)
		bytes = room;
	e->bytes = bpf_probe_read_user(e->data, bytes, (void *)hit->sp) ? 0 : bytes;
	e->pad = 0;
	bpf_ringbuf_submit(e, used > ring_bytes / 8 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 0;
}

/* What the two callbacks below share. They are callbacks so that the verifier walks them once. */
struct kprof_settling {
	struct kprof_frames *f;
	struct task_struct *task;
	const struct kprof_hit *hit;
	__u64 bytes; /* of the stack that are needed */
};

/* The span engine knows by itself that calls below the stack pointer are over. */
static long drop_innermost(__u32 i, struct kprof_settling *s)
{
	__u32 last = s->f->nr - 1;

	if (last >= KPROF_FRAMES || s->f->at[last].slot >= s->hit->sp)
		return 1;
	s->f->nr = last;
	return 0;
}

static long settle_frame(__u32 i, struct kprof_settling *s)
{
	struct kprof_frame *frame;
	__u64 slot, now, bytes;

	if (i >= KPROF_FRAMES)
		return 1;
	frame = &s->f->at[i];
	slot = frame->slot;
	if (!slot)
		return 0;
	/* If it cannot be read, nothing is known. */
	if (bpf_probe_read_user(&now, sizeof(now), (void *)slot) || now == frame->ret_addr ||
	    is_replaced(s->task, now)) {
		bytes = slot - s->hit->sp + sizeof(now);
		if (bytes > s->bytes && frame->copies_left) {
			frame->copies_left--;
			s->bytes = bytes;
		}
		return 0;
	}
	report_gone(s->hit, slot);
	frame->slot = 0; /* dropped with the next that is below the stack pointer */
	return 0;
}

/*
 * Reports the calls that have returned. Those further in are looked at for themselves, since user
 * space may have closed this one earlier, by a walk. Returns how many bytes of the stack those need
 * that seem to go on.
 */
static __noinline int settle_frames(struct kprof_frames *f, struct task_struct *task,
				    const struct kprof_hit *hit)
{
	struct kprof_settling s = {.f = f, .task = task, .hit = hit};

	bpf_loop(f->nr, drop_innermost, &s, 0);
	bpf_loop(f->nr, settle_frame, &s, 0);
	return s.bytes < KPROF_WIRE_COPY_BYTES ? s.bytes : KPROF_WIRE_COPY_BYTES;
}

/*
 * To be called at every event that may begin or end something, before its record is reserved. ctx:
 * the registers at a function's entry, else NULL.
 */
static __always_inline void report_returned(struct pt_regs *ctx, const struct kprof_hit *hit)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kprof_frames *f = bpf_task_storage_get(&frames, task, NULL, 0);
	__u64 bytes;

	if (!f || !f->nr)
		return;
	bytes = settle_frames(f, task, hit);
	/* Compare all 64 bits, so that the verifier learns the bound. */
	asm volatile("" : "+r"(bytes));
	if (!ctx || !bytes)
		return;
	/* A ring only takes records of constant size. */
	if (copy_stack(ctx, hit, KPROF_WIRE_COPY_BYTES / 8, bytes) &&
	    copy_stack(ctx, hit, KPROF_WIRE_COPY_BYTES / 4, bytes) &&
	    copy_stack(ctx, hit, KPROF_WIRE_COPY_BYTES / 2, bytes))
		copy_stack(ctx, hit, KPROF_WIRE_COPY_BYTES, bytes);
}

#endif
