// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the field of an object that a function reads first: a walk in a straight line through its
 * code, which follows copies of the argument (a pointer to the object) in registers and stack
 * slots, and what is added to it.
 */
#include <errno.h>

#include "symbol/x86/state.h"

#define MAX_STEPS 256

/*
 * The origin of the argument's value for state.c: an unknown number that no instruction of the
 * function has set.
 */
#define ARGUMENT ((1u << 30) - 1)

static bool is_field(const struct code_state *s, const struct code_insn *insn, int32_t min_disp,
		     int32_t *disp)
{
	const struct code_value *base;
	int64_t at;

	if (insn->memory != CODE_MEMORY_READ || insn->place >= CODE_NR)
		return false;
	base = &s->reg[insn->place];
	at = (int64_t)base->offset + insn->disp;
	if (base->kind != CODE_SOME || base->origin != ARGUMENT || at < min_disp || at > INT32_MAX)
		return false;
	*disp = (int32_t)at;
	return true;
}

/*
 * Moves to the next instruction: direct jumps are followed, conditional ones are not taken. False:
 * the walk ends.
 */
static bool follow(const struct code_insn *insn, size_t bytes, size_t *at)
{
	int64_t target = (int64_t)*at + insn->length;

	switch (insn->kind) {
	case CODE_RET:
	case CODE_STOP:
	case CODE_JMP_INDIRECT:
		return false;
	case CODE_JMP:
		target += insn->value;
		break;
	default:
		break;
	}
	*at = (size_t)target;
	return target >= 0 && target < (int64_t)bytes;
}

int insn_fields(const uint8_t *code, size_t bytes, int arg, int32_t min_disp, int32_t *disps,
		int max)
{
	static const uint8_t arguments[] = {7, 6, 2, 1, 8, 9}; /* rdi rsi rdx rcx r8 r9 */
	struct code_state s;
	struct code_insn insn;
	unsigned int reg;
	size_t at = 0;
	int nr = 0;

	if (arg < 1 || arg > (int)sizeof(arguments))
		return -EINVAL;
	reg = arguments[arg - 1];
	code_state_enter(&s);
	s.reg[reg] = (struct code_value){.kind = CODE_SOME, .origin = ARGUMENT};
	s.known |= (uint16_t)(1u << reg);
	for (int i = 0; i < MAX_STEPS && nr < max; i++) {
		if (!code_insn_decode(code + at, bytes - at, &insn))
			break;
		nr += is_field(&s, &insn, min_disp, &disps[nr]);
		/*
		 * A store of a vector does not matter to the unwinder, but may overwrite a saved
		 * argument.
		 */
		if (insn.kind == CODE_OTHER && insn.memory == CODE_MEMORY_WRITTEN &&
		    insn.place < CODE_NR) {
			insn.kind = CODE_WRITE;
			insn.a = insn.place;
			insn.b = insn.b ? insn.b : UINT8_MAX;
			insn.value = insn.disp;
		}
		code_state_apply(&s, &insn, (uint32_t)at);
		if (!follow(&insn, bytes, &at))
			break;
	}
	return nr;
}

int insn_first_field(const uint8_t *code, size_t bytes, int arg, int32_t min_disp, int32_t *disp)
{
	int nr = insn_fields(code, bytes, arg, min_disp, disp, 1);

	return nr < 0 ? nr : nr ? 0 : -ENOENT;
}
