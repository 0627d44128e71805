// SPDX-License-Identifier: BSD-2-Clause
#include "symbol/x86/x86.h"

#include <errno.h>

#define MAX_BYTES 256
#define WORD 8

/* How far the instruction moves the stack pointer down; 0: not at all. -1: not known. */
static int32_t pushed(const struct code_insn *insn)
{
	if (insn->kind == CODE_PUSH || insn->kind == CODE_PUSH_OTHER)
		return WORD;
	if (insn->kind == CODE_LEA && insn->a == CODE_SP)
		return insn->b == CODE_SP && insn->value <= 0 ? -insn->value : -1;
	if (insn->kind == CODE_CALL || insn->kind == CODE_CALL_INDIRECT)
		return 0;
	return code_insn_written(insn) >> CODE_SP & 1 ? -1 : 0;
}

int insn_memory_args(const uint8_t *code, size_t bytes)
{
	int32_t depth = WORD; /* bytes between the stack pointer and the arguments */
	int32_t highest = -1, arg;
	bool is_word = false;
	struct code_insn insn;

	if (bytes > MAX_BYTES)
		bytes = MAX_BYTES;
	for (size_t at = 0; at < bytes && code_insn_decode(code + at, bytes - at, &insn);
	     at += insn.length) {
		int32_t down = pushed(&insn);

		if (insn.kind == CODE_RET || down < 0)
			break;
		arg = insn.disp - depth;
		if (insn.memory == CODE_MEMORY_READ && insn.place == CODE_SP && arg > highest) {
			highest = arg;
			is_word = insn.kind == CODE_LOAD;
		}
		depth += down;
	}
	return highest >= 0 && is_word ? highest + WORD : -ENOENT;
}
