// SPDX-License-Identifier: BSD-2-Clause
/*
 * Does things inside of annotations whose counters are known: touches so many new pages, sleeps so
 * often, uses so much CPU time as its own clock says, changes its CPU so often. Other threads of it
 * use the same CPUs and touch pages all the time, of which nothing may be counted for these; alone:
 * there are none.
 *
 * counted [STEPS [alone]]: prints "READY pid", waits for a line, works on two threads, prints one line of
 * JSON (what each annotation had in all, by name), waits for a line, and ends.
 */
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "kprof/mark.h"

#define PAGE 4096
#define BURN_NS 3000000
#define NR_CPUS 2 /* that are changed between */

static int steps = 20;
static int cpus[NR_CPUS]; /* of those that it may use */
static volatile bool over;

/* What the program knows of an annotation, of all its times together. */
struct sum {
	unsigned long times, faults, migrations, cpu_ns;
	unsigned long switches_inside, switches_around; /* as the kernel counts them for it */
};
enum { PAGES, SLEEPS, BURN, MOVES, OUTER, NR_SUMS };
static const char *const names[] = {"pages", "sleeps", "burn", "moves", "outer"};

static uint64_t clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Uses this much of a CPU, and touches no memory. */
static uint64_t burn(uint64_t ns)
{
	uint64_t begin = clock_ns(), now;

	do {
		for (volatile int i = 0; i < 2000; i++)
			;
		now = clock_ns();
	} while (now - begin < ns);
	return now - begin;
}

/* Touches so many pages that this process has not had yet. Returns where they are. */
static char *touch(int pages)
{
	char *at = mmap(NULL, (size_t)pages * PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		abort();
	for (int i = 0; i < pages; i++)
		*(volatile char *)(at + (size_t)i * PAGE) = 1;
	return at;
}

static void pages(int step, struct sum *sum)
{
	int nr = 5 + step % 7;
	char *at;

	KPROF_RANGE_PUSH("pages");
	at = touch(nr);
	KPROF_RANGE_POP();
	munmap(at, (size_t)nr * PAGE);
	sum->faults += (unsigned long)nr;
	sum->times++;
}

static unsigned long switches(void)
{
	struct rusage use;

	getrusage(RUSAGE_THREAD, &use);
	return (unsigned long)(use.ru_nvcsw + use.ru_nivcsw);
}

static void sleeps(int step, struct sum *sum)
{
	const struct timespec moment = {0, 50000};
	unsigned long before = switches(), begin, end;
	int nr = 1 + step % 3;

	KPROF_RANGE_PUSH("sleeps");
	begin = switches();
	for (int i = 0; i < nr; i++)
		nanosleep(&moment, NULL);
	end = switches();
	KPROF_RANGE_POP();
	sum->switches_inside += end - begin;
	sum->switches_around += switches() - before;
	sum->times++;
}

static void burns(struct sum *sum)
{
	KPROF_RANGE_PUSH("burn");
	sum->cpu_ns += burn(BURN_NS);
	KPROF_RANGE_POP();
	sum->times++;
}

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		abort();
}

/* Goes from CPU to CPU. */
static void moves(struct sum *sum)
{
	uint64_t begin;

	KPROF_RANGE_PUSH("moves");
	begin = clock_ns();
	for (int i = 0; i < 2 * NR_CPUS; i++) {
		int before = sched_getcpu();

		pin(cpus[i % NR_CPUS]);
		sum->migrations += before != sched_getcpu();
		burn(BURN_NS / 10);
	}
	sum->cpu_ns += clock_ns() - begin;
	KPROF_RANGE_POP();
	sum->times++;
}

static void step(int i, struct sum *sums)
{
	uint64_t begin;

	KPROF_RANGE_PUSH("outer");
	begin = clock_ns();
	pages(i, &sums[PAGES]);
	sleeps(i, &sums[SLEEPS]);
	burns(&sums[BURN]);
	moves(&sums[MOVES]);
	sums[OUTER].cpu_ns += clock_ns() - begin;
	KPROF_RANGE_POP();
	sums[OUTER].times++;
}

static void *work(void *arg)
{
	pin(cpus[0]);
	for (int i = 0; i < steps; i++)
		step(i, arg);
	return NULL;
}

/* Takes a share of a CPU from the others, and has many page faults. */
static void *neighbour(void *arg)
{
	pin(*(int *)arg);
	while (!over) {
		munmap(touch(16), 16 * PAGE);
		burn(BURN_NS / 30);
	}
	return NULL;
}

static void print(const char *name, unsigned long value, const char *end)
{
	printf("\"%s\": %lu%s", name, value, end);
}

int main(int argc, char **argv)
{
	pthread_t workers[2], neighbours[NR_CPUS];
	struct sum sums[2][NR_SUMS];
	bool alone = argc > 2 && !strcmp(argv[2], "alone");
	cpu_set_t allowed;
	char line[16];

	memset(sums, 0, sizeof(sums));
	if (argc > 1)
		steps = atoi(argv[1]);
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int cpu = 0, nr = 0; cpu < CPU_SETSIZE && nr < NR_CPUS; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			for (int i = nr++; i < NR_CPUS; i++)
				cpus[i] = cpu;
	step(0, sums[0]); /* what it calls is in memory then */
	memset(sums, 0, sizeof(sums));
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("READY %d\n", getpid());
	if (!fgets(line, sizeof(line), stdin))
		return 9;
	for (int i = 0; i < NR_CPUS && !alone; i++)
		if (pthread_create(&neighbours[i], NULL, neighbour, &cpus[i]))
			return 1;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&workers[i], NULL, work, sums[i]))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(workers[i], NULL);
	over = true;
	for (int i = 0; i < NR_CPUS && !alone; i++)
		pthread_join(neighbours[i], NULL);
	printf("{");
	for (int i = 0; i < NR_SUMS; i++) {
		printf("\"%s\": {", names[i]);
		print("times", sums[0][i].times + sums[1][i].times, ", ");
		print("faults", sums[0][i].faults + sums[1][i].faults, ", ");
		print("switches_inside", sums[0][i].switches_inside + sums[1][i].switches_inside,
		      ", ");
		print("switches_around", sums[0][i].switches_around + sums[1][i].switches_around,
		      ", ");
		print("migrations", sums[0][i].migrations + sums[1][i].migrations, ", ");
		print("cpu_ns", sums[0][i].cpu_ns + sums[1][i].cpu_ns, "}");
		printf(i < NR_SUMS - 1 ? ", " : "}\n");
	}
	return fgets(line, sizeof(line), stdin) ? 0 : 0; /* until told, or nobody is there */
}
