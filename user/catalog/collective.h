/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is read of a framework's collectives: at the call, which hands work to a queue, and where a
 * thread of the framework does the work.
 */
#ifndef KPROF_CATALOG_COLLECTIVE_H
#define KPROF_CATALOG_COLLECTIVE_H

#include <stdbool.h>

#include "kprof/wire.h"

/* Of which tensor the number of elements is read, and what follows from it. */
enum catalog_collective_size {
	CATALOG_SIZE_NONE,    /* no tensor is communicated */
	CATALOG_SIZE_SAME,    /* what goes in and what comes out has as many elements */
	CATALOG_SIZE_IN,      /* that is the input; the output has as many for each rank */
	CATALOG_SIZE_OUT,     /* that is the output; the input has as many for each rank */
	CATALOG_SIZE_ONLY_IN, /* that is the input; nothing is known of the output */
};

enum catalog_collective_role {
	CATALOG_COLLECTIVE_CALL,
	CATALOG_COLLECTIVE_QUEUED, /* inside of a call: args[0] is the address of the work */
	CATALOG_COLLECTIVE_WORK,   /* args[0]: the same address, args[1]: its vtable pointer */
};

/* The arguments of a CALL, which a row has in this order. */
enum catalog_collective_arg {
	COLLECTIVE_ARG_END,   /* of the std::vector of tensors; without one: the backend */
	COLLECTIVE_ARG_BEGIN, /* of the same; without one: not read */
	COLLECTIVE_ARG_NUMEL, /* of the first tensor: the number of its elements … */
	COLLECTIVE_ARG_TYPE,  /* … and the word with their type and flags */
	COLLECTIVE_ARG_RANK,  /* this process's, and above it the group's size, 32 bits each */
	/*
	 * The number of collectives before this one. Of what is between two processes: the peer's
	 * rank in the group, a register.
	 */
	COLLECTIVE_ARG_SEQUENCE,
	COLLECTIVE_ARG_NAME, /* 16 bytes of the group's name */
	COLLECTIVE_ARG_NAME_REST,
	/*
	 * Of the call's options: whose data it is, or who gets it. Where there is no root: the
	 * address of the ranks of the backend's group, 64 bits each; 0: it has a list of none.
	 */
	COLLECTIVE_ARG_ROOT,
	COLLECTIVE_ARG_REDUCTION, /* of the same: in the lowest byte, what is done with the data */
};

/* The options of a call, of which the layout is learnt. */
enum catalog_collective_options {
	CATALOG_OPTIONS_NONE,      /* none, or they say nothing that is read */
	CATALOG_OPTIONS_BROADCAST, /* a root */
	CATALOG_OPTIONS_GATHER,    /* … */
	CATALOG_OPTIONS_SCATTER,   /* … */
	CATALOG_OPTIONS_REDUCE,    /* a reduction, and a root */
	CATALOG_OPTIONS_ALLREDUCE, /* all that begin with a reduction, and have no root */
	CATALOG_OPTIONS_NR
};

/* Of what is between two processes: which of them the peer is. */
enum catalog_collective_peer {
	CATALOG_PEER_NONE, /* it is of all */
	CATALOG_PEER_RECEIVES,
	CATALOG_PEER_SENDS,
	CATALOG_PEER_SENDS_ANY, /* the call does not say who: it is not read */
};

struct catalog_collective {
	const char *name;    /* as Kineto calls it ("allreduce"); NULL: no CALL */
	const char *backend; /* "gloo" */
	/* the name of the first group, of all processes: its ranks are those of the training */
	const char *all;
	enum catalog_collective_role role;
	enum catalog_collective_size size;
	enum catalog_collective_peer peer;
	enum catalog_collective_options options;
	const char *const *reductions; /* names by number, NULL-terminated */
	/* the function that returns the ranks of the backend's group; NULL: there is none */
	const char *ranks;
	/* the function that returns the number of collectives so far; NULL: there is none */
	const char *sequence;
};

/* Whether its options have one; otherwise COLLECTIVE_ARG_ROOT is something else. */
static inline bool catalog_has_root(const struct catalog_collective *of)
{
	return of->options != CATALOG_OPTIONS_NONE && of->options != CATALOG_OPTIONS_ALLREDUCE;
}

/* From whose code it is learnt where a backend keeps what all its collectives have in common. */
struct catalog_collectives {
	const char *library;
	/*
	 * Globs: a process group's function that returns the name, which its backend keeps. Where
	 * there is none, process groups may be backends themselves, and nothing is known of them.
	 */
	const char *group_name;
	const char *constructor; /* the backend's, which is given rank and size */
	/* Functions of a backend that read their options, which are in this register. */
	struct {
		const char *function;
		enum kprof_reg reg;
	} options[CATALOG_OPTIONS_NR];
};

#endif
