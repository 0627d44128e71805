/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of a library's symbols a row of the catalog matches; used by plan.c. */
#ifndef KPROF_CAPTURE_PLAN_MATCH_H
#define KPROF_CAPTURE_PLAN_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "catalog/catalog.h"

/* One of a row's symbol globs, with the length of its literal start for a quick refusal. */
struct glob {
	char *text;
	size_t prefix; /* bytes before the first wildcard */
	bool literal;  /* the glob has no wildcard */
};

struct matcher {
	const struct catalog_row *row;
	struct glob *globs;
	size_t nr, cap;
	bool only_without; /* matches the row's only_without, not symbols to probe */
	uint32_t hits;
};

/* globs: separated by blanks. Returns 0 or -ENOMEM; matcher__free() is due in either case. */
int matcher__init(struct matcher *m, const struct catalog_row *row, const char *globs);
void matcher__free(struct matcher *m);
bool matcher__matches(const struct matcher *m, const char *symbol);

/*
 * A quick test, because half a million symbols meet some dozen globs. Two bitmaps over pairs of
 * characters of the globs' literal starts reject nearly all symbols.
 */
#define SIEVE_LEN 8
struct sieve {
	bool open;                         /* a glob is shorter than the sieve: everything passes */
	uint8_t first[8192], second[8192]; /* by the characters at 3 and 4; at 6 and 7 */
};

void sieve__add(struct sieve *v, const struct matcher *m);
/* False: none of the matchers that were added matches this symbol. */
bool sieve__passes(const struct sieve *v, const char *symbol);

#endif
