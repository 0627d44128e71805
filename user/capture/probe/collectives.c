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
#define MAX_WHOLE_BYTES 8192 /* of a function that is looked through as a whole */
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

/* The registers that a call may change. */
#define CHANGED_BY_CALL \
	(1u << CODE_AX | 1u << CODE_CX | 1u << CODE_DX | 1u << RSI | 1u << RDI | 0xf00u)

/* Which registers have the value that those in `held` had before the instruction. */
static uint16_t still_held(const struct code_insn *insn, uint16_t held)
{
	bool copied = insn->kind == CODE_LEA && !insn->value && held >> insn->b & 1;

	if (insn->kind == CODE_CALL || insn->kind == CODE_CALL_INDIRECT)
		held &= (uint16_t)~CHANGED_BY_CALL;
	held &= (uint16_t)~code_insn_written(insn);
	return copied ? held | (uint16_t)(1u << insn->a) : held;
}

/* A read of a field of an object whose address is in one of these registers? */
static bool reads(const struct code_insn *insn, uint16_t held)
{
	return insn->memory == CODE_MEMORY_READ && insn->place < CODE_NR &&
	       held >> insn->place & 1 && insn->disp >= 0;
}

int collectives_root(const uint8_t *code, size_t bytes, unsigned int reg, int32_t size_off,
		     int32_t *off)
{
	uint16_t options = (uint16_t)(1u << reg), backend = 1u << RSI;
	int32_t found = -1;
	bool size = false; /* is in rdx */
	struct code_insn insn;

	for (size_t at = 0;
	     at < bytes && at < MAX_BYTES && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length) {
		if (insn.kind == CODE_CALL) {
			*off = found;
			return found >= 0 && size ? 0 : -ENOENT;
		}
		if (insn.kind == CODE_CALL_INDIRECT || insn.kind == CODE_RET ||
		    insn.kind == CODE_JMP || insn.kind == CODE_JCC)
			break;
		if (reads(&insn, options)) {
			if (!insn.copies || (found >= 0 && found != insn.disp))
				break;
			found = insn.disp;
		}
		if (code_insn_written(&insn) >> CODE_DX & 1)
			size = reads(&insn, backend) && insn.disp == size_off;
		options = still_held(&insn, options);
		backend = still_held(&insn, backend);
	}
	return -ENOENT;
}

/* movzbl disp(register), register? */
static bool reads_byte(const uint8_t *code, const struct code_insn *insn)
{
	size_t at = (code[0] & 0xf0) == 0x40; /* REX */

	return insn->length > at + 2 && code[at] == 0x0f && code[at + 1] == 0xb6;
}

int collectives_reduction(const uint8_t *code, size_t bytes, unsigned int reg, int32_t *off)
{
	uint16_t held = (uint16_t)(reg < CODE_NR ? 1u << reg : ~(1u << CODE_SP));
	int32_t byte = -1, rest = -1, found = -1;
	uint8_t byte_of = 0, rest_of = 0;
	struct code_insn insn;

	for (size_t at = 0;
	     at < bytes && at < MAX_WHOLE_BYTES && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length) {
		if (insn.kind == CODE_CALL || insn.kind == CODE_RET || insn.kind == CODE_JMP ||
		    insn.kind == CODE_CALL_INDIRECT)
			byte = rest = -1;
		if (reads(&insn, held) && reads_byte(code + at, &insn)) {
			byte = insn.disp;
			byte_of = insn.place;
		} else if (reads(&insn, held) && insn.kind == CODE_LOAD) {
			rest = insn.disp;
			rest_of = insn.place;
		}
		if (byte >= 0 && rest == byte + 8 && byte_of == rest_of) {
			if (found >= 0 && found != byte)
				return -ENOENT;
			found = byte;
		}
		if (reg < CODE_NR)
			held = still_held(&insn, held);
	}
	*off = found;
	return found > 0 ? 0 : -ENOENT;
}

int collectives_list(const uint8_t *code, size_t bytes, int32_t *pointer_off, int32_t *off)
{
	struct code_insn insn;
	int32_t read[2] = {-1, -1};
	size_t at, nr = 0;

	if (!code_insn_decode(code, bytes, &insn) || insn.kind != CODE_LOAD || insn.b != RDI ||
	    insn.a != CODE_AX || insn.value <= 0)
		return -ENOENT;
	*pointer_off = insn.value;
	*off = 0;
	for (at = insn.length;
	     at < bytes && at < MAX_BYTES && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length) {
		bool is_list = insn.kind == CODE_LEA && insn.b == CODE_AX && insn.value > 0;

		if (insn.kind == CODE_CALL || insn.kind == CODE_CALL_INDIRECT ||
		    insn.kind == CODE_RET)
			break;
		if (is_list)
			*off = insn.value;
		if (reads(&insn, 1u << CODE_AX) && nr < 2)
			read[nr++] = insn.disp;
		if (is_list && nr == 2)
			break;
		if (nr == 2 && *off > 0)
			break;
		if (code_insn_written(&insn) & 1u << CODE_AX)
			break;
	}
	if (nr == 2 && *off > 0 &&
	    ((read[0] == *off && read[1] == *off + 8) || (read[1] == *off && read[0] == *off + 8)))
		return 0;
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

/* The processor's number of an argument register. */
static unsigned int number_of(enum kprof_reg reg)
{
	return reg == KPROF_REG_ARG4 ? CODE_CX : 8;
}

/*
 * What a reduction is copied from in the function for REDUCE are its options, by the register.
 * Those of ALLREDUCE the compiler keeps elsewhere; they begin with a reduction if the offset is the
 * same.
 */
static void learn_options(const struct catalog_collectives *c, const struct layout_env *env,
			  struct collectives_layout *out)
{
	int32_t *of_reduce = &out->reduction_off[CATALOG_OPTIONS_REDUCE];
	int32_t *of_allreduce = &out->reduction_off[CATALOG_OPTIONS_ALLREDUCE];

	for (int i = CATALOG_OPTIONS_BROADCAST; i < CATALOG_OPTIONS_NR; i++) {
		unsigned int reg = number_of(c->options[i].reg);
		size_t bytes;
		const uint8_t *code = code_of(env, c->library, c->options[i].function, &bytes);

		if (!code)
			continue;
		if (i != CATALOG_OPTIONS_ALLREDUCE &&
		    collectives_root(code, bytes, reg, out->rank_off + 4, &out->root_off[i]))
			out->root_off[i] = -1;
		if (i == CATALOG_OPTIONS_REDUCE &&
		    collectives_reduction(code, bytes, reg, of_reduce))
			*of_reduce = -1;
		if (i == CATALOG_OPTIONS_ALLREDUCE &&
		    collectives_reduction(code, bytes, CODE_NR, of_allreduce))
			*of_allreduce = -1;
	}
	if (*of_allreduce != *of_reduce)
		*of_allreduce = -1;
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
		memset(out->root_off, -1, sizeof(out->root_off));
		memset(out->reduction_off, -1, sizeof(out->reduction_off));
		if (fw->collectives)
			learn_backend(fw->collectives, env, out);
		if (fw->collectives && out->rank_off)
			learn_options(fw->collectives, env, out);
	}
	if (!sequence || sequence == out->sequence)
		return;
	out->sequence = sequence;
	code = code_of(env, row->library, sequence, &bytes);
	if (!code || collectives_field(code, bytes, &out->sequence_off))
		out->sequence_off = 0;
	out->options_off = out->ranks_off = 0;
	code = code_of(env, row->library, row->collective->ranks, &bytes);
	if (!code || collectives_list(code, bytes, &out->options_off, &out->ranks_off) ||
	    out->ranks_off > UINT16_MAX)
		out->options_off = 0;
}

/* ---- recipes ---- */

static void at(struct kprof_arg *arg, int32_t off)
{
	if (off)
		arg->off = off;
	else
		arg->reg = KPROF_REG_NONE;
}

/* A field of the options; an offset below 0 is not known. */
static void in_options(struct kprof_arg *arg, int32_t off)
{
	arg->off = off;
	if (off < 0)
		*arg = (struct kprof_arg){0};
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
	in_options(&args[COLLECTIVE_ARG_ROOT], layout->root_off[of->options]);
	if (!catalog_has_root(of) && layout->options_off)
		args[COLLECTIVE_ARG_ROOT] =
			(struct kprof_arg){.reg = KPROF_REG_ARG2,
					   .deref = 2,
					   .off = layout->options_off,
					   .last_off = (uint16_t)layout->ranks_off};
	in_options(&args[COLLECTIVE_ARG_REDUCTION], layout->reduction_off[of->options]);
	if (sizes) {
		args[COLLECTIVE_ARG_NUMEL].last_off = sizes + 8 * KPROF_TENSOR_READ_NUMEL;
		args[COLLECTIVE_ARG_TYPE].last_off = sizes + 8 * KPROF_TENSOR_READ_TYPE;
	} else {
		args[COLLECTIVE_ARG_NUMEL].reg = args[COLLECTIVE_ARG_TYPE].reg = KPROF_REG_NONE;
	}
}
