/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Offsets that differ between releases, learnt from the process's own libraries: from the code of a
 * small accessor function, or from CPython's version.
 */
#ifndef KPROF_CAPTURE_LAYOUT_H
#define KPROF_CAPTURE_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"
#include "symbol/elf/elf.h"

struct layout_env {
	struct elffile *const *files; /* ELF files of the process */
	const char *const *names;     /* their base names */
	size_t nr;
	struct layout_field { /* offsets that were looked for already, by symbol globs */
		const char *globs;
		int err;
		int32_t value;
	} fields[8];
	size_t nr_fields;
	uint32_t python_hex; /* PY_VERSION_HEX; 0: not looked for, 1: none found */
};

/*
 * Copies the row's recipes to *out and fills in the offsets. A recipe whose offset cannot be learnt
 * is switched off, and a sentence that says so is returned (static); else NULL.
 */
const char *layout_fill(struct layout_env *env, const struct catalog_row *row,
			struct kprof_wire_probe *out);

#endif
