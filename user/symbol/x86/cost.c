// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a uprobe on an instruction costs, and where there must be none.
 *
 * Measured on one 6.18 kernel (KVM guest, counting perf event on a uprobe, best of five rounds of
 * 4,000 hits, the plain run subtracted; ns per hit). Figures of one run. The guest shares its host:
 * between runs emulated ones went from 620 to 1,100 (once 2,300), stepped ones from 9,500 to
 * 29,000, so only the gap between the two groups means something.
 *
 *   emulated   90 nop 768 · 66 90 846 · f3 90 pause 942 · 5x push 968 · 41 5x push 852
 *              eb, e9 jmp 762, 781 · 7x, 0f 8x jcc 814, 1017 · e8 call 1099 · f2 eb, f2 e8 897, 819
 *              0f 1f nopl of 3 to 8 bytes 752 … 774, 66 0f 1f 44 946
 *   stepped    f3 0f 1e fa endbr64 9725 · 5x pop 13143 · mov 14304 · lea 13763 · sub, xor 13800
 *              test 13087 · c3 ret 15761 · c9 leave 13025 · 6a, ff /6 push 13058 · ff /2, /4 call,
 *              jmp through a register 14270 · 66 5x, 48 5x push 12953 · 66 0f 1f 84 (9 bytes) 12239
 *   refused    any of the prefixes 26 2e 36 3e (so notrack jmp, the nop of 10 bytes 66 2e 0f 1f 84)
 *              and
 *              f0 (lock); 66 before a direct branch; VEX with some opcodes (vmovdqu, vpxor); the
 *              bytes
 *              06 07 0e 16 17 1e 1f 27 2f 37 3f 60 61 6c-6f 82 9a cc-cf d4 d6 e4-e7 ea ec-ef f1 f4
 *              fa fb
 *   WRONG      accepted, and the instruction is then skipped, so that the probed program computes
 *              wrong results: c5 f9 7e (vmovd), c5 f9 eb (vpor), c5 f9 76 (vpcmpeqd), 62 … 7e
 *              (vmovd).
 *              It looks as if the opcode byte after a VEX or EVEX prefix were taken for a one-byte
 *              opcode, here jle, jmp, jbe. 49 90 and 41 90 (xchg with r8) are taken for nop.
 *
 * Forbidden here, by choice, is more than that: everything with VEX, EVEX, XOP or REX2; repeated
 * string instructions; transactions; and second bytes after 0f (syscall, ud2, fences …) that this
 * kernel accepts but that the tables of much older ones leave out. On other kernels none of this
 * has been measured.
 *
 * The long nops count as stepped: whether older kernels emulate them has not been tried, and the
 * one of 5 bytes is turned into a call that writes below the stack pointer.
 */
#include "symbol/x86/cost.h"

#include <string.h>

bool insn_is_endbr64(const uint8_t *code, size_t bytes)
{
	return bytes >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4);
}

bool insn_is_emulated(const uint8_t *code, size_t bytes)
{
	uint8_t op;

	if (bytes >= 2 && (code[0] == 0x66 || code[0] == 0xf3) && code[1] == 0x90)
		return true; /* 2-byte nop, pause */
	if (bytes >= 2 && code[0] == 0x41 && (code[1] & 0xf8) == 0x50)
		return true;            /* push r8 … r15 */
	if (bytes && code[0] == 0xf2) { /* bnd, a hint on branches */
		code++;
		bytes--;
		if (bytes && ((code[0] & 0xf8) == 0x50 || code[0] == 0x90))
			return false;
	}
	if (!bytes)
		return false;
	op = code[0];
	if (op == 0x90 || (op & 0xf8) == 0x50)
		return true; /* nop, push */
	if ((op & 0xf0) == 0x70 || op == 0xeb)
		return bytes >= 2; /* jcc, jmp, 8 bits */
	if (op == 0xe8 || op == 0xe9)
		return bytes >= 5;                                   /* call, jmp, 32 bits */
	return op == 0x0f && bytes >= 6 && (code[1] & 0xf0) == 0x80; /* jcc, 32 bits */
}

/* One-byte opcodes that the kernel refuses, and the first bytes of VEX, EVEX and REX2. */
static bool opcode_refused(uint8_t op)
{
	static const uint8_t refused[] = {
		0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e, 0x1f, 0x27, 0x2f, 0x37, 0x3f, 0x60, 0x61, 0x62,
		0x6c, 0x6d, 0x6e, 0x6f, 0x82, 0x9a, 0xc4, 0xc5, 0xcc, 0xcd, 0xce, 0xcf, 0xd4, 0xd5,
		0xd6, 0xe4, 0xe5, 0xe6, 0xe7, 0xea, 0xec, 0xed, 0xee, 0xef, 0xf1, 0xf4, 0xfa, 0xfb,
	};

	return memchr(refused, op, sizeof(refused)) != NULL;
}

/* Second bytes after 0f that kernels of ten years ago refuse; 6.18 refuses none. */
static bool opcode_0f_refused(uint8_t op)
{
	return op < 0x0f || op == 0x18 || (op >= 0x24 && op <= 0x27) || op == 0x30 ||
	       (op >= 0x34 && op <= 0x3f) || (op >= 0x78 && op <= 0x7d) || op == 0xa6 ||
	       op == 0xa7 || op == 0xae || op == 0xb8 || op == 0xd0 || op == 0xf0 || op == 0xff;
}

static bool is_string_op(uint8_t op)
{
	return (op >= 0xa4 && op <= 0xa7) || (op >= 0xaa && op <= 0xaf);
}

bool insn_is_repeated(const uint8_t *code, size_t length)
{
	bool repeat = false;

	for (; length && memchr("\x66\xf2\xf3\x64\x65\x67", *code, 6); code++, length--)
		repeat |= *code == 0xf2 || *code == 0xf3;
	if (length > 1 && (*code & 0xf0) == 0x40) /* REX */
		code++;
	return repeat && length && is_string_op(*code);
}

bool insn_is_allowed(const uint8_t *code, size_t length)
{
	bool size_prefix = false, repeat = false, rex_b = false;
	uint8_t op;

	for (;; code++, length--) {
		if (!length)
			return false;
		if (*code == 0x66)
			size_prefix = true;
		else if (*code == 0xf2 || *code == 0xf3)
			repeat = true;
		else if (*code == 0x26 || *code == 0x2e || *code == 0x36 || *code == 0x3e ||
			 *code == 0xf0)
			return false;
		else if (*code != 0x64 && *code != 0x65 && *code != 0x67)
			break;
	}
	if ((*code & 0xf0) == 0x40) { /* REX */
		rex_b = *code & 1;
		code++;
		length--;
	}
	if (!length)
		return false;
	op = *code;
	if (op == 0x0f) {
		if (length < 2 || opcode_0f_refused(code[1]))
			return false;
		return !(size_prefix && (code[1] & 0xf0) == 0x80);
	}
	/* c4, c5 and 62 are in the table. 8f is pop or XOP; other bits than pop's mean XOP. */
	if (opcode_refused(op) || (op == 0x8f && (length < 2 || (code[1] & 0x38))))
		return false;
	/* c6 f8 is xabort, c7 f8 is xbegin: a trap aborts every transaction. */
	if ((op == 0xc6 || op == 0xc7) && (length < 2 || (code[1] & 0x38)))
		return false;
	if (op == 0x90 && rex_b)
		return false;
	/* Every repetition would trap and count as a hit. */
	if (repeat && is_string_op(op))
		return false;
	return !(size_prefix && ((op & 0xf0) == 0x70 || op == 0xe8 || op == 0xe9 || op == 0xeb));
}

enum insn_cost insn_cost(const uint8_t *code, size_t bytes)
{
	struct code_insn insn;

	if (insn_is_emulated(code, bytes))
		return INSN_EMULATED;
	if (code_insn_decode(code, bytes, &insn) && insn_is_allowed(code, insn.length))
		return INSN_STEPPED;
	return INSN_FORBIDDEN;
}
