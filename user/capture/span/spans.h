/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The span engine: turns "this function was entered" and "this return site was reached" into spans
 * that nest, by the stack pointer alone. It knows nothing of frameworks, BPF or files.
 *
 * The rule: the stack grows down, so a frame whose entry stack pointer lies below that of a later
 * event on the same stack is over. When that event is the frame's own return site, the frame's end
 * is exact. Otherwise (its site is not learnt yet, an exception, longjmp) the frame is closed at
 * that event, and its end is marked as closed. The rule holds within one stack only: signal stacks,
 * fibres and ucontexts have their own. So each frame knows its stack (the memory region), and is
 * compared only with events on that stack.
 *
 * Ranges (annotations) are opened by one call and closed by another: they have no frame, and nest
 * with whatever is open when they begin.
 *
 * Stretches are what the thread is known to be in at some of its events: they begin with the first
 * such event and end with the end of the last one.
 */
#ifndef KPROF_CAPTURE_SPANS_H
#define KPROF_CAPTURE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * What is known of a return address so far; completed once its code has been decoded. Frames point
 * at it, so that a return site learnt while a frame is open still makes the frame's end exact.
 * Owned by the caller, and must live as long as the engine.
 */
struct span_return {
	uint64_t addr;
	uint32_t site;          /* index of the return site; 0: none (yet) */
	int32_t sp_delta_bytes; /* stack pointer at the site minus the one right after the return */
	bool keeps_result;      /* at the site, it is known where the call's result is */
	bool wants_result;      /* for the owner's use: a probe wants the call's result */
};

struct span_thread; /* one thread's open spans */
struct spans;

struct span_end {
	uint32_t thread;
	uint32_t flags; /* KPROF_EVENT_… */
	uint64_t begin_ns, time_ns;
	uint64_t number; /* the number that ops.begin() gave this span */
	uint32_t probe;  /* the probe of struct span_begin; UINT32_MAX for a range */
	uint32_t site;   /* the return site at which the exact end was seen; 0: there was none */
	bool has_result; /* the end is exact, and the call's result was read */
	uint64_t result; /* its low 32 bits are an int */
	/*
	 * What spans__counted() was told at the span's begin and at its exact end; NULL: not both.
	 */
	const uint64_t *at_begin, *at_end;
};

struct spans_ops {
	void *ctx;
	/*
	 * begin() and end() return 0 or a negative errno, which the engine passes to its caller.
	 * begin() sets *number to any number; end() gets it back.
	 */
	int (*begin)(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
		     uint64_t *number);
	int (*end)(void *ctx, const struct span_end *end);
	/*
	 * With spans__rotate(): a span that was begun goes on in another file, from that time on.
	 * begin_ns: when it truly began. NULL: that is never called.
	 */
	int (*again)(void *ctx, uint32_t thread, uint64_t time_ns, uint32_t description,
		     uint64_t number, uint64_t begin_ns);
	/*
	 * The memory mapping that holds this address in the thread's process: [*lo, *hi). Returns
	 * 0, or a negative value when it is not known. Called once per stack, not per event.
	 */
	int (*region)(void *ctx, uint32_t pid, uint64_t sp, uint64_t *lo, uint64_t *hi);
	/*
	 * A range, or a call that is announced, is about to begin, or has ended, before the window
	 * opens, too. They may open it (spans__open_window()) at that time. NULL: nobody asks. 0 or
	 * a negative errno.
	 */
	int (*range_begins)(void *ctx, uint32_t pid, uint32_t thread, uint64_t time_ns,
			    uint32_t description);
	int (*range_ended)(void *ctx, uint32_t pid, uint32_t thread, uint64_t time_ns,
			   uint32_t description);
};

#define SPANS_MAX_SOURCES 32
struct spans_count { /* by source */
	uint64_t begins;
	uint64_t ends_exact, ends_closed;
	uint64_t orphan_ends; /* ends of ranges whose begin was not seen */
};

int spans__new(const struct spans_ops *ops, struct spans **out);
void spans__free(struct spans *s);
/* From now on, events may have so many words of counters. */
void spans__with_counters(struct spans *s, uint32_t words);

/*
 * Opens the window: begins and ends are reported from window_ns on. A span that is open at that
 * time is reported as beginning then, and its end has KPROF_EVENT_OPEN_AT_START. Before this call
 * nothing is reported.
 */
void spans__open_window(struct spans *s, uint64_t window_ns);
/*
 * Reports the begins of spans that were open at the window's start, on threads without any event
 * since.
 */
int spans__finish(struct spans *s);

/*
 * Before spans__rotate(), as long as the old window's file is there: reports the begins of spans
 * that were open at its start, on threads without any event since.
 */
int spans__end_window(struct spans *s);
/*
 * The window ends at that time, and the next one begins: spans that are open and were reported go
 * on (ops.again()), with their numbers; their ends will have KPROF_EVENT_OPEN_AT_START. They count
 * as begun once more.
 */
int spans__rotate(struct spans *s, uint64_t time_ns);

/*
 * A new thread. ops.begin() and ops.end() get this index. Freed by spans__thread_end(), or with the
 * engine.
 */
struct span_thread *spans__thread(struct spans *s, uint32_t index, uint32_t pid);
/* Closes all open spans and frees the thread. */
int spans__thread_end(struct spans *s, struct span_thread *t, uint64_t time_ns);
/*
 * The ends of the spans of these probes (UINT32_MAX: of ranges) will not be seen any more: closes
 * them, or, where others are open inside of one, has it closed together with the last of those.
 */
int spans__give_up(struct spans *s, struct span_thread *t, uint64_t time_ns,
		   bool (*given_up)(void *ctx, uint32_t probe), void *ctx);
/* No more is told of what is open, nor when it ends: closes it. */
int spans__leave(struct spans *s, struct span_thread *t, uint64_t time_ns);
/* Closes all open spans (exec: the stack is gone). */
int spans__close_all(struct spans *s, struct span_thread *t, uint64_t time_ns);

struct span_begin {
	uint64_t time_ns;
	uint64_t sp; /* at the function's entry */
	/* address of the stack slot that holds the return address of `ret` */
	uint64_t ret_slot;
	const struct span_return *ret; /* NULL: could not be read */
	uint32_t description, source;
	uint32_t probe; /* index of the probe: distinguishes a tail call from a repeated call */
	uint64_t group; /* a bit for spans__inside(); 0: none */
	bool uncertain; /* no return site was placed there when the call began */
	/* the call returns through a caller that replaces its result: no result is reported */
	bool own_result;
	bool announced; /* ops.range_begins() and ops.range_ended() are told of it, too */
};
/*
 * What was counted at the event that the next calls for this thread are about, which may begin a
 * span or end one exactly. NULL: nothing. The words are read until the next call of this function.
 */
void spans__counted(struct span_thread *t, const uint64_t *words);
int spans__begin(struct spans *s, struct span_thread *t, const struct span_begin *b);
/* The number of the innermost open span. 0: no span is open, or it has not been reported. */
uint64_t spans__number(const struct span_thread *t);
/* The event description of the innermost open span, reported or not; 0: there is none. */
uint32_t spans__innermost(const struct span_thread *t);
/*
 * Is a call made directly by an open span of one of these groups? Of b, sp, ret_slot and probe
 * count; ret_addr is the return address in ret_slot. Spans that the stack pointer shows to be over
 * don't count, though no event has closed them yet. certain: spans whose return site was not known
 * when they began don't count either.
 */
bool spans__inside(struct spans *s, struct span_thread *t, const struct span_begin *b,
		   uint64_t ret_addr, uint64_t groups, bool certain);

struct span_site {
	uint64_t time_ns;
	uint64_t sp;
	uint32_t site;
	bool has_result;
	uint64_t result; /* see struct span_end */
};
/* A return site was reached: closes the frames that are over. */
int spans__site(struct spans *s, struct span_thread *t, const struct span_site *hit);
/* The thread was here, though nothing begins or ends: closes the frames that are over. */
int spans__passed(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp);
/*
 * Before an event with this stack pointer, it was found that calls on its stack have returned:
 * those whose return site was not known when they began, and for whose ret_slot returned() is true.
 * Closes them, and whatever was opened inside them.
 */
int spans__returned(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		    bool (*returned)(void *ctx, uint64_t ret_slot), void *ctx);
/*
 * Begins a range. description 0: a hidden range, which is never reported but takes the end that
 * belongs to it.
 */
int spans__range_begin(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		       uint32_t description, uint32_t source);
int spans__range_end(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		     uint32_t source);
/*
 * Observed spans are told by the program itself, in order, without a stack pointer. They nest with
 * whatever is open when they begin. crosses: it is an annotation, which may end
 * before what was opened inside of it.
 */
int spans__observed_begin(struct spans *s, struct span_thread *t, uint64_t time_ns,
			  uint32_t description, uint32_t source, bool crosses);
/*
 * An observed span ends: the innermost with so many observed ones inside of it. What was opened
 * inside of it and has no end yet ends with it, unless it crosses. exact: false where only
 * something later showed that it was over.
 */
int spans__observed_end(struct spans *s, struct span_thread *t, uint64_t time_ns, bool exact,
			uint32_t inside, uint32_t source);
/* How many observed spans are open. */
size_t spans__observed(const struct span_thread *t);
struct span_stretch {
	uint64_t key; /* tells it from others; not 0 */
	uint32_t description, source;
};
/*
 * From this event on, the thread is in these stretches, outermost first, and in no others. Those
 * that are open and not in the list end when the last span inside of them ended, those that are new
 * begin. Where an end inside was not seen, or a range that began inside goes on, the stretch's end
 * is not exact either. on: the thread was in the first of the list, and those around it go on, too.
 * -ENOENT: it was not; nothing was done. What was opened around them and has ended since takes them
 * with it: they begin once more.
 */
int spans__stretches(struct spans *s, struct span_thread *t, uint64_t time_ns, uint64_t sp,
		     const struct span_stretch *list, size_t nr, bool on);
/* Does the address lie on the used part of the stack that sp is on? */
bool spans__on_stack(struct spans *s, struct span_thread *t, uint64_t sp, uint64_t addr);

const struct spans_count *spans__count(const struct spans *s, uint32_t source);
/*
 * How many events had a time before their thread's previous event; they are handled with that
 * event's time.
 */
uint64_t spans__late(const struct spans *s);
/*
 * How many hits of return sites closed no span: the site lies on another path too, or the begin was
 * not recorded.
 */
uint64_t spans__idle_sites(const struct spans *s);

#endif
