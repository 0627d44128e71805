/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What python.c (which interpreter), eval.c (its loop), layout.c (where things lie) and others
 * share.
 */
#ifndef KPROF_SYMBOL_PYTHON_PRIV_H
#define KPROF_SYMBOL_PYTHON_PRIV_H

#include "symbol/python/python.h"

#define PYTHON_MAX_RANGES 512 /* 3.14 built with tail calls has one an instruction */

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

/* Fills ranges[]. */
int python_eval_find(struct python_elf *p, const struct elffile *e);

/* A str object as UTF-8, malloc'ed; longer ones are cut. -ESTALE: it is none; -EFAULT, -ENOMEM. */
int python_str__read(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		     size_t max_chars, char **out);

/* PY_VERSION_HEX's minor number. */
static inline uint32_t python_minor(uint32_t version)
{
	return version >> 16 & 0xff;
}

/*
 * The layout of a release by table; false: it has none (it says itself from 3.13 on, or is not
 * known).
 */
bool python_layout_table(uint32_t minor, struct kprof_python *out);

/* Releases that describe themselves: words of _Py_DebugOffsets that are looked at, at most. */
#define PYTHON_DEBUG_WORDS 96
#define PYTHON_DEBUG_COOKIE "xdebugpy"
/* How the minor release's description reads; false: not known, or what it says is nonsense. */
bool python_layout_described(uint32_t minor, const uint64_t words[PYTHON_DEBUG_WORDS],
			     struct kprof_python *out);

#endif
