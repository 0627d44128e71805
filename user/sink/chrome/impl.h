/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the Chrome trace. chrome.c puts it together; head.c: what stands before the events;
 * spans.c: spans of the host; rows.c: pids and tids of the device's side; device.c: what devices
 * did, instants and counters; samples.c: samples and stacks; args.c: args; pieces.c: what those
 * share. What other formats say too is in trace.h.
 */
#ifndef KPROF_CHROME_IMPL_H
#define KPROF_CHROME_IMPL_H

#include "sink/trace/trace.h"

/* A piece of text that events of one kind, thread, key or name share, kept by its number. */
struct fragment {
	char *text;        /* of an event description: its head, then its tail; NULL: none yet */
	size_t head, tail; /* bytes of each */
	pid_t pid;         /* a thread's */
};

struct fragments { /* all zero: empty */
	struct fragment *list;
	size_t nr;
};

struct chrome {
	struct trace tr; /* owns .corr; its own .t and .opts are the same as these */
	struct timeline *t;
	const struct kprof_export_opts *opts;
	struct correlate *corr;
	struct jsonw w;

	int64_t first_ns, last_ns; /* of all spans and the window, as times of the trace */

	struct fragments descriptions; /* by id, what never changes between spans of one kind */
	struct fragments threads;      /* by index; the same for spans of one thread */
	struct fragments keys;         /* by string id: `,"key":` */
	struct fragments names;        /* by string id: a C++ name, demangled and quoted */
	struct fragments stacks;       /* by stack id: what stands for it in args, quoted */
	size_t stack_bytes;            /* of those */
	bool cut;       /* the head says complete, but events turned out unreadable later */
	uint64_t spans; /* written */
};

/* Everything before the first event, up to and with `"traceEvents": [`. */
int chrome_head(struct chrome *c, const char *path);

/* ---- pieces.c ---- */

/* Sets *at to entry i, growing the list; -ENOMEM. */
int fragment_at(struct fragments *f, size_t i, struct fragment **at);
void fragments_free(struct fragments *f);
int chrome_thread(struct chrome *c, uint32_t index, struct fragment **out);
/* Counts one slice of the trace and what it covers. */
void chrome_cover(struct chrome *c, int64_t start_ns, int64_t end_ns);
/* The window reaches to this time of the trace. */
void chrome_reach(struct chrome *c, int64_t ns);
/* The flow from a call to what it launched, if it is drawn; `row`: `,"pid":…,"tid":…,"ts":`. */
void chrome_flow_start(struct chrome *c, const struct corr_call *call, const struct fragment *row,
		       int64_t ns);

/* ---- spans.c ---- */

int chrome_spans(struct chrome *c);

/* ---- samples.c ---- */

/* The attribute that an operator's stack is. */
#define CHROME_CALL_STACK "Call stack"

int chrome_samples(struct chrome *c);
/* A stack as the value of an attribute. */
int chrome_call_stack(struct chrome *c, uint32_t stack);
/* Whether the capture's operators have stacks. */
bool chrome_with_stack(const struct chrome *c);

/* ---- args.c ---- */

struct args {
	struct jsonw *w;
	bool any;
};

/* Text that begins with a comma, which the first of all loses. */
void args_raw(struct args *a, const char *text, size_t len);
void args_u64(struct args *a, const char *key, uint64_t v); /* key: ",\"key\":" */
void args_computed(struct chrome *c, struct args *a, const struct trace_arg *list, uint32_t nr);
/* The attributes but for those that the place has a field of its own for. */
int args_attrs(struct chrome *c, struct args *a, const struct store_attr *attrs, uint32_t nr,
	       enum trace_place place);

/* ---- rows.c ---- */

int chrome_rows_describe(struct chrome *c);
uint64_t chrome_tid(const struct chrome *c, uint32_t row, uint32_t lane);
/* `,\n{"ph":"M","name":NAME,"ts":…,"pid":PID,"tid":TID,"args":{"ARG":`: the value follows. */
void chrome_metadata(struct chrome *c, const char *name, uint64_t pid, uint64_t tid,
		     const char *arg);

/* ---- device.c ---- */

int chrome_details(struct chrome *c);

static inline int64_t chrome_time(const struct chrome *c, uint64_t mono_ns)
{
	return trace__time(&c->tr, mono_ns);
}

#endif
