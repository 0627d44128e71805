// SPDX-License-Identifier: BSD-2-Clause
/* Where collectives' numbers are, from functions of our own that look like PyTorch's. */
#include "capture/probe/collectives.h"

#include <errno.h>

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
	const struct collectives_layout none = {0};
	const struct collectives_layout all = {
		.tensor = {.sizes_off = 56}, .rank_off = 16, .name_off = 32, .sequence_off = 400};
	const struct catalog_collective call = {.name = "allreduce"};
	struct kprof_wire_probe p = {0};

	for (int i = 0; i < KPROF_WIRE_MAX_ARGS; i++)
		p.args[i].reg = KPROF_REG_ARG2;
	collectives_fill(&all, &call, &p);
	CHECK_EQ(p.args[COLLECTIVE_ARG_RANK].off, 16);
	CHECK_EQ(p.args[COLLECTIVE_ARG_SEQUENCE].off, 400);
	CHECK_EQ(p.args[COLLECTIVE_ARG_NAME].off, 32);
	CHECK_EQ(p.args[COLLECTIVE_ARG_NUMEL].last_off, 56 + 96);
	CHECK_EQ(p.args[COLLECTIVE_ARG_TYPE].last_off, 56 + 104);
	collectives_fill(&none, &call, &p);
	CHECK_EQ(p.args[COLLECTIVE_ARG_END].reg, KPROF_REG_ARG2);
	for (int i = COLLECTIVE_ARG_NUMEL; i < KPROF_WIRE_MAX_ARGS; i++)
		CHECK_EQ(p.args[i].reg, KPROF_REG_NONE);
}

UNIT_MAIN(TEST(numbers), TEST(fields), TEST(inside), TEST(recipes))
