/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JIT code of one process: its functions, as far as their instructions can be
 * believed (symbol/unwind/jit.h), and their unwind tables, one for each executable mapping that
 * holds some.
 *
 * The process writes such code when it likes, and may put other code into the same place. So a
 * table says nothing about a walk until jit_code__holds() has found the bytes as they were when the
 * table was made.
 */
#ifndef KPROF_CAPTURE_JIT_CODE_H
#define KPROF_CAPTURE_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/unwind/unwind.h"

/* Of one process, at one reading; what exceeds it is not looked at. */
#define JIT_MAX_BYTES (8u << 20)
#define JIT_MAX_AREAS 1024
#define JIT_MAX_EXTENT (512u << 20) /* of one mapping; mostly pages never touched */

#define JIT_NOT_PLACED UINT32_MAX

struct jit_area {
	uint64_t start, end;        /* of the mapping */
	struct unwind_table *table; /* by address; NULL: no function was believed */
	/* Set by whoever hands tables to the kernel: unwinder__place_jit(). */
	uint32_t first_page;
	size_t first_function, nr_functions;
};

struct jit_code;
int jit_code__new(struct unwind_rules *rules, pid_t pid, struct jit_code **out);
void jit_code__free(struct jit_code *m);
/*
 * Reads the code in these mappings, sorted by start, anew; of pages that the process never touched
 * nothing is read, as that would touch them. 1: the areas are new ones, but for those whose code is
 * as it was; 0: nothing has changed; -errno: as before.
 */
struct jit_range {
	uint64_t start, end;
};
int jit_code__read(struct jit_code *m, const struct jit_range *ranges, size_t nr);
size_t jit_code__nr(const struct jit_code *m);
struct jit_area *jit_code__at(struct jit_code *m, size_t i);
/* NULL: none is of just this mapping. */
const struct jit_area *jit_code__area(const struct jit_code *m, uint64_t start, uint64_t end);
/* What was placed and is not needed any more: call until false. */
bool jit_code__take_dropped(struct jit_code *m, uint32_t *first_page);
/* The kernel walks by the areas as they are, from now on. */
void jit_code__published(struct jit_code *m, uint64_t now_ns);

/* Is the address in a function that is believed? */
bool jit_code__knows(const struct jit_code *m, uint64_t ip);
/*
 * Was it right to go on from this address by what the kernel had at that time (CLOCK_MONOTONIC)?
 * False: the code there is, or was then, another one than the table is of. Of functions with more
 * than 16 KiB the first 16 are compared. What it cannot see: other code that came and went again
 * between the walk and now, with the same bytes before and after.
 */
bool jit_code__holds(const struct jit_code *m, uint64_t ip, uint64_t time_ns);

#endif
