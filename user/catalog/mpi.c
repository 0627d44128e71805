// SPDX-License-Identifier: BSD-2-Clause
/*
 * MPI, seen from outside: collectives, messages between two processes, and waiting for either. Open
 * MPI (libmpi) and MPICH with those that have its binary interface (libmpich, libmpi). Signatures
 * are those of the MPI standard, 3.1; calls with counts of 64 bits (MPI_Send_c) are not there.
 *
 * A call that begins something (MPI_Iallreduce) has a row of its own, and so has the wait for it.
 */
#include "catalog/calls.h"
#include "catalog/message.h"

#define ROW(calls, ...)                                                                    \
	{                                                                                  \
		.source = "mpi", .library = "libmpi.so* libmpich.so*", .symbols = (calls), \
		.category = "collective_comm", .shape = CATALOG_SPAN,                      \
		.naming = CATALOG_NAME_SYMBOL, .optional = true, __VA_ARGS__               \
	}
#define MESSAGE(calls, kineto, goes_in, comes_out, ...)                                      \
	ROW(calls,                                                                           \
	    .message = &(const struct catalog_message){.name = (kineto),                     \
						       .in = CATALOG_ELEMENTS_##goes_in,     \
						       .out = CATALOG_ELEMENTS_##comes_out}, \
	    .args = {__VA_ARGS__})
#define MESSAGE_OF(calls, kineto, goes_in, comes_out, with, place, ...)                     \
	ROW(calls,                                                                          \
	    .message = &(const struct catalog_message){.name = (kineto),                    \
						       .in = CATALOG_ELEMENTS_##goes_in,    \
						       .out = CATALOG_ELEMENTS_##comes_out, \
						       .peer = CATALOG_MESSAGE_##with,      \
						       .in_place = (place)},                \
	    .args = {__VA_ARGS__})
#define AT(arg, ...) [MESSAGE_ARG_##arg] = {.from = __VA_ARGS__}
/* The buffer, its count and its type, where these are in registers */
#define DATA(buffer, count, type) \
	AT(BUFFER, REG(buffer)), AT(COUNT, REG(count)), AT(TYPE, REG(type))

static const struct catalog_row rows[] = {
	/* (send buffer, receive buffer, count, type, reduction, communicator) */
	MESSAGE("MPI_Allreduce MPI_Iallreduce", "allreduce", COUNT, COUNT, DATA(1, 3, 4),
		AT(REDUCTION, REG(5)), AT(COMM, REG(6))),
	MESSAGE("MPI_Scan MPI_Iscan", "scan", COUNT, COUNT, DATA(1, 3, 4), AT(REDUCTION, REG(5)),
		AT(COMM, REG(6))),
	MESSAGE("MPI_Exscan MPI_Iexscan", "exscan", COUNT, COUNT, DATA(1, 3, 4),
		AT(REDUCTION, REG(5)), AT(COMM, REG(6))),
	MESSAGE("MPI_Reduce_scatter_block MPI_Ireduce_scatter_block", "reduce_scatter", EACH, COUNT,
		DATA(1, 3, 4), AT(REDUCTION, REG(5)), AT(COMM, REG(6))),
	/* … with an array of counts */
	MESSAGE("MPI_Reduce_scatter MPI_Ireduce_scatter", "reduce_scatter", UNKNOWN, UNKNOWN,
		AT(BUFFER, REG(1)), AT(TYPE, REG(4)), AT(REDUCTION, REG(5)), AT(COMM, REG(6))),
	/* (send buffer, receive buffer, count, type, reduction, root, communicator) */
	MESSAGE("MPI_Reduce MPI_Ireduce", "reduce", COUNT, COUNT, DATA(1, 3, 4),
		AT(REDUCTION, REG(5)), AT(ROOT, REG(6)), AT(COMM, STACK(1))),
	/* (buffer, count, type, root, communicator) */
	MESSAGE("MPI_Bcast MPI_Ibcast", "broadcast", COUNT, COUNT, DATA(1, 2, 3), AT(ROOT, REG(4)),
		AT(COMM, REG(5))),
	/* (send buffer, count, type, receive buffer, count, type, …): what is received is told */
	MESSAGE("MPI_Allgather MPI_Iallgather", "all_gather", COUNT, EACH, DATA(4, 5, 6),
		AT(COMM, STACK(1))),
	MESSAGE("MPI_Alltoall MPI_Ialltoall", "all_to_all", EACH, EACH, DATA(4, 5, 6),
		AT(COMM, STACK(1))),
	MESSAGE_OF("MPI_Scatter MPI_Iscatter", "scatter", UNKNOWN, COUNT, ROOT, true, DATA(4, 5, 6),
		   AT(ROOT, STACK(1)), AT(COMM, STACK(2))),
	/* … what is sent: the root alone receives */
	MESSAGE_OF("MPI_Gather MPI_Igather", "gather", COUNT, UNKNOWN, ROOT, true, DATA(1, 2, 3),
		   AT(ROOT, STACK(1)), AT(COMM, STACK(2))),
	/* … with arrays of counts and displacements on one side, or on both */
	MESSAGE_OF("MPI_Gatherv MPI_Igatherv", "gather", COUNT, UNKNOWN, ROOT, true, DATA(1, 2, 3),
		   AT(ROOT, STACK(2)), AT(COMM, STACK(3))),
	MESSAGE_OF("MPI_Allgatherv MPI_Iallgatherv", "all_gather", COUNT, UNKNOWN, ROOT, true,
		   DATA(1, 2, 3), AT(COMM, STACK(2))),
	MESSAGE_OF("MPI_Scatterv MPI_Iscatterv", "scatter", UNKNOWN, COUNT, ROOT, true,
		   AT(BUFFER, REG(5)), AT(COUNT, REG(6)), AT(TYPE, STACK(1)), AT(ROOT, STACK(2)),
		   AT(COMM, STACK(3))),
	MESSAGE("MPI_Alltoallv MPI_Ialltoallv", "all_to_all", UNKNOWN, UNKNOWN, AT(BUFFER, REG(5)),
		AT(TYPE, STACK(2)), AT(COMM, STACK(3))),
	MESSAGE("MPI_Barrier MPI_Ibarrier", "barrier", UNKNOWN, UNKNOWN, AT(BUFFER, REG(1)),
		AT(COMM, REG(1))),
	/* (buffer, count, type, peer, tag, communicator) */
	MESSAGE_OF("MPI_Send MPI_Isend MPI_Ssend MPI_Issend MPI_Bsend MPI_Ibsend MPI_Rsend "
		   "MPI_Irsend",
		   "send", COUNT, COUNT, TO, false, DATA(1, 2, 3), AT(ROOT, REG(4)),
		   AT(TAG, REG(5)), AT(COMM, REG(6))),
	MESSAGE_OF("MPI_Recv MPI_Irecv", "recv", UNKNOWN, AT_MOST, FROM, false, DATA(1, 2, 3),
		   AT(ROOT, REG(4)), AT(TAG, REG(5)), AT(COMM, REG(6))),
	/* what is sent, to whom, and its tag; the rest is behind it */
	MESSAGE_OF("MPI_Sendrecv", "sendrecv", COUNT, UNKNOWN, TO, false, DATA(1, 2, 3),
		   AT(ROOT, REG(4)), AT(TAG, REG(5))),
	ROW("MPI_Wait MPI_Waitall MPI_Waitany MPI_Waitsome MPI_Probe MPI_Mprobe"),
};

/* ---- types and reductions ---- */

/* By name; the sizes are those of the psABI. MPICH's handles have them. */
static const struct {
	const char *name;
	uint32_t bytes;
	uint32_t handle; /* of MPICH's binary interface; 0: it varies */
} types[] = {
	{"MPI_CHAR", 1, 0x4c000101},           {"MPI_SIGNED_CHAR", 1, 0x4c000118},
	{"MPI_UNSIGNED_CHAR", 1, 0x4c000102},  {"MPI_BYTE", 1, 0x4c00010d},
	{"MPI_PACKED", 1, 0x4c00010f},         {"MPI_SHORT", 2, 0x4c000203},
	{"MPI_UNSIGNED_SHORT", 2, 0x4c000204}, {"MPI_INT", 4, 0x4c000405},
	{"MPI_UNSIGNED", 4, 0x4c000406},       {"MPI_LONG", 8, 0x4c000807},
	{"MPI_UNSIGNED_LONG", 8, 0x4c000808},  {"MPI_LONG_LONG", 8, 0},
	{"MPI_LONG_LONG_INT", 8, 0x4c000809},  {"MPI_UNSIGNED_LONG_LONG", 8, 0x4c000819},
	{"MPI_FLOAT", 4, 0x4c00040a},          {"MPI_DOUBLE", 8, 0x4c00080b},
	{"MPI_LONG_DOUBLE", 16, 0x4c00100c},   {"MPI_INT8_T", 1, 0x4c000137},
	{"MPI_INT16_T", 2, 0x4c000238},        {"MPI_INT32_T", 4, 0x4c000439},
	{"MPI_INT64_T", 8, 0x4c00083a},        {"MPI_UINT8_T", 1, 0x4c00013b},
	{"MPI_UINT16_T", 2, 0x4c00023c},       {"MPI_UINT32_T", 4, 0x4c00043d},
	{"MPI_UINT64_T", 8, 0x4c00083e},
};

/* Of reductions: the name in Open MPI, as much as there is in 8 bytes, and MPICH's handle. */
static const struct {
	const char *begins, *name;
	uint32_t handle;
} reductions[] = {
	{"MPI_MAX", "MAX", 0x58000001},     {"MPI_MIN", "MIN", 0x58000002},
	{"MPI_SUM", "SUM", 0x58000003},     {"MPI_PROD", "PRODUCT", 0x58000004},
	{"MPI_LAND", "LAND", 0x58000005},   {"MPI_BAND", "BAND", 0x58000006},
	{"MPI_LOR", "LOR", 0x58000007},     {"MPI_BOR", "BOR", 0x58000008},
	{"MPI_LXOR", "LXOR", 0x58000009},   {"MPI_BXOR", "BXOR", 0x5800000a},
	{"MPI_MINL", "MINLOC", 0x5800000b}, {"MPI_MAXL", "MAXLOC", 0x5800000c},
};

static bool is_type(const char *name, size_t i, const uint64_t words[2], bool handle)
{
	if (handle)
		return types[i].handle && types[i].handle == words[0];
	/* a name of which all that was read is the same may go on otherwise */
	return strlen(types[i].name) < 2 * sizeof(words[0])
		       ? !strncmp(name, types[i].name, 2 * sizeof(words[0]))
		       : false;
}

bool catalog_message_type(const uint64_t words[2], bool handle,
			  char name[CATALOG_MESSAGE_NAME_BYTES], uint32_t *bytes)
{
	char text[2 * sizeof(words[0]) + 1] = "";

	if (!handle)
		memcpy(text, words, 2 * sizeof(words[0]));
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		if (!is_type(text, i, words, handle))
			continue;
		strcpy(name, types[i].name);
		*bytes = types[i].bytes;
		return true;
	}
	return false;
}

const char *catalog_message_reduction(uint64_t word, bool handle)
{
	char text[sizeof(word) + 1] = "";

	if (!handle)
		memcpy(text, &word, sizeof(word));
	for (size_t i = 0; i < ARRAY_SIZE(reductions); i++)
		if (handle ? reductions[i].handle == word : !strcmp(reductions[i].begins, text))
			return reductions[i].name;
	return NULL;
}

static const char *const libraries[] = {"libmpi.so*", "libmpich.so*", NULL};

const struct catalog_framework catalog_mpi = {
	.name = "mpi",
	.libraries = libraries,
	.common = "MPI_*",
	.rows = rows,
	.nr_rows = ARRAY_SIZE(rows),
	.is_runtime = true,
};
