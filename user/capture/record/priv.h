/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of the record emitter: window_counts.c is about metadata of recordings in parts. */
#ifndef KPROF_CAPTURE_RECORD_PRIV_H
#define KPROF_CAPTURE_RECORD_PRIV_H

struct cJSON;

/*
 * Numbers of this metadata that count from the recording's begin become those since the call before
 * with this key; *told keeps the sums. 0 or -ENOMEM.
 */
int window_counts(struct cJSON **told, const char *key, struct cJSON *value);

#endif
