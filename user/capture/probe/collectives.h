/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a build keeps what its collectives say (catalog/collective.h), learnt from its own code.
 * What could not be learnt is not read.
 */
#ifndef KPROF_CAPTURE_PROBE_COLLECTIVES_H
#define KPROF_CAPTURE_PROBE_COLLECTIVES_H

#include "capture/probe/layout.h"
#include "capture/probe/tensors.h"

struct collectives_layout {          /* all zero: nothing was looked for */
	bool looked;                 /* for all but sequence_off */
	struct tensor_layout tensor; /* sizes_off 0: not learnt; so the other offsets */
	int32_t rank_off;            /* of the rank in a backend; the group's size is behind it */
	int32_t name_off;            /* of the pointer to the group's name */
	/* of the number of collectives, in backends with this function */
	int32_t sequence_off;
	const char *sequence;
	/* of the pointer to a backend's options, of the list of ranks in these; 0: not learnt */
	int32_t options_off, ranks_off;
	/* of what options have; -1: not learnt */
	int32_t root_off[CATALOG_OPTIONS_NR], reduction_off[CATALOG_OPTIONS_NR];
};

/* Learns what the row needs. */
void collectives_learn(const struct catalog_framework *fw, const struct catalog_row *row,
		       const struct layout_env *env, struct collectives_layout *out);
/* Puts the offsets into the recipes of a probe; what is not known is not read. */
void collectives_fill(const struct collectives_layout *layout, const struct catalog_collective *of,
		      struct kprof_wire_probe *out);

/* One function's code each; -ENOENT: it looks otherwise. */

/* A constructor (this, int, int) that stores both numbers, the second right behind the first. */
int collectives_two_numbers(const uint8_t *code, size_t bytes, int32_t *off);
/* A function that does nothing but return a field of 8 bytes. */
int collectives_field(const uint8_t *code, size_t bytes, int32_t *off);
/* A function that returns the address of a field of an object whose address it has loaded. */
int collectives_field_inside(const uint8_t *code, size_t bytes, int32_t *off);
/*
 * A function whose arguments are, among others, a backend (rsi) and options (register number
 * `reg`): the one field of the options that it reads before its first call, to which it passes the
 * backend's size, at size_off, as the third argument.
 */
int collectives_root(const uint8_t *code, size_t bytes, unsigned int reg, int32_t size_off,
		     int32_t *off);
/*
 * A function that copies a reduction, a byte and 8 bytes that are 8 behind it, from one offset
 * only. reg: the register that the object is in; CODE_NR: it may be in any.
 */
int collectives_reduction(const uint8_t *code, size_t bytes, unsigned int reg, int32_t *off);
/*
 * A function (object) that loads a pointer from the object, compares both ends of a std::vector
 * there, and returns that vector's address.
 */
int collectives_list(const uint8_t *code, size_t bytes, int32_t *pointer_off, int32_t *off);

#endif
