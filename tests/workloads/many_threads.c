// SPDX-License-Identifier: BSD-2-Clause
/*
 * many_threads N MS: N threads, each of which uses MS milliseconds of CPU time in pieces, now and
 * then, and lives until the end. The program says how many there were, and how much CPU time they
 * took by their own clocks.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define PIECES 2
#define RUNNING 4 /* at a time; the others sleep */

static pthread_barrier_t go, done, end;
static sem_t running;
static uint64_t piece_ns, sum_ns;

static uint64_t used_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void *run(void *none)
{
	uint64_t begin_ns;

	pthread_barrier_wait(&go);
	begin_ns = used_ns();
	for (int i = 0; i < PIECES; i++) {
		uint64_t from_ns;

		while (sem_wait(&running)) {
		}
		from_ns = used_ns();
		while (used_ns() - from_ns < piece_ns) {
		}
		sem_post(&running);
	}
	__atomic_fetch_add(&sum_ns, used_ns() - begin_ns, __ATOMIC_RELAXED);
	pthread_barrier_wait(&done);
	pthread_barrier_wait(&end);
	return none;
}

int main(int argc, char **argv)
{
	unsigned int nr = argc > 2 ? (unsigned int)atoi(argv[1]) : 0;
	pthread_attr_t small;
	pthread_t thread;

	piece_ns = argc > 2 ? (uint64_t)atoi(argv[2]) * 1000000u / PIECES : 0;
	sem_init(&running, 0, RUNNING);
	pthread_barrier_init(&go, NULL, nr + 1);
	pthread_barrier_init(&done, NULL, nr + 1);
	pthread_barrier_init(&end, NULL, nr + 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	for (unsigned int i = 0; i < nr; i++) {
		if (pthread_create(&thread, &small, run, NULL)) {
			fprintf(stderr, "only %u threads\n", i);
			return 1;
		}
	}
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 9;
	pthread_barrier_wait(&go);
	pthread_barrier_wait(&done);
	printf("{\"threads\": %u, \"cpu_ns\": %llu}\n", nr, (unsigned long long)sum_ns);
	fflush(stdout);
	while (getchar() != EOF) {
	}
	return 0;
}
