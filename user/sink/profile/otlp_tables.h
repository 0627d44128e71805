/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dictionary of an OTLP request: each distinct text, mapping, location and so on once, as
 * packed bytes, by which they are compared. The first element of each table is empty.
 */
#ifndef KPROF_SINK_PROFILE_OTLP_TABLES_H
#define KPROF_SINK_PROFILE_OTLP_TABLES_H

#include "model/timeline/timeline.h"
#include "sink/profile/otlp.pb-c.h"
#include "util/map64.h"

struct otlp_table {
	ProtobufCBinaryData *items;
	size_t nr, cap;
	uint64_t bytes;
	struct map64 by_hash; /* index + 1; equal hashes take the following keys */
};

/* The index of a message, or of bytes, in the table, to which they are added if need be. */
int otlp_table__add(struct otlp_table *t, const ProtobufCMessage *m, int32_t *index);
int otlp_table__add_bytes(struct otlp_table *t, const void *bytes, size_t nr, int32_t *index);
void otlp_table__free(struct otlp_table *t);

enum otlp_kind {
	OTLP_MAPPINGS,
	OTLP_LOCATIONS,
	OTLP_FUNCTIONS,
	OTLP_LINKS,
	OTLP_STRINGS,
	OTLP_ATTRIBUTES,
	OTLP_STACKS,
	OTLP_KINDS
};

struct otlp_tables {
	struct otlp_table of[OTLP_KINDS];
	struct map64 frames; /* index of the location, by frame id */
	int32_t path[KPROF_SAMPLE_MAX_FRAMES + 4];
	size_t nr_path;
};

/* Puts the empty elements in. */
int otlp_tables__init(struct otlp_tables *t);
void otlp_tables__free(struct otlp_tables *t);
int otlp_tables__string(struct otlp_tables *t, const char *text, int32_t *index);
int otlp_tables__attribute(struct otlp_tables *t, const char *key, const char *text, int64_t number,
			   int32_t *index);
/*
 * The index of a stack of the capture, innermost frame first: before it a frame that has only the
 * name `inner`, and behind it one named `outer`; NULL: none.
 */
int otlp_tables__stack(struct otlp_tables *t, const struct kprof_capture *c, uint32_t stack,
		       const char *inner, const char *outer, int32_t *index);

#endif
