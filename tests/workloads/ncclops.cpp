/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rank 1 of 4 ranks, without the others: calls collectives of NCCL's, which launch simulated
 * kernels (ncclops.hpp).
 *
 *   ncclops [--n N] [--linger]
 *
 * Speaks the protocol of protocol.py. Its line of JSON: "calls", for each call of a round, in order,
 * its name, the kernel that it launches and what is communicated, as Kineto names it; "rounds".
 */
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <ATen/ATen.h>

#include "cuda_runtime.h"
#include "ncclops.hpp"

using namespace c10d;

/* The libtorch_cpu.so of 2.3 wants this of CUPTI, which the simulated has not. */
#ifdef NCCLOPS_2_3
extern "C" int cuptiEventGroupSetAttribute()
{
	return 1;
}
#endif

/*
 * What is called, which kernel that launches, elements in and out, their type, further arguments;
 * root and reduction, which only the call has.
 */
static const struct {
	const char *name, *kernel, *collective;
	int in, out;
	const char *type, *more, *options;
} books[] = {
	{"all_reduce", "AllReduce_Sum_f32_RING_LL", "allreduce", 60, 60, "Float", "",
	 "\"Reduction\": \"SUM\""},
	{"broadcast", "Broadcast_RING_LL", "broadcast", 7, 7, "Long", "", "\"Root Rank\": 2"},
	{"reduce", "Reduce_Max_f64_RING_LL", "reduce", 9, 9, "Double", "",
	 "\"Root Rank\": 3, \"Reduction\": \"MAX\""},
	{"all_gather", "AllGather_RING_LL", "all_gather", 5, 20, "Float", "", ""},
	{"_all_gather_base", "AllGather_RING_LL", "_allgather_base", 2, 8, "Float", "", ""},
	{"reduce_scatter", "ReduceScatter_Sum_f32_RING_LL", "reduce_scatter", 12, 3, "Float", "",
	 "\"Reduction\": \"MIN\""},
	{"_reduce_scatter_base", "ReduceScatter_Sum_f32_RING_LL", "_reduce_scatter_base", 8, 2,
	 "Float", "", "\"Reduction\": \"AVG\""},
	{"gather", "SendRecv", "gather", 5, 20, "Float", "", "\"Root Rank\": 1"},
	{"scatter", "SendRecv", "scatter", 12, 3, "Float", "", "\"Root Rank\": 2"},
	{"send", "SendRecv", "send", 11, 11, "Float", ", \"Src Rank\": 1, \"Dst Rank\": 3", ""},
	{"recv", "SendRecv", "recv", 13, 13, "Float", ", \"Src Rank\": 2, \"Dst Rank\": 1", ""},
	{"all_reduce_barrier", "AllReduce_Sum_f32_RING_LL", "barrier", 0, 0, "", "", ""},
};

static void say_books()
{
	for (auto &b : books) {
		printf("%s[\"nccl:%s\", \"%s\", {\"Collective name\": \"%s\"%s",
		       &b == books ? "" : ", ", b.name, b.kernel, b.collective, b.more);
		if (*b.type)
			printf(", \"In msg nelems\": %d, \"Out msg nelems\": %d, \"dtype\": \"%s\"",
			       b.in, b.out, b.type);
		printf(", \"Process Group Name\": \"0\", \"Process Group Ranks\": [0, 1, 2, 3], "
		       "\"Group size\": 4}, {\"Rank\": 1%s%s}]",
		       *b.options ? ", " : "", b.options);
	}
	/* The other group: a call with a root does not tell the ranks. */
	printf(", [\"nccl:all_reduce\", \"AllReduce_Sum_f32_RING_LL\", {\"Collective name\": \"allreduce\", "
	       "\"In msg nelems\": 5, \"Out msg nelems\": 5, \"dtype\": \"Float\", \"Process Group Name\": \"17\", "
	       "\"Process Group Ranks\": [3, 0, 1], \"Group size\": 3}, {\"Rank\": 2, \"Reduction\": \"SUM\"}]");
	printf(", [\"nccl:broadcast\", \"Broadcast_RING_LL\", {\"Collective name\": \"broadcast\", "
	       "\"In msg nelems\": 5, \"Out msg nelems\": 5, \"dtype\": \"Float\", \"Process Group Name\": \"17\", "
	       "\"Group size\": 3}, {\"Rank\": 2, \"Root Rank\": 0}]");
}

static void one_round(Backend &group, Backend &small)
{
	Tensors all{at::ones({6, 10})}, some{at::ones({7}, at::kLong)}, mine{at::ones({5})};
	Tensors exact{at::ones({9}, at::kDouble)}, part{at::ones({3})}, to{at::ones({11})};
	Tensors from{at::ones({13})};
	std::vector<Tensors> gathered{Tensors(4, at::ones({5}))}, parts{Tensors(4, at::ones({3}))};
	at::Tensor whole = at::ones({8}), piece = at::ones({2});
	BroadcastOptions root;
	ReduceOptions max;
	ReduceScatterOptions min, average;
	GatherOptions to_self;
	ScatterOptions from_other;

	min.reduceOp = ReduceOp::MIN;
	average.reduceOp = ReduceOp::AVG;
	to_self.rootRank = 1;
	from_other.rootRank = 2;
	root.rootRank = 2;
	max.rootRank = 3;
	max.reduceOp = ReduceOp::MAX;
	group.allreduce(all, AllreduceOptions());
	group.broadcast(some, root);
	group.reduce(exact, max);
	group.allgather(gathered, mine, AllgatherOptions());
	group.ALL_GATHER_SINGLE(whole, piece, AllgatherOptions());
	group.reduce_scatter(part, parts, min);
	group.REDUCE_SCATTER_SINGLE(piece, whole, average);
	group.gather(gathered, mine, to_self);
	group.scatter(part, parts, from_other);
	group.send(to, 3, 0);
	group.recv(from, 2, 0);
	group.barrier(BarrierOptions());
	small.allreduce(mine, AllreduceOptions());
	small.broadcast(mine, BroadcastOptions());
	ncclops_step();
	cudaDeviceSynchronize();
}

static void wait_for_line(bool needed)
{
	char c = 0;
	ssize_t got;

	do
		got = read(STDIN_FILENO, &c, 1);
	while (got == 1 && c != '\n');
	if (got != 1 && needed)
		exit(9);
}

int main(int argc, char **argv)
{
	unsigned long n = 20;
	bool linger = false;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--linger"))
			linger = true;
		else if (!strcmp(argv[i], "--n") && i + 1 < argc)
			n = strtoul(argv[++i], nullptr, 0);
		else
			return fputs("usage: ncclops [--n N] [--linger]\n", stderr), 2;
	}
	auto group = c10::make_intrusive<ProcessGroupNCCL>(1, 4, "0", std::vector<uint64_t>());
	auto small =
		c10::make_intrusive<ProcessGroupNCCL>(2, 3, "17", std::vector<uint64_t>{3, 0, 1});

	one_round(*group, *small);
	printf("READY %d\n", getpid());
	fflush(stdout);
	wait_for_line(true);
	for (unsigned long i = 0; i < n; i++)
		one_round(*group, *small);
	printf("{\"mode\": \"ncclops\", \"pid\": %d, \"rounds\": %lu, \"calls\": [", getpid(), n);
	say_books();
	printf("]}\n");
	fflush(stdout);
	if (linger)
		wait_for_line(false);
	_exit(0);
}
