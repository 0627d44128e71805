/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Helpers that use nothing of the process which hosts the agent: no stdio, no locale, no malloc,
 * and no lock that the process could hold.
 */
#ifndef KPROF_GPU_UTIL_H
#define KPROF_GPU_UTIL_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * The agent is built once and loaded into processes with older C libraries: symbols that glibc 2.34
 * moved into libc.so are linked by their old version, which newer releases have, too.
 */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
__asm__(".symver pthread_create, pthread_create@GLIBC_2.2.5\n"
	".symver pthread_attr_getstacksize, pthread_attr_getstacksize@GLIBC_2.2.5\n"
	".symver pthread_attr_setstacksize, pthread_attr_setstacksize@GLIBC_2.2.5\n"
	".symver pthread_key_create, pthread_key_create@GLIBC_2.2.5\n"
	".symver pthread_getspecific, pthread_getspecific@GLIBC_2.2.5\n"
	".symver pthread_setspecific, pthread_setspecific@GLIBC_2.2.5\n"
	".symver dlopen, dlopen@GLIBC_2.2.5\n"
	".symver dlclose, dlclose@GLIBC_2.2.5\n"
	".symver dlsym, dlsym@GLIBC_2.2.5\n");
#endif

/*
 * Every door by which the agent's code runs on a thread of the program begins and ends with these:
 * a thread that has been cancelled must not end inside the agent, where it may hold a lock, at a
 * call that the program does not know of.
 */
static inline int gpu_cancel_off(void)
{
	int before = PTHREAD_CANCEL_ENABLE;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void gpu_cancel_back(int before)
{
	pthread_setcancelstate(before, NULL);
}

/*
 * Waits while *word is `value`, for timeout_ms at most (negative: without limit). May return early.
 * shared: other processes may wake the thread.
 */
void gpu_futex_wait(const uint32_t *word, uint32_t value, int timeout_ms, bool shared);
void gpu_futex_wake(const uint32_t *word, bool shared);

/* All zero: free. Held for microseconds, never while foreign code runs. Keeps errno. */
struct gpu_lock {
	uint32_t state; /* 0: free, 1: held, 2: held and waited for */
};
void gpu_lock__slow(struct gpu_lock *l);

static inline void gpu_lock(struct gpu_lock *l)
{
	uint32_t is_free = 0;

	if (!__atomic_compare_exchange_n(&l->state, &is_free, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		gpu_lock__slow(l);
}

static inline void gpu_unlock(struct gpu_lock *l)
{
	if (__atomic_exchange_n(&l->state, 0, __ATOMIC_RELEASE) == 2)
		gpu_futex_wake(&l->state, false);
}

/* Returns false if the lock could not be taken within that time. */
bool gpu_trylock__slow(struct gpu_lock *l, unsigned int wait_ms);

static inline bool gpu_trylock(struct gpu_lock *l, unsigned int wait_ms)
{
	uint32_t is_free = 0;

	return __atomic_compare_exchange_n(&l->state, &is_free, 1, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED) ||
	       gpu_trylock__slow(l, wait_ms);
}

/* Allocates zeroed pages; NULL: no memory. */
void *gpu_pages(size_t bytes);
void gpu_pages_free(void *pages, size_t bytes);

/* Writes a number in decimal into text, which has room for 24 bytes; returns text. */
const char *gpu_number(char *text, uint64_t value);
/* Appends a string, cut to fit and always terminated. Returns the new length. */
size_t gpu_append(char *text, size_t room, size_t at, const char *more);

uint32_t gpu_tid(void);
/*
 * Starts a detached thread with all signals blocked: they are for the program's threads. Returns 0
 * or a negative errno.
 */
int gpu_thread(void *(*run)(void *arg), void *arg);

/* The processor's time stamp counter. 0: there is none that kprof knows. */
static inline uint64_t gpu_ticks(void)
{
#ifdef __x86_64__
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

static inline uint64_t gpu_clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

#endif
