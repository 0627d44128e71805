/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is read of the calls of MPI, collectives and messages between two processes. MPI's handles
 * are addresses of objects in Open MPI, which have names, and numbers in MPICH and its relatives,
 * in which predefined types have their size.
 */
#ifndef KPROF_CATALOG_MESSAGE_H
#define KPROF_CATALOG_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

/* The arguments of a call, which a row has in this order: where the argument itself is. */
enum catalog_message_arg {
	MESSAGE_ARG_BUFFER, /* the one that COUNT and TYPE are of; where it is none, anything */
	MESSAGE_ARG_COUNT,
	MESSAGE_ARG_TYPE,
	MESSAGE_ARG_TYPE_REST, /* not in rows: 8 further bytes of the type's name */
	MESSAGE_ARG_REDUCTION,
	MESSAGE_ARG_ROOT, /* or the peer */
	MESSAGE_ARG_TAG,
	MESSAGE_ARG_COMM,
	MESSAGE_ARG_RANK, /* not in rows: this process's in the communicator */
	MESSAGE_ARG_SIZE, /* not in rows: how many there are */
};

/* How many elements go in and come out. */
enum catalog_message_elements {
	CATALOG_ELEMENTS_UNKNOWN,
	CATALOG_ELEMENTS_COUNT,
	CATALOG_ELEMENTS_EACH,    /* so many for each rank */
	CATALOG_ELEMENTS_AT_MOST, /* there was room for so many */
};

enum catalog_message_peer {
	CATALOG_MESSAGE_ROOT,
	CATALOG_MESSAGE_TO,
	CATALOG_MESSAGE_FROM,
};

struct catalog_message {
	const char *name; /* as Kineto calls such a collective */
	uint8_t in, out;  /* enum catalog_message_elements */
	uint8_t peer;     /* enum catalog_message_peer: what MESSAGE_ARG_ROOT is */
	bool in_place;    /* where BUFFER is MPI_IN_PLACE, count and type say nothing */
};

#define CATALOG_MESSAGE_NAME_BYTES 32
/*
 * The name of a predefined type ("MPI_DOUBLE") and the size of its elements; 0: not known. words:
 * the beginning of its name, or the handle; NULL: that is all that is known of it.
 */
bool catalog_message_type(const uint64_t words[2], bool handle,
			  char name[CATALOG_MESSAGE_NAME_BYTES], uint32_t *bytes);
/* The same of a predefined reduction: "SUM". NULL: not known. */
const char *catalog_message_reduction(uint64_t word, bool handle);

/* Of what it is learnt where Open MPI keeps names and numbers. */
#define CATALOG_MESSAGE_A_TYPE "ompi_mpi_double"
#define CATALOG_MESSAGE_A_TYPE_NAME "MPI_DOUBLE"
/* A reduction's name is behind the head of all of its objects. */
#define CATALOG_MESSAGE_REDUCTION_NAME 16
#define CATALOG_MESSAGE_RANK "MPI_Comm_rank"
#define CATALOG_MESSAGE_SIZE "MPI_Comm_size"

#endif
