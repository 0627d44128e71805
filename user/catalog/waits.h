/* SPDX-License-Identifier: BSD-2-Clause */
/* What a thread waits for, by the names of functions and by system calls. */
#ifndef KPROF_CATALOG_WAITS_H
#define KPROF_CATALOG_WAITS_H

#include <stdbool.h>
#include <stdint.h>

enum wait_frame {
	WAIT_FRAME_OTHER,
	WAIT_FRAME_LOCK,      /* a lock itself, called for something further out in the stack */
	WAIT_FRAME_ALLOCATOR, /* allocates or frees memory */
	WAIT_FRAME_GIL,       /* takes CPython's lock */
	WAIT_FRAME_PYTHON,    /* takes a lock that Python code sees */
};

/* What a native function means for a wait below it, by its name without parameters. */
enum wait_frame catalog_wait_frame(const char *function);
/* Whether the kernel handles a page fault in this function. */
bool catalog_wait_page_fault(const char *kernel_function);

/* Whether a native function takes a lock that another thread has, and frees when it is done. */
bool catalog_wait_mutex(const char *function);
/* Whether a span or a native function of this name waits for other processes of a collective. */
bool catalog_wait_collective(const char *name);
/* Whether it waits for a message of MPI's. */
bool catalog_wait_message(const char *name);

/* Whether the kernel serves an interrupt in this function. */
bool catalog_wait_interrupt(const char *kernel_function);

struct wait_call {
	uint16_t call;    /* number of the system call */
	const char *name; /* "futex", or what follows the name of the call's file: "read" */
	const char *file; /* what stands there if that is not known: "socket"; NULL: name is all */
};

/* How a wait in a system call is named; NULL: by the call's own name. */
const struct wait_call *catalog_wait_call(uint32_t call);

#endif
