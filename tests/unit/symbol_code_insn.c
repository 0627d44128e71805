// SPDX-License-Identifier: BSD-2-Clause
/*
 * The decoder against capstone, on every instruction of this machine's libraries (and of those that
 * KPROF_CODE_FILES names): lengths, and which general registers are written.
 */
#include "symbol/x86/code_insn.h"

#include <capstone/capstone.h>

#include "symbol/elf/elffile.h"
#include "symbol/x86/insn_priv.h"
#include "unit.h"

#define MAX_BYTES (48u << 20)

struct counts {
	uint64_t insns, lengths, registers, unknown;
};

static uint16_t written(const struct code_insn *insn)
{
	uint16_t sp = 1u << CODE_SP, a = (uint16_t)(1u << insn->a), writes = insn->writes;

	switch (insn->kind) {
	case CODE_PUSH:
	case CODE_PUSH_OTHER:
	case CODE_POP_OTHER:
	case CODE_CALL:
	case CODE_CALL_INDIRECT:
	case CODE_RET:
		return writes | sp;
	case CODE_POP:
		return writes | sp | a;
	case CODE_LEA:
	case CODE_AND:
	case CODE_LOAD:
		return writes | a;
	case CODE_SWAP:
		return writes | a | (uint16_t)(1u << insn->b);
	case CODE_LEAVE:
	case CODE_ENTER:
		return writes | sp | 1u << CODE_BP;
	default:
		return writes;
	}
}

/* What capstone leaves out, or says too much of. */
static bool capstone_differs(const struct insn_decoder *d, uint16_t ours, uint16_t theirs)
{
	switch (d->insn->id) {
	case X86_INS_CALL: /* the stack pointer is back when it has returned */
	case X86_INS_RET:
	case X86_INS_RETF:
	case X86_INS_RETFQ:
	case X86_INS_IRET:
	case X86_INS_IRETQ:
	case X86_INS_IRETD:
	case X86_INS_LCALL:
	case X86_INS_ENTER:
	case X86_INS_SYSCALL:
	case X86_INS_TEST: /* of rax with a number, which capstone takes for a result */
	case X86_INS_CDQ:  /* reads rax */
	case X86_INS_CQO:
		return true;
	default:
		break;
	}
	/* More than is true costs knowledge, and lets nothing wrong be said. */
	return (theirs & ~ours) == 0;
}

static void compare(const char *path, const uint8_t *code, size_t bytes, struct counts *c)
{
	struct insn_decoder d;
	size_t at = 0;

	if (insn_decoder_open(&d, code, bytes))
		return;
	while (at < bytes) {
		struct code_insn insn;
		bool known = code_insn_decode(code + at, bytes - at, &insn);

		d.next = at;
		if (!insn_decoder_next(&d)) {
			at += known ? insn.length : 1;
			continue;
		}
		c->insns++;
		if (!known) {
			if (c->unknown++ < 20)
				printf("# %s+%#zx: %s %s: not known\n", path, at, d.insn->mnemonic,
				       d.insn->op_str);
		} else if (insn.length != d.insn->size) {
			if (c->lengths++ < 20)
				printf("# %s+%#zx: %s %s: %u bytes, not %u\n", path, at,
				       d.insn->mnemonic, d.insn->op_str, insn.length, d.insn->size);
		} else {
			uint16_t theirs = insn_written_gprs(&d), ours = written(&insn);

			if (ours != theirs && !capstone_differs(&d, ours, theirs) &&
			    c->registers++ < 40)
				printf("# %s+%#zx: %s %s: writes %#x, not %#x\n", path, at,
				       d.insn->mnemonic, d.insn->op_str, ours, theirs);
		}
		at += d.insn->size;
	}
	insn_decoder_close(&d);
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
	printf("# %llu instructions: %llu other lengths, %llu other registers, %llu not known\n",
	       (unsigned long long)c.insns, (unsigned long long)c.lengths,
	       (unsigned long long)c.registers, (unsigned long long)c.unknown);
	CHECK(c.insns > 100000);
	/* Data lies between libcrypto's functions, and makes odd instructions. */
	CHECK(c.lengths * 100000 < c.insns);
	CHECK(c.registers * 100000 < c.insns);
	CHECK(c.unknown * 1000 < c.insns);
}

UNIT_MAIN(TEST(this_machines_files))
