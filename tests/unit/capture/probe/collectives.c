// SPDX-License-Identifier: BSD-2-Clause
/* Where collectives' numbers are, from functions of our own that look like PyTorch's. */
#include "capture/probe/collectives.h"

#include <errno.h>

#include "symbol/x86/x86.h"
#include "unit.h"

#define FUNCTION(name, code)                                                           \
	__asm__(".text\n.globl " #name "\n" #name ":\n" code "ret\n" #name "_end:\n"); \
	extern const uint8_t name[], name##_end[]

#define LEARN(what, name, off) collectives_##what(name, (size_t)(name##_end - name), off)

/* a constructor: this, the rank, the size */
FUNCTION(kp_numbers, "push %rbx\nmov %rdi, %rbx\nsub $0x18, %rsp\nmovq $0, 8(%rdi)\n"
		     "mov %esi, 0x10(%rdi)\nmov %edx, 0x14(%rdi)\nadd $0x18, %rsp\npop %rbx\n");
FUNCTION(kp_apart, "mov %esi, 0x10(%rdi)\nmov %edx, 0x18(%rdi)\n");
FUNCTION(kp_other_rank, "mov %eax, %esi\nmov %esi, 0x10(%rdi)\nmov %edx, 0x14(%rdi)\n");
FUNCTION(kp_other_size, "mov %esi, 0x10(%rdi)\nxor %edx, %edx\nmov %edx, 0x14(%rdi)\n");
FUNCTION(kp_other_object, "add $8, %rdi\nmov %esi, 0x10(%rdi)\nmov %edx, 0x14(%rdi)\n");

FUNCTION(kp_field, "mov 0x188(%rdi), %rax\n");
FUNCTION(kp_field_changed, "mov 0x188(%rdi), %rax\ninc %rax\n");
FUNCTION(kp_field_deeper, "mov 0x188(%rdi), %rax\nmov 8(%rax), %rax\n");
FUNCTION(kp_optional,
	 "cmpb $0, 0x20(%rdi)\njne 1f\nxor %eax, %eax\nret\n1: mov 0x28(%rdi), %rax\n");

FUNCTION(kp_inside, "cmpq $0, 0xb8(%rdi)\nje 1f\nmov 0xb0(%rdi), %rax\nmov 0x10(%rax), %rax\n"
		    "add $0x20, %rax\nret\n1: xor %eax, %eax\n");
FUNCTION(kp_own, "lea 0x20(%rdi), %rax\n");

/* a function with a backend in rsi, and options in rcx, that calls one that checks the root */
FUNCTION(kp_root, "push %rbx\nmov %rcx, %rbx\nmov 0x14(%rsi), %edx\nmov 0x20(%rcx), %rsi\n"
		  "call 1f\n1: pop %rbx\npop %rbx\n");
FUNCTION(kp_root_first, "mov %rcx, %rbx\nmovslq 0x14(%rsi), %rdx\nmov (%rbx), %esi\ncall 1f\n1:\n");
FUNCTION(kp_root_two, "mov 0x14(%rsi), %edx\nmov 8(%rcx), %rax\nmov (%rcx), %rsi\ncall 1f\n1:\n");
FUNCTION(kp_root_no_size, "mov 0x10(%rsi), %edx\nmov (%rcx), %rsi\ncall 1f\n1:\n");
FUNCTION(kp_root_size_lost,
	 "mov 0x14(%rsi), %edx\nmov (%rcx), %rsi\nxor %edx, %edx\ncall 1f\n1:\n");
FUNCTION(kp_root_other, "mov 0x14(%rsi), %edx\nmov %rdi, %rcx\nmov (%rcx), %rsi\ncall 1f\n1:\n");
FUNCTION(kp_root_maybe, "mov 0x14(%rsi), %edx\nje 1f\nmov (%rcx), %rsi\ncall 1f\n1:\n");

/* a function that copies a reduction from its options in rcx */
FUNCTION(kp_reduction, "mov %rcx, %r13\ncall 1f\n1: mov 0x18(%r13), %rax\n"
		       "movzbl 0x10(%r13), %esi\n");
FUNCTION(kp_reduction_lost, "call 1f\n1: mov 0x18(%rcx), %rax\nmovzbl 0x10(%rcx), %esi\n");
FUNCTION(kp_reduction_two, "mov 0x18(%rcx), %rax\nmovzbl 0x10(%rcx), %esi\n"
			   "mov 0x30(%rcx), %rax\nmovzbl 0x28(%rcx), %esi\n");
FUNCTION(kp_reduction_apart, "mov 0x18(%rcx), %rax\nmovzbl 0x10(%rdx), %esi\n");

/* a function that returns the address of a list in the object's options, or of another one */
FUNCTION(kp_list, "mov 0xa0(%rdi), %rax\nmov 0x78(%rax), %rsi\ncmp %rsi, 0x80(%rax)\nje 1f\n"
		  "lea 0x78(%rax), %rdx\nmov %rdx, %rax\nret\n1: lea 0x40(%rdi), %rax\n");
FUNCTION(kp_list_first, "mov 0xf8(%rdi), %rax\nmov 0x80(%rax), %rcx\nlea 0x78(%rax), %rdx\n"
			"cmp %rcx, 0x78(%rax)\nje 1f\nmov %rdx, %rax\n1:\n");
FUNCTION(kp_list_added, "mov 0x70(%rdi), %rax\nmov 0x78(%rax), %rsi\ncmp %rsi, 0x70(%rax)\nje 1f\n"
			"add $0x70, %rax\nret\n1:\n");
FUNCTION(kp_list_other, "mov 0x70(%rdi), %rax\nmov 0x78(%rax), %rsi\ncmp %rsi, 0x68(%rax)\nje 1f\n"
			"add $0x70, %rax\nret\n1:\n");
FUNCTION(kp_list_own, "mov 0x78(%rdi), %rax\ncmp %rax, 0x70(%rdi)\nlea 0x70(%rdi), %rax\n");

static void lists(void)
{
	int32_t pointer = 0, off = 0;

#define LIST(name) collectives_list(name, (size_t)(name##_end - name), &pointer, &off)
	CHECK_EQ(LIST(kp_list), 0);
	CHECK_EQ(pointer, 0xa0);
	CHECK_EQ(off, 0x78);
	CHECK_EQ(LIST(kp_list_first), 0);
	CHECK_EQ(pointer, 0xf8);
	CHECK_EQ(off, 0x78);
	CHECK_EQ(LIST(kp_list_added), 0);
	CHECK_EQ(pointer, 0x70);
	CHECK_EQ(off, 0x70);
	CHECK_EQ(LIST(kp_list_other), -ENOENT);
	CHECK_EQ(LIST(kp_list_own), -ENOENT);
	for (size_t i = 0; i < 20; i++)
		CHECK_EQ(collectives_list(kp_list, i, &pointer, &off), -ENOENT);
}

static void options(void)
{
	int32_t off = -1;

#define ROOT(name) collectives_root(name, (size_t)(name##_end - name), CODE_CX, 0x14, &off)
	CHECK_EQ(ROOT(kp_root), 0);
	CHECK_EQ(off, 0x20);
	CHECK_EQ(ROOT(kp_root_first), 0);
	CHECK_EQ(off, 0);
	CHECK_EQ(ROOT(kp_root_two), -ENOENT);
	CHECK_EQ(ROOT(kp_root_no_size), -ENOENT);
	CHECK_EQ(ROOT(kp_root_size_lost), -ENOENT);
	CHECK_EQ(ROOT(kp_root_other), -ENOENT);
	CHECK_EQ(ROOT(kp_root_maybe), -ENOENT);
	for (size_t i = 0; i < 16; i++) /* up to the call */
		CHECK_EQ(collectives_root(kp_root, i, CODE_CX, 0x14, &off), -ENOENT);
#define REDUCTION(name, reg) collectives_reduction(name, (size_t)(name##_end - name), reg, &off)
	CHECK_EQ(REDUCTION(kp_reduction, CODE_CX), 0);
	CHECK_EQ(off, 0x10);
	CHECK_EQ(REDUCTION(kp_reduction, CODE_NR), 0);
	CHECK_EQ(REDUCTION(kp_reduction, CODE_DX), -ENOENT);
	CHECK_EQ(REDUCTION(kp_reduction_lost, CODE_CX), -ENOENT);
	CHECK_EQ(REDUCTION(kp_reduction_two, CODE_CX), -ENOENT);
	CHECK_EQ(REDUCTION(kp_reduction_apart, CODE_NR), -ENOENT);
}

static void numbers(void)
{
	int32_t off = 0;

	CHECK_EQ(LEARN(two_numbers, kp_numbers, &off), 0);
	CHECK_EQ(off, 0x10);
	CHECK_EQ(LEARN(two_numbers, kp_apart, &off), -ENOENT);
	CHECK_EQ(LEARN(two_numbers, kp_other_rank, &off), -ENOENT);
	CHECK_EQ(LEARN(two_numbers, kp_other_size, &off), -ENOENT);
	CHECK_EQ(LEARN(two_numbers, kp_other_object, &off), -ENOENT);
	CHECK_EQ(LEARN(two_numbers, kp_field, &off), -ENOENT);
	for (size_t i = 0; i < 18; i++) /* up to the second number */
		CHECK_EQ(collectives_two_numbers(kp_numbers, i, &off), -ENOENT);
}

static void fields(void)
{
	int32_t off = 0;

	CHECK_EQ(LEARN(field, kp_field, &off), 0);
	CHECK_EQ(off, 0x188);
	CHECK_EQ(LEARN(field, kp_field_changed, &off), -ENOENT);
	CHECK_EQ(LEARN(field, kp_field_deeper, &off), -ENOENT);
	CHECK_EQ(LEARN(field, kp_optional, &off), -ENOENT);
	for (size_t i = 0; i < 8; i++) /* up to the return */
		CHECK_EQ(collectives_field(kp_field, i, &off), -ENOENT);
}

static void inside(void)
{
	int32_t off = 0;

	CHECK_EQ(LEARN(field_inside, kp_inside, &off), 0);
	CHECK_EQ(off, 0x20);
	CHECK_EQ(LEARN(field_inside, kp_own, &off), -ENOENT);
	CHECK_EQ(LEARN(field_inside, kp_field_deeper, &off), -ENOENT);
}

/* What is not known is not read; the first argument is there in any case. */
static void recipes(void)
{
	const struct collectives_layout none = {.root_off = {-1, -1, -1, -1, -1, -1},
						.reduction_off = {-1, -1, -1, -1, -1, -1}};
	const struct collectives_layout all = {.tensor = {.sizes_off = 56},
					       .rank_off = 16,
					       .name_off = 32,
					       .sequence_off = 400,
					       .root_off = {-1, -1, -1, -1, 32, -1},
					       .reduction_off = {-1, -1, -1, -1, 16, 16}};
	const struct catalog_collective call = {.name = "reduce",
						.options = CATALOG_OPTIONS_REDUCE};
	struct kprof_wire_probe p = {0};

	for (int i = 0; i < KPROF_WIRE_MAX_ARGS; i++)
		p.args[i].reg = KPROF_REG_ARG2;
	collectives_fill(&all, &call, &p);
	CHECK_EQ(p.args[COLLECTIVE_ARG_RANK].off, 16);
	CHECK_EQ(p.args[COLLECTIVE_ARG_SEQUENCE].off, 400);
	CHECK_EQ(p.args[COLLECTIVE_ARG_NAME].off, 32);
	CHECK_EQ(p.args[COLLECTIVE_ARG_NUMEL].last_off, 56 + 96);
	CHECK_EQ(p.args[COLLECTIVE_ARG_TYPE].last_off, 56 + 104);
	CHECK_EQ(p.args[COLLECTIVE_ARG_ROOT].off, 32);
	CHECK_EQ(p.args[COLLECTIVE_ARG_REDUCTION].off, 16);
	collectives_fill(&none, &call, &p);
	CHECK_EQ(p.args[COLLECTIVE_ARG_END].reg, KPROF_REG_ARG2);
	for (int i = COLLECTIVE_ARG_NUMEL; i < KPROF_WIRE_MAX_ARGS; i++)
		CHECK_EQ(p.args[i].reg, KPROF_REG_NONE);
}

UNIT_MAIN(TEST(numbers), TEST(fields), TEST(inside), TEST(options), TEST(lists), TEST(recipes))
