/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A training loop of sorts: a forward pass, a backward pass in a thread of its own (as autograd's),
 * an optimizer step outside of any operator, a loss that is waited for.
 *
 *   gpuops [--n N] [--pace MS] [--now] [--linger]
 *
 * Speaks the protocol of protocol.py. Its line of JSON: "counts", how often each operator ran, and
 * "launched", how often each kernel was launched, and in which operator ("" for none).
 */
#include <unistd.h>

#include <cinttypes>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "gpuops.hpp"

using namespace at::_ops;

static const uint64_t floats = 512;

/* The thread that runs what it is told, one thing at a time. */
class engine
{
	std::mutex lock;
	std::condition_variable changed;
	uint64_t wanted = 0, done = 0;
	bool over = false;
	float *x;
	cudaStream_t stream;
	std::thread thread;

	void work()
	{
		std::unique_lock<std::mutex> held(lock);

		for (;;) {
			changed.wait(held, [this] { return over || wanted > done; });
			if (wanted == done)
				return;
			held.unlock();
			gpu_mm::call(x, floats, stream);
			gpu_relu_::call(x, floats, stream);
			held.lock();
			done++;
			changed.notify_all();
		}
	}

      public:
	engine(float *x, cudaStream_t stream) : x(x), stream(stream), thread([this] { work(); })
	{
	}
	void backward()
	{
		std::unique_lock<std::mutex> held(lock);

		wanted++;
		changed.notify_all();
		changed.wait(held, [this] { return wanted == done; });
	}
	~engine()
	{
		{
			std::unique_lock<std::mutex> held(lock);
			over = true;
			changed.notify_all();
		}
		thread.join();
	}
};

/* The same without a device. */
static float expected(float x)
{
	x = x * 2 + 1;     /* linear */
	x = x > 0 ? x : 0; /* relu_ */
	x = x * 2;         /* backward */
	x = x > 0 ? x : 0;
	return x - 1; /* the optimizer */
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

static bool run(uint64_t n, unsigned pace_ms)
{
	static float host[floats];
	cudaStream_t stream;
	float *x, *grad;
	bool ok = true;

	if (cudaStreamCreate(&stream) || cudaMalloc((void **)&x, sizeof(host)) ||
	    cudaMalloc((void **)&grad, sizeof(host)))
		return false;
	engine autograd(x, stream);
	for (uint64_t i = 0; i < n; i++) {
		if (pace_ms && i % (n / 100 + 1) == 0)
			usleep(pace_ms * 1000);
		host[0] = float(i % 1000);
		gpu_copy_::call(x, host, floats, stream);
		gpu_zero_::call(grad, floats, stream);
		gpu_linear::call(x, floats, stream);
		gpu_relu_::call(x, floats, stream);
		autograd.backward();
		gpuops_optimizer_step(x, floats, stream);
		ok &= gpu_item::call(x, stream) == expected(host[0]);
	}
	cudaStreamSynchronize(stream);
	cudaFree(x);
	cudaFree(grad);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t n = 100;
	unsigned pace_ms = 0;
	bool now = false, linger = false, ok;

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--now"))
			now = true;
		else if (!strcmp(argv[i], "--linger"))
			linger = true;
		else if (!strcmp(argv[i], "--n") && i + 1 < argc)
			n = strtoull(argv[++i], nullptr, 0);
		else if (!strcmp(argv[i], "--pace") && i + 1 < argc)
			pace_ms = unsigned(strtoul(argv[++i], nullptr, 0));
		else
			return fputs("usage: gpuops [--n N] [--pace MS] [--now] [--linger]\n",
				     stderr),
			       2;
	}
	if (!now) {
		printf("READY %d\n", getpid());
		fflush(stdout);
		wait_for_line(true);
	}
	ok = run(n, pace_ms);
	printf("{\"mode\": \"gpuops\", \"pid\": %d, \"ok\": %s, \"counts\": {", getpid(),
	       ok ? "true" : "false");
	for (int i = 0; i < GPUOPS_NR; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", gpuops_name(i), gpuops_count(i));
	printf("}, \"launched\": {\"mm_kernel\": {\"aten::gpu_mm\": %" PRIu64
	       "}, \"add_kernel\": {\"aten::gpu_add\": %" PRIu64
	       "}, \"relu_kernel\": {\"aten::gpu_relu_\": %" PRIu64
	       "}, \"sgd_kernel\": {\"\": %" PRIu64 "}}}\n",
	       2 * n, n, 2 * n, n);
	fflush(stdout);
	if (linger)
		wait_for_line(false);
	return ok ? 0 : 1;
}
