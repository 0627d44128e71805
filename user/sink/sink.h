/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output formats. Each is a file or a folder with this interface, and is found by the suffix of the
 * path.
 */
#ifndef KPROF_SINK_H
#define KPROF_SINK_H

#include "kprof.h"
#include "model/timeline/timeline.h"

struct sink_ops {
	const char *name;        /* "chrome" */
	const char *suffixes[3]; /* NULL-terminated; the longest that matches decides */
	bool samples;            /* it shows only samples: a capture without any is an error */
	bool blocks;             /* it also shows what is allocated (timeline__has_blocks()) */
	/* Writes all of t, or only process opts->pid, to path, which contains no %p. */
	int (*write)(struct kprof_capture *t, const char *path,
		     const struct kprof_export_opts *opts);
};

/*
 * The operations of the format with this name, or of this path. NULL with the error set, which
 * lists the formats.
 */
const struct sink_ops *sink_find(const char *path, const char *format);
extern const struct sink_ops sink_chrome, sink_kprof, sink_pickle, sink_otlp;
extern const struct sink_ops sink_flame, sink_folded, sink_speedscope, sink_pprof, sink_pftrace;

#endif
