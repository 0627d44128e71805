/* SPDX-License-Identifier: BSD-2-Clause */
/* Output formats: a file or a folder each, with one interface, found by the suffix of the path. */
#ifndef KPROF_SINK_H
#define KPROF_SINK_H

#include "kprof.h"
#include "model/timeline/timeline.h"

struct sink_ops {
	const char *name;            /* "chrome" */
	const char *const *suffixes; /* NULL-terminated; the longest that matches decides */
	bool samples;                /* it shows samples alone: a capture without any is an error */
	/* Writes the whole of t, or of process opts->pid of it, to path (never contains %p). */
	int (*write)(struct timeline *t, const char *path, const struct kprof_export_opts *opts);
};

/* The ops for this path or format name; NULL with the error set, listing what there is. */
const struct sink_ops *sink_find(const char *path, const char *format);
extern const struct sink_ops sink_chrome, sink_kprof;
extern const struct sink_ops sink_flame, sink_folded, sink_speedscope, sink_pprof, sink_pftrace;

#endif
