// SPDX-License-Identifier: BSD-2-Clause
/*
 * Code that is made at run time and keeps no frame pointer, as Xbyak's users make it (oneDNN): each
 * kernel in 256 KiB of its own, rbp a number like any other. Time is spent in such code, and in
 * what it calls, through several of them.
 */
#include <sys/mman.h>

#include "shadow.h"

#define KERNEL_BYTES (256u << 10)
#define NR_KERNELS 12

/* Runs n times, calls fn each time if there is one, and notes where it returns to itself. */
typedef long (*kernel)(long n, void (*fn)(void), uintptr_t *returns_to);

static uint8_t *code;
static uint8_t *at; /* where the next instruction goes */

static void put(const void *bytes, size_t nr)
{
	memcpy(at, bytes, nr);
	at += nr;
}
#define PUT(...) put((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

static void put_u32(uint32_t v)
{
	put(&v, sizeof(v));
}

/* rbx, rbp, r12 to r15: all are used, in an order of the kernel's own. */
static void push_pop(unsigned int which, int pop)
{
	static const uint8_t regs[] = {3, 5, 12, 13, 14, 15};

	for (unsigned int i = 0; i < sizeof(regs); i++) {
		uint8_t reg = regs[((pop ? 5 - i : i) + which) % 6];

		if (reg >= 8)
			PUT(0x41);
		PUT((uint8_t)((pop ? 0x58 : 0x50) | (reg & 7)));
	}
}

/* Room on the stack so that it is aligned at the call. */
static uint32_t room_of(unsigned int which)
{
	return 8 + 16 * (which * which * which);
}

static void put_loop(void)
{
	uint8_t *loop = at;

	PUT(0x48, 0x85, 0xdb); /* test %rbx,%rbx */
	PUT(0x74, 0x02);       /* je over the call */
	PUT(0xff, 0xd3);       /* call *%rbx */
	PUT(0x48, 0xff, 0xcd); /* dec %rbp */
	PUT(0x41, 0x54);       /* push %r12 */
	PUT(0x41, 0x5c);       /* pop %r12 */
	PUT(0x48, 0x85, 0xed); /* test %rbp,%rbp */
	PUT(0x0f, 0x85);       /* jne loop */
	put_u32((uint32_t)(loop - (at + 4)));
}

static void put_kernel(unsigned int which, uint32_t room)
{
	PUT(0x48, 0x8b, 0x04, 0x24); /* mov (%rsp),%rax */
	PUT(0x48, 0x89, 0x02);       /* mov %rax,(%rdx) */
	push_pop(which, 0);
	PUT(0x48, 0x81, 0xec); /* sub $room,%rsp */
	put_u32(room);
	PUT(0x48, 0x89, 0xfd); /* mov %rdi,%rbp */
	PUT(0x48, 0x89, 0xf3); /* mov %rsi,%rbx */
	put_loop();
	PUT(0x48, 0x81, 0xc4); /* add $room,%rsp */
	put_u32(room);
	push_pop(which, 1);
	PUT(0xc5, 0xf8, 0x77); /* vzeroupper */
	PUT(0xc3);
	/* Constants behind it. */
	at += 64 - (at - code) % 64;
	for (int i = 0; i < 16; i++)
		put_u32(0x3f800000u + (uint32_t)i * 0xc35d);
}

static kernel kernel_at(unsigned int which)
{
	return (kernel)(uintptr_t)(code + which * KERNEL_BYTES);
}

static void make_kernels(void)
{
	code = mmap(NULL, (NR_KERNELS + 1) * KERNEL_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		abort();
	for (unsigned int i = 0; i < NR_KERNELS; i++) {
		at = code + i * KERNEL_BYTES;
		put_kernel(i, room_of(i));
	}
}

/* ---- through kernels ---- */

static unsigned int level;
static const char *phase;

static void NOINLINE in_kernel(void);

static void NOINLINE call_kernel(unsigned int which)
{
	unsigned int before = level;
	uintptr_t *returns_to;

	ENTER();
	level = which;
	shadow_list[shadow_nr] = (struct shadow_frame){0, NULL, 0};
	returns_to = &shadow_list[shadow_nr++].address;
	kernel_at(which)(1, in_kernel, returns_to);
	shadow_nr--;
	level = before;
	LEAVE();
}

static void NOINLINE in_kernel(void)
{
	ENTER();
	if (level)
		call_kernel(level - 1);
	else
		phase_run(phase, phase_count);
	LEAVE();
}

/* ---- in kernels ---- */

static unsigned int which_kernel;

static void NOINLINE spin(void)
{
	uintptr_t ignored;

	kernel_at(which_kernel)(3000, NULL, &ignored);
	__asm__ volatile("" ::: "memory");
}

static void NOINLINE nothing(void)
{
	shadow_sum++;
}

/* As short as can be: most of the time is in its first and last instructions. */
static void NOINLINE call_often(void)
{
	uintptr_t ignored;

	for (int i = 0; i < 200; i++)
		kernel_at(which_kernel)(2, nothing, &ignored);
	__asm__ volatile("" ::: "memory");
}

/* Other code in the same place, each time, and never the same again. */
static void NOINLINE make_again(void)
{
	static unsigned int again;
	uintptr_t ignored;

	at = code + NR_KERNELS * KERNEL_BYTES;
	put_kernel(again % NR_KERNELS, 8 + 16 * again);
	again++;
	kernel_at(NR_KERNELS)(3000000, NULL, &ignored);
	__asm__ volatile("" ::: "memory");
}

static void NOINLINE phases(void)
{
	ENTER();
	for (which_kernel = 0; which_kernel < NR_KERNELS; which_kernel++) {
		phase_run("spin", spin);
		phase_run("often", call_often);
	}
	for (unsigned int i = 0; i < NR_KERNELS; i++) {
		phase = "through";
		call_kernel(i);
	}
	shadow_cpu_ns *= 20;
	phase_run("again", make_again);
	LEAVE();
}

int main(int argc, char **argv)
{
	ENTER();
	make_kernels();
	shadow_ready(argc, argv);
	phases();
	shadow_linger();
	LEAVE();
	return 0;
}
