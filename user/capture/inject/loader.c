// SPDX-License-Identifier: BSD-2-Clause
/*
 * Is any thread of the target loading a library just now? The dynamic linker holds a lock for as
 * long as that takes, including all constructors of the library. A constructor may wait for the
 * very thread that kprof would make load the agent: both would then wait for each other for ever.
 *
 * The lock is in ld.so's _rtld_global (glibc's own name, in .dynsym of all its releases;
 * elf/rtld.c), at a place that changes from release to release. It is recognized by its content: it
 * is the first of two recursive mutexes side by side (_dl_load_lock, _dl_load_write_lock). Where
 * nothing looks like that, no thread is refused.
 */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "capture/inject/priv.h"

#define GLOBAL_MAX_BYTES 16384
/*
 * A program that loads one library after the other leaves gaps, which would be missed with longer
 * naps.
 */
#define NAP_NS 20000

static bool is_recursive(const struct __pthread_mutex_s *m)
{
	return m->__kind == PTHREAD_MUTEX_RECURSIVE_NP && m->__lock >= 0 && m->__lock <= 2 &&
	       m->__count < 1000 && m->__owner >= 0 && !m->__spins && !m->__elision &&
	       !m->__list.__prev && !m->__list.__next;
}

/* The address of the first of the two mutexes; 0: not found. */
static uint64_t find_locks(const struct inject_target *t)
{
	uint8_t global[GLOBAL_MAX_BYTES];
	struct elffile_symbol s;
	struct __pthread_mutex_s m[2];

	if (elffile__symbol(t->ld.elf, "_rtld_global", &s) || s.size < sizeof(m) ||
	    s.size > sizeof(global) || process_read(t->pid, t->ld.base + s.vaddr, global, s.size))
		return 0;
	for (size_t at = 0; at + sizeof(m) <= s.size; at += 8) {
		memcpy(m, global + at, sizeof(m));
		if (is_recursive(&m[0]) && is_recursive(&m[1]))
			return t->ld.base + s.vaddr + at;
	}
	return 0;
}

static bool is_held(const struct inject_target *t, uint64_t locks)
{
	struct __pthread_mutex_s m[2];

	/* In a process with a single thread, glibc before 2.34 only sets .count. */
	return !process_read(t->pid, locks, m, sizeof(m)) &&
	       (m[0].__lock || m[0].__count || m[1].__lock || m[1].__count);
}

bool inject_loader_gets_free(const struct inject_target *t, unsigned int looks)
{
	const struct timespec nap = {0, NAP_NS};
	uint64_t locks = find_locks(t);

	for (unsigned int i = 0; locks && is_held(t, locks); i++) {
		if (i + 1 >= looks)
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}
