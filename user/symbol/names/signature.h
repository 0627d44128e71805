/* SPDX-License-Identifier: BSD-2-Clause */
/* How the arguments of PyTorch's operators are passed. */
#ifndef KPROF_SYMBOL_NAMES_SIGNATURE_H
#define KPROF_SYMBOL_NAMES_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "kprof/wire.h"

/* What an argument is, which decides how it is shown; each may be optional. */
enum signature_kind {
	SIGNATURE_OTHER, /* torch.profiler shows nothing of it: a device, a generator, a text */
	SIGNATURE_TENSOR,
	SIGNATURE_TENSORS,
	SIGNATURE_EACH_TENSOR, /* any number of arguments, each of which is a tensor */
	SIGNATURE_BOOL,
	SIGNATURE_INT,
	SIGNATURE_BYTE, /* a number of one byte, such as that of a type */
	SIGNATURE_DOUBLE,
	SIGNATURE_SYMINT,
	SIGNATURE_SCALAR,
	SIGNATURE_INTS,
	SIGNATURE_SYMINTS,
	SIGNATURE_DOUBLES,
	SIGNATURE_SCALARS,
	SIGNATURE_BOOLS_2,
	SIGNATURE_BOOLS_3,
	SIGNATURE_BOOLS_4,
};

struct signature_argument {
	uint8_t kind; /* enum signature_kind */
	uint8_t read; /* enum kprof_input_read; END: it is not */
};

struct signature {
	struct kprof_inputs_plan plan; /* without the layout of tensors */
	/*
	 * The schema is not known: what is read is valid only if the first argument turns out to be
	 * a Tensor.
	 */
	bool guessed;
	bool own_optional; /* as given to signature_parse() */
	/* The arguments are values on a stack that say themselves what they are: … */
	bool boxed; /* … the uppermost ones (enum kprof_boxed_word) … */
	bool stack; /* … or all of them: then boxed, too */
	uint8_t nr;
	struct signature_argument arguments[KPROF_INPUTS_MAX];
};

/*
 * How an operator's arguments are passed and read. mangled: the name of at::_ops::X::call; schema:
 * its text, "": not known; own_optional: the library has c10::optional<> as a class of its own. -ENOENT: one of
 * its types is not known, or its result; -E2BIG: too many arguments; -ENOMEM.
 */
int signature_parse(const char *mangled, const char *schema, bool own_optional,
		    struct signature *out);

#endif
