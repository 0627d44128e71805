/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by modules.c (the list of modules) and modules_build.c (their tables). */
#ifndef KPROF_CAPTURE_MODULES_PRIV_H
#define KPROF_CAPTURE_MODULES_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <uthash.h>

#include "capture/unwind/modules.h"
#include "capture/process/process.h"
#include "util/pace.h"

#define MODULES_MAX_THREADS 8
/*
 * Each file stays mapped in kprof until the end: a program that compiles and loads libraries for
 * hours must not use up kprof's address space.
 */
#define MODULES_MAX_FILES 16384
#define MODULES_MAX_IMAGES \
	64 /* images at most: a process can write into its vDSO, and so have a new one each time */

struct module_key {
	uint64_t dev, inode;
};

struct module_entry {
	struct module module; /* first: entry_of() */
	UT_hash_handle hh;
	struct module_key key;
	void *image; /* the image given to modules__of_image(); NULL: the module is of a file */
	size_t image_bytes;

	/* Written under the lock, after the fields that the new state makes valid. */
	_Atomic(enum module_state) state;
	struct unwind_table *table;
	char *why;
	bool building, taken;
	/* it could not be opened in the processes seen so far; it may be in another */
	bool again;
	uint32_t wanted; /* how many walks needed its table */
	uint64_t parked_ns;
};

struct modules {
	struct unwind_rules *rules;
	struct unwind_cache cache;
	struct module_entry **all;
	size_t nr, cap;
	struct module_entry *by_file; /* used by the session's thread only */
	/* the common module of all files beyond MODULES_MAX_FILES; NULL: none yet */
	struct module_entry *others;
	size_t nr_images;
	struct process_roots roots; /* used by the session's thread only */
	int fd;                     /* eventfd: something has left PENDING */
	bool in_order;
	uint64_t max_rows;
	unsigned int nr_threads;

	pthread_mutex_t lock;
	/* signalled when there is a table to build, a table was built, or building ends */
	pthread_cond_t changed;
	pthread_t threads[MODULES_MAX_THREADS];
	unsigned int nr_running; /* threads that are running */
	bool held;               /* no table is begun */
	atomic_bool stop;
	struct pace pace;
	size_t nr_pending; /* modules */
	uint64_t rows, build_ns;
};

static inline struct module_entry *entry_of(const struct module *m)
{
	return (struct module_entry *)m;
}

/* There may be a table to build: wakes the threads that build, and starts them the first time. */
void modules__start_threads(struct modules *ms);

#endif
