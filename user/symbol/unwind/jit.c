// SPDX-License-Identifier: BSD-2-Clause
/* Tables of JIT code: finds the ends of functions and analyses their instructions. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/x86/x86.h"
#include "symbol/unwind/priv.h"
#include "util/error.h"

/* Generators that put several functions into one allocation align them. */
#define FUNCTION_ALIGN 16

struct unwind_jit {
	struct code_flow *flow;
	struct unwind_builder builder;
};

int unwind_jit__new(struct unwind_rules *rules, struct unwind_jit **out)
{
	struct unwind_jit *m = calloc(1, sizeof(*m));

	if (!m || code_flow__new(&m->flow)) {
		unwind_jit__free(m);
		return error_set(-ENOMEM, NULL, "no memory for unwind tables");
	}
	m->builder.rules = rules;
	*out = m;
	return 0;
}

void unwind_jit__free(struct unwind_jit *m)
{
	if (!m)
		return;
	code_flow__free(m->flow);
	free(m->builder.rows);
	free(m->builder.blocks);
	unwind_table__free(m->builder.out);
	free(m);
}

/* ---- where a function ends ---- */

/* The offset that a branch within the code leads to; 0: it leads elsewhere. */
static size_t leads_to(const struct code_insn *insn, size_t next, size_t bytes)
{
	int64_t target = (int64_t)next + insn->value;

	if (insn->kind != CODE_JMP && insn->kind != CODE_JCC && insn->kind != CODE_CALL)
		return 0;
	return target > 0 && target < (int64_t)bytes ? (size_t)target : 0;
}

/*
 * The size of the function: up to the first end of a path beyond which no branch so far leads.
 * After a jump to an unknown place, all bytes may belong to the function. 0: it has no end.
 */
static size_t function_bytes(const uint8_t *code, size_t bytes)
{
	struct code_insn insn;
	size_t farthest = 0;

	for (size_t at = 0; at < bytes;) {
		size_t target;

		if (!code_insn_decode(code + at, bytes - at, &insn))
			return 0;
		at += insn.length;
		target = leads_to(&insn, at, bytes);
		if (target > farthest)
			farthest = target;
		if (insn.kind == CODE_JMP_INDIRECT)
			return bytes;
		if ((insn.kind == CODE_RET || insn.kind == CODE_JMP || insn.kind == CODE_STOP) &&
		    at > farthest)
			return at;
	}
	return 0;
}

/* Skips zeros, int3 and nops between functions. SIZE_MAX: nothing else follows. */
static size_t skip_padding(const uint8_t *code, size_t bytes, size_t at)
{
	struct code_insn insn;

	while (at < bytes) {
		if (!code[at] || code[at] == 0xcc)
			at++;
		else if (code_insn_decode(code + at, bytes - at, &insn) &&
			 insn.kind == CODE_PADDING)
			at += insn.length;
		else
			return at;
	}
	return SIZE_MAX;
}

/* ---- functions ---- */

/* Adds a function. 1: it was refused, since its code could not be followed. */
static int add_function(struct unwind_jit *m, const struct code_function *function)
{
	struct unwind_builder *b = &m->builder;
	int err = unwind_builder__block(b, function->vaddr, function->vaddr + function->bytes);

	if (err)
		return err;
	err = code_flow__run(m->flow, function, unwind_builder__row, b);
	if (err == CODE_FLOW_DOUBTFUL || err == CODE_FLOW_TOO_BIG) {
		b->nr_blocks--;
		return 1;
	}
	return err;
}

int unwind_jit__add(struct unwind_jit *m, const uint8_t *code, size_t bytes, uint64_t address,
		    int (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx)
{
	size_t at = 0;
	int err = 0;

	if (!m->builder.out && !(m->builder.out = calloc(1, sizeof(*m->builder.out))))
		return -ENOMEM;
	while (!err && at < bytes) {
		struct code_function f = {
			.code = code + at, .vaddr = address + at, .guessed = true};

		f.bytes = function_bytes(f.code, bytes - at);
		if (!f.bytes)
			break;
		err = add_function(m, &f);
		if (!err)
			err = fn(ctx, f.vaddr, f.vaddr + f.bytes);
		at = skip_padding(code, bytes, at + f.bytes);
		if (at % FUNCTION_ALIGN)
			break;
	}
	return err > 0 ? 0 : err;
}

int unwind_jit__table(struct unwind_jit *m, struct unwind_table **out)
{
	struct unwind_builder *b = &m->builder;
	int err = b->nr_blocks ? unwind_builder__pages(b) : 0;

	*out = !err && b->nr_blocks ? b->out : NULL;
	if (!*out)
		unwind_table__free(b->out);
	b->out = NULL;
	b->nr_blocks = b->nr_rows = 0;
	return err;
}
