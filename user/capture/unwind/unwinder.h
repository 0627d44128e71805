/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's copy of the data by which stacks are walked: the unwind tables of modules, and the
 * mappings of each process (kprof/unwind.h, bpf/stacks.h).
 *
 * The mappings of a process stay until they are replaced as a whole, or the process is removed.
 */
#ifndef KPROF_CAPTURE_UNWINDER_H
#define KPROF_CAPTURE_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/python.h"
#include "kprof/unwind.h"
#include "symbol/unwind/unwind.h"

struct unwinder_maps { /* file descriptors of bpf/stacks.h's maps; not owned */
	int rules, pages, shards, spaces, processes, pythons;
};

struct unwinder;
/* max_bytes: of the kernel's memory, for tables and mappings; 0: as much as the maps hold. */
int unwinder__new(const struct unwinder_maps *maps, uint64_t max_bytes, struct unwinder **out);
void unwinder__free(struct unwinder *u);
/*
 * Copies a table and the rules that it uses. *first_page is the number of its first page, for the
 * mappings of its file. jit: see tables__place(). -ENOSPC: the kernel's copy is full; nothing was
 * copied. -ENOMEM.
 */
int unwinder__place(struct unwinder *u, struct unwind_rules *rules, const struct unwind_table *t,
		    bool jit, uint32_t *first_page);
/*
 * Gives a table up. Its place is used again once no walk can reach it any more, which is after the
 * next unwinder__flush() that hands over mappings without it, or unwinder__reuse().
 */
void unwinder__drop(struct unwinder *u, uint32_t first_page);
/*
 * unwinder__flush(), and then makes the places of all dropped tables free. No mapping that was set
 * may refer to one. Waits for the kernel, some 10 ms.
 */
int unwinder__reuse(struct unwinder *u);
#define UNWINDER_NO_SPACE UINT32_MAX
/*
 * From the next unwinder__flush() on, the stacks of the process are walked by these mappings, which
 * are sorted by start. *space is the number of its address space, UNWINDER_NO_SPACE the first time.
 * If there are more mappings than fit, the last ones are left out.
 */
int unwinder__set(struct unwinder *u, uint32_t pid, uint32_t *space,
		  const struct kprof_unwind_mapping *mappings, size_t nr);
/*
 * Hands over all mappings that were set, at once: the kernel waits some 10 ms for its programs each
 * time (from 6.8 on; before 6.8, for each process).
 */
int unwinder__flush(struct unwinder *u);
/* Sets the interpreter of a process, so that its Python frames are recorded, too. */
int unwinder__set_python(struct unwinder *u, uint32_t pid, const struct kprof_python *python);
/* The process is gone: the number of its address space may be used again. */
void unwinder__remove(struct unwinder *u, uint32_t pid, uint32_t space);
/* Memory that the kernel uses for all of this, in bytes. */
uint64_t unwinder__bytes(const struct unwinder *u);

#endif
