/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls through PyTorch's boxed door (enum kprof_boxed_word): which of the values on the stack are
 * the operator's arguments. How many it has says its schema, which the process has beside the
 * operator's name. Where exactly differs between builds, and is found out by what must hold: the
 * schema has the same name again, and then arguments with names of their own.
 */
#ifndef KPROF_CAPTURE_BOXED_H
#define KPROF_CAPTURE_BOXED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the process's memory. 0, or it could not. */
typedef int (*boxed_read_fn)(void *ctx, void *to, size_t bytes, uint64_t address);

struct boxed_layout {      /* of one process; all zero: nothing is known */
	uint16_t at;       /* enum kprof_boxed_word: where the schema's vector of arguments is */
	uint16_t argument; /* bytes of an argument; 0: not known */
	uint32_t failures; /* to find it out */
};

struct boxed_call {       /* all zero: it is none */
	const char *name; /* NULL: it could not be read */
	/* of what was read: the arguments, in the agent's form (enum kprof_input_kind) */
	const uint64_t *values;
	uint32_t nr_words;
	uint32_t nr; /* of values */
	bool boxed;
	bool known;           /* else nothing is known but the name */
	bool tensor_argument; /* the tensor that the sequence number goes by is an argument */
};

/* From the words of the record. l: NULL: all values are arguments. */
void boxed_call(struct boxed_layout *l, const uint64_t *words, uint32_t nr, boxed_read_fn read,
		void *ctx, struct boxed_call *out);

/*
 * The flags of the call's begin (KPROF_WIRE_F_*). Its sequence number is known if the tensor that
 * it goes by is an argument, and not one that waits on the stack for a later operator. Operators of
 * a program's own may be told to leave autograd alone, whatever their tensors are.
 */
uint32_t boxed_flags(uint32_t flags, const struct boxed_call *call);

#endif
