/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which events a recording has, and what whoever records says of it: a part of kprof.h, which
 * includes it.
 */
#ifndef KPROF_OPTIONS_H
#define KPROF_OPTIONS_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct kprof_session;
struct kprof_session_opts;

/*
 * With .only, nothing else is recorded: no other functions are probed, nothing is loaded into any
 * process, and no option may ask for more. 0: all there is.
 */
enum kprof_only {
	KPROF_ONLY_NVTX = 1, /* NVIDIA's */
	KPROF_ONLY_ITT = 2,  /* Intel's: those of PyTorch (torch.profiler.itt) */
	KPROF_ONLY_MARK = 4, /* of kprof/mark.h */
};

/*
 * Fills in .types from torch.profiler's sets ("cpu,cuda") and single types ("kernel,gpu_memcpy")
 * together; both NULL: the default. -EINVAL: there is no such name, or nothing here records it.
 */
int kprof_session_opts_activities(struct kprof_session_opts *opts, const char *sets,
				  const char *types);
/* The i-th type of activity by name; NULL past the end. */
const char *kprof_activity_name(size_t i);

/* Fills in .only from names ("nvtx,itt,mark"). -EINVAL: there is no such name. */
int kprof_session_opts_only(struct kprof_session_opts *opts, const char *names);
/*
 * Whether kprof_session_new() would take these options, as far as they alone decide it: 0, or
 * -EINVAL with the cause.
 */
int kprof_session_opts_check(const struct kprof_session_opts *opts);

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
