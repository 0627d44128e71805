// SPDX-License-Identifier: BSD-2-Clause
/* The layout of tensors, from functions of our own that look like PyTorch's. */
#include "capture/probe/tensors.h"

#include <errno.h>

#include "unit.h"

/* For sizes at SIZES: the flags that are Python's are behind 111 bytes, the symbolic one before. */
#define LIKE_TORCH(name, sizes, python, symbolic, five) \
	__asm__(".text\n.globl " name "\n" name ":\n"   \
		"push %rbx\n"                           \
		"mov %rdi, %rbx\n"                      \
		"testb $0x18, " python "(%rdi)\n"       \
		"je 1f\n"                               \
		"mov 0x200(%rdi), %rdx\n"               \
		"movabs $0x100000010000000, %rax\n"     \
		"and %rax, %rdx\n"                      \
		"cmp %rax, %rdx\n"                      \
		"1:\n"                                  \
		"testb $0x10, " symbolic "(%rbx)\n"     \
		"mov " sizes "(%rbx), %r10\n"           \
		"cmp $" five ", %r10\n"                 \
		"lea 0x68(%rbx), %rax\n"                \
		"pop %rbx\n"                            \
		"ret\n" name "_end:\n")

LIKE_TORCH("kp_at_56", "56", "167", "166", "5");
LIKE_TORCH("kp_at_72", "72", "183", "182", "5");
LIKE_TORCH("kp_flags_elsewhere", "56", "159", "158", "5");
LIKE_TORCH("kp_other_limit", "56", "167", "166", "6");
extern const uint8_t kp_at_56[], kp_at_56_end[], kp_at_72[], kp_at_72_end[];
extern const uint8_t kp_flags_elsewhere[], kp_flags_elsewhere_end[];
extern const uint8_t kp_other_limit[], kp_other_limit_end[];

#define LEARN(name, layout) tensors_learn(name, (size_t)(name##_end - name), layout)

static void learnt(void)
{
	struct tensor_layout l = {0};

	CHECK_EQ(LEARN(kp_at_56, &l), 0);
	CHECK_EQ(l.sizes_off, 56);
	CHECK(l.type_mask == (0x18ull << 56 | 0x10ull << 48 | 0xffff));
	CHECK_EQ(LEARN(kp_at_72, &l), 0);
	CHECK_EQ(l.sizes_off, 72);
}

static void refused(void)
{
	struct tensor_layout l = {0};
	size_t bytes = (size_t)(kp_at_56_end - kp_at_56);

	CHECK_EQ(LEARN(kp_flags_elsewhere, &l), -ENOENT);
	CHECK_EQ(LEARN(kp_other_limit, &l), -ENOENT);
	for (size_t i = 0; i + 12 < bytes; i++) /* up to the comparison */
		CHECK_EQ(tensors_learn(kp_at_56, i, &l), -ENOENT);
}

UNIT_MAIN(TEST(learnt), TEST(refused))
