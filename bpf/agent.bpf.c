// SPDX-License-Identifier: GPL-2.0-only
/*
 * Batches of the agent in a target (kprof/agent.h). The agent calls an empty function with each
 * batch; the probe at its entry copies the batch from the target's memory into the ring.
 */
#include "common.h"
#include "kprof/agent.h"

/*
 * Set by user space. Separate from `stopped`, since the agents hand over their last batches after
 * the other probes have been stopped.
 */
bool agents_stopped;

/*
 * Bytes of a small batch. A ring only takes records of constant size, so a few sizes are tried;
 * most batches of a quiet thread are small.
 */
#define SMALL 448
#define MIDDLE 1472

/* The session that the slot was opened for; the data follows the slot's head. 0: unreadable. */
static __always_inline __u32 slot_session(__u64 data)
{
	__u32 session = 0;

	data += offsetof(struct kprof_agent_slot, session) -
		offsetof(struct kprof_agent_slot, data);
	if (bpf_probe_read_user(&session, sizeof(session), (void *)data))
		return 0;
	return session;
}

/*
 * A device's records come in bursts, which can fill a ring while user space still sleeps because it
 * had little to do. So user space is woken before the ring is full.
 */
static __always_inline __u64 wakeup_for_batch(void *ring)
{
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 8)
		return BPF_RB_FORCE_WAKEUP;
	return wakeup();
}

static __always_inline void copy_batch(struct pt_regs *ctx, struct kprof_wire_count *count,
				       void *ring, const __u32 room, __u64 bytes)
{
	const __u32 size = offsetof(struct kprof_wire_batch, data) + room;
	__u64 data = PT_REGS_PARM1(ctx);
	struct kprof_wire_batch *e;

	e = bpf_ringbuf_reserve(ring, size, 0);
	if (!e)
		goto dropped;
	if (bpf_probe_read_user(e->data, bytes, (void *)data)) {
		bpf_ringbuf_discard(e, BPF_RB_NO_WAKEUP);
		goto dropped;
	}
	fill_header(&e->h, bpf_get_current_pid_tgid(), PT_REGS_SP(ctx), slot_session(data),
		    KPROF_WIRE_BATCH, size);
	e->bytes = bytes;
	e->pad = 0;
	bpf_ringbuf_submit(e, wakeup_for_batch(ring));
	return;
dropped:
	__sync_fetch_and_add(&count->dropped, 1);
}

static __always_inline void batch(struct pt_regs *ctx)
{
	__u64 bytes = (__u32)PT_REGS_PARM2(ctx);
	struct kprof_wire_count *count;
	void *ring;

	/*
	 * Compare all 64 bits: from a comparison of 32 the verifier learns nothing of the upper
	 * half.
	 */
	asm volatile("" : "+r"(bytes));
	if (agents_stopped || !is_target(bpf_get_current_pid_tgid() >> 32))
		return;
	count = count_fired(KPROF_COOKIE_SOURCE(bpf_get_attach_cookie(ctx)));
	ring = this_ring();
	if (!count || !ring)
		return;
	if (bytes <= SMALL)
		copy_batch(ctx, count, ring, SMALL, bytes);
	else if (bytes <= MIDDLE)
		copy_batch(ctx, count, ring, MIDDLE, bytes);
	else if (bytes <= KPROF_WIRE_BATCH_BYTES)
		copy_batch(ctx, count, ring, KPROF_WIRE_BATCH_BYTES, bytes);
	else
		__sync_fetch_and_add(&count->dropped, 1);
}

SEC("uprobe.multi")
int kprof_batch(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_BATCH);

	batch(ctx);
	cost_end(KPROF_PROGRAM_BATCH, since_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
