/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPython from outside: where a process's interpreter keeps its threads and frames, what a code
 * object is called, and where Python frames belong among native ones. 3.8 to 3.14; nothing runs in
 * the target.
 *
 * The frames themselves are walked by bpf/python.h, in the kernel or in user space.
 */
#ifndef KPROF_SYMBOL_PYTHON_H
#define KPROF_SYMBOL_PYTHON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kprof/python.h"
#include "symbol/elf/elf.h"

/* ---- an ELF file that is, or contains, an interpreter ---- */

struct python_elf; /* knows all that it needs: the file may be closed */

/*
 * -ENOENT: no interpreter (no error is set); -ENOTSUP: one of a release that kprof does not know.
 */
int python_elf__open(const struct elffile *e, struct python_elf **out);
void python_elf__free(struct python_elf *p);
/* PY_VERSION_HEX; up to 3.10 major and minor only. */
uint32_t python_elf__version(const struct python_elf *p);

enum python_native {
	PYTHON_NATIVE_OTHER = 0,
	PYTHON_NATIVE_EVAL = 1, /* the interpreter's loop: Python frames take its place */
	PYTHON_NATIVE_HIDE =
		2, /* a piece of the loop with an eval frame beside it (3.14's tail calls) */
	/*
	 * Does nothing but enter the loop for a Python function: hidden where it does, a frame
	 * where it is innermost.
	 */
	PYTHON_NATIVE_CALL = 3,
};

/* What the code at a vaddr of the file is; for a return address ask for the one before. */
enum python_native python_elf__native(const struct python_elf *p, uint64_t vaddr);

/* ---- a process ---- */

/* The target's memory. 0, or negative: not (wholly) readable. */
struct python_memory {
	int (*read)(void *ctx, void *to, size_t bytes, uint64_t address);
	void *ctx;
};

/*
 * Where this process's interpreter keeps things; bias: what is added to the file's vaddrs. -EAGAIN:
 * it is not initialized yet, or is being torn down; -ENOTSUP: a release that kprof does not know,
 * or not what it says; -EFAULT. The error is set.
 */
int python_locate(const struct python_elf *p, uint64_t bias, const struct python_memory *m,
		  struct kprof_python *out);

/*
 * The interpreters' threads, at most `room`, without the target's being stopped; returns how many.
 * tid is in the process's own PID namespace. Up to 3.10 the interpreter does not know it: it is
 * what glibc keeps, which is to be held against /proc/PID/task; 0: unknown.
 */
struct python_thread {
	uint64_t tstate;
	uint64_t thread; /* pthread_self(): the thread's fs base */
	int32_t tid;
};
size_t python_threads(const struct kprof_python *p, const struct python_memory *m,
		      struct python_thread *out, size_t room);

/*
 * What Python calls its threads (threading.Thread's name), at most `room`, without the target's
 * being stopped; returns how many. Threads that only C knows have no name here. The names are
 * malloc'ed.
 */
struct python_thread_name {
	uint64_t thread; /* pthread_self() */
	char *name;      /* UTF-8 */
};
size_t python_thread_names(const struct kprof_python *p, const struct python_memory *m,
			   struct python_thread_name *out, size_t room);
/* NULL: it has none. */
const char *python_thread_name(const struct python_thread_name *names, size_t nr, uint64_t thread);
/* Also the list, which was malloc'ed; NULL is fine. */
void python_thread_names__free(struct python_thread_name *names, size_t nr);

/* ---- code objects ---- */

struct python_code {
	const char *function; /* qualified from 3.11, else the bare name; UTF-8, "" unknown */
	const char *file;     /* as it was given to the interpreter */
	uint32_t firstline;
	bool internal; /* the interpreter's own, which tracebacks leave out */
	uint32_t minor;
	size_t nr_lines; /* bytes of the line table */
	const uint8_t *lines;
};

/*
 * -ESTALE: no code object lies there (any more); -EFAULT, -ENOMEM. No error is set: it is not rare.
 */
int python_code__read(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		      struct python_code **out);
void python_code__free(struct python_code *c);
/*
 * The line that the instruction at this byte belongs to; 0: none. Negative: the function has not
 * begun.
 */
uint32_t python_code__line(const struct python_code *c, int32_t instr);

/* ---- among native frames ---- */

struct python_merged {
	bool python;
	uint32_t index; /* of the Python frame, or of the native one */
};

struct python_stacks {
	size_t nr_native; /* innermost first */
	/* What the i-th native frame is. */
	enum python_native (*native)(void *ctx, size_t i);
	void *ctx;
	bool native_whole;                       /* the walk came to the thread's first function */
	const struct kprof_python_frame *frames; /* innermost first */
	size_t nr_frames;
	uint32_t flags; /* enum kprof_python_walk_flags */
};

/*
 * Puts each Python frame where its eval frame stands, innermost first. out has room for nr_native +
 * nr_frames; returns how many. Where either walk was cut, frames are matched from the side that is
 * known; nothing gets lost: Python frames whose native ones are missing come last, eval frames
 * whose Python ones are missing stay.
 */
size_t python_interleave(const struct python_stacks *s, struct python_merged *out);

#endif
