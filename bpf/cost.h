/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the programs cost: how often each ran, and how long some of the runs took. The kernel's own
 * statistics (BPF_ENABLE_STATS) would read the clock twice in every run of every program of the
 * machine, and need CAP_SYS_ADMIN.
 */
#ifndef KPROF_BPF_COST_H
#define KPROF_BPF_COST_H

#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include "kprof/wire.h"

struct kprof_costs {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, KPROF_WIRE_NR_PROGRAMS);
	__type(key, __u32);
	__type(value, struct kprof_wire_cost);
};

extern struct kprof_costs costs SEC(".maps");

/* A longer run was interrupted by something else: no program takes so long. */
#define COST_MOST_NS 100000

/*
 * The time, or 0: the nth run is not measured. One in 64 is, the first one too, and not at regular
 * distances: a program may call the same functions in turn.
 */
static __always_inline __u64 cost_begin_of(__u32 n)
{
	return n * 0x9e3779b1u >> 26 ? 0 : bpf_ktime_get_ns();
}

/* Counts a run. Returns when it began, if it is measured. */
static __always_inline __u64 cost_begin(__u32 program)
{
	struct kprof_wire_cost *c = bpf_map_lookup_elem(&costs, &program);

	return c ? cost_begin_of(__sync_fetch_and_add(&c->runs, 1)) : 0;
}

/* The same where interrupts are off, as in the scheduler: no other run can come in between. */
static __always_inline __u64 cost_begin_alone(__u32 program)
{
	struct kprof_wire_cost *c = bpf_map_lookup_elem(&costs, &program);

	return c ? cost_begin_of(c->runs++) : 0;
}

static __always_inline void cost_end(__u32 program, __u64 since_ns)
{
	struct kprof_wire_cost *c;
	__u64 ns;

	if (!since_ns)
		return;
	ns = bpf_ktime_get_ns() - since_ns;
	c = bpf_map_lookup_elem(&costs, &program);
	if (!c || ns > COST_MOST_NS)
		return;
	__sync_fetch_and_add(&c->measured_ns, ns);
	__sync_fetch_and_add(&c->measured, 1);
}

#endif
