// SPDX-License-Identifier: BSD-2-Clause
/*
 * A target whose calls of the simulated CUDA all fail, and which does with each result what
 * programs do: every function is called by one piece of code, many times. It says how often it
 * called each: as many failed. The protocol is that of protocol.py; --now: without it.
 */
#include <stdlib.h>

#include "sim/cuda_driver.h"
#include "sim/cuda_runtime.h"
#include "workloads/settle.h"

#define ROUNDS 300
#define TOO_MANY ((size_t)1 << 60)
#define APART __attribute__((noinline)) static

static volatile int seen;
static int last, results[2], rounds;
static void *memory;

APART void ignored(void)
{
	cudaMalloc(&memory, TOO_MANY);
}

APART void compared(void)
{
	if (cudaMallocManaged(&memory, TOO_MANY, 1))
		seen++;
}

/* Not optimized, it is stored, and its register used for something else before it is looked at. */
APART void stored(void)
{
	int result = cudaHostAlloc(&memory, TOO_MANY, 0);

	rounds++;
	if (result)
		seen++;
}

APART void to_variable(void)
{
	last = cudaMallocAsync(&memory, TOO_MANY, NULL);
	if (last)
		seen++;
}

APART void to_array(void)
{
	results[rounds & 1] = cudaMemcpy(&rounds, &last, sizeof(last), 99);
}

APART int passed_on(void)
{
	return cudaHostRegister(NULL, 0, 99);
}

/* Gone at once, with whatever options: the next instruction overwrites it. */
void lost(void **p, size_t bytes);
__asm__(".text\n"
	".type lost, @function\n"
	"lost:\n"
	"	sub $8, %rsp\n"
	"	call cudaMallocHost@PLT\n"
	"	xor %eax, %eax\n"
	"	nop\n"
	"	add $8, %rsp\n"
	"	ret\n"
	".size lost, . - lost\n");

APART void round_of_calls(void)
{
	ignored();
	compared();
	stored();
	to_variable();
	to_array();
	if (passed_on())
		seen++;
	lost(&memory, TOO_MANY);
}

int main(int argc, char **argv)
{
	bool now = argc > 1 && !strcmp(argv[1], "--now");
	char line[64];
	int settling;

	if (cuInit(0))
		return 3;
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (!now && !fgets(line, sizeof(line), stdin))
		return 9; /* nobody is there any more */
	settling = settle(round_of_calls);
	seen = 0;
	for (int i = 0; i < ROUNDS; i++)
		round_of_calls();
	/* What this program itself has seen fail. */
	if (seen != 4 * ROUNDS || !results[0] || !results[1])
		return 3;
	printf("{\"pid\":%d,\"calls\":%d,\"settling\":%d}\n", (int)getpid(), settling + ROUNDS,
	       settling);
	fflush(stdout);
	while (!now && fgets(line, sizeof(line), stdin)) /* --linger: until its input ends */
		;
	return 0;
}
