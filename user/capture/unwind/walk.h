/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking a thread's stack in user space, with the source that is also the kernel's unwinder
 * (bpf/unwind.h). The process is not stopped: the caller makes sure that the registers and the
 * stack belong together, as kprof_dump() does.
 */
#ifndef KPROF_CAPTURE_WALK_H
#define KPROF_CAPTURE_WALK_H

#include "capture/unwind/address_space.h"

struct walk_start {
	uint64_t ip;
	uint64_t regs[16]; /* by DWARF's numbers (System V ABI, figure 3.36): 3 rbx, 6 rbp, 7 rsp */
	/*
	 * A copy of part of the stack. Memory outside it is read from the process, unless only_copy
	 * is set because the thread runs on.
	 */
	const void *stack;
	uint64_t stack_address;
	size_t stack_bytes;
	bool only_copy;
};

struct walk_frame {
	uint64_t ip;
	uint64_t sp; /* stack pointer at ip in this frame */
	/*
	 * ip is where the frame was interrupted. Else it is where a call returns to, and ip - 1 is
	 * in the call
	 */
	bool exact;
};

struct walk_end {
	uint32_t how;           /* enum kprof_unwind_end; TOO_DEEP: frames[] has no room for more */
	struct module *missing; /* for NOT_YET: the module whose table is not built */
};

/*
 * Writes the frames, innermost first, and returns how many. Uses the modules' tables whether or not
 * they are placed in the kernel: a module is pending here only until its table is built.
 */
size_t walk_stack(const struct address_space *s, const struct walk_start *start,
		  struct walk_frame *frames, size_t room, struct walk_end *end);

#endif
