/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What an agent hands over (kprof/agent.h), written into the capture: one object per target and
 * session.
 *
 * The bytes come from the memory of a process that is not trusted: whatever they say, nothing here
 * crashes or grows without bound, and what makes no sense is counted.
 */
#ifndef KPROF_CAPTURE_AGENT_RECORDS_H
#define KPROF_CAPTURE_AGENT_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "store/store.h"

struct agent_records;

struct agent_records_ops {
	void *ctx;
	/*
	 * The index in the capture of the thread that had this number, in the agent's namespace, at
	 * that time. -ESRCH: there is none; any other error ends the recording.
	 */
	int (*thread)(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index);
};

struct agent_records_count {
	uint64_t received;   /* records that could be read */
	uint64_t malformed;  /* batches (their rest) that could not */
	uint64_t unknown;    /* records of a kind that this kprof does not know */
	uint64_t unnamed;    /* records whose name was lost */
	uint64_t timeless;   /* activities and calls without times, or with times that cannot be */
	uint64_t outside;    /* activities and calls before or after the window */
	uint64_t threadless; /* calls of a thread that is not known */
	uint64_t externals;  /* correlation ids that another tool pushed */
};

int agent_records__new(struct store_writer *store, uint32_t pid,
		       const struct agent_records_ops *ops, struct agent_records **out);
void agent_records__free(struct agent_records *r);

/* Activities that end before start_ns, or begin after end_ns (0: no end yet), are not kept. */
void agent_records__window(struct agent_records *r, uint64_t start_ns, uint64_t end_ns);

/* Takes a batch. 0 or what the capture's writer said; malformed bytes are counted, not an error. */
int agent_records__batch(struct agent_records *r, const void *data, size_t bytes);
/* Takes just the names: of slots that a dead process left, of which any may come first. */
int agent_records__names(struct agent_records *r, const void *data, size_t bytes);
/* Writes what is known only at the end: how the device's clock ran. */
int agent_records__finish(struct agent_records *r);

const struct agent_records_count *agent_records__count(const struct agent_records *r);

#endif
