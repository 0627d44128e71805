/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The .kprof capture file: append-only, chunked, checksummed, compressed, readable after a crash
 * at any byte. docs/capture-format.md is the specification; this is its C face.
 *
 * Both directions speak in struct store_record. What a record refers to (string, thread, what)
 * is always defined by an earlier record.
 *
 * Tables, details and events (BEGIN and END) go to separate chunks, in front of a chunk the tables
 * that it needs: a reader can pass over the others cheaply. Details come in the order in which they
 * were put among themselves, but in front of the chunk of events that was being filled then: a
 * span's ARGS may be read before its BEGIN, and, if they were put before its END, before that for
 * sure.
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
#define STORE_FORMAT_MINOR 3

enum store_type {
	STORE_META = 1,    /* key, JSON value; a later one of the same key replaces */
	STORE_STRING = 2,  /* id (dense from 1), bytes: any bytes but NUL; 0 is "" and predefined */
	STORE_PROCESS = 3, /* a later one of the same pid and start replaces (name, exit) */
	STORE_THREAD = 4,  /* a later one of the same index replaces (name, exit) */
	STORE_DESCRIPTION = 5, /* what a span is: id dense from 1 */
	STORE_BEGIN = 6,
	STORE_END = 7,
	STORE_GAP = 8,
	STORE_SOURCE = 9,  /* cumulative; the last one of an index holds */
	STORE_CLOCK = 10,  /* a pair of clock readings */
	STORE_FINISH = 11, /* last record of a complete capture */
	/* Details: in chunks of their own, in front of the events that they belong to. */
	STORE_ARGS = 12, /* what is known of a span beside its name; several of one span add up */
	STORE_ACTIVITY = 13, /* work of a device, or the like; in no order of time */
	STORE_API = 14,      /* a device call as the device's tool interface saw it */
	STORE_INSTANT = 15,  /* a moment on a thread: marks, memory events */
	STORE_COUNTER = 16,  /* a value from then on */
	/* Stacks: tables, but for the samples, which are details. */
	STORE_MODULE = 17, /* what code lies in: id dense from 1 */
	STORE_FRAME =
		18, /* a place in code: id dense from 1; a later one of the same id replaces */
	STORE_STACK = 19,  /* a frame and the stack that it was called from: id dense from 1 */
	STORE_SAMPLE = 20, /* what a thread was doing at a moment, and for how long it stands */
	STORE_THREAD_NAME =
		21, /* what a language calls a thread; a later one of the same thread replaces */
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
	STORE_ATTR_DOUBLE = 5, /* its bits */
	STORE_ATTR_DIM3 = 6,   /* x | y << 32 | z << 48: an array of three in traces */
	STORE_ATTR_JSON = 7,   /* string id of a valid JSON text */
	STORE_ATTR_STACK = 8,  /* id of a stack; 0: none */
};

struct store_attr {
	uint32_t key;  /* string id: as the trace writes it, "grid", "Bytes" */
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
			uint32_t pid, ppid;     /* host's numbers */
			uint32_t ns_pid;        /* in its own PID namespace; 0: the same */
			uint32_t comm, cmdline; /* string ids */
			uint64_t start_ns;      /* mono: when first seen */
			uint64_t exit_ns;       /* mono; 0: alive at the end */
		} process;
		struct {
			uint32_t index;    /* dense from 0, never reused, unlike tids */
			uint32_t pid, tid; /* as the host numbers them: no references */
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
		struct { /* closes the thread's innermost open span */
			uint64_t time_ns;
			uint32_t thread;
			uint32_t flags; /* KPROF_EVENT_CLOSED */
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
			uint64_t time_ns; /* mono: end of the window */
		} finish;
		struct {
			uint64_t span; /* the capture's so-many-th BEGIN, from 1 */
		} args;
		struct {
			uint32_t pid;  /* the process that it was done for */
			uint32_t type; /* enum kprof_activity */
			uint32_t name; /* string id: mangled, if it is a C++ name */
			uint32_t device, context, stream;
			uint64_t start_ns,
				end_ns;       /* mono; start below 2^63. Nothing checks the order */
			uint64_t queued_ns;   /* mono, below 2^63; 0: not known */
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
			uint32_t device; /* UINT32_MAX: of the process, not of a device */
			uint32_t name;   /* string id */
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
			uint64_t address; /* in the module's file; a kernel's is absolute */
			uint32_t op; /* string id: the operator whose entry it is, "aten::add" */
			uint32_t nr_lines;
			/*
			 * Inlined functions first, innermost in front. Read ones live until the
			 * next call.
			 */
			const struct store_line *lines;
		} frame;
		struct {
			uint32_t id;
			uint32_t parent; /* the stack of the caller; 0: there is none */
			uint32_t frame;
		} stack;
		struct {
			uint64_t time_ns;
			uint32_t thread;
			uint32_t stack;     /* 0: nothing of it is known */
			uint64_t weight_ns; /* the time that it stands for */
			uint32_t flags;     /* enum kprof_sample_flags */
		} sample;
	};
	/*
	 * Of details; not set in others. Read ones are of known types, valid until the next call.
	 */
	const struct store_attr *attrs;
	uint32_t nr_attrs; /* 0 … STORE_MAX_ATTRS */
};

/* Which chunks a kind of record goes to. */
enum store_chunk_type {
	STORE_CHUNK_TABLES = 1,
	STORE_CHUNK_EVENTS = 2,
	STORE_CHUNK_DETAILS = 3,
};
/* 0: this kprof knows no such kind. */
enum store_chunk_type store_type__chunk(enum store_type type);

/* What a field of a record can be a number of. */
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
	STORE_REF_PID,        /* of the process that the record is about; nothing defines it */
	STORE_REF_PID_OR_ALL, /* the same, and 0 stands for all of them */
	STORE_REFS,
};

/* For a copy of a capture in which things have other numbers, or are left out. */
struct store_renumber {
	/*
	 * What `number` is in the copy, or STORE_LEFT_OUT. With `defines`, the record is what gives
	 * it that number; this comes after what the record refers to.
	 */
	uint64_t (*number)(void *ctx, enum store_ref ref, uint64_t number, bool defines);
	void *ctx;
	/* What the record points to afterwards. */
	struct store_attr attrs[STORE_MAX_ATTRS];
	struct store_line lines[STORE_MAX_LINES];
};
#define STORE_LEFT_OUT UINT64_MAX
/* False: it refers to something that is left out, and so is the record. */
bool store_record__renumber(struct store_record *r, struct store_renumber *to);

struct store_writer;
/*
 * Creates path's temporary neighbour; the file takes its name at finish (see util/outfile.h for
 * the rules on owner, mode and symlinks).
 */
int store_writer__open(const char *path, const struct outfile_opts *owner,
		       struct store_writer **out);
/*
 * Buffers; writes when a chunk is full. -EINVAL: a reference to what was not defined, or an id out
 * of order (nothing is written, the writer goes on). -E2BIG: a string or JSON value over 1 MiB.
 * -ENOSPC …: the file ends at its last whole chunk, and every later call fails the same way.
 */
int store_writer__put(struct store_writer *w, const struct store_record *r);
/*
 * Interns: the id of these bytes, writing a STORE_STRING when new. 0: "" or, with the error set,
 * what made store_writer__put() fail (a NUL in the bytes ends them).
 */
uint32_t store_writer__string(struct store_writer *w, const char *bytes, size_t len);
/*
 * Writes what is buffered as whole chunks: what a crash of this process after this leaves is
 * readable up to here. It does not wait for the disk; store_writer__finish() does.
 */
int store_writer__flush(struct store_writer *w);
uint64_t store_writer__bytes(const struct store_writer *w);
/* BEGIN records put so far: the number of the latest span, for STORE_ARGS. */
uint64_t store_writer__begins(const struct store_writer *w);
/* Where the unfinished file lies meanwhile (for messages). */
const char *store_writer__temp_path(const struct store_writer *w);
/*
 * STORE_FINISH, flush, fsync, rename. The writer is freed whatever comes back. When the disk is
 * full only now, it is store_writer__salvage() that happens, and the error is returned.
 */
int store_writer__finish(struct store_writer *w, uint64_t end_mono_ns);
/*
 * After an error: gives the file its name as it is (incomplete, readable), with what is buffered
 * where it can still be written. The writer is freed whatever comes back.
 */
int store_writer__salvage(struct store_writer *w);
/* Removes the unfinished file. NULL is fine. */
void store_writer__discard(struct store_writer *w);

struct store_reader;
enum store_read_mode {
	STORE_READ_ALL,
	/* pass over chunks of events (still counting and bounds-checking them) */
	STORE_READ_TABLES,
	STORE_READ_DETAILS, /* tables and details, without BEGIN and END */
};
/* Refuses: no capture (-EINVAL), newer major version (-EPROTONOSUPPORT), unreadable. */
int store_reader__open(const char *path, struct store_reader **out);
/*
 * To the beginning, in this mode. Everything is delivered again, strings with the ids that they
 * had: whoever keeps them from an earlier pass passes over them in the next.
 */
int store_reader__rewind(struct store_reader *r, enum store_read_mode mode);
/*
 * 1: a record; 0: end; <0: error. A damaged or cut chunk is an end, not an error: see info.
 * Pointers in the record live until the next call. Ids in it are checked: whatever the bytes
 * of the file, a reference is to something defined earlier.
 */
int store_reader__next(struct store_reader *r, struct store_record *out);
struct store_reader_info {
	uint16_t major, minor;
	bool complete;       /* STORE_FINISH was reached */
	uint64_t lost_bytes; /* after the last whole chunk; known at the end */
	uint64_t size_bytes, read_bytes;
	uint64_t begins;  /* BEGIN records in chunks read or passed over */
	uint64_t samples; /* SAMPLE records, likewise */
};
void store_reader__info(const struct store_reader *r, struct store_reader_info *out);
void store_reader__close(struct store_reader *r);

#endif
