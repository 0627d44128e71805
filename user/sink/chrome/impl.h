/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the Chrome trace. chrome.c writes the whole; head.c: what precedes the events;
 * spans.c: spans of the host; rows.c: pids and tids of devices' rows; device.c: what devices did,
 * instants and counters; samples.c: samples and stacks; waits.c: waits; args.c: args; pieces.c:
 * helpers of all these. What other formats state as well is in trace.h.
 */
#ifndef KPROF_CHROME_IMPL_H
#define KPROF_CHROME_IMPL_H

#include "sink/trace/trace.h"

/* A piece of JSON text that many events share: all of one description, thread, key or name. */
struct fragment {
	char *text; /* for an event description: its head, then its tail; NULL: not made yet */
	size_t head, tail; /* their lengths, in bytes */
	size_t number;     /* of the description, thread, key or name */
};

/*
 * How many texts are kept at most. A program that names each of its steps ("step 1", "step 2", …)
 * has as many names as steps, and the trace needs each of them only once or twice.
 */
#define FRAGMENTS_KEPT (1u << 16)

struct fragments { /* all zero: empty */
	struct fragment *list;
	size_t nr;
};

struct chrome {
	struct trace tr; /* owns .corr; its .t and .opts are the same as these */
	struct kprof_capture *t;
	const struct kprof_export_opts *opts;
	struct correlate *corr;
	struct jsonw w;

	int64_t first_ns, last_ns; /* of all spans and the window, in the trace's time */

	struct fragments descriptions; /* by id: the text that all spans of one description have */
	struct fragments threads;      /* by index: the text that all spans of one thread have */
	struct fragments keys;         /* by string id: `,"key":` */
	struct fragments names;        /* by string id: a C++ name, demangled and quoted */
	struct fragments stacks;       /* by stack id: the stack's text in args, quoted */
	size_t stack_bytes;            /* total length of the stacks' texts */
	bool cut; /* the head says that the capture is complete, but later events were unreadable */
	uint64_t spans;           /* number of spans written */
	struct tl_function *left; /* Python functions that are not written yet, outermost last */
	size_t nr_left, cap_left;
};

/* Writes everything before the first event, including `"traceEvents": [`. */
int chrome_head(struct chrome *c, const char *path);

/* ---- pieces.c ---- */

/*
 * Sets *at to the fragment of this number, until the next call for the same list: where there are
 * very many numbers, another one's text may have to make room. -ENOMEM.
 */
int fragment_at(struct fragments *f, size_t number, struct fragment **at);
void fragments_free(struct fragments *f);
int chrome_thread(struct chrome *c, uint32_t index, struct fragment **out);
/* Counts a slice, and widens the covered time to it. */
void chrome_cover(struct chrome *c, int64_t start_ns, int64_t end_ns);
/* Widens the covered time to this time of the trace. */
void chrome_reach(struct chrome *c, int64_t ns);
/*
 * Starts the flow arrow from a call to the work that it launched, if that is drawn. row: the text
 * `,"pid":…,"tid":…,"ts":`.
 */
void chrome_flow_start(struct chrome *c, const struct corr_call *call, const struct fragment *row,
		       int64_t ns);

/* ---- spans.c ---- */

int chrome_spans(struct chrome *c);

/* ---- samples.c ---- */

/* The attribute under which an operator's stack is written. */
#define CHROME_CALL_STACK "Call stack"

int chrome_samples(struct chrome *c);
/* Writes a stack as the value of an attribute. */
int chrome_call_stack(struct chrome *c, uint32_t stack);
/* Whether the capture's operators have stacks. */
bool chrome_with_stack(const struct chrome *c);

/* ---- waits.c ---- */

int chrome_waits(struct chrome *c);

/* ---- args.c ---- */

struct args {
	struct jsonw *w;
	bool any;
};

/* Writes text that begins with a comma, which is left out in the first arg. */
void args_raw(struct args *a, const char *text, size_t len);
void args_u64(struct args *a, const char *key, uint64_t v); /* key: ",\"key\":" */
void args_string(struct args *a, const char *key, const char *v);
void args_computed(struct chrome *c, struct args *a, const struct trace_arg *list, uint32_t nr);
/* Writes the attributes, except those that events of this place have a field for. */
int args_attrs(struct chrome *c, struct args *a, const struct store_attr *attrs, uint32_t nr,
	       enum trace_place place);

/* ---- rows.c ---- */

int chrome_rows_describe(struct chrome *c);
uint64_t chrome_tid(const struct chrome *c, uint32_t row, uint32_t lane);
/*
 * Writes `,
 * {"ph":"M","name":NAME,"ts":…,"pid":PID,"tid":TID,"args":{"ARG":`, which the value follows.
 */
void chrome_metadata(struct chrome *c, const char *name, uint64_t pid, uint64_t tid,
		     const char *arg);

/* ---- device.c ---- */

int chrome_details(struct chrome *c);

static inline int64_t chrome_time(const struct chrome *c, uint64_t mono_ns)
{
	return trace__time(&c->tr, mono_ns);
}

#endif
