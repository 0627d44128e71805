// SPDX-License-Identifier: BSD-2-Clause
/*
 * A malloc() of one's own, and a program that is inside it, with its lock held, most of the time. A
 * thread that is borrowed there waits for ever for the lock that it holds itself.
 *
 *   with -DOUTER   a library with malloc() and the like, which only jump to
 *   with -DINNER   a library, or a part of the same one, with a lock and the memory
 *   else           the program: inject_malloc MS. It is inside for 20 ms, then sleeps outside for
 *                  MS ms, again and again. Says READY and its pid; when its input ends, one line of
 *                  JSON: how often it was inside, and whether its signals are as they were.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SLOW_BYTES 77777u /* who asks for so much waits, with the lock held */

void *inner_malloc(size_t bytes);
void *inner_calloc(size_t nr, size_t bytes);
void *inner_realloc(void *old, size_t bytes);
void inner_free(void *old);

#ifdef OUTER
void *malloc(size_t bytes)
{
	return inner_malloc(bytes);
}

void *calloc(size_t nr, size_t bytes)
{
	return inner_calloc(nr, bytes);
}

void *realloc(void *old, size_t bytes)
{
	return inner_realloc(old, bytes);
}

void free(void *old)
{
	inner_free(old);
}
#endif

#ifdef INNER
#define ROOM_BYTES (256u << 20)
#define HEAD_BYTES 16u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char room[ROOM_BYTES] __attribute__((aligned(HEAD_BYTES)));
static size_t used;

/* Memory is never used twice. */
void *inner_malloc(size_t bytes)
{
	const struct timespec slow = {0, 20000000};
	size_t all = HEAD_BYTES + ((bytes + HEAD_BYTES - 1) & ~(size_t)(HEAD_BYTES - 1));
	char *at = NULL;

	pthread_mutex_lock(&lock);
	if (bytes == SLOW_BYTES) {
		nanosleep(&slow, NULL);
		all = HEAD_BYTES;
	}
	if (all <= ROOM_BYTES - used) {
		at = room + used + HEAD_BYTES;
		memcpy(at - HEAD_BYTES, &bytes, sizeof(bytes));
		used += all;
	}
	pthread_mutex_unlock(&lock);
	return at;
}

void *inner_calloc(size_t nr, size_t bytes)
{
	return inner_malloc(nr * bytes);
}

void *inner_realloc(void *old, size_t bytes)
{
	void *at = inner_malloc(bytes);
	size_t before = 0;

	if (old)
		memcpy(&before, (char *)old - HEAD_BYTES, sizeof(before));
	if (at && old)
		memcpy(at, old, before < bytes ? before : bytes);
	return at;
}

void inner_free(void *old)
{
	(void)old;
}
#endif

#if !defined(OUTER) && !defined(INNER)
int main(int argc, char **argv)
{
	long ms = argc > 1 ? strtol(argv[1], NULL, 10) : 0, rounds = 0;
	struct timespec outside = {ms / 1000, ms % 1000 * 1000000};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	while (poll(&input, 1, 0) == 0) {
		free(malloc(SLOW_BYTES));
		rounds++;
		nanosleep(&outside, NULL);
	}
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	printf("{\"rounds\": %ld, \"signals\": %s}\n", rounds,
	       memcmp(&before, &after, sizeof(uint64_t)) ? "false" : "true");
	return 0;
}
#endif
