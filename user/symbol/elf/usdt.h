/* SPDX-License-Identifier: BSD-2-Clause */
/* The static probes (USDT) that an ELF file lists in its section .note.stapsdt. */
#ifndef KPROF_SYMBOL_USDT_H
#define KPROF_SYMBOL_USDT_H

#include "symbol/elf/elffile.h"

struct usdt_probe {
	const char *provider, *name, *args; /* valid as long as the file is open */
	uint64_t offset;                    /* in the file: where the probe goes */
	uint64_t semaphore;                 /* in the file: the counter of who watches; 0: none */
};

/*
 * Every well-formed one whose place lies in executable code. fn: non-zero stops, and is returned. Malformed notes end
 * the list.
 */
int usdt_probes(const struct elffile *e, int (*fn)(void *ctx, const struct usdt_probe *p),
		void *ctx);

/*
 * False: the file at this path has none for certain. Reads its section headers and their names, which takes a tenth of
 * opening it; true in doubt.
 */
bool usdt_may_be_in(const char *path);

#endif
