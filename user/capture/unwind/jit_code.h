/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JIT code of one process: its functions, as far as their instructions can be relied on
 * (symbol/unwind/jit.h), and their unwind tables, one for each executable mapping with such
 * functions.
 *
 * The process may write such code at any time, and may put other code into the same place. So a
 * walk by a table is valid only if jit_code__holds() finds the same bytes as when the table was
 * made.
 */
#ifndef KPROF_CAPTURE_JIT_CODE_H
#define KPROF_CAPTURE_JIT_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/unwind/unwind.h"

/* Bytes read of one process in one reading, at most; further code is not looked at. */
#define JIT_MAX_BYTES (8u << 20)
#define JIT_MAX_AREAS 1024
/* bytes of one mapping, at most; most of its pages were never touched */
#define JIT_MAX_EXTENT (512u << 20)

#define JIT_NOT_PLACED UINT32_MAX

struct jit_area {
	uint64_t start, end;        /* addresses of the mapping */
	struct unwind_table *table; /* NULL: no function can be relied on */
	/*
	 * Number of the table's first page in the kernel. Set by the caller of
	 * unwinder__place().
	 */
	uint32_t first_page;
	size_t first_function, nr_functions;
};

struct jit_code;
int jit_code__new(struct unwind_rules *rules, pid_t pid, struct jit_code **out);
void jit_code__free(struct jit_code *m);
/*
 * Reads the code in these mappings again, which are sorted by start. Pages that the process never
 * touched are not read, since reading would touch them. 1: areas are new, except those whose code
 * has not changed; 0: nothing has changed; a negative errno: all is as before.
 */
struct jit_range {
	uint64_t start, end;
};
int jit_code__read(struct jit_code *m, const struct jit_range *ranges, size_t nr);
size_t jit_code__nr(const struct jit_code *m);
struct jit_area *jit_code__at(struct jit_code *m, size_t i);
/* The area of exactly this mapping; NULL: there is none. */
const struct jit_area *jit_code__area(const struct jit_code *m, uint64_t start, uint64_t end);
/* Takes a place in the kernel that is not needed any more. To be called until it returns false. */
bool jit_code__take_dropped(struct jit_code *m, uint32_t *first_page);
/* From now on the kernel walks by the current areas. */
void jit_code__published(struct jit_code *m, uint64_t now_ns);

/* Is the address in a function that can be relied on? */
bool jit_code__knows(const struct jit_code *m, uint64_t ip);
/*
 * Was the step of a walk from this address right, with the tables that the kernel had at that time
 * (CLOCK_MONOTONIC)? False: the table is of other code than is, or was then, at the address. Only
 * the first 16 KiB of a function are compared. Not noticed: other code that was there for a time
 * between the walk and now, with the same bytes before and after.
 */
bool jit_code__holds(const struct jit_code *m, uint64_t ip, uint64_t time_ns);

#endif
