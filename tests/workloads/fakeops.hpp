/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test double, not PyTorch: operators with the shape of PyTorch's (a struct per operator in
 * at::_ops with a static call()), whose bodies do nothing but count and calculate.
 */
#ifndef KPROF_TEST_FAKEOPS_HPP
#define KPROF_TEST_FAKEOPS_HPP

#include <cstdint>

#define FAKEOPS_EXPORT __attribute__((visibility("default")))

namespace at
{
namespace _ops
{
/* x + 1. Calls nothing. */
struct FAKEOPS_EXPORT fake_add_Tensor {
	static uint64_t call(uint64_t x);
};
/* fake_add(x) * 3, through one more level. */
struct FAKEOPS_EXPORT fake_mul_Tensor {
	static uint64_t call(uint64_t x);
};
/* fake_mul(x) + fake_add(x): three operators deep, four calls in all beneath it. */
struct FAKEOPS_EXPORT fake_linear {
	static uint64_t call(uint64_t x);
};
/* Throws std::runtime_error at the bottom of `depth` more frames of itself. */
struct FAKEOPS_EXPORT fake_throw {
	static uint64_t call(uint64_t depth);
};
/* Calls itself `depth` times; the innermost calls fake_add. */
struct FAKEOPS_EXPORT fake_recurse {
	static uint64_t call(uint64_t depth);
};
/* Calls back in the middle of its work. What the callback does is the test's affair. */
struct FAKEOPS_EXPORT fake_apply {
	static uint64_t call(uint64_t (*fn)(void *), void *arg);
};
/* Ends with a jump to fake_add instead of a call (with optimisation on). */
struct FAKEOPS_EXPORT fake_tail {
	static uint64_t call(uint64_t x);
};
} // namespace _ops
} // namespace at

enum fakeops_index {
	FAKEOPS_ADD,
	FAKEOPS_MUL,
	FAKEOPS_LINEAR,
	FAKEOPS_THROW,
	FAKEOPS_RECURSE,
	FAKEOPS_APPLY,
	FAKEOPS_TAIL,
	FAKEOPS_NR
};

extern "C" {
/* Calls so far of each operator in this process (a forked child starts from its parent's). */
FAKEOPS_EXPORT void fakeops_counts(uint64_t counts[FAKEOPS_NR]);
FAKEOPS_EXPORT void fakeops_reset_counts(void);
/* The name a profiler should show: "aten::fake_add". */
FAKEOPS_EXPORT const char *fakeops_name(int index);
FAKEOPS_EXPORT const char *fakeops_schema(int index);
}

#endif
