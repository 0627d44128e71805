/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CPython seen from outside: where a process's interpreter keeps its threads and frames, what a
 * code object is called, and where Python frames belong among native ones. Supports 3.8 to 3.14;
 * nothing runs in the target.
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

struct python_elf; /* holds all that is needed: the file may be closed */

/*
 * Recognizes an interpreter. -ENOENT: the file contains none (no error is set); -ENOTSUP: it is of
 * a release that kprof does not know.
 */
int python_elf__open(const struct elffile *e, struct python_elf **out);
void python_elf__free(struct python_elf *p);

enum python_native {
	PYTHON_NATIVE_OTHER = 0,
	PYTHON_NATIVE_EVAL = 1, /* the interpreter's loop: Python frames replace its frame */
	/* a part of the loop whose caller is an eval frame, too (tail calls of 3.14): hidden */
	PYTHON_NATIVE_HIDE = 2,
	/*
	 * A function that only calls the loop for a Python function: hidden where it has called the
	 * loop, shown where it is the innermost frame.
	 */
	PYTHON_NATIVE_CALL = 3,
};

/* What the code at a vaddr of the file is. For a return address, pass the address before it. */
enum python_native python_elf__native(const struct python_elf *p, uint64_t vaddr);

/* ---- a process ---- */

/* Reads the target's memory. 0, or negative: not, or not all, readable. */
struct python_memory {
	int (*read)(void *ctx, void *to, size_t bytes, uint64_t address);
	void *ctx;
	/*
	 * Where python_thread_names() has found the module `threading` among the thousands of
	 * modules that a program may import: it looks there first the next time. NULL: it searches
	 * each time.
	 */
	uint32_t *threading;
};

/*
 * Finds where this process's interpreter keeps its data. bias: what is added to the file's vaddrs
 * in the process. -EAGAIN: the interpreter is not initialized yet, or is being shut down; -ENOTSUP:
 * kprof does not know the release, or its build is of another kind; -EFAULT. The error is set.
 */
int python_locate(const struct python_elf *p, uint64_t bias, const struct python_memory *m,
		  struct kprof_python *out);

/*
 * Lists the threads of all interpreters, at most `room`, without stopping the target; returns how
 * many. tid is in the process's own PID namespace. Interpreters up to 3.10 do not store it: it is
 * then read from glibc's data, and is to be compared with /proc/PID/task; 0: unknown.
 */
struct python_thread {
	uint64_t tstate;
	uint64_t thread; /* pthread_self(): the thread's fs base */
	int32_t tid;
};
size_t python_threads(const struct kprof_python *p, const struct python_memory *m,
		      struct python_thread *out, size_t room);

/*
 * Lists the names that Python has for threads (threading.Thread's name), at most `room`, without
 * stopping the target; returns how many. Threads that were created outside of `threading` are not
 * in the list. The names are malloc'ed.
 */
struct python_thread_name {
	uint64_t thread; /* pthread_self() */
	char *name;      /* UTF-8 */
};
size_t python_thread_names(const struct kprof_python *p, const struct python_memory *m,
			   struct python_thread_name *out, size_t room);
/* The name of a thread; NULL: it has none. */
const char *python_thread_name(const struct python_thread_name *names, size_t nr, uint64_t thread);
/* Frees the names and the list, which must be malloc'ed; NULL is fine. */
void python_thread_names__free(struct python_thread_name *names, size_t nr);

/* ---- code objects ---- */

struct python_loop {
	uint32_t start, end; /* offsets of instructions, in bytes */
};

struct python_code {
	/* the qualified name from 3.11 on, else the bare name; UTF-8; "": unknown */
	char *function;
	char *file; /* the path as the interpreter was given it */
	uint32_t firstline;
	bool internal; /* belongs to the interpreter; tracebacks omit it */
	uint32_t minor;
	size_t nr_lines; /* size of the line table in bytes */
	uint8_t *lines;
	/* Only after python_code__read_loops(). */
	uint32_t flags; /* co_flags */
	size_t nr_loops;
	struct python_loop *loops;
};
#define PYTHON_CODE_GENERATORS 0x2a0 /* co_flags of generators and coroutines: they are resumed */

/*
 * Reads a code object. -ESTALE: there is none (any more) at this address; -EFAULT, -ENOMEM. No
 * error is set, because this is not rare.
 */
int python_code__read(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		      struct python_code **out);
void python_code__free(struct python_code *c);
/*
 * The line of the instruction at this byte offset; 0: none. A negative offset means that the
 * function has not begun.
 */
uint32_t python_code__line(const struct python_code *c, int32_t instr);
/* Finds the loops of a code object that was read from this address. -EFAULT, -ENOMEM. */
int python_code__read_loops(const struct kprof_python *p, const struct python_memory *m,
			    uint64_t address, struct python_code *c);
/*
 * Where the outermost loop around the instruction at this byte offset begins, in bytes; -1: it is
 * in none, as far as is known: from 3.11 on, no loop with `while` is.
 */
int32_t python_code__loop(const struct python_code *c, int32_t instr);

/* ---- modules of PyTorch (torch.nn.Module): nn.c ---- */

/*
 * Finds the code object of Module.__call__. -ENOENT: PyTorch is not imported (yet); -ENOTSUP: its
 * arguments are others than expected.
 */
int python_nn__call(const struct kprof_python *p, const struct python_memory *m, uint64_t *code);
/* The name of a class, malloc'ed; it is UTF-8. NULL: it cannot be read, or there is no memory. */
char *python_nn__class(const struct kprof_python *p, const struct python_memory *m, uint64_t type);

#define PYTHON_NN_MOST 16384    /* modules of one tree */
#define PYTHON_NN_DEEPEST 64    /* levels of it */
#define PYTHON_NN_PATH_MOST 512 /* bytes of a path; modules with longer ones are left out */
/*
 * Tells of the modules below this one, each once, in the order of Module.named_modules(), with what
 * that calls them ("layers.3.attn"). What cannot be read is left out. fn: a result other than 0 ends
 * it, and is returned. -ENOMEM.
 */
int python_nn__tree(const struct kprof_python *p, const struct python_memory *m, uint64_t module,
		    int (*fn)(void *ctx, uint64_t module, const char *path), void *ctx);

/* ---- among native frames ---- */

struct python_merged {
	bool python;
	uint32_t index; /* index of the Python frame, or of the native one */
};

struct python_stacks {
	size_t nr_native; /* innermost first */
	/* Says what the i-th native frame is. */
	enum python_native (*native)(void *ctx, size_t i);
	void *ctx;
	bool native_whole;                       /* the walk reached the thread's first function */
	const struct kprof_python_frame *frames; /* innermost first */
	size_t nr_frames;
	uint32_t flags; /* enum kprof_python_walk_flags */
};

/*
 * Merges both stacks, innermost first: Python frames replace the eval frames that run them. out has
 * room for nr_native + nr_frames; returns how many are used. Where one of the walks was cut short,
 * frames are matched from the side that both have. No frame gets lost: Python frames without native
 * ones come last, and eval frames without Python frames stay.
 */
size_t python_interleave(const struct python_stacks *s, struct python_merged *out);

#endif
