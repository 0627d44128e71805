/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a build of PyTorch keeps what the sequence number of a call follows from (struct
 * kprof_wire_sequence), learnt from the code of the build itself, and where a process has that.
 */
#ifndef KPROF_CAPTURE_SEQUENCE_H
#define KPROF_CAPTURE_SEQUENCE_H

#include "capture/probe/layout.h"
#include "capture/target/target.h"
#include "kprof/wire.h"

/* A variable that each thread has. */
struct sequence_variable {
	/* vaddr of the two words in the library that hold the module's number and an offset */
	uint64_t index;
	int64_t disp; /* to be added to that offset */
};

struct sequence_layout {
	struct kprof_wire_sequence wire; /* without what differs between processes */
	/* of the library with the numbers, … */
	struct sequence_variable next, thread;
	/* … and of the one with the state */
	struct sequence_variable grad, included, excluded;
};

/* -ENOENT: a function that is needed is not in the files, or its code is not understood. */
int sequence_learn(const struct catalog_sequence *s, const struct layout_env *env,
		   struct sequence_layout *out);

struct signature;
/*
 * How the sequence numbers of an operator's calls are found: KPROF_COOKIE_SEQUENCE(). whole: the
 * signature has all of the function's parameters, not only the first ones.
 */
uint64_t sequence_by_tensors(const struct signature *signature, bool whole);

/* The process's own, from what it maps. -ENOENT: it has no such numbers (yet). */
int sequence_of(struct target *t, const struct sequence_layout *layout,
		const struct elffile *numbers, const struct proc_map *numbers_map,
		const struct elffile *state, const struct proc_map *state_map,
		struct kprof_wire_sequence *out);

/* The parts of the first. code: the bytes of a function, vaddr: where it begins. */

/* The variable from whose address on a function reads 8 bytes. */
int sequence_variable(const uint8_t *code, size_t bytes, uint64_t vaddr,
		      struct sequence_variable *out);
/* The variable whose address a function returns. */
int sequence_variable_address(const uint8_t *code, size_t bytes, uint64_t vaddr,
			      struct sequence_variable *out);
/* The variable that a function reads, and the bits of it that are stored inverted. */
int sequence_flipped(const uint8_t *code, size_t bytes, uint64_t vaddr,
		     struct sequence_variable *out, uint64_t *flipped);
/* Offset and bit of the bool that a function returns, in an object that it is given by a call. */
int sequence_bool(const uint8_t *code, size_t bytes, int32_t *off, uint8_t *bit);
/* The keys for which a function tests an object, and where the object has them. */
int sequence_tested(const uint8_t *code, size_t bytes, uint64_t *keys, int32_t *off);
/*
 * Where the constructor of a node, in this file, puts the number of the thread, and the largest
 * sequence number.
 */
int sequence_node(const struct elffile *e, const uint8_t *code, size_t bytes, uint64_t vaddr,
		  int32_t *number_off, int32_t *thread_off);

#endif
