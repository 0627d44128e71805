/* SPDX-License-Identifier: GPL-2.0-only */
/* Stacks with which threads wait, and are woken: whether one is taken, and its record. */
#ifndef KPROF_BPF_WAIT_STACKS_H
#define KPROF_BPF_WAIT_STACKS_H

#include "stacks.h"

const volatile __u64 wait_long_ns = 0; /* longer waits are the first to get stacks */
/*
 * Of so much time of a CPU, 1 may be spent on stacks: set by user space, at any time. What is not
 * spent is saved up for WAIT_SAVED_NS of that time.
 */
__u32 wait_price;
#define WAIT_SAVED_NS 250000000
/* What is paid for a stack: at least, as it is read, too; at most, as its CPU may have stopped. */
#define WAIT_STACK_LEAST_NS 20000
#define WAIT_STACK_MOST_NS 200000

__u32 wait_stack_source; /* set by user space */

/* Time of a CPU that stacks may be paid with. */
struct wait_credit {
	__u64 counted_ns; /* up to when it was paid in */
	__s64 ns;         /* below 0: stacks were dearer than it was known */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wait_credit);
} wait_credits SEC(".maps");

/* One per CPU is enough: the scheduler's tracepoints do not interrupt each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_scratch);
} wait_scratch SEC(".maps");

#define SHORT_COSTS 8
#define VERY 8 /* so many times wait_long_ns is very long */

static __always_inline __u64 number_of(const struct task_struct *task)
{
	return (__u64)task->tgid << 32 | (__u32)task->pid;
}

/* How long the wait will be that a stack is for, by those of its kind before. */
enum wait_guess { GUESS_SHORT, GUESS_LONG, GUESS_VERY_LONG };

static __always_inline enum wait_guess guess_of(__u64 ns)
{
	return ns >= wait_long_ns * VERY ? GUESS_VERY_LONG
	       : ns >= wait_long_ns      ? GUESS_LONG
					 : GUESS_SHORT;
}

/*
 * What this CPU pays a stack with; NULL: it may take none now. For a wait that will be very long it
 * may spend the last of what it has; for a long one it leaves a quarter of what can be saved up,
 * for a short one half.
 */
static __always_inline struct wait_credit *credit_for(__u64 now_ns, enum wait_guess guess)
{
	__u32 zero = 0;
	struct wait_credit *c = bpf_map_lookup_elem(&wait_credits, &zero);
	__s64 most_owed_ns = (__u64)wait_price * WAIT_STACK_MOST_NS; /* the price may have fallen */
	__s64 least_ns = guess == GUESS_SHORT  ? WAIT_SAVED_NS / 2
			 : guess == GUESS_LONG ? WAIT_SAVED_NS / 4
					       : 0;

	if (!c || shed & KPROF_WIRE_SHED_WAIT_STACKS)
		return NULL;
	if (c->ns < -most_owed_ns)
		c->ns = -most_owed_ns;
	c->ns += now_ns - c->counted_ns;
	c->counted_ns = now_ns;
	if (c->ns > WAIT_SAVED_NS)
		c->ns = WAIT_SAVED_NS;
	return c->ns > least_ns ? c : NULL;
}

/*
 * Pays for a stack that was taken since then. That of a short wait costs several times as much, but
 * for that not more than half of what can be saved up.
 */
static __always_inline void pay(struct wait_credit *c, __u64 since_ns, enum wait_guess guess)
{
	__u64 ns = bpf_ktime_get_ns() - since_ns, cost_ns;

	if (ns < WAIT_STACK_LEAST_NS)
		ns = WAIT_STACK_LEAST_NS;
	if (ns > WAIT_STACK_MOST_NS)
		ns = WAIT_STACK_MOST_NS;
	cost_ns = ns * wait_price;
	if (guess == GUESS_SHORT && cost_ns < WAIT_SAVED_NS / 2)
		cost_ns = cost_ns * SHORT_COSTS < WAIT_SAVED_NS / 2 ? cost_ns * SHORT_COSTS
								    : WAIT_SAVED_NS / 2;
	c->ns -= cost_ns;
}

static __always_inline __u64 write_stack(void *ctx, struct task_struct *task, __u64 number,
					 __u64 futex, __u16 flag)
{
	struct kprof_wire_count *count = count_fired(wait_stack_source);
	__u64 self = number_of(task);
	struct kprof_stack_process *process;
	struct stack_scratch *s;
	__u32 zero = 0, pid = task->tgid, words;
	long bytes;

	s = bpf_map_lookup_elem(&wait_scratch, &zero);
	if (!s || !count)
		return 0;
	bytes = bpf_get_stack(ctx, s->words, KPROF_WIRE_MAX_KERNEL_FRAMES * 8, 0);
	s->out.flags = flag | KPROF_WIRE_STACK_IN_KERNEL;
	s->out.nr_kernel = bytes > 0 ? (__u64)bytes / 8 : 0;
	s->out.weight_ns = self;
	s->out.cost_ns = 0;
	s->out.nr_user = s->out.nr_python = s->out.python_flags = 0;
	s->out.end = KPROF_UNWIND_GOING;
	words = s->out.nr_kernel;
	fill_header(&s->out.h, number, 0, 0, KPROF_WIRE_STACK, 0);
	process = bpf_map_lookup_elem(&stack_processes, &pid);
	if (process && stack_walk(s, (void *)bpf_task_pt_regs(task), process->space)) {
		words = stack_put_native(s);
		words = stack_put_python(s, task, self, words, futex);
	}
	return stack_emit(count, s, words) ? s->out.h.time_ns : 0;
}

/*
 * Records the stack of the thread that runs here, for the wait of thread `number` that is guessed
 * to be so long, where this CPU may take one. Returns the time of the record; 0: there is none.
 */
static __always_inline __u64 record_stack(void *ctx, struct task_struct *task, __u64 number,
					  __u64 futex, __u16 flag, __u64 now_ns,
					  enum wait_guess guess)
{
	struct wait_credit *c = credit_for(now_ns, guess);
	__u64 stack_ns;

	if (!c)
		return 0;
	stack_ns = write_stack(ctx, task, number, futex, flag);
	pay(c, now_ns, guess);
	return stack_ns;
}

#endif
