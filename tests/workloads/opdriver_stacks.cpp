/* SPDX-License-Identifier: BSD-2-Clause */
/* Ways to leave an operator, or its stack, other than by returning from it. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "opdriver.hpp"

static const size_t stack_bytes = 256 << 10;

static void *new_stack(void)
{
	void *p = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);

	if (p == MAP_FAILED) {
		perror("opdriver: mmap");
		exit(1);
	}
	return p;
}

/* ---- exceptions ---- */

/* Caught here, in the middle of the operator, answered by another operator, thrown on. */
static uint64_t catch_and_throw_on(void *arg)
{
	uint64_t depth = *(uint64_t *)arg;

	try {
		return op_throw(depth);
	} catch (const std::runtime_error &) {
		op_add(depth);
		throw;
	}
}

/* One exception while another is being handled. */
static uint64_t throw_while_handling(void *arg)
{
	try {
		return op_throw(1);
	} catch (const std::runtime_error &) {
		try {
			return op_throw(*(uint64_t *)arg);
		} catch (const std::runtime_error &) {
			return op_linear(7);
		}
	}
}

void mode_throw(const struct options &o, struct result &r)
{
	uint64_t caught = 0;

	for (uint64_t i = 0; i < o.n; i++) {
		uint64_t depth = i % 8;

		try {
			if (i % 3 == 0) {
				op_throw(depth);
			} else if (i % 3 == 1) {
				op_apply(catch_and_throw_on, &depth);
			} else {
				r.ok &= op_apply(throw_while_handling, &depth) ==
					plain_linear(7) + 1;
				continue;
			}
			r.ok = false; /* it should have thrown */
		} catch (const std::runtime_error &) {
			caught++;
			r.sum = mix(r.sum, op_linear(i));
		}
	}
	r.ok &= caught == o.n - o.n / 3;
	r.more = ", \"caught\": " + std::to_string(caught);
}

/* ---- longjmp ---- */

static jmp_buf env;

static uint64_t jump(void *)
{
	op_add(1);
	longjmp(env, 1);
}

static uint64_t apply_jump(void *)
{
	return op_apply(jump, nullptr);
}

void mode_longjmp(const struct options &o, struct result &r)
{
	volatile uint64_t i, sum = 0; /* volatile: they live across setjmp */

	for (i = 0; i < o.n; i++) {
		if (setjmp(env) == 0) {
			op_apply(apply_jump, nullptr); /* two operators are left at once */
			r.ok = false;
		} else {
			sum = mix(sum, op_linear(i));
		}
	}
	r.sum = sum;
}

/* ---- a thread that ends inside an operator ---- */

static uint64_t leave_thread(void *)
{
	op_add(1);
	pthread_exit((void *)0x6b70726f66);
}

static uint64_t apply_leave_thread(void *)
{
	return op_apply(leave_thread, nullptr);
}

static void *thread_main(void *)
{
	op_linear(3);
	op_apply(apply_leave_thread, nullptr);
	return nullptr;
}

void mode_pthread_exit(const struct options &o, struct result &r)
{
	for (uint64_t i = 0; i < o.n; i++) {
		pthread_t t;
		void *ret = nullptr;

		if (pthread_create(&t, nullptr, thread_main, nullptr)) {
			perror("opdriver: pthread_create");
			exit(1);
		}
		pthread_join(t, &ret);
		r.ok &= ret == (void *)0x6b70726f66;
		r.sum = mix(r.sum, (uint64_t)ret);
	}
}

/* ---- two stacks, operators open on both ---- */

static ucontext_t contexts[2], back;
static uint64_t ctx_rounds, ctx_sum;

static uint64_t switch_inside(void *arg)
{
	int me = *(int *)arg;
	uint64_t x = op_add(me);

	swapcontext(&contexts[me], &contexts[!me]);
	return x + op_mul(me);
}

static void context_main(int me)
{
	for (uint64_t i = 0; i < ctx_rounds; i++) {
		uint64_t x =
			op_apply(switch_inside, &me); /* the other one adds to the sum meanwhile */

		ctx_sum = mix(ctx_sum, x);
	}
	/* The first to be done leaves the other inside an operator: let it end, too. */
	swapcontext(&contexts[me], me ? &back : &contexts[!me]);
}

static void new_context(int i)
{
	getcontext(&contexts[i]);
	contexts[i].uc_stack.ss_sp = new_stack();
	contexts[i].uc_stack.ss_size = stack_bytes;
	contexts[i].uc_link = &back;
	makecontext(&contexts[i], (void (*)(void))context_main, 1, i);
}

void mode_ucontext(const struct options &o, struct result &r)
{
	uint64_t plain = 0;

	ctx_rounds = o.n;
	new_context(0);
	new_context(1);
	swapcontext(&back, &contexts[0]);
	for (uint64_t i = 0; i < o.n; i++)
		for (uint64_t me = 0; me < 2; me++) /* (me + 1) + (me + 1) * 3, and apply's + 1 */
			plain = mix(plain, (me + 1) * 4 + 1);
	r.sum = ctx_sum;
	r.ok = r.sum == plain;
}

/* ---- signal handlers on their own stack ---- */

static sigjmp_buf signal_env;
static volatile uint64_t signal_sum;
static volatile sig_atomic_t leave_handler;

static void on_signal(int)
{
	signal_sum = mix(signal_sum, op_linear(signal_sum));
	if (leave_handler)
		siglongjmp(signal_env, 1);
}

static uint64_t raise_inside(void *)
{
	uint64_t x = op_add(1);

	raise(SIGUSR2);
	return x + op_mul(x);
}

void mode_sigaltstack(const struct options &o, struct result &r)
{
	stack_t ss = {};
	struct sigaction sa = {};
	volatile uint64_t i, sum = 0, plain = 0;

	ss.ss_sp = new_stack();
	ss.ss_size = stack_bytes;
	sa.sa_handler = on_signal;
	if (sigaltstack(&ss, nullptr)) {
		perror("opdriver: sigaltstack");
		exit(1);
	}
	for (i = 0; i < o.n; i++) {
		/* In turn: on the other stack, on this one, and left by a jump. */
		sa.sa_flags = i % 3 == 1 ? 0 : SA_ONSTACK;
		sigaction(SIGUSR2, &sa, nullptr);
		leave_handler = i % 3 == 2;
		if (sigsetjmp(signal_env, 1) == 0)
			sum = mix(sum, op_apply(raise_inside, nullptr));
		else
			sum = mix(sum, op_linear(i));
		plain = mix(plain, plain_linear(plain));
	}
	r.sum = mix(sum, signal_sum);
	r.ok = signal_sum == plain;
}
