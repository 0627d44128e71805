/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Turns a capture's records into spans with parents, self times and names. It streams: memory
 * depends on the number of strings, threads and open spans, not on the length of the recording.
 *
 * There are two passes. kprof_capture_open() reads the tables (processes, threads, sources, gaps,
 * metadata: what a trace states before its first event); timeline__spans() then streams the events.
 */
#ifndef KPROF_TIMELINE_H
#define KPROF_TIMELINE_H

#include "kprof.h"
#include "kprof/memory.h"

struct tl_process {
	pid_t pid, ppid, ns_pid; /* ns_pid: within its PID namespace; 0: the same */
	const char *comm;        /* "process 42" if it has no name */
	const char *cmdline;
	uint64_t start_ns, exit_ns; /* CLOCK_MONOTONIC */
	bool exit_known;
	uint32_t exit_status; /* as from wait(2) */
	bool has_uid;         /* uid is known */
	uint32_t uid;         /* effective user id */
	const char *user;     /* that user's name where it was recorded; "" not known */
	const char *cgroup;   /* the path of its cgroup; "" not known */
	const char *exe; /* the path of the file that it executes, in its mounts; "" not known */
	/* In a capture that was merged of several machines': the machine, and its PID there. */
	const char *host; /* "": not known, or there is one machine */
	pid_t host_pid;
};

struct tl_thread {
	uint32_t index;
	pid_t pid, tid;
	const char *name; /* the kernel's name, or the one that the thread set by kprof/mark.h */
	/* The name that its language has for it, such as Python's threading.Thread; "" none. */
	const char *own_name;
	const char *title; /* for people: whichever of the two is informative, or both */
	char *made_title;  /* the title if it is made of both, owned by the timeline; else NULL */
	uint64_t start_ns, exit_ns;
	/* When it was recorded, of a merged capture; 0, 0: as long as all. */
	uint64_t recorded_from_ns, recorded_to_ns;
};

/* A module of PyTorch, the calls of which are spans. Texts are "" where they are not known. */
struct tl_nn {
	const char *name;       /* "Linear_0": its class, and its number in its process */
	const char *class_name; /* "Linear" */
	const char *path;       /* "layers.3.attn"; "": not known, or it is an outermost one */
	const char *outermost;  /* name of the module that the path begins at */
	uint64_t number;
};
/* Calls inside of each other that are told of; of more, the innermost. */
#define TL_MAX_MODULES 64

/* An event description; its address is stable, so that a sink can cache by index. */
struct tl_description {
	uint32_t id; /* dense from 1 */
	const char *name, *overload, *category;
	uint32_t source;
	uint32_t flags;
	const struct tl_nn *nn; /* its spans are calls of this module; NULL: of none */
};

struct store_attr;
struct store_record;

/* Attributes of one span; more are left out and counted. */
#define TL_MAX_ATTRS 64

struct tl_span {
	const struct tl_description *description;
	const struct tl_description *parent_what; /* description of the parent; NULL: outermost */
	uint32_t thread;                          /* index */
	uint64_t start_ns, end_ns, self_ns;
	uint64_t id, parent_id;
	uint32_t depth, flags;
	/* The calls of modules around it, outermost first; valid until the function returns. */
	const struct tl_nn *const *modules;
	uint32_t nr_modules;
	uint64_t module_id; /* span id of the innermost of them; 0: there is none */
	/*
	 * The span's attributes, each key once; valid until the function returns. Only at its end.
	 */
	const struct store_attr *attrs;
	uint32_t nr_attrs;
	/*
	 * The times before they were cut to the selected range (timeline__cut()), and which parts
	 * of the span lie outside of it: enum tl_beyond.
	 */
	uint64_t whole_start_ns, whole_end_ns;
	uint32_t beyond;
};

/* Where something with a part in the selected range has further parts. */
enum tl_beyond { TL_BEFORE = 1, TL_AFTER = 2 };

/* A call of a Python function, as long as it is known to go on. */
struct tl_function {
	const struct tl_frame *frame; /* where it is called next, or was last */
	uint32_t thread;              /* index */
	uint64_t start_ns, end_ns;    /* end_ns: 0 at its begin */
	/* Numbers that no span has, except for a parent that is a call of a module; 0: none. */
	uint64_t id, parent_id;
	uint32_t flags; /* KPROF_EVENT_CLOSED, KPROF_EVENT_OPEN_AT_END */
};

/* A timeline is a struct kprof_capture: kprof.h has functions of it, too. */

/* The file that it was opened from. */
const char *timeline__path(const struct kprof_capture *t);
struct cJSON;
/* The value of a key of the metadata, which the caller deletes; NULL: none, or it is no JSON. */
struct cJSON *timeline__meta_json(const struct kprof_capture *t, const char *key);
/* The value of a key of the metadata, malloc'ed, if it is a string and not empty; else NULL. */
char *timeline__meta_text(const struct kprof_capture *t, const char *key);
/* The i-th key in order of first appearance; NULL past the end. */
const char *timeline__meta_key(const struct kprof_capture *t, size_t i);
const struct tl_process *timeline__process(const struct kprof_capture *t, size_t i);
/*
 * The latest process with this PID; NULL: there is none. Where rows and nodes stand for a PID, all
 * processes that had it share them, and this one names them.
 */
const struct tl_process *timeline__process_of(const struct kprof_capture *t, pid_t pid);
/*
 * Of a recording of all processes of a machine: did the process begin and end meanwhile? There may
 * be thousands of them, with a sample each, so that those of one name are shown as one.
 */
bool timeline__is_passing(const struct kprof_capture *t, const struct tl_process *p);
/* The process that had this PID at a time: the first one if none had begun by then. NULL: none. */
const struct tl_process *timeline__process_at(const struct kprof_capture *t, pid_t pid,
					      uint64_t time_ns);
const struct tl_thread *timeline__thread(const struct kprof_capture *t, size_t index);
/* A string of the capture, which lives as long as the timeline; "" if no string has this id. */
const char *timeline__string(const struct kprof_capture *t, uint32_t id);
/* The attribute with this key; NULL: there is none. */
const struct store_attr *timeline__attr(const struct kprof_capture *t,
					const struct store_attr *attrs, uint32_t nr,
					const char *key);
/* Number of strings: one more than the largest id. */
size_t timeline__nr_strings(const struct kprof_capture *t);
/* Monotonic to real time, interpolated between the recorded pairs of clock readings. */
uint64_t timeline__real_ns(const struct kprof_capture *t, uint64_t mono_ns);
/*
 * Streams every span at its end. Spans that are still open at the end of the capture come last,
 * flagged, and end with the window. Calls of modules are left out. fn may return non-zero to stop;
 * that value is returned. May be called several times.
 */
int timeline__spans(struct kprof_capture *t, int (*fn)(void *ctx, const struct tl_span *s),
		    void *ctx);
/*
 * Like timeline__spans(), but also calls begin() at the begin of each span, for callers that need
 * the spans around one (the call tree). begin() may store a value in *data, which comes back as
 * parent_data in the begins of the span's direct children (NULL for an outermost span) and as data
 * in its end(). At a begin, the span's end, duration and end flags are unknown and 0. Either
 * function may return non-zero to stop.
 */
struct tl_function;
struct tl_walker {
	pid_t pid; /* only spans of this process; 0: all */
	/*
	 * Calls of modules are spans like others. Otherwise they are neither handed out nor
	 * anyone's parents, and their time is that of the span around them.
	 */
	bool modules;
	int (*begin)(void *ctx, const struct tl_span *s, void *parent_data,
		     void **data); /* or NULL */
	int (*end)(void *ctx, const struct tl_span *s, void *data);
	/*
	 * Both, or neither: the Python functions that the stacks of operators show, as far as they
	 * are known to go on (python.c). They nest with the spans, also in the order of the calls:
	 * a span's begin() then comes when something of its thread follows. Their ends come late,
	 * but before what the thread does next. Only with modules.
	 */
	int (*enter)(void *ctx, const struct tl_function *f);
	int (*leave)(void *ctx, const struct tl_function *f);
};
/*
 * walker NULL: hands out nothing, but finds the time of the first and the last event and, for each
 * source, how many spans begin and how they end.
 */
int timeline__walk(struct kprof_capture *t, const struct tl_walker *walker, void *ctx);
/* The i-th event description (its id is i + 1); NULL past the end. */
const struct tl_description *timeline__description(const struct kprof_capture *t, size_t i);
/*
 * Streams what the capture has beside spans and samples: ACTIVITY, API, INSTANT and COUNTER records
 * (store/store.h) of process pid or of all (0), in the order of the file. The strings, threads and
 * event descriptions that they refer to exist, and no record ends before it begins. fn may return
 * non-zero to stop; that value is returned.
 */
int timeline__details(struct kprof_capture *t, pid_t pid,
		      int (*fn)(void *ctx, const struct store_record *r), void *ctx);
/*
 * What passes over the file tell how far they are; see store_reader__watch(). With fn NULL, nobody.
 */
void timeline__watch(struct kprof_capture *t, int (*fn)(void *ctx, uint64_t done, uint64_t total),
		     void *ctx);

/* ---- the selected range (kprof_capture_select()) ---- */

/*
 * Until it is called again: whether the times of spans are cut to the selected range, as tables
 * need them, and activities and calls come all, to be cut by timeline__part(). Otherwise both come
 * whole if they have a part in the range, and not at all if they have none.
 */
void timeline__cut(struct kprof_capture *t, bool cut);
/*
 * Cuts a stretch of time to the selected range. Returns false if it has no part in it. *beyond:
 * enum tl_beyond.
 */
bool timeline__part(const struct kprof_capture *t, uint64_t *start_ns, uint64_t *end_ns,
		    uint32_t *beyond);
/* When the recording began, whatever is selected of it; CLOCK_MONOTONIC. */
uint64_t timeline__recorded_from(const struct kprof_capture *t);
/* The window, with what sticks out of the selected range where it comes whole. */
void timeline__extent(const struct kprof_capture *t, uint64_t *start_ns, uint64_t *end_ns);

/* ---- steps of a training ---- */

struct tl_step {
	uint64_t start_ns, end_ns;
	uint64_t number;
	pid_t pid;
	uint32_t thread;      /* index */
	uint32_t description; /* id of the annotation */
	uint32_t flags;       /* of the annotation's span */
};

struct bulk;
/*
 * Fills in the steps (struct tl_step) of all of the recording, by process and time. Those of one
 * process do not overlap. The caller frees them, also after an error.
 */
int timeline__steps(struct kprof_capture *t, struct bulk *steps);

/* ---- modules ---- */

/* Whether the stacks of operators tell calls of Python functions apart: since format 1.6. */
bool timeline__has_functions(const struct kprof_capture *t);
/* Whether calls of modules were recorded. */
bool timeline__has_modules(const struct kprof_capture *t);

/* ---- flows ---- */

struct tl_flow {
	uint64_t from, to; /* ids of spans: an operator, and the autograd node that it has made */
};
/*
 * Fills in the flows (struct tl_flow) between spans of process pid or of all (0), by the first
 * span; each span has one at most. The caller frees them, also after an error.
 */
int timeline__flows(struct kprof_capture *t, pid_t pid, struct bulk *flows);

/* ---- memory ---- */

/* Whether allocations and frees were recorded. */
bool timeline__has_memory(const struct kprof_capture *t);
struct tl_memory {
	uint64_t addr; /* below UINT64_MAX */
	int64_t bytes; /* of a free: negative; never 0 or INT64_MIN */
	/*
	 * In the process, after it: on the CPU, of what was allocated in the recording; on another
	 * device all, as its allocator says.
	 */
	int64_t allocated;
	int64_t reserved; /* by the allocator of a device; 0 on the CPU */
	uint32_t device;  /* TL_MEMORY_CPU, or what timeline__memory_device() names */
};
#define TL_MEMORY_CPU 0
#define TL_MEMORY_DEVICE_BYTES 24
/* "cpu", "cuda:0", "device 30:0" for a type without a name. Returns buf. */
const char *timeline__memory_device(char buf[TL_MEMORY_DEVICE_BYTES], uint32_t device);
/* What an INSTANT record says of memory. False: it is no allocation or free. */
bool timeline__memory(const struct kprof_capture *t, const struct store_record *r,
		      struct tl_memory *out);

/* ---- blocks: a capture of a recording with .alive ---- */

/* Whether it has what was allocated at a moment, instead of what happened. */
bool timeline__has_blocks(const struct kprof_capture *t);
struct tl_block {
	uint64_t addr, bytes;       /* below 2^63 */
	uint64_t time_ns, freed_ns; /* freed_ns 0: it is alive */
	const char *op;             /* "": in none, or not known */
	uint32_t op_id;             /* its string id */
	uint32_t stack;             /* 0: it was not taken */
	uint32_t device;            /* as in struct tl_memory */
	uint32_t thread;            /* one of its process's */
};
/* From then on, each that was allocated or freed is among them; 0: from the begin. */
uint64_t timeline__blocks_since_ns(const struct kprof_capture *t);
/*
 * Streams the blocks of process pid or of all (0), also of the latest that were freed. fn may
 * return non-zero to stop; that value is returned.
 */
int timeline__blocks(struct kprof_capture *t, pid_t pid,
		     int (*fn)(void *ctx, const struct tl_block *b), void *ctx);

/* ---- counters (kprof_capture_counter()) ---- */

#define TL_MAX_COUNTERS 8
/*
 * What a span had of each counter, at its end. Returns which of them are known: bit i for the i-th.
 */
uint32_t timeline__counts(const struct kprof_capture *t, const struct tl_span *s,
			  uint64_t values[TL_MAX_COUNTERS]);

/* ---- stacks and samples ---- */

struct tl_module {
	const char *path, *build_id; /* "" unknown */
	uint32_t kind;               /* enum store_module_kind */
	bool interpreter;            /* CPython's own file: "python3.12", "libpython3.12.so.1.0" */
};

enum tl_frame_kind { TL_FRAME_NATIVE = 1, TL_FRAME_PYTHON, TL_FRAME_KERNEL };

struct tl_line {
	/*
	 * The name, demangled, without parameters and template arguments; Python's qualified name
	 * as it is. If the name is unknown, "module+0xaddress" or "[unknown]".
	 */
	const char *function;
	const char *full; /* the whole name, demangled */
	const char *file; /* "" unknown */
	uint32_t line;    /* 0 unknown */
	bool named;       /* false: the name is unknown, function and full are replacements */
};

struct tl_frame {    /* its address is stable, so that a sink can cache by id */
	uint32_t id; /* dense from 1 */
	enum tl_frame_kind kind;
	const struct tl_module *module; /* NULL: unknown */
	uint64_t address;               /* in the module's file; absolute for the kernel */
	const char *op;                 /* operator whose entry the function is; "" none */
	/* Inlined functions, innermost first; the last one is the function itself. */
	const struct tl_line *lines;
	uint32_t nr_lines; /* at least 1 */
	/*
	 * Of a Python frame in the stack of an operator: its function's first line, the offset of
	 * its instruction, enum tl_place_flags, and the begin of the outermost loop around the
	 * instruction + 1. 0 where these are not known, or it is in no loop.
	 */
	uint32_t first_line, instr, place, loop;
};

enum tl_place_flags {
	TL_PLACE_RESUMED = 1, /* the function is a generator or a coroutine */
	TL_PLACE_KNOWN = 2,
};

struct tl_stack {
	/* Id of the caller's stack, which is smaller; 0: this frame is outermost. */
	uint32_t parent;
	const struct tl_frame *frame;
};

size_t timeline__nr_stacks(const struct kprof_capture *t);
/* The stack of this id; NULL: there is none. Ids are 1 … nr. */
const struct tl_stack *timeline__stack(const struct kprof_capture *t, uint32_t id);
size_t timeline__nr_frames(const struct kprof_capture *t);
const struct tl_frame *timeline__frame(const struct kprof_capture *t, uint32_t id);
/* A function in a stack; each inlined function is an element of its own. */
struct tl_call {
	const struct tl_frame *frame;
	const struct tl_line *line; /* one of the frame's lines */
};
/* Fills in the functions of a stack, innermost first; returns how many, at most room. */
size_t timeline__calls(const struct kprof_capture *t, uint32_t stack, struct tl_call *to,
		       size_t room);
/*
 * Streams the samples (SAMPLE records) of process pid or of all (0), in the order of the file,
 * which is roughly that of time. Of a capture of blocks: each that is alive, with its bytes as the
 * weight. Their threads and stacks exist. fn may return non-zero to stop;
 * that value is returned.
 */
int timeline__samples(struct kprof_capture *t, pid_t pid,
		      int (*fn)(void *ctx, const struct store_record *r), void *ctx);

/* ---- waits ---- */

/* How long a thread ran and waited in the recording, all of its waits, short ones too. */
struct tl_thread_time {
	uint64_t start_ns, end_ns;
	uint64_t on_ns, runnable_ns, blocked_ns; /* runnable: without a CPU */
	uint64_t switches;                       /* how often it left a CPU */
	uint64_t told; /* how many of its waits were long enough to record */
};

/* NULL: not known. */
const struct tl_thread_time *timeline__thread_time(const struct kprof_capture *t, size_t thread);
/*
 * Streams the WAIT records of process pid or of all (0), roughly in order of their ends. Their
 * threads, stacks and strings exist, and start_ns <= wake_ns <= end_ns. fn may return non-zero to
 * stop; that value is returned.
 */
int timeline__waits(struct kprof_capture *t, pid_t pid,
		    int (*fn)(void *ctx, const struct store_record *r), void *ctx);
struct tl_wait {
	uint64_t start_ns, wake_ns, end_ns;
	const char *reason; /* timeline__wait_reason() */
	uint32_t thread;
	uint32_t waker;      /* index + 1 of the thread; 0: an interrupt, or none that is known */
	uint32_t waker_comm; /* string id: the name of who woke it; 0: an interrupt, or nobody */
	uint32_t stack, waker_stack;
	uint32_t note; /* the caller's */
};

/*
 * Makes *list an array of all waits (struct tl_wait), sorted by thread and time; those of a thread
 * do not overlap. note: its result is kept with each wait; NULL: 0. The caller frees the list, also
 * after an error.
 */
int timeline__list_waits(struct kprof_capture *t,
			 uint32_t (*note)(void *ctx, const struct store_record *r), void *ctx,
			 struct bulk *list);
/*
 * The index of the first wait of this thread that ends after a moment, or else of the first one
 * after the thread's.
 */
size_t timeline__find_wait(const struct bulk *list, uint32_t thread, uint64_t ns);
/* Whether the frame's code is that of libc: it tells how a thread waits, not for what. */
bool timeline__is_libc(const struct tl_frame *f);
/* How many machines' captures it was merged of; 1: it was not, or they are of one. */
size_t timeline__machines(const struct kprof_capture *t);
/*
 * How far apart two times of different machines may be from the truth, at most, in a merged
 * capture. 0: they have one clock; UINT64_MAX: nobody knows.
 */
uint64_t timeline__clock_error_ns(const struct kprof_capture *t);
/* A number of the metadata "waits"; 0: it is not there. */
uint64_t timeline__waits_number(const struct kprof_capture *t, const char *key);
/* The thread of the process that had this TID at that time; NULL: none. */
const struct tl_thread *timeline__thread_at(struct kprof_capture *t, pid_t pid, pid_t tid,
					    uint64_t mono_ns);
/* What the wait was for, in a word or two: "futex", "pipe read". Lives as long as the capture. */
const char *timeline__wait_reason(struct kprof_capture *t, const struct store_record *r);
/*
 * Whether an interrupt woke the thread, not the thread that it hit: as far as the kernel told, or
 * the stack shows.
 */
bool timeline__woken_by_interrupt(struct kprof_capture *t, const struct store_record *r);
/*
 * Whether timeline__samples() hands out the waits instead of the samples: as samples off the CPU,
 * with what they were for.
 */
void timeline__show_waits(struct kprof_capture *t, bool show);
bool timeline__shows_waits(const struct kprof_capture *t);

/* How many samples were due, but dropped or missed. */
uint64_t timeline__lost_samples(const struct kprof_capture *t);
/* How many attributes came too late or were too many for one span, in the last complete pass. */
uint64_t timeline__lost_attrs(const struct kprof_capture *t);

#endif
