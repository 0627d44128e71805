/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a build of MPI keeps what its handles stand for (catalog/message.h), learnt from its
 * library. What could not be learnt is not read.
 */
#ifndef KPROF_CAPTURE_PROBE_MESSAGES_H
#define KPROF_CAPTURE_PROBE_MESSAGES_H

#include "capture/probe/layout.h"

struct messages_layout {
	bool looked;
	bool objects;      /* handles are addresses of objects, as in Open MPI */
	int32_t name_off;  /* of a type's name */
	int32_t rank_off;  /* of the rank in a communicator; 0: not learnt */
	int32_t group_off; /* of the pointer to its group; 0: not learnt */
	int32_t size_off;  /* of the number of ranks in that */
};

/* Completes the recipes of a row with a message. */
void messages_fill(const struct layout_env *env, const struct catalog_row *row,
		   struct messages_layout *layout, struct kprof_wire_probe *out);

/* One function's code each; -ENOENT: it looks otherwise. */

/* A function (object, int *) that stores a field of the object, 4 bytes, there. */
int messages_number(const uint8_t *code, size_t bytes, int32_t *off);
/* … a field of another object, to which a field of the first one points. */
int messages_number_of(const uint8_t *code, size_t bytes, int32_t *pointer_off, int32_t *off);

#endif
