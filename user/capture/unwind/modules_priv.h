/* SPDX-License-Identifier: BSD-2-Clause */
/* What modules.c (which there are) and modules_build.c (their tables) share. */
#ifndef KPROF_CAPTURE_MODULES_PRIV_H
#define KPROF_CAPTURE_MODULES_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <uthash.h>

#include "capture/unwind/modules.h"
#include "capture/process/process.h"

#define MODULES_MAX_THREADS 8
/*
 * Each is mapped here to the end: a program that loads what it compiles, for hours, must not take
 * all there is.
 */
#define MODULES_MAX_FILES 16384
#define MODULES_MAX_IMAGES \
	64 /* a process can write into its vDSO, and have another one each time */

struct module_key {
	uint64_t dev, inode;
};

struct module_entry {
	struct module module; /* first: entry_of() */
	UT_hash_handle hh;
	struct module_key key;
	void *image; /* of modules__of_image(); NULL: a file */
	size_t image_bytes;

	/* Under the lock; what the state publishes is written before it. */
	_Atomic(enum module_state) state;
	struct unwind_table *table;
	char *why;
	bool building, taken;
	bool again;      /* it could not be opened in the process that showed it: another may */
	uint32_t wanted; /* how often a walk missed it */
};

struct modules {
	struct unwind_rules *rules;
	struct unwind_cache cache;
	struct module_entry **all;
	size_t nr, cap;
	struct module_entry *by_file; /* the session's thread only */
	/* stands for all files beyond MODULES_MAX_FILES; NULL: none yet */
	struct module_entry *others;
	size_t nr_images;
	struct process_roots roots; /* the session's thread only */
	int fd;                     /* eventfd: something has left PENDING */
	uint64_t max_rows;
	unsigned int nr_threads;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* something to build, or something built, or the end */
	pthread_t threads[MODULES_MAX_THREADS];
	unsigned int nr_running; /* threads that were started */
	atomic_bool stop;
	size_t nr_pending; /* modules */
	uint64_t rows, build_ns;
};

static inline struct module_entry *entry_of(struct module *m)
{
	return (struct module_entry *)m;
}

static inline const struct module_entry *entry_of_const(const struct module *m)
{
	return (const struct module_entry *)m;
}

/* There may be something to build: wakes the builders, the first time starts them. */
void modules__start_threads(struct modules *ms);
void modules__stop_threads(struct modules *ms);

#endif
