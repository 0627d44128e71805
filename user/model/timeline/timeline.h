/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a capture's records to spans with parents, self times and names, streaming: memory depends
 * on how many strings, threads and open spans there are, not on how long the recording is.
 *
 * Two passes: timeline__open() reads the tables (processes, threads, sources, gaps, metadata:
 * what a trace has to state before its first event), timeline__spans() then streams the events.
 */
#ifndef KPROF_TIMELINE_H
#define KPROF_TIMELINE_H

#include "kprof.h"

struct tl_process {
	pid_t pid, ppid, ns_pid; /* ns_pid 0: the same */
	const char *comm, *cmdline;
	uint64_t start_ns, exit_ns; /* mono */
};

struct tl_thread {
	uint32_t index;
	pid_t pid, tid;
	const char *name;     /* the kernel's, or what it set by kprof/mark.h */
	const char *own_name; /* its language's: of Python's threading.Thread; "" none */
	const char *title;    /* for people: of both what says something */
	char *made_title;     /* the same, where it is neither; the timeline's */
	uint64_t start_ns, exit_ns;
};

struct tl_description { /* what a span is; pointers are stable, so that a sink can cache by index */
	uint32_t id;    /* dense from 1 */
	const char *name, *overload, *category;
	uint32_t source;
	uint32_t flags;
};

struct store_attr;
struct store_record;

/* Attributes of one span; what is more is left out and counted. */
#define TL_MAX_ATTRS 64

struct tl_span {
	const struct tl_description *description;
	const struct tl_description *parent_what; /* NULL: outermost */
	uint32_t thread;                          /* index */
	uint64_t start_ns, end_ns, self_ns;
	uint64_t id, parent_id;
	uint32_t depth, flags;
	/*
	 * What else is known of it, each key once; valid until the function returns. At ends only.
	 */
	const struct store_attr *attrs;
	uint32_t nr_attrs;
};

struct timeline;
/* The timeline of a capture of the public library, for the rooms that read it as a whole. */
struct timeline *capture__timeline(struct kprof_capture *c);
int timeline__open(const char *path, struct timeline **out);
void timeline__close(struct timeline *t);
/* The capture file that this was opened from. */
const char *timeline__path(const struct timeline *t);
const struct kprof_capture_info *timeline__info(const struct timeline *t);
const char *timeline__meta(const struct timeline *t, const char *key); /* JSON or NULL */
/* Of a key whose value is a string that is not empty: it, malloc'ed; else NULL. */
char *timeline__meta_text(const struct timeline *t, const char *key);
/* i-th key in order of first appearance; NULL past the end. */
const char *timeline__meta_key(const struct timeline *t, size_t i);
const struct tl_process *timeline__process(const struct timeline *t, size_t i);
const struct tl_thread *timeline__thread(const struct timeline *t, size_t index);
const struct kprof_source *timeline__source(const struct timeline *t, size_t i);
const struct kprof_gap *timeline__gap(const struct timeline *t, size_t i);
/* A string of the capture, stable as long as the timeline; "" for an id that there is not. */
const char *timeline__string(const struct timeline *t, uint32_t id);
/* Of its strings: one more than the largest id. */
size_t timeline__nr_strings(const struct timeline *t);
/* mono → real, by the recorded pairs of clock readings (interpolated between them). */
uint64_t timeline__real_ns(const struct timeline *t, uint64_t mono_ns);
/*
 * Streams every span at its end. Spans still open at the end of the capture come last, at the
 * window's end, flagged. fn returns non-zero to stop; that value is returned. May be called again.
 */
int timeline__spans(struct timeline *t, int (*fn)(void *ctx, const struct tl_span *s), void *ctx);
/* Bytes of the file read so far in timeline__spans(), for progress. */
uint64_t timeline__read_bytes(const struct timeline *t);
/*
 * The same with a word at each begin, for what has to know the spans around one (the call tree):
 * begin() may store a value in *data, which comes back as parent_data in the begins of the span's
 * direct children (NULL for an outermost span) and as data in its end. At a begin, the span's end,
 * duration and end flags are not known and zero. Non-zero from either stops, as in
 * timeline__spans().
 */
struct tl_walker {
	int (*begin)(void *ctx, const struct tl_span *s, void *parent_data,
		     void **data); /* or NULL */
	int (*end)(void *ctx, const struct tl_span *s, void *data);
};
int timeline__walk(struct timeline *t, const struct tl_walker *walker, void *ctx);
/* The i-th thing that a span can be (its id is i + 1); NULL past the end. */
const struct tl_description *timeline__description(const struct timeline *t, size_t i);
/*
 * Streams what is in the capture beside spans and samples: ACTIVITY, API, INSTANT and COUNTER
 * records (store/store.h), in the order of the file. The strings, threads and event descriptions
 * that they refer to exist, and no time runs backwards within one. fn returns non-zero to stop;
 * that value is returned.
 */
int timeline__details(struct timeline *t, int (*fn)(void *ctx, const struct store_record *r),
		      void *ctx);

/* ---- stacks and samples ---- */

struct tl_module {
	const char *path, *build_id; /* "" unknown */
	uint32_t kind;               /* enum store_module_kind */
	bool interpreter;            /* CPython's own: "python3.12", "libpython3.12.so.1.0" */
};

enum tl_frame_kind { TL_FRAME_NATIVE = 1, TL_FRAME_PYTHON, TL_FRAME_KERNEL };

struct tl_line {
	/*
	 * Demangled, without parameters and template arguments; Python's qualified name as it is.
	 * Where there is none, "module+0xaddress" or "[unknown]".
	 */
	const char *function;
	const char *full; /* the whole name, demangled */
	const char *file; /* "" unknown */
	uint32_t line;    /* 0 unknown */
	bool named;       /* false: function and full only stand for it */
};

struct tl_frame {    /* pointers are stable, so that a sink can cache by id */
	uint32_t id; /* dense from 1 */
	enum tl_frame_kind kind;
	const struct tl_module *module; /* NULL: not known */
	uint64_t address;               /* in the module's file; a kernel's is absolute */
	const char *op;                 /* the operator whose entry it is; "" none */
	/* Inlined functions first, innermost in front; the last one is the function itself. */
	const struct tl_line *lines;
	uint32_t nr_lines; /* 1 at least */
};

struct tl_stack {
	uint32_t parent; /* the caller's stack, a smaller id; 0: outermost */
	const struct tl_frame *frame;
};

struct tl_sample {
	uint64_t time_ns;
	uint32_t thread; /* index */
	uint32_t stack;  /* 0: nothing of it is known */
	uint64_t weight_ns;
	uint32_t flags; /* enum kprof_sample_flags */
};

/*
 * Whether stacks have the frames of the interpreter's own file that only lead into or out of
 * Python: what its loop and its calls look like in C. Hidden at first; the innermost frames stay,
 * and those that no Python frame is next to. Callers that have stacks already must ask for them
 * again.
 */
void timeline__show_interpreter(struct timeline *t, bool show);
size_t timeline__nr_stacks(const struct timeline *t);
/* NULL: there is none; ids are 1 … nr. */
const struct tl_stack *timeline__stack(const struct timeline *t, uint32_t id);
size_t timeline__nr_frames(const struct timeline *t);
const struct tl_frame *timeline__frame(const struct timeline *t, uint32_t id);
/* A function in a stack: inlined ones each for themselves. */
struct tl_call {
	const struct tl_frame *frame;
	const struct tl_line *line; /* of the frame's */
};
/* Of a stack, innermost first; returns how many, room at most. */
size_t timeline__calls(const struct timeline *t, uint32_t stack, struct tl_call *to, size_t room);
/*
 * Streams the samples, in the order of the file, which is about that of time. Threads and stacks
 * are there. fn returns non-zero to stop; that value is returned.
 */
int timeline__samples(struct timeline *t, int (*fn)(void *ctx, const struct tl_sample *s),
		      void *ctx);

/* Attributes of spans that came too late or were too many, in the last whole pass. */
uint64_t timeline__lost_attrs(const struct timeline *t);
/* END records that closed nothing, in the last whole pass; a sound capture has none. */
uint64_t timeline__orphan_ends(const struct timeline *t);

#endif
