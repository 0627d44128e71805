/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The unwind tables in the kernel (kprof/unwind.h, bpf/stacks.h): rules, pages, and the rows of
 * pages in shards. Tables come and go; the place of one that was dropped is used again only when no
 * walk can be reading it any more.
 */
#ifndef KPROF_CAPTURE_TABLES_H
#define KPROF_CAPTURE_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "kprof/unwind.h"
#include "symbol/unwind/unwind.h"

struct tables_maps { /* descriptors of the kernel's maps; not owned */
	int rules, pages, shards;
};

struct tables;
int tables__new(const struct tables_maps *maps, struct tables **out);
void tables__free(struct tables *t); /* NULL is fine */
/*
 * Copies a table and the rules that it uses, unless the kernel's memory for all tables would then
 * be more than max_bytes. *first_page is the number of its first page. jit: it is of JIT code, of
 * which there is a limit of its own, since a process can make as much of it as it likes. -ENOSPC:
 * there is no room; nothing was copied. -ENOMEM.
 */
int tables__place(struct tables *t, struct unwind_rules *rules, const struct unwind_table *table,
		  bool jit, uint64_t max_bytes, uint32_t *first_page);
/* No mapping that is handed to the kernel from now on refers to this table. */
void tables__drop(struct tables *t, uint32_t first_page);
/* No walk can reach any table that was dropped: their places may be used again. */
void tables__reuse(struct tables *t);
bool tables__has_dropped(const struct tables *t);
/* Memory that the kernel uses for them. */
uint64_t tables__bytes(const struct tables *t);

#endif
