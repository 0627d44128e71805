/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test double, not PyTorch's: c10d::ProcessGroupNCCL of libtorch_cuda.so, which needs a GPU. It
 * is built with PyTorch's own headers, so that its objects, those that it is called with and the
 * functions that are called are PyTorch's; it runs with PyTorch's libtorch_cpu.so. Its collectives
 * launch kernels with the names of NCCL's on the simulated CUDA of tests/sim, and communicate
 * nothing.
 */
#ifndef KPROF_TEST_NCCLOPS_HPP
#define KPROF_TEST_NCCLOPS_HPP

#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/Work.hpp>

#define NCCLOPS_EXPORT __attribute__((visibility("default")))

/* A step of an optimizer: a kernel that is of no collective. */
extern "C" NCCLOPS_EXPORT void ncclops_step();
/* A kernel inside of an operator, "aten::set_". */
extern "C" NCCLOPS_EXPORT void ncclops_inside();

#ifdef NCCLOPS_NAMES /* older names */
#define ALL_GATHER_SINGLE _allgather_base
#define REDUCE_SCATTER_SINGLE _reduce_scatter_base
#else
#define ALL_GATHER_SINGLE all_gather_single
#define REDUCE_SCATTER_SINGLE reduce_scatter_single
#endif

namespace c10d
{
typedef std::vector<at::Tensor> Tensors;

/* Where PyTorch 2.15 has it, that is in its Backend::Options. */
struct NcclOptions : torch::CustomClassHolder {
	std::string others[3];
	std::vector<uint64_t> global_ranks_in_group;
};

class NCCLOPS_EXPORT ProcessGroupNCCL : public Backend
{
	uint64_t seq = 0;
	c10::intrusive_ptr<NcclOptions> options_;
	std::vector<uint64_t> all_;

      public:
	ProcessGroupNCCL(int rank, int size, const std::string &name,
			 const std::vector<uint64_t> &ranks);
	const std::vector<uint64_t> &groupRanks() const;
	~ProcessGroupNCCL() override;
	const std::string getBackendName() const override
	{
		return "nccl";
	}
	uint64_t getSequenceNumberForGroup() override;
	c10::intrusive_ptr<Work> allreduce(Tensors &, const AllreduceOptions &) override;
	c10::intrusive_ptr<Work> broadcast(Tensors &, const BroadcastOptions &) override;
	c10::intrusive_ptr<Work> reduce(Tensors &, const ReduceOptions &) override;
	c10::intrusive_ptr<Work> allgather(std::vector<Tensors> &, Tensors &,
					   const AllgatherOptions &) override;
	c10::intrusive_ptr<Work> reduce_scatter(Tensors &, std::vector<Tensors> &,
						const ReduceScatterOptions &) override;
	c10::intrusive_ptr<Work> ALL_GATHER_SINGLE(at::Tensor &, at::Tensor &,
						   const AllgatherOptions &) override;
	c10::intrusive_ptr<Work> REDUCE_SCATTER_SINGLE(at::Tensor &, at::Tensor &,
						       const ReduceScatterOptions &) override;
	c10::intrusive_ptr<Work> gather(std::vector<Tensors> &, Tensors &,
					const GatherOptions &) override;
	c10::intrusive_ptr<Work> scatter(Tensors &, std::vector<Tensors> &,
					 const ScatterOptions &) override;
	c10::intrusive_ptr<Work> barrier(const BarrierOptions &) override;
	c10::intrusive_ptr<Work> send(Tensors &, int, int) override;
	c10::intrusive_ptr<Work> recv(Tensors &, int, int) override;
};
} // namespace c10d

#endif
