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

struct python_elf;

enum module_state {
	MODULE_PENDING, /* its table is to be built, or is being built */
	MODULE_READY,
	MODULE_WITHOUT, /* it has no table; module__why() says why */
	/* its table was given up, and is built again when a walk needs it */
	MODULE_PARKED,
};

#define MODULE_NOT_PLACED UINT32_MAX

struct module {
	uint32_t number; /* counts from 0 without gaps */
	/* its path, as the first process that was seen with it sees it; or "[vdso]" */
	const char *path;
	const char *build_id;
	/* root directory of that process (process_roots__of()); "": the same as kprof's */
	const char *root;
	/*
	 * NULL: it could not be opened, or is no ELF file. Shared with the thread that builds the
	 * table: reading segments, sections and symbols of it from one other thread is safe.
	 */
	struct elffile *elf;
	/* there is no table since the file describes no frames: frame pointers may work */
	bool pointers;
	bool vdso;
	uint64_t bytes; /* size of .eh_frame, which tells how much work the table is */
	/* Of its table, once the module is READY. Still valid when the table was dropped. */
	uint32_t nr_pages, nr_rows;
	uint32_t table_page; /* vaddr >> KPROF_UNWIND_PAGE_BITS of the table's first page */
	/*
	 * Number of the table's first page in the kernel. Set by the caller of unwinder__place(),
	 * and read by address_space__settle() only.
	 */
	uint32_t first_page;
	uint64_t named_ns; /* when names of its functions were looked up last; sample/names.c */
	uint64_t used_ns;  /* when a stack last led through it; set by sample/event.c */
	/* Its id in the capture; 0: not written yet. Set by sample/frames.c. */
	uint32_t capture_id;
	/* The interpreter in it; NULL: none. Set by sample/python.c, which looks once. */
	struct python_elf *python;
	bool python_looked;
	uint8_t runtime; /* what code in it is run by; 0: not looked. Set by sample/runtimes.c */
};

struct modules_opts {
	/* threads that build tables; 0: none, only modules__build() builds */
	unsigned int nr_threads;
	/* of those that no walk has needed, the first one is built first, not the biggest */
	bool in_order;
	/*
	 * The threads hold to modules__set_pace(), which is then told at least once a second; until
	 * then to .pace_ns. 0: they build as fast as they can.
	 */
	uint64_t pace_ns;
	uint64_t max_rows; /* rows of all tables together, at most; 0: MODULES_MAX_ROWS */
	/* directory of the cache of tables (util/disk_cache.h); NULL: the usual one */
	const char *cache_dir;
};
#define MODULES_MAX_ROWS (64u << 20) /* 256 MiB; a process with PyTorch has 5 million rows */

struct modules;
int modules__new(const struct modules_opts *opts, struct modules **out);
/* Frees all modules. Tables that are being built are abandoned. */
void modules__free(struct modules *ms);
/*
 * Stops building: tables that are being built are abandoned, and no other thread reads the files
 * any more.
 */
void modules__stop(struct modules *ms);
/* The number of CPUs that kprof may run on, 8 at most. */
unsigned int modules__usual_threads(void);
struct unwind_rules *modules__rules(struct modules *ms);

/*
 * The module of an executable mapping's file. A file without a usable table is no failure: its
 * module is MODULE_WITHOUT, and says why. The only error is -ENOMEM. A file that was gone before it
 * could be opened is tried again at each call. Files beyond the bound share one module, "[other
 * files]", which is WITHOUT.
 */
int modules__of_map(struct modules *ms, pid_t pid, const struct proc_map *map, struct module **out);
/* The module of a file that was met before, by its numbers; NULL: it was not, or has none. */
struct module *modules__known(const struct modules *ms, dev_t dev, uint64_t inode);
/*
 * The module of an ELF image that is only in memory; the same module for the same bytes. -ENOSPC:
 * there are too many.
 */
int modules__of_image(struct modules *ms, const char *name, const void *image, size_t bytes,
		      struct module **out);
size_t modules__nr(const struct modules *ms);
struct module *modules__at(const struct modules *ms, size_t number);

enum module_state module__state(const struct module *m);
/* The module's table; NULL unless the module is READY and the table was not dropped. */
const struct unwind_table *module__table(const struct module *m);
/* Why the module is WITHOUT, as the end of a sentence ("… has no unwind table: WHY"). */
const char *module__why(const struct module *m);
/* The number of files that could not be opened in any of their processes; *first: the first one. */
size_t modules__nr_unread(const struct modules *ms, const struct module **first);

/*
 * A walk ended because this table is not built yet: it is built before those that no walk has
 * needed. If it is parked, it is built again, unless it was parked just before.
 */
void modules__want(struct modules *ms, struct module *m);
/*
 * A file descriptor that is readable when a module has left PENDING since the last modules__take().
 */
int modules__fd(const struct modules *ms);
/*
 * The next module that has left PENDING and was not taken yet; NULL: none. With the last one, the
 * descriptor of modules__fd() stops being readable.
 */
struct module *modules__take(struct modules *ms);
/* What the threads have used at a pace so far, in ns of CPU time. */
uint64_t modules__paced_ns(const struct modules *ms);
/* How much CPU time each thread may use in a second, in ns; without .pace_ns, nothing changes. */
void modules__set_pace(struct modules *ms, uint64_t ns_a_second);
/*
 * While held, no table is begun. Then, whether no other thread reads the module's file, nor will
 * until it is released.
 */
void modules__hold(struct modules *ms);
void modules__release(struct modules *ms);
bool modules__may_read(struct modules *ms, const struct module *m);
bool modules__all_done(struct modules *ms);
/*
 * Makes sure that the table is built: builds it in this thread, or waits for the thread that does.
 */
void modules__build(struct modules *ms, struct module *m);
/*
 * Frees the table, once the kernel has it and it is not needed here any more. Its rows no longer
 * count.
 */
void modules__drop_table(struct modules *ms, struct module *m);
/* The kernel has no room for the module's table, or gives it up for that of another. */
void modules__park(struct modules *ms, struct module *m);
/* Did a walk end because this table is not built? */
bool modules__wanted(struct modules *ms, const struct module *m);
/* ns spent on building, for statistics. */
uint64_t modules__build_ns(struct modules *ms);
/* The number of tables that were read from the cache instead of built. */
size_t modules__nr_cached(struct modules *ms);

#endif
