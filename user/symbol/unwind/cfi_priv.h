/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by cfi.c, which finds descriptions, and cfi_run.c, which executes their instructions. */
#ifndef KPROF_SYMBOL_CFI_PRIV_H
#define KPROF_SYMBOL_CFI_PRIV_H

#include <stdbool.h>
#include <string.h>

#include "symbol/unwind/cfi.h"

#define CFI_DAMAGED (-10000) /* not an errno */

/* ---- bytes: reading past the end yields zeros and sets .bad ---- */

struct cfi_bytes {
	const uint8_t *at, *end;
	bool bad;
};

/* A little-endian number of 1 to 8 bytes. */
static inline uint64_t cfi_fixed(struct cfi_bytes *b, size_t bytes)
{
	uint64_t v = 0;

	if ((size_t)(b->end - b->at) < bytes) {
		b->bad = true;
		b->at = b->end;
		return 0;
	}
	memcpy(&v, b->at, bytes);
	b->at += bytes;
	return v;
}

static inline uint64_t cfi_uleb(struct cfi_bytes *b)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; b->at < b->end; shift += 7) {
		uint8_t byte = *b->at++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	b->bad = true;
	return 0;
}

static inline int64_t cfi_sleb(struct cfi_bytes *b)
{
	unsigned int shift = 0;
	uint64_t v = 0;

	while (b->at < b->end) {
		uint8_t byte = *b->at++;

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift < 64)
			v |= UINT64_MAX << shift;
		return (int64_t)v;
	}
	b->bad = true;
	return 0;
}

/* Takes the next `bytes` bytes as a sequence of their own. */
static inline struct cfi_bytes cfi_take(struct cfi_bytes *b, uint64_t bytes)
{
	struct cfi_bytes part = {.at = b->at, .end = b->at};

	if (bytes > (uint64_t)(b->end - b->at)) {
		b->bad = part.bad = true;
		b->at = part.at = part.end = b->end;
		return part;
	}
	b->at += bytes;
	part.end = b->at;
	return part;
}

static inline const char *cfi_string(struct cfi_bytes *b)
{
	const char *text = (const char *)b->at;
	const uint8_t *nul = memchr(b->at, 0, (size_t)(b->end - b->at));

	if (!nul) {
		b->bad = true;
		return "";
	}
	b->at = nul + 1;
	return text;
}

/* ---- state of the machine that executes call frame instructions ---- */

enum cfi_saved_how { CFI_SAME, CFI_OFFSET, CFI_EXPRESSION_BP, CFI_GONE };

struct cfi_saved {
	enum cfi_saved_how how;
	int64_t offset;
};

struct cfi_state {
	bool by_expression;
	uint64_t reg; /* the CFA is this register + .offset */
	int64_t offset;
	uint8_t expression_how; /* enum kprof_unwind_cfa */
	int64_t expression_offset, expression_add;
	struct cfi_saved bp, bx, ra;
};

struct cfi_cie {
	uint64_t code_align, return_register;
	int64_t data_align;
	uint8_t encoding;
	bool augmented, signal;
	struct cfi_bytes instructions;
	struct cfi_state initial;
};

/* Executes the CIE's initial instructions into .initial. 0 or CFI_DAMAGED. */
int cfi_run_initial(struct cfi_cie *cie, uint64_t *work);
/*
 * Executes a description's instructions and reports its rows. 0, CFI_DAMAGED, or what the callback
 * returned.
 */
int cfi_run(const struct cfi_cie *cie, struct cfi_bytes instructions, const struct cfi_range *range,
	    const struct cfi_ops *ops, struct cfi_stats *stats, uint64_t *work);

#endif
