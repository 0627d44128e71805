// SPDX-License-Identifier: BSD-2-Clause
/*
 * Stacks of C that a walker has to get right. Built at each level of optimization by two compilers,
 * with frame pointers and without, static, on musl, with .debug_frame alone (stacks.mk).
 */
#include <alloca.h>
#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdalign.h>
#include <sys/time.h>
#include <ucontext.h>

#include "shadow.h"

static const char *phase;
static phase_body body = phase_count;

/* ---- recursion, with frames of several sizes ---- */

static void NOINLINE recurse_a(int n);

static void NOINLINE recurse_c(int n)
{
	volatile char block[200];

	ENTER();
	block[n & 127] = 1;
	if (n > 0)
		recurse_a(n - 1);
	else
		phase_run(phase, body);
	shadow_sum += (uint64_t)block[n & 127];
	LEAVE();
}

static void NOINLINE recurse_b(int n)
{
	ENTER();
	if (n > 0)
		recurse_c(n - 1);
	else
		phase_run(phase, body);
	LEAVE();
}

static void NOINLINE recurse_a(int n)
{
	volatile uint64_t a = shadow_sum, b = a * 3, c = b * 5, d = c * 7;

	ENTER();
	if (n > 0)
		recurse_b(n - 1);
	else
		phase_run(phase, body);
	shadow_sum += a * b * c * d;
	LEAVE();
}

/* ---- stacks of a size that only runs show ---- */

static void NOINLINE in_alloca(size_t bytes)
{
	char *p = alloca(bytes);

	ENTER();
	memset(p, 1, bytes);
	phase_run("alloca", phase_count);
	shadow_sum += (uint64_t)p[bytes - 1];
	LEAVE();
}

static void NOINLINE in_vla(size_t n)
{
	volatile int list[n];

	ENTER();
	for (size_t i = 0; i < n; i++)
		list[i] = (int)i;
	in_alloca(n * 3);
	shadow_sum += (uint64_t)list[n - 1];
	LEAVE();
}

/* Arguments on the stack, a realigned stack, and a size that is not known. */
static void NOINLINE in_realigned(int a, int b, int c, int d, int e, int f, int g, int h, size_t n)
{
	alignas(64) volatile char wide[128];
	volatile char *p = alloca(n);

	ENTER();
	wide[a] = (char)b;
	p[c] = (char)d;
	phase_run("realigned", phase_count);
	shadow_sum += (uint64_t)(wide[a] + p[c] + e + f + g + h);
	LEAVE();
}

static void NOINLINE in_aligned(int a)
{
	alignas(128) volatile char wide[256];

	ENTER();
	wide[a] = (char)a;
	in_realigned(1, 2, 3, 4, 5, 6, 7, 8, 100 + (size_t)wide[a]);
	LEAVE();
}

/* ---- tail calls ---- */

void tail_end(void);
void NOINLINE tail_end(void)
{
	ENTER();
	phase_run("tail", phase_count);
	LEAVE();
}

/* At every level of optimization. */
__attribute__((naked)) static void tail_2(void)
{
	__asm__("jmp tail_end");
}

__attribute__((naked)) static void tail_1(void)
{
	__asm__("jmp *%0" ::"r"(tail_2));
}

static void NOINLINE in_tail(void)
{
	ENTER();
	tail_1();
	LEAVE();
}

/* ---- prologues and epilogues: functions that do nothing else ---- */

static uint64_t NOINLINE leaf_one(uint64_t a)
{
	return a * 3 + 1;
}

static uint64_t NOINLINE leaf_pushes(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	uint64_t x = leaf_one(a), y = leaf_one(b), z = leaf_one(c), w = leaf_one(d);

	return x ^ leaf_one(y ^ leaf_one(z ^ leaf_one(w)));
}

static uint64_t NOINLINE leaf_realigned(uint64_t a)
{
	alignas(64) volatile uint64_t wide[8];

	wide[a & 7] = a;
	return wide[a & 7] + leaf_one(a);
}

static void NOINLINE many_leaves(void)
{
	for (uint64_t i = 0; i < 200; i++) {
		shadow_sum += leaf_pushes(i, i + 1, i + 2, i + 3);
		shadow_sum += leaf_realigned(i);
	}
}

/* Through the PLT, into functions that do next to nothing. */
static void NOINLINE many_plt(void)
{
	for (int i = 0; i < 200; i++)
		shadow_sum += (uint64_t)(toascii(i) + (tolower)(i) + (isalpha)(i));
}

static void NOINLINE many_clocks(void)
{
	for (int i = 0; i < 100; i++)
		shadow_sum += shadow_now_ns(CLOCK_MONOTONIC);
}

static int zeros = -1;
static char zeros_to[65536];

static void NOINLINE many_reads(void)
{
	for (int i = 0; i < 4; i++)
		shadow_sum += (uint64_t)read(zeros, zeros_to, sizeof(zeros_to));
}

static void NOINLINE leaves(void)
{
	ENTER();
	phase_run("prologues", many_leaves);
	phase_run("plt", many_plt);
	phase_run("vdso", many_clocks);
	phase_run("syscall", many_reads);
	LEAVE();
}

/* ---- signals ---- */

static void on_signal(int sig)
{
	ENTER();
	phase_run("signal", phase_count);
	LEAVE();
}

static void on_alarm(int sig)
{
	static int left = 12;
	uint64_t before = shadow_cpu_ns;

	ENTER();
	if (left-- > 0) {
		shadow_cpu_ns = before / 8;
		phase_run("alarm", phase_count);
		shadow_cpu_ns = before;
	}
	LEAVE();
}

/* The interrupted instruction is a function's first: the byte before it is another's. */
void trap_here(void);
__attribute__((naked)) void trap_here(void)
{
	__asm__("ud2\n\tret");
}

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;

	ENTER();
	phase_run("trap", phase_count);
	uc->uc_mcontext.gregs[REG_RIP] += 2;
	LEAVE();
}

static void NOINLINE in_alarms(void)
{
	struct itimerval every = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	uint64_t begin_ns = shadow_now_ns(CLOCK_THREAD_CPUTIME_ID);

	ENTER();
	setitimer(ITIMER_REAL, &every, NULL);
	while (shadow_now_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns < 3 * shadow_cpu_ns)
		many_leaves();
	setitimer(ITIMER_REAL, &never, NULL);
	LEAVE();
}

static void NOINLINE in_signals(void)
{
	static char stack[1 << 18];
	stack_t alternative = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};

	ENTER();
	sigaltstack(&alternative, NULL);
	sigaction(SIGUSR1, &a, NULL);
	raise(SIGUSR1);
	a.sa_flags = 0;
	sigaction(SIGUSR2, &a, NULL);
	raise(SIGUSR2);
	a.sa_handler = on_alarm;
	sigaction(SIGALRM, &a, NULL);
	in_alarms();
	a.sa_sigaction = on_trap;
	a.sa_flags = SA_SIGINFO;
	sigaction(SIGILL, &a, NULL);
	trap_here();
	LEAVE();
}

/* ---- other roots ---- */

static void *in_thread(void *arg)
{
	ENTER();
	phase = "thread";
	recurse_a(4);
	LEAVE();
	return NULL;
}

static void NOINLINE start_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, in_thread, NULL);
	pthread_join(thread, NULL);
}

#ifdef __GLIBC__
static ucontext_t here, there;

static void in_context(void)
{
	ENTER();
	phase_run("context", phase_count);
	LEAVE();
}

static void NOINLINE switch_context(void)
{
	static char stack[1 << 18];
	unsigned int before = shadow_nr;

	getcontext(&there);
	there.uc_stack.ss_sp = stack;
	there.uc_stack.ss_size = sizeof(stack);
	there.uc_link = &here;
	makecontext(&there, in_context, 0);
	shadow_nr = 0; /* a stack of its own */
	swapcontext(&here, &there);
	shadow_nr = before;
}
#else
static void switch_context(void)
{
}

/* Debian's libgcc_eh is made for glibc, and asks it this (<dlfcn.h> of glibc 2.35). */
struct found_object {
	unsigned long long flags;
	void *start, *end, *link_map, *eh_frame_hdr;
	unsigned long long reserved[7];
};

static int find_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct found_object *to = ctx;
	uintptr_t pc = (uintptr_t)to->start;
	int inside = 0;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD && pc - info->dlpi_addr - ph->p_vaddr < ph->p_memsz)
			inside = 1;
		if (ph->p_type == PT_GNU_EH_FRAME)
			to->eh_frame_hdr = (void *)(info->dlpi_addr + ph->p_vaddr);
	}
	return inside && to->eh_frame_hdr;
}

int _dl_find_object(void *pc, void *result);
int _dl_find_object(void *pc, void *result)
{
	struct found_object *to = result;

	memset(to, 0, sizeof(*to));
	to->start = pc;
	return dl_iterate_phdr(find_object, to) ? 0 : -1;
}
#endif

int main(int argc, char **argv)
{
	ENTER();
	shadow_ready(argc, argv);
	zeros = open("/dev/zero", O_RDONLY);
	phase = "recursion";
	recurse_a(90);
	phase = "deep";
	recurse_a(700);
	in_vla(50 + (size_t)argc);
	in_aligned(argc);
	in_tail();
	leaves();
	in_signals();
	start_thread();
	switch_context();
	shadow_linger();
	LEAVE();
	return 0;
}
