/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where only what happens inside of annotations of one name is recorded: which threads are inside.
 * A thread's ranges are counted from one of that name on; when that one has ended, the thread is
 * outside again, and its hits are left before anything is done for them. Nothing of this is loaded
 * unless it is asked for.
 */
#ifndef KPROF_BPF_WITHIN_H
#define KPROF_BPF_WITHIN_H

#include "common.h"
#include "kprof/within.h"

extern const volatile bool with_within;
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

struct within_thread {
	__u32 round;
	/* by kind: open ranges, from the one of that name on; 0: the thread is in none */
	__u32 depth[KPROF_WITHIN_KINDS];
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

extern struct within_threads_map within_threads SEC(".maps");
extern struct within_scratches_map within_scratches SEC(".maps");

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

/* Is what this thread does now to be recorded? */
static __always_inline bool within_here(void)
{
	return !with_within || within_any(within_thread(bpf_get_current_task_btf()));
}

/* The thread executes another program. */
static __always_inline void within_forget(struct task_struct *task)
{
	struct within_thread *t;

	if (!with_within)
		return;
	t = bpf_task_storage_get(&within_threads, task, NULL, 0);
	if (t)
		t->round = within_round(task) - 1;
}

static long within_compare(__u32 i, void *ctx)
{
	struct within_scratch *s = *(struct within_scratch **)ctx;
	__u32 text = s->match.text & (KPROF_WIRE_TEXT_LONG - 1);
	__u32 pattern = s->match.pattern & (KPROF_WITHIN_BYTES - 1);

	s->verdict = kprof_within_step(&s->match, s->text[text], within_pattern[pattern]);
	return s->verdict != KPROF_WITHIN_MORE;
}

/* Has the text at this address the name that is asked for? */
static __noinline bool within_has_name(__u64 text_addr)
{
	struct within_scratch *s;
	bool same = false;

	if (!text_addr)
		return false;
	s = take_scratch(&within_scratches, NR_WITHIN_SCRATCHES);
	if (s && bpf_probe_read_user_str(s->text, sizeof(s->text), (void *)text_addr) > 0) {
		__builtin_memset(&s->match, 0, sizeof(s->match));
		bpf_loop(KPROF_WITHIN_STEPS, within_compare, &s, 0);
		same = s->verdict == KPROF_WITHIN_SAME;
	} else {
		__sync_fetch_and_add(&within_unread, 1);
	}
	if (s)
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

	if (t && t->depth[kind & (KPROF_WITHIN_KINDS - 1)]) {
		t->depth[kind & (KPROF_WITHIN_KINDS - 1)]++;
		return true;
	}
	if (stopped || !is_wanted(pid_tgid) || (space ? *space == KPROF_WIRE_LEFT_OUT : !joining) ||
	    !within_has_name(text_addr))
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
