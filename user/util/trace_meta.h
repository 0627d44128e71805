/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metadata that whoever records gives a trace, to be written at the top of it. The recording keeps
 * each key in the capture behind a prefix; what writes traces takes the prefix off.
 */
#ifndef KPROF_UTIL_TRACE_META_H
#define KPROF_UTIL_TRACE_META_H

#define TRACE_META_PREFIX "trace."
#define TRACE_META_KEY_MAX 128    /* bytes */
#define TRACE_META_JSON_MAX 65536 /* bytes */

/* Why this can't be a key at the top of a trace, as the end of a sentence; NULL: it can. */
const char *trace_meta_key_problem(const char *key);

#endif
