/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offsets that differ from release to release, learnt from the process's own libraries: from the
 * code of a small accessor, or from CPython's version.
 */
#ifndef KPROF_CAPTURE_LAYOUT_H
#define KPROF_CAPTURE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "symbol/elf/elf.h"

struct layout_env {
	struct elffile *const *files; /* of the process */
	const char *const *names;     /* their base names */
	size_t nr;
	struct layout_field { /* what was learnt already, by symbol globs */
		const char *globs;
		int err;
		int32_t value;
	} fields[8];
	size_t nr_fields;
	uint32_t python_hex; /* PY_VERSION_HEX; 0: not looked for, 1: none found */
};

/*
 * The row's recipes with the offsets filled in. A recipe whose offset cannot be learnt is switched
 * off; then a sentence about it is returned (static), else NULL.
 */
const char *layout_fill(struct layout_env *env, const struct catalog_row *row,
			struct kprof_wire_probe *out);
void layout_env_free(struct layout_env *env);

#endif
