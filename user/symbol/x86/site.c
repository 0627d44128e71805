// SPDX-License-Identifier: BSD-2-Clause
/* Finds where to probe a function's entry, and the return from a call. */
#include "symbol/x86/cost.h"
#include "symbol/x86/result.h"

/* How many bytes after the first instruction an entry's probe may be. */
#define ENTRY_SPAN_BYTES 16
/* How many bytes after the return address a return site may be. */
#define RETURN_SPAN_BYTES 200
#define MAX_INSN_BYTES 15
#define PUSHED_BYTES 8

/* rdi, rsi, rdx, rcx, r8, r9, and rsp: the registers that entry probes read. */
#define ARGUMENT_REGISTERS \
	(1u << 7 | 1u << 6 | 1u << 2 | 1u << 1 | 1u << 8 | 1u << 9 | 1u << CODE_SP)

static bool leaves_line(const struct code_insn *insn)
{
	switch (insn->kind) {
	case CODE_CALL:
	case CODE_CALL_INDIRECT:
	case CODE_JMP:
	case CODE_JMP_INDIRECT:
	case CODE_JCC:
	case CODE_RET:
	case CODE_SYSTEM:
	case CODE_STOP:
		return true;
	default:
		return false;
	}
}

static bool pushes(const struct code_insn *insn)
{
	return insn->kind == CODE_PUSH || insn->kind == CODE_PUSH_OTHER;
}

/*
 * After the first instruction, only a push is used as the place. A push is not the target of a
 * loop's jump, because the stack would grow with each turn; a jump or nop may be, and would be hit
 * more than once per call. The instructions before it must not change what a probe reads, nor leave
 * the straight line.
 */
static void move_to_push(const uint8_t *code, size_t bytes, uint32_t skip, struct insn_entry *out)
{
	struct code_insn insn;
	uint32_t bias = 0;

	for (size_t at = 0; at <= ENTRY_SPAN_BYTES && at < bytes; at += insn.length) {
		if (!code_insn_decode(code + at, bytes - at, &insn))
			return;
		if (pushes(&insn) && insn_is_emulated(code + at, insn.length)) {
			out->skip_bytes = skip + (uint32_t)at;
			out->sp_bias_bytes = bias;
			out->cost = INSN_EMULATED;
			return;
		}
		if (leaves_line(&insn))
			return;
		if (pushes(&insn))
			bias += PUSHED_BYTES;
		else if (code_insn_written(&insn) & ARGUMENT_REGISTERS ||
			 insn.memory == CODE_MEMORY_WRITTEN)
			return;
	}
}

void insn_entry_site(const uint8_t *code, size_t bytes, struct insn_entry *out)
{
	uint32_t skip = insn_is_endbr64(code, bytes) ? 4 : 0;

	code += skip;
	bytes -= skip;
	*out = (struct insn_entry){.skip_bytes = skip, .cost = insn_cost(code, bytes)};
	if (out->cost != INSN_EMULATED)
		move_to_push(code, bytes, skip, out);
	/* If what follows cannot be probed, the endbr64 itself can. */
	if (out->cost == INSN_FORBIDDEN && skip)
		*out = (struct insn_entry){.cost = INSN_STEPPED};
}

/* What an instruction means for the straight line from a return address. */
enum effect {
	EFFECT_NONE,
	EFFECT_SP,   /* adds a known number of bytes to the stack pointer */
	EFFECT_RET,  /* plain ret: pops the next return address */
	EFFECT_STOP, /* leaves the line, may take long, or makes the stack pointer unknown */
};

static enum effect effect_of(const uint8_t *code, const struct code_insn *insn, int64_t *bytes)
{
	if (insn->kind == CODE_RET && !insn->value)
		return EFFECT_RET;
	if (leaves_line(insn))
		return EFFECT_STOP;
	/* The time of a long rep movs would be counted as part of the call that has returned. */
	if (insn_is_repeated(code, insn->length))
		return EFFECT_STOP;
	if (!(code_insn_written(insn) >> CODE_SP & 1))
		return EFFECT_NONE;
	if (pushes(insn))
		*bytes = -PUSHED_BYTES;
	else if (insn->kind == CODE_POP && insn->a != CODE_SP)
		*bytes = PUSHED_BYTES;
	else if (insn->kind == CODE_LEA && insn->b == CODE_SP && !insn->writes)
		*bytes = insn->value;
	else
		return EFFECT_STOP;
	return EFFECT_SP;
}

void insn_return_site(const uint8_t *code, size_t bytes, struct insn_return *out)
{
	const struct insn_return nowhere = {.kind = INSN_RETURN_NONE, .cost = INSN_FORBIDDEN};
	struct insn_return now = {.kind = INSN_RETURN_SITE};
	struct insn_results results = INSN_RESULTS_START;
	int64_t delta = 0, change = 0;
	size_t at = 0;

	*out = nowhere;
	while (at < RETURN_SPAN_BYTES && delta >= 0 && delta <= INT32_MAX) {
		struct code_insn insn;
		enum effect effect;

		now.skip_bytes = (uint32_t)at;
		now.sp_delta_bytes = (int32_t)delta;
		now.keeps_result = insn_results__find(&results, delta, &now.result);
		if (insn_is_emulated(code + at, bytes - at)) {
			now.cost = INSN_EMULATED;
			*out = now;
			return;
		}
		if (!code_insn_decode(code + at, bytes - at, &insn)) {
			/*
			 * If the code ends too early, anything may follow; if there are enough
			 * bytes, the instruction is unknown.
			 */
			if (bytes - at < MAX_INSN_BYTES)
				*out = nowhere;
			return;
		}
		effect = effect_of(code + at, &insn, &change);
		if (effect == EFFECT_RET) {
			*out = (struct insn_return){.kind = INSN_RETURN_FOLLOW,
						    .follow_bytes = (int32_t)delta,
						    .cost = INSN_EMULATED,
						    .keeps_result =
							    results.registers >> CODE_AX & 1};
			return;
		}
		if (out->kind == INSN_RETURN_NONE && insn_is_allowed(code + at, insn.length)) {
			now.cost = INSN_STEPPED;
			*out = now;
		}
		if (effect == EFFECT_STOP)
			return;
		insn_results__step(&results, &insn, at, delta);
		if (effect == EFFECT_SP)
			delta += change;
		at += insn.length;
	}
}
