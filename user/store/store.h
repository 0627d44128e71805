/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The .kprof capture file: append-only, chunked, checksummed, compressed, readable after a crash at
 * any byte. docs/capture-format.md is the specification; this is its C interface.
 *
 * Writer and reader exchange struct store_record. What a record refers to (a string, thread,
 * description …) is always defined by an earlier record.
 *
 * Tables, details and events (BEGIN and END) go to separate chunks, so that a reader can skip the
 * kinds that it does not need. The tables that a chunk needs come before it. Details keep the order
 * in which they were put, but come before the chunk of events that was being filled at that time: a
 * span's ARGS may be read before its BEGIN, and are read before its END if they were put before it.
 *
 * The fields of each kind of record are a row of the table in records.c: encoding, checks, copies
 * and the tables of docs/capture-format.md follow from it.
 */
#ifndef KPROF_STORE_H
#define KPROF_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof.h"
#include "util/outfile.h"

#define STORE_FORMAT_MAJOR 1
#define STORE_FORMAT_MINOR 8

enum store_type {
	STORE_META = 1,        /* key, JSON value; a later one of the same key replaces it */
	STORE_STRING = 2,      /* id (dense from 1), bytes without NUL; id 0 is "", predefined */
	STORE_PROCESS = 3,     /* a later one of the same PID and start replaces it (name, exit) */
	STORE_THREAD = 4,      /* a later one of the same index replaces it (name, exit) */
	STORE_DESCRIPTION = 5, /* an event description; ids are dense from 1 */
	STORE_BEGIN = 6,
	STORE_END = 7,
	STORE_GAP = 8,
	STORE_SOURCE = 9,  /* cumulative counts; the last one of an index holds */
	STORE_CLOCK = 10,  /* both clocks read at the same moment */
	STORE_FINISH = 11, /* last record of a complete capture */
	/* Details: in chunks of their own, before the events that they belong to. */
	STORE_ARGS = 12,     /* attributes of a span; several records of one span add up */
	STORE_ACTIVITY = 13, /* work of a device, or the like; not ordered by time */
	STORE_API = 14,      /* a device call as the device's tool interface saw it */
	STORE_INSTANT = 15,  /* a moment on a thread: marks, memory events */
	STORE_COUNTER = 16,  /* a value that holds from its time on */
	/* Stacks: all in tables, except for the samples, which are details. */
	STORE_MODULE = 17, /* a file or region that code lies in; ids are dense from 1 */
	/* a place in code; ids are dense from 1; a later one of the same id replaces it */
	STORE_FRAME = 18,
	STORE_STACK = 19,  /* a frame and the stack of its caller; ids are dense from 1 */
	STORE_SAMPLE = 20, /* a thread's stack at a moment, and the time that it counts for */
	/* a thread's name in its language; a later one of the same thread replaces it */
	STORE_THREAD_NAME = 21,
	STORE_WAIT = 22, /* a thread was off the CPU: a detail */
	/* how long a thread ran and waited in all; a later one of the same thread replaces it */
	STORE_THREAD_TIME = 23,
	/* whose a process is; a later one of the same PID and start replaces it */
	STORE_OWNER = 24,
	/* what module of PyTorch a description stands for; a later one replaces it */
	STORE_NN_MODULE = 25,
	/* when a thread was recorded, where that is not all of the capture's time */
	STORE_THREAD_WINDOW = 26,
	/* where in its function a frame of Python is; a later one of the same frame replaces it */
	STORE_PYTHON_FRAME = 27,
	STORE_PROCESS_EXIT = 28, /* how a process ended, where that is known */
	/* what a process runs; a later one of the same PID and start replaces it */
	STORE_EXECUTABLE = 29,
};

enum store_module_kind {
	STORE_MODULE_FILE = 0,
	STORE_MODULE_KERNEL = 1,
	STORE_MODULE_VDSO = 2,
	STORE_MODULE_JIT = 3, /* JIT code */
};

enum store_frame_kind {
	STORE_FRAME_NATIVE = 1,
	STORE_FRAME_PYTHON = 2,
	STORE_FRAME_KERNEL = 3,
};

enum store_python_flags {
	/* of a generator or coroutine: its frame is left and entered again */
	STORE_PYTHON_RESUMED = 1 << 0,
};

/* Flags of a WAIT, beside those of enum kprof_sample_flags for the end of a walk and CUT. */
enum store_wait_flags {
	STORE_WAIT_STATE = 0xf,         /* mask: one of these */
	STORE_WAIT_PREEMPTED = 0,       /* it could have gone on: another thread got its CPU */
	STORE_WAIT_SLEEPING = 1,        /* a signal would wake it */
	STORE_WAIT_BLOCKED = 2,         /* no signal would */
	STORE_WAIT_STOPPED = 3,         /* by a signal or a debugger */
	STORE_WAIT_IO = 1 << 4,         /* for a disk, as the kernel counts it */
	STORE_WAIT_GIL = 1 << 5,        /* for the word of the interpreter's lock */
	STORE_WAIT_FROM_START = 1 << 6, /* since before the recording began */
	STORE_WAIT_TO_END = 1 << 7,     /* still when the recording ended */
	STORE_WAIT_INTERRUPT = 1 << 17, /* woken by an interrupt, not by a thread */
};

struct store_line {
	uint32_t function, file; /* string ids; a native function's name is mangled */
	uint32_t line;           /* 0: not known */
	uint32_t flags;          /* none so far */
};
#define STORE_MAX_LINES 64

enum store_attr_type {
	STORE_ATTR_U64 = 1,
	STORE_ATTR_I64 = 2,
	STORE_ATTR_HEX = 3,    /* an address: a string "0x…" in traces */
	STORE_ATTR_STRING = 4, /* string id */
	STORE_ATTR_DOUBLE = 5, /* the bits of an IEEE double */
	STORE_ATTR_DIM3 = 6,   /* x | y << 32 | z << 48: an array of three in traces */
	STORE_ATTR_JSON = 7,   /* string id of a valid JSON text */
	STORE_ATTR_STACK = 8,  /* id of a stack; 0: none */
	STORE_ATTR_COUNT = 9,  /* what a span had of the counter that its key names */
};

struct store_attr {
	uint32_t key;  /* string id: the key in traces, "grid", "Bytes" */
	uint32_t type; /* enum store_attr_type */
	uint64_t value;
};
#define STORE_MAX_ATTRS 32

struct store_record {
	enum store_type type;
	union {
		struct {
			const char *key, *json;
		} meta;
		struct {
			uint32_t id;
			uint32_t len;
			const char *bytes; /* not NUL-terminated when read: use len */
		} string;
		struct {
			uint32_t pid, ppid;     /* as the host numbers them */
			uint32_t ns_pid;        /* the PID in its own PID namespace; 0: the same */
			uint32_t comm, cmdline; /* string ids */
			uint64_t start_ns;      /* monotonic: when first seen */
			uint64_t exit_ns; /* monotonic; 0: alive at the end of the recording */
		} process;
		struct {
			uint32_t pid;
			uint32_t uid;    /* effective user id */
			uint32_t user;   /* string id: the user's name; 0: not known */
			uint32_t cgroup; /* string id: the cgroup's path; 0: not known */
			uint64_t start_ns;
		} owner;
		struct {
			uint32_t pid;
			uint32_t status; /* as from wait(2) */
			uint64_t start_ns;
		} process_exit;
		struct {
			uint32_t pid;
			uint32_t path; /* string id: the file's path in the process's mounts */
			uint64_t start_ns;
		} executable;
		struct {
			uint32_t index;    /* dense from 0, never reused, unlike tids */
			uint32_t pid, tid; /* as the host numbers them */
			uint32_t name;     /* string id */
			uint64_t start_ns, exit_ns;
		} thread;
		struct {
			uint32_t thread; /* index */
			uint32_t name;   /* string id */
		} thread_name;
		struct {
			uint32_t id;
			uint32_t name, overload; /* string ids */
			uint32_t category;       /* string id: "cpu_op", … */
			uint32_t source;         /* index of a STORE_SOURCE */
			uint32_t flags;          /* KPROF_EVENT_UNNAMED */
		} description;
		struct {
			uint64_t time_ns; /* mono */
			uint32_t thread, description;
		} begin;
		struct { /* ends the innermost open span of the thread */
			uint64_t time_ns;
			uint32_t thread;
			uint32_t flags; /* KPROF_EVENT_CLOSED, KPROF_EVENT_RESULT */
		} end;
		struct {
			uint32_t pid;
			uint32_t what, reason; /* string ids */
			uint64_t start_ns, end_ns;
		} gap;
		struct {
			uint32_t index; /* dense from 0 */
			uint32_t name;  /* string id */
			uint64_t fired, captured, dropped, missed;
			uint64_t begins, ends_exact, ends_closed, orphan_ends;
		} source;
		struct {
			uint64_t mono_ns, real_ns;
		} clock;
		struct {
			uint64_t time_ns; /* monotonic: end of the recording's window */
		} finish;
		struct {
			uint64_t span; /* number of the span's BEGIN in the capture, from 1 */
		} args;
		struct {
			uint32_t pid;  /* the process that the device worked for */
			uint32_t type; /* enum kprof_activity */
			uint32_t name; /* string id: mangled, if it is a C++ name */
			uint32_t device, context, stream;
			uint64_t start_ns,
				/*
				 * monotonic; start_ns is below 2^63. The order of both is not
				 * checked
				 */
				end_ns;
			uint64_t queued_ns;   /* monotonic, below 2^63; 0: not known */
			uint64_t correlation; /* 0: none */
		} activity;
		struct {
			uint32_t thread; /* index */
			uint32_t type;   /* enum kprof_activity */
			uint32_t name;   /* string id */
			uint64_t start_ns, end_ns;
			uint64_t correlation;
		} api;
		struct {
			uint64_t time_ns;
			uint32_t thread, description;
		} instant;
		struct {
			uint64_t time_ns;
			uint32_t pid;
			/* UINT32_MAX: the value is of the process, not of a device */
			uint32_t device;
			uint32_t name; /* string id */
			int64_t value;
		} counter;
		struct {
			uint32_t id;
			uint32_t kind;     /* enum store_module_kind */
			uint32_t path;     /* string id */
			uint32_t build_id; /* string id: in hex; 0: none */
		} module;
		struct {
			uint32_t id;
			uint32_t kind;    /* enum store_frame_kind */
			uint32_t module;  /* 0: not known */
			uint64_t address; /* in the module's file; in the kernel: absolute */
			/*
			 * string id: the operator that this function is the entry of, "aten::add"
			 */
			uint32_t op;
			uint32_t nr_lines;
			/*
			 * Innermost first: inlined functions come before the one that contains
			 * them. In a record that was read, valid until the next call.
			 */
			const struct store_line *lines;
		} frame;
		struct {
			uint32_t id;
			uint32_t parent; /* the caller's stack; 0: none */
			uint32_t frame;
		} stack;
		struct {
			uint64_t time_ns;
			uint32_t thread;
			uint32_t stack;     /* 0: the stack is not known */
			uint64_t weight_ns; /* the time in ns that the sample counts for */
			uint32_t flags;     /* enum kprof_sample_flags */
			/* not in a file: what a wait that is shown as a sample was for; NULL */
			const char *reason;
		} sample;
		struct {
			/* left the CPU; could go on; got one again */
			uint64_t start_ns, wake_ns, end_ns;
			uint32_t thread;
			uint32_t stack;  /* 0: it was not taken */
			uint32_t call;   /* number of the system call + 1; 0: in none */
			uint32_t object; /* string id: what the call's file is; 0: not known */
			uint32_t flags;  /* enum store_wait_flags */
			/* Who woke it, as the host numbers them; 0: not seen. */
			uint32_t waker_pid, waker_tid;
			uint32_t waker_comm; /* string id */
			uint32_t waker_stack;
			/* CPU + 1; 0: not seen */
			uint32_t left_cpu, got_cpu, waker_cpu;
		} wait;
		struct {
			uint64_t start_ns, end_ns; /* the thread's life in the recording */
			uint64_t on_ns, runnable_ns, blocked_ns;
			uint64_t switches; /* how often it left a CPU */
			uint64_t told;     /* of these, waits that were long enough for a record */
			uint32_t thread;
		} thread_time;
		struct {
			uint64_t start_ns, end_ns;
			uint32_t thread;
		} thread_window;
		struct {
			uint32_t frame;
			uint32_t first_line; /* of its function */
			uint32_t instr;      /* offset of the instruction, in bytes */
			uint32_t flags;      /* enum store_python_flags */
			/* begin of the outermost loop around it, in bytes, + 1; 0: in none */
			uint32_t loop;
		} python_frame;
		struct {
			uint32_t description;
			uint32_t class_name; /* string id: "Linear" */
			uint32_t path;       /* string id: "layers.3.attn"; 0: not known */
			/* string id: of the module that the path begins at; 0: there is no path */
			uint32_t outermost;
			uint64_t number; /* among those of its class in its process, from 0 */
		} nn_module;
	};
	/*
	 * The attributes of details; not set in other records. In a record that was read: of known
	 * types only, valid until the next call.
	 */
	const struct store_attr *attrs;
	uint32_t nr_attrs; /* 0 … STORE_MAX_ATTRS */
};

/* The type of chunk that a kind of record goes to. */
enum store_chunk_type {
	STORE_CHUNK_TABLES = 1,
	STORE_CHUNK_EVENTS = 2,
	STORE_CHUNK_DETAILS = 3,
};

/* What the number in a field of a record may refer to. */
enum store_ref {
	STORE_REF_NONE,
	STORE_REF_STRING,
	STORE_REF_DESCRIPTION,
	STORE_REF_THREAD,
	STORE_REF_SOURCE,
	STORE_REF_MODULE,
	STORE_REF_FRAME,
	STORE_REF_STACK,
	STORE_REF_SPAN,
	STORE_REF_PID,        /* of the process that the record is about; no record defines it */
	STORE_REF_PID_OR_ALL, /* like STORE_REF_PID, and 0 means all processes */
	STORE_REF_TASK, /* a PID or TID beside that of the process that it is about; 0: none */
	STORE_REFS,
};

/* For making a copy of a capture with other numbers, or with some records left out. */
struct store_renumber {
	/*
	 * Returns what `number` is in the copy, or STORE_LEFT_OUT. When `defines` is set, the
	 * record defines this number; this call comes after those for the record's references.
	 */
	uint64_t (*number)(void *ctx, enum store_ref ref, uint64_t number, bool defines);
	/* What a time is on the copy's clock, below 2^63; NULL: the same. Not asked of 0. */
	uint64_t (*time)(void *ctx, uint64_t ns);
	void *ctx;
	/* The record's attributes and lines point here afterwards. */
	struct store_attr attrs[STORE_MAX_ATTRS];
	struct store_line lines[STORE_MAX_LINES];
};
#define STORE_LEFT_OUT UINT64_MAX
/* False: the record refers to something that is left out, and so is to be left out itself. */
bool store_record__renumber(struct store_record *r, struct store_renumber *to);

struct store_writer;
/*
 * Creates a temporary file beside `path`; store_writer__finish() renames it to `path` (see
 * util/outfile.h for the rules on owner, mode and symlinks).
 */
int store_writer__open(const char *path, const struct outfile_opts *owner,
		       struct store_writer **out);
/*
 * Adds a record to its chunk, and writes the chunk when it is full. -EINVAL: a reference to
 * something undefined, or an id out of order; the record is dropped and the writer can go on.
 * -E2BIG: a string or JSON value over 1 MiB. -ENOSPC …: the file ends after its last whole chunk,
 * and every later call fails in the same way.
 */
int store_writer__put(struct store_writer *w, const struct store_record *r);
/*
 * Returns the id of a text, and writes a STORE_STRING if the text is new. A NUL ends the text. 0:
 * the text is empty, or store_writer__put() failed and has set the error.
 */
uint32_t store_writer__string(struct store_writer *w, const char *bytes, size_t len);
/* The id of a text that was written already; 0: it was not. */
uint32_t store_writer__known_string(const struct store_writer *w, const char *text);
/*
 * Writes what is buffered as whole chunks: if this process crashes later, the file is readable up
 * to here. It does not wait for the disk; store_writer__finish() does.
 */
int store_writer__flush(struct store_writer *w);
uint64_t store_writer__bytes(const struct store_writer *w);
/* How many BEGIN records were put: the number of the latest span, for STORE_ARGS. */
uint64_t store_writer__begins(const struct store_writer *w);
/* The path of the unfinished file, for messages. */
const char *store_writer__temp_path(const struct store_writer *w);
/*
 * Writes STORE_FINISH, flushes, syncs, and gives the file its name. The writer is freed in any
 * case. If writing fails, the file is kept as store_writer__salvage() would keep it, and the error
 * is returned.
 */
int store_writer__finish(struct store_writer *w, uint64_t end_mono_ns);
/* The same, but a file that is not whole is removed: what has its name by now stays. */
int store_writer__finish_whole(struct store_writer *w, uint64_t end_mono_ns);
/*
 * To be used after an error: writes what is buffered as far as possible, and gives the file its
 * name. The capture is then incomplete, but readable. The writer is freed in any case.
 */
int store_writer__salvage(struct store_writer *w);
/* Removes the unfinished file and frees the writer. NULL is fine. */
void store_writer__discard(struct store_writer *w);

/* ---- a writer that goes on in another file (rotate.c) ---- */

/*
 * Says so before the first record. From now on, an error of writing is none of store_writer__put()
 * and store_writer__flush(), but that of too many tables that cannot be stored: nothing is stored
 * until the next rotation.
 */
void store_writer__may_rotate(struct store_writer *w);
/* Why nothing is stored any more, -errno; 0: it is. */
int store_writer__error(const struct store_writer *w);
/*
 * Opens the next file, and puts into it what there is of tables so far. On an error, nothing has
 * changed.
 */
int store_writer__rotate_begin(struct store_writer *w, const char *path,
			       const struct outfile_opts *owner);
/* Gives the next file up. */
void store_writer__rotate_cancel(struct store_writer *w);
/*
 * Metadata that is put while `closing` is set is about the window that ends. All other is in the
 * next file, too, as are all tables but PROCESS, OWNER, GAP, CLOCK, THREAD_TIME, and counts of
 * sources.
 */
void store_writer__closing(struct store_writer *w, bool closing);
/*
 * Ends the file, which gets its name, and goes on in the next one; that is not waited for to reach
 * the disk. *why: 0, or why the old file is not complete, with the error set. -ENOMEM: nothing can
 * be written any more.
 */
int store_writer__rotate_end(struct store_writer *w, uint64_t end_mono_ns, int *why);
/*
 * The BEGIN that was put last goes on with a span of a file before. Spans are numbered over all
 * files: store_writer__begins() goes on counting, and ARGS with the number of a span that goes on
 * are for that begin. ARGS of spans that ended in a file before are left out, and counted.
 */
int store_writer__continues(struct store_writer *w, uint64_t span);
uint64_t store_writer__late_args(const struct store_writer *w);
/* Bytes of tables in this file, which the next one begins with. */
uint64_t store_writer__table_bytes(const struct store_writer *w);
/* Records that were not stored because of errors, in all files. */
uint64_t store_writer__unstored(const struct store_writer *w);

struct store_reader;
enum store_read_mode {
	STORE_READ_ALL,
	/*
	 * tables only: skips chunks of details and of events, but counts and checks their records
	 * by the heads
	 */
	STORE_READ_TABLES,
	STORE_READ_DETAILS, /* tables and details: without BEGIN and END */
};
/*
 * Fails with -EINVAL: not a capture; -EPROTONOSUPPORT: another major version; or when the file
 * cannot be read.
 */
int store_reader__open(const char *path, struct store_reader **out);
/* Another reader of the same file, which may have lost its name meanwhile. */
int store_reader__again(const struct store_reader *r, struct store_reader **out);
/*
 * Goes back to the beginning and selects a mode. Everything is delivered again, and strings have
 * the same ids: a caller that has kept them from an earlier pass can ignore them.
 */
void store_reader__rewind(struct store_reader *r, enum store_read_mode mode);
/*
 * Calls fn for each chunk of events or details that is read from now on, with the bytes read and
 * those of the file; NULL: no more. A result that is not 0 ends the reading with -ECANCELED.
 */
void store_reader__watch(struct store_reader *r,
			 int (*fn)(void *ctx, uint64_t done, uint64_t total), void *ctx);
/*
 * 1: a record; 0: end; <0: error. A damaged or cut chunk is an end, not an error: see
 * store_reader_info. Pointers in the record are valid until the next call. Ids were checked:
 * whatever the file contains, each refers to something defined earlier.
 */
int store_reader__next(struct store_reader *r, struct store_record *out);
struct store_reader_info {
	uint16_t major, minor;
	bool complete;       /* STORE_FINISH was reached */
	uint64_t lost_bytes; /* bytes after the last whole chunk; known at the end */
	uint64_t size_bytes, read_bytes;
	uint64_t begins;  /* BEGIN records in chunks that were read or skipped */
	uint64_t samples; /* SAMPLE records in such chunks */
};
void store_reader__info(const struct store_reader *r, struct store_reader_info *out);
void store_reader__close(struct store_reader *r);

#endif
