/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequence numbers: by which a framework ties an operator to the node of its graph that computes
 * the gradients (struct kprof_wire_sequence). Where a build keeps them is learnt from the code of
 * these functions (capture/probe/sequence.h); the names are mangled.
 */
#ifndef KPROF_CATALOG_SEQUENCE_H
#define KPROF_CATALOG_SEQUENCE_H

struct catalog_sequence {
	const char *numbers_library; /* globs on the names of the libraries … */
	const char *state_library;
	/* … that have these functions. They return variables of the thread: */
	const char *next;   /* the number of the next node */
	const char *thread; /* the thread's own number, which nodes made by it bear */
	/* The constructor of a node whose number is always the largest one. */
	const char *largest_node;
	/* Does a tensor, the argument, lack the keys of autograd and the one before them? */
	const char *without_keys;
	/*
	 * The number that an operator has. Which of the two a build has decides whether another
	 * key, which comes before autograd's, matters: with_keys looks at all of them.
	 */
	const char *with_key, *with_keys;
	/* In the second library: are gradients recorded, and the object that has it */
	const char *grad, *state;
	const char *included, *excluded; /* is a set of keys added for the thread, or removed? */
};

/* Keys of the attributes of spans: as Kineto calls them … */
#define SEQUENCE_KEY "Sequence number"
#define SEQUENCE_FORWARD_KEY "Fwd thread id" /* only of a node: who made it */
/* … and what traces don't show: of an operator, the number of its own thread. */
#define SEQUENCE_THREAD_KEY "Own thread id"
/* In place of the number: the operator has this one, or none. */
#define SEQUENCE_MAYBE_KEY "Possible sequence number"

/* So begins the name of what is around a node: that has the node's number, which the node tells. */
#define SEQUENCE_AROUND "autograd::engine::evaluate_function: "

#endif
