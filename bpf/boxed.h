/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what an operator is called with through the dispatcher's boxed door: values of one C++ type
 * (c10::IValue), each with a tag that says what it is, on a stack (enum kprof_boxed_word).
 */
#ifndef KPROF_BPF_BOXED_H
#define KPROF_BPF_BOXED_H

#include "inputs.h"

/* c10::IValue, in all releases: a value or the address of an object, and a tag. */
struct boxed_value {
	__u64 word;
	__u32 tag, pad;
};

/* Tags that are the same in all releases; the others follow from the plan's list_tag. */
enum { BOXED_TENSOR = 1, BOXED_DOUBLE = 3, BOXED_COMPLEX = 4, BOXED_INT = 5 };
#define BOXED_BOOL(plan) ((__u32)(plan)->list_tag - 4)

struct boxed_vector {
	__u64 begin, end;
};

/* What the callbacks below share. */
struct boxed_reading {
	struct inputs_reading in; /* in.row: the first IValue of a list */
	__u64 values;             /* address of the first one that is read */
	__u64 tensor;             /* address of the last Tensor among them; 0: there is none */
	__u32 nr, tensor_at;      /* how many values are read; from above: 1 is the uppermost */
	__u32 kind, tag;          /* of a list's numbers: of all of them … */
	bool mixed;               /* … unless they are different ones */
};

/* There is room for any tensor, so that what has been written is never overwritten. */
static __always_inline bool has_boxed_room(const struct inputs_scratch *s)
{
	return s->nr < KPROF_WIRE_INPUTS_WORDS - INPUTS_SLACK;
}

static __always_inline void put_kind(struct inputs_scratch *s, __u32 kind, __u64 nr)
{
	put_word(s,
		 KPROF_INPUT_OF_KIND(kind, KPROF_INPUT_VALUE, nr > 0xffffffff ? 0xffffffff : nr));
}

static __always_inline __u32 number_kind(const struct kprof_inputs_plan *plan, __u32 tag)
{
	if (tag == BOXED_DOUBLE)
		return KPROF_INPUT_IS_DOUBLE;
	if (tag == BOXED_INT)
		return KPROF_INPUT_IS_INT;
	if (tag == BOXED_BOOL(plan))
		return KPROF_INPUT_IS_BOOL;
	/* complex ones, unsigned ones, and those that are expressions */
	return tag >= BOXED_COMPLEX && tag < BOXED_BOOL(plan) ? KPROF_INPUT_IS_NUMBER
							      : KPROF_INPUT_IS_OTHER;
}

static __always_inline bool is_number(__u32 kind)
{
	return kind >= KPROF_INPUT_IS_DOUBLE && kind <= KPROF_INPUT_IS_BOOL;
}

/* A bool takes a byte of its word; the others are undefined. */
static __always_inline void put_number(struct inputs_scratch *s, __u32 kind, __u64 word)
{
	put_word(s, kind == KPROF_INPUT_IS_BOOL ? word & 0xff : word);
}

static long put_list_tensor(__u32 i, struct boxed_reading *r)
{
	__u64 at = r->in.row + i * sizeof(struct boxed_value);
	struct boxed_value v;

	if (!has_boxed_room(r->in.s))
		return 1;
	if (bpf_probe_read_user(&v, sizeof(v), (void *)at) || v.tag != BOXED_TENSOR)
		put_head(r->in.s, KPROF_INPUT_UNREADABLE, 0);
	else
		put_tensor(&r->in, at);
	return 0;
}

static long put_list_number(__u32 i, struct boxed_reading *r)
{
	struct boxed_value v;

	if (bpf_probe_read_user(&v, sizeof(v), (void *)(r->in.row + i * sizeof(v))) ||
	    v.tag != r->tag) {
		r->mixed = true;
		return 1;
	}
	put_number(r->in.s, r->kind, v.word);
	return 0;
}

/* PyTorch's own profiler looks at the first one only: if that is no number, nothing is shown. */
static __always_inline void put_list_numbers(struct boxed_reading *r, __u64 nr)
{
	struct inputs_scratch *s = r->in.s;
	/* not on the stack, of which a program has 512 bytes with all that it calls */
	struct boxed_value *first = (void *)s->value;
	__u32 at = s->nr;

	r->kind = KPROF_INPUT_IS_INT;
	r->mixed = false;
	if (nr) {
		if (bpf_probe_read_user(first, sizeof(*first), (void *)r->in.row)) {
			put_kind(s, KPROF_INPUT_IS_UNKNOWN, 0);
			return;
		}
		r->tag = first->tag;
		r->kind = number_kind(r->in.plan, first->tag);
	}
	if (!is_number(r->kind)) {
		put_kind(s,
			 r->kind == KPROF_INPUT_IS_OTHER ? KPROF_INPUT_IS_OTHER
							 : KPROF_INPUT_IS_UNKNOWN,
			 0);
		return;
	}
	put_kind(s, r->kind - KPROF_INPUT_IS_DOUBLE + KPROF_INPUT_IS_DOUBLES, nr);
	if (nr > KPROF_INPUTS_MAX_LIST)
		return;
	bpf_loop(nr, put_list_number, r, 0);
	if (r->mixed) {
		s->nr = at;
		put_kind(s, KPROF_INPUT_IS_UNKNOWN, 0);
	}
}

static __always_inline void put_boxed_list(struct boxed_reading *r, __u64 object, __u32 from_above)
{
	const struct kprof_inputs_plan *plan = r->in.plan;
	struct {
		struct boxed_vector v;
		__u64 capacity, type;
	} *list = (void *)r->in.s->value;
	__u32 kind;
	__u64 nr;

	if (bpf_probe_read_user(list, sizeof(*list), (void *)(object + plan->list_off)) ||
	    bpf_probe_read_user(&kind, sizeof(kind), (void *)(list->type + 8))) {
		put_kind(r->in.s, KPROF_INPUT_IS_UNKNOWN, 0);
		return;
	}
	nr = (list->v.end - list->v.begin) / sizeof(struct boxed_value);
	r->in.row = list->v.begin;
	if (kind != plan->tensor_kind) {
		put_list_numbers(r, nr);
		return;
	}
	put_kind(r->in.s, KPROF_INPUT_IS_TENSORS, nr);
	if (nr && nr <= KPROF_INPUTS_MAX_LIST) {
		r->tensor = r->in.row;
		r->tensor_at = from_above;
		bpf_loop(nr, put_list_tensor, r, 0);
	}
}

static long put_boxed_value(__u32 i, struct boxed_reading *r)
{
	struct inputs_scratch *s = r->in.s;
	__u64 at = r->values + i * sizeof(struct boxed_value);
	__u32 head = s->nr & (KPROF_WIRE_INPUTS_WORDS - 1), from_above = r->nr - i, kind;
	struct boxed_value v;

	if (!has_boxed_room(s))
		return 1;
	if (bpf_probe_read_user(&v, sizeof(v), (void *)at)) {
		put_kind(s, KPROF_INPUT_IS_UNKNOWN, 0);
	} else if (v.tag == BOXED_TENSOR) {
		r->tensor = at;
		r->tensor_at = from_above;
		put_tensor(&r->in, at);
		s->words[head] |= KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_TENSOR, 0, 0);
	} else if (v.tag == r->in.plan->list_tag) {
		put_boxed_list(r, v.word, from_above);
	} else {
		kind = number_kind(r->in.plan, v.tag);
		put_kind(s, kind, is_number(kind));
		if (is_number(kind))
			put_number(s, kind, v.word);
	}
	if (!r->in.plan->nr)
		s->nr = head;
	return 0;
}

static __always_inline void put_boxed_name(struct inputs_scratch *s, __u64 name)
{
	long bytes = name ? bpf_probe_read_user_str(&s->words[KPROF_BOXED_WORDS],
						    KPROF_WIRE_TEXT_LONG, (void *)name)
			  : 0;
	__u32 whole, rest;

	if (bytes <= 0 || bytes > KPROF_WIRE_TEXT_LONG) {
		s->words[KPROF_BOXED_NAME_BYTES] = 0;
		s->nr = KPROF_BOXED_WORDS;
		return;
	}
	whole = (__u32)bytes / 8;
	rest = bytes & 7;
	s->words[KPROF_BOXED_NAME_BYTES] = bytes;
	if (rest)
		s->words[(KPROF_BOXED_WORDS + whole) & (KPROF_WIRE_INPUTS_WORDS - 1)] &=
			~0ull >> (64 - 8 * rest);
	s->nr = KPROF_BOXED_WORDS + whole + (rest != 0);
}

/*
 * Three words of the operator's definition. Those that cannot be read now (the kernel may be moving
 * the page) fall, so that no two of them are a vector, not even an empty one.
 */
static __always_inline void put_boxed_at(struct inputs_scratch *s, __u32 to, __u64 from)
{
	if (!bpf_probe_read_user(&s->words[to], 24, (void *)from))
		return;
	s->words[to] = 2;
	s->words[to + 1] = 1;
	s->words[to + 2] = 0;
}

/*
 * Reads the call that begins here into s->words. handle: the address of an OperatorHandle; stack:
 * that of a std::vector<IValue>.
 */
static __always_inline void read_boxed(struct inputs_scratch *s, struct boxed_reading *r,
				       const struct kprof_inputs_plan *plan, __u64 handle,
				       __u64 name, __u64 stack)
{
	struct boxed_vector v;
	__u64 definition = 0, all = ~0ull, nr = 0;

	r->in.s = s;
	r->in.plan = plan;
	bpf_probe_read_user(&definition, sizeof(definition), (void *)handle);
	s->words[KPROF_BOXED_OPERATOR] = definition;
	put_boxed_at(s, KPROF_BOXED_AT_FIRST, definition + KPROF_BOXED_FIRST_OFF);
	put_boxed_at(s, KPROF_BOXED_AT_SECOND, definition + KPROF_BOXED_SECOND_OFF);
	put_boxed_name(s, name);
	if (!bpf_probe_read_user(&v, sizeof(v), (void *)stack)) {
		all = (v.end - v.begin) / sizeof(struct boxed_value);
		nr = all < KPROF_INPUTS_MAX ? all : KPROF_INPUTS_MAX;
	}
	r->nr = nr;
	r->values = v.end - nr * sizeof(struct boxed_value);
	bpf_loop(nr, put_boxed_value, r, 0);
	s->words[KPROF_BOXED_VALUES] = all;
	s->words[KPROF_BOXED_TENSOR] = r->tensor_at;
}

#endif
