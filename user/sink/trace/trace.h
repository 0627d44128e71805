/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What traces of every format share: the rows of a device and their names, how work is numbered
 * (rows.c), flow arrows between spans (flows.c), what is known of an event beside its attributes
 * (args.c, occupancy.c), counters computed from activities (counters.c) and from allocations
 * (memory.c), waits (waits.c), the pass over activities, calls, instants and counters (details.c),
 * and what a trace states of the recording as a whole (head.c). The rooms of the formats write it.
 */
#ifndef KPROF_TRACE_H
#define KPROF_TRACE_H

#include "model/correlate/correlate.h"
#include "sink/trace/occupancy.h"
#include "model/timeline/timeline.h"
#include "sink/write/write.h"
#include "store/store.h"
#include "util/bulk.h"
#include "util/map64.h"

struct trace_device {     /* a device, as one process uses it */
	pid_t pid;        /* the process */
	uint32_t ordinal; /* UINT32_MAX: not a device, but the process itself */
	uint64_t row_pid; /* pid of its rows, for formats in which rows belong to processes */
	uint32_t process; /* the process's number among those with device work */
	uint32_t shift;   /* 1: the device has a stream 0, so that streams are numbered from 1 on */
	uint64_t tid_step; /* distance between two lanes' tids: more than any stream's number */
	uint32_t streams;  /* number of streams with work */
	struct device_props props;
};

struct trace_key;

struct trace {
	struct kprof_capture *t;
	const struct kprof_export_opts *opts;
	struct correlate *corr;

	/*
	 * A time of the trace is mono_ns + shift_ns, in nanoseconds since base_real_ns. The whole
	 * file has one shift: CLOCK_MONOTONIC and CLOCK_REALTIME run at the same rate, their
	 * distance changes only when the clock is set, and slices must nest across that too.
	 */
	int64_t shift_ns;
	uint64_t base_real_ns;

	struct trace_device *devices;
	size_t nr_devices, cap_devices;
	uint32_t *device_of_row; /* index of the device, by the row's number */
	struct trace_key *keys;  /* by string id */
	struct map64 processes;  /* processes with devices or calls: number + 1, by pid */
	uint64_t nr_processes;
	uint64_t nr_backend;          /* events of framework backends so far */
	struct bulk flows, flow_ends; /* flows.c: by the spans that they lead from, and to */
	size_t last_flow, last_flow_end;
	struct map64 functions; /* char *: names of Python functions, by a hash */
};

/*
 * Links calls and activities, and finds the devices; t and opts must be set. -errno with the error
 * set.
 */
int trace__open(struct trace *tr);
void trace__close(struct trace *tr);

static inline int64_t trace__time(const struct trace *tr, uint64_t mono_ns)
{
	return (int64_t)(mono_ns + (uint64_t)tr->shift_ns); /* times from a file may wrap around */
}

/* ---- rows.c ---- */

/* The first lane for waits, above those for work. */
#define TRACE_FIRST_WAIT_LANE CORRELATE_MAX_LANES
#define TRACE_FIRST_RANGE_LANE (2 * CORRELATE_MAX_LANES) /* of rows without a stream */
#define TRACE_ROW_NAME_BYTES 96

const struct trace_device *trace__device_of_row(const struct trace *tr, uint32_t row);
/* The pid of a device's rows. */
uint64_t trace__device_pid(struct trace *tr, pid_t pid, uint32_t ordinal);
/* The device of a counter; NULL: the trace has nothing else of it. */
const struct trace_device *trace__device(const struct trace *tr, pid_t pid, uint32_t ordinal);
/* The number that the trace gives the row's stream; -1: none. */
int64_t trace__stream(const struct trace *tr, uint32_t row);
/*
 * The number that the trace gives a correlation. It is the device's own for the first process, and
 * for the first use of the correlation.
 */
uint64_t trace__correlation(struct trace *tr, pid_t pid, uint64_t correlation, uint32_t again);
uint64_t trace__call_id(struct trace *tr, const struct corr_call *call);
/* The row's name: "stream 7 ", as Kineto has it, with the blank. */
void trace__row_name(const struct trace *tr, uint32_t row, uint32_t lane, char *name, size_t size);
/* The row's position among those of its process or device. */
uint64_t trace__row_order(const struct trace *tr, uint32_t row, uint32_t lane);
/* Whether a flow arrow can end at an activity: it is work that is drawn. */
bool trace__flows_to(const struct trace *tr, const struct corr_act *act);

/* Whether an activity is drawn at all. */
static inline bool trace__drawn(const struct corr_act *act)
{
	return act->row != CORRELATE_NONE && !(act->flags & CORR_ACT_NO_LANE);
}

/* ---- flows.c ---- */

/* Above the numbers of calls: Kineto's readers tell arrows apart by their category, too. */
#define TRACE_FLOW_IDS (1ull << 51)

/* Finds the flows; part of trace__open(). */
int trace__flows_open(struct trace *tr);
/* The number of the flow that leads from a span, or to it; 0: none. */
uint64_t trace__flow_from(struct trace *tr, uint64_t span);
uint64_t trace__flow_to(struct trace *tr, uint64_t span);

/* ---- details.c ---- */

/*
 * What a format does with records that are neither spans nor samples. Non-zero ends the pass and is
 * returned.
 */
struct trace_details {
	/* number: the activity's among those of the trace, drawn or not */
	int (*act)(void *ctx, const struct store_record *r, const struct corr_act *act,
		   uint32_t number);
	/* Called for a call that no probe saw, which becomes a slice of its own. */
	int (*call)(void *ctx, const struct store_record *r, const struct corr_call *call);
	int (*instant)(void *ctx, const struct store_record *r,
		       const struct tl_description *description);
	/* Device: NULL if the trace has nothing else of it. */
	int (*counter)(void *ctx, const struct store_record *r, const struct trace_device *device);
	/* How much memory a process has allocated, as allocations and frees change it; bytes. */
	int (*memory)(void *ctx, pid_t pid, const char *name, uint64_t mono_ns, int64_t bytes);
};

int trace__details(struct trace *tr, const struct trace_details *to, void *ctx);

/* ---- args.c ---- */

enum trace_place { TRACE_HOST = 1, TRACE_CALL = 2, TRACE_DEVICE = 4 };

/* Attributes from which others are computed. */
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
	bool known;      /* the other fields are set */
	uint16_t hidden; /* enum trace_place of the events in which the attribute is not written */
	uint16_t role;   /* enum trace_role */
	const char *name;
	bool zero; /* it is written as 0, whatever its value */
};

/*
 * What is known of an attribute's key, by its string's id. The address is stable as long as the
 * trace.
 */
const struct trace_key *trace__key(struct trace *tr, uint32_t string);

struct trace_arg {
	const char *key;
	enum trace_arg_type {
		TRACE_U64,
		TRACE_I64,
		TRACE_MILLIONTHS, /* a share of 1, in millionths */
		TRACE_TIME,       /* CLOCK_MONOTONIC in nanoseconds; 0: unknown */
		TRACE_JSON,       /* of a valid text, its address */
	} type;
	uint64_t value;
};
#define TRACE_MAX_ARGS 16

struct trace_args {
	struct trace_arg list[TRACE_MAX_ARGS];
	uint32_t nr;
	uint32_t before; /* how many of them precede the record's own attributes */
	/* What the collective communicates that the kernel is of; after them. */
	struct store_attr collective[CORRELATE_MAX_COLLECTIVE];
	uint32_t nr_collective;
	char occupancy[OCCUPANCY_JSON_BYTES]; /* what one of them refers to */
};

/*
 * What the trace says of an activity beside its attributes. number: the activity's number among
 * those of the trace. Must be called once for each activity.
 */
void trace__act_args(struct trace *tr, const struct store_record *r, const struct corr_act *act,
		     uint32_t number, struct trace_args *out);

/*
 * A stack as a text: outermost frame first, separated by `;`, each with file and line if they are
 * known. malloc'ed; NULL: out of memory. A stack with more than TRACE_MAX_CALLS functions keeps the
 * innermost.
 */
#define TRACE_MAX_CALLS 1024
char *trace__stack_text(const struct kprof_capture *t, uint32_t stack);

/* ---- modules.c ---- */

#define TRACE_MODULES_BYTES 4096
/*
 * The calls of modules around a span: "TOP(Net)::forward.layers.3(Block)::forward". Those that do
 * not fit are left out. False: there are none.
 */
bool trace__modules(const struct tl_span *s, char text[TRACE_MODULES_BYTES]);

/* ---- functions.c ---- */

#define TRACE_FUNCTION "python_function" /* the category, as Kineto has it */
/*
 * The name of a Python function: "torch/nn/modules/linear.py(114): forward". Equal names have the
 * same address, as long as the trace is open. NULL: no memory, and the error is set.
 */
const char *trace__function_name(struct trace *tr, const struct tl_frame *frame);
void trace__functions_close(struct trace *tr);

/* ---- waits.c ---- */

#define TRACE_WAIT_NAME_BYTES 128
#define TRACE_WAKER_BYTES 64
/*
 * The part of a wait that has a slice, inside of the spans that it is in: waits may have begun a
 * moment before the window, and go on where it ends. False: there is none.
 */
bool trace__wait(const struct kprof_capture *t, const struct store_record *r,
		 struct store_record *out);
/* The name of a wait's slice. reason: from timeline__wait_reason() */
void trace__wait_name(const char *reason, char name[TRACE_WAIT_NAME_BYTES]);
/* Who woke the thread, as a text. False: it was not seen. */
bool trace__waker(struct kprof_capture *t, const struct store_record *r,
		  char text[TRACE_WAKER_BYTES]);
/* The thread of the trace from which an arrow leads to the wait; NULL: none. */
const struct tl_thread *trace__waking_thread(const struct trace *tr, const struct store_record *r);

/* ---- counters.c ---- */

/*
 * stream: the number that the trace gives it; -1: the whole device. All values of one counter are
 * reported before those of the next.
 */
typedef int trace_counter_fn(void *ctx, const struct trace_device *d, int64_t stream,
			     const char *name, uint64_t mono_ns, int64_t value);
int trace__counters(struct trace *tr, trace_counter_fn *fn, void *ctx);

/* The least time between two values of a computed counter. */
uint64_t trace__counter_step_ns(const struct trace *tr);

/* ---- memory.c ---- */

/* Counters of the memory that processes have allocated; all zero at first. */
struct trace_memory {
	struct map64 numbers; /* by device << 32 | PID: index + 1 */
	struct memory_counter **counters;
	size_t nr, cap;
	uint64_t step_ns;
};

/* Takes in an instant, if it is an allocation or a free. */
int trace__memory(struct trace *tr, struct trace_memory *m, const struct store_record *r,
		  const struct trace_details *to, void *ctx);
/* Reports what is still to be reported, and frees the counters. err: what went wrong before. */
int trace__memory_end(struct trace_memory *m, const struct trace_details *to, void *ctx, int err);

/* ---- head.c: JSON about the recording ---- */

/*
 * The next key, without its prefix, that whoever recorded gave the trace, and its value, which is
 * valid JSON. *at: 0 at first. NULL: there are no more.
 */
const char *trace__metadata(const struct trace *tr, size_t *at, const char **json);

/* Writes {"backend": …, "rank": …} in the form that HTA looks for. */
int trace__distributed(struct trace *tr, struct jsonw *w);
/* Writes [{"id": …}] for the devices; -errno with the error set. */
int trace__device_properties(struct trace *tr, struct jsonw *w);
/* Writes kprof's own object: versions, command, what became of every event. */
void trace__account(struct trace *tr, struct jsonw *w);

#endif
