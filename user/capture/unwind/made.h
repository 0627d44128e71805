/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code that one process made at run time: its functions, as far as their instructions can be believed
 * (symbol/unwind/made.h), and their unwind tables, one for each executable mapping that holds some.
 *
 * The process writes such code when it likes, and may put other code into the same place. So a table says nothing about
 * a walk until made__holds() has found the bytes as they were when the table was made.
 */
#ifndef KPROF_CAPTURE_MADE_H
#define KPROF_CAPTURE_MADE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "symbol/unwind/unwind.h"

/* Of one process, at one reading; what lies behind is not looked at. */
#define MADE_MAX_BYTES (8u << 20)
#define MADE_MAX_AREAS 1024
#define MADE_MAX_EXTENT (512u << 20) /* of one mapping; mostly pages never touched */

#define MADE_NOT_PLACED UINT32_MAX

struct made_area {
	uint64_t start, end;        /* of the mapping */
	struct unwind_table *table; /* by address; NULL: no function was believed */
	/* Set by whoever hands tables to the kernel: unwinder__place_made(). */
	uint32_t first_page;
	size_t first_function, nr_functions;
};

struct made;
int made__new(struct unwind_rules *rules, pid_t pid, struct made **out);
void made__free(struct made *m);
/*
 * Reads the code in these mappings, sorted by start, anew; of pages that the process never touched nothing is read, as that
 * would touch them. 1: the areas are new ones, but for those whose code is as it was; 0: nothing has changed;
 * -errno: as before.
 */
struct made_range {
	uint64_t start, end;
};
int made__read(struct made *m, const struct made_range *ranges, size_t nr);
size_t made__nr(const struct made *m);
struct made_area *made__at(struct made *m, size_t i);
/* NULL: none is of just this mapping. */
const struct made_area *made__area(const struct made *m, uint64_t start, uint64_t end);
/* What was placed and is not needed any more: call until false. */
bool made__take_dropped(struct made *m, uint32_t *first_page);
/* The kernel walks by the areas as they are, from now on. */
void made__published(struct made *m, uint64_t now_ns);

/* Is the address in a function that is believed? */
bool made__knows(const struct made *m, uint64_t ip);
/*
 * Was it right to go on from this address by what the kernel had at that time (CLOCK_MONOTONIC)? False: the code there
 * is, or was then, another one than the table is of. Of functions with more than 16 KiB the first 16 are compared. What
 * it cannot see: other code that came and went again between the walk and now, with the same bytes before and after.
 */
bool made__holds(const struct made *m, uint64_t ip, uint64_t time_ns);

#endif
