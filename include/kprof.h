/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libkprof profiles machine-learning processes from outside.
 *
 *   session   a recording: of which processes, of which events, to which file. Needs privileges.
 *   capture   a recorded .kprof file. Needs no privileges.
 *   result    what a capture contains: tables, call tree, events, accounting.
 *
 * Every function that can fail returns 0 (or a count) or a negative errno. Messages for people are
 * then in kprof_error_cause() and kprof_error_hint() of the same thread, until its next call. The
 * caller owns objects from _new/_open until _free/_close. Strings that a struct points to belong to
 * the object that the struct came from, and live as long. No function exits or prints. Times are
 * nanoseconds; "mono" is CLOCK_MONOTONIC, "real" is CLOCK_REALTIME (Unix epoch). An object may be
 * used by one thread at a time; different objects are independent.
 */
#ifndef KPROF_H
#define KPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "kprof/machine.h"
#include "kprof/options.h" /* the options of a recording */
#include "kprof/rights.h"

#ifdef __cplusplus
extern "C" {
#endif

#define KPROF_VERSION_MAJOR 0
#define KPROF_VERSION_MINOR 1
#define KPROF_VERSION_PATCH 0

/* The version of the library that the program runs with: "0.1.0". */
const char *kprof_version(void);

/* ---- errors and messages ---- */

enum kprof_error_class {
	KPROF_ERROR_NONE = 0,
	KPROF_ERROR_FAILED,  /* the operation failed: exit code 1 */
	KPROF_ERROR_USAGE,   /* wrong arguments: exit code 2 */
	KPROF_ERROR_MACHINE, /* permission or a kernel feature is missing: exit code 3 */
};

/* The cause in one sentence; "" if the last call of this thread did not fail. */
const char *kprof_error_cause(void);
/* What to do about it; NULL when nothing helpful is known. */
const char *kprof_error_hint(void);
enum kprof_error_class kprof_error_class(void);

enum kprof_log_level { KPROF_LOG_WARN, KPROF_LOG_INFO, KPROF_LOG_DEBUG };
/* Called for warnings and progress, on the thread that called the library. hint may be NULL. */
typedef void (*kprof_log_fn)(void *ctx, enum kprof_log_level level, const char *text,
			     const char *hint);
void kprof_set_log(kprof_log_fn fn, void *ctx);

/* ---- session: recording ---- */

struct kprof_session;

int kprof_session_new(const struct kprof_session_opts *opts, struct kprof_session **out);
/*
 * Adds a running process and, unless children are excluded, its present descendants. Once the
 * recording has started, they are recorded from now on.
 */
int kprof_session_add_pid(struct kprof_session *s, pid_t pid);
/*
 * Starts argv[0] (searched in PATH) as a child of the caller, and keeps it from executing its first
 * instruction until start() has placed the probes. uid/gid: run it as that user (-1: unchanged),
 * whose HOME, SHELL, USER, LOGNAME and MAIL replace those of the caller's own user. On success *pid
 * is its process id; the caller has to wait for it.
 */
int kprof_session_spawn(struct kprof_session *s, char *const argv[], uid_t uid, gid_t gid,
			pid_t *pid);
/*
 * Does all of kprof_session_start() but for opening the window: places probes, learns return sites,
 * builds tables, lets agents into processes. Nothing is recorded until start(), from which to the
 * first event it then takes no more than some milliseconds. Meanwhile kprof_session_poll() has to
 * be called as during a recording; it returns 1 when all targets have exited. A program that was
 * spawned waits until start(). free() without start() leaves nothing behind.
 */
int kprof_session_prepare(struct kprof_session *s);
int kprof_session_start(struct kprof_session *s);
/*
 * Drains the rings, learns return sites, follows children; to be called repeatedly. Waits up to
 * timeout_ms for something to do. Returns 1 once every target has exited, 0 otherwise. -ENOSPC and
 * other write errors: recording has ended, and what was written before stays readable.
 */
int kprof_session_poll(struct kprof_session *s, int timeout_ms);

/*
 * Makes what was recorded so far readable while the recording goes on: names what the stacks met,
 * but for source lines of native code, and writes it to the file, which is a hidden one in the
 * capture's directory until the end.
 */
int kprof_session_checkpoint(struct kprof_session *s);

/*
 * Of a recording that .rotates: ends the capture that is being written, which gets its name, and
 * goes on in a new one that gets the name `path` when it ends: at the next call, or at
 * kprof_session_stop(). Nothing is detached, and nothing lost between the two; each is a capture by
 * itself, with the names found so far (as by kprof_session_checkpoint()), its own window, counts,
 * clocks and costs. Spans that are open are in both: in the old one up to its end
 * (KPROF_EVENT_OPEN_AT_END), in the new one from its begin (KPROF_EVENT_OPEN_AT_START), with an
 * argument "begun_before_ns". What an agent hands over later than that goes into the capture that
 * is written then. kprof_join() (kprof/chunks.h) makes one capture of several. It is not waited for
 * that the old capture reaches the disk.
 *
 * An error of the new path leaves everything as it was. After an error of writing (-ENOSPC), the
 * session goes on without storing anything (kprof_session_stats.unstored) until a rotation to a
 * path that can be written; the new capture then has a gap, and the old one what could be written.
 */
int kprof_session_rotate(struct kprof_session *s, const char *path);

/*
 * Of a recording with .alive: writes a capture of what is allocated now to the path; the recording
 * goes on. kprof_session_stop() writes the same at its end, to .capture_path.
 */
int kprof_session_snapshot(struct kprof_session *s, const char *path);

struct kprof_session_stats {
	uint64_t elapsed_ns;
	uint64_t events;             /* begins captured */
	uint64_t dropped;            /* records lost because the ring was full */
	uint64_t missed;             /* probe runs that the kernel skipped */
	uint64_t written_bytes;      /* size of the capture so far */
	uint32_t processes, threads; /* seen so far */
	uint32_t sites;              /* return sites placed */
	uint64_t attach_ns;          /* time that start() took */
	uint64_t samples;            /* samples in the window; see kprof_session_opts.sample_hz */
	/* Samples whose native stack was walked to the thread's first function. */
	uint64_t samples_whole;
	uint64_t sampled_ns;   /* CPU time that the samples represent */
	uint64_t tables_ns;    /* time until the unwind tables of the first processes were ready */
	uint64_t unwind_bytes; /* kernel memory for unwind tables and mappings */
	uint64_t detach_ns; /* time that stop() took to remove the probes; 0: free() removes them */
	/* With .alive: what is allocated, and allocations for which there was no room. */
	uint64_t blocks, block_bytes, blocks_not_kept;
	/* What the recording has cost, of the CPU time of the processes (kprof/overhead.h). */
	double cost_share;
	/* Of the capture that is being written: what a rotation copies into the next one. */
	uint64_t table_bytes;
	/* Records that could not be stored (.rotates), and why: -errno; 0: all are stored. */
	uint64_t unstored;
	int unstored_error;
	/* The bound (.max_overhead; 0: there is none), and what the last second cost. */
	double max_overhead, last_cost_share;
	/*
	 * CPU time in ns since the window opened, by enum kprof_overhead_part (kprof/overhead.h),
	 * and what shares are of.
	 */
	uint64_t cost_part_ns[6], cost_base_ns;
	uint64_t given_up;     /* how many steps were taken to keep the bound, but for those back */
	uint32_t given_up_now; /* how many kinds of things are not recorded now, but for samples */
	double sample_hz;      /* samples a second and CPU now; 0: there are none */
	uint64_t kernel_bytes; /* kernel memory for maps of BPF programs */
	uint64_t rotations;
};
void kprof_session_stats(const struct kprof_session *s, struct kprof_session_stats *out);

/* With .asked_by: how many signals were sent so far; of the last one: to whom, by whom, which. */
uint64_t kprof_session_asked(const struct kprof_session *s, pid_t *pid, uint32_t *by, int *signal);

/*
 * Removes all probes, drains what is left, and closes the capture. To be called once; free() does
 * the same if it was not called.
 */
int kprof_session_stop(struct kprof_session *s);
/* Removes all probes, and the unfinished capture if stop() was not called. NULL is fine. */
void kprof_session_free(struct kprof_session *s);

/* ---- capture: a recorded file ---- */

struct kprof_capture;

/* Accounting of one source of events: fired = captured + dropped. */
struct kprof_source {
	const char *name;     /* "operators", "autograd", … */
	uint64_t fired;       /* probe runs counted in the kernel */
	uint64_t captured;    /* records that reached user space */
	uint64_t dropped;     /* records lost because the ring was full */
	uint64_t missed;      /* probe runs that the kernel skipped (by its own counters) */
	uint64_t begins;      /* spans begun */
	uint64_t ends_exact;  /* spans whose end was seen at its return site */
	uint64_t ends_closed; /* spans closed by the thread's next event instead, and flagged so */
	uint64_t ends_window; /* spans still open when the recording ended */
	uint64_t orphan_ends; /* ends whose begin was not recorded */
};

struct kprof_capture_info {
	uint16_t format_major, format_minor;
	bool complete; /* false: it was cut short (crash, disk full), and is readable up to there */
	uint64_t lost_bytes; /* bytes at the end of the file that could not be read */
	uint64_t start_mono_ns, end_mono_ns;
	uint64_t start_real_ns; /* real-time clock at start_mono_ns */
	uint64_t size_bytes;
	uint64_t events;     /* number of begins, in complete chunks */
	uint64_t nr_samples; /* number of samples, in complete chunks */
	size_t nr_processes, nr_threads, nr_sources, nr_gaps;
};

int kprof_capture_open(const char *path, struct kprof_capture **out);
const struct kprof_capture_info *kprof_capture_info(const struct kprof_capture *c);
const struct kprof_source *kprof_capture_source(const struct kprof_capture *c, size_t i);
/* Metadata by key ("host", "kernel", "command", "version", …) as JSON text; NULL: there is none. */
const char *kprof_capture_meta(const struct kprof_capture *c, const char *key);
/*
 * Whether stacks show those frames of the CPython binary itself through which Python code is
 * called, and calls others. They are hidden at first, since Python's frames represent them. Applies
 * to results and exports made afterwards.
 */
void kprof_capture_show_interpreter(struct kprof_capture *c, bool show);

/* A part of the recorded time: from one time to another, or some steps of a training. */
struct kprof_range {
	size_t sz;              /* sizeof(struct kprof_range), for compatibility */
	bool has_from, has_to;  /* false: from the begin, to the end of the recording */
	int64_t from_ns, to_ns; /* since the begin of the recording; negative: before its end */
	bool steps; /* steps first_step … last_step (kprof_result_new(), KPROF_BY_STEP) instead */
	uint64_t first_step, last_step;
};
/* What a selected range holds, and how much is outside of it. */
struct kprof_selection {
	uint64_t from_mono_ns, to_mono_ns;
	uint64_t events, events_outside; /* spans with a part in it, spans without */
	uint64_t samples, samples_outside;
	uint64_t activities, activities_outside; /* what devices did */
};
/*
 * Selects a part of the recorded time, for results and exports made afterwards; NULL: all of it
 * again. Results count the time within the range, and calls that begin in it; exports have whole
 * what has a part in it. kprof_capture_info() then has the range as the window. -EINVAL, with what
 * there is: the range is not in the recording.
 */
int kprof_capture_select(struct kprof_capture *c, const struct kprof_range *range);
/* NULL: all of the recorded time is selected. */
const struct kprof_selection *kprof_capture_selection(const struct kprof_capture *c);
void kprof_capture_close(struct kprof_capture *c);

/* How long a thread ran and waited in a recording with .waits; the sum is its life in it. */
struct kprof_thread_time {
	pid_t pid, tid;
	const char *name;
	uint64_t life_ns, on_ns, runnable_ns, blocked_ns;
	uint64_t switches; /* how often it left a CPU */
};
/* Of the i-th thread. 1; 0: not known; -ENOENT: past the end. */
int kprof_capture_thread_time(const struct kprof_capture *c, size_t i,
			      struct kprof_thread_time *out);

/* A process of a capture. Texts belong to the capture. */
struct kprof_capture_process {
	pid_t pid, ppid;
	const char *name, *command; /* command line; "": not known */
	uint64_t start_mono_ns;     /* when it was first seen */
	uint64_t exit_mono_ns;      /* 0: it was alive at the end */
	int exit_status;            /* as from wait(2); -1: not known */
};
/* The i-th. 0, or -ENOENT: past the end. */
int kprof_capture_process(const struct kprof_capture *c, size_t i,
			  struct kprof_capture_process *out);

struct kprof_gap {
	pid_t pid; /* 0: of all processes */
	uint64_t start_mono_ns, end_mono_ns;
	const char *what;   /* "libtorch_cpu.so" or "child process" */
	const char *reason; /* why nothing was recorded during the gap */
};
const struct kprof_gap *kprof_capture_gap(const struct kprof_capture *c, size_t i);

struct kprof_export_opts {
	size_t sz;
	/* Path to write to; "-": standard output; %p: one file for each process. */
	const char *path;
	const char *format; /* "chrome", "flame", "pprof" …; NULL: by the path's suffix */
	int gzip_level;     /* 1 … 9; 0: default */
	pid_t pid;          /* only this process; 0: all */
	uint32_t uid, gid;  /* owner of the files if running as root */
	bool set_owner;
	/*
	 * Called with the number of bytes read and their total; may be NULL. A non-zero result ends
	 * the export with -ECANCELED, and removes the unfinished file.
	 */
	int (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
	void (*wrote)(void *ctx, const char *path); /* called for each finished file; may be NULL */
	bool off_cpu; /* formats of samples: of waits, with the time that was waited, instead */
	/* pprof and otlp: only these processes; none: all that .pid does not leave out. */
	const pid_t *pids;
	size_t nr_pids;
	/*
	 * otlp: the service's name instead of each process's own (NULL), and more resource
	 * attributes, "KEY=VALUE", which replace those of the same key.
	 */
	const char *service;
	const char *const *labels;
	size_t nr_labels;
	/* pprof: without kprof's command line, in which that of a program may be. */
	bool no_command;
};
int kprof_capture_export(struct kprof_capture *c, const struct kprof_export_opts *opts);
/* 0 if the suffix is that of a format; -EISDIR; else -EINVAL, with an error that lists them. */
int kprof_export_check_path(const char *path);
/* Whether the path's format shows only samples, and so is none for a capture without any. */
bool kprof_export_of_samples(const char *path);

/* ---- result: what a capture says ---- */

enum kprof_event_flags {
	KPROF_EVENT_CLOSED = 1,        /* its end was not seen: the thread's next event closed it */
	KPROF_EVENT_OPEN_AT_END = 2,   /* still open at the end of the window, and drawn to it */
	KPROF_EVENT_OPEN_AT_START = 4, /* begun before the window */
	KPROF_EVENT_UNNAMED = 8,       /* its name could not be read */
	/*
	 * The result of a call of a device's runtime was seen: without an attribute "error" it
	 * succeeded. Without this flag it is not known whether it did.
	 */
	KPROF_EVENT_RESULT = 16,
};

struct kprof_event {
	uint64_t start_mono_ns, end_mono_ns;
	uint64_t self_ns; /* duration minus that of its direct children */
	pid_t pid, tid;
	const char *name;        /* "aten::add" */
	const char *overload;    /* "Tensor"; "" none */
	const char *category;    /* "cpu_op", "user_annotation", … */
	uint32_t source;         /* index of the source, for kprof_capture_source() */
	uint32_t flags;          /* enum kprof_event_flags */
	uint32_t depth;          /* 0: outermost of its thread */
	uint64_t id, parent_id;  /* numbered from 1 in order of begin; parent 0: none */
	const char *parent_name; /* NULL: none */
};
/* Calls fn for every span, in order of end, children before parents; non-zero stops. */
int kprof_capture_events(struct kprof_capture *c, int (*fn)(void *ctx, const struct kprof_event *e),
			 void *ctx);

/* ---- samples: stacks of running threads ---- */

/* A state, the interpreter's lock, and how the walk over the native stack ended. */
enum kprof_sample_flags {
	KPROF_SAMPLE_STATE = 0xf, /* mask: one of these three */
	KPROF_SAMPLE_USER = 0,    /* on a CPU, in the program's code */
	KPROF_SAMPLE_KERNEL = 1,  /* on a CPU, in the kernel */
	KPROF_SAMPLE_OFF_CPU = 2,
	KPROF_SAMPLE_GIL = 1 << 4,      /* holds the global interpreter lock */
	KPROF_SAMPLE_GIL_WAIT = 1 << 5, /* waits for that lock */
	KPROF_SAMPLE_END_SHIFT = 8,     /* shift: how the walk ended, see kprof_sample_end() */
	KPROF_SAMPLE_END = 0xff << 8,   /* mask */
	/* The stack is deeper than what was recorded: outer frames are missing. */
	KPROF_SAMPLE_CUT = 1 << 16,
};

enum kprof_frame_kind { KPROF_FRAME_NATIVE = 1, KPROF_FRAME_PYTHON, KPROF_FRAME_KERNEL };

/* A function in a stack. Texts live until the capture is closed. */
struct kprof_frame {
	enum kprof_frame_kind kind;
	bool inlined; /* inlined into the function that follows */
	/* for display: template arguments shortened; unknown: "libx.so+0x12", "[unknown]" */
	const char *function;
	const char *name;     /* the whole name */
	const char *file;     /* source file; "" unknown */
	uint32_t line;        /* 0 unknown */
	const char *module;   /* path of the module; "" unknown */
	const char *build_id; /* the module's build id, in hexadecimal; "" unknown */
	uint64_t address;     /* address in the module's file; absolute for the kernel; Python: 0 */
	const char *op;       /* operator whose entry this function is, "aten::add"; "" none */
};

struct kprof_sample {
	uint64_t time_mono_ns;
	uint64_t weight_ns; /* time that the sample represents */
	pid_t pid, tid;
	uint32_t flags;                   /* enum kprof_sample_flags */
	const struct kprof_frame *frames; /* innermost first; valid until the function returns */
	size_t nr_frames; /* at most KPROF_SAMPLE_MAX_FRAMES: see KPROF_SAMPLE_CUT */
};
#define KPROF_SAMPLE_MAX_FRAMES 4096

/* Calls fn for every sample, roughly in order of time; a result other than 0 ends it. */
int kprof_capture_samples(struct kprof_capture *c,
			  int (*fn)(void *ctx, const struct kprof_sample *s), void *ctx);

/*
 * How reliable the samples are: how far the walks over native stacks went. A thread that runs
 * nothing native has no such stack.
 */
#define KPROF_SAMPLE_NR_ENDS 256
#define KPROF_SAMPLE_END_NONE 0  /* no native stack was walked */
#define KPROF_SAMPLE_END_WHOLE 1 /* the walk reached the thread's first function */
struct kprof_sample_stats {
	uint64_t samples, weight_ns;
	uint64_t lost; /* dropped by the ring or missed by the kernel */
	/* Number of samples by how the walk ended: kprof_sample_end(). */
	uint64_t ends[KPROF_SAMPLE_NR_ENDS];
	/* Samples whose stack reaches the thread's first function, with no frame cut. */
	uint64_t whole;
	uint64_t walked; /* samples whose native stack was walked */
	uint64_t cut;
};
int kprof_capture_sample_stats(struct kprof_capture *c, struct kprof_sample_stats *out);
/*
 * In words how a walk over native frames ended: "no table". end: an index of ends[], or flags >>
 * KPROF_SAMPLE_END_SHIFT & 0xff.
 */
const char *kprof_sample_end(uint32_t end);
/*
 * How walks ended in the whole recording, by what ran the process ("CPython", "Java", "native") and
 * the end's name in the capture ("whole", "no_table"): calls fn for each pair that was met. A
 * result other than 0 ends it, and is returned.
 */
int kprof_capture_walks(const struct kprof_capture *c,
			int (*fn)(void *ctx, const char *runtime, const char *end, uint64_t nr),
			void *ctx);

enum kprof_by {
	KPROF_BY_OP,
	KPROF_BY_THREAD,
	KPROF_BY_KERNEL,   /* device activities by name */
	KPROF_BY_API,      /* calls of device runtimes and drivers */
	KPROF_BY_STREAM,   /* device activities by device and stream */
	KPROF_BY_MEMCPY,   /* copies and sets by kind */
	KPROF_BY_IDLE,     /* gaps of each device by what the host did meanwhile */
	KPROF_BY_FUNCTION, /* samples by function */
	KPROF_BY_LINE,     /* samples by function and line */
	KPROF_BY_PROCESS,
	KPROF_BY_USER,      /* processes by the user whose they are */
	KPROF_BY_STEP,      /* steps of a training, by annotations that look like one */
	KPROF_BY_CONTAINER, /* processes by the container that they are in */
	KPROF_BY_WAIT,      /* waits by what for and thread; of several with one name together */
	/* memory by operator and process: what was in use at most; see also kprof/memory.h */
	KPROF_BY_MEMORY,
	KPROF_BY_MODULE,     /* PyTorch's modules */
	KPROF_BY_COLLECTIVE, /* see kprof/collectives.h */
	/* operators whose floating-point operations are known, where inputs were recorded */
	KPROF_BY_FLOPS,
};
enum kprof_sort {
	KPROF_SORT_SELF,
	KPROF_SORT_TOTAL,
	KPROF_SORT_COUNT,
	KPROF_SORT_AVG,
	KPROF_SORT_NAME
};

/*
 * Tables of devices: a kernel's self time is its total; a stream's is the time that it was busy;
 * idle time is that of gaps in which the device did nothing, explained by what the thread that
 * launched the next work did meanwhile (category: the cause in a word).
 *
 * Tables of samples: always by function and line; by operator and thread if a capture has samples
 * but no spans of operators (kprof_result_of_samples()). A sample's weight is self time of its
 * innermost function, and total time of every function in its stack, once each; inlined functions
 * count as functions. The sample belongs to the operator whose entry is innermost in the stack.
 * Every sample is in some row: those without an operator, or without a frame of the requested kind,
 * in a row of their own; functions without a name are counted by module.
 */
struct kprof_row {
	const char *name;     /* operator, or "PID/TID name" */
	const char *category; /* "" by thread; by process and user: the user's name */
	pid_t pid, tid;       /* in tables by thread, stream and idle; else 0 */
	uint64_t calls;
	/*
	 * Of the timed calls. Each moment counts once in a row's total, however many of its calls
	 * were open then; self <= total, and all rows' self times add up to at most the window for
	 * each thread.
	 */
	uint64_t total_ns;
	uint64_t self_ns;
	uint64_t min_ns, max_ns;
	uint64_t timed;   /* calls that the times include: all but those whose end was closed */
	uint64_t inexact; /* calls whose end was not seen: closed, or open at the end */
	/*
	 * Share, 0 … 1, of the time in timed calls of any row (by operator and thread; without
	 * untimed calls inside of them, that is all self time), else of all self time.
	 */
	double self_share;
	/* Only in some tables; else 0. */
	uint64_t errors;  /* by API: calls that are known to have failed */
	uint64_t bytes;   /* by memcpy: bytes copied or set */
	uint64_t idle_ns; /* by stream: time of the recording without work */
	uint32_t device;  /* by stream and idle: the device's ordinal in process pid */
	uint32_t stream;  /* by stream: the stream; UINT32_MAX: all streams of the device */
	/*
	 * In tables of samples, calls are samples with the function anywhere in the stack,
	 * self_samples those with it innermost.
	 */
	const char *where; /* by function and line: path of the module or source file; else "" */
	uint64_t self_samples;
	/* By thread: time with the interpreter's lock, and waiting for it. */
	uint64_t gil_ns, gil_wait_ns;
	/*
	 * In tables of samples by operator: where most of the operator's total time was called
	 * from, and the share of that; else NULL or "".
	 */
	const char *caller; /* the innermost Python line that called it: "train.py:12 step" */
	const char *node;   /* the innermost autograd node: "AddmmBackward0" */
	double caller_share, node_share;
	double total_share; /* of the same whole; of samples, of all samples' time */
	/* Of samples: the 95 % confidence intervals of both shares (Wilson's). */
	double self_low, self_high, total_low, total_high;
	uint64_t unknown_results; /* by API: calls of which is not known whether they failed */
	/*
	 * By process, user and step: calls are those of operators, total_ns their time (of a step,
	 * its duration), self_samples and self_ns the samples and the CPU time they stand for.
	 */
	uint64_t op_ns;        /* time in operators, on all threads */
	uint64_t begun_before; /* by process: of the calls, those from before the recording */
	uint64_t device_ns;    /* time in which a device worked for it */
	uint64_t gaps, gap_ns; /* times and places without probes */
	uint64_t start_ns;     /* by step: since the begin of the recording */
	uint64_t step;         /* by step: its number */
	uint32_t uid;          /* by process and user; UINT32_MAX: not recorded */
	uint32_t processes;    /* by user */
	const char *top;       /* by step: the operator with most self time; "" none */
	double top_share;      /* of all operators' self time in the step */
	uint64_t runnable_ns;  /* by wait: of total_ns, the time that only a CPU was missing */
	/*
	 * By operator, where memory was recorded: the bytes allocated minus those freed during the
	 * calls, each once however many calls were open, and the part of that in none of the calls
	 * inside of them. By memory: memory_bytes is what was allocated on memory_device,
	 * calls how often.
	 */
	int64_t memory_bytes, self_memory_bytes;
	/* The same of devices other than the CPU, all together; 0 by memory. */
	int64_t device_memory_bytes, self_device_memory_bytes;
	const char *memory_device; /* by memory: "cpu", "cuda:0"; else NULL */
	uint64_t flops; /* by operator, where inputs were recorded: as torch.profiler counts them */
	/* By memory: of that, what was in use when the process had most of it. */
	int64_t peak_bytes;
	uint64_t peak_blocks;
	/* By memory: what was allocated in a step and in use at the end of the second next one. */
	int64_t kept_bytes;
	uint64_t kept_blocks, kept_steps;               /* in how many steps */
	const struct kprof_step_info *in_step;          /* by step: see kprof/steps.h; else NULL */
	const struct kprof_collective_info *collective; /* by collective; else NULL */
	/*
	 * By flops: where is "device" or "cpu", category the type of the first tensor's elements,
	 * bytes those that the calls had to read or write at least (0: not known), total_ns how
	 * long the device worked for them (on a CPU, the calls' own time), inexact the calls that
	 * are left out, as this is not known. What the device can do at its highest clock, in a
	 * second, on elements of that type; 0: not known. Rows with flops 0 and category "" are
	 * what else devices worked for: by operator, or by kernel where no operator launched it.
	 */
	double flops_peak, bytes_peak;
	/* the same as flops_peak, if only products of shortened floats (TF32) are so fast; or 0 */
	double tf32_peak;
};

struct kprof_result;
int kprof_result_new(struct kprof_capture *c, enum kprof_by by, enum kprof_sort sort,
		     struct kprof_result **out);
/* For tables of samples by function and line: which frames to use, as if there were no others. */
enum kprof_frames {
	KPROF_FRAMES_ALL,
	KPROF_FRAMES_NATIVE /* including the kernel's */,
	KPROF_FRAMES_PYTHON
};
struct kprof_result_opts {
	size_t sz;
	enum kprof_by by;
	enum kprof_sort sort;
	enum kprof_frames frames;
	bool off_cpu; /* by function, line, op and thread: of waits instead of samples */
};
int kprof_result_new_opts(struct kprof_capture *c, const struct kprof_result_opts *opts,
			  struct kprof_result **out);
/* Whether the result's rows were made from samples. */
bool kprof_result_of_samples(const struct kprof_result *r);
size_t kprof_result_nr_rows(const struct kprof_result *r);
const struct kprof_row *kprof_result_row(const struct kprof_result *r, size_t i);
uint64_t kprof_result_self_total_ns(const struct kprof_result *r);
void kprof_result_free(struct kprof_result *r);

/*
 * Call tree: spans merged by the path of their names. The root has the name "", no calls of its
 * own, and covers all threads. Children are sorted by descending total time, then by name.
 */
struct kprof_node {
	const char *name;
	uint64_t calls, total_ns, self_ns;
	const struct kprof_node *first_child, *next_sibling, *parent;
};
struct kprof_tree;
int kprof_tree_new(struct kprof_capture *c, struct kprof_tree **out);
const struct kprof_node *kprof_tree_root(const struct kprof_tree *t);
void kprof_tree_free(struct kprof_tree *t);

#ifdef __cplusplus
}
#endif

#include "kprof/dump.h" /* what every thread of a process does now */

#endif /* KPROF_H */
