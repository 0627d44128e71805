// SPDX-License-Identifier: BSD-2-Clause
/*
 * Uses every macro of kprof/mark.h and counts what it did; compiled as C and as C++, by two
 * compilers, at every level of optimization. marks [STEPS [--now]]: prints "READY pid", waits for a
 * line (--now: does not), works on two threads, prints one line of JSON (counts, and checksums of
 * what a probe must not change), and ends.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kprof/mark.h"

enum { RED_ZONE = 14, LONG_TEXT = 1500 };

static int steps = 10;

struct counts {
	unsigned long outer, inner, ticks, backend_events, memory_events, correlations;
	unsigned long user_correlations, evaluated;
};

#if defined(__x86_64__)
/*
 * Keeps its numbers below the stack pointer, where a leaf function may (the ABI's red zone), across
 * a probed place: whatever handles the probe must not write there.
 */
static __attribute__((noinline)) uint64_t red_zone(uint64_t seed, const struct kprof_mark_record *r)
{
	volatile uint64_t mine[RED_ZONE];
	uint64_t sum = 0;

	for (int i = 0; i < RED_ZONE; i++)
		mine[i] = seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	kprof_mark_hit(r);
	for (int i = 0; i < RED_ZONE; i++)
		sum = sum * 31 + mine[i];
	return sum;
}

static uint64_t red_zone_expected(uint64_t seed)
{
	uint64_t sum = 0;

	for (int i = 0; i < RED_ZONE; i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		sum = sum * 31 + seed;
	}
	return sum;
}
#endif

static const char *counted(const char *name, struct counts *c)
{
	c->evaluated++;
	return name;
}

static uint64_t now_us(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void one_step(int i, struct counts *c, unsigned long *wrong)
{
	const struct kprof_mark_record mark = {
		KPROF_MARK_VERSION, KPROF_MARK_MARK, {KPROF_MARK_ADDRESS("in a leaf")}, {0}};
	uint64_t begin = now_us(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME);
	char name[32];

	KPROF_STEP(i);
	KPROF_RANGE_PUSH(counted("outer", c));
	c->outer++;
	*wrong += red_zone((uint64_t)i, &mark) != red_zone_expected((uint64_t)i);
	snprintf(name, sizeof(name), "inner %d", i % 3);
	KPROF_RANGE_PUSH(name);
	memset(name, '!', sizeof(name) - 1); /* it has been copied */
	c->inner++;
	KPROF_MARK("tick");
	c->ticks++;
	KPROF_ACTIVITY_METADATA("note", "what a note says");
	KPROF_ACTIVITY_METADATA_JSON("shape", "[2, 3]");
	KPROF_RANGE_POP();
	KPROF_CORRELATION_PUSH(1000 + i);
	KPROF_CORRELATION_POP();
	c->correlations++;
	KPROF_USER_CORRELATION_PUSH(2000 + i);
	KPROF_USER_CORRELATION_POP();
	c->user_correlations++;
	KPROF_RANGE_POP();
	KPROF_BACKEND_EVENT(begin, now_us(i % 2 ? CLOCK_MONOTONIC : CLOCK_REALTIME), 40 + i % 2,
			    "delegate", "a backend");
	c->backend_events++;
	KPROF_BACKEND_MEMORY(&steps, i % 2 ? -4096 : 4096, 8192, 16384, 0, -1);
	c->memory_events++;
}

struct work {
	struct counts counts;
	unsigned long wrong;
	int second;
};

static void *run(void *arg)
{
	struct work *w = (struct work *)arg;

	if (w->second)
		KPROF_THREAD_INFO("the second");
	for (int i = 0; i < steps; i++)
		one_step(i, &w->counts, &w->wrong);
	KPROF_STEP_END();
	return NULL;
}

static void once(void)
{
	char text[LONG_TEXT + 1];

	memset(text, 'x', LONG_TEXT);
	text[LONG_TEXT] = '\0';
	KPROF_MARK(text);
	KPROF_METADATA("model", "a \"model\"\n");
	KPROF_METADATA_JSON("config", "{\"layers\": [1, 2], \"big\": 12345678901234567890}");
	KPROF_METADATA_JSON("broken", "{\"layers\": [1, 2");
	KPROF_INVARIANT_VIOLATION("a > b", "a was 1", "profile 7", NULL);
	KPROF_MARK(NULL);
}

static void print(const char *name, unsigned long value)
{
	printf("\"%s\": %lu, ", name, value);
}

int main(int argc, char **argv)
{
	struct work works[2];
	char line[16];
	pthread_t thread;

	memset(works, 0, sizeof(works));
	works[1].second = 1;
	if (argc > 1)
		steps = atoi(argv[1]);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("READY %d\n", getpid());
	if (argc < 3 && !fgets(line, sizeof(line), stdin))
		return 9;
	if (pthread_create(&thread, NULL, run, &works[1]))
		return 1;
	run(&works[0]);
	pthread_join(thread, NULL);
	once();
	printf("{");
	print("steps", (unsigned long)steps);
	print("threads", 2);
	print("outer", works[0].counts.outer + works[1].counts.outer);
	print("inner", works[0].counts.inner + works[1].counts.inner);
	print("ticks", works[0].counts.ticks + works[1].counts.ticks);
	print("correlations", works[0].counts.correlations + works[1].counts.correlations);
	print("user_correlations",
	      works[0].counts.user_correlations + works[1].counts.user_correlations);
	print("backend_events", works[0].counts.backend_events + works[1].counts.backend_events);
	print("memory_events", works[0].counts.memory_events + works[1].counts.memory_events);
	print("evaluated", works[0].counts.evaluated + works[1].counts.evaluated);
	printf("\"wrong\": %lu}\n", works[0].wrong + works[1].wrong);
	if (argc < 3)
		return fgets(line, sizeof(line), stdin) ? 0
							: 0; /* until told, or nobody is there */
	return 0;
}
