/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The span engine: turns "this function was entered" and "this return site was reached" into spans
 * that nest, by the stack pointer alone. Knows nothing of frameworks, BPF or files.
 *
 * The rule: the stack grows down, so a frame whose entry stack pointer lies below that of a later
 * event on the same stack is over. When that event is the frame's own return site, its end is
 * exact; otherwise (site not learnt yet, exception, longjmp) it is closed here and marked. It holds
 * within one stack only: signal stacks, fibres and ucontexts have their own. So each frame knows
 * its stack (region), and only frames of the event's own stack are compared.
 *
 * Ranges (annotations) are opened by one call and closed by another: they have no frame, and nest
 * with whatever is open when they begin.
 */
#ifndef KPROF_CAPTURE_SPANS_H
#define KPROF_CAPTURE_SPANS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * What is known of a return address, by now: filled in when it has been learnt. Frames point at
 * it, so that a site learnt while the frame is open still makes its end exact. Owned by the caller,
 * alive as long as the engine.
 */
struct span_return {
	uint64_t addr;
	uint32_t site;          /* index of the return site; 0: none (yet) */
	int32_t sp_delta_bytes; /* stack pointer at the site, less that right after the return */
	bool keeps_result;      /* the result register at the site is the call's own */
	bool wants_result;      /* the owner's: somebody asks for it */
};

struct span_thread; /* one thread's open spans */
struct spans;

struct span_end {
	uint32_t thread;
	uint32_t flags; /* KPROF_EVENT_… */
	uint64_t time_ns;
	uint64_t number; /* what begin() called it */
	uint32_t probe;  /* as given at its begin; 0 for a range */
	bool has_result; /* its end is exact, and the result was still to be had there */
	uint64_t result; /* the integer result register */
};

struct spans_ops {
	void *ctx;
	/*
	 * Both return 0 or a negative errno, which the engine hands on. *number: the caller's own,
	 * kept.
	 */
	int (*begin)(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
		     uint64_t *number);
	int (*end)(void *ctx, const struct span_end *end);
	/*
	 * The memory mapping that holds this address in the thread's process: [*lo, *hi). Returns
	 * 0, or negative when it cannot be known. Asked once per stack, not per event.
	 */
	int (*region)(void *ctx, uint32_t pid, uint64_t sp, uint64_t *lo, uint64_t *hi);
};

#define SPANS_MAX_SOURCES 32
struct spans_count { /* by source */
	uint64_t begins;
	uint64_t ends_exact, ends_closed;
	uint64_t orphan_ends; /* a range's end without a begin */
};

int spans__new(const struct spans_ops *ops, struct spans **out);
void spans__free(struct spans *s);

/*
 * Only what happens from window_ns on is reported. A span that is open then begins there, and its
 * end carries KPROF_EVENT_OPEN_AT_START. Until this is called nothing is reported.
 */
void spans__open_window(struct spans *s, uint64_t window_ns);
/*
 * Reports the spans that were open at the window's start on threads that have been silent since.
 */
int spans__finish(struct spans *s);

/*
 * A new thread; index is what begin() and end() are given. Freed with the engine, or at
 * thread_end().
 */
struct span_thread *spans__thread(struct spans *s, uint32_t index, uint32_t pid);
/* Closes what is open and frees the thread. */
int spans__thread_end(struct spans *s, struct span_thread *t, uint64_t time_ns);
/* Closes what is open (exec: the stack is gone). */
int spans__close_all(struct spans *s, struct span_thread *t, uint64_t time_ns);

struct span_begin {
	uint64_t time_ns;
	uint64_t sp;                   /* at the function's entry */
	uint64_t ret_slot;             /* where the return address lies that `ret` stands for */
	const struct span_return *ret; /* NULL: could not be read */
	uint32_t description, source;
	uint32_t probe; /* which probe: distinguishes a tail call from a repeated call */
	uint64_t group; /* a bit for spans__inside(); 0: none */
	/* a caller that only returns gives a result of its own: none is reported */
	bool own_result;
};
int spans__begin(struct spans *s, struct span_thread *t, const struct span_begin *b);
/* The number of the innermost open span, if it has been reported; 0: none, or it has not. */
uint64_t spans__number(const struct span_thread *t);
/*
 * Is a call at b (time_ns, ret, what, source aside) made directly by a span of one of these groups?
 * ret_addr is what lies in its ret_slot. Spans that the stack pointer shows to be over don't count,
 * though no event has closed them yet. certain: nor do those whose site was not known when they
 * began.
 */
bool spans__inside(struct spans *s, struct span_thread *t, const struct span_begin *b,
		   uint64_t ret_addr, uint64_t groups, bool certain);

struct span_site {
	uint64_t time_ns;
	uint64_t sp;
	uint32_t site;
	bool has_result;
	uint64_t result; /* of the integer result register */
};
/* A return site was reached. source of the frames closed is their own. */
int spans__site(struct spans *s, struct span_thread *t, const struct span_site *hit);
/* description 0: hidden. It is never reported, but its end is taken for its own. */
int spans__range_begin(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		       uint32_t description, uint32_t source);
int spans__range_end(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		     uint32_t source);
/* The address lies on the stack the thread uses now. */
bool spans__on_stack(struct spans *s, struct span_thread *t, uint64_t sp, uint64_t addr);

const struct spans_count *spans__count(const struct spans *s, uint32_t source);
/* Events that came with a time before their thread's last one; they are taken at that time. */
uint64_t spans__late(const struct spans *s);
/*
 * Site hits that closed nothing: the site lies on another path too, or the begin was not recorded.
 */
uint64_t spans__idle_sites(const struct spans *s);

#endif
