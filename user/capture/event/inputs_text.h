/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel's program read of a call's arguments → what a trace shows of its inputs. */
#ifndef KPROF_CAPTURE_INPUTS_TEXT_H
#define KPROF_CAPTURE_INPUTS_TEXT_H

#include "symbol/names/names.h"

/* The keys under which torch.profiler writes them, each a JSON array with an entry for an input. */
enum inputs_key { INPUTS_DIMS, INPUTS_TYPE, INPUTS_STRIDES, INPUTS_CONCRETE, INPUTS_KEYS };

/* Names the class whose vtable this is; NULL: it is not known. */
typedef const char *(*inputs_class_fn)(void *ctx, uint64_t vtable);

struct inputs_text {
	char *json[INPUTS_KEYS]; /* malloc'ed */
	uint32_t nr;             /* inputs */
	uint32_t unknown;        /* … of which some part is not known */
};

/*
 * A part of the words that is missing, or does not hold together, is shown as unknown. -ENODATA:
 * nothing can be said of the call's inputs; -ENOMEM. The texts are the caller's to free.
 */
int inputs_text(const struct signature *s, const uint64_t *words, uint32_t nr,
		inputs_class_fn class_of, void *ctx, struct inputs_text *out);

/* The same of words that say themselves what they are (enum kprof_input_kind). */
int inputs_text_observed(const uint64_t *words, uint32_t nr, inputs_class_fn class_of, void *ctx,
			 struct inputs_text *out);

#endif
