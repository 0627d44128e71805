/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the sequence number of a call, which ties an operator to the autograd node that it makes
 * (struct kprof_wire_sequence).
 */
#ifndef KPROF_BPF_SEQUENCE_H
#define KPROF_BPF_SEQUENCE_H

#include "common.h"

/* Set by user space before the programs are loaded: are there the maps below? */
const volatile bool flow = false;

/* By the number of the address space, set by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KPROF_WIRE_MAX_SEQUENCES);
	__type(key, __u32);
	__type(value, struct kprof_wire_sequence);
} sequences SEC(".maps");

/* What does not change during the life of a thread. */
struct sequence_thread {
	__u32 space;          /* of which it is that */
	__u32 number;         /* the framework's, 0: it has none yet */
	__u64 state, numbers; /* the addresses of the thread's blocks; state 0: not known */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct sequence_thread);
} sequence_threads SEC(".maps");

struct sequence {
	__u64 number;
	__u32 thread;
	__u32 flags; /* KPROF_WIRE_F_* */
};

static __always_inline bool read_user(__u64 *to, __u64 from)
{
	return !bpf_probe_read_user(to, sizeof(*to), (void *)from);
}

/*
 * Finds the address of this thread's block of a module. False: it has none yet. In glibc's vector
 * an entry has 16 bytes, and the entry before the first, which is for no module, says how many
 * there are.
 */
static __always_inline bool find_block(__u64 vector, __u64 entries, __u64 module, __u64 *block)
{
	return module <= entries && read_user(block, vector + 16 * module) && *block &&
	       *block != ~0ull;
}

/* The thread's control block has the address of its vector at 8. */
static __always_inline struct sequence_thread *find_thread(const struct kprof_wire_sequence *s,
							   __u32 space)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct sequence_thread *t;
	__u64 vector, entries, state, numbers;

	t = bpf_task_storage_get(&sequence_threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!t || (t->state && t->space == space))
		return t;
	if (!read_user(&vector, BPF_CORE_READ(task, thread.fsbase) + 8) ||
	    !read_user(&entries, vector - 16) ||
	    !find_block(vector, entries, s->state_module, &state) ||
	    !find_block(vector, entries, s->numbers_module, &numbers))
		return NULL;
	t->space = space;
	t->number = 0;
	t->state = state;
	t->numbers = numbers;
	return t;
}

/* The keys of a call's first Tensor. False: there is none, or they cannot be read. */
static __always_inline bool tensor_keys(const struct kprof_wire_sequence *s, __u32 rule,
					__u64 value, __u64 next_value, __u64 *keys)
{
	struct {
		__u64 row, nr;
		__u32 tag, pad;
	} list;
	__u64 impl;

	if (rule == KPROF_SEQUENCE_LIST_REF) {
		if (bpf_probe_read_user(&list, sizeof(list), (void *)value) || list.tag)
			return false;
		value = list.row;
		next_value = list.nr;
	}
	if (rule != KPROF_SEQUENCE_TENSOR && !next_value)
		return false;
	return read_user(&impl, value) && read_user(keys, impl + s->tensor_keys_off);
}

static __always_inline void read_node(const struct kprof_wire_sequence *s, __u64 node,
				      struct sequence *out)
{
	__u64 number, thread;

	if (!read_user(&number, node + s->node_next_off) ||
	    !read_user(&thread, node + s->node_thread_off) || (__s64)number < 0 || thread >> 32)
		return;
	out->number = number;
	out->thread = thread;
	out->flags = KPROF_WIRE_F_NODE;
}

/* Does the call reach autograd? Of what is not known for sure, MAYBE. 0: it does not. */
static __always_inline __u32 reaches(const struct kprof_wire_sequence *s, __u64 state, __u32 rule,
				     __u64 value, __u64 next_value)
{
	__u64 included, excluded, keys;
	__u8 grad = 0;

	if (rule == KPROF_SEQUENCE_NEXT)
		return KPROF_WIRE_F_SEQUENCE;
	if (bpf_probe_read_user(&grad, sizeof(grad), (void *)(state + s->grad_off)) ||
	    !(grad & s->grad_bit))
		return 0;
	if (!read_user(&excluded, state + s->excluded_off))
		return 0;
	excluded ^= s->excluded_flipped;
	if (!(s->autograd & ~excluded))
		return 0;
	if (rule == KPROF_SEQUENCE_MAYBE || !tensor_keys(s, rule, value, next_value, &keys) ||
	    !read_user(&included, state + s->included_off))
		return KPROF_WIRE_F_MAYBE;
	keys = (keys | (included ^ s->included_flipped)) & ~excluded;
	return keys & s->autograd && !(keys & s->above) ? KPROF_WIRE_F_SEQUENCE
							: KPROF_WIRE_F_MAYBE;
}

static __always_inline void read_next(const struct kprof_wire_sequence *s,
				      struct sequence_thread *t, __u32 flags, struct sequence *out)
{
	__u64 number, thread;

	if (!read_user(&number, t->numbers + s->next_off) || (__s64)number < 0)
		return;
	if (!t->number && read_user(&thread, t->numbers + s->thread_off) && !(thread >> 32))
		t->number = thread;
	out->number = number;
	out->thread = t->number;
	out->flags = flags;
}

/* value: the argument that the rule is about; next_value: the one behind it. */
static __always_inline void read_sequence(const struct kprof_hit *hit, __u32 rule, __u64 value,
					  __u64 next_value, struct sequence *out)
{
	__u32 space = hit->space, flags;
	const struct kprof_wire_sequence *s;
	struct sequence_thread *t;

	*out = (struct sequence){0};
	if (!flow || !rule)
		return;
	s = bpf_map_lookup_elem(&sequences, &space);
	if (!s)
		return;
	if (rule == KPROF_SEQUENCE_NODE || rule == KPROF_SEQUENCE_AROUND) {
		read_node(s, value, out);
		if (out->flags && rule == KPROF_SEQUENCE_AROUND)
			out->flags |= KPROF_WIRE_F_AROUND;
		return;
	}
	t = find_thread(s, space);
	flags = t ? reaches(s, t->state, rule, value, next_value) : 0;
	if (flags)
		read_next(s, t, flags, out);
}

#endif
