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
#include <string.h>
#include <time.h>

#include "capture/inject/priv.h"

#define GLOBAL_MAX_BYTES 16384
/*
 * A program that loads one library after the other leaves gaps, which would be missed with longer
 * naps.
 */
#define NAP_NS 20000
#define MUTEX_RECURSIVE 1 /* PTHREAD_MUTEX_RECURSIVE_NP */

struct mutex { /* pthread_mutex_t on x86-64: sysdeps/nptl/bits/struct_mutex.h */
	int32_t lock;
	uint32_t count;
	int32_t owner;
	uint32_t users;
	int32_t kind;
	int32_t spins;
	uint64_t list[2];
};

_Static_assert(sizeof(struct mutex) == 40, "pthread_mutex_t");

static bool is_recursive(const struct mutex *m)
{
	return m->kind == MUTEX_RECURSIVE && m->lock >= 0 && m->lock <= 2 && m->count < 1000 &&
	       m->owner >= 0 && !m->spins && !m->list[0] && !m->list[1];
}

/* The address of the first of the two mutexes; 0: not found. */
static uint64_t find_locks(const struct inject_target *t)
{
	uint8_t global[GLOBAL_MAX_BYTES];
	struct elffile_symbol s;
	struct mutex m[2];

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
	struct mutex m[2];

	/* In a process with a single thread, glibc before 2.34 only sets .count. */
	return !process_read(t->pid, locks, m, sizeof(m)) &&
	       (m[0].lock || m[0].count || m[1].lock || m[1].count);
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
