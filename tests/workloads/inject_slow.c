// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: making a thread takes long, but only for the agent's injector. pthread_create()
 * calls calloc() for a new stack, and free() for one that it has kept. The thread that is borrowed
 * sleeps there once for INJECT_SLOW_MS milliseconds, without a lock. It is known by its signals,
 * which are all blocked, as are those of the one that it makes, which has a name, and of one that
 * ends, which is on its own stack.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define ONE_CALL_NS 20000000       /* what comes so soon belongs to the same pthread_create() */
#define OWN_STACK_BYTES (1u << 20) /* below pthread_self() */

/* glibc's own */
void *__libc_calloc(size_t nr, size_t bytes);
void __libc_free(void *at);

static long slow_ms;

__attribute__((constructor)) static void read_environment(void)
{
	const char *ms = getenv("INJECT_SLOW_MS");

	slow_ms = ms ? strtol(ms, NULL, 10) : 0;
}

static bool is_borrowed(void)
{
	char name[16] = "";
	sigset_t blocked;

	if (gettid() != getpid() && (uintptr_t)pthread_self() - (uintptr_t)name < OWN_STACK_BYTES)
		return false;
	return !sigprocmask(SIG_BLOCK, NULL, &blocked) && sigismember(&blocked, SIGTERM) &&
	       sigismember(&blocked, SIGUSR1) && !prctl(PR_GET_NAME, name) &&
	       strcmp(name, "kprof-load") != 0;
}

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* By ppoll(2): other waits overwrite what the kernel has kept of the interrupted call (stub.c). */
static void be_slow(void)
{
	static int64_t last_ns;
	int64_t until_ns = now_ns() + slow_ms * 1000000, left_ns;

	if (!slow_ms || !is_borrowed())
		return;
	while (now_ns() - last_ns > ONE_CALL_NS && (left_ns = until_ns - now_ns()) > 0) {
		struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};

		ppoll(NULL, 0, &left, NULL);
	}
	last_ns = now_ns();
}

void *calloc(size_t nr, size_t bytes)
{
	be_slow();
	return __libc_calloc(nr, bytes);
}

void free(void *at)
{
	be_slow();
	__libc_free(at);
}
