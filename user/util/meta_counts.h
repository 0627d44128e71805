/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers in a capture's metadata that count what was met in its window: where a recording is in
 * several files, each has its part of them, and together they are the sum.
 */
#ifndef KPROF_UTIL_META_COUNTS_H
#define KPROF_UTIL_META_COUNTS_H

#include <stdbool.h>

struct cJSON;

/* Has metadata of this key such numbers? */
bool meta_counts(const char *key);
/* Leaves out of them what was there before. before may be NULL. */
void meta_counts__subtract(const char *key, struct cJSON *value, const struct cJSON *before);
/* Adds those of before. 0 or -ENOMEM. */
int meta_counts__add(const char *key, struct cJSON *value, const struct cJSON *before);

#endif
