/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ranks of MPI that communicate, and keep books.
 *
 *   mpirun -n 2 mpiops FOLDER ROUNDS
 *
 * Rank 0 says READY and waits for a line; the other one waits for FOLDER/go, without MPI. Then each
 * writes FOLDER/RANK.json: its process, and each call in order: [function, what is known
 * of it under the keys that a trace has]. Sizes of types are those that MPI says.
 */
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static FILE *books;
static int rank, size;

static void book(const char *function, const char *format, ...)
{
	static int others;
	va_list args;

	fprintf(books, "%s\n[\"%s\", {", others++ ? "," : "", function);
	va_start(args, format);
	vfprintf(books, format, args);
	va_end(args);
	fputs("}]", books);
}

static unsigned long bytes_of(MPI_Datatype type, int nr)
{
	int bytes;

	MPI_Type_size(type, &bytes);
	return (unsigned long)bytes * (unsigned long)nr;
}

#define GROUP "\"Rank\": %d, \"Group size\": %d"
#define ELEMENTS "\"In msg nelems\": %d, \"Out msg nelems\": %d, \"dtype\": \"%s\", \"bytes\": %lu"

static void wait_to_go(const char *folder)
{
	char path[4096];
	int c;

	snprintf(path, sizeof(path), "%s/go", folder);
	if (!rank) {
		printf("READY %d\n", getpid());
		fflush(stdout);
		while ((c = getchar()) != EOF && c != '\n')
			;
		fclose(fopen(path, "w"));
	}
	while (access(path, F_OK))
		usleep(10000);
}

static void reductions(const double *in, double *out)
{
	int numbers[8] = {0};

	book("MPI_Allreduce",
	     "\"Collective name\": \"allreduce\", " GROUP ", " ELEMENTS ", \"Reduction\": \"SUM\"",
	     rank, size, 7, 7, "MPI_DOUBLE", bytes_of(MPI_DOUBLE, 7));
	MPI_Allreduce(in, out, 7, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	book("MPI_Allreduce",
	     "\"Collective name\": \"allreduce\", " GROUP ", " ELEMENTS ", \"Reduction\": \"MAX\"",
	     rank, size, 8, 8, "MPI_INT", bytes_of(MPI_INT, 8));
	MPI_Allreduce(MPI_IN_PLACE, numbers, 8, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
	/* the communicator is on the stack: its size is not read */
	book("MPI_Reduce",
	     "\"Collective name\": \"reduce\", \"Rank\": %d, " ELEMENTS
	     ", \"Reduction\": \"PRODUCT\", \"Root Rank\": 1",
	     rank, 5, 5, "MPI_DOUBLE", bytes_of(MPI_DOUBLE, 5));
	MPI_Reduce(in, out, 5, MPI_DOUBLE, MPI_PROD, 1, MPI_COMM_WORLD);
	book("MPI_Scan",
	     "\"Collective name\": \"scan\", " GROUP ", " ELEMENTS ", \"Reduction\": \"MIN\"", rank,
	     size, 3, 3, "MPI_DOUBLE", bytes_of(MPI_DOUBLE, 3));
	MPI_Scan(in, out, 3, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
	book("MPI_Reduce_scatter_block",
	     "\"Collective name\": \"reduce_scatter\", " GROUP ", " ELEMENTS
	     ", \"Reduction\": \"SUM\"",
	     rank, size, 4 * size, 4, "MPI_DOUBLE", bytes_of(MPI_DOUBLE, 4 * size));
	MPI_Reduce_scatter_block(in, out, 4, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void copies(const float *in, float *out)
{
	book("MPI_Bcast",
	     "\"Collective name\": \"broadcast\", " GROUP ", " ELEMENTS ", \"Root Rank\": 1", rank,
	     size, 9, 9, "MPI_FLOAT", bytes_of(MPI_FLOAT, 9));
	MPI_Bcast(out, 9, MPI_FLOAT, 1, MPI_COMM_WORLD);
	book("MPI_Allgather",
	     "\"Collective name\": \"all_gather\", \"Rank\": %d, \"In msg nelems\": 6, \"dtype\": \"MPI_FLOAT\"",
	     rank);
	MPI_Allgather(in, 6, MPI_FLOAT, out, 6, MPI_FLOAT, MPI_COMM_WORLD);
	book("MPI_Gather",
	     "\"Collective name\": \"gather\", \"Rank\": %d, \"In msg nelems\": 4, \"dtype\": \"MPI_FLOAT\", "
	     "\"Root Rank\": 0",
	     rank);
	MPI_Gather(in, 4, MPI_FLOAT, out, 4, MPI_FLOAT, 0, MPI_COMM_WORLD);
	/* in place, where the root's count and type mean nothing: these here are wrong */
	if (rank) {
		book("MPI_Gather",
		     "\"Collective name\": \"gather\", \"Rank\": %d, \"In msg nelems\": 4, \"dtype\": \"MPI_FLOAT\", "
		     "\"Root Rank\": 0",
		     rank);
		MPI_Gather(in, 4, MPI_FLOAT, NULL, 0, MPI_FLOAT, 0, MPI_COMM_WORLD);
	} else {
		book("MPI_Gather",
		     "\"Collective name\": \"gather\", \"Rank\": %d, \"Root Rank\": 0", rank);
		MPI_Gather(MPI_IN_PLACE, 77, MPI_INT, out, 4, MPI_FLOAT, 0, MPI_COMM_WORLD);
	}
	book("MPI_Scatter",
	     "\"Collective name\": \"scatter\", \"Rank\": %d, \"Out msg nelems\": 2, \"dtype\": \"MPI_FLOAT\", "
	     "\"Root Rank\": 1",
	     rank);
	MPI_Scatter(in, 2, MPI_FLOAT, out, 2, MPI_FLOAT, 1, MPI_COMM_WORLD);
	book("MPI_Alltoall",
	     "\"Collective name\": \"all_to_all\", \"Rank\": %d, \"dtype\": \"MPI_FLOAT\"", rank);
	MPI_Alltoall(in, 3, MPI_FLOAT, out, 3, MPI_FLOAT, MPI_COMM_WORLD);
	book("MPI_Barrier", "\"Collective name\": \"barrier\", " GROUP, rank, size);
	MPI_Barrier(MPI_COMM_WORLD);
}

static void messages(const float *in, float *out, MPI_Comm mine, MPI_Datatype pair)
{
	int other = 1 - rank;
	MPI_Request requests[2];

	if (rank == 0) {
		book("MPI_Send",
		     "\"Collective name\": \"send\", " GROUP ", " ELEMENTS
		     ", \"Src Rank\": 0, \"Dst Rank\": 1, \"tag\": 42",
		     rank, size, 11, 11, "MPI_FLOAT", bytes_of(MPI_FLOAT, 11));
		MPI_Send(in, 11, MPI_FLOAT, 1, 42, MPI_COMM_WORLD);
	} else { /* there is room for more */
		book("MPI_Recv",
		     "\"Collective name\": \"recv\", " GROUP
		     ", \"dtype\": \"MPI_FLOAT\", \"Out msg nelems at most\": 16, \"Dst Rank\": 1",
		     rank, size);
		MPI_Recv(out, 16, MPI_FLOAT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
			 MPI_STATUS_IGNORE);
	}
	/* to nobody, nothing */
	book("MPI_Send",
	     "\"Collective name\": \"send\", " GROUP
	     ", \"dtype\": \"MPI_FLOAT\", \"Src Rank\": %d, \"tag\": 43",
	     rank, size, rank);
	MPI_Send(in, 11, MPI_FLOAT, MPI_PROC_NULL, 43, MPI_COMM_WORLD);
	/* of a type that the program has made, whose name says nothing */
	book("MPI_Irecv",
	     "\"Collective name\": \"recv\", " GROUP
	     ", \"Out msg nelems at most\": 2, \"Src Rank\": %d, \"Dst Rank\": %d, \"tag\": 7",
	     rank, size, other, rank);
	MPI_Irecv(out, 2, pair, other, 7, MPI_COMM_WORLD, &requests[0]);
	book("MPI_Isend",
	     "\"Collective name\": \"send\", " GROUP
	     ", \"In msg nelems\": 2, \"Out msg nelems\": 2, \"Src Rank\": %d, \"Dst Rank\": %d, \"tag\": 7",
	     rank, size, rank, other);
	MPI_Isend(in, 2, pair, other, 7, MPI_COMM_WORLD, &requests[1]);
	book("MPI_Waitall", " ");
	MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
	/* in a group of its own, of one */
	book("MPI_Iallreduce",
	     "\"Collective name\": \"allreduce\", \"Rank\": 0, \"Group size\": 1, " ELEMENTS
	     ", \"Reduction\": \"SUM\"",
	     1, 1, "MPI_FLOAT", bytes_of(MPI_FLOAT, 1));
	MPI_Iallreduce(in, out, 1, MPI_FLOAT, MPI_SUM, mine, &requests[0]);
	book("MPI_Wait", " ");
	MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
	static double doubles[64], more_doubles[64];
	static float floats[64], more_floats[64];
	MPI_Datatype pair;
	MPI_Comm mine;
	char path[4096];

	MPI_Init(&argc, &argv);
	if (argc < 3)
		return 2;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &mine);
	MPI_Type_contiguous(2, MPI_FLOAT, &pair);
	MPI_Type_commit(&pair);
	snprintf(path, sizeof(path), "%s/%d.json", argv[1], rank);
	books = fopen(path, "w");
	if (!books)
		return 3;
	wait_to_go(argv[1]);
	fprintf(books, "{\"pid\": %d, \"calls\": [", getpid());
	for (int i = 0; i < atoi(argv[2]); i++) {
		reductions(doubles, more_doubles);
		copies(floats, more_floats);
		messages(floats, more_floats, mine, pair);
	}
	fputs("]}\n", books);
	fclose(books);
	if (!rank) {
		printf("{\"mode\": \"mpiops\", \"pid\": %d}\n", getpid());
		fflush(stdout);
		while (getchar() != EOF)
			;
	}
	MPI_Finalize();
	return 0;
}
