// SPDX-License-Identifier: BSD-2-Clause
/* Probe sites, case by case. Whether they hold in running code: symbol_insn_run.c. */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "symbol/x86/x86.h"
#include "unit.h"

/* Bytes from hexadecimal; returns how many. */
static size_t parse(const char *hex, uint8_t *code, size_t room)
{
	size_t nr = 0;
	unsigned int byte;
	int used;

	while (nr < room && sscanf(hex, "%2x%n", &byte, &used) == 1) {
		code[nr++] = (uint8_t)byte;
		hex += used;
		while (*hex == ' ')
			hex++;
	}
	return nr;
}

static enum insn_cost cost(const char *hex)
{
	uint8_t code[32];
	size_t bytes = parse(hex, code, sizeof(code));

	return insn_cost(code, bytes);
}

static void emulated(void)
{
	static const char *const list[] = {
		"55",          "50",       "57",          "41 57", "90",    "66 90",
		"f3 90",       "eb 00",    "e9 01020304", "74 05", "7f 80", "0f 84 01020304",
		"e8 01020304", "f2 eb 00",
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (cost(list[i]) != INSN_EMULATED)
			printf("# %s\n", list[i]);
		CHECK_EQ(cost(list[i]), INSN_EMULATED);
	}
}

static void stepped(void)
{
	static const char *const list[] = {
		"f3 0f 1e fa",       /* endbr64 */
		"48 89 e5",          /* mov %rsp,%rbp */
		"5d",                /* pop %rbp */
		"c3",                /* ret */
		"c9",                /* leave */
		"31 c0",             /* xor */
		"48 8d 05 01020304", /* lea (%rip) */
		"6a 00",             /* push $0 */
		"66 55",             /* push %bp */
		"48 55",             /* push %rbp with a needless REX.W */
		"ff d0",             /* call *%rax */
		"0f 1f 44 00 00",    /* nop of 5 bytes: see cost.c */
		"0f 10 07",          /* movups */
		"64 48 8b 04 25 28 00 00 00",
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (cost(list[i]) != INSN_STEPPED)
			printf("# %s\n", list[i]);
		CHECK_EQ(cost(list[i]), INSN_STEPPED);
	}
}

static void forbidden(void)
{
	static const char *const list[] = {
		"",
		"0f",
		"06",
		"e8 01", /* no instruction, or half of one */
		"48",
		"41",
		"cc",
		"f4", /* int3, hlt */
		"0f 05",
		"0f 0b",
		"cd 80", /* syscall, ud2, int */
		"f0 48 ff 07",
		"3e ff e0",
		"66 2e 0f 1f 84 00 00 00 00 00", /* refused prefixes */
		"66 e8 01020304",                /* 16-bit call */
		"f3 48 ab",                      /* rep stos: a hit a round */
		/* What 6.18 accepts and then skips: */
		"c5 f9 7e c0",
		"c5 f9 eb c1",
		"c5 f8 77",
		"62 f1 7d 08 7e c0",
		"49 90",
		"41 90",
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		if (cost(list[i]) != INSN_FORBIDDEN)
			printf("# %s\n", list[i]);
		CHECK_EQ(cost(list[i]), INSN_FORBIDDEN);
	}
}

static void check_entry(const char *hex, uint32_t skip, uint32_t bias, enum insn_cost want)
{
	uint8_t code[64];
	size_t bytes = parse(hex, code, sizeof(code));
	struct insn_entry got;

	insn_entry_site(code, bytes, &got);
	if (got.skip_bytes != skip || got.sp_bias_bytes != bias || got.cost != want)
		printf("# %s\n", hex);
	CHECK_EQ(got.skip_bytes, skip);
	CHECK_EQ(got.sp_bias_bytes, bias);
	CHECK_EQ(got.cost, want);
}

static void entry(void)
{
	check_entry("55 48 89 e5", 0, 0, INSN_EMULATED);
	check_entry("41 57 41 56", 0, 0, INSN_EMULATED);
	check_entry("f3 0f 1e fa 55", 4, 0, INSN_EMULATED);
	/* mov %rdi,%rax; push %rbp */
	check_entry("48 89 f8 55 c3", 3, 0, INSN_EMULATED);
	/* endbr64; nop of 5 bytes; push %rbp */
	check_entry("f3 0f 1e fa 0f 1f 44 00 00 55", 9, 0, INSN_EMULATED);
	/* push $1; push %rbp */
	check_entry("6a 01 55 c3", 2, 8, INSN_EMULATED);
	/* mov %rsi,%rdi; push %rbp: an argument is gone */
	check_entry("48 89 f7 55 c3", 0, 0, INSN_STEPPED);
	/* mov %esi,%edi likewise */
	check_entry("89 f7 55 c3", 0, 0, INSN_STEPPED);
	/* sub $8,%rsp; push */
	check_entry("48 83 ec 08 55 c3", 0, 0, INSN_STEPPED);
	/* test %edi,%edi; je; push: a loop may jump to the test, and the push is behind a jump */
	check_entry("85 ff 74 10 55 c3", 0, 0, INSN_STEPPED);
	/* mov %rax,0x8(%rsp): writes where an argument may lie */
	check_entry("48 89 44 24 08 55 c3", 0, 0, INSN_STEPPED);
	/* movups %xmm0,0x8(%rsp) */
	check_entry("0f 11 44 24 08 55 c3", 0, 0, INSN_STEPPED);
	/* ret; push: the push belongs to another function */
	check_entry("c3 55", 0, 0, INSN_STEPPED);
	/* vpor first */
	check_entry("c5 f9 eb c1 c3", 0, 0, INSN_FORBIDDEN);
	/* … and behind an endbr64, which can be probed */
	check_entry("f3 0f 1e fa c5 f9 eb c1 c3", 0, 0, INSN_STEPPED);
	/* more than 16 bytes before the push */
	check_entry("48 89 f8 48 89 f8 48 89 f8 48 89 f8 48 89 f8 48 89 f8 55", 0, 0, INSN_STEPPED);
	check_entry("", 0, 0, INSN_FORBIDDEN);
}

static void check_return(const char *hex, enum insn_return_kind kind, uint32_t skip, int32_t bytes,
			 enum insn_cost want)
{
	uint8_t code[256];
	struct insn_return got;
	size_t nr = parse(hex, code, sizeof(code));

	insn_return_site(code, nr, &got);
	if (got.kind != kind || got.skip_bytes != skip)
		printf("# %s\n", hex);
	CHECK_EQ(got.kind, kind);
	if (kind == INSN_RETURN_FOLLOW)
		CHECK_EQ(got.follow_bytes, bytes);
	if (kind != INSN_RETURN_SITE)
		return;
	CHECK_EQ(got.skip_bytes, skip);
	CHECK_EQ(got.sp_delta_bytes, bytes);
	CHECK_EQ(got.cost, want);
}

/* Enough bytes behind, so that none of these ends for lack of them. */
#define PAD " cc cc cc cc cc cc cc cc cc cc cc cc cc cc cc cc"

static void returns_to_site(void)
{
	check_return("e8 00 00 00 00", INSN_RETURN_SITE, 0, 0, INSN_EMULATED);
	/* mov; test; jne */
	check_return("48 89 c3 48 85 c0 75 04" PAD, INSN_RETURN_SITE, 6, 0, INSN_EMULATED);
	/* add $0x10,%rsp; jmp: arguments on the stack, then on */
	check_return("48 83 c4 10 eb 10" PAD, INSN_RETURN_SITE, 4, 16, INSN_EMULATED);
	/* lea 0x20(%rsp),%rsp; pop %rbx; jmp: a tail call */
	check_return("48 8d 64 24 20 5b e9 00 00 00 00" PAD, INSN_RETURN_SITE, 6, 40,
		     INSN_EMULATED);
	/* push right away: the probe sees the stack pointer before it */
	check_return("41 50 e8 00 00 00 00" PAD, INSN_RETURN_SITE, 0, 0, INSN_EMULATED);
	/* endbr64 (setjmp returns twice); mov; jmp */
	check_return("f3 0f 1e fa 89 c7 eb 00" PAD, INSN_RETURN_SITE, 6, 0, INSN_EMULATED);
	/* the 5-byte nop is passed over */
	check_return("0f 1f 44 00 00 90" PAD, INSN_RETURN_SITE, 5, 0, INSN_EMULATED);
}

static void returns_to_stepped_site(void)
{
	/* leave; ret: the stack pointer behind leave is not known, the one before it is */
	check_return("c9 c3" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	/* mov %eax,%ebx; mov %rbp,%rsp; pop %rbp; ret */
	check_return("89 c3 48 89 ec 5d c3" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	/* sub $0x10,%rsp; jmp: below the returned frame */
	check_return("48 83 ec 10 eb 00" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	/* vmovd %xmm0,%eax (forbidden); pop %rcx; call *%rax */
	check_return("c5 f9 7e c0 59 ff d0" PAD, INSN_RETURN_SITE, 4, 0, INSN_STEPPED);
	/* pop %rcx; then something that is no instruction */
	check_return("59 06" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	/* mov; rep stos; jmp: the time of the stos is not the call's */
	check_return("89 c3 f3 48 ab eb 00" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	/* mov; syscall; jmp */
	check_return("89 c3 0f 05 eb 00" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	/* pop %rsp */
	check_return("5c eb 00" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	/* ret $8, which no follow_bytes describes; the same behind pop %rbx */
	check_return("c2 08 00" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
	check_return("5b c2 08 00" PAD, INSN_RETURN_SITE, 0, 0, INSN_STEPPED);
}

static void returns_to_return(void)
{
	check_return("c3", INSN_RETURN_FOLLOW, 0, 0, 0);
	check_return("f3 c3", INSN_RETURN_FOLLOW, 0, 0, 0);
	check_return("f2 c3", INSN_RETURN_FOLLOW, 0, 0, 0);
	/* add $8,%rsp; ret */
	check_return("48 83 c4 08 c3", INSN_RETURN_FOLLOW, 0, 8, 0);
	/* mov %rbx,%rax; add $0x118,%rsp; pop %rbx; pop %r12; ret */
	check_return("48 89 d8 48 81 c4 18 01 00 00 5b 41 5c c3", INSN_RETURN_FOLLOW, 0, 296, 0);
}

static void returns_to_nowhere(void)
{
	check_return("", INSN_RETURN_NONE, 0, 0, 0);
	check_return("48 89", INSN_RETURN_NONE, 0, 0, 0); /* the bytes end */
	check_return("48 89 c3", INSN_RETURN_NONE, 0, 0, 0);
	check_return("0f 0b" PAD, INSN_RETURN_NONE, 0, 0,
		     0); /* after a call that does not return */
	check_return("06" PAD, INSN_RETURN_NONE, 0, 0, 0);
}

static bool keeps_result(const char *hex)
{
	uint8_t code[256];
	struct insn_return got;
	size_t nr = parse(hex, code, sizeof(code));

	insn_return_site(code, nr, &got);
	CHECK(got.kind != INSN_RETURN_NONE);
	return got.keeps_result;
}

static void results(void)
{
	/* At once; mov %eax,%ebx; test %eax,%eax; jne; the same behind the clean-up of the stack */
	CHECK(keeps_result("e8 00 00 00 00"));
	CHECK(keeps_result("89 c3 85 c0 75 04" PAD));
	CHECK(keeps_result("48 83 c4 10 89 44 24 0c eb 10" PAD));
	/* mov $0,%eax; xor %eax,%eax; mov $1,%al; pop %rax: another value */
	CHECK(!keeps_result("b8 00 00 00 00 eb 10" PAD));
	CHECK(!keeps_result("31 c0 eb 10" PAD));
	CHECK(!keeps_result("b0 01 eb 10" PAD));
	CHECK(!keeps_result("58 eb 10" PAD));
	/* Written by name only implied: cpuid; xchg %eax,%ebx; mul %ecx */
	CHECK(!keeps_result("0f a2 eb 10" PAD));
	CHECK(!keeps_result("93 eb 10" PAD));
	CHECK(!keeps_result("f7 e1 eb 10" PAD));
	/* A stepped site: where it is counts. mov %eax,%ebx; mov $0,%eax; leave */
	CHECK(keeps_result("89 c3 b8 00 00 00 00 c9 c3" PAD));
	/* vpor (no place); mov $0,%eax: before which; and behind which */
	CHECK(keeps_result("c5 f9 eb c1 b8 00 00 00 00 ff d0" PAD));
	CHECK(!keeps_result("c5 f9 7e c0 59 ff d0" PAD));
	/* Callers that only return: what they were given, and something else */
	CHECK(keeps_result("c3"));
	CHECK(keeps_result("48 83 c4 08 c3"));
	CHECK(!keeps_result("31 c0 48 83 c4 08 c3"));
	CHECK(!keeps_result("48 89 d8 5b c3"));
	/* mov %eax,%ebx; xor %eax,%eax; mov %ebx,%eax; pop %rbx; ret; and without the way back */
	CHECK(keeps_result("89 c3 31 c0 89 d8 5b c3"));
	CHECK(!keeps_result("89 c3 31 c0 c3"));
}

/* Where the result is at the site: "5" register 5, "5-20" in memory there, "" not known. */
static const char *where(const char *hex)
{
	static char text[32];
	uint8_t code[256];
	struct insn_return got;
	size_t nr = parse(hex, code, sizeof(code));

	insn_return_site(code, nr, &got);
	CHECK_EQ(got.kind, INSN_RETURN_SITE);
	CHECK_EQ(got.cost, INSN_EMULATED);
	if (!got.keeps_result)
		return "";
	snprintf(text, sizeof(text), got.result.in_memory ? "%d%+d" : "%d", got.result.reg,
		 got.result.disp_bytes);
	return text;
}

static void results_that_were_copied(void)
{
	/* mov %eax,%ebx; movslq %eax,%r13; mov %rax,%r12; mov 0(%rip),%eax; jmp */
	CHECK_STR(where("89 c3 8b 05 00 00 00 00 eb 10" PAD), "3");
	CHECK_STR(where("4c 63 e8 31 c0 eb 10" PAD), "13");
	CHECK_STR(where("49 89 c4 31 c0 eb 10" PAD), "12");
	/* From one to the next: mov %eax,%ebx; xor %eax,%eax; mov %ebx,%ecx; xor %ebx,%ebx */
	CHECK_STR(where("89 c3 31 c0 89 d9 31 db eb 10" PAD), "1");
	/* and back: mov %eax,%edx; xor %eax,%eax; mov %edx,%eax; cltq */
	CHECK_STR(where("89 c2 31 c0 89 d0 48 98 eb 10" PAD), "0");
	/* mov %rbx,%rax: something else; cwtl: half of it; mov %ax,%bx */
	CHECK_STR(where("48 89 d8 eb 10" PAD), "");
	CHECK_STR(where("98 eb 10" PAD), "");
	CHECK_STR(where("66 89 c3 31 c0 eb 10" PAD), "");
}

static void results_that_were_stored(void)
{
	/* mov %eax,-0x14(%rbp); xor %eax,%eax; jmp; mov %rax,-0x18(%rbp); 0x8(%rsp); (%r12) */
	CHECK_STR(where("89 45 ec 31 c0 eb 10" PAD), "5-20");
	CHECK_STR(where("48 89 45 e8 31 c0 eb 10" PAD), "5-24");
	CHECK_STR(where("89 44 24 08 31 c0 eb 10" PAD), "4+8");
	CHECK_STR(where("41 89 04 24 31 c0 eb 10" PAD), "12+0");
	/* The stack pointer moves: mov %eax,0x8(%rsp); xor %eax,%eax; add $8,%rsp; and $16 */
	CHECK_STR(where("89 44 24 08 31 c0 48 83 c4 08 eb 10" PAD), "4+0");
	CHECK_STR(where("89 44 24 08 31 c0 48 83 c4 10 eb 10" PAD), "");
	/* and before: add $16,%rsp; mov %eax,0x8(%rsp); xor %eax,%eax; pop %rcx */
	CHECK_STR(where("48 83 c4 10 89 44 24 08 31 c0 59 eb 10" PAD), "4+0");
	/* Too far for the recipe: mov %eax,-0x10000(%rbp) */
	CHECK_STR(where("89 85 00 00 ff ff 31 c0 eb 10" PAD), "");
	/* addl $1,-0x10(%rbp), -0x17(%rbp): beside it, and into it; movb $1,-0x11(%rbp) */
	CHECK_STR(where("89 45 ec 31 c0 83 45 f0 01 eb 10" PAD), "5-20");
	CHECK_STR(where("89 45 ec 31 c0 83 45 e9 01 eb 10" PAD), "");
	CHECK_STR(where("89 45 ec 31 c0 c6 45 ef 01 eb 10" PAD), "");
	/* mov %ecx,(%rdx): anywhere; mov %ecx,0(%rip): a variable; mov %rcx,0x4(%rsp) */
	CHECK_STR(where("89 45 ec 31 c0 89 0a eb 10" PAD), "");
	CHECK_STR(where("89 45 ec 31 c0 89 0d 00 00 00 00 eb 10" PAD), "5-20");
	CHECK_STR(where("41 89 04 24 31 c0 89 0d 00 00 00 00 eb 10" PAD), "");
	CHECK_STR(where("89 44 24 08 31 c0 48 89 4c 24 04 eb 10" PAD), "");
	/* movups %xmm0,-0x20(%rbp): 16 bytes; stos: where rdi points to */
	CHECK_STR(where("89 45 ec 31 c0 0f 11 45 e0 eb 10" PAD), "");
	CHECK_STR(where("89 45 ec 31 c0 ab eb 10" PAD), "");
	/* The register that it is found by: mov %rcx,%rbp; mov %eax,(%rax): the result itself */
	CHECK_STR(where("89 45 ec 31 c0 48 89 cd eb 10" PAD), "");
	CHECK_STR(where("89 00 31 c0 eb 10" PAD), "");
	/* With an index, mov %eax,(%rcx,%rdx,4); in thread-local memory, mov %eax,%fs:-4(%rbp) */
	CHECK_STR(where("89 04 91 31 c0 eb 10" PAD), "");
	CHECK_STR(where("64 89 45 fc 31 c0 eb 10" PAD), "");
	/* A variable is read back: mov %eax,0x10(%rip); xor %eax,%eax; mov 0x8(%rip),%eax; jmp */
	CHECK_STR(where("89 05 10 00 00 00 31 c0 8b 05 08 00 00 00 eb 10" PAD), "0");
	/* another one is; and it alone: an address that other threads write to */
	CHECK_STR(where("89 05 10 00 00 00 31 c0 8b 05 0c 00 00 00 eb 10" PAD), "");
	CHECK_STR(where("89 05 10 00 00 00 31 c0 eb 10" PAD), "");
	/* mov -0x14(%rbp),%esi: a register again */
	CHECK_STR(where("89 45 ec 31 c0 8b 75 ec eb 10" PAD), "6");
}

static int field(const char *hex, int arg, int32_t min_disp)
{
	uint8_t code[256];
	int32_t disp = -1;
	size_t nr = parse(hex, code, sizeof(code));
	int err = insn_first_field(code, nr, arg, min_disp, &disp);

	return err ? err : disp;
}

static void fields(void)
{
	CHECK_EQ(field("48 8b 47 70 c3", 1, 1), 0x70);
	CHECK_EQ(field("48 8b 46 70 c3", 2, 1), 0x70);
	CHECK_EQ(field("48 8b 46 70 c3", 1, 1), -ENOENT);
	/* the vtable pointer is passed over: mov (%rdi),%rax; mov 0x18(%rdi),%rax */
	CHECK_EQ(field("48 8b 07 48 8b 47 18 c3", 1, 1), 0x18);
	/* push %rbx; mov %rsi,%rbx; call; mov 0x1d8(%rbx),%rax */
	CHECK_EQ(field("53 48 89 f3 e8 00 00 00 00 48 8b 83 d8 01 00 00 c3", 2, 1), 0x1d8);
	/* a scratch register does not survive a call: mov %rdi,%rcx; call; mov 0x10(%rcx),%rax */
	CHECK_EQ(field("48 89 f9 e8 00 00 00 00 48 8b 41 10 c3", 1, 1), -ENOENT);
	/* spilled: mov %rdi,0x8(%rsp); call; mov 0x8(%rsp),%rax; mov 0x20(%rax),%eax */
	CHECK_EQ(field("48 89 7c 24 08 e8 00 00 00 00 48 8b 44 24 08 8b 40 20 c3", 1, 1), 0x20);
	/*
	 * push %rbp; mov %rsp,%rbp; mov %rdi,-0x8(%rbp); mov -0x8(%rbp),%rax; mov 0x28(%rax),%rax
	 */
	CHECK_EQ(field("55 48 89 e5 48 89 7d f8 48 8b 45 f8 48 8b 40 28 5d c3", 1, 1), 0x28);
	/* lea 0x10(%rdi),%rax; mov 0x8(%rax),%rax */
	CHECK_EQ(field("48 8d 47 10 48 8b 40 08 c3", 1, 1), 0x18);
	/* cmpb $0,0x68(%rdi) loads too; a store does not */
	CHECK_EQ(field("80 7f 68 00 c3", 1, 1), 0x68);
	CHECK_EQ(field("48 89 47 70 0f 11 47 50 c3", 1, 1), -ENOENT);
	/* xor %edi,%edi; mov 0x10(%rdi): no argument any more */
	CHECK_EQ(field("31 ff 48 8b 47 10 c3", 1, 1), -ENOENT);
	/* jmp over bytes that are no code */
	CHECK_EQ(field("eb 02 06 06 48 8b 47 30 c3", 1, 1), 0x30);
	/* an endless loop ends */
	CHECK_EQ(field("eb fe", 1, 1), -ENOENT);
	CHECK_EQ(field("48 8b 47 70", 0, 1), -EINVAL);
	CHECK_EQ(field("48 8b 47 70", 7, 1), -EINVAL);
	CHECK_EQ(field("", 1, 1), -ENOENT);
}

static void several_fields(void)
{
	/* mov 0x70(%rdx),%rax; mov 0x8(%rdx),%rax; mov %rdx,%rbx; mov 0x50(%rbx),%rax; ret */
	static const uint8_t code[] = {0x48, 0x8b, 0x42, 0x70, 0x48, 0x8b, 0x42, 0x08,
				       0x48, 0x89, 0xd3, 0x48, 0x8b, 0x43, 0x50, 0xc3};
	int32_t disps[3] = {0};

	CHECK_EQ(insn_fields(code, sizeof(code), 3, 0x10, disps, 3), 2);
	CHECK_EQ(disps[0], 0x70);
	CHECK_EQ(disps[1], 0x50);
	CHECK_EQ(insn_fields(code, sizeof(code), 3, 0, disps, 2), 2);
	CHECK_EQ(disps[1], 8);
	CHECK_EQ(insn_fields(code, sizeof(code), 2, 0, disps, 3), 0);
	CHECK_EQ(insn_fields(code, sizeof(code), 0, 0, disps, 3), -EINVAL);
}

static int memory_args(const char *hex)
{
	uint8_t code[128];

	return insn_memory_args(code, parse(hex, code, sizeof(code)));
}

static void args_in_memory(void)
{
	/* push %rbx; sub $0x40,%rsp; call; movdqu 0x50(%rsp),%xmm0; movdqu 0x60; mov 0x70,%rax */
	CHECK_EQ(memory_args("53 48 83 ec 40 e8 00 00 00 00 f3 0f 6f 44 24 50 f3 0f 6f 4c 24 60 "
			     "48 8b 44 24 70 c3"),
		 40);
	/* the same without the last, which is in a general register */
	CHECK_EQ(memory_args("53 48 83 ec 40 f3 0f 6f 44 24 50 f3 0f 6f 4c 24 60 c3"), -ENOENT);
	/* mov 0x8(%rsp),%rax: right above the return address */
	CHECK_EQ(memory_args("48 8b 44 24 08 c3"), 8);
	/* mov (%rsp),%rax is the return address; a store is no argument */
	CHECK_EQ(memory_args("48 8b 04 24 c3"), -ENOENT);
	CHECK_EQ(memory_args("48 89 44 24 08 c3"), -ENOENT);
	/* nothing after ret, or where the stack pointer gets an unknown value, counts */
	CHECK_EQ(memory_args("c3 48 8b 44 24 08"), -ENOENT);
	CHECK_EQ(memory_args("48 89 ec 48 8b 44 24 08 c3"), -ENOENT);
	CHECK_EQ(memory_args(""), -ENOENT);
}

UNIT_MAIN(TEST(emulated), TEST(stepped), TEST(forbidden), TEST(entry), TEST(returns_to_site),
	  TEST(returns_to_stepped_site), TEST(returns_to_return), TEST(returns_to_nowhere),
	  TEST(results), TEST(results_that_were_copied), TEST(results_that_were_stored),
	  TEST(fields), TEST(several_fields), TEST(args_in_memory))
