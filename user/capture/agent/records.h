/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the records of an agent (kprof/agent.h) into the capture. There is one object per target
 * and session.
 *
 * The bytes come from a process that is not trusted: whatever they hold, nothing here crashes or
 * grows without bound, and records that make no sense are counted.
 */
#ifndef KPROF_CAPTURE_AGENT_RECORDS_H
#define KPROF_CAPTURE_AGENT_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#include "capture/agent/ticks.h"
#include "store/store.h"

struct agent_records;

/* A begin or an end of an operator, as the agent observed it. */
struct agent_span {
	uint64_t time_ns;
	enum agent_span_kind {
		AGENT_SPAN_BEGIN,
		AGENT_SPAN_END,
		AGENT_SPAN_CLOSED, /* the innermost has ended before, unseen */
	} kind;
	uint32_t scope;   /* BEGIN: enum kprof_scope */
	uint32_t name;    /* BEGIN: string id */
	const char *text; /* BEGIN: the name */
	/* BEGIN: what it is called with (enum kprof_input_kind); NULL: not told */
	const uint64_t *inputs;
	uint32_t nr_inputs; /* words of that */
	bool inputs_untold; /* BEGIN: it has inputs, and which they are is not known */
	/* BEGIN: its sequence number, and PyTorch's number of a thread; < 0: it has none */
	int64_t sequence;
	uint32_t thread; /* its own, or that which made the node */
	bool node;       /* it runs the node of that number */
	uint32_t inside; /* END: how many observed spans go on inside of the one that ends */
};

struct agent_records_ops {
	void *ctx;
	struct agent_ticks *ticks; /* converts their times */
	const char *metrics;       /* names, with commas in between, as they were asked for; NULL */
	/*
	 * Entries of the thread that has this id in the agent's PID namespace, in order. depth: how
	 * many spans the agent has seen begin on it and not end, before the first of them.
	 */
	int (*spans)(void *ctx, uint32_t tid, uint32_t depth, const struct agent_span *spans,
		     size_t nr);
	/*
	 * The index in the capture of the thread that had this id, in the agent's PID namespace, at
	 * that time. -ESRCH: there was none; any other error ends the recording.
	 */
	int (*thread)(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index);
};

struct agent_records_count {
	uint64_t received;   /* records that could be read, without SPANS and INPUTS */
	uint64_t malformed;  /* batches that could not be read, or not to their end */
	uint64_t unknown;    /* records of a kind that this kprof does not know */
	uint64_t unnamed;    /* records whose name was lost */
	uint64_t timeless;   /* activities and calls without times, or with times that cannot be */
	uint64_t outside;    /* activities and calls before or after the window */
	uint64_t threadless; /* calls of a thread that is not known */
	uint64_t names;
	uint64_t spans; /* of operators, begins and ends: their records don't count as received */
	uint64_t externals; /* correlation ids that another tool pushed */
};

/* Copies a text of the agent's as plain ASCII, for JSON. */
void agent_plain_text(char *to, size_t bytes, const char *from);

int agent_records__new(struct store_writer *store, uint32_t pid,
		       const struct agent_records_ops *ops, struct agent_records **out);
void agent_records__free(struct agent_records *r);

/* Activities that end before start_ns, or begin after end_ns (0: no end yet), are not kept. */
void agent_records__window(struct agent_records *r, uint64_t start_ns, uint64_t end_ns);

/*
 * Takes a batch. Returns 0 or the error of the capture's writer. Malformed bytes are counted; they
 * are no error.
 */
int agent_records__batch(struct agent_records *r, const void *data, size_t bytes);
/*
 * Takes only the names of a batch. For slots that a dead process has left: a name may be in a later
 * slot than its use.
 */
int agent_records__names(struct agent_records *r, const void *data, size_t bytes);
/* Writes metadata that is only known at the end: how the device's clock ran. */
int agent_records__finish(struct agent_records *r);

const struct agent_records_count *agent_records__count(const struct agent_records *r);

#endif
