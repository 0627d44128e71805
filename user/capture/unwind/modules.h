/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ELF files that targets execute from, each once for all processes of a session, and their
 * unwind tables, which are built in the background: the file that is needed most urgently first,
 * then the biggest.
 *
 * One thread (the session's) calls everything here; only the building happens elsewhere. A module
 * stays where it is until modules__free().
 */
#ifndef KPROF_CAPTURE_MODULES_H
#define KPROF_CAPTURE_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "capture/process/process.h"
#include "symbol/elf/elf.h"
#include "symbol/unwind/unwind.h"

enum module_state {
	MODULE_PENDING, /* its table waits to be built, or is being built */
	MODULE_READY,
	MODULE_WITHOUT, /* there is no table: module__why() */
};

#define MODULE_NOT_PLACED UINT32_MAX

struct module {
	uint32_t number; /* dense, from 0 */
	dev_t dev;       /* 0, and inode 0: no file (the vDSO) */
	uint64_t inode;
	const char *path; /* as the first process that was seen with it sees it; "[vdso]" */
	const char *build_id;
	const char *root; /* its root directory: process_roots__of(); "" is ours */
	/*
	 * NULL: it could not be opened, or is no ELF file. Shared with the thread that builds the
	 * table: reading segments, sections and symbols of it from one other thread is safe.
	 */
	struct elffile *elf;
	bool pointers; /* no table because nothing is described: frame pointers are worth a try */
	bool vdso;
	uint64_t bytes; /* of .eh_frame: how much work its table is */
	/* Of its table, once it is READY, and still when the table was dropped. */
	uint32_t nr_pages;
	uint32_t table_page; /* vaddr >> KPROF_UNWIND_PAGE_BITS of its first one */
	/*
	 * Set by whoever hands tables to the kernel: the number of its first page there. Only
	 * address_space__settle() looks at it.
	 */
	uint32_t first_page;
};

struct modules_opts {
	unsigned int nr_threads; /* that build; 0: none, only modules__build() builds */
	uint64_t max_rows;       /* of all tables together; 0: MODULES_MAX_ROWS */
	const char *cache_dir; /* where tables are kept: util/disk_cache.h. NULL: the usual place */
};
#define MODULES_MAX_ROWS (64u << 20) /* 256 MiB; a torch process has 5 M */

struct modules;
int modules__new(const struct modules_opts *opts, struct modules **out);
/* Builds that are under way are given up. */
void modules__free(struct modules *ms);
/*
 * No more are built: what is being built is given up, and no other thread reads the files any more.
 */
void modules__stop(struct modules *ms);
/* As many threads as there are CPUs to run on, 8 at most. */
unsigned int modules__usual_threads(void);
struct unwind_rules *modules__rules(struct modules *ms);

/*
 * The file of an executable mapping. Never fails for what the file is (then it is MODULE_WITHOUT,
 * and says why); -ENOMEM, error set. One that was gone before it could be opened is tried again
 * each time. Of very many files the last share one module, "[other files]", that is WITHOUT.
 */
int modules__of_map(struct modules *ms, pid_t pid, const struct proc_map *map, struct module **out);
/*
 * An ELF image that lies in memory and in no file; the same for the same bytes. -ENOSPC: there are
 * too many.
 */
int modules__of_image(struct modules *ms, const char *name, const void *image, size_t bytes,
		      struct module **out);
size_t modules__nr(const struct modules *ms);
struct module *modules__at(const struct modules *ms, size_t number);

enum module_state module__state(const struct module *m);
/* NULL unless it is READY and was not dropped. */
const struct unwind_table *module__table(const struct module *m);
/* Why it is WITHOUT, as the end of a sentence ("… has no unwind table: WHY"). */
const char *module__why(const struct module *m);
/* Files that could not be opened, in any of their processes; *first: the first one. */
size_t modules__nr_unread(const struct modules *ms, const struct module **first);

/* A walk ended for want of this table: it is built before those that no walk has missed. */
void modules__want(struct modules *ms, struct module *m);
/* Readable when a module has left PENDING since the last modules__take(). */
int modules__fd(const struct modules *ms);
/*
 * The next module that has left PENDING and was not taken yet; NULL: none. Empties the fd with the
 * last one.
 */
struct module *modules__take(struct modules *ms);
bool modules__all_done(struct modules *ms);
/* Has the table built by now: builds it in this thread, or waits for the thread that does. */
void modules__build(struct modules *ms, struct module *m);
/*
 * After this the kernel has the table, and here it is not needed any more. Its rows count no
 * longer.
 */
void modules__drop_table(struct modules *ms, struct module *m);
/* Rows held, and time spent on building, for what is said about it. */
uint64_t modules__rows(struct modules *ms);
uint64_t modules__build_ns(struct modules *ms);
/* Tables that were not built but read. */
size_t modules__nr_cached(struct modules *ms);

#endif
