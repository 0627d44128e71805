/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by python.c (interpreters and processes), eval.c (the interpreter's loop), layout.c
 * (offsets of fields) and others.
 */
#ifndef KPROF_SYMBOL_PYTHON_PRIV_H
#define KPROF_SYMBOL_PYTHON_PRIV_H

#include "symbol/python/python.h"

#define PYTHON_MAX_RANGES 512 /* 3.14 built with tail calls has one per instruction */

struct python_range {
	uint64_t start, end; /* vaddr */
	enum python_native kind;
};

struct python_elf {
	uint64_t runtime, code_type; /* vaddr */
	uint32_t version;
	struct python_range ranges[PYTHON_MAX_RANGES]; /* sorted */
	size_t nr_ranges;
};

/* Finds the code of the interpreter's loop and fills ranges[]. */
int python_eval_find(struct python_elf *p, const struct elffile *e);

/*
 * Reads a str object as malloc'ed UTF-8, cut after max_chars. -ESTALE: not a str; -EFAULT, -ENOMEM.
 */
int python_str__read(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		     size_t max_chars, char **out);

/* Finds the loops in these instructions. c->minor says how to read them. -ENOMEM. */
int python_code__find_loops(struct python_code *c, const uint8_t *code, uint32_t bytes);

/* The minor number in a PY_VERSION_HEX. */
static inline uint32_t python_minor(uint32_t version)
{
	return version >> 16 & 0xff;
}

/*
 * Takes the layout of a release from the table. False: the table lacks it, because the release
 * describes itself (3.13 and later) or is unknown.
 */
bool python_layout_table(uint32_t minor, struct kprof_python *out);

/* For releases that describe themselves: how many words of _Py_DebugOffsets are read, at most. */
#define PYTHON_DEBUG_WORDS 96
#define PYTHON_DEBUG_COOKIE "xdebugpy"
/*
 * Interprets the description of a minor release. False: the release is unknown, or the description
 * is implausible.
 */
bool python_layout_described(uint32_t minor, const uint64_t words[PYTHON_DEBUG_WORDS],
			     struct kprof_python *out);

#endif
