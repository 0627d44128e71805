/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a sink's bytes go: a file that appears whole (util/outfile.h), compressed on the way or not. */
#ifndef KPROF_SINK_STREAM_H
#define KPROF_SINK_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "kprof.h"
#include "sink/jsonw.h"
#include "util/outfile.h"

struct outfile_opts stream_owner(const struct kprof_export_opts *opts);

struct stream;
int stream__open(const char *path, const struct kprof_export_opts *opts, bool gzip,
		 struct stream **out);
int stream__write(void *stream, const void *data, size_t bytes); /* void *: fits jsonw__init() */
/* Frees the stream whatever comes back; on error the file does not appear. */
int stream__commit(struct stream *s);
void stream__discard(struct stream *s); /* NULL is fine */
/* A stream with a writer in front of it. On error there is nothing to close. */
int stream__start(const char *path, const struct kprof_export_opts *opts, bool gzip,
		  struct stream **out, struct jsonw *w);
/* Flushes and commits, or discards when err says that something failed before. Frees both; err or a new one. */
int stream__end(struct stream *s, struct jsonw *w, int err);

#endif
