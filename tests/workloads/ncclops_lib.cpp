/* SPDX-License-Identifier: BSD-2-Clause */
/* Built as libtorch_cuda.so: A TEST DOUBLE OF A PART OF IT; see ncclops.hpp. */
#include "ncclops.hpp"

#include <ATen/ATen.h>

#include <cstdio>
#include <cstdlib>

#include "cuda_runtime.h"

#define NOINLINE __attribute__((noinline, noclone))

enum kernel {
	ALL_REDUCE,
	BROADCAST,
	REDUCE,
	ALL_GATHER,
	REDUCE_SCATTER,
	SEND_RECV,
	STEP,
	COPY,
	NR
};

static char hosts[NR];
static void nothing(void **, sim_dim3, sim_dim3)
{
}
#define NCCL(name) name "24ncclDevKernelArgsStorageILm4096EE"
#define KERNEL(name)                                 \
	{                                            \
		name, 96, 0, 0, 0, 0, 20000, nothing \
	}
static const struct sim_kernel_desc kernels[NR] = {
	KERNEL(NCCL("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL")),
	KERNEL(NCCL("_Z31ncclDevKernel_Broadcast_RING_LL")),
	KERNEL(NCCL("_Z36ncclDevKernel_Reduce_Max_f64_RING_LL")),
	KERNEL(NCCL("_Z31ncclDevKernel_AllGather_RING_LL")),
	KERNEL(NCCL("_Z43ncclDevKernel_ReduceScatter_Sum_f32_RING_LL")),
	KERNEL(NCCL("_Z22ncclDevKernel_SendRecv")),
	KERNEL("_Z10sgd_kernelv"),
	KERNEL("_Z11copy_kernelv"),
};
static const struct sim_image image = {SIM_IMAGE_MAGIC, NR, kernels};
static struct sim_fatbin fatbin = {SIM_FATBIN_MAGIC, 1, &image, nullptr};

__attribute__((constructor)) static void register_kernels()
{
	void **handle = __cudaRegisterFatBinary(&fatbin);

	for (int i = 0; i < NR; i++)
		__cudaRegisterFunction(handle, &hosts[i], nullptr, kernels[i].name, -1, nullptr,
				       nullptr, nullptr, nullptr, nullptr);
	__cudaRegisterFatBinaryEnd(handle);
}

static void launch(enum kernel kernel)
{
	cudaError_t err =
		cudaLaunchKernel(&hosts[kernel], {24, 1, 1}, {544, 1, 1}, nullptr, 0, nullptr);

	if (!err)
		return;
	fprintf(stderr, "ncclops: %s\n", cudaGetErrorString(err));
	exit(1);
}

NOINLINE void ncclops_step()
{
	launch(STEP);
}

/* A tensor's memory is freed inside of the operator that gives the tensor other memory. */
NOINLINE void ncclops_inside()
{
	static float number;
	at::Tensor t = at::from_blob(
		&number, {1}, [](void *) { launch(COPY); }, at::kFloat);

	t.set_();
}

namespace c10d
{
ProcessGroupNCCL::ProcessGroupNCCL(int rank, int size, const std::string &name,
				   const std::vector<uint64_t> &ranks)
    : Backend(rank, size), options_(c10::make_intrusive<NcclOptions>())
{
	options_->global_ranks_in_group = ranks;
	for (int i = 0; i < size; i++)
		all_.push_back(i);
#ifdef NCCLOPS_2_3
	setGroupName(name);
#else
	setGroupUid(name);
#endif
}

ProcessGroupNCCL::~ProcessGroupNCCL() = default;

NOINLINE const std::vector<uint64_t> &ProcessGroupNCCL::groupRanks() const
{
	if (options_->global_ranks_in_group.empty())
		return all_;
	return options_->global_ranks_in_group;
}

NOINLINE uint64_t ProcessGroupNCCL::getSequenceNumberForGroup()
{
	return seq;
}

static c10::intrusive_ptr<Work> work(uint64_t *seq, enum kernel kernel)
{
	*seq += 1;
	launch(kernel);
	return c10::intrusive_ptr<Work>();
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::allreduce(Tensors &, const AllreduceOptions &)
{
	ncclops_inside();
	return work(&seq, ALL_REDUCE);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::broadcast(Tensors &, const BroadcastOptions &)
{
	return work(&seq, BROADCAST);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::reduce(Tensors &, const ReduceOptions &)
{
	return work(&seq, REDUCE);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::allgather(std::vector<Tensors> &, Tensors &,
						     const AllgatherOptions &)
{
	return work(&seq, ALL_GATHER);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::reduce_scatter(Tensors &, std::vector<Tensors> &,
							  const ReduceScatterOptions &)
{
	return work(&seq, REDUCE_SCATTER);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::ALL_GATHER_SINGLE(at::Tensor &, at::Tensor &,
							     const AllgatherOptions &)
{
	return work(&seq, ALL_GATHER);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::REDUCE_SCATTER_SINGLE(at::Tensor &, at::Tensor &,
								 const ReduceScatterOptions &)
{
	return work(&seq, REDUCE_SCATTER);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::gather(std::vector<Tensors> &, Tensors &,
						  const GatherOptions &)
{
	return work(&seq, SEND_RECV);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::scatter(Tensors &, std::vector<Tensors> &,
						   const ScatterOptions &)
{
	return work(&seq, SEND_RECV);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::barrier(const BarrierOptions &)
{
	return work(&seq, ALL_REDUCE);
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::send(Tensors &, int, int)
{
	launch(SEND_RECV);
	return c10::intrusive_ptr<Work>();
}

c10::intrusive_ptr<Work> ProcessGroupNCCL::recv(Tensors &, int, int)
{
	launch(SEND_RECV);
	return c10::intrusive_ptr<Work>();
}
} // namespace c10d
