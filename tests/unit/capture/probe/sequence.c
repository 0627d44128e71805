// SPDX-License-Identifier: BSD-2-Clause
/* Where sequence numbers are, from functions of our own that look like PyTorch's. */
#include "capture/probe/sequence.h"

#include <errno.h>

#include "symbol/names/signature.h"
#include "unit.h"
#include "util/util.h"

#define FUNCTION(name, code)                                                   \
	__asm__(".text\n.globl " name "\n" name ":\n" code "\n" name "_end:\n" \
		".byte 0xcc, 0xcc\n")
#define DECLARE(name) extern const uint8_t name[], name##_end[]
#define CODE(name) (const uint8_t *)(name), (size_t)(name##_end - name)

/* The call goes anywhere: only its bytes are looked at. */
#define VARIABLE "lea 0x1000(%rip), %rdi\ncall kp_anything\n"
__asm__(".text\nkp_anything: ret\n");

FUNCTION("kp_next", "sub $8, %rsp\n" VARIABLE "mov 0x1d0(%rax), %rax\nadd $8, %rsp\nret");
FUNCTION("kp_next_changed", "sub $8, %rsp\nlea 0x1000(%rip), %rdi\nmov %rsi, %rdi\n"
			    "call kp_anything\nmov 0x1d0(%rax), %rax\nret");
FUNCTION("kp_next_other", "sub $8, %rsp\n" VARIABLE "mov 0x1d0(%rdx), %rax\nret");
FUNCTION("kp_state", "sub $8, %rsp\n" VARIABLE "cmpb $0, (%rax)\nje 1f\n"
		     "lea 0x2000(%rip), %rdi\ncall kp_anything\nadd $8, %rsp\n"
		     "add $0x10, %rax\nret\n1: ud2");
FUNCTION("kp_state_big", VARIABLE ".byte 0x48, 0x05, 0x20, 1, 0, 0\nret"); /* add, long form */
FUNCTION("kp_state_unknown", VARIABLE "mov (%rax), %rax\nret");
FUNCTION("kp_set", "push %rbx\nmov %rdi, %rbx\n" VARIABLE
		   "mov %rax, %rdx\nmovabs $0x1ff8000000000, %rax\nxor 8(%rdx), %rax\n"
		   "not %rax\ntest %rbx, %rax\npop %rbx\nsete %al\nret");
FUNCTION("kp_complement", "push %rbx\nmov %rdi, %rbx\n" VARIABLE
			  "mov %rax, %rdx\nmovabs $0xfffff8ffffffffff, %rax\nxor (%rdx), %rax\n"
			  "test %rbx, %rax\npop %rbx\nsete %al\nret");
FUNCTION("kp_grad", "sub $8, %rsp\ncall kp_anything\nmovzbl 0x18(%rax), %eax\n"
		    "add $8, %rsp\nand $1, %eax\nret");
FUNCTION("kp_grad_two", "call kp_anything\nmovzbl 0x18(%rax), %eax\nand $3, %eax\nret");
FUNCTION("kp_inference", "movabs $0x7800000000, %rdx\nmov (%rdi), %rax\n"
			 "test %rdx, 0xb0(%rax)\nsete %al\nret");
FUNCTION("kp_inference_other", "movabs $0x7800000000, %rdx\nmov (%rdi), %rax\n"
			       "test %rdx, 0xb0(%rcx)\nsete %al\nret");
#define NODE(largest, thread)                                                \
	"push %rbx\nmov %rdi, %rbx\nmovq $0, 0x20(%rdi)\nmovq $" largest     \
	", 0x18(%rdi)\ncall *0x10(%rax)\nmov %rbx, %rdi\ncall kp_anything\n" \
	"call kp_anything\nmov 0x18(%rsp), %r14\nmov %rax, " thread "(%rbx)\npop %rbx\nret"
FUNCTION("kp_node", NODE("-1", "0x30"));
FUNCTION("kp_node_small", NODE("1", "0x30"));
FUNCTION("kp_node_far", NODE("-1", "0x38"));
DECLARE(kp_next);
DECLARE(kp_next_changed);
DECLARE(kp_next_other);
DECLARE(kp_state);
DECLARE(kp_state_big);
DECLARE(kp_state_unknown);
DECLARE(kp_set);
DECLARE(kp_complement);
DECLARE(kp_grad);
DECLARE(kp_grad_two);
DECLARE(kp_inference);
DECLARE(kp_inference_other);
DECLARE(kp_node);
DECLARE(kp_node_small);
DECLARE(kp_node_far);

#define AT 0x5000 /* where the functions are said to begin */

static void variables(void)
{
	struct sequence_variable v;

	CHECK_EQ(sequence_variable(CODE(kp_next), AT, &v), 0);
	CHECK_EQ(v.index, AT + 4 + 7 + 0x1000);
	CHECK_EQ(v.disp, 0x1d0);
	CHECK_EQ(sequence_variable(CODE(kp_next_changed), AT, &v), -ENOENT);
	CHECK_EQ(sequence_variable(CODE(kp_next_other), AT, &v), -ENOENT);
	for (size_t i = 0; i < 23; i++) /* up to the read */
		CHECK_EQ(sequence_variable(kp_next, i, AT, &v), -ENOENT);
	CHECK_EQ(sequence_variable_address(CODE(kp_state), AT, &v), 0);
	CHECK_EQ(v.index, AT + 4 + 7 + 5 + 3 + 2 + 7 + 0x2000);
	CHECK_EQ(v.disp, 0x10);
	CHECK_EQ(sequence_variable_address(CODE(kp_state_big), AT, &v), 0);
	CHECK_EQ(v.disp, 0x120);
	CHECK_EQ(sequence_variable_address(CODE(kp_state_unknown), AT, &v), -ENOENT);
}

static void keys(void)
{
	struct sequence_variable v;
	uint64_t flipped, tested;
	int32_t off;
	uint8_t bit;

	CHECK_EQ(sequence_flipped(CODE(kp_set), AT, &v, &flipped), 0);
	CHECK_EQ(v.disp, 8);
	CHECK(flipped == 0x1ff8000000000);
	CHECK_EQ(sequence_flipped(CODE(kp_complement), AT, &v, &flipped), 0);
	CHECK_EQ(v.disp, 0);
	CHECK(flipped == 0x70000000000);
	CHECK_EQ(sequence_flipped(CODE(kp_next), AT, &v, &flipped), -ENOENT);
	CHECK_EQ(sequence_bool(CODE(kp_grad), &off, &bit), 0);
	CHECK_EQ(off, 0x18);
	CHECK_EQ(bit, 1);
	CHECK_EQ(sequence_bool(CODE(kp_grad_two), &off, &bit), -ENOENT);
	CHECK_EQ(sequence_tested(CODE(kp_inference), &tested, &off), 0);
	CHECK_EQ(off, 0xb0);
	CHECK(tested == 0x7800000000);
	CHECK_EQ(sequence_tested(CODE(kp_inference_other), &tested, &off), -ENOENT);
}

static void node(void)
{
	int32_t number, thread;

	CHECK_EQ(sequence_node(NULL, CODE(kp_node), AT, &number, &thread), 0);
	CHECK_EQ(number, 0x18);
	CHECK_EQ(thread, 0x30);
	CHECK_EQ(sequence_node(NULL, CODE(kp_node_small), AT, &number, &thread), -ENOENT);
	CHECK_EQ(sequence_node(NULL, CODE(kp_node_far), AT, &number, &thread), -ENOENT);
	for (size_t i = 0; i < (size_t)(kp_node_end - kp_node) - 6; i++) /* up to the store */
		CHECK_EQ(sequence_node(NULL, kp_node, i, AT, &number, &thread), -ENOENT);
}

static void arguments(void)
{
	static const struct {
		uint8_t read, at;
		uint64_t rule, arg; /* of a whole signature with this alone */
	} cases[] = {
		{KPROF_INPUT_TENSOR, 1, KPROF_SEQUENCE_TENSOR, KPROF_REG_ARG2},
		{KPROF_INPUT_TENSOR, 5, KPROF_SEQUENCE_TENSOR, KPROF_REG_ARG6},
		{KPROF_INPUT_TENSOR, 6, KPROF_SEQUENCE_MAYBE, 0}, /* on the stack */
		{KPROF_INPUT_TENSORS, 4, KPROF_SEQUENCE_TENSORS, KPROF_REG_ARG5},
		{KPROF_INPUT_TENSORS, 5, KPROF_SEQUENCE_MAYBE, 0},
		{KPROF_INPUT_TENSOR_LIST_REF, 0, KPROF_SEQUENCE_LIST_REF, KPROF_REG_ARG1},
		{KPROF_INPUT_TENSOR_AFTER_FLAG, 0, KPROF_SEQUENCE_MAYBE, 0},
		{KPROF_INPUT_WORDS, 0, KPROF_SEQUENCE_NONE, 0},
	};
	struct signature s = {.plan.nr = 1};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		s.plan.in[0] = (struct kprof_input){.read = cases[i].read, .at = cases[i].at};
		CHECK_EQ(sequence_by_tensors(&s, true),
			 KPROF_COOKIE_SEQUENCE(cases[i].rule, cases[i].arg));
	}
	/* there may be tensors among those that are not known */
	CHECK_EQ(sequence_by_tensors(&s, false), KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_MAYBE, 0));
	/* a tensor that is always there is better than a list */
	s.plan.nr = 2;
	s.plan.in[0] = (struct kprof_input){.read = KPROF_INPUT_TENSORS, .at = 0};
	s.plan.in[1] = (struct kprof_input){.read = KPROF_INPUT_TENSOR, .at = 2};
	CHECK_EQ(sequence_by_tensors(&s, true),
		 KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_TENSOR, KPROF_REG_ARG3));
	s.guessed = true;
	CHECK_EQ(sequence_by_tensors(&s, true), KPROF_COOKIE_SEQUENCE(KPROF_SEQUENCE_MAYBE, 0));
}

UNIT_MAIN(TEST(variables), TEST(keys), TEST(node), TEST(arguments))
