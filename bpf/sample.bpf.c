// SPDX-License-Identifier: GPL-2.0-only
/*
 * Samples: many times a second, the stack of the thread that a clock interrupts on each CPU. Also
 * the stacks with which probed functions are entered, and (waits.h) those of threads that wait.
 */
#include "seen.h"
#include "stacks.h"
#include <linux/bpf_perf_event.h>
#include "waits.h"
#include "inside.h"

__u32 sample_source; /* set by user space before the first clock is attached */
/* the mean period of the clocks in ns, set by user space when it changes it; 0: it has not */
__u64 sample_period_ns;

/* One per CPU is enough: the clock's interrupt does not interrupt itself. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} sample_scratch SEC(".maps");

/* State of a CPU's clock. */
struct sample_clock {
	__u64 ticked_ns; /* time of the last tick on any thread but the idle one */
	/* how long the program took for the last sample on this CPU; 0: there was none */
	__u32 cost_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_clock);
} sample_clocks SEC(".maps");

/*
 * The time that a tick stands for, in ns: the time since the tick before. ctx->sample_period does
 * not tell it: after a change of the period the kernel still reports the first one (hw.last_period;
 * perf_swevent_hrtimer() of 6.1 to 6.18), and the change itself begins a new period in the middle
 * of one. After a pause, in which the CPU was idle, a tick stands for one period. Periods differ by
 * up to a twentieth, so that a time below 1.9 mean periods cannot hold two of them.
 */
static __always_inline __u64 weight_of_tick(__u64 since_ns, __u64 period_ns)
{
	return since_ns < period_ns * 2 - period_ns / 10 ? since_ns : period_ns;
}

/*
 * Of a thread of the kernel's own, there is no other stack than the kernel's; of one that is
 * exiting, whose memory is being given back, neither.
 */
static __always_inline void kernel_stack_only(struct stack_scratch *s)
{
	s->walk.regs[7] = 0;
	s->walk.nr = 0;
	s->walk.end = KPROF_UNWIND_WHOLE;
}

static __always_inline void sample(struct bpf_perf_event_data *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns(), since_ns;
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct kprof_stack_process *process;
	struct kprof_wire_count *count;
	__u32 pid = pid_tgid >> 32, zero = 0, words;
	struct sample_clock *clock;
	struct stack_scratch *s;
	bool target = is_target(pid);
	long bytes = 0;

	clock = bpf_map_lookup_elem(&sample_clocks, &zero);
	if (!clock)
		return;
	since_ns = now_ns - clock->ticked_ns;
	clock->ticked_ns = now_ns;
	process = bpf_map_lookup_elem(&stack_processes, &pid);
	/*
	 * A child that was forked just now: its time counts, even though its mappings are not known
	 * yet.
	 */
	barrier_var(target); /* else the compiler joins it with the pointer, which is refused */
	if (stopped || (!process && !target && !all_processes) || !is_wanted(pid_tgid) ||
	    !within_here())
		return;
	if (all_processes && !target)
		tell_of_process(0);
	s = bpf_map_lookup_elem(&sample_scratch, &zero);
	count = count_fired(sample_source);
	if (!s || !count)
		return;
	s->out.flags = 0;
	if (!(ctx->regs.cs & 3)) {
		s->out.flags |= KPROF_WIRE_STACK_IN_KERNEL;
		bytes = bpf_get_stack(ctx, s->words, KPROF_WIRE_MAX_KERNEL_FRAMES * 8, 0);
	}
	s->out.nr_kernel = bytes > 0 ? bytes / 8 : 0;
	if (task->flags & (PF_KTHREAD | PF_EXITING)) {
		kernel_stack_only(s);
	} else if (!stack_walk(s, (void *)bpf_task_pt_regs(task),
			       process ? process->space : KPROF_UNWIND_MAX_SPACES)) {
		__sync_fetch_and_add(&count->dropped, 1);
		return;
	}
	s->out.weight_ns =
		weight_of_tick(since_ns, sample_period_ns ? sample_period_ns : ctx->sample_period);
	s->out.cost_ns = clock->cost_ns;
	fill_header(&s->out.h, pid_tgid, s->walk.regs[7], bpf_get_smp_processor_id(),
		    KPROF_WIRE_SAMPLE, 0);
	if (all_processes &&
	    (s->walk.end == KPROF_UNWIND_NO_MAPPING || s->walk.end == KPROF_UNWIND_NOT_YET))
		words = stack_put_copy(s);
	else
		words = stack_put_native(s);
	stack_emit(count, s, stack_put_python(s, task, pid_tgid, words, 0));
	clock->cost_ns = bpf_ktime_get_ns() - now_ns;
}

SEC("perf_event")
int kprof_sample(struct bpf_perf_event_data *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_SAMPLE);

	sample(ctx);
	cost_end(KPROF_PROGRAM_SAMPLE, since_ns);
	return 0;
}

/*
 * The code of the new program is at other addresses. Until user space has read the new mappings, no
 * stack is walked by the tables of the old program: walks end as if at an unknown address.
 */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(kprof_exec_stacks, struct task_struct *task)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);
	__u32 pid = task->tgid;

	bpf_map_delete_elem(&stack_processes, &pid);
	bpf_map_delete_elem(&stack_pythons, &pid);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

/* ---- stacks at entries ---- */

__u32 stack_source;                   /* set by user space, like sample_source */
const volatile __u32 stacks_a_second; /* stacks taken of a thread, at most; 0: all */

/*
 * Scratch areas per CPU: a program at an entry may be preempted, and another one run on this CPU.
 */
#define NR_ENTRY_SCRATCHES 4
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_ENTRY_SCRATCHES);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} entry_scratch SEC(".maps");

struct entry_rate {
	__u64 since_ns; /* when the current second began */
	__u32 taken;    /* stacks taken in this second */
	__u32 skipped;  /* entries since the last stack that was taken */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* thread id */
	__type(value, struct entry_rate);
} entry_rates SEC(".maps");

/* How many entries a stack taken now stands for; 0: it is not to be taken. */
static __always_inline __u32 weight_of_entry(__u32 tid)
{
	struct entry_rate *rate, first = {.since_ns = bpf_ktime_get_ns(), .taken = 1};
	__u64 now_ns = first.since_ns;
	__u32 weight;

	if (!stacks_a_second)
		return 1;
	rate = bpf_map_lookup_elem(&entry_rates, &tid);
	if (!rate) {
		bpf_map_update_elem(&entry_rates, &tid, &first, BPF_ANY);
		return 1;
	}
	/*
	 * Stacks are spread over the second instead of all taken at its begin: as many as are due
	 * by the time that has passed, and ten more.
	 */
	if (now_ns - rate->since_ns >= 1000000000ull) {
		rate->since_ns = now_ns;
		rate->taken = 0;
	}
	if (rate->taken >= 10 + (now_ns - rate->since_ns) * stacks_a_second / 1000000000ull) {
		rate->skipped++;
		return 0;
	}
	weight = rate->skipped + 1;
	rate->skipped = 0;
	rate->taken++;
	return weight;
}

/* A stack was to be taken and was lost: the thread's next one stands for its entries, too. */
static __always_inline void keep_weight(__u32 tid, __u32 weight)
{
	struct entry_rate *rate = bpf_map_lookup_elem(&entry_rates, &tid);

	if (rate)
		rate->skipped += weight;
}

/*
 * Runs at the same probe as the program that records the entry. User space joins the two by stack
 * pointer and probe, so their order does not matter.
 */
static __always_inline void entry_stack(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct kprof_stack_process *process;
	struct stack_scratch *s;
	__u32 pid, weight, words;
	struct kprof_hit hit;
	bool taken = false;

	hit.cookie = bpf_get_attach_cookie(ctx);
	hit.pid_tgid = bpf_get_current_pid_tgid();
	hit.sp = PT_REGS_SP(ctx) + KPROF_COOKIE_BIAS(hit.cookie);
	pid = hit.pid_tgid >> 32;
	if (stopped || shed & (KPROF_WIRE_SHED_ENTRY_STACKS | KPROF_WIRE_SHED_HITS) ||
	    !within_entered(hit.sp))
		return;
	/* of allocators (catalog_memory): only a free has bytes that are negative, as its second */
	if (books && (__s64)PT_REGS_PARM2(ctx) < 0)
		return;
	/* A process whose mappings are not known (yet) has no stacks, so nothing is lost. */
	process = bpf_map_lookup_elem(&stack_processes, &pid);
	if (!process)
		return;
	weight = weight_of_entry((__u32)hit.pid_tgid);
	if (!weight)
		return;
	hit.count = count_fired(stack_source);
	if (!hit.count)
		return;
	s = take_scratch(&entry_scratch, NR_ENTRY_SCRATCHES);
	if (!s) {
		__sync_fetch_and_add(&hit.count->dropped, 1);
		keep_weight((__u32)hit.pid_tgid, weight);
		return;
	}
	s->out.flags = 0;
	s->out.nr_kernel = 0;
	s->out.cost_ns = 0;
	s->out.weight_ns = weight;
	if (stack_walk(s, ctx, process->space)) {
		fill_hit_header(&s->out.h, &hit, KPROF_WIRE_STACK, 0);
		words = stack_put_native(s);
		taken = stack_emit(hit.count, s, stack_put_python(s, task, hit.pid_tgid, words, 0));
	} else {
		__sync_fetch_and_add(&hit.count->dropped, 1);
	}
	if (!taken)
		keep_weight((__u32)hit.pid_tgid, weight);
	give_scratch(s);
}

SEC("uprobe.multi")
int kprof_entry_stack(struct pt_regs *ctx)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_ENTRY_STACK);

	entry_stack(ctx);
	cost_end(KPROF_PROGRAM_ENTRY_STACK, since_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
