/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where only what happens inside of annotations of one name is recorded: which threads are inside.
 * A thread's ranges are counted from one of that name on; when that one has ended, the thread is
 * outside again, and its hits are left before anything is done for them. Nothing of this is loaded
 * unless it is asked for. Where it is the name of something else: inside.h.
 */
#ifndef KPROF_BPF_WITHIN_H
#define KPROF_BPF_WITHIN_H

#include "common.h"
#include "kprof/modules.h"
#include "kprof/within.h"

extern const volatile bool with_within;
extern const volatile __u32 within_of; /* enum kprof_within_of */
extern const volatile char within_pattern[KPROF_WITHIN_BYTES];
/*
 * Counted up by user space when a process's probes on ranges are others: a range may have ended
 * unseen, so no thread of it is inside. Processes share a place.
 */
extern __u32 within_rounds[KPROF_WITHIN_ROUNDS];
/* How many annotations of that name have begun, in threads that were outside. */
extern __u64 within_met;
/* … and how many may have been of it: their name could not be read, or nothing be noted of them. */
extern __u64 within_unread;
/* Hits that count as outside, because it could not be found out whether they are. */
extern __u64 within_unknown;

/* Code, or a class, that does not have the name, and until when that is not looked at again. */
struct within_other {
	__u64 address, until_ns;
};
#define WITHIN_OTHERS 128 /* a power of two */
#define WITHIN_OTHER_AT(address) ((__u32)((address)*0x9e3779b97f4a7c15ull >> 57))

struct within_thread {
	__u32 round;
	/* by kind: open ranges, from the one of that name on; 0: the thread is in none */
	__u32 depth[KPROF_WITHIN_KINDS];
	/* Of what is no annotation: the outermost return address of a call that was recorded. */
	__u64 top;    /* where it lies on the stack; 0: the thread is outside, as far as is known */
	__u64 tstate; /* its state in Python, so that it need not be searched for again */
	/* Of a native function: the stack pointer at its entry, 0: the thread is in none … */
	__u64 sp;
	__u64 ret_addr; /* … and what lies there as long as it has not returned */
	struct within_other others[WITHIN_OTHERS]; /* by WITHIN_OTHER_AT() */
};

struct within_threads_map {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct within_thread);
};

struct within_scratch {
	__u32 busy; /* see take_scratch() */
	__u32 verdict;
	struct kprof_within_match match;
	char text[KPROF_WIRE_TEXT_LONG];
};

#define NR_WITHIN_SCRATCHES 4
struct within_scratches_map {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_WITHIN_SCRATCHES);
	__type(key, __u32);
	__type(value, struct within_scratch);
};

/* Processes whose interpreter is known, by process id. */
struct within_pythons_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, struct kprof_modules);
};

extern struct within_threads_map within_threads SEC(".maps");
extern struct within_scratches_map within_scratches SEC(".maps");
extern struct within_pythons_map within_pythons SEC(".maps");

static __always_inline __u32 within_round(const struct task_struct *task)
{
	return within_rounds[KPROF_WITHIN_ROUND(task->tgid)];
}

/* NULL: it is in no such range. */
static __always_inline struct within_thread *within_thread(struct task_struct *task)
{
	struct within_thread *t = bpf_task_storage_get(&within_threads, task, NULL, 0);

	return t && t->round == within_round(task) ? t : NULL;
}

static __always_inline bool within_any(const struct within_thread *t)
{
	__u32 depth = 0;

	for (int i = 0; t && i < KPROF_WITHIN_KINDS; i++)
		depth |= t->depth[i];
	return depth;
}

static __always_inline bool within_in_python(void)
{
	return within_of == KPROF_WITHIN_FUNCTIONS || within_of == KPROF_WITHIN_MODULES;
}

/* The thread executes another program. */
static __always_inline void within_forget(struct task_struct *task)
{
	struct within_thread *t;
	__u32 pid = task->tgid;

	if (!with_within)
		return;
	t = bpf_task_storage_get(&within_threads, task, NULL, 0);
	if (t)
		t->round = within_round(task) - 1;
	if (within_in_python())
		bpf_map_delete_elem(&within_pythons, &pid);
}

/* A process was forked, whose memory is a copy of its parent's. */
static __always_inline void within_forked(__u32 parent, __u32 child)
{
	struct kprof_modules *python;

	if (!with_within || !within_in_python() || parent == child)
		return;
	python = bpf_map_lookup_elem(&within_pythons, &parent);
	if (python)
		bpf_map_update_elem(&within_pythons, &child, python, BPF_ANY);
}

static long within_compare(__u32 i, void *ctx)
{
	struct within_scratch *s = *(struct within_scratch **)ctx;
	__u32 text = s->match.text & (KPROF_WIRE_TEXT_LONG - 1);
	__u32 pattern = s->match.pattern & (KPROF_WITHIN_BYTES - 1);

	s->verdict = kprof_within_step(&s->match, s->text[text], within_pattern[pattern]);
	return s->verdict != KPROF_WITHIN_MORE;
}

/* Has the text at this address the name that is asked for? Negative: it could not be read. */
static __noinline int within_has_name(__u64 text_addr)
{
	struct within_scratch *s;
	int same = -1;

	if (!text_addr)
		return 0;
	s = take_scratch(&within_scratches, NR_WITHIN_SCRATCHES);
	if (!s)
		return -1;
	if (bpf_probe_read_user_str(s->text, sizeof(s->text), (void *)text_addr) > 0) {
		__builtin_memset(&s->match, 0, sizeof(s->match));
		bpf_loop(KPROF_WITHIN_STEPS, within_compare, &s, 0);
		same = s->verdict == KPROF_WITHIN_SAME;
	}
	give_scratch(s);
	return same;
}

/*
 * A range of this kind begins. The thread is inside if it was, or if the range has the name
 * that is asked for.
 */
static __always_inline bool within_begins(__u32 kind, __u64 text_addr)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct task_struct *task = bpf_get_current_task_btf();
	struct within_thread *t = within_thread(task);
	__u32 *space = target_space(pid_tgid >> 32);
	int named;

	if (t && t->depth[kind & (KPROF_WITHIN_KINDS - 1)]) {
		t->depth[kind & (KPROF_WITHIN_KINDS - 1)]++;
		return true;
	}
	if (stopped || !is_wanted(pid_tgid) || (space ? *space == KPROF_WIRE_LEFT_OUT : !joining))
		return within_any(t);
	named = within_has_name(text_addr);
	if (named < 0)
		__sync_fetch_and_add(&within_unread, 1);
	if (named <= 0)
		return within_any(t);
	if (!t)
		t = bpf_task_storage_get(&within_threads, task, NULL,
					 BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t) {
		__sync_fetch_and_add(&within_unread, 1);
		return false;
	}
	if (t->round != within_round(task)) {
		__builtin_memset(t->depth, 0, sizeof(t->depth));
		t->round = within_round(task);
	}
	t->depth[kind & (KPROF_WITHIN_KINDS - 1)] = 1;
	__sync_fetch_and_add(&within_met, 1);
	return true;
}

/* A range of this kind ends, which was inside if the thread was. */
static __always_inline bool within_ends(struct within_thread *t, __u32 kind)
{
	bool inside = within_any(t);

	if (t && t->depth[kind & (KPROF_WITHIN_KINDS - 1)])
		t->depth[kind & (KPROF_WITHIN_KINDS - 1)]--;
	return inside;
}

#endif
