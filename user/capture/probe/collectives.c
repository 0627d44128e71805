// SPDX-License-Identifier: BSD-2-Clause
/*
 * The functions are small: a constructor, two accessors. A build in which one of them looks
 * otherwise does not say what it would have told.
 */
#include "capture/probe/collectives.h"

#include <errno.h>
#include <string.h>

#include "symbol/x86/x86.h"

#define MAX_BYTES 256
enum { RSI = 6, RDI = 7 };

/* ---- code ---- */

/* movl register, disp(%rdi), without a prefix? */
static bool stores(const uint8_t *code, const struct code_insn *insn, unsigned int reg)
{
	return code[0] == 0x89 && (code[1] >> 3 & 7u) == reg && insn->place == RDI &&
	       insn->memory == CODE_MEMORY_WRITTEN;
}

int collectives_two_numbers(const uint8_t *code, size_t bytes, int32_t *off)
{
	uint16_t changed = 0;
	int32_t first = -1;
	struct code_insn insn;

	if (bytes > MAX_BYTES)
		bytes = MAX_BYTES;
	for (size_t at = 0; at < bytes && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length) {
		if (insn.kind == CODE_CALL || insn.kind == CODE_CALL_INDIRECT ||
		    insn.kind == CODE_RET || insn.kind == CODE_JMP || insn.kind == CODE_JCC)
			break;
		if (!(changed & (1u << RDI | 1u << RSI)) && stores(code + at, &insn, RSI))
			first = insn.disp;
		else if (!(changed & (1u << RDI | 1u << CODE_DX)) && first > 0 &&
			 stores(code + at, &insn, CODE_DX) && insn.disp == first + 4) {
			*off = first;
			return 0;
		}
		changed |= code_insn_written(&insn);
	}
	return -ENOENT;
}

int collectives_field(const uint8_t *code, size_t bytes, int32_t *off)
{
	struct code_insn insn;

	if (!code_insn_decode(code, bytes, &insn) || insn.kind != CODE_LOAD || insn.a != CODE_AX ||
	    insn.b != RDI || insn.value <= 0)
		return -ENOENT;
	*off = insn.value;
	if (!code_insn_decode(code + insn.length, bytes - insn.length, &insn) ||
	    insn.kind != CODE_RET)
		return -ENOENT;
	return 0;
}

int collectives_field_inside(const uint8_t *code, size_t bytes, int32_t *off)
{
	struct code_insn insn, before[2] = {0};

	if (bytes > MAX_BYTES)
		bytes = MAX_BYTES;
	for (size_t at = 0; at < bytes && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length) {
		/* mov off(%rax),%rax; add $field,%rax; ret */
		if (insn.kind == CODE_RET && before[0].kind == CODE_LOAD &&
		    before[0].a == CODE_AX && before[0].b == CODE_AX &&
		    before[1].kind == CODE_LEA && before[1].a == CODE_AX &&
		    before[1].b == CODE_AX && before[1].value > 0) {
			*off = before[1].value;
			return 0;
		}
		before[0] = before[1];
		before[1] = insn;
	}
	return -ENOENT;
}

/* ---- files ---- */

struct search {
	const char *globs;
	struct elffile_symbol found;
	bool any;
};

static int is_sought(void *ctx, const struct elffile_symbol *s)
{
	struct search *search = ctx;

	if (!s->function || !s->size || !catalog_match(search->globs, s->name))
		return 0;
	search->found = *s;
	search->any = true;
	return 1;
}

/* The code of the first function that matches; in libraries of this name, or in any: NULL. */
static const uint8_t *code_of(const struct layout_env *env, const char *library, const char *globs,
			      size_t *bytes)
{
	for (size_t i = 0; i < env->nr; i++) {
		struct search search = {.globs = globs};

		if (!catalog_match(library, env->names[i]))
			continue;
		if (strpbrk(globs, "*?["))
			elffile__symbols(env->files[i], is_sought, &search);
		else if (!elffile__symbol(env->files[i], globs, &search.found))
			search.any = search.found.function;
		if (search.any)
			return elffile__bytes(env->files[i],
					      elffile__offset(env->files[i], search.found.vaddr),
					      search.found.size, bytes);
	}
	return NULL;
}

static void learn_backend(const struct catalog_collectives *c, const struct layout_env *env,
			  struct collectives_layout *out)
{
	const uint8_t *code;
	size_t bytes;

	code = code_of(env, c->library, c->group_name, &bytes);
	if (!code || collectives_field_inside(code, bytes, &out->name_off)) {
		out->name_off = 0;
		return;
	}
	code = code_of(env, c->library, c->constructor, &bytes);
	if (!code || collectives_two_numbers(code, bytes, &out->rank_off))
		out->rank_off = 0;
}

void collectives_learn(const struct catalog_framework *fw, const struct catalog_row *row,
		       const struct layout_env *env, struct collectives_layout *out)
{
	const char *sequence = row->collective->sequence;
	const uint8_t *code;
	size_t bytes;

	if (!out->looked) {
		out->looked = true;
		if (tensors_layout(fw, env, &out->tensor))
			out->tensor = (struct tensor_layout){0};
		if (fw->collectives)
			learn_backend(fw->collectives, env, out);
	}
	if (!sequence || sequence == out->sequence)
		return;
	out->sequence = sequence;
	code = code_of(env, row->library, sequence, &bytes);
	if (!code || collectives_field(code, bytes, &out->sequence_off))
		out->sequence_off = 0;
}

/* ---- recipes ---- */

static void at(struct kprof_arg *arg, int32_t off)
{
	if (off)
		arg->off = off;
	else
		arg->reg = KPROF_REG_NONE;
}

void collectives_fill(const struct collectives_layout *layout, const struct catalog_collective *of,
		      struct kprof_wire_probe *out)
{
	struct kprof_arg *args = out->args;
	uint16_t sizes = layout->tensor.sizes_off;

	if (of->role != CATALOG_COLLECTIVE_CALL)
		return;
	at(&args[COLLECTIVE_ARG_RANK], layout->rank_off);
	if (of->peer == CATALOG_PEER_NONE)
		at(&args[COLLECTIVE_ARG_SEQUENCE], layout->sequence_off);
	at(&args[COLLECTIVE_ARG_NAME], layout->name_off);
	at(&args[COLLECTIVE_ARG_NAME_REST], layout->name_off);
	if (sizes) {
		args[COLLECTIVE_ARG_NUMEL].last_off = sizes + 8 * KPROF_TENSOR_READ_NUMEL;
		args[COLLECTIVE_ARG_TYPE].last_off = sizes + 8 * KPROF_TENSOR_READ_TYPE;
	} else {
		args[COLLECTIVE_ARG_NUMEL].reg = args[COLLECTIVE_ARG_TYPE].reg = KPROF_REG_NONE;
	}
}
