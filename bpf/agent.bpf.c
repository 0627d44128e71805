// SPDX-License-Identifier: GPL-2.0-only
/*
 * Batches of the agent in a target (kprof/agent.h): copied from its memory into the ring in one go,
 * at the entry of an empty function that it calls with the batch.
 */
#include "common.h"
#include "kprof/agent.h"

/*
 * Set by user space: what the agents hand over last, after the other probes have been stopped, is
 * read too.
 */
bool agents_stopped;

/* Records of a few sizes: a ring takes no other, and most batches of a quiet thread are small. */
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
 * A device's records come in bursts, which fill a ring in less time than user space sleeps while it
 * has little to do: it is woken in good time.
 */
static __always_inline __u64 wakeup_for_batch(void *ring)
{
	if (bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) >
	    bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) / 8)
		return BPF_RB_FORCE_WAKEUP;
	return wakeup();
}

static __always_inline int copy_batch(struct pt_regs *ctx, struct kprof_wire_count *count,
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
	return 0;
dropped:
	__sync_fetch_and_add(&count->dropped, 1);
	return 0;
}

SEC("uprobe.multi")
int kprof_batch(struct pt_regs *ctx)
{
	__u64 bytes = (__u32)PT_REGS_PARM2(ctx);
	struct kprof_wire_count *count;
	void *ring;

	/* Comparisons of all 64 bits: the verifier learns nothing of the upper half from others. */
	asm volatile("" : "+r"(bytes));
	if (agents_stopped || (check_target && !is_target(bpf_get_current_pid_tgid() >> 32)))
		return 0;
	count = count_fired(KPROF_COOKIE_SOURCE(bpf_get_attach_cookie(ctx)));
	ring = this_ring();
	if (!count || !ring)
		return 0;
	if (bytes <= SMALL)
		return copy_batch(ctx, count, ring, SMALL, bytes);
	if (bytes <= MIDDLE)
		return copy_batch(ctx, count, ring, MIDDLE, bytes);
	if (bytes <= KPROF_WIRE_BATCH_BYTES)
		return copy_batch(ctx, count, ring, KPROF_WIRE_BATCH_BYTES, bytes);
	__sync_fetch_and_add(&count->dropped, 1);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
