/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads what an operator is called with, as the plan of its probe says (kprof/inputs.h): shapes of
 * tensors, numbers, lists of both. Nothing is understood here: user space gets the words.
 */
#ifndef KPROF_BPF_INPUTS_H
#define KPROF_BPF_INPUTS_H

#include "common.h"

/* By the probe's index, set by user space. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, KPROF_WIRE_MAX_PROBES);
	__type(key, __u32);
	__type(value, struct kprof_inputs_plan);
} inputs_plans SEC(".maps");

/* What may be written behind the last word that there is room for. */
#define INPUTS_SLACK (2 * KPROF_INPUTS_MAX_DIMS + 8)

struct inputs_scratch {
	__u32 busy; /* in use: the program of a probe may be preempted by that of another */
	__u32 nr;   /* words that are written */
	__u64 arguments[KPROF_INPUTS_MAX_WORDS + KPROF_INPUTS_VALUE_WORDS];
	__u64 value[KPROF_INPUTS_VALUE_WORDS];
	__u64 tensor[KPROF_TENSOR_READ_WORDS];
	__u64 words[KPROF_WIRE_INPUTS_WORDS + INPUTS_SLACK];
};

/* Per CPU: a program may be preempted, and another one run on this CPU. */
#define NR_INPUTS_SCRATCHES 4
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, NR_INPUTS_SCRATCHES);
	__type(key, __u32);
	__type(value, struct inputs_scratch);
} inputs_scratches SEC(".maps");

/* What the callbacks below share; they are callbacks so that the verifier walks each once. */
struct inputs_reading {
	struct inputs_scratch *s;
	const struct kprof_inputs_plan *plan;
	__u64 row; /* address of the first Tensor of a row */
};

static __always_inline bool has_room(const struct inputs_scratch *s)
{
	return s->nr < KPROF_WIRE_INPUTS_WORDS;
}

static __always_inline void put_word(struct inputs_scratch *s, __u64 word)
{
	s->words[s->nr & (KPROF_WIRE_INPUTS_WORDS - 1)] = word;
	s->nr++;
}

static __always_inline void put_head(struct inputs_scratch *s, __u32 status, __u32 nr)
{
	put_word(s, KPROF_INPUT_HEAD(status, nr));
}

/* Copies `nr` words from the target. False: they cannot be read, or are too many. */
static __always_inline bool put_memory(struct inputs_scratch *s, __u64 from, __u64 nr)
{
	__u32 at = s->nr & (KPROF_WIRE_INPUTS_WORDS - 1);
	__u64 bytes = nr * 8;

	/* compare all 64 bits, so that the verifier learns the bound */
	asm volatile("" : "+r"(bytes));
	if (bytes > INPUTS_SLACK * 8 || bpf_probe_read_user(&s->words[at], bytes, (void *)from))
		return false;
	s->nr += nr;
	return true;
}

static __always_inline __u64 argument_word(const struct inputs_scratch *s, __u32 at)
{
	return s->arguments[at & (KPROF_INPUTS_MAX_WORDS - 1)];
}

/* The sizes or strides of a tensor that has them inside: from `first` on. */
static __always_inline void put_inline_dims(struct inputs_scratch *s, __u32 first, __u64 dims)
{
	for (__u32 i = 0; i < KPROF_TENSOR_INLINE_DIMS; i++)
		if (i < dims)
			put_word(s, s->tensor[first + i]);
}

static __always_inline void put_tensor(struct inputs_reading *r, __u64 address)
{
	struct inputs_scratch *s = r->s;
	__u64 impl, vtable, dims;

	if (bpf_probe_read_user(&impl, sizeof(impl), (void *)address) ||
	    bpf_probe_read_user(&vtable, sizeof(vtable), (void *)impl) ||
	    bpf_probe_read_user(s->tensor, sizeof(s->tensor),
				(void *)(impl + r->plan->sizes_off)) ||
	    s->tensor[0] > KPROF_INPUTS_MAX_DIMS) {
		put_head(s, KPROF_INPUT_UNREADABLE, 0);
		return;
	}
	dims = s->tensor[0];
	put_head(s, KPROF_INPUT_VALUE, dims);
	put_word(s, vtable);
	put_word(s, s->tensor[KPROF_TENSOR_READ_NUMEL]);
	put_word(s, s->tensor[KPROF_TENSOR_READ_TYPE] & r->plan->type_mask);
	if (dims > KPROF_TENSOR_INLINE_DIMS) {
		if (!put_memory(s, s->tensor[1], 2 * dims)) {
			s->nr -= 1 + KPROF_TENSOR_WORDS;
			put_head(s, KPROF_INPUT_UNREADABLE, 0);
		}
		return;
	}
	put_inline_dims(s, 1, dims);
	put_inline_dims(s, 1 + KPROF_TENSOR_INLINE_DIMS, dims);
}

static long put_tensor_of_row(__u32 i, struct inputs_reading *r)
{
	if (!has_room(r->s))
		return 1;
	put_tensor(r, r->row + i * 8);
	return 0;
}

static __always_inline void put_row(struct inputs_reading *r, __u64 row, __u64 nr)
{
	put_head(r->s, KPROF_INPUT_VALUE, nr > 0xffffffff ? 0xffffffff : nr);
	if (nr > KPROF_INPUTS_MAX_LIST)
		return;
	r->row = row;
	bpf_loop(nr, put_tensor_of_row, r, 0);
}

/* What a c10::IListRef<Tensor> is: this, or a list of IValues, or a vector of references. */
enum { LIST_REF_UNBOXED = 0 };

static __always_inline void put_list_ref(struct inputs_reading *r, __u64 address)
{
	struct {
		__u64 row, nr;
		__u32 tag, pad;
	} list = {0};

	if (bpf_probe_read_user(&list, sizeof(list), (void *)address) ||
	    list.tag != LIST_REF_UNBOXED) {
		put_head(r->s, KPROF_INPUT_UNREADABLE, 0);
		return;
	}
	put_row(r, list.row, list.nr);
}

static __always_inline void put_vector(struct inputs_reading *r, __u64 address)
{
	struct {
		__u64 begin, end;
	} vector;

	if (bpf_probe_read_user(&vector, sizeof(vector), (void *)address)) {
		put_head(r->s, KPROF_INPUT_UNREADABLE, 0);
		return;
	}
	put_row(r, vector.begin, (vector.end - vector.begin) / 8);
}

static __always_inline void put_numbers(struct inputs_scratch *s, const struct kprof_input *in)
{
	__u64 row = argument_word(s, in->at), nr = argument_word(s, in->at + 1);

	/* without a flag, an optional row that is not there has no address, but a length */
	if (in->read == KPROF_INPUT_NUMBERS_IF ? !(argument_word(s, in->at + 2) & 0xff)
					       : !row && nr) {
		put_head(s, KPROF_INPUT_NONE, 0);
		return;
	}
	put_head(s, KPROF_INPUT_VALUE, nr > 0xffffffff ? 0xffffffff : nr);
	if (nr && nr <= KPROF_INPUTS_MAX_LIST && !put_memory(s, row, nr * in->nr)) {
		s->nr--;
		put_head(s, KPROF_INPUT_UNREADABLE, 0);
	}
}

static __always_inline void put_optional_tensor(struct inputs_reading *r, __u64 address,
						bool flag_first)
{
	__u64 flag, tensor = address + (flag_first ? 8 : 0);

	if (bpf_probe_read_user(&flag, sizeof(flag), (void *)(address + (flag_first ? 0 : 8))))
		put_head(r->s, KPROF_INPUT_UNREADABLE, 0);
	else if (!(flag & 0xff))
		put_head(r->s, KPROF_INPUT_NONE, 0);
	else
		put_tensor(r, tensor);
}

/*
 * Writes a value that lies among `words`, of which KPROF_INPUTS_VALUE_WORDS can be read. What is
 * not part of it is left out: registers and padding have anything there, and equal inputs are to
 * give equal records.
 */
static __always_inline void put_value(struct inputs_scratch *s, const struct kprof_input *in,
				      const __u64 *words)
{
	const __u8 *bytes = (const __u8 *)words;
	__u32 value = in->value / 8 & (KPROF_INPUTS_VALUE_WORDS - 1);

	if (in->flag && !bytes[(in->flag - 1) & (8 * KPROF_INPUTS_VALUE_WORDS - 1)]) {
		put_head(s, KPROF_INPUT_NONE, 0);
	} else if (in->read == KPROF_INPUT_SCALAR) {
		put_head(s, KPROF_INPUT_VALUE, 2);
		put_word(s, (__u32)words[value]);
		put_word(s, words[(value + 2) & (KPROF_INPUTS_VALUE_WORDS - 1)]);
	} else if (in->bytes) {
		put_head(s, KPROF_INPUT_VALUE, 1);
		put_word(s,
			 words[value] >> 8 * (in->value & 7) & ~0ull >> (64 - 8 * in->bytes & 63));
	} else {
		put_head(s, KPROF_INPUT_VALUE, 0);
	}
}

static __always_inline void put_value_of_memory(struct inputs_scratch *s,
						const struct kprof_input *in)
{
	__u64 bytes = in->nr * 8ull;

	if (bytes > 8 * KPROF_INPUTS_VALUE_WORDS ||
	    bpf_probe_read_user(s->value, bytes, (void *)argument_word(s, in->at)))
		put_head(s, KPROF_INPUT_UNREADABLE, 0);
	else
		put_value(s, in, s->value);
}

static long put_input(__u32 i, struct inputs_reading *r)
{
	const struct kprof_input *in = &r->plan->in[i & (KPROF_INPUTS_MAX - 1)];
	__u64 word = argument_word(r->s, in->at);

	if (!has_room(r->s))
		return 1;
	switch (in->read) {
	case KPROF_INPUT_WORDS:
		put_value(r->s, in, &r->s->arguments[in->at & (KPROF_INPUTS_MAX_WORDS - 1)]);
		break;
	case KPROF_INPUT_MEMORY:
	case KPROF_INPUT_SCALAR:
		put_value_of_memory(r->s, in);
		break;
	case KPROF_INPUT_TENSOR:
		put_tensor(r, word);
		break;
	case KPROF_INPUT_TENSOR_AFTER_FLAG:
	case KPROF_INPUT_TENSOR_BEFORE_FLAG:
		put_optional_tensor(r, word, in->read == KPROF_INPUT_TENSOR_AFTER_FLAG);
		break;
	case KPROF_INPUT_TENSORS:
		put_row(r, word, argument_word(r->s, in->at + 1));
		break;
	case KPROF_INPUT_TENSOR_LIST_REF:
		put_list_ref(r, word);
		break;
	case KPROF_INPUT_TENSOR_VECTOR:
		put_vector(r, word);
		break;
	case KPROF_INPUT_NUMBERS:
	case KPROF_INPUT_NUMBERS_IF:
		put_numbers(r->s, in);
		break;
	default:
		return 1;
	}
	return 0;
}

/* Reads the inputs of the call that begins here into s->words. */
static __always_inline void read_inputs(struct pt_regs *ctx, struct inputs_scratch *s,
					const struct kprof_inputs_plan *plan, __u64 sp)
{
	struct inputs_reading r = {.s = s, .plan = plan};
	__u64 stack_words = plan->stack_words;

	s->nr = 0;
	s->arguments[0] = PT_REGS_PARM1(ctx);
	s->arguments[1] = PT_REGS_PARM2(ctx);
	s->arguments[2] = PT_REGS_PARM3(ctx);
	s->arguments[3] = PT_REGS_PARM4(ctx);
	s->arguments[4] = PT_REGS_PARM5(ctx);
	s->arguments[5] = PT_REGS_PARM6(ctx);
	if (stack_words > KPROF_INPUTS_MAX_WORDS - KPROF_INPUTS_REGISTERS)
		return;
	if (stack_words && bpf_probe_read_user(&s->arguments[KPROF_INPUTS_REGISTERS],
					       stack_words * 8, (void *)(sp + 8)))
		return;
	bpf_loop(plan->nr, put_input, &r, 0);
}

#endif
