/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits: when each thread of the targets leaves a CPU, is woken and gets a CPU again, what it
 * waited in, and who woke it. These programs run in the scheduler, most often for threads of no
 * target, and are short for all but long waits.
 *
 * When a thread leaves its CPU, its memory can still be read, when it comes back it cannot yet. So
 * its stack is taken at the beginning of a wait, before anyone knows how long that will be, and
 * only so often: first where waits have been long.
 *
 * This is a part of sample.bpf.c, as the maps and functions that walk stacks are those of one
 * object.
 */
#ifndef KPROF_BPF_WAITS_H
#define KPROF_BPF_WAITS_H

#include "seen.h"
#include "wait_stacks.h"
#include "kprof/wait.h"

const volatile __u64 wait_min_ns = 0; /* shorter waits are counted, but have no record */

/* Set by user space. Nothing is counted outside of this time. */
__u64 waits_from_ns, waits_until_ns;
__u32 wait_source;

/* Read by user space: threads that the table had no room for, switches that were not seen. */
__u64 waits_refused, waits_unseen;

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, KPROF_WAIT_BUCKETS);
	__type(key, __u32);
	__type(value, struct kprof_wait_bucket);
} wait_buckets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KPROF_WAIT_BUCKETS *KPROF_WAIT_WAYS);
	__type(key, __u32);
	__type(value, struct kprof_wait);
} wait_threads SEC(".maps");

static __always_inline bool counting(__u64 now_ns)
{
	return now_ns >= waits_from_ns && now_ns < waits_until_ns;
}

static __always_inline __u16 this_cpu(void)
{
	return bpf_get_smp_processor_id() + 1;
}

/* ---- is an interrupt running? ---- */

/* Linux 6.2 to 6.14 have the counter in here, those before and after in a variable. */
struct pcpu_hot {
	int preempt_count;
} __relocated;

extern struct pcpu_hot pcpu_hot __ksym __weak;
extern const int __preempt_count __ksym __weak;

/* include/linux/preempt.h: a soft interrupt that is being served, hard ones, and NMIs */
#define IN_INTERRUPT 0x00ff0100

static __always_inline bool in_interrupt(void)
{
	int count = 0;

	if (bpf_core_type_exists(struct pcpu_hot)) {
		if (bpf_ksym_exists(&pcpu_hot))
			count = ((struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
	} else if (bpf_ksym_exists(&__preempt_count)) {
		count = *(int *)bpf_this_cpu_ptr(&__preempt_count);
	}
	return count & IN_INTERRUPT;
}

/* ---- threads ---- */

/* What the thread is doing in the kernel. A thread of the kernel's own has no system call. */
static __always_inline void read_call(struct kprof_wait *w, struct task_struct *task)
{
	const struct pt_regs *regs = (const struct pt_regs *)bpf_task_pt_regs(task);

	w->call = KPROF_WAIT_NO_CALL;
	if (!regs || task->flags & (PF_KTHREAD | PF_IO_WORKER) || (__s64)regs->orig_rax < 0)
		return;
	w->call = regs->orig_rax;
	w->args[0] = regs->rdi;
	w->args[1] = regs->rsi;
}

/* The place of this thread; NULL: it has none. */
static __always_inline struct kprof_wait *find_thread(__u32 tid)
{
	__u32 at = KPROF_WAIT_BUCKET(tid);
	struct kprof_wait_bucket *b = bpf_map_lookup_elem(&wait_buckets, &at);

	at *= KPROF_WAIT_WAYS;
	if (!b)
		return NULL;
	for (int i = 0; i < KPROF_WAIT_WAYS; i++, at++)
		if (b->tids[i] == tid)
			return bpf_map_lookup_elem(&wait_threads, &at);
	return NULL;
}

/*
 * A new place, of which *id is to be set when it is filled in. NULL: there is none, or another CPU
 * is just taking one for this thread.
 */
static __always_inline struct kprof_wait *take_place(__u32 tid, __u32 **id)
{
	__u32 at = KPROF_WAIT_BUCKET(tid), taken = tid | KPROF_WAIT_TAKEN;
	struct kprof_wait_bucket *b = bpf_map_lookup_elem(&wait_buckets, &at);

	at *= KPROF_WAIT_WAYS;
	if (!b)
		return NULL;
	for (int i = 0; i < KPROF_WAIT_WAYS; i++)
		if (b->tids[i] == taken)
			return NULL;
	for (int i = 0; i < KPROF_WAIT_WAYS; i++, at++) {
		*id = &b->tids[i];
		if (!b->tids[i] && !__sync_val_compare_and_swap(&b->tids[i], 0, taken))
			return bpf_map_lookup_elem(&wait_threads, &at);
	}
	__sync_fetch_and_add(&waits_refused, 1);
	return NULL;
}

static __always_inline void leave_place(__u32 tid)
{
	__u32 at = KPROF_WAIT_BUCKET(tid);
	struct kprof_wait_bucket *b = bpf_map_lookup_elem(&wait_buckets, &at);

	for (int i = 0; b && i < KPROF_WAIT_WAYS; i++)
		if (b->tids[i] == tid)
			b->tids[i] = 0;
}

/*
 * Of all processes, user space is told of those that it does not know, once they leave a CPU: when
 * its threads are met first, and again a second later, as it may have forgotten them.
 */
#define ASK_AGAIN_NS 1000000000

static __always_inline bool is_unknown(const struct kprof_wait *w, __u32 pid, __u64 now_ns)
{
	return all_processes && now_ns >= w->asked_ns + ASK_AGAIN_NS && !is_target(pid);
}

/* Has its process no other thread that lives? */
static __always_inline bool is_alone(const struct task_struct *task)
{
	return task->signal->live.counter <= 1;
}

/*
 * A program that has just begun leaves its CPU for who began it, and mostly ends soon. There is
 * something to tell of it once it blocks, has waited for long, or is there for longer.
 */
#define JUST_BEGUN_NS 10000000

static __always_inline bool has_just_begun(const struct task_struct *task, __u64 now_ns)
{
	return now_ns < task->group_leader->start_time + JUST_BEGUN_NS && is_alone(task);
}

/* As the thread leaves a CPU. Returns whether user space knows its process, or is told of it. */
static __always_inline bool ask_for(struct kprof_wait *w, const struct task_struct *task,
				    bool blocks, __u64 now_ns)
{
	if (!is_unknown(w, task->tgid, now_ns))
		return true;
	if (task->flags & PF_EXITING)
		return false;
	if (wait_min_ns && !blocks && !w->told && has_just_begun(task, now_ns))
		return false;
	w->asked_ns = now_ns;
	return tell_of_process(0);
}

static __always_inline bool begun_since(const struct task_struct *task)
{
	return task->start_time >= waits_from_ns;
}

/*
 * What a thread that is on a CPU now was doing until its first event. If it has begun since, it
 * waited for this CPU, but the kernel did not report that it got it.
 */
static __always_inline __u32 before_this(const struct task_struct *task)
{
	return begun_since(task) ? KPROF_WAIT_RUNNABLE : KPROF_WAIT_RUNS;
}

/*
 * The first event of a thread tells what it was doing until then, since the recording began or the
 * thread did.
 */
static __always_inline struct kprof_wait *add_thread(struct task_struct *task, __u32 state)
{
	__u32 tid = task->pid, *id = NULL;
	struct kprof_wait *w;

	if ((!all_processes && !is_target(task->tgid)) || task->flags & PF_EXITING ||
	    !is_wanted(task->pid))
		return NULL;
	w = take_place(tid, &id);
	if (!w || !id)
		return NULL;
	__builtin_memset(w, 0, sizeof(*w));
	w->number = number_of(task);
	w->state = state;
	w->call = KPROF_WAIT_NO_CALL;
	w->start_ns = task->start_time;
	if (!begun_since(task)) {
		w->start_ns = waits_from_ns;
		w->flags = KPROF_WAIT_IN_START;
		w->ran_ns = task->se.sum_exec_runtime;
	}
	w->since_ns = w->off_ns = w->start_ns;
	/* likely to be long, until it is known better */
	for (int i = 0; i < KPROF_WAIT_KINDS; i++)
		w->lengths[i] = wait_long_ns * VERY >> 7;
	if (state != KPROF_WAIT_RUNS)
		read_call(w, task);
	if (state == KPROF_WAIT_BLOCKED)
		w->task_state = task->__state;
	*(volatile __u32 *)id = tid;
	return w;
}

/* state: what the thread was doing until now, if this is its first event */
static __always_inline struct kprof_wait *thread_at(struct task_struct *task, __u32 state)
{
	__u32 tid = task->pid;
	struct kprof_wait *w;

	if (!tid) /* the idle threads have no number of their own */
		return NULL;
	w = find_thread(tid);
	return w ? w : add_thread(task, state);
}

static __always_inline void tell(const struct kprof_wait *w)
{
	struct kprof_wire_count *count = count_fired(wait_source);
	void *ring = this_ring();
	struct kprof_wire_wait *e;

	if (!count || !ring)
		return;
	e = bpf_ringbuf_reserve(ring, sizeof(*e), 0);
	if (!e) {
		__sync_fetch_and_add(&count->dropped, 1);
		return;
	}
	fill_header(&e->h, w->number, 0, 0, KPROF_WIRE_WAIT, sizeof(*e));
	e->w = *w;
	bpf_ringbuf_submit(e, samples_only ? BPF_RB_NO_WAKEUP : wakeup());
}

/* ---- the tracepoints ---- */

#define CALL_FUTEX 202

static __always_inline __u32 *length_of(struct kprof_wait *w)
{
	return &w->lengths[(w->call ^ w->call >> 3) & (KPROF_WAIT_KINDS - 1)];
}

/* A quarter of the average is the latest wait. */
static __always_inline void learn_length(__u32 *length, __u64 ns)
{
	ns >>= 8;
	if (ns > 0xffffffff)
		ns = 0xffffffff;
	*length = *length - (*length >> 2) + (__u32)(ns >> 2);
}

/* When was it woken? If nobody was seen to wake it, when it got its CPU. */
static __always_inline __u64 woken_at(const struct kprof_wait *w, __u64 got_ns)
{
	if (w->state == KPROF_WAIT_RUNNABLE)
		return w->off_ns;
	if (!w->wake_ns || w->wake_ns > got_ns)
		return got_ns;
	/* it may have been woken on the way to its wait, when it was still on its CPU */
	return w->wake_ns > w->off_ns ? w->wake_ns : w->off_ns;
}

/*
 * The thread got a CPU at this time. User space may read this meanwhile: while anything changes,
 * the three sums are not all of the time up to since_ns.
 */
static __always_inline void end_wait(struct kprof_wait *w, __u64 got_ns)
{
	__u64 wait_ns = got_ns - w->off_ns;
	bool is_told = wait_ns >= wait_min_ns;

	w->wake_ns = woken_at(w, got_ns);
	w->blocked_ns += w->wake_ns - w->off_ns;
	w->runnable_ns += got_ns - w->wake_ns;
	barrier();
	w->state = KPROF_WAIT_RUNS;
	w->told += is_told;
	w->got_cpu = this_cpu();
	learn_length(length_of(w), wait_ns);
	barrier();
	w->since_ns = got_ns;
	if (is_told)
		tell(w);
	w->wake_ns = w->waker = w->waker_stack_ns = w->waker_cpu = 0;
}

/* cpu: + 1, that the thread leaves; 0: not seen */
static __always_inline void begin_wait(struct kprof_wait *w, struct task_struct *task,
				       __u32 task_state, __u64 off_ns, __u16 cpu)
{
	w->on_ns += off_ns - w->since_ns;
	barrier();
	w->off_ns = off_ns;
	w->state = task_state ? KPROF_WAIT_BLOCKED : KPROF_WAIT_RUNNABLE;
	w->task_state = task_state;
	w->left_cpu = cpu;
	w->flags = 0;
	w->stack_ns = 0;
	w->ran_ns = task->se.sum_exec_runtime;
	w->switches++;
	read_call(w, task);
	barrier();
	w->since_ns = off_ns;
}

/*
 * How long the thread has run since it was last seen to leave a CPU, as the scheduler counts it.
 * Some switches are not reported by the kernel (6.18, one in some thousands on a busy virtual
 * machine; perf does not see them either).
 */
static __always_inline __u64 has_run(const struct kprof_wait *w, const struct task_struct *task,
				     __u64 most_ns)
{
	__u64 ns = task->se.sum_exec_runtime - w->ran_ns;

	__sync_fetch_and_add(&waits_unseen, 1);
	return ns < most_ns ? ns : most_ns;
}

static __always_inline void leave_cpu(void *ctx, struct task_struct *task, __u32 task_state,
				      __u64 now_ns)
{
	struct kprof_wait *w = thread_at(task, before_this(task));
	bool is_known;

	if (!w)
		return;
	is_known = ask_for(w, task, task_state != 0, now_ns);
	if (w->state != KPROF_WAIT_RUNS)
		end_wait(w, now_ns - has_run(w, task, now_ns - w->off_ns));
	begin_wait(w, task, task_state, now_ns, this_cpu());
	if (BPF_CORE_READ_BITFIELD(task, in_iowait))
		w->flags = KPROF_WAIT_IO;
	if (is_known)
		w->stack_ns = record_stack(
			ctx, task, number_of(task), w->call == CALL_FUTEX ? w->args[0] : 0,
			KPROF_WIRE_STACK_WAIT, now_ns, guess_of((__u64)*length_of(w) << 8));
}

static __always_inline void get_cpu(struct task_struct *task, __u64 now_ns)
{
	struct kprof_wait *w = thread_at(task, KPROF_WAIT_RUNNABLE);
	__u64 off_ns;

	if (!w)
		return;
	if (w->state == KPROF_WAIT_RUNS) {
		off_ns = w->since_ns + has_run(w, task, now_ns - w->since_ns);
		/* a wait of no length would look like one that is being changed */
		if (off_ns == now_ns && off_ns > w->since_ns)
			off_ns--;
		begin_wait(w, task, w->wake_ns > off_ns, off_ns, 0);
	}
	end_wait(w, now_ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(kprof_wait_switch, bool preempt, struct task_struct *prev, struct task_struct *next,
	     unsigned int prev_state)
{
	__u64 since_ns = cost_begin_alone(KPROF_PROGRAM_SWITCH);
	__u64 now_ns = bpf_ktime_get_ns();

	if (!stopped && counting(now_ns)) {
		leave_cpu(ctx, prev, preempt ? 0 : prev_state, now_ns);
		get_cpu(next, now_ns);
	}
	cost_end(KPROF_PROGRAM_SWITCH, since_ns);
	return 0;
}

/* told: whether the kernel tells of interrupts; else only the waker's stack does. */
static __always_inline void wake(void *ctx, struct task_struct *task, bool told, bool interrupt)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct task_struct *waker = bpf_get_current_task_btf();
	struct kprof_wait *w;

	if (stopped || !counting(now_ns))
		return;
	/* it may be woken before it has left its CPU, and then does not leave it */
	w = thread_at(task, task->on_cpu ? before_this(task) : KPROF_WAIT_BLOCKED);
	if (!w)
		return;
	w->wake_ns = now_ns;
	w->waker = number_of(waker);
	w->waker_cpu = this_cpu();
	w->waker_stack_ns = 0;
	__builtin_memcpy(w->waker_comm, waker->comm, sizeof(w->waker_comm));
	w->flags &= ~KPROF_WAIT_INTERRUPT;
	if (interrupt || !waker->pid) /* the idle thread itself wakes nobody */
		w->flags |= KPROF_WAIT_INTERRUPT;
	else if (w->state == KPROF_WAIT_BLOCKED && now_ns - w->off_ns >= wait_long_ns)
		w->waker_stack_ns =
			record_stack(ctx, waker, number_of(task), 0, KPROF_WIRE_STACK_WAKER, now_ns,
				     guess_of(now_ns - w->off_ns));
	/* else it may be the thread that an interrupt hit, which had nothing to do with it */
	if (!told && !w->waker_stack_ns)
		w->waker = 0;
}

/*
 * Runs where the thread is woken. It may not have left its CPU yet; then this is only kept for when
 * it turns out to have waited.
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(kprof_wait_waking, struct task_struct *task)
{
	__u64 since_ns = cost_begin_alone(KPROF_PROGRAM_WAKE);

	wake(ctx, task, true, in_interrupt());
	cost_end(KPROF_PROGRAM_WAKE, since_ns);
	return 0;
}

/*
 * In its place where the kernel does not tell the address of its counter of interrupts (built
 * without CONFIG_KALLSYMS_ALL).
 */
SEC("tp_btf/sched_waking")
int BPF_PROG(kprof_wait_waking_plain, struct task_struct *task)
{
	__u64 since_ns = cost_begin_alone(KPROF_PROGRAM_WAKE);

	wake(ctx, task, false, false);
	cost_end(KPROF_PROGRAM_WAKE, since_ns);
	return 0;
}

/*
 * Tells the sums of the thread that runs here for the last time: it ends, or goes on under another
 * number.
 */
static __always_inline void last_of(struct task_struct *task, __u32 tid, __u64 now_ns)
{
	struct kprof_wait *w = find_thread(tid);

	if (!w)
		return;
	if (w->state != KPROF_WAIT_RUNS) /* the kernel has not reported that it got a CPU */
		end_wait(w, now_ns - has_run(w, task, now_ns - w->off_ns));
	if (w->told && is_alone(task) && is_unknown(w, task->tgid, now_ns))
		tell_of_any(0);
	w->on_ns += now_ns - w->since_ns;
	w->since_ns = now_ns;
	w->flags = KPROF_WAIT_LAST;
	tell(w);
	leave_place(tid);
}

/* Runs before the program that ends the process for the others (attach.c). */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(kprof_wait_exit, struct task_struct *task)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK), now_ns = bpf_ktime_get_ns();

	if (!stopped && counting(now_ns))
		last_of(task, task->pid, now_ns);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

static __always_inline void changes_number(struct task_struct *task, __u32 old_tid)
{
	__u64 now_ns = bpf_ktime_get_ns();
	__u32 tid = task->pid;
	struct kprof_wait *w;

	if (stopped || !counting(now_ns) || old_tid == tid)
		return;
	last_of(task, old_tid, now_ns);
	w = thread_at(task, KPROF_WAIT_RUNS);
	if (!w)
		return;
	w->start_ns = w->since_ns = now_ns;
	w->ran_ns = task->se.sum_exec_runtime;
}

/* A thread that executes a program gets the number of its process's first thread. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(kprof_wait_exec, struct task_struct *task, int old_tid)
{
	__u64 since_ns = cost_begin(KPROF_PROGRAM_TASK);

	changes_number(task, old_tid);
	cost_end(KPROF_PROGRAM_TASK, since_ns);
	return 0;
}

#endif
