/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind rules of a function that nothing describes, from its instructions: which register or place on the stack
 * leads to the caller's frame at each of them, and where the caller's rbp and rbx lie.
 *
 * The rules follow every path that direct branches make from the function's first byte, so long as all paths to a
 * place agree. Where they do not, or where the stack pointer gets a value that is not understood, the rule is
 * KPROF_UNWIND_UNKNOWN: a walk says then that it ended, and no wrong caller. A function that would return with
 * another stack pointer than it was entered with, read like this, is not believed at all.
 */
#ifndef KPROF_SYMBOL_CODE_FLOW_H
#define KPROF_SYMBOL_CODE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/unwind.h"

/* A function of more bytes is left alone. */
#define CODE_FLOW_MAX_BYTES (4u << 20)
#define CODE_FLOW_TOO_BIG (-10001) /* no errno */

struct code_flow;
int code_flow__new(struct code_flow **out);
void code_flow__free(struct code_flow *f);

#define CODE_FLOW_DOUBTFUL (-10002) /* nor this */

struct code_function {
	const uint8_t *code;
	size_t bytes;
	uint64_t vaddr;
	/*
	 * That a function begins there is a guess: it is CODE_FLOW_DOUBTFUL, and has no rows, unless every path through
	 * it is one of known instructions and ends with a return, with the caller's stack pointer, rbp and rbx.
	 */
	bool guessed;
};
/*
 * The function's rows, in order of address, the first at its start. 0, what fn returned that was negative, -ENOMEM,
 * CODE_FLOW_TOO_BIG or CODE_FLOW_DOUBTFUL: it has no rows.
 */
int code_flow__run(struct code_flow *f, const struct code_function *function,
		   int (*fn)(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule),
		   void *ctx);

#endif
