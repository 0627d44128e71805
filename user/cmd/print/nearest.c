// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/print/nearest.h"

#include <string.h>

#define LONGEST 32 /* longer names are near to none */

static size_t least(size_t a, size_t b, size_t c)
{
	size_t ab = a < b ? a : b;

	return ab < c ? ab : c;
}

/* Number of insertions, deletions and replacements between the two (Levenshtein's distance). */
static size_t distance(const char *a, const char *b)
{
	size_t row[LONGEST + 1], len = strlen(b);

	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; a[i - 1]; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t above = row[j];

			row[j] =
				least(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
			diagonal = above;
		}
	}
	return row[len];
}

const char *nearest(const char *typed, const char *const *names, size_t nr)
{
	const char *best = NULL;
	size_t best_distance = 3; /* at this distance or more it is another word */

	if (strlen(typed) > LONGEST)
		return NULL;
	for (size_t i = 0; i < nr; i++) {
		size_t d = strlen(names[i]) <= LONGEST ? distance(typed, names[i]) : LONGEST;

		if (d < best_distance && d < strlen(names[i])) {
			best_distance = d;
			best = names[i];
		}
	}
	return best;
}
