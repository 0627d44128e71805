/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds which call of the host launched which work of a device, and which operator made that call.
 *
 *   operator span  ⊃  call span  ≈  API record  =correlation=  activity of a device
 *
 * A call's span comes from probes, its API record from the device's own tool interface. The two are
 * the same call when they overlap on one thread. Records come in no order, and an activity may
 * precede its call in the file. So correlate__new() reads everything once and links it; users then
 * stream spans and details again and ask here what belongs together. A record without a partner is
 * kept, and counted.
 *
 * An activity takes 44 bytes, an API record 64; their names and attributes stay in the file. What
 * is more than some megabytes lies in temporary files (util/bulk.h), since nothing bounds how late
 * a record comes: memory does not grow with the number of records.
 */
#ifndef KPROF_CORRELATE_H
#define KPROF_CORRELATE_H

#include <stdbool.h>

#include "kprof/activity.h"
#include "model/timeline/timeline.h"
#include "util/bulk.h"

#define CORRELATE_NONE UINT32_MAX
/* Lanes of one stream. Work that needs another is counted as no_lane and not drawn. */
#define CORRELATE_MAX_LANES 64

enum corr_call_flags {
	/* Inside another record of the same correlation, which represents both. */
	CORR_CALL_NESTED = 1,
	CORR_CALL_SPAN = 2, /* a span of the same call was found: .span */
	/* The span can cover several records, and takes its correlation from this one. */
	CORR_CALL_PRIMARY = 4,
	CORR_CALL_CROSSING = 8, /* has no span, and does not nest with the spans of its thread */
	CORR_CALL_FAILED = 16,  /* it returned an error: .error */
};

/* One API record: a call as the device's tool interface reported it. */
struct corr_call {
	uint64_t start_ns;
	uint64_t correlation; /* as the device's interface numbered it */
	uint32_t dur_ns;      /* longer calls are cut to UINT32_MAX */
	uint32_t thread;      /* index */
	uint32_t name;        /* string id */
	uint32_t cbid;        /* attribute "cbid"; 0: none */
	uint32_t op;    /* span id of the innermost operator or annotation around it; 0: none */
	uint32_t span;  /* span id; 0: none */
	uint32_t error; /* string id: name and number; 0: not told */
	/* Index of the first activity that the call launched, linked by .next; CORRELATE_NONE. */
	uint32_t first;
	uint16_t again; /* how many earlier launches of the process had the same correlation */
	uint8_t type;   /* enum kprof_activity */
	uint8_t flags;  /* enum corr_call_flags */
};

static inline uint64_t corr_call_end_ns(const struct corr_call *call)
{
	return call->start_ns + call->dur_ns;
}

enum corr_act_flags {
	CORR_ACT_NO_LANE = 1, /* more lanes needed than there are: not drawn */
	/* Its call was not recorded, but another call with its correlation was. */
	CORR_ACT_REUSED = 2,
};

/* An activity: work of a device, for instance. Numbered in the order of the file. */
struct corr_act {
	uint64_t start_ns, end_ns;
	union {
		uint64_t correlation; /* until the activity is linked to its call */
		struct {
			uint32_t call; /* index of the call that launched it; CORRELATE_NONE */
			uint32_t next; /* next activity of the same call */
		};
	};
	uint64_t bytes; /* number of bytes copied or set */
	uint32_t row;   /* index; CORRELATE_NONE: not drawn */
	uint8_t type;   /* enum kprof_activity */
	uint8_t lane, flags;
	uint8_t pad;
};

/* A row of activities: what a device did for a process on one stream. */
struct corr_row {
	pid_t pid;
	uint32_t device; /* ordinal; UINT32_MAX: of the process itself (overhead) */
	uint32_t stream;
	bool waits;     /* the row of synchronizations, which overlap the work that they wait for */
	bool ranges;    /* with .waits: of what was measured; no call launched that */
	bool of_thread; /* reported by a thread: .stream is the thread's index */
	uint32_t first, nr; /* its activities: correlate__of_row() */
	uint32_t nr_lanes;
};

/* The extent, on one row, of the work that was launched inside a user's annotation. */
struct corr_annotation {
	uint64_t start_ns, end_ns;
	uint64_t span;        /* id */
	uint32_t description; /* id */
	uint32_t row;
	uint32_t lane;
};

struct corr_counts {
	uint64_t activities;
	uint64_t linked; /* activities linked to a call */
	/* Activities without a recorded call: launched before the window, or unseen. */
	uint64_t without_call;
	/* Linked activities whose call was made outside of operators and annotations. */
	uint64_t without_op;
	/* Activities that start before their call began: a clock error, of at most … */
	uint64_t before_launch;
	uint64_t before_launch_max_ns;
	uint64_t no_lane;
	uint64_t calls;         /* API records */
	uint64_t calls_matched; /* calls with a span */
	/* Launching calls without a span that are drawn as slices of their own. */
	uint64_t calls_drawn;
	/* Launching calls without a span that are not drawn, since they would not nest. */
	uint64_t calls_crossing;
};

struct correlate;

/* Reads and links all records of process pid, or of all processes (0). */
int correlate__new(struct kprof_capture *t, pid_t pid, struct correlate **out);
void correlate__free(struct correlate *c); /* NULL is fine */
const struct corr_counts *correlate__counts(const struct correlate *c);
/* Whether the capture has activities or API records. */
bool correlate__any(const struct correlate *c);

/*
 * Streams the activities, in the order of the file: without those that were launched outside of the
 * annotations within which was recorded.
 */
int correlate__activities(struct kprof_capture *t,
			  int (*fn)(void *ctx, const struct store_record *r), void *ctx);

/* Type of the spans of a description; CPU_OP for categories that are no activity type. */
enum kprof_activity correlate__type(const struct correlate *c,
				    const struct tl_description *description);
/* Whether such a span is a call of a device's runtime or driver; an operator or annotation. */
bool correlate__is_call(const struct correlate *c, const struct tl_description *description);
bool correlate__is_op(const struct correlate *c, const struct tl_description *description);
/* Whether such a span is a call that waits for the device. */
bool correlate__is_wait(const struct correlate *c, const struct tl_description *description);
/* Whether a function of this name waits for the device. For names that are looked up only once. */
bool correlate_is_sync(const char *name);

/*
 * The API records of a span, among them the primary one: *nr numbers for correlate__call(). The
 * caller asks for spans in the order in which timeline__spans() streams them, beginning after
 * correlate__rewind().
 */
void correlate__rewind(struct correlate *c);
const uint32_t *correlate__of_span(struct correlate *c, const struct tl_span *s, size_t *nr);
/* What is known of the result of a call's span; calls, nr: from correlate__of_span(). */
enum corr_result {
	CORR_RESULT_UNKNOWN,
	CORR_RESULT_OF_SPAN,   /* the span's attributes tell it; none: it succeeded */
	CORR_RESULT_OF_RECORD, /* only an API record of the same function tells it: **record */
};
enum corr_result correlate__result(const struct correlate *c, const struct tl_span *s,
				   const uint32_t *calls, size_t nr,
				   const struct corr_call **record);
/* The text of a failed record's error. */
const char *correlate__error(const struct correlate *c, const struct corr_call *call);
/*
 * The i-th activity or call in the file, not counting those of other processes when pid was given.
 * NULL past the end and for CORRELATE_NONE.
 */
const struct corr_act *correlate__act(const struct correlate *c, uint32_t i);
const struct corr_call *correlate__call(const struct correlate *c, uint32_t i);
const struct corr_row *correlate__row(const struct correlate *c, size_t i);
/*
 * Whether the row's activities are work of a device: not waits, overhead of a process, or reports
 * of a thread.
 */
static inline bool corr_row_is_work(const struct corr_row *row)
{
	return row->device != UINT32_MAX && !row->waits;
}

/* Whether row i has work of a device, and no row before it has work of the same device. */
bool correlate__first_of_device(const struct correlate *c, size_t i);
/* The number of the row's i-th activity by start time; there are row->nr. */
uint32_t correlate__of_row(const struct correlate *c, const struct corr_row *row, uint32_t i);
/*
 * The numbers (uint32_t) of all activities of a device for a process, ordered by start time. The
 * caller frees *acts, also after -ENOMEM, with the error set.
 */
int correlate__of_device(const struct correlate *c, pid_t pid, uint32_t device, struct bulk *acts);
/*
 * What is known of the collective whose call launched this kernel, as attributes: at most
 * CORRELATE_MAX_COLLECTIVE of them are copied to `to`. Returns how many.
 */
#define CORRELATE_MAX_COLLECTIVE 12
uint32_t correlate__collective(const struct correlate *c, const struct corr_act *act,
			       struct store_attr *to, uint32_t room);
const struct corr_annotation *correlate__annotation(const struct correlate *c, size_t i);
/* Whether the call is drawn, as its span or as a slice of its own: flow arrows can start there. */
bool corr_call_drawn(const struct corr_call *call);
/* Whether the call is drawn as a slice of its own. */
bool corr_call_own_slice(const struct corr_call *call);

#endif
