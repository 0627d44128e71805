/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the span engine: frames.c opens and closes, stretches.c is for what is known at
 * some events only, spans.c is what others call.
 */
#ifndef KPROF_CAPTURE_SPAN_IMPL_H
#define KPROF_CAPTURE_SPAN_IMPL_H

#include "capture/span/spans.h"

#define NR_REGIONS 4

struct frame {
	uint64_t sp, ret_slot;
	uint64_t stack; /* identifies the stack: the end address of its mapping */
	const struct span_return *ret;
	uint64_t number; /* the number from ops.begin(); 0 as long as the frame is silent */
	uint64_t group;
	uint32_t source, probe, description;
	uint64_t begin_ns;
	uint64_t stretch; /* key of a stretch, which is a range, too; 0: it is none */
	bool range;       /* has no frame on the stack */
	bool observed;    /* a range that spans__observed_end() closes */
	bool crosses;     /* … which may end before what was opened inside of it */
	bool own_result;
	bool announced;
	bool silent; /* its begin is not reported: it began before the window, or it is hidden */
	/* began before the window, and was reported as beginning at the window's start */
	bool clipped;
	bool over; /* its end was seen (of a range), or won't be; spans inside it are still open */
	bool certain; /* its end will be seen: its return site was known when it began */
	bool counted; /* the thread has its words of counters */
};

struct region {
	uint64_t lo, hi;
};

struct span_thread {
	struct span_thread *prev, *next;
	struct frame *frames;
	size_t nr, cap;
	size_t nr_ranges;     /* how many of the frames are ranges */
	size_t nr_observed;   /* how many of these are observed, and not over */
	uint64_t last_ns;     /* time of the last event */
	uint64_t reported_ns; /* time of the last begin or end that was reported */
	uint64_t sure_ns;     /* the same, of begins and of ends that were seen */
	uint32_t index, pid;
	/* The stretches that it is in, outermost first; of these, so many are open. */
	struct span_stretch *told;
	size_t nr_told, told_cap, nr_stretches;
	/* spans that were open at the window's start have been reported */
	bool in_window;
	struct region now;               /* the stack of the last event */
	struct region known[NR_REGIONS]; /* stacks seen before, replaced round robin */
	uint32_t nr_known;
	const uint64_t *now_counted; /* of the event that is being handled; NULL: none */
	uint64_t *counted;           /* by frame: what was counted at its begin */
	size_t cap_counted;          /* frames that it has room for */
};

struct spans {
	struct spans_ops ops;
	struct span_thread threads; /* list head */
	struct spans_count counts[SPANS_MAX_SOURCES];
	uint64_t late, idle_sites;
	uint64_t window_ns;
	uint32_t words; /* of counters at an event; 0: there are none */
};

/* Reports the open spans as beginning at the window's start. */
int spans_enter_window(struct spans *s, struct span_thread *t);
/* Takes in the time of an event of the thread, which becomes its latest time if it is before it. */
int spans_advance(struct spans *s, struct span_thread *t, uint64_t *time_ns);
/* Takes in the stack pointer of an event. */
void spans_enter_stack(struct spans *s, struct span_thread *t, uint64_t sp);
/* Closes the spans from this index on. hit: see spans_close_top(). */
int spans_close_down_to(struct spans *s, struct span_thread *t, uint64_t time_ns, size_t keep,
			const struct span_site *hit);
/*
 * Closes every span of this stack that lies below sp, and whatever was opened inside it. Returns
 * how many were closed, or a negative errno.
 */
int spans_close_below(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		      const struct span_site *hit);
/*
 * An event of the thread at this stack pointer: all of the above. Returns how many spans were
 * closed, or a negative errno.
 */
int spans_arrive(struct spans *s, struct span_thread *t, uint64_t *time_ns, uint64_t sp,
		 const struct span_site *hit);
/* The stretch is not open any more: it ends, or will when what is inside of it does. */
static inline void spans_leave_stretch(struct span_thread *t, const struct frame *f)
{
	t->nr_stretches -= f->stretch && !f->over;
}

/* The thread is in the innermost open stretch, as far as was told. */
static inline bool spans_goes_on(const struct span_thread *t, const struct frame *f)
{
	return t->nr_stretches && t->nr_stretches <= t->nr_told &&
	       t->told[t->nr_stretches - 1].key == f->stretch;
}

/* Opens the stretches that were closed with a span around them, though they go on. */
int spans_reopen(struct spans *s, struct span_thread *t, uint64_t time_ns);
/*
 * Closes the innermost span. hit: the return site at which its exact end was seen; NULL: another
 * event showed that it is over.
 */
int spans_close_top(struct spans *s, struct span_thread *t, uint64_t time_ns, bool exact,
		    const struct span_site *hit);
/* Closes ranges whose end was seen while spans inside them were open, once these are closed. */
int spans_close_overdue(struct spans *s, struct span_thread *t, uint64_t time_ns);
/* Opens a span inside all others. */
int spans_push(struct spans *s, struct span_thread *t, uint64_t time_ns, const struct frame *f);

#endif
