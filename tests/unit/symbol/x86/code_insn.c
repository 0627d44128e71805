// SPDX-License-Identifier: BSD-2-Clause
/*
 * The decoder against Zydis, on every instruction of this machine's libraries (and of those that
 * KPROF_CODE_FILES names): lengths, which general registers are written, and whether memory is.
 */
#include "symbol/x86/x86.h"

#include <Zydis/Zydis.h>

#include "symbol/elf/elf.h"
#include "unit.h"

#define MAX_BYTES (48u << 20)

struct counts {
	uint64_t insns, lengths, registers, memory, copies, unknown;
};

static uint16_t registers_of(const ZydisDecodedInstruction *insn,
			     const ZydisDecodedOperand *operands)
{
	uint16_t bits = 0;

	for (unsigned int i = 0; i < insn->operand_count; i++) {
		ZydisRegister r;

		if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER ||
		    !(operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64,
						     operands[i].reg.value);
		if (r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15)
			bits |= (uint16_t)(1u << (r - ZYDIS_REGISTER_RAX));
	}
	return bits;
}

/* Of an operand that the instruction names; the stack is none. */
static enum code_memory memory_of(const ZydisDecodedInstruction *insn,
				  const ZydisDecodedOperand *operands)
{
	for (unsigned int i = 0; i < insn->operand_count; i++) {
		const ZydisDecodedOperand *op = &operands[i];

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			continue;
		if (op->mem.type != ZYDIS_MEMOP_TYPE_MEM && op->mem.type != ZYDIS_MEMOP_TYPE_VSIB)
			return CODE_MEMORY_ADDRESS;
		return op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE ? CODE_MEMORY_WRITTEN
								     : CODE_MEMORY_READ;
	}
	return CODE_MEMORY_NONE;
}

/* A general register of 32 or 64 bits: its number; memory: CODE_NR; else -1. */
static int place_of(const ZydisDecodedOperand *op)
{
	ZydisRegister r;

	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return CODE_NR;
	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || op->size < 32)
		return -1;
	r = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, op->reg.value);
	return r >= ZYDIS_REGISTER_RAX && r <= ZYDIS_REGISTER_R15 ? (int)(r - ZYDIS_REGISTER_RAX)
								  : -1;
}

/* Whether what it says to copy, Zydis says too: a move of at least 32 bits from there to there. */
static bool copy_agrees(const ZydisDecodedInstruction *theirs, const ZydisDecodedOperand *operands,
			const struct code_insn *ours)
{
	if (theirs->mnemonic == ZYDIS_MNEMONIC_CDQE)
		return ours->copies && ours->from == CODE_AX && ours->to == CODE_AX;
	if (!ours->copies)
		return true;
	return (theirs->mnemonic == ZYDIS_MNEMONIC_MOV ||
		theirs->mnemonic == ZYDIS_MNEMONIC_MOVSXD) &&
	       operands[0].size >= 32 && operands[1].size >= 32 &&
	       place_of(&operands[0]) == ours->to && place_of(&operands[1]) == ours->from;
}

/* What differs, the first times. */
static void show(uint64_t *count, const char *path, size_t at,
		 const ZydisDecodedInstruction *theirs, const char *description)
{
	if ((*count)++ < 20)
		printf("# %s+%#zx: %s: %s\n", path, at, ZydisMnemonicGetString(theirs->mnemonic),
		       description);
}

static void compare_effects(const char *path, size_t at, const ZydisDecodedInstruction *theirs,
			    const ZydisDecodedOperand *operands, const struct code_insn *ours,
			    struct counts *c)
{
	uint16_t mine = code_insn_written(ours), other = registers_of(theirs, operands);
	enum code_memory memory = memory_of(theirs, operands);

	/*
	 * More than is true costs knowledge, and lets nothing wrong be said. The stack pointer is
	 * back after a call.
	 */
	if (other & ~mine)
		show(&c->registers, path, at, theirs, "another register is written");
	if (memory == CODE_MEMORY_WRITTEN && ours->memory != memory)
		show(&c->memory, path, at, theirs, "memory is written");
	if (!copy_agrees(theirs, operands, ours))
		show(&c->copies, path, at, theirs, "another copy");
}

static void compare(const char *path, const uint8_t *code, size_t bytes, struct counts *c)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction theirs;
	ZydisDecoder d;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t at = 0; at < bytes;) {
		struct code_insn ours;
		bool known = code_insn_decode(code + at, bytes - at, &ours);

		if (!ZYAN_SUCCESS(
			    ZydisDecoderDecodeFull(&d, code + at, bytes - at, &theirs, operands))) {
			at += known ? ours.length : 1;
			continue;
		}
		c->insns++;
		if (!known)
			show(&c->unknown, path, at, &theirs, "not known");
		else if (ours.length != theirs.length)
			show(&c->lengths, path, at, &theirs, "another length");
		else
			compare_effects(path, at, &theirs, operands, &ours, c);
		at += theirs.length;
	}
}

static void compare_file(const char *path, struct counts *c)
{
	struct elffile *e;
	const uint8_t *text;
	size_t bytes;

	if (elffile__open(path, &e))
		return;
	text = elffile__section(e, ".text", &bytes);
	if (getenv("KPROF_CODE_SKIP"))
		text += strtoul(getenv("KPROF_CODE_SKIP"), NULL, 0);
	if (text)
		compare(path, text, bytes < MAX_BYTES ? bytes : MAX_BYTES, c);
	elffile__close(e);
}

static void this_machines_files(void)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/lib/x86_64-linux-gnu/libm.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/bin/python3",
	};
	struct counts c = {0};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		compare_file(files[i], &c);
	if (getenv("KPROF_CODE_FILES"))
		compare_file(getenv("KPROF_CODE_FILES"), &c);
	printf("# %llu instructions: %llu other lengths, %llu other registers, %llu other memory, %llu other copies, %llu not known\n",
	       (unsigned long long)c.insns, (unsigned long long)c.lengths,
	       (unsigned long long)c.registers, (unsigned long long)c.memory,
	       (unsigned long long)c.copies, (unsigned long long)c.unknown);
	CHECK(c.insns > 100000);
	/* Data lies between libcrypto's functions, and makes odd instructions. */
	CHECK(c.lengths * 100000 < c.insns);
	CHECK(c.registers * 100000 < c.insns);
	CHECK(c.memory * 100000 < c.insns);
	CHECK_EQ(c.copies, 0);
	CHECK(c.unknown * 1000 < c.insns);
}

UNIT_MAIN(TEST(this_machines_files))
