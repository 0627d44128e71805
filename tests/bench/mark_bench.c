// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a macro of kprof/mark.h costs: in a program that nobody records, and, when this one is
 * recorded, while it is.
 *
 *   mark_bench [millions of ranges] [--wait]
 *
 * A loop that counts, with a range around each round and without, medians of 9 interleaved runs;
 * the difference halved is one macro. --wait: prints "READY pid" and waits for a line, so that
 * kprof can attach. Prints "mark_unwatched value ns" or, watched at its end, "mark_watched value
 * ns".
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kprof/mark.h"
#include "util/util.h"

enum { RUNS = 9 };

/*
 * As little as a loop can do, so that nothing hides the macros; opaque, so that it is not turned
 * into a formula.
 */
static inline uint64_t step(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static __attribute__((noinline)) uint64_t plain(uint64_t rounds)
{
	uint64_t x = rounds;

	for (uint64_t i = 0; i < rounds; i++)
		x = step(x);
	return x;
}

static __attribute__((noinline)) uint64_t marked(uint64_t rounds)
{
	uint64_t x = rounds;

	for (uint64_t i = 0; i < rounds; i++) {
		KPROF_RANGE_PUSH("a range");
		x = step(x);
		KPROF_RANGE_POP();
	}
	return x;
}

static double time_ns(uint64_t (*fn)(uint64_t), uint64_t rounds)
{
	uint64_t start_ns = clock_mono_ns();
	volatile uint64_t sink = fn(rounds);

	(void)sink;
	return (double)(clock_mono_ns() - start_ns) / (double)rounds;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	double millions = argc > 1 ? strtod(argv[1], NULL) : 20, without[RUNS], with[RUNS];
	uint64_t rounds;
	char line[16];

	if (!(millions > 0 && millions <= 10000)) {
		fprintf(stderr, "usage: mark_bench [millions of ranges] [--wait]\n");
		return 2;
	}
	rounds = (uint64_t)(millions * 1e6);
	if (argc > 2 && !strcmp(argv[2], "--wait")) {
		printf("READY %d\n", getpid());
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	for (int i = 0; i < RUNS; i++) {
		without[i] = time_ns(plain, rounds);
		with[i] = time_ns(marked, rounds);
	}
	qsort(without, RUNS, sizeof(*without), compare);
	qsort(with, RUNS, sizeof(*with), compare);
	printf("mark_%s %.2f ns\n", KPROF_WATCHED() ? "watched" : "unwatched",
	       (with[RUNS / 2] - without[RUNS / 2]) / 2);
	return 0;
}
