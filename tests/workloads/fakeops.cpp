/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Built as libtorch_cpu.so: A TEST DOUBLE THAT ONLY LOOKS LIKE PYTORCH'S LIBRARY OF THAT NAME. It
 * holds not a line of PyTorch. A profiler that finds operators by symbol name cannot tell the two
 * apart, so that its engine can be tested in seconds on a machine, or an emulated kernel, that has
 * no PyTorch. Here, unlike there, every call is counted and nothing is optimised away.
 */
#include "fakeops.hpp"

#include <atomic>
#include <stdexcept>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noinline, noclone))
#endif

static std::atomic<uint64_t> calls[FAKEOPS_NR];

/*
 * Relaxed: only the sum counts, and it is read when the threads are done. The address goes through
 * a register, or an operator could begin with a "lock add", where the kernel allows no probe.
 */
static inline void count(enum fakeops_index i)
{
	std::atomic<uint64_t> *c = &calls[i];

	asm volatile("" : "+r"(c));
	c->fetch_add(1, std::memory_order_relaxed);
}

/* The compiler may not know what comes back from a call: it would make loops of our recursions. */
static inline uint64_t opaque(uint64_t x)
{
	asm volatile("" : "+r"(x) : : "memory");
	return x;
}

/* As PyTorch keeps them: a plain string per operator in .rodata, without the namespace. */
static const struct {
	const char *name;
	const char *schema;
} ops[FAKEOPS_NR] = {
	/* in the order of enum fakeops_index */
	{"aten::fake_add", "fake_add.Tensor(Tensor self, Tensor other) -> Tensor"},
	{"aten::fake_mul", "fake_mul.Tensor(Tensor self, Tensor other) -> Tensor"},
	{"aten::fake_linear",
	 "fake_linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor"},
	{"aten::fake_throw", "fake_throw(Tensor self, int depth) -> Tensor"},
	{"aten::fake_recurse", "fake_recurse(Tensor self, int depth) -> Tensor"},
	{"aten::fake_apply", "fake_apply(Tensor self) -> Tensor"},
	{"aten::fake_tail", "fake_tail(Tensor self) -> Tensor"},
};

namespace at
{
namespace _ops
{
NOINLINE uint64_t fake_add_Tensor::call(uint64_t x)
{
	count(FAKEOPS_ADD);
	return x + 1;
}

NOINLINE uint64_t fake_mul_Tensor::call(uint64_t x)
{
	count(FAKEOPS_MUL);
	return fake_add_Tensor::call(x) * 3;
}

NOINLINE uint64_t fake_linear::call(uint64_t x)
{
	count(FAKEOPS_LINEAR);
	uint64_t y = fake_mul_Tensor::call(x);
	return y + fake_add_Tensor::call(x);
}

NOINLINE uint64_t fake_throw::call(uint64_t depth)
{
	count(FAKEOPS_THROW);
	if (!depth)
		throw std::runtime_error("fake_throw: as asked");
	return opaque(fake_throw::call(depth - 1)) + 1;
}

NOINLINE uint64_t fake_recurse::call(uint64_t depth)
{
	count(FAKEOPS_RECURSE);
	return opaque(depth ? fake_recurse::call(depth - 1) : fake_add_Tensor::call(0)) + 1;
}

NOINLINE uint64_t fake_apply::call(uint64_t (*fn)(void *), void *arg)
{
	count(FAKEOPS_APPLY);
	return fn(arg) + 1;
}

NOINLINE uint64_t fake_tail::call(uint64_t x)
{
	count(FAKEOPS_TAIL);
	return fake_add_Tensor::call(x);
}
} // namespace _ops
} // namespace at

void fakeops_counts(uint64_t counts[FAKEOPS_NR])
{
	for (int i = 0; i < FAKEOPS_NR; i++)
		counts[i] = calls[i].load(std::memory_order_relaxed);
}

void fakeops_reset_counts(void)
{
	for (auto &c : calls)
		c.store(0, std::memory_order_relaxed);
}

const char *fakeops_name(int index)
{
	return index >= 0 && index < FAKEOPS_NR ? ops[index].name : nullptr;
}

const char *fakeops_schema(int index)
{
	return index >= 0 && index < FAKEOPS_NR ? ops[index].schema : nullptr;
}
