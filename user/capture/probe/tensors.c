// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/tensors.h"

#include <errno.h>

#include "symbol/x86/x86.h"

#define MAX_BYTES 256

/*
 * The function looks at two sets of flags (are the strides a Python object's to tell? are they
 * symbolic?), and else returns the strides: those inside of the object if there are at most five.
 *
 * Where the flags are, from sizes_and_strides_ on, in all releases since 1.13: behind 88 bytes of
 * sizes and strides, storage_offset_, numel_, data_type_ (2 bytes) and device_opt_. If they are
 * there, the fields between are where kprof/inputs.h takes them to be.
 */
#define SYMBOLIC_OFF (KPROF_TENSOR_READ_TYPE * 8 + 6)
#define PYTHON_OFF (KPROF_TENSOR_READ_TYPE * 8 + 7)

struct found {
	int32_t tested[2]; /* offsets of bytes of which bits are tested, in order … */
	uint8_t mask[2];   /* … and which bits */
	uint32_t nr_tested;
	int32_t sizes_off; /* of the number of sizes; -1: not found */
};

/* Is it `cmp reg, 5` with 64 bits? */
static bool compares_with_five(const uint8_t *code, size_t bytes, unsigned int reg)
{
	return bytes >= 4 && (code[0] & ~1u) == 0x48 && code[1] == 0x83 &&
	       code[2] == (0xf8 | (reg & 7)) && code[3] == KPROF_TENSOR_INLINE_DIMS &&
	       (code[0] & 1) == reg >> 3;
}

static void look_at(struct found *f, const struct code_insn *insn, const uint8_t *code,
		    size_t bytes)
{
	size_t opcode = (code[0] & 0xf0) == 0x40; /* behind a REX prefix */

	if (insn->memory != CODE_MEMORY_READ || insn->place >= CODE_NR || insn->place == CODE_SP)
		return;
	/* test byte [reg + disp], imm8 */
	if (code[opcode] == 0xf6 && !(code[opcode + 1] >> 3 & 7) && f->nr_tested < 2) {
		f->tested[f->nr_tested] = insn->disp;
		f->mask[f->nr_tested++] = code[insn->length - 1];
	}
	if (insn->kind == CODE_LOAD && f->sizes_off < 0 &&
	    compares_with_five(code + insn->length, bytes - insn->length, insn->a))
		f->sizes_off = insn->disp;
}

int tensors_learn(const uint8_t *code, size_t bytes, struct tensor_layout *out)
{
	struct found f = {.sizes_off = -1};
	struct code_insn insn;

	if (bytes > MAX_BYTES)
		bytes = MAX_BYTES;
	for (size_t at = 0; at < bytes && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length)
		look_at(&f, &insn, code + at, bytes - at);
	if (f.sizes_off <= 0 || f.sizes_off > UINT16_MAX || f.nr_tested < 2 ||
	    f.tested[0] != f.sizes_off + PYTHON_OFF || f.tested[1] != f.sizes_off + SYMBOLIC_OFF)
		return -ENOENT;
	out->sizes_off = (uint16_t)f.sizes_off;
	out->type_mask =
		KPROF_TENSOR_ELEMENTS | (uint64_t)f.mask[0] << 56 | (uint64_t)f.mask[1] << 48;
	return 0;
}

int tensors_layout(const struct catalog_framework *fw, const struct layout_env *env,
		   struct tensor_layout *out)
{
	for (size_t i = 0; fw->tensor_library && i < env->nr; i++) {
		struct elffile *e = env->files[i];
		struct elffile_symbol s;
		const uint8_t *code;
		size_t avail;

		if (!catalog_match(fw->tensor_library, env->names[i]) ||
		    elffile__symbol(e, fw->tensor_symbol, &s))
			continue;
		code = elffile__bytes(e, elffile__offset(e, s.vaddr), s.size, &avail);
		return code ? tensors_learn(code, avail, out) : -ENOENT;
	}
	return -ENOENT;
}
