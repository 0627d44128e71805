/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walking a thread's stack from here, by the same source as the kernel's unwinder (bpf/unwind.h).
 * The process is not held: who calls makes sure that the registers and the stack belong together
 * (kprof_dump()).
 */
#ifndef KPROF_CAPTURE_WALK_H
#define KPROF_CAPTURE_WALK_H

#include "capture/unwind/address_space.h"

struct walk_start {
	uint64_t ip;
	uint64_t regs[16]; /* by DWARF's numbers (System V ABI, figure 3.36): 3 rbx, 6 rbp, 7 rsp */
	/*
	 * A copy of a piece of the stack; what lies elsewhere is read from the process, unless it
	 * runs on.
	 */
	const void *stack;
	uint64_t stack_address;
	size_t stack_bytes;
	bool only_copy;
};

struct walk_frame {
	uint64_t ip;
	uint64_t sp; /* as the frame has it where it stands */
	/*
	 * ip is where it was interrupted; else where a call returns to, and ip - 1 is in the call
	 */
	bool exact;
};

struct walk_end {
	uint32_t how;           /* enum kprof_unwind_end; TOO_DEEP: no room for more */
	struct module *missing; /* NOT_YET: whose table is not built */
};

/*
 * The frames, innermost first; returns how many. Uses the tables themselves, placed or not: a
 * module is pending here only until its table is built.
 */
size_t walk_stack(const struct address_space *s, const struct walk_start *start,
		  struct walk_frame *frames, size_t room, struct walk_end *end);

#endif
