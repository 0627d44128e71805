// SPDX-License-Identifier: BSD-2-Clause
/* The numbers are those of torch.profiler(with_flops=True), PyTorch 2.15, for the same calls. */
#include "model/report/flops.h"

#include "unit.h"

#define CONV(stride, padding, dilation, groups) \
	"[\"\", \"\", \"\", \"" stride "\", \"" padding "\", \"" dilation "\", \"" groups "\"]"

static void as_torch_counts(void)
{
	CHECK_EQ(flops_of_inputs("aten::mm", "[[3, 4], [4, 5]]", "[]"), 120);
	CHECK_EQ(flops_of_inputs("aten::addmm", "[[5], [3, 4], [4, 5], [], []]", "[]"), 120);
	CHECK_EQ(flops_of_inputs("aten::bmm", "[[2, 3, 4], [2, 4, 5]]", "[]"), 240);
	CHECK_EQ(
		flops_of_inputs("aten::baddbmm", "[[2, 3, 5], [2, 3, 4], [2, 4, 5], [], []]", "[]"),
		240);
	CHECK_EQ(flops_of_inputs("aten::mul", "[[3, 4], [3, 4]]", "[]"), 12);
	CHECK_EQ(flops_of_inputs("aten::mul", "[[1, 4], [3, 4]]", "[]"), 4);
	CHECK_EQ(flops_of_inputs("aten::mul", "[[], [3, 4]]", "[]"), 1);
	CHECK_EQ(flops_of_inputs("aten::add", "[[0], [], []]", "[]"), 0);
	CHECK_EQ(flops_of_inputs("aten::add", "[[3, 4], [], []]", "[]"), 12);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]",
				 CONV("[1, 1]", "[0, 0]", "[1, 1]", "1")),
		 15552);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[2, 3, 8, 8], [6, 1, 3, 3], [], [], [], [], []]",
				 CONV("[2, 2]", "[1, 1]", "[1, 1]", "3")),
		 3456);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 2], [], [], [], [], []]",
				 CONV("[1, 2]", "[1, 0]", "[2, 1]", "1")),
		 6912);
}

static void what_is_not_counted(void)
{
	CHECK_EQ(flops_of_inputs("aten::sub", "[[3, 4], [3, 4]]", "[]"), 0);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]",
				 CONV("[1, 1]", "[0, 0]", "[1, 1]", "1")),
		 0);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]",
				 "[]"),
		 0);
}

/* A capture may have anything. */
static void nonsense(void)
{
	static const char *const dims[] = {
		"",
		"x",
		"{}",
		"[]",
		"[[]]",
		"[[3, 4]]",
		"[[3, 4], []]",
		"[[3, -4], [4, 5]]",
		"[[3, 4], [5, 6]]",
		"[[1e300, 2], [2, 2]]",
		"[[\"a\", 2], [2, 2]]",
		"[3, 4]",
		"[[1,1,1,1,1,1,1,1,1,1], [1,1]]",
		"[[0.5, 2], [2, 2]]",
	};

	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++) {
		CHECK_EQ(flops_of_inputs("aten::mm", dims[i], ""), 0);
		CHECK_EQ(flops_of_inputs("aten::conv2d", dims[i], dims[i]), 0);
	}
	CHECK(flops_of_inputs("aten::mul", "[[9007199254740992, 9007199254740992], []]", "") ==
	      UINT64_MAX);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]",
				 CONV("[0, 1]", "[0, 0]", "[1, 1]", "1")),
		 0);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], []]",
				 CONV("[1, 1]", "[0, 0]", "[9, 9]", "1")),
		 0);
	CHECK_EQ(flops_of_inputs("aten::conv2d", "[[2, 3, 8, 8], [4, 3, 0, 3], [], [], [], [], []]",
				 CONV("[1, 1]", "[0, 0]", "[1, 1]", "0")),
		 0);
}

UNIT_MAIN(TEST(as_torch_counts), TEST(what_is_not_counted), TEST(nonsense))
