// SPDX-License-Identifier: BSD-2-Clause
/* Where objects have what is read, from functions of our own that look like PyTorch's. */
#include "capture/probe/observer_layout.h"

#include "unit.h"

#define FUNCTION(name, body) \
	__asm__(".text\n.globl " name "\n" name ":\n" body "ret\n" name "_end:\n")

/* The number at 200 is -1 at first, and another one far behind. */
FUNCTION("kp_constructor", "mov %rdi, %rbx\nmovb $0, 192(%rbx)\nmovq $-1, 200(%rbx)\n"
			   "movq $0, 208(%rbx)\nmovq $0, 216(%rbx)\nmovq $-1, 272(%rbx)\n");
FUNCTION("kp_without", "movq $0, 200(%rdi)\nmovq $-1, 272(%rdi)\n");
/* The size is read first, or the address. */
FUNCTION("kp_size", "mov %rsi, %rbx\nmov 216(%rsi), %rsi\nmov 208(%rbx), %rax\n");
FUNCTION("kp_address", "mov 208(%rsi), %rax\nmov 216(%rsi), %rsi\n");
FUNCTION("kp_elsewhere", "mov 240(%rsi), %rsi\n");
/* The thread's number is read before the sequence number, or after it. */
FUNCTION("kp_before",
	 "mov 272(%rdx), %rax\nmov %rdx, %rbp\nmov 248(%rbp), %rax\nmov 200(%rbp), %rcx\n");
FUNCTION("kp_after", "mov 200(%rdx), %rax\nmov 304(%rdx), %rax\nmov 312(%rdx), %rcx\n");
FUNCTION("kp_other", "mov 200(%rdx), %rax\nmov 312(%rdx), %rcx\n");
FUNCTION("kp_list", "cmpl $14, 8(%rdi)\nmov (%rdi), %rbx\nmov 40(%rbx), %rax\ncmpl $3, 8(%rax)\n");
FUNCTION("kp_new_tag",
	 "cmpl $15, 8(%rdi)\nmov (%rdi), %rbx\nmov 40(%rbx), %rax\ncmpl $3, 8(%rax)\n");
FUNCTION("kp_no_type", "cmpl $14, 8(%rdi)\nmov 40(%rbx), %rax\ncmpl $3, 8(%rcx)\n");

#define DECLARE(name) extern const uint8_t name[], name##_end[]
DECLARE(kp_constructor);
DECLARE(kp_without);
DECLARE(kp_size);
DECLARE(kp_address);
DECLARE(kp_elsewhere);
DECLARE(kp_before);
DECLARE(kp_after);
DECLARE(kp_other);
DECLARE(kp_list);
DECLARE(kp_new_tag);
DECLARE(kp_no_type);

#define CODE(name) ((struct code_bytes){name, (size_t)(name##_end - name)})
static const struct code_bytes missing;

static struct kprof_agent_layout learn(struct code_bytes constructor, struct code_bytes inputs,
				       struct code_bytes begins, struct code_bytes is_list)
{
	struct kprof_agent_layout l = {0};

	observer_layout_learn(constructor, inputs, begins, is_list, &l);
	return l;
}

static void learnt(void)
{
	struct kprof_agent_layout l =
		learn(CODE(kp_constructor), CODE(kp_size), CODE(kp_before), CODE(kp_list));

	CHECK_EQ(l.inputs_off, 208);
	CHECK_EQ(l.forward_off, 248);
	CHECK_EQ(l.list_off, 16);
	CHECK_EQ(l.list_tag, 14);
	CHECK_EQ(l.tensor_kind, 3);
	l = learn(CODE(kp_constructor), CODE(kp_address), CODE(kp_after), CODE(kp_list));
	CHECK_EQ(l.inputs_off, 208);
	CHECK_EQ(l.forward_off, 304);
}

static void refused(void)
{
	struct kprof_agent_layout l =
		learn(CODE(kp_without), CODE(kp_size), CODE(kp_after), CODE(kp_new_tag));

	CHECK_EQ(l.inputs_off, 0);
	CHECK_EQ(l.forward_off, 0);
	CHECK_EQ(l.list_off, 0);
	l = learn(CODE(kp_constructor), CODE(kp_elsewhere), CODE(kp_after), CODE(kp_no_type));
	CHECK_EQ(l.inputs_off, 0);
	CHECK_EQ(l.list_off, 0);
	l = learn(CODE(kp_constructor), CODE(kp_size), CODE(kp_other), missing);
	CHECK_EQ(l.inputs_off, 208);
	CHECK_EQ(l.forward_off, 0);
	l = learn(CODE(kp_constructor), CODE(kp_size), missing, missing);
	CHECK_EQ(l.forward_off, 0);
	l = learn(missing, missing, missing, missing);
	CHECK_EQ(l.inputs_off, 0);
}

UNIT_MAIN(TEST(learnt), TEST(refused))
