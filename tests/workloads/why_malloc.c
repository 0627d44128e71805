// SPDX-License-Identifier: BSD-2-Clause
/*
 * The main thread allocates, and another one has the allocator's lock nearly all the time: it gives
 * a heap back that is full of holes (malloc_trim). Speaks the protocol of protocol.py; the JSON has
 * how long the main thread's allocations took in all.
 *
 * The lock is not fair: whoever frees it and takes it again at once has it before the thread that
 * was woken, for minutes on a busy machine. So the other thread pauses briefly between.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define HOLES 60000
#define HOLE_BYTES 12000
#define OWN_BYTES 50000
#define PAUSE_US 100

static void *holes[HOLES];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *trim(void *arg)
{
	pthread_setname_np(pthread_self(), "trimmer");
	for (;;) {
		malloc_trim(0);
		usleep(PAUSE_US);
	}
	return arg;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 3, began, in_malloc = 0;
	pthread_t other;
	char line[64];

	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	for (int i = 0; i < HOLES; i++)
		holes[i] = malloc(HOLE_BYTES);
	for (int i = 0; i < HOLES; i += 2)
		free(holes[i]);
	if (pthread_create(&other, NULL, trim, NULL))
		return 1;
	printf("READY %d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 9;
	began = now();
	while (now() < began + seconds) {
		double since = now();
		volatile char *own = malloc(OWN_BYTES);

		in_malloc += now() - since;
		own[0] = 1;
		free((void *)own);
	}
	printf("{\"pid\": %d, \"seconds\": %.3f, \"planted\": %.3f}\n", getpid(), now() - began,
	       in_malloc);
	fflush(stdout);
	return !fgets(line, sizeof(line), stdin) && ferror(stdin);
}
