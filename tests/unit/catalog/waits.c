// SPDX-License-Identifier: BSD-2-Clause
/* What functions wait for, by their names. */
#include "catalog/waits.h"

#include "unit.h"
#include "util/util.h"

static void of_mpi(void)
{
	static const char *const collectives[] = {
		"MPI_Allreduce",
		"MPI_Iallreduce",
		"MPI_Bcast",
		"MPI_Reduce",
		"MPI_Allgatherv",
		"MPI_Alltoallw",
		"MPI_Barrier",
		"MPI_Exscan",
		"MPI_Gatherv",
		"MPI_Iscatterv",
		"MPI_Reduce_scatter",
		"MPI_Reduce_scatter_block",
		"PMPI_Allreduce",
		"MPI_Allreduce_c",
		"MPI_Neighbor_allgather",
		"PMPI_Ialltoallv_c",
		"c10d::allreduce_",
		"nccl:all_reduce",
		"MPI_Ineighbor_alltoallw",
	};
	static const char *const messages[] = {"MPI_Send",  "MPI_Isend",           "MPI_Recv",
					       "MPI_Wait",  "MPI_Waitall",         "MPI_Sendrecv",
					       "PMPI_Recv", "MPI_Send_c",          "MPI_Probe",
					       "MPI_Mrecv", "MPI_Sendrecv_replace"};
	static const char *const neither[] = {
		"MPI_Init",
		"MPI_Comm_rank",
		"MPI_Reduce_local",
		"MPI_Type_commit",
		"MPI_Test",
		"MPI_Allreduce_init",
		"PMPI_Finalize",
		"MPI_",
		"_c",
		"",
		"MPI_Sendings",
		"aten::mm",
		"MPI_a_function_with_a_name_that_is_longer_than_any_of_the_standard_has_c",
	};

	for (size_t i = 0; i < ARRAY_SIZE(collectives); i++) {
		CHECK(catalog_wait_collective(collectives[i]));
		CHECK(!catalog_wait_message(collectives[i]));
	}
	for (size_t i = 0; i < ARRAY_SIZE(messages); i++) {
		CHECK(!catalog_wait_collective(messages[i]));
		CHECK(catalog_wait_message(messages[i]));
	}
	for (size_t i = 0; i < ARRAY_SIZE(neither); i++) {
		CHECK(!catalog_wait_collective(neither[i]));
		CHECK(!catalog_wait_message(neither[i]));
	}
}

UNIT_MAIN(TEST(of_mpi))
