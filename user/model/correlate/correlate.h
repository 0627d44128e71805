/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which call of the host launched which work of a device, and which operator made that call.
 *
 *   operator span  ⊃  call span  ≈  API record  =correlation=  activity of a device
 *
 * The call's span was seen from outside, the API record by the device's own tool interface: they
 * are the same call when they overlap on one thread. Records come in no order, and an activity may
 * stand in front of its call: everything is read once and put together (correlate__new()), then the
 * users stream spans and details again and ask here what belongs to what. What finds no partner is
 * kept, and counted.
 *
 * Memory: 44 bytes per activity, 56 per API record; what they say of themselves stays in the file.
 */
#ifndef KPROF_CORRELATE_H
#define KPROF_CORRELATE_H

#include <stdbool.h>

#include "kprof/activity.h"
#include "model/timeline/timeline.h"

#define CORRELATE_NONE UINT32_MAX
/* Side by side on one stream; more are counted as no_lane, and are not drawn. */
#define CORRELATE_MAX_LANES 64

enum corr_call_flags {
	CORR_CALL_NESTED =
		1, /* inside another record of the same correlation, which stands for both */
	CORR_CALL_SPAN = 2, /* has a span: .span */
	CORR_CALL_PRIMARY =
		4, /* … and gives it its correlation (a span can cover several records) */
	CORR_CALL_CROSSING = 8, /* has none, and does not nest with the spans of its thread */
};

/* An API record. */
struct corr_call {
	uint64_t start_ns;
	uint64_t correlation; /* as the device's interface numbered it */
	uint32_t dur_ns;      /* at most UINT32_MAX */
	uint32_t thread;      /* index */
	uint32_t name;        /* string id */
	uint32_t cbid;        /* attribute "cbid"; 0: none */
	uint32_t op;    /* span id of the innermost operator or annotation around it; 0: none */
	uint32_t span;  /* span id; 0: none */
	uint32_t first; /* activity launched by it, linked by .next; CORRELATE_NONE */
	uint16_t again; /* how often the process had used its correlation for launches before */
	uint8_t type;   /* enum kprof_activity */
	uint8_t flags;  /* enum corr_call_flags */
};

enum corr_act_flags {
	CORR_ACT_NO_LANE = 1, /* too many at once: not drawn */
	CORR_ACT_REUSED = 2,  /* its call was not recorded, and another call has its correlation */
};

/* Work of a device; numbered in the order of the file. */
struct corr_act {
	uint64_t start_ns, end_ns;
	union {
		uint64_t correlation; /* before it is linked */
		struct {
			uint32_t call; /* CORRELATE_NONE */
			uint32_t next; /* of the same call */
		};
	};
	uint64_t bytes; /* copied or set */
	uint32_t row;   /* CORRELATE_NONE: of nothing that is drawn */
	uint8_t type;   /* enum kprof_activity */
	uint8_t lane, flags;
	uint8_t pad;
};

/* Where activities are drawn: what a device did for a process on a stream. */
struct corr_row {
	pid_t pid;
	uint32_t device; /* ordinal; UINT32_MAX: of the process itself (overhead) */
	uint32_t stream;
	bool waits;         /* of synchronizations, which overlap what they wait for */
	bool of_thread;     /* reported by a thread: .stream is its index */
	uint32_t first, nr; /* its activities, by start: correlate__of_row() */
	uint32_t nr_lanes;
};

/* What a device did inside a user's annotation. */
struct corr_annotation {
	uint64_t start_ns, end_ns;
	uint64_t span;        /* id */
	uint32_t description; /* id */
	uint32_t row;
	uint32_t lane;
};

struct corr_counts {
	uint64_t activities;
	uint64_t linked;       /* to a call */
	uint64_t without_call; /* none recorded: launched before the window, or unseen */
	uint64_t
		without_op; /* linked, but the call was made outside of operators and annotations */
	uint64_t before_launch; /* start before their call began; by at most … */
	uint64_t before_launch_max_ns;
	uint64_t no_lane;
	uint64_t calls;          /* API records */
	uint64_t calls_matched;  /* … which a span was found for */
	uint64_t calls_drawn;    /* … launching something, drawn as slices of their own */
	uint64_t calls_crossing; /* … which would not nest */
};

struct correlate;

/* pid: only of this process; 0: all. */
int correlate__new(struct timeline *t, pid_t pid, struct correlate **out);
void correlate__free(struct correlate *c); /* NULL is fine */
const struct corr_counts *correlate__counts(const struct correlate *c);
/* Whether there is anything beside spans: activities or API records. */
bool correlate__any(const struct correlate *c);

/* Type of a span by what it is: CPU_OP of categories that are no type. */
enum kprof_activity correlate__type(const struct correlate *c,
				    const struct tl_description *description);
/* … and whether that is a call of a device's runtime or driver; an operator or annotation. */
bool correlate__is_call(const struct correlate *c, const struct tl_description *description);
bool correlate__is_op(const struct correlate *c, const struct tl_description *description);
/* A call that waits for the device. */
bool correlate__is_wait(const struct correlate *c, const struct tl_description *description);
bool correlate_type_is_call(uint32_t type);
/* Bytes of an API's name without the suffix of its version: "_v2", "_v7000", "_ptsz" … */
size_t correlate_plain_name(const char *name);
/* The same by its name, for names that are met once. */
bool correlate_is_sync(const char *name);

/*
 * The API records of a span (the primary is one of them), in *nr numbers for correlate__call().
 * Spans are asked for in the order in which timeline__spans() streams them, from
 * correlate__rewind() on.
 */
void correlate__rewind(struct correlate *c);
const uint32_t *correlate__of_span(struct correlate *c, const struct tl_span *s, size_t *nr);
/*
 * The i-th of the file's, not counting those left out by pid; NULL past the end and for
 * CORRELATE_NONE.
 */
const struct corr_act *correlate__act(const struct correlate *c, uint32_t i);
const struct corr_call *correlate__call(const struct correlate *c, uint32_t i);
const struct corr_row *correlate__row(const struct correlate *c, size_t i);
/*
 * Whether its activities are work of a device: not waits, a process's overhead or what a thread
 * reported.
 */
static inline bool corr_row_is_work(const struct corr_row *row)
{
	return row->device != UINT32_MAX && !row->waits;
}

/* Numbers of a row's activities, of which there are row->nr, by start. */
const uint32_t *correlate__of_row(const struct correlate *c, const struct corr_row *row);
/*
 * Of all that a device did for a process: *nr numbers by start, malloc'ed. -ENOMEM with the error
 * set.
 */
int correlate__of_device(const struct correlate *c, pid_t pid, uint32_t device, uint32_t **acts,
			 size_t *nr);
const struct corr_annotation *correlate__annotation(const struct correlate *c, size_t i);
/* Whether the call is drawn, by its span or by itself: flows can start there. */
bool corr_call_drawn(const struct corr_call *call);
/* Whether it is drawn as a slice of its own. */
bool corr_call_own_slice(const struct corr_call *call);

#endif
