/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables of code that was made at run time and keeps no frame pointer: oneDNN's kernels, and what else writes
 * instructions into memory. Nothing describes it and nothing says where its functions begin: memory that begins with
 * code is taken for a function, what comes behind that one for the next, so long as what the instructions do can be
 * followed to every end (code_flow.h: guessed). The first one that does not ends it: there may be no code any more.
 */
#ifndef KPROF_SYMBOL_UNWIND_MADE_H
#define KPROF_SYMBOL_UNWIND_MADE_H

#include "symbol/unwind/unwind.h"

struct unwind_made;
int unwind_made__new(struct unwind_rules *rules, struct unwind_made **out);
void unwind_made__free(struct unwind_made *m);
/*
 * Code that was allocated as one, at this address; pieces come in order of address. fn is told of each function
 * found, and may refuse with a negative number. 0, what fn returned, -ENOMEM, -E2BIG.
 */
int unwind_made__add(struct unwind_made *m, const uint8_t *code, size_t bytes, uint64_t address,
		     int (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx);
/*
 * The table of what was added since the last one, by address instead of vaddr. *out is NULL where no function was
 * found. -ENOMEM, -E2BIG.
 */
int unwind_made__table(struct unwind_made *m, struct unwind_table **out);

#endif
