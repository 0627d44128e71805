// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counters that CPUs keep: at each switch between threads, what was counted since the one got its
 * CPU is its own. This program runs for all switches of the machine, and does something only for
 * threads that were at a probe.
 */
#include "counters.h"

/*
 * The kernel has counted the switch already, as one of the thread that leaves. Another number of
 * them means that a switch was not seen.
 */
static __always_inline void leaves(struct counted *c, const struct cpu_counts *now, bool fine,
				   __u64 switches)
{
	bool known = fine && c->gap == now->gap && switches == c->switches + 1;

	if (!c->running)
		return;
	c->running = 0;
	c->switches = switches;
	if (!known)
		c->epoch++;
	for
		EACH_COUNTER(i)
	if (known)
		c->sum[i] += now->values[i] - c->in[i];
}

static __always_inline void gets_cpu(struct counted *c, const struct cpu_counts *now, bool fine,
				     __u64 switches)
{
	if (c->running || !fine || c->switches != switches)
		c->epoch++;
	count_from(c, now, switches);
	c->running = fine;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(kprof_count_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 since_ns = cost_begin_alone(KPROF_PROGRAM_SWITCH);
	struct counted *left, *got;
	struct cpu_counts now;
	bool fine = false;

	left = bpf_task_storage_get(&counted_threads, prev, NULL, 0);
	if (left) {
		fine = read_cpu(&now);
		leaves(left, &now, fine, switches_of(prev));
	}
	got = bpf_task_storage_get(&counted_threads, next, NULL, 0);
	if (got) {
		if (!left)
			fine = read_cpu(&now);
		gets_cpu(got, &now, fine, switches_of(next));
	}
	cost_end(KPROF_PROGRAM_SWITCH, since_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
