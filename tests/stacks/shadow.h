/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs that know their stacks. Each function on the way to where the time is spent notes its
 * return address itself (ENTER, LEAVE); where the time is spent, phase_run() notes that list, and
 * what the compiler's own unwinder (libgcc's) says, then runs a body for so much CPU time. Printed
 * at the end as one line of JSON.
 */
#ifndef KPROF_TESTS_SHADOW_H
#define KPROF_TESTS_SHADOW_H

#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif
#define MAX_SHADOW 1024
#define MAX_PHASES 512

struct shadow_frame {
	uintptr_t address;    /* where it returns to, or where it was interrupted */
	const char *function; /* whose frame it is that returns there; NULL: not known */
	int exact;            /* interrupted there */
};

struct shadow_phase {
	const char *name;
	long tid;
	uint64_t begin_ns, end_ns, cpu_ns;
	uint64_t lost_ns; /* of those: steps that took far longer than others do */
	unsigned int holes;
	unsigned int nr_shadow, nr_unwound;
	struct shadow_frame *shadow, *unwound;
};

static __thread struct shadow_frame shadow_list[MAX_SHADOW];
static __thread volatile unsigned int shadow_nr;
static struct shadow_phase shadow_phases[MAX_PHASES];
static unsigned int shadow_nr_phases;
static uint64_t shadow_cpu_ns = 50000000;

#define ENTER()                                                                              \
	(shadow_list[shadow_nr] =                                                            \
		 (struct shadow_frame){(uintptr_t)__builtin_return_address(0), __func__, 0}, \
	 shadow_nr++)
/* Behind it nothing is left to be done but to return: no call in front of it is a tail call. */
#define LEAVE()                                    \
	do {                                       \
		shadow_nr--;                       \
		__asm__ volatile("" ::: "memory"); \
	} while (0)

static inline uint64_t shadow_now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

static _Unwind_Reason_Code shadow_unwound(struct _Unwind_Context *c, void *ctx)
{
	struct shadow_phase *p = (struct shadow_phase *)ctx;
	int before = 0;
	uintptr_t ip = _Unwind_GetIPInfo(c, &before);

	if (!ip || p->nr_unwound >= MAX_SHADOW)
		return _URC_END_OF_STACK;
	p->unwound[p->nr_unwound].address = ip;
	p->unwound[p->nr_unwound++].exact = before;
	return _URC_NO_REASON;
}

typedef void (*phase_body)(void);

static volatile uint64_t shadow_sum;

static void NOINLINE phase_count(void)
{
	for (int i = 0; i < 2000; i++)
		shadow_sum += (uint64_t)i * shadow_sum;
}

/* A step of the phase is over. */
static void shadow_step(struct shadow_phase *p, uint64_t cpu_ns, uint64_t *shortest_ns)
{
	uint64_t took_ns = cpu_ns - p->cpu_ns;

	if (took_ns < *shortest_ns)
		*shortest_ns = took_ns;
	if (took_ns > 4 * *shortest_ns + 1000000) {
		p->lost_ns += took_ns - *shortest_ns;
		p->holes++;
	}
	p->cpu_ns = cpu_ns;
}

/* Everything that happens between begin_ns and end_ns is called from here. */
static void NOINLINE phase_run(const char *name, phase_body body)
{
	unsigned int at = __atomic_fetch_add(&shadow_nr_phases, 1, __ATOMIC_RELAXED);
	struct shadow_phase *p = &shadow_phases[at];
	uint64_t cpu_ns, shortest_ns = UINT64_MAX;

	ENTER();
	if (at >= MAX_PHASES)
		abort();
	p->name = name;
	p->tid = syscall(SYS_gettid);
	p->shadow = (struct shadow_frame *)calloc(MAX_SHADOW, sizeof(*p->shadow));
	p->unwound = (struct shadow_frame *)calloc(MAX_SHADOW, sizeof(*p->unwound));
	memcpy(p->shadow, shadow_list, shadow_nr * sizeof(*p->shadow));
	p->nr_shadow = shadow_nr;
#ifndef SHADOW_ONLY /* its own unwinder finds nothing to go by, and aborts */
	_Unwind_Backtrace(shadow_unwound, p);
#endif
	cpu_ns = shadow_now_ns(CLOCK_THREAD_CPUTIME_ID);
	p->begin_ns = shadow_now_ns(CLOCK_MONOTONIC);
	do {
		body();
		shadow_step(p, shadow_now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns, &shortest_ns);
	} while (p->cpu_ns < shadow_cpu_ns);
	p->end_ns = shadow_now_ns(CLOCK_MONOTONIC);
	LEAVE();
}

struct shadow_module {
	uintptr_t address, bias;
	const char *name;
};

static int shadow_find(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct shadow_module *m = (struct shadow_module *)ctx;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD &&
		    m->address - info->dlpi_addr - ph->p_vaddr < ph->p_memsz) {
			m->bias = info->dlpi_addr;
			m->name = info->dlpi_name;
			return 1;
		}
	}
	return 0;
}

static void shadow_print_frames(const char *key, const struct shadow_frame *f, unsigned int nr)
{
	printf(", \"%s\": [", key);
	for (unsigned int i = 0; i < nr; i++) {
		struct shadow_module m = {f[i].address - !f[i].exact, 0, "?"};

		dl_iterate_phdr(shadow_find, &m);
		printf("%s{\"module\": \"%s\", \"address\": %lu, \"function\": \"%s\", \"exact\": %d}",
		       i ? ", " : "", m.name[0] ? m.name : "program",
		       (unsigned long)(m.address - m.bias), f[i].function ? f[i].function : "",
		       f[i].exact);
	}
	printf("]");
}

/* The list outermost first, as it grew, is printed innermost first, as stacks are. */
static void shadow_print(void)
{
	char program[4096];
	ssize_t bytes = readlink("/proc/self/exe", program, sizeof(program) - 1);

	program[bytes > 0 ? bytes : 0] = 0;
	printf("{\"pid\": %d, \"program\": \"%s\", \"phases\": [", (int)getpid(), program);
	for (unsigned int i = 0; i < shadow_nr_phases; i++) {
		struct shadow_phase *p = &shadow_phases[i];

		for (unsigned int k = 0; k < p->nr_shadow / 2; k++) {
			struct shadow_frame swap = p->shadow[k];

			p->shadow[k] = p->shadow[p->nr_shadow - 1 - k];
			p->shadow[p->nr_shadow - 1 - k] = swap;
		}
		printf("%s{\"name\": \"%s\", \"tid\": %ld, \"begin_ns\": %lu, \"end_ns\": %lu, \"cpu_ns\": %lu",
		       i ? ", " : "", p->name, p->tid, (unsigned long)p->begin_ns,
		       (unsigned long)p->end_ns, (unsigned long)p->cpu_ns);
		printf(", \"lost_ns\": %lu, \"holes\": %u", (unsigned long)p->lost_ns, p->holes);
		shadow_print_frames("shadow", p->shadow, p->nr_shadow);
		shadow_print_frames("unwound", p->unwound, p->nr_unwound);
		printf("}");
	}
	printf("]}\n");
	fflush(stdout);
}

/* READY, then a line to be waited for: tests/workloads/protocol.py. */
static void shadow_ready(int argc, char **argv)
{
	char line[16];

	for (int i = 1; i + 1 < argc; i++)
		if (!strcmp(argv[i], "--cpu-ms"))
			shadow_cpu_ns = strtoull(argv[i + 1], NULL, 10) * 1000000;
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		exit(9);
}

static void shadow_linger(void)
{
	char line[16];

	shadow_print();
	if (!fgets(line, sizeof(line), stdin))
		exit(0);
}

#endif
