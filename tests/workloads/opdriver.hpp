/* SPDX-License-Identifier: BSD-2-Clause */
/* What the modes of opdriver share: the operators, the arithmetic that proves them, the options. */
#ifndef KPROF_TEST_OPDRIVER_HPP
#define KPROF_TEST_OPDRIVER_HPP

#include <cstdint>
#include <string>

#include "fakeops.hpp"

/* Called through these whether the library is linked or opened later (opdriver-dl). */
#ifdef OPDRIVER_DLOPEN
struct op_table {
	uint64_t (*add)(uint64_t), (*mul)(uint64_t), (*linear)(uint64_t), (*throws)(uint64_t);
	uint64_t (*recurse)(uint64_t), (*tail)(uint64_t);
	uint64_t (*apply)(uint64_t (*)(void *), void *);
	void (*counts)(uint64_t *);
	const char *(*name)(int);
	const char *(*schema)(int);
};
extern struct op_table op;
#define op_add op.add
#define op_mul op.mul
#define op_linear op.linear
#define op_throw op.throws
#define op_recurse op.recurse
#define op_tail op.tail
#define op_apply op.apply
#define op_counts op.counts
#define op_name op.name
#else
#define op_add at::_ops::fake_add_Tensor::call
#define op_mul at::_ops::fake_mul_Tensor::call
#define op_linear at::_ops::fake_linear::call
#define op_throw at::_ops::fake_throw::call
#define op_recurse at::_ops::fake_recurse::call
#define op_tail at::_ops::fake_tail::call
#define op_apply at::_ops::fake_apply::call
#define op_counts fakeops_counts
#define op_name fakeops_name
#endif

/* The same without the operators: what their results must be. */
static inline uint64_t plain_linear(uint64_t x)
{
	return (x + 1) * 3 + x + 1;
}

/* Order matters and nothing cancels: a call lost, doubled or made twice over changes the sum. */
static inline uint64_t mix(uint64_t sum, uint64_t x)
{
	return (sum ^ x) * 0x9e3779b97f4a7c15ull + (sum >> 29);
}

struct options {
	uint64_t n = 1000;
	uint64_t depth = 2000;
	unsigned threads = 4;
	unsigned children = 3;
	unsigned pace_ms = 0; /* rest so long after every hundredth of n */
	bool exec_children = false;
	bool preload = false;
	bool now = false;
	bool linger = false;
	const char *self = nullptr;
	const char *lib = nullptr;
	const char *until_file = nullptr;
	const char *how = nullptr; /* children are made: "fork" if NULL */
};

/*
 * A profiler that places its probes meanwhile gets to see something: on any machine with
 * until_file.
 */
void rest(const struct options &o, uint64_t i);

struct result {
	uint64_t sum = 0;
	bool ok = true;
	uint64_t counts[FAKEOPS_NR] = {}; /* of libraries closed meanwhile */
	std::string more;                 /* further JSON members, each with a comma in front */
};

typedef void mode_fn(const struct options &o, struct result &r);

/* opdriver_stacks.cpp: ways to leave an operator, or to leave its stack, other than by returning */
mode_fn mode_throw, mode_longjmp, mode_pthread_exit, mode_ucontext, mode_sigaltstack;
/* opdriver_procs.cpp: fork, exec, exit */
mode_fn mode_fork, mode_children, mode_brood, mode_family_run, mode_exec, mode_exit;
/* opdriver_within.cpp: inside and outside of a function */
mode_fn mode_within;
void family_prepare(const struct options &o);

std::string counts_json(const uint64_t counts[FAKEOPS_NR]);

#endif
