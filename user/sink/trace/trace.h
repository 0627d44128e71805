/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What traces say whatever their format: which rows a device has and what they are called, how work
 * is numbered (rows.c), what is known of an event beside its attributes (args.c, occupancy.c),
 * counters computed from activities (counters.c), the pass over activities, calls, instants and
 * counters (details.c), and what a trace states of the recording as a whole (head.c). The rooms of
 * the formats write it down.
 */
#ifndef KPROF_TRACE_H
#define KPROF_TRACE_H

#include "model/correlate/correlate.h"
#include "sink/trace/occupancy.h"
#include "model/timeline/timeline.h"
#include "sink/write/write.h"
#include "store/store.h"
#include "util/map64.h"

struct trace_device {      /* of one process */
	pid_t pid;         /* the process */
	uint32_t ordinal;  /* UINT32_MAX: what is the process's own */
	uint64_t row_pid;  /* a pid for its rows, where a format has no other rows than processes */
	uint32_t process;  /* so-many-th with devices */
	uint32_t shift;    /* streams are numbered from 1 on */
	uint64_t tid_step; /* between lanes: more than any stream */
	uint32_t streams;  /* with work */
	struct device_props props;
};

struct trace_key;

struct trace {
	struct timeline *t;
	const struct kprof_export_opts *opts;
	struct correlate *corr;

	/*
	 * A time of the trace is mono_ns + shift_ns, in ns since base_real_ns. One shift for the
	 * whole file: CLOCK_MONOTONIC and CLOCK_REALTIME run at one rate, what lies between them
	 * changes only when the clock is set, and slices must nest across that, too.
	 */
	int64_t shift_ns;
	uint64_t base_real_ns;

	struct trace_device *devices;
	size_t nr_devices, cap_devices;
	uint32_t *device_of_row; /* by the row's number */
	struct trace_key *keys;  /* by string id */
	struct map64 processes;  /* with devices or calls: number + 1, by pid */
	uint64_t nr_processes;
	uint64_t nr_backend; /* events of backends so far */
	uint64_t seen;       /* handed over by the model, written or not */
};

/* t and opts are set: correlates, and finds the devices. -errno with the error set. */
int trace__open(struct trace *tr);
void trace__close(struct trace *tr);
/* At each thing that the model hands over. -ECANCELED when the user's progress function said so. */
int trace__progress(struct trace *tr);

static inline int64_t trace__time(const struct trace *tr, uint64_t mono_ns)
{
	return (int64_t)(mono_ns + (uint64_t)tr->shift_ns); /* times of a file may wrap */
}

/* ---- rows.c ---- */

/* Above it the lanes of what waits. */
#define TRACE_FIRST_WAIT_LANE CORRELATE_MAX_LANES
#define TRACE_ROW_NAME_BYTES 96

const struct trace_device *trace__device_of_row(const struct trace *tr, uint32_t row);
/* The pid of a device's rows. */
uint64_t trace__device_pid(struct trace *tr, pid_t pid, uint32_t ordinal);
/* The device that a counter is of; NULL: nothing was seen of it. */
const struct trace_device *trace__device(const struct trace *tr, pid_t pid, uint32_t ordinal);
/* What a stream is called, from 1 on; -1: none. */
int64_t trace__stream(const struct trace *tr, uint32_t row);
/*
 * The correlation as the trace numbers it: the device's own for the first process and its first
 * use.
 */
uint64_t trace__correlation(struct trace *tr, pid_t pid, uint64_t correlation, uint32_t again);
uint64_t trace__call_id(struct trace *tr, const struct corr_call *call);
/* "stream 7 ", as Kineto names it, with its blank. */
void trace__row_name(const struct trace *tr, uint32_t row, uint32_t lane, char *name, size_t size);
/* Where the row stands among those of its process or device. */
uint64_t trace__row_order(const struct trace *tr, uint32_t row, uint32_t lane);
/* Whether a flow can end at an activity: work that is drawn. */
bool trace__flows_to(const struct trace *tr, const struct corr_act *act);

/* Whether an activity is drawn at all. */
static inline bool trace__drawn(const struct corr_act *act)
{
	return act->row != CORRELATE_NONE && !(act->flags & CORR_ACT_NO_LANE);
}

/* ---- details.c ---- */

/*
 * What a format writes of what is beside spans and samples; non-zero ends the pass and is returned.
 */
struct trace_details {
	/* number: the activity's among those of the trace, drawn or not */
	int (*act)(void *ctx, const struct store_record *r, const struct corr_act *act,
		   uint32_t number);
	/* A call that no probe saw, which is a slice of its own. */
	int (*call)(void *ctx, const struct store_record *r, const struct corr_call *call);
	int (*instant)(void *ctx, const struct store_record *r,
		       const struct tl_description *description);
	/* device: NULL where nothing was seen of it */
	int (*counter)(void *ctx, const struct store_record *r, const struct trace_device *device);
};

int trace__details(struct trace *tr, const struct trace_details *to, void *ctx);

/* ---- args.c ---- */

enum trace_place { TRACE_HOST = 1, TRACE_CALL = 2, TRACE_DEVICE = 4 };

/* Attributes that more is computed from. */
enum trace_role {
	ROLE_NONE,
	ROLE_GRID,
	ROLE_BLOCK,
	ROLE_REGISTERS,
	ROLE_SHARED,
	ROLE_WAIT_STREAM,
	ROLE_WAIT_CORRELATION,
};

struct trace_key {
	bool known;      /* the rest has been found out */
	uint16_t hidden; /* enum trace_place where the attribute is not written */
	uint16_t role;   /* enum trace_role */
	const char *name;
};

/* What is known of an attribute's key, by its string; stays where it is as long as the trace. */
const struct trace_key *trace__key(struct trace *tr, uint32_t string);

struct trace_arg {
	const char *key;
	enum trace_arg_type {
		TRACE_U64,
		TRACE_I64,
		TRACE_MILLIONTHS, /* of one */
		TRACE_TIME,       /* mono ns; 0: not known */
	} type;
	uint64_t value;
};
#define TRACE_MAX_ARGS 16

struct trace_args {
	struct trace_arg list[TRACE_MAX_ARGS];
	uint32_t nr;
	uint32_t before; /* so many come in front of the record's own attributes */
};

/*
 * What the trace says of an activity beside its attributes. number: the activity's among those of
 * the trace. To be called once for each.
 */
void trace__act_args(struct trace *tr, const struct store_record *r, const struct corr_act *act,
		     uint32_t number, struct trace_args *out);

/*
 * A stack as a text: outermost first, `;` between, each with file and line where they are known.
 * malloc'ed; NULL: no memory. Of very deep ones the innermost TRACE_MAX_CALLS.
 */
#define TRACE_MAX_CALLS 1024
char *trace__stack_text(const struct timeline *t, uint32_t stack);

/* ---- counters.c ---- */

/* stream: as it is called; -1: of the whole device. The values of one counter come in a row. */
typedef int trace_counter_fn(void *ctx, const struct trace_device *d, int64_t stream,
			     const char *name, uint64_t mono_ns, int64_t value);
int trace__counters(struct trace *tr, trace_counter_fn *fn, void *ctx);

/* ---- head.c: JSON about the recording ---- */

/* {"backend": …, "rank": …}, as HTA looks for it. */
int trace__distributed(struct trace *tr, struct jsonw *w);
/* [{"id": …}]; -errno with the error set. */
int trace__device_properties(struct trace *tr, struct jsonw *w);
/* kprof's own: versions, command, what became of every event. */
void trace__account(struct trace *tr, struct jsonw *w);

#endif
