/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The stack of the thread that runs here: kernel, native and Python frames, put together in a
 * scratch area and written to the ring as one struct kprof_wire_stack.
 */
#ifndef KPROF_BPF_STACKS_H
#define KPROF_BPF_STACKS_H

#include "common.h"
#include "kprof/unwind.h"

/* ---- tables of code, written by user space ---- */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KPROF_UNWIND_MAX_RULES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct kprof_unwind_rule);
} unwind_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KPROF_UNWIND_MAX_PAGES);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct kprof_unwind_page);
} unwind_pages SEC(".maps");

/*
 * All rows are one big value: as elements of a BPF array each would take eight bytes instead of
 * four.
 */
struct unwind_shard {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(key_size, 4);
	__uint(value_size, KPROF_UNWIND_SHARD_ROWS * 4);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, KPROF_UNWIND_MAX_SHARDS);
	__type(key, __u32);
	__array(values, struct unwind_shard);
} unwind_shards SEC(".maps");

/* The mappings of a process are the elements from 1 on; .start of element 0 is their number. */
struct unwind_space {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_INNER_MAP);
	__uint(key_size, 4);
	__uint(value_size, sizeof(struct kprof_unwind_mapping));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, KPROF_UNWIND_MAX_SPACES);
	__type(key, __u32);
	__array(values, struct unwind_space);
} unwind_spaces SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KPROF_UNWIND_MAX_SPACES);
	__type(key, __u32); /* process id */
	__type(value, struct kprof_stack_process);
} stack_processes SEC(".maps");

/* ---- functions that the walker calls ---- */

static __always_inline int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return bpf_probe_read_user(to, bytes, (void *)address);
}

/*
 * The searches are global functions with plain numbers as arguments, so that the verifier looks at
 * each once. They do not branch on what is compared, else the verifier would follow every path.
 */
__noinline int unwind_find_mapping(__u32 space, __u64 ip)
{
	void *mappings = bpf_map_lookup_elem(&unwind_spaces, &space);
	struct kprof_unwind_mapping *m;
	__u32 at = 0, left;

	if (!mappings)
		return 0;
	m = bpf_map_lookup_elem(mappings, &at);
	if (!m)
		return 0;
	left = (__u32)m->start;
	at = 1;
	for (int i = 0; i < 13 && left > 1; i++) {
		__u32 half = left >> 1, middle = at + half;
		__u64 reached;

		m = bpf_map_lookup_elem(mappings, &middle);
		if (!m)
			return 0;
		reached = (ip - m->start) >> 63 ^ 1;
		barrier_var(reached);
		at += half & -(__u32)reached;
		left -= half;
	}
	return (int)at;
}

static __always_inline int unwind_mapping(kprof_u32 space, kprof_u64 ip,
					  struct kprof_unwind_mapping *m)
{
	__u32 at = (__u32)unwind_find_mapping(space, ip);
	struct kprof_unwind_mapping *found;
	void *mappings;

	mappings = bpf_map_lookup_elem(&unwind_spaces, &space);
	if (!mappings || !at)
		return -1;
	found = bpf_map_lookup_elem(mappings, &at);
	if (!found || ip < found->start || ip >= found->end)
		return -1;
	*m = *found;
	return 0;
}

/* Index of the rule that holds at this place of a page; -1: there is none. */
__noinline int unwind_find_rule(__u32 shard, __u32 first, __u32 nr, __u32 at)
{
	void *shard_map = bpf_map_lookup_elem(&unwind_shards, &shard);
	struct kprof_unwind_row *rows;
	__u32 zero = 0;

	if (!shard_map)
		return -1;
	rows = bpf_map_lookup_elem(shard_map, &zero);
	if (!rows)
		return -1;
	for (int i = 0; i < 17 && nr > 1; i++) {
		__u32 half = nr >> 1;
		__u32 middle = (first + half) & (KPROF_UNWIND_SHARD_ROWS - 1);
		__u32 reached = (at - (__u32)rows[middle].at) >> 31 ^ 1;

		barrier_var(reached);
		first += half & -reached;
		nr -= half;
	}
	return rows[first & (KPROF_UNWIND_SHARD_ROWS - 1)].rule;
}

static __always_inline int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r)
{
	struct kprof_unwind_page *p = bpf_map_lookup_elem(&unwind_pages, &page);
	struct kprof_unwind_rule *found;
	int number;

	if (!p || !p->nr)
		return -1;
	number = unwind_find_rule(p->shard, p->first, p->nr, at);
	found = bpf_map_lookup_elem(&unwind_rules, &number);
	if (!found)
		return -1;
	*r = *found;
	return 0;
}

#include "unwind.h"

/* ---- Python ---- */

/* The interpreters of processes, set by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KPROF_UNWIND_MAX_SPACES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32); /* process id */
	__type(value, struct kprof_python);
} stack_pythons SEC(".maps");

/* Where the thread state of a thread was last, so that it need not be searched again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32); /* thread id */
	__type(value, __u64);
} stack_tstates SEC(".maps");

static __always_inline int python_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	return bpf_probe_read_user(to, bytes, (void *)address);
}

#include "python.h"

_Static_assert(KPROF_WIRE_MAX_KERNEL_FRAMES + KPROF_UNWIND_MAX_FRAMES +
			       KPROF_PYTHON_MAX_FRAMES * sizeof(struct kprof_python_frame) / 8 <=
		       KPROF_WIRE_STACK_WORDS,
	       "a stack fits its record");

/* ---- recording a stack ---- */

struct stack_scratch {
	__u32 busy; /* in use: the program of a probe may be preempted by that of another */
	__u32 pad;
	/* the kernel's struct pt_regs: <asm/ptrace.h> names its fields differently */
	struct pt_regs regs;
	struct kprof_unwind_walk walk;
	struct kprof_wire_stack out;
	__u64 words[KPROF_WIRE_STACK_WORDS]; /* written to the ring right after .out */
	struct kprof_python_walk python;
};

/* bpf_loop() passes its callback a single pointer, which must point to the BPF stack. */
struct stack_ref {
	struct stack_scratch *s;
	const struct kprof_python *python;
};

static long stack_step(__u32 i, void *ctx)
{
	return unwind_step(&((struct stack_ref *)ctx)->s->walk);
}

/*
 * Walks the native frames. Returns false if the thread's registers in user space could not be read.
 */
static __always_inline bool stack_walk(struct stack_scratch *s, const void *user_regs, __u32 space)
{
	struct kprof_unwind_walk *w = &s->walk;
	struct pt_regs *regs = &s->regs;
	struct stack_ref ref = {.s = s};

	if (bpf_probe_read_kernel(regs, sizeof(*regs), user_regs))
		return false;
	dwarf_registers(w->regs, regs);
	w->ip = regs->rip;
	w->sp = regs->rsp;
	w->bp = regs->rbp;
	w->bx = regs->rbx;
	w->nr = 0;
	w->end = KPROF_UNWIND_GOING;
	w->exact = 1;
	w->innermost = 1;
	w->bp_lost = w->bx_lost = 0;
	w->space = space;
	w->mapping.start = w->mapping.end = 0;
	bpf_loop(KPROF_UNWIND_MAX_FRAMES + 1, stack_step, &ref, 0);
	return true;
}

struct stack_copy {
	struct stack_scratch *s;
	__u32 to;
};

static long stack_copy_one(__u32 i, void *ctx)
{
	struct stack_copy *c = ctx;

	c->s->words[(c->to + i) & (KPROF_WIRE_STACK_WORDS - 1)] =
		c->s->walk.ips[i & (KPROF_UNWIND_MAX_FRAMES - 1)];
	return 0;
}

/*
 * Appends the native frames to the nr_kernel frames of the kernel. Returns the words used by both.
 */
static __always_inline __u32 stack_put_native(struct stack_scratch *s)
{
	struct stack_copy copy = {.s = s, .to = s->out.nr_kernel};
	__u32 nr = s->walk.nr;

	if (nr > KPROF_UNWIND_MAX_FRAMES)
		nr = KPROF_UNWIND_MAX_FRAMES;
	bpf_loop(nr, stack_copy_one, &copy, 0);
	s->out.nr_user = nr;
	s->out.end = s->walk.end;
	return copy.to + nr;
}

/* The rest of the stack's page, and the next two pages. */
#define STACK_PAGE 4096
#define STACK_PAGES 2

/*
 * Appends, instead of native frames, what user space needs to walk the stack itself. Returns the
 * words used.
 */
static __always_inline __u32 stack_put_copy(struct stack_scratch *s)
{
	__u32 to = s->out.nr_kernel & (2 * KPROF_WIRE_MAX_KERNEL_FRAMES - 1);
	__u64 sp = s->walk.regs[7], first = STACK_PAGE - (sp & (STACK_PAGE - 1)), bytes = 0;
	char *at = (char *)&s->words[to + KPROF_WIRE_STACK_REGISTERS];

	s->words[to] = s->regs.rip;
	for (__u32 i = 0; i < 16; i++)
		s->words[to + 1 + i] = s->walk.regs[i];
	if (!bpf_probe_read_user(at, first, (void *)sp))
		bytes = first;
	for (__u32 i = 0; i < STACK_PAGES && bytes == first + i * STACK_PAGE; i++)
		if (!bpf_probe_read_user(at + first + i * STACK_PAGE, STACK_PAGE,
					 (void *)(sp + first + i * STACK_PAGE)))
			bytes += STACK_PAGE;
	s->out.flags |= KPROF_WIRE_STACK_COPIED;
	s->out.nr_user = KPROF_WIRE_STACK_REGISTERS + bytes / 8;
	s->out.end = s->walk.end;
	return to + s->out.nr_user;
}

static long stack_python_step(__u32 i, void *ctx)
{
	struct stack_ref *ref = ctx;

	return python_step(ref->python, &ref->s->python);
}

#define PYTHON_FRAME_WORDS (sizeof(struct kprof_python_frame) / 8)

static long stack_copy_python(__u32 i, void *ctx)
{
	struct stack_copy *c = ctx;
	const __u64 *from = (const __u64 *)&c->s->python.frames[i & (KPROF_PYTHON_MAX_FRAMES - 1)];

	for (__u32 k = 0; k < PYTHON_FRAME_WORDS; k++)
		c->s->words[(c->to + i * PYTHON_FRAME_WORDS + k) & (KPROF_WIRE_STACK_WORDS - 1)] =
			from[k];
	return 0;
}

/*
 * Appends the Python frames to the native ones. Returns the words used by all. futex: the address
 * of the one that the thread waits for; 0: it waits for none.
 */
static __always_inline __u32 stack_put_python(struct stack_scratch *s, struct task_struct *task,
					      __u64 pid_tgid, __u32 words, __u64 futex)
{
	__u32 pid = pid_tgid >> 32, tid = pid_tgid;
	struct stack_copy copy = {.s = s, .to = words};
	struct kprof_python_walk *w = &s->python;
	struct stack_ref ref = {.s = s};
	__u64 *hint;
	__u32 nr;

	s->out.nr_python = 0;
	s->out.python_flags = 0;
	ref.python = bpf_map_lookup_elem(&stack_pythons, &pid);
	if (!ref.python)
		return words;
	hint = bpf_map_lookup_elem(&stack_tstates, &tid);
	w->thread = BPF_CORE_READ(task, thread.fsbase);
	w->hint = hint ? *hint : 0;
	w->futex = futex;
	python_begin(w);
	bpf_loop(KPROF_PYTHON_MAX_STEPS, stack_python_step, &ref, 0);
	if (w->tstate && w->tstate != w->hint)
		bpf_map_update_elem(&stack_tstates, &tid, &w->tstate, BPF_ANY);
	nr = w->nr;
	if (nr > KPROF_PYTHON_MAX_FRAMES)
		nr = KPROF_PYTHON_MAX_FRAMES;
	bpf_loop(nr, stack_copy_python, &copy, 0);
	s->out.nr_python = nr;
	s->out.python_flags = w->flags;
	return words + nr * PYTHON_FRAME_WORDS;
}

/*
 * Set where only samples are recorded: they do not wake user space, which reads them now and then.
 */
const volatile bool samples_only = false;

/* Writes the stack to the ring. Returns false if there was no room; that is counted as dropped. */
static __always_inline bool stack_emit(struct kprof_wire_count *count, struct stack_scratch *s,
				       __u32 words)
{
	__u64 bytes = sizeof(s->out) + (__u64)words * 8;
	void *ring = this_ring();

	if (bytes > sizeof(s->out) + sizeof(s->words))
		bytes = sizeof(s->out) + sizeof(s->words);
	s->out.h.size = bytes;
	if (ring &&
	    !bpf_ringbuf_output(ring, &s->out, bytes, samples_only ? BPF_RB_NO_WAKEUP : wakeup()))
		return true;
	__sync_fetch_and_add(&count->dropped, 1);
	return false;
}

#endif
