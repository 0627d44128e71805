/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libkprof: profile machine-learning processes from outside.
 *
 *   session   what is recorded: which processes, which events, where to. Needs privileges.
 *   capture   a recorded .kprof file. Needs none.
 *   result    what a capture says: tables, call tree, events, accounting.
 *
 * Every function that can fail returns 0 (or a count) or a negative errno; the words for a person
 * are in kprof_error_cause() and kprof_error_hint() of the same thread until its next call.
 * Objects are owned by the caller from _new/_open until _free/_close. Strings that a struct hands
 * out belong to the object they came from and live as long. No function exits or prints.
 * Times are nanoseconds; "mono" is CLOCK_MONOTONIC, "real" is CLOCK_REALTIME (Unix epoch).
 * One object is used by one thread at a time; different objects are independent.
 */
#ifndef KPROF_H
#define KPROF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KPROF_VERSION_MAJOR 0
#define KPROF_VERSION_MINOR 1
#define KPROF_VERSION_PATCH 0

/* "0.1.0" of the library at run time. */
const char *kprof_version(void);

/* ---- errors and messages ---- */

enum kprof_error_class {
	KPROF_ERROR_NONE = 0,
	KPROF_ERROR_FAILED,  /* it went wrong: exit code 1 */
	KPROF_ERROR_USAGE,   /* it was asked wrongly: exit code 2 */
	KPROF_ERROR_MACHINE, /* permission or a kernel feature is missing: exit code 3 */
};

/* One sentence; "" when the last call of this thread did not fail. */
const char *kprof_error_cause(void);
/* What to do about it; NULL when nothing helpful is known. */
const char *kprof_error_hint(void);
enum kprof_error_class kprof_error_class(void);

enum kprof_log_level { KPROF_LOG_WARN, KPROF_LOG_INFO, KPROF_LOG_DEBUG };
/*
 * Called for warnings and progress, from the thread that called into the library. hint may be NULL.
 */
typedef void (*kprof_log_fn)(void *ctx, enum kprof_log_level level, const char *text,
			     const char *hint);
void kprof_set_log(kprof_log_fn fn, void *ctx);

/* ---- what there is: processes, the machine ---- */

struct kprof_process_info {
	pid_t pid;
	pid_t ppid;
	uid_t uid;
	uint32_t nr_threads;
	const char *comm;       /* kernel's short name */
	const char *cmdline;    /* arguments joined by blanks */
	const char *frameworks; /* "pytorch 2.15.0" …, comma-separated; "" none found */
	const char *runtimes;   /* "cuda 13", "opencl" …; "" none found */
	const char *python;     /* "3.11"; "" not a Python process */
};

/*
 * Calls fn for every process whose libraries can be read: those with a known framework or
 * runtime, or all of them. fn returns non-zero to stop; that value is returned.
 */
int kprof_list_processes(bool all, int (*fn)(void *ctx, const struct kprof_process_info *info),
			 void *ctx);

enum kprof_check_state { KPROF_CHECK_OK, KPROF_CHECK_MISSING, KPROF_CHECK_FATAL, KPROF_CHECK_NOTE };
struct kprof_check_line {
	enum kprof_check_state state; /* MISSING: kprof does without; FATAL: attach cannot work */
	const char *name;             /* "uprobe_multi" */
	const char *detail;           /* "attached to a test function" */
	const char *hint;             /* NULL or what to do */
};
typedef int (*kprof_check_fn)(void *ctx, const struct kprof_check_line *line);

/*
 * What this machine allows: tries each feature for real. 0: attach can work; -EPERM/-ENOTSUP: not.
 */
int kprof_check_machine(kprof_check_fn fn, void *ctx);
/*
 * What a session would do to this process: frameworks found, probes per catalog row by cost
 * class, rows that the build hides. Changes nothing in the process. verbose adds the rows.
 */
int kprof_check_process(pid_t pid, bool verbose, kprof_check_fn fn, void *ctx);

/* ---- session: recording ---- */

enum kprof_children {
	KPROF_CHILDREN_FOLLOW = 0, /* probes are placed in a forked child once its fork is seen; the
				    * time before that is a declared gap */
	KPROF_CHILDREN_NONE,       /* only the given processes */
	KPROF_CHILDREN_EXACT,      /* from the child's first instruction: probes stand in every
				    * process that maps the libraries, and each pays for its hits */
};

enum kprof_agent_mode {
	/* in processes that use a device: at launch where there is a door, else injected */
	KPROF_AGENT_AUTO = 0,
	KPROF_AGENT_NONE, /* nothing is put into any process: calls only, no device activities */
};

struct kprof_session_opts {
	size_t sz;                /* sizeof(struct kprof_session_opts), for compatibility */
	const char *capture_path; /* .kprof file to write; appears when complete (see stop) */
	uint64_t ring_bytes;      /* of all ring buffers together; 0: by the machine's size */
	enum kprof_children children;
	const char *const *ops; /* glob patterns of operator names to record; NULL: all */
	size_t nr_ops;
	const char *const *exclude; /* glob patterns of names left out */
	size_t nr_exclude;
	const char *command;        /* the command line, for the trace's metadata; may be NULL */
	bool no_multi;              /* single uprobes even where uprobe_multi works (tests) */
	uint32_t max_single_probes; /* without uprobe_multi: at most so many; 0: default */
	uint32_t capture_uid;       /* owner of the file when running as root; with capture_gid */
	uint32_t capture_gid;
	bool set_owner; /* use capture_uid/gid */
	enum kprof_agent_mode agent;
	/* libkprof_agent.so; NULL: beside the program, or where it was installed */
	const char *agent_library;
	uint64_t types; /* bits 1 << enum kprof_activity to record; 0: the default ones */
	bool cuda_sync; /* what each synchronization waited for */
	/* take the stack of whatever runs so many times a second and CPU; 0: don't */
	uint32_t sample_hz;
	bool with_stack;      /* the stack at each begin of an operator or device call … */
	uint32_t stack_rate;  /* … so many a second and thread at most, spread evenly; 0: all */
	bool samples_only;    /* place no probes and put nothing into any process: samples alone */
	bool gil_only;        /* keep only samples of threads that hold the interpreter's lock */
	char privateuse1[32]; /* what the PrivateUse1 backend was renamed to; "": it was not */
};

/*
 * Fills in .types and .privateuse1: of torch.profiler's sets ("cpu,cuda", "privateuse1=NAME") and
 * single types ("kernel,gpu_memcpy"), together; both NULL: the default. -EINVAL: no such name.
 */
int kprof_session_opts_activities(struct kprof_session_opts *opts, const char *sets,
				  const char *types);
/* The i-th type of activity by name; NULL past the end. */
const char *kprof_activity_name(size_t i);

struct kprof_session;

int kprof_session_new(const struct kprof_session_opts *opts, struct kprof_session **out);
/* Adds a running process and, unless children are off, its present descendants. */
int kprof_session_add_pid(struct kprof_session *s, pid_t pid);
/*
 * Starts argv[0] (searched in PATH) as a child of the caller, held before its first instruction
 * until start() has placed the probes. uid/gid: run it as that user (-1: unchanged).
 * On success *pid is its process id; the caller waits for it.
 */
int kprof_session_spawn(struct kprof_session *s, char *const argv[], uid_t uid, gid_t gid,
			pid_t *pid);
int kprof_session_start(struct kprof_session *s);
/*
 * Drains the rings, learns return sites, follows children; call it again and again. Waits up to
 * timeout_ms for something to do. Returns 1 once every target has exited, 0 otherwise.
 * -ENOSPC and other write errors: recording has ended, what was written before stays readable.
 */
int kprof_session_poll(struct kprof_session *s, int timeout_ms);

struct kprof_session_stats {
	uint64_t elapsed_ns;
	uint64_t events;             /* begins captured */
	uint64_t dropped;            /* records that found the ring full */
	uint64_t missed;             /* probe runs that the kernel itself skipped */
	uint64_t written_bytes;      /* of the capture so far */
	uint32_t processes, threads; /* seen so far */
	uint32_t sites;              /* return sites placed */
	uint64_t attach_ns;          /* time start() took */
	uint64_t samples;            /* in the window; see kprof_session_opts.sample_hz */
	uint64_t samples_whole; /* … whose native stack was walked to the thread's first function */
	uint64_t sampled_ns;    /* the CPU time that they stand for */
	uint64_t tables_ns;     /* until the unwind tables of the first processes were ready */
	uint64_t unwind_bytes; /* kernel memory for tables and mappings */
	uint64_t detach_ns;    /* time stop() took for removing the probes; 0: free() does it */
};
void kprof_session_stats(const struct kprof_session *s, struct kprof_session_stats *out);

/*
 * Removes every probe, drains what is left, closes the capture. Once; free() does it if not done.
 */
int kprof_session_stop(struct kprof_session *s);
/* Removes every probe, and the unfinished capture if stop() has not been called. NULL is fine. */
void kprof_session_free(struct kprof_session *s);

/* ---- capture: a recorded file ---- */

struct kprof_capture;

/* Accounting of one source of events. fired = captured + dropped. */
struct kprof_source {
	const char *name;     /* "operators", "autograd", … */
	uint64_t fired;       /* probe runs counted in the kernel */
	uint64_t captured;    /* records that reached user space */
	uint64_t dropped;     /* records that found the ring full */
	uint64_t missed;      /* runs that the kernel skipped (its own counters) */
	uint64_t begins;      /* spans begun */
	uint64_t ends_exact;  /* … whose end was seen at its return site */
	uint64_t ends_closed; /* … closed by the thread's next event instead, and marked so */
	uint64_t ends_window; /* … open when the recording ended */
	uint64_t orphan_ends; /* ends whose begin was not recorded */
};

struct kprof_capture_info {
	uint16_t format_major, format_minor;
	bool complete;       /* false: cut short (crash, disk full); readable up to there */
	uint64_t lost_bytes; /* at the end of the file, that could not be read */
	uint64_t start_mono_ns, end_mono_ns;
	uint64_t start_real_ns; /* real-time clock at start_mono_ns */
	uint64_t size_bytes;
	uint64_t events;     /* begins, in whole chunks */
	uint64_t nr_samples; /* likewise */
	size_t nr_processes, nr_threads, nr_sources, nr_gaps;
};

int kprof_capture_open(const char *path, struct kprof_capture **out);
const struct kprof_capture_info *kprof_capture_info(const struct kprof_capture *c);
const struct kprof_source *kprof_capture_source(const struct kprof_capture *c, size_t i);
/* Metadata by key ("host", "kernel", "command", "version", …) as JSON text; NULL: not there. */
const char *kprof_capture_meta(const struct kprof_capture *c, const char *key);
/*
 * Whether stacks show the frames of the CPython binary itself by which Python code is called, and
 * calls. Not at first: Python's frames stand for them. For results and exports that are made
 * afterwards.
 */
void kprof_capture_show_interpreter(struct kprof_capture *c, bool show);
void kprof_capture_close(struct kprof_capture *c);

struct kprof_gap {
	pid_t pid;
	uint64_t start_mono_ns, end_mono_ns;
	const char *what;   /* "libtorch_cpu.so" or "child process" */
	const char *reason; /* why nothing was recorded meanwhile */
};
const struct kprof_gap *kprof_capture_gap(const struct kprof_capture *c, size_t i);

struct kprof_export_opts {
	size_t sz;
	const char *path;   /* where to; "-": standard output; %p: one file per process */
	const char *format; /* "chrome", "flame", "pprof" …; NULL: by the path's suffix */
	int gzip_level;     /* 1 … 9; 0: default */
	pid_t pid;          /* only this process; 0: all */
	uint32_t uid, gid;  /* owner of the files when running as root */
	bool set_owner;
	/*
	 * Bytes read; may be NULL. Non-zero ends the export: -ECANCELED, the unfinished file is
	 * gone.
	 */
	int (*progress)(void *ctx, uint64_t done, uint64_t total);
	void *ctx;
	void (*wrote)(void *ctx, const char *path); /* per finished file; may be NULL */
};
int kprof_capture_export(struct kprof_capture *c, const struct kprof_export_opts *opts);
/*
 * 0 when the path's suffix names a format; -EISDIR when it is a directory; else -EINVAL, and the
 * error lists those there are.
 */
int kprof_export_check_path(const char *path);
/*
 * Whether the path's format shows samples and nothing else: a capture without them can't be written
 * in it.
 */
bool kprof_export_of_samples(const char *path);

/* ---- result: what a capture says ---- */

enum kprof_event_flags {
	KPROF_EVENT_CLOSED = 1,        /* end not seen exactly: the thread's next event closed it */
	KPROF_EVENT_OPEN_AT_END = 2,   /* still open at the window's end, drawn to it */
	KPROF_EVENT_OPEN_AT_START = 4, /* begun before the window */
	KPROF_EVENT_UNNAMED = 8,       /* its name could not be read */
};

struct kprof_event {
	uint64_t start_mono_ns, end_mono_ns;
	uint64_t self_ns; /* duration less that of its direct children */
	pid_t pid, tid;
	const char *name;        /* "aten::add" */
	const char *overload;    /* "Tensor"; "" none */
	const char *category;    /* "cpu_op", "user_annotation", … */
	uint32_t source;         /* index for kprof_capture_source() */
	uint32_t flags;          /* enum kprof_event_flags */
	uint32_t depth;          /* 0: outermost of its thread */
	uint64_t id, parent_id;  /* in order of begin, from 1; parent 0: none */
	const char *parent_name; /* NULL: none */
};
/* Every span, in order of end, children before parents. fn returns non-zero to stop. */
int kprof_capture_events(struct kprof_capture *c, int (*fn)(void *ctx, const struct kprof_event *e),
			 void *ctx);

/* ---- samples: where threads were when they were looked at ---- */

/*
 * A sample's flags: a state, who has the interpreter's lock, and how the walk over the native stack
 * ended.
 */
enum kprof_sample_flags {
	KPROF_SAMPLE_STATE = 0xf, /* mask: one of these three */
	KPROF_SAMPLE_USER = 0,    /* on a CPU, in the program's code */
	KPROF_SAMPLE_KERNEL = 1,  /* on a CPU, in the kernel */
	KPROF_SAMPLE_OFF_CPU = 2,
	KPROF_SAMPLE_GIL = 1 << 4,      /* holds the global interpreter lock */
	KPROF_SAMPLE_GIL_WAIT = 1 << 5, /* waits for it */
	KPROF_SAMPLE_END_SHIFT = 8,     /* how the walk ended */
	KPROF_SAMPLE_END = 0xff << 8,   /* mask */
	KPROF_SAMPLE_CUT = 1 << 16, /* deeper than what was recorded: outer frames are missing */
};

enum kprof_frame_kind { KPROF_FRAME_NATIVE = 1, KPROF_FRAME_PYTHON, KPROF_FRAME_KERNEL };

/* A function in a stack. Texts live until the capture is closed. */
struct kprof_frame {
	enum kprof_frame_kind kind;
	bool inlined; /* into the one that follows */
	/* for show: template arguments shortened; unknown: "libx.so+0x12" or "[unknown]" */
	const char *function;
	const char *name;     /* the whole name */
	const char *file;     /* of the source; "" unknown */
	uint32_t line;        /* 0 unknown */
	const char *module;   /* path; "" unknown */
	const char *build_id; /* of the module, in hex; "" unknown */
	uint64_t address;     /* in the module's file; a kernel's own; Python: 0 */
	const char *op;       /* the operator that this is the entry of, "aten::add"; "" none */
};

struct kprof_sample {
	uint64_t time_mono_ns;
	uint64_t weight_ns; /* the time that it stands for */
	pid_t pid, tid;
	uint32_t flags;                   /* enum kprof_sample_flags */
	const struct kprof_frame *frames; /* innermost first; valid until the function returns */
	size_t nr_frames; /* KPROF_SAMPLE_MAX_FRAMES at most: see KPROF_SAMPLE_CUT */
};
#define KPROF_SAMPLE_MAX_FRAMES 4096

/* Every sample, about in order of time. fn returns non-zero to stop; that value is returned. */
int kprof_capture_samples(struct kprof_capture *c,
			  int (*fn)(void *ctx, const struct kprof_sample *s), void *ctx);

/* What the samples are worth. Of native stacks; a thread that runs nothing native has none. */
#define KPROF_SAMPLE_NR_ENDS 256
#define KPROF_SAMPLE_END_NONE 0  /* it was not walked */
#define KPROF_SAMPLE_END_WHOLE 1 /* it reached the thread's first function */
struct kprof_sample_stats {
	uint64_t samples, weight_ns;
	uint64_t lost; /* dropped by the ring or missed by the kernel */
	uint64_t
		ends[KPROF_SAMPLE_NR_ENDS]; /* samples, by how the walk ended: kprof_sample_end() */
	uint64_t whole;                     /* reached the thread's first function, uncut */
	uint64_t walked;                    /* of so many whose native stack was walked */
	uint64_t cut;
};
int kprof_capture_sample_stats(struct kprof_capture *c, struct kprof_sample_stats *out);
/*
 * How a walk over native frames ended, in words: "no table". Of an end or of flags >>
 * KPROF_SAMPLE_END_SHIFT & 0xff.
 */
const char *kprof_sample_end(uint32_t end);

enum kprof_by {
	KPROF_BY_OP,
	KPROF_BY_THREAD,
	KPROF_BY_KERNEL,   /* device activities by name */
	KPROF_BY_API,      /* calls of device runtimes and drivers */
	KPROF_BY_STREAM,   /* device activities by device and stream */
	KPROF_BY_MEMCPY,   /* copies and sets by kind */
	KPROF_BY_IDLE,     /* gaps of each device by what the host did meanwhile */
	KPROF_BY_FUNCTION, /* samples by function */
	KPROF_BY_LINE,     /* … and line */
};
enum kprof_sort {
	KPROF_SORT_SELF,
	KPROF_SORT_TOTAL,
	KPROF_SORT_COUNT,
	KPROF_SORT_AVG,
	KPROF_SORT_NAME
};

/*
 * Tables of devices: a kernel's self time is its total; a stream's is what it was busy; idle time
 * is of gaps in which the device did nothing, explained by what the thread did that then launched
 * the next work (category: why in a word).
 *
 * Tables of samples: by function and line always, by operator and thread where a capture has
 * samples and no spans of operators (kprof_result_of_samples()). A sample's weight is self time of
 * its innermost function, and total time of all in its stack, once each; inlined functions count as
 * functions. It is of the operator whose entry is the innermost one in the stack. Every sample is
 * in some row: what has no operator, or no frame of the kind asked for, in one of its own;
 * functions without a name count by module.
 */
struct kprof_row {
	const char *name;     /* operator, or "PID/TID name" */
	const char *category; /* "" by thread */
	pid_t pid, tid;       /* by thread, stream and idle; else 0 */
	uint64_t calls;
	uint64_t total_ns; /* recursion counted once: a call inside its own name adds nothing */
	uint64_t self_ns;
	uint64_t min_ns, max_ns;
	uint64_t timed;   /* calls that the times are of: all but those whose end was only closed */
	uint64_t inexact; /* calls whose end was not seen exactly: closed, or open at the end */
	double self_share; /* of all self time, 0 … 1 */
	/* What only some tables have; else 0. */
	uint64_t errors;  /* by API: calls that failed */
	uint64_t bytes;   /* by memcpy: copied or set */
	uint64_t idle_ns; /* by stream: of the recording, without work */
	uint32_t device;  /* by stream and idle: ordinal in process pid */
	uint32_t stream;  /* by stream; UINT32_MAX: all of the device's */
	/*
	 * Of samples: calls are those with it anywhere in the stack, self_samples those with it
	 * innermost.
	 */
	const char *where; /* by function and line: the module's or the source's path; else "" */
	uint64_t self_samples;
	uint64_t gil_ns, gil_wait_ns; /* by thread: had the interpreter's lock, waited for it */
	/*
	 * By operator of samples, of all its time: what most of it was called from, and how much;
	 * else NULL or "".
	 */
	const char *caller; /* the innermost Python line outside of it: "train.py:12 step" */
	const char *node;   /* the innermost autograd node: "AddmmBackward0" */
	double caller_share, node_share;
	/*
	 * The share of all samples' time, and where it lies with 95 % confidence (Wilson's
	 * interval).
	 */
	double total_share;
	double self_low, self_high, total_low, total_high;
};

struct kprof_result;
int kprof_result_new(struct kprof_capture *c, enum kprof_by by, enum kprof_sort sort,
		     struct kprof_result **out);
/* Of samples by function and line: which frames to see, as if the others were not there. */
enum kprof_frames {
	KPROF_FRAMES_ALL,
	KPROF_FRAMES_NATIVE /* the kernel's too */,
	KPROF_FRAMES_PYTHON
};
struct kprof_result_opts {
	size_t sz;
	enum kprof_by by;
	enum kprof_sort sort;
	enum kprof_frames frames;
};
int kprof_result_new_opts(struct kprof_capture *c, const struct kprof_result_opts *opts,
			  struct kprof_result **out);
/* Whether its rows were made from samples. */
bool kprof_result_of_samples(const struct kprof_result *r);
size_t kprof_result_nr_rows(const struct kprof_result *r);
const struct kprof_row *kprof_result_row(const struct kprof_result *r, size_t i);
uint64_t kprof_result_self_total_ns(const struct kprof_result *r);
void kprof_result_free(struct kprof_result *r);

/*
 * Call tree: names merged by path. The root has name "", no calls of its own, and covers all
 * threads. Children come by falling total time, then by name.
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

/* ---- dump: what every thread does now ---- */

enum kprof_thread_state {
	KPROF_THREAD_RUNNING,  /* on a CPU */
	KPROF_THREAD_RUNNABLE, /* waits for one */
	KPROF_THREAD_SLEEPING,
	KPROF_THREAD_BLOCKED, /* sleeps, and no signal wakes it: disk, memory */
	KPROF_THREAD_STOPPED, /* by a signal or a debugger */
	KPROF_THREAD_EXITED,  /* the first thread, when others go on without it */
};

struct kprof_dump_process {
	pid_t pid;
	const char *command; /* its arguments */
	const char
		*python;  /* "3.11.2"; "" no interpreter that could be looked into: then see note */
	const char *note; /* what is missing in this process, and why; "" nothing */
	size_t nr_threads;
	uint64_t time_real_ns; /* when it was looked at */
};

struct kprof_dump_thread {
	pid_t tid;
	const char *name;        /* the kernel's */
	const char *python_name; /* its threading.Thread's; "" none */
	enum kprof_thread_state state;
	const char *doing; /* for people, after the state: "in futex(0x7f12a4)"; "" */
	const char *call;  /* the system call that it is in; "" none */
	bool python;       /* the interpreter knows it */
	bool holds_gil, waits_gil;
	const struct kprof_frame *frames; /* innermost first */
	size_t nr_frames;
	const char *cut; /* why outer frames are missing, or all of them; "" none is */
};

struct kprof_dump_opts {
	size_t sz;        /* sizeof(struct kprof_dump_opts), for compatibility */
	bool no_native;   /* only the Python frames of threads that the interpreter knows */
	bool no_python;   /* the interpreter's own functions instead */
	bool kernel;      /* the kernel's frames, too */
	bool no_lines;    /* no source lines and inlined functions of native code: faster */
	bool interpreter; /* CPython's own C frames around Python's, too */
	uint64_t wait_ns; /* for threads that do not lie still; 0: 500 ms */
};

/*
 * Every thread's stack, in order of tid, native and Python frames in one. The process is not
 * stopped: stacks of threads that are off the CPU are read while they lie still, others are copied
 * by the kernel at a timer's tick. fn returns non-zero to stop; that value is returned. Strings and
 * frames are valid until fn returns.
 */
int kprof_dump(pid_t pid, const struct kprof_dump_opts *opts,
	       int (*fn)(void *ctx, const struct kprof_dump_process *p,
			 const struct kprof_dump_thread *t),
	       void *ctx);

#ifdef __cplusplus
}
#endif
#endif /* KPROF_H */
