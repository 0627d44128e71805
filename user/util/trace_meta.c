// SPDX-License-Identifier: BSD-2-Clause
#include "util/trace_meta.h"

#include <stddef.h>
#include <string.h>

#include "util/utf8.h"
#include "util/util.h"

/*
 * Keys that kprof itself writes or, as those of Kineto's switches, would write; and those by which
 * viewers find events and stacks, so that a value of another shape would spoil the trace.
 */
static const char *const taken[] = {"schemaVersion",
				    "deviceProperties",
				    "distributedInfo",
				    "cupti_version",
				    "cuda_runtime_version",
				    "cuda_driver_version",
				    "host_name",
				    "trace_id",
				    "record_shapes",
				    "profile_memory",
				    "with_stack",
				    "with_flops",
				    "with_modules",
				    "displayTimeUnit",
				    "baseTimeNanoseconds",
				    "traceName",
				    "kprof",
				    "traceEvents",
				    "systemTraceEvents",
				    "stackFrames",
				    "samples",
				    "metadata"};

const char *trace_meta_key_problem(const char *key)
{
	size_t len = strlen(key);

	if (!len)
		return "it is empty";
	if (len > TRACE_META_KEY_MAX)
		return "it is longer than 128 bytes";
	for (size_t at = 0, n; at < len; at += n) {
		n = utf8_printable_len(key + at, len - at);
		if (!n)
			return "it has characters that can't be printed";
	}
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (!strcmp(taken[i], key))
			return "the trace has a key of its own with that name";
	return NULL;
}
