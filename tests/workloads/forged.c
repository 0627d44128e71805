// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target whose calls of an operator return to the middle of an instruction, which code that was
 * entered by a jump may do, and one that executes that instruction. Whatever is written there
 * changes what it computes. With -DLIBRARY: the library that both map.
 *
 *   forged forge    calls the operator in this way, all the time
 *   forged compute  executes the instruction
 *
 * Says READY and its pid, works until it reads a line, says how often, and how often the result was
 * wrong, and ends with its input.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONSTANT 0x90909090u /* four times nop, which is the cheapest place for a probe */
#define IN_THE_MIDDLE 1      /* offset of the constant in the instruction that loads it, bytes */

uint32_t forged_constant(void);

#ifdef LIBRARY

__asm__(".text\n.globl forged_constant\n.type forged_constant, @function\nforged_constant:\n"
	".cfi_startproc\n\tmovl $0x90909090, %eax\n\tret\n.cfi_endproc\n"
	".size forged_constant, . - forged_constant\n"
	".section .note.GNU-stack,\"\",@progbits\n");

#else

/* at::_ops::fake_add_Tensor::call() of fakeops.cpp */
uint64_t op(uint64_t x) __asm__("_ZN2at4_ops15fake_add_Tensor4callEm");

/* Returns through the middle of forged_constant(), whose ret takes the second address. */
static void call_forged(void)
{
	const char *to = (const char *)(uintptr_t)forged_constant + IN_THE_MIDDLE;

	__asm__ volatile("movq %%rsp, %%rbx\n\t"
			 "andq $-16, %%rsp\n\t"
			 "leaq 1f(%%rip), %%rax\n\t"
			 "pushq %%rax\n\t"
			 "pushq %0\n\t"
			 "jmp *%1\n"
			 "1:\tmovq %%rbx, %%rsp"
			 :
			 : "r"(to), "r"(op)
			 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11",
			   "memory", "cc");
}

int main(int argc, char **argv)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};
	bool forges = argc == 2 && !strcmp(argv[1], "forge");
	uint64_t rounds = 0, wrong = 0;
	char byte = 0;

	if (!forges && (argc != 2 || strcmp(argv[1], "compute")))
		return 2;
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	while (!poll(&input, 1, 0)) {
		for (int i = 0; i < 1000; i++, rounds++) {
			if (forges)
				call_forged();
			else
				wrong += forged_constant() != CONSTANT;
		}
	}
	printf("{\"rounds\": %" PRIu64 ", \"wrong\": %" PRIu64 "}\n", rounds, wrong);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}

#endif
