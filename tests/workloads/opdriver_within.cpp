/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operators inside and outside of calls of within::wanted(). Inside it is fake_linear, which calls
 * fake_mul once, outside it is fake_mul: as often as fake_linear, fake_mul was called inside. It is
 * called directly, and from a place that calls others in turn; it calls itself, and is left by an
 * exception and by longjmp().
 */
#include <setjmp.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "opdriver.hpp"

#define NOINLINE __attribute__((noinline))

namespace within
{
enum how { PLAIN, ITSELF, THROWS, JUMPS };

static thread_local jmp_buf back;

static NOINLINE uint64_t deeper(int depth, uint64_t (*op)(uint64_t), uint64_t x)
{
	uint64_t y = depth ? deeper(depth - 1, op, x) : op(x);

	asm volatile("" : "+r"(y) : : "memory"); /* no tail call */
	return y;
}

NOINLINE uint64_t wanted(enum how how, uint64_t x)
{
	uint64_t y = deeper(20, op_linear, x);

	if (how == ITSELF)
		y += wanted(PLAIN, x);
	if (how == THROWS)
		throw std::runtime_error("wanted: as asked");
	if (how == JUMPS)
		longjmp(back, 1);
	return y + op_linear(x);
}

static NOINLINE uint64_t other(enum how, uint64_t x)
{
	return deeper(20, op_mul, x) + op_mul(x);
}

/* One place that calls either. */
static NOINLINE uint64_t call(uint64_t (*fn)(enum how, uint64_t), enum how how, uint64_t x)
{
	uint64_t y;

	asm volatile("" : "+r"(fn)); /* nor is it known which */
	y = fn(how, x);
	asm volatile("" : "+r"(y) : : "memory");
	return y;
}

static NOINLINE uint64_t jumped(uint64_t x)
{
	if (!setjmp(back))
		wanted(JUMPS, x);
	return op_mul(x);
}

/* Six calls of wanted(), in which are as many of fake_linear as *inside says. */
static uint64_t part(uint64_t i, uint64_t *inside)
{
	uint64_t sum = mix(0, op_mul(i));

	sum = mix(sum, wanted(PLAIN, i));
	sum = mix(sum, other(PLAIN, i));
	sum = mix(sum, call(wanted, PLAIN, i));
	sum = mix(sum, call(other, PLAIN, i));
	sum = mix(sum, call(wanted, ITSELF, i));
	sum = mix(sum, call(other, ITSELF, i));
	try {
		call(wanted, THROWS, i);
	} catch (const std::runtime_error &) {
		sum = mix(sum, op_mul(i));
	}
	sum = mix(sum, call(other, PLAIN, i));
	sum = mix(sum, jumped(i));
	sum = mix(sum, other(PLAIN, i));
	*inside += 2 + 2 + 4 + 1 + 1;
	return sum;
}
} // namespace within

void mode_within(const struct options &o, struct result &r)
{
	std::vector<std::thread> threads;
	std::vector<uint64_t> sums(o.threads), inside(o.threads);
	uint64_t all = 0;

	for (unsigned t = 0; t < o.threads; t++)
		threads.emplace_back([&sums, &inside, &o, t] {
			for (uint64_t i = 0; i < o.n; i++)
				sums[t] = mix(sums[t], within::part(i, &inside[t]));
		});
	for (unsigned t = 0; t < o.threads; t++) {
		threads[t].join();
		r.sum = mix(r.sum, sums[t]);
		r.ok &= sums[t] == sums[0];
		all += inside[t];
	}
	r.more = ", \"inside\": " + std::to_string(all) +
		 ", \"wanted\": " + std::to_string(o.threads * o.n * 6);
}
