/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's copy of what stacks are walked with: unwind tables of modules, and each process's
 * mappings (kprof/unwind.h, bpf/stacks.h).
 *
 * What is handed over stays: a module's table until the end, a process's mappings until they are
 * replaced, as a whole, or the process is removed.
 */
#ifndef KPROF_CAPTURE_UNWINDER_H
#define KPROF_CAPTURE_UNWINDER_H

#include <stddef.h>
#include <stdint.h>

#include "kprof/python.h"
#include "kprof/unwind.h"
#include "symbol/unwind/unwind.h"

struct unwinder_maps { /* file descriptors of bpf/stacks.h's maps; not owned */
	int rules, pages, shards, spaces, processes, pythons;
};

struct unwinder;
int unwinder__new(const struct unwinder_maps *maps, struct unwinder **out);
void unwinder__free(struct unwinder *u);
/*
 * Copies a table and the rules that it uses. *first_page is where its pages begin, for the mappings
 * of its file. -ENOSPC: the kernel's copy is full; nothing was copied.
 */
int unwinder__place(struct unwinder *u, struct unwind_rules *rules, const struct unwind_table *t,
		    uint32_t *first_page);
/*
 * The same for JIT code, which comes and goes: what is dropped is used again once no
 * walk can come upon it any more, which is after the next unwinder__flush() that hands over
 * mappings without it. -ENOSPC, -ENOMEM.
 */
int unwinder__place_jit(struct unwinder *u, struct unwind_rules *rules,
			const struct unwind_table *t, uint32_t *first_page);
void unwinder__drop_jit(struct unwinder *u, uint32_t first_page);
#define UNWINDER_NO_SPACE UINT32_MAX
/*
 * The process's stacks are walked by these mappings, sorted by start, from the next
 * unwinder__flush() on. *space is its number, UNWINDER_NO_SPACE at the first time. Of more mappings
 * than there is room for the last are left out.
 */
int unwinder__set(struct unwinder *u, uint32_t pid, uint32_t *space,
		  const struct kprof_unwind_mapping *mappings, size_t nr);
/*
 * Hands over what was set: all at once, since the kernel waits some 10 ms for its programs each
 * time (from 6.8 on; before that for each process).
 */
int unwinder__flush(struct unwinder *u);
/* The process runs this interpreter: its Python frames are taken, too. NULL: not any more. */
int unwinder__set_python(struct unwinder *u, uint32_t pid, const struct kprof_python *python);
/* The process is gone: its number is used again. */
void unwinder__remove(struct unwinder *u, uint32_t pid, uint32_t space);
/* What the kernel holds for it all, in bytes. */
uint64_t unwinder__bytes(const struct unwinder *u);

#endif
