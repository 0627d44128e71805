/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_MERGE_IMPL_H
#define KPROF_MERGE_IMPL_H

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/types.h>

#include "kprof/merge.h"
#include "merge/clocks.h"
#include "model/timeline/timeline.h"
#include "sink/kprof/copy.h"
#include "util/bulk.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/order.h"
#include "util/util.h"

/* From one machine's PIDs to the next one's: above Linux's (2^22), whose digits remain visible. */
#define MERGE_PID_STEP 10000000u

struct merge_capture {
	struct merge *merge;
	const char *path;
	/* What it says of itself; "": nothing. */
	char *host, *boot;
	cJSON *metadata; /* an object: all of it, by key, as raw JSON */
	uint64_t start_ns, end_ns, start_real_ns, end_real_ns;
	uint64_t bytes;
	bool complete;
	size_t machine;
	struct vec pids; /* uint32_t, ascending */
	/* While it is copied: */
	struct kprof_copy *copy;
	uint64_t next_ns; /* when the next begin or end is */
	uint64_t read_bytes;
	struct vec sources; /* struct store_record, by index in it: the latest */
	struct vec counts;  /* struct kprof_source: of one that was cut short */
};

struct edge;

struct merge_machine {
	struct kprof_merge_machine told;
	struct clock_line line;    /* from its clock to the merged one */
	size_t first;              /* capture */
	uint64_t start_ns, end_ns; /* its captures, from the first to the last moment */
	const struct edge *edge; /* over which it was placed, while clocks are fitted; NULL: none */
	bool placed;             /* the line is known */
};

/* What a rank did for a collective. */
struct meeting {
	uint64_t number, begin_ns, end_ns; /* 0: not known */
	uint32_t group, name;              /* numbers of texts */
	uint32_t size, rank, machine;
};

struct merge {
	const struct kprof_merge_opts *opts;
	struct merge_capture *captures;
	struct merge_machine *machines;
	size_t nr, nr_machines;
	size_t reference;  /* the machine whose clock it has */
	struct bulk parts; /* struct meeting */
	struct text *texts;
	uint32_t nr_texts;
	uint64_t start_ns, end_ns; /* of all, on the merged clock */
	uint64_t bytes;            /* of all files */
	/* While it is written: */
	struct store_writer *out;
	bool second_part; /* the details have been copied, and events are */
	struct kprof_copy_numbers numbers;
	struct vec sources; /* struct store_record: with the sums, by index in the merged one */
	struct map64 source_by_name; /* index + 1 */
};

static inline int merge_no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory to merge the captures");
}

static inline int merge_compare_pids(const void *a, const void *b)
{
	return order_u64(*(const uint32_t *)a, *(const uint32_t *)b);
}

static inline bool merge_has_pid(const struct merge_capture *c, uint32_t pid)
{
	return c->pids.nr &&
	       bsearch(&pid, c->pids.data, c->pids.nr, sizeof(pid), merge_compare_pids) != NULL;
}

/* What the captures say of themselves, and which are of one machine. */
int merge_read(struct merge *m, const char *const *paths, size_t nr);

/* Notes what the capture's ranks did for collectives. */
int merge_meet(struct merge *m, struct merge_capture *c, struct kprof_capture *t);
/* Finds each machine's line to the merged clock. */
int merge_fit(struct merge *m);
void merge_free_texts(struct merge *m);

/* Puts the metadata. */
int merge_put_metadata(struct merge *m);
int merge_write(struct merge *m);

#endif
