/* SPDX-License-Identifier: BSD-2-Clause */
/* What whoever records says of a recording: a part of kprof.h, which includes it. */
#ifndef KPROF_METADATA_H
#define KPROF_METADATA_H

#ifdef __cplusplus
extern "C" {
#endif

struct kprof_session;

/*
 * Adds a key to the head of the traces that are made of the recording. json: one value, at most 64
 * KiB. The last value of a key counts. -EINVAL: it is not valid JSON, or traces have a key of that
 * name already. To be called before stop(). What the recorded programs say of themselves
 * (KPROF_METADATA of kprof/mark.h) is elsewhere in the trace, and replaces none of it.
 */
int kprof_session_add_metadata_json(struct kprof_session *s, const char *key, const char *json);
/* The same checks without a session. */
int kprof_metadata_check(const char *key, const char *json);

#ifdef __cplusplus
}
#endif

#endif
