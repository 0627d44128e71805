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

/* As torch.utils.flop_counter counts, PyTorch 2.15. */
static void convolutions(void)
{
	static const char of_1d[] =
		"[\"\", \"\", \"\", \"[2]\", \"[1]\", \"[1]\", \"False\", \"[0]\", \"1\"]";
	static const char transposed[] =
		"[\"\", \"\", \"\", \"[2, 2]\", \"[0, 0]\", \"[1, 1]\", \"True\", \"[0, 0]\", \"1\"]";

	CHECK_EQ(flops_of_inputs("aten::convolution",
				 "[[2, 4, 9], [6, 4, 3], [], [], [], [], [], [], []]", of_1d),
		 1440);
	CHECK_EQ(flops_of_inputs("aten::convolution",
				 "[[2, 4, 9, 11], [4, 6, 3, 3], [], [], [], [], [], [], []]",
				 transposed),
		 85536);
	/* The padding is not known. */
	CHECK_EQ(flops_of_inputs("aten::convolution", "[[2, 4, 9], [6, 4, 3]]",
				 "[\"\", \"\", \"\", \"[2]\", \"\", \"[1]\"]"),
		 0);
#define BACKWARD(transposed, mask)                                                      \
	"[\"\", \"\", \"\", \"[0]\", \"[1, 1]\", \"[1, 1]\", \"[1, 1]\", \"" transposed \
	"\", \"[0, 0]\", \"1\", \"" mask "\"]"
#define SIZES "[[2, 6, 9, 11], [2, 4, 9, 11], [6, 4, 3, 3], [], [], [], [], [], [], [], []]"
	CHECK_EQ(flops_of_inputs("aten::convolution_backward", SIZES,
				 BACKWARD("False", "[True, True, False]")),
		 171072);
	CHECK_EQ(flops_of_inputs("aten::convolution_backward", SIZES,
				 BACKWARD("False", "[False, True, True]")),
		 85536);
	CHECK_EQ(flops_of_inputs("aten::convolution_backward", SIZES,
				 BACKWARD("False", "[True, False, True]")),
		 85536);
	CHECK_EQ(flops_of_inputs("aten::convolution_backward", SIZES,
				 BACKWARD("False", "[False, False, True]")),
		 0);
	CHECK_EQ(flops_of_inputs("aten::convolution_backward",
				 "[[2, 6, 19, 23], [2, 4, 9, 11], [4, 6, 3, 3]]",
				 BACKWARD("True", "[False, True, True]")),
		 85536);
	CHECK_EQ(flops_of_inputs("aten::convolution_backward", SIZES, "[]"), 0);
}

static void attention(void)
{
	CHECK_EQ(flops_of_inputs("aten::_scaled_dot_product_flash_attention_for_cpu",
				 "[[2, 4, 16, 8], [2, 4, 20, 8], [2, 4, 20, 8], [], [], [], []]",
				 "[]"),
		 81920);
	CHECK_EQ(
		flops_of_inputs(
			"aten::_scaled_dot_product_flash_attention_for_cpu_backward",
			"[[2, 4, 16, 8], [2, 4, 16, 8], [2, 4, 20, 8], [2, 4, 20, 8], [2, 4, 16, 8]]",
			"[]"),
		204800);
	CHECK_EQ(flops_of_inputs("aten::_scaled_dot_product_cudnn_attention",
				 "[[1, 1, 2, 3], [1, 1, 5, 3], [1, 1, 5, 7]]", "[]"),
		 2 * 2 * 5 * (3 + 7));
	CHECK_EQ(flops_of_inputs("aten::_scaled_dot_product_efficient_attention_backward",
				 "[[], [1, 1, 2, 3], [1, 1, 5, 3], [1, 1, 5, 7]]", "[]"),
		 2 * 2 * 5 * (3 * 3 + 2 * 7));
	CHECK_EQ(flops_of_inputs("aten::_scaled_dot_product_flash_attention",
				 "[[1, 1, 2, 3], [1, 1, 5, 4], [1, 1, 5, 7]]", "[]"),
		 0);
	CHECK_EQ(flops_of_inputs("aten::_scaled_dot_product_flash_attention", "[[1, 1, 2, 3]]",
				 "[]"),
		 0);
	/* Its products are counted one by one. */
	CHECK_EQ(flops_of_inputs("aten::_scaled_dot_product_attention_math",
				 "[[1, 1, 2, 3], [1, 1, 5, 3], [1, 1, 5, 7]]", "[]"),
		 0);
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
		CHECK_EQ(flops_of_inputs("aten::convolution", dims[i], dims[i]), 0);
		CHECK_EQ(flops_of_inputs("aten::convolution_backward", dims[i], dims[i]), 0);
		CHECK_EQ(flops_of_inputs("aten::_scaled_dot_product_flash_attention", dims[i],
					 dims[i]),
			 0);
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

UNIT_MAIN(TEST(as_torch_counts), TEST(convolutions), TEST(attention), TEST(what_is_not_counted),
	  TEST(nonsense))
