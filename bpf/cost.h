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
 * Counts a run. Returns the time, or 0: this run is not measured. One in 64 is, the first one too,
 * and not at regular distances: a program may call the same functions in turn.
 */
static __always_inline __u64 cost_begin(__u32 program)
{
	struct kprof_wire_cost *c = bpf_map_lookup_elem(&costs, &program);
	__u32 n;

	if (!c)
		return 0;
	n = __sync_fetch_and_add(&c->runs, 1);
	return n * 0x9e3779b1u >> 26 ? 0 : bpf_ktime_get_ns();
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
