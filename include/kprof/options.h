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
 * Which calls a framework tells its observers of: at::RecordScope of PyTorch, whose numbers these
 * are. In .observe as bits 1 << scope.
 */
enum kprof_scope {
	KPROF_SCOPE_FUNCTION = 0, /* operators, and nodes of the backward pass */
	KPROF_SCOPE_BACKWARD_FUNCTION = 1,
	KPROF_SCOPE_TORCHSCRIPT_FUNCTION = 2,
	KPROF_SCOPE_KERNEL_FUNCTION_DTYPE = 3,
	KPROF_SCOPE_CUSTOM_CLASS = 4,
	KPROF_SCOPE_BUILD_FEATURE = 5,
	KPROF_SCOPE_LITE_INTERPRETER = 6,
	KPROF_SCOPE_USER_SCOPE = 7, /* annotations, also those of C++ */
	KPROF_SCOPE_STATIC_RUNTIME_OP = 8,
	KPROF_SCOPE_STATIC_RUNTIME_MODEL = 9,
	KPROF_SCOPES = 10,
};

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

/*
 * Fills in .observe from names, in any case: "FUNCTION,USER_SCOPE". NULL: all scopes. -EINVAL: there
 * is no such name.
 */
int kprof_session_opts_scopes(struct kprof_session_opts *opts, const char *names);
/* The i-th scope's name; NULL past the end. */
const char *kprof_scope_name(size_t i);
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
