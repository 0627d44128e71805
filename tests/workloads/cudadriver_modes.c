/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cudadriver: what an ordinary program does: rounds of copies and kernels, events, graphs, threads.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudadriver.h"

#define FLOATS 256
#define FOREVER UINT64_MAX
/* What happened is written down and read by tests: on a slow machine for a long time. */
#define FOREVER_PAUSE_US 5000

void launch_spin(cudaStream_t stream, uint64_t ns)
{
	OK(cudaLaunchKernel, (const void *)_Z4spinm, (dim3){4, 1, 1}, (dim3){128, 1, 1},
	   (void *[]){&ns}, 0, stream);
}

void launch_tiny(cudaStream_t stream)
{
	OK(cudaLaunchKernel, (const void *)_Z4tinyv, (dim3){1, 1, 1}, (dim3){32, 1, 1},
	   (void *[]){NULL}, 0, stream);
}

static void launch_scale(cudaStream_t stream, float *x, uint64_t n)
{
	OK(cudaLaunchKernel, (const void *)_Z5scalePfm, (dim3){2, 3, 1}, (dim3){64, 2, 1},
	   (void *[]){&x, &n}, 1024, stream);
}

static uint64_t sum_of(const float *x, uint64_t n, uint64_t sum)
{
	for (uint64_t i = 0; i < n; i++)
		sum = mix(sum, (uint64_t)x[i]);
	return sum;
}

/* ---- loop, threads ---- */

uint64_t run_rounds(const struct options *o, cudaStream_t stream, uint64_t seed, bool *ok)
{
	uint64_t sum = seed, plain = seed;
	float *host, *dev;

	OK(cudaMallocHost, (void **)&host, FLOATS * sizeof(float));
	OK(cudaMalloc, (void **)&dev, FLOATS * sizeof(float));
	for (uint64_t i = 0; i < o->n && !stopped(); i++) {
		rest(o, i);
		for (uint64_t k = 0; k < FLOATS; k++) {
			host[k] = (float)((i + seed + k) % 4096);
			plain = mix(plain, (i + seed + k) % 4096 * 4);
		}
		OK(cudaMemcpyAsync, dev, host, FLOATS * sizeof(float), SIM_HOST_TO_DEVICE, stream);
		launch_scale(stream, dev, FLOATS);
		launch_spin(stream, o->kernel_ns);
		launch_scale(stream, dev, FLOATS);
		OK(cudaMemcpyAsync, host, dev, FLOATS * sizeof(float), SIM_DEVICE_TO_HOST, stream);
		OK(cudaStreamSynchronize, stream);
		sum = sum_of(host, FLOATS, sum);
		if (o->n == FOREVER)
			usleep(FOREVER_PAUSE_US);
	}
	OK(cudaFree, dev);
	OK(cudaFreeHost, host);
	*ok &= sum == plain;
	return sum;
}

void mode_loop(const struct options *o, struct result *r)
{
	struct options one = *o;

	one.n = o->n / o->streams;
	for (unsigned s = 0; s < o->streams; s++) {
		cudaStream_t stream;

		OK(cudaStreamCreateWithFlags, &stream, s % 2 ? SIM_STREAM_NON_BLOCKING : 0);
		r->sum = mix(r->sum, run_rounds(&one, stream, s, &r->ok));
		OK(cudaStreamDestroy, stream);
	}
	OK(cudaDeviceSynchronize);
}

/* Ends by destroying the context, and makes another. */
void mode_reset(const struct options *o, struct result *r)
{
	mode_loop(o, r);
	OK(cudaDeviceReset);
	mode_loop(o, r);
}

/* On two devices. */
void mode_devices(const struct options *o, struct result *r)
{
	for (int device = 0; device < 2; device++) {
		OK(cudaSetDevice, device);
		mode_loop(o, r);
	}
}

struct worker {
	const struct options *o;
	uint64_t seed, sum;
	bool ok;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct worker *w = arg;
	cudaStream_t stream;

	OK(cudaStreamCreate, &stream);
	w->sum = run_rounds(w->o, stream, w->seed, &w->ok);
	OK(cudaStreamDestroy, stream);
	return NULL;
}

static void run_threads(const struct options *o, struct result *r, void *(*fn)(void *))
{
	struct worker *w = calloc(o->threads, sizeof(*w));

	for (unsigned t = 0; w && t < o->threads; t++) {
		w[t] = (struct worker){.o = o, .seed = t + 1, .ok = true};
		must(pthread_create(&w[t].thread, NULL, fn, &w[t]), 0, "pthread_create");
	}
	for (unsigned t = 0; w && t < o->threads; t++) {
		pthread_join(w[t].thread, NULL);
		r->ok &= w[t].ok;
		r->sum = mix(r->sum, w[t].sum);
	}
	free(w);
}

void mode_threads(const struct options *o, struct result *r)
{
	run_threads(o, r, work);
}

/* Stream 0 is each thread's own: what --default-stream per-thread compiles to. */
static void *work_per_thread(void *arg)
{
	struct worker *w = arg;
	uint64_t ns = w->o->kernel_ns;
	float *host, *dev;

	OK(cudaMallocHost, (void **)&host, FLOATS * sizeof(float));
	OK(cudaMalloc, (void **)&dev, FLOATS * sizeof(float));
	for (uint64_t i = 0; i < w->o->n; i++) {
		OK(cudaMemsetAsync_ptsz, dev, (int)w->seed, FLOATS * sizeof(float), NULL);
		OK(cudaLaunchKernel_ptsz, (const void *)_Z4spinm, (dim3){1, 1, 1}, (dim3){32, 1, 1},
		   (void *[]){&ns}, 0, NULL);
		OK(cudaMemcpyAsync_ptsz, host, dev, FLOATS * sizeof(float), SIM_DEVICE_TO_HOST,
		   NULL);
		OK(cudaStreamSynchronize_ptsz, NULL);
		w->ok &= ((unsigned char *)host)[i % 1024] == w->seed;
		w->sum = mix(w->sum, ((unsigned char *)host)[i % 1024]);
	}
	OK(cudaFree, dev);
	OK(cudaFreeHost, host);
	return NULL;
}

void mode_ptsz(const struct options *o, struct result *r)
{
	run_threads(o, r, work_per_thread);
}

void mode_spin(const struct options *o, struct result *r)
{
	struct options forever = *o;

	forever.n = FOREVER;
	forever.pace_ms = 0;
	r->sum = run_rounds(&forever, NULL, 0, &r->ok);
}

/* Launches that nobody waits for until the end. */
void mode_nosync(const struct options *o, struct result *r)
{
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		launch_spin(NULL, o->kernel_ns);
	}
	OK(cudaDeviceSynchronize);
	r->sum = o->n;
}

/* ---- events ---- */

/* Two streams that wait for each other in turn. */
void mode_events(const struct options *o, struct result *r)
{
	cudaStream_t s[2];
	cudaEvent_t first, last, done[2];
	float ms;

	for (int k = 0; k < 2; k++) {
		OK(cudaStreamCreateWithFlags, &s[k], SIM_STREAM_NON_BLOCKING);
		OK(cudaEventCreateWithFlags, &done[k], SIM_EVENT_DISABLE_TIMING);
	}
	OK(cudaEventCreate, &first);
	OK(cudaEventCreate, &last);
	OK(cudaEventRecord, first, s[0]);
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		launch_spin(s[i % 2], o->kernel_ns);
		OK(cudaEventRecord, done[i % 2], s[i % 2]);
		OK(cudaStreamWaitEvent, s[(i + 1) % 2], done[i % 2], 0);
		if (i % 10 == 9)
			OK(cudaEventSynchronize, done[i % 2]);
	}
	OK(cudaEventRecord, last, s[o->n % 2]);
	OK(cudaEventSynchronize, last);
	OK(cudaEventQuery, last);
	OK(cudaEventElapsedTime, &ms, first, last);
	/* They ran one after the other, however many streams there are. */
	r->ok &= (double)ms * 1e6 >= 0.999 * (double)(o->n * o->kernel_ns);
	r->sum = o->n;
	for (int k = 0; k < 2; k++) {
		OK(cudaEventDestroy, done[k]);
		OK(cudaStreamDestroy, s[k]);
	}
	OK(cudaEventDestroy, first);
	OK(cudaEventDestroy, last);
}

/* ---- graphs ---- */

/* Two branches that join: a copy, then a kernel in each of two streams, then a copy back. */
static cudaGraph_t capture(const struct options *o, float *host, float *dev)
{
	cudaStream_t main_stream, side;
	cudaEvent_t forked, joined;
	cudaGraph_t graph;

	OK(cudaStreamCreate, &main_stream);
	OK(cudaStreamCreate, &side);
	OK(cudaEventCreate, &forked);
	OK(cudaEventCreate, &joined);
	OK(cudaStreamBeginCapture, main_stream, 0);
	OK(cudaMemcpyAsync, dev, host, FLOATS * sizeof(float), SIM_HOST_TO_DEVICE, main_stream);
	OK(cudaEventRecord, forked, main_stream);
	OK(cudaStreamWaitEvent, side, forked, 0);
	launch_spin(side, o->kernel_ns);
	launch_scale(main_stream, dev, FLOATS);
	OK(cudaEventRecord, joined, side);
	OK(cudaStreamWaitEvent, main_stream, joined, 0);
	OK(cudaMemcpyAsync, host, dev, FLOATS * sizeof(float), SIM_DEVICE_TO_HOST, main_stream);
	OK(cudaStreamEndCapture, main_stream, &graph);
	OK(cudaEventDestroy, forked);
	OK(cudaEventDestroy, joined);
	OK(cudaStreamDestroy, side);
	OK(cudaStreamDestroy, main_stream);
	return graph;
}

/* The same made node by node, with a memset in front. */
static cudaGraph_t construct(const struct options *o, float *host, float *dev)
{
	uint64_t n = FLOATS, ns = o->kernel_ns;
	struct sim_memset_params zero = {
		.dst = dev, .element_bytes = 1, .width = n * sizeof(float), .height = 1};
	struct sim_kernel_node_params scale = {.func = (void *)_Z5scalePfm,
					       .grid = {2, 1, 1},
					       .block = {128, 1, 1},
					       .params = (void *[]){&dev, &n}};
	struct sim_kernel_node_params spin = {.func = (void *)_Z4spinm,
					      .grid = {1, 1, 1},
					      .block = {32, 1, 1},
					      .params = (void *[]){&ns}};
	cudaGraphNode_t set, in, a, b, out;
	cudaGraph_t graph;

	OK(cudaGraphCreate, &graph, 0);
	OK(cudaGraphAddMemsetNode, &set, graph, NULL, 0, &zero);
	OK(cudaGraphAddMemcpyNode1D, &in, graph, &set, 1, dev, host, n * sizeof(float),
	   SIM_HOST_TO_DEVICE);
	OK(cudaGraphAddKernelNode, &a, graph, &in, 1, &scale);
	OK(cudaGraphAddKernelNode, &b, graph, &in, 1, &spin);
	OK(cudaGraphAddMemcpyNode1D, &out, graph, (cudaGraphNode_t[]){a, b}, 2, host, dev,
	   n * sizeof(float), SIM_DEVICE_TO_HOST);
	return graph;
}

void mode_graph(const struct options *o, struct result *r)
{
	cudaStream_t stream;
	cudaGraph_t graphs[2];
	cudaGraphExec_t exec[2];
	float *host, *dev;

	OK(cudaStreamCreate, &stream);
	OK(cudaMallocHost, (void **)&host, FLOATS * sizeof(float));
	OK(cudaMalloc, (void **)&dev, FLOATS * sizeof(float));
	graphs[0] = capture(o, host, dev);
	graphs[1] = construct(o, host, dev);
	for (int g = 0; g < 2; g++)
		OK(cudaGraphInstantiate, &exec[g], graphs[g], 0);
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		for (int k = 0; k < FLOATS; k++)
			host[k] = (float)(i + (uint64_t)k);
		OK(cudaGraphLaunch, exec[i % 2], stream);
		OK(cudaStreamSynchronize, stream);
		for (int k = 0; k < FLOATS; k++)
			r->ok &= host[k] == 2 * (float)(i + (uint64_t)k);
		r->sum = sum_of(host, FLOATS, r->sum);
	}
	for (int g = 0; g < 2; g++) {
		OK(cudaGraphExecDestroy, exec[g]);
		OK(cudaGraphDestroy, graphs[g]);
	}
	OK(cudaFree, dev);
	OK(cudaFreeHost, host);
	OK(cudaStreamDestroy, stream);
	fprintf(r->more, ", \"graph_launches\": %lu", o->n);
}

/* ---- copies ---- */

static void peer_copies(const struct options *o, const char *host, char *dev)
{
	char *other;
	int devices, can;

	OK(cudaGetDeviceCount, &devices);
	if (devices < 2)
		return;
	OK(cudaDeviceCanAccessPeer, &can, 0, 1);
	OK(cudaSetDevice, 1);
	OK(cudaMalloc, (void **)&other, o->bytes);
	OK(cudaSetDevice, 0);
	if (can)
		OK(cudaDeviceEnablePeerAccess, 1, 0);
	for (uint64_t i = 0; i < o->n; i++) {
		OK(cudaMemcpyPeerAsync, other, 1, dev, 0, o->bytes, NULL);
		OK(cudaMemcpyPeer, dev, 0, other, 1, o->bytes);
	}
	OK(cudaFree, other);
}

/* Every direction, from and to memory of either kind, waited for and not. */
void mode_copies(const struct options *o, struct result *r)
{
	char *pinned, *a, *b, *pageable = malloc(o->bytes);

	OK(cudaMallocHost, (void **)&pinned, o->bytes);
	OK(cudaMalloc, (void **)&a, o->bytes);
	OK(cudaMalloc, (void **)&b, o->bytes);
	for (uint64_t i = 0; i < o->n; i++) {
		rest(o, i);
		memset(pageable, (int)(i + 1) & 127, o->bytes);
		OK(cudaMemcpy, a, pageable, o->bytes, SIM_HOST_TO_DEVICE);
		OK(cudaMemcpyAsync, b, a, o->bytes, SIM_DEVICE_TO_DEVICE, NULL);
		OK(cudaMemcpyAsync, pinned, b, o->bytes, SIM_DEVICE_TO_HOST, NULL);
		OK(cudaStreamSynchronize, NULL);
		r->ok &= !memcmp(pinned, pageable, o->bytes);
		OK(cudaMemcpyAsync, a, pinned, o->bytes, SIM_MEMCPY_DEFAULT, NULL);
		OK(cudaMemsetAsync, b, 0x5a, o->bytes / 2, NULL);
		OK(cudaMemset, b, 0x5b, o->bytes);
		OK(cudaMemcpyAsync, pageable, b, o->bytes, SIM_DEVICE_TO_HOST, NULL);
		r->ok &= pageable[0] == 0x5b && pageable[o->bytes - 1] == 0x5b;
		r->sum = mix(r->sum, (uint64_t)pinned[i % o->bytes]);
	}
	peer_copies(o, pinned, a);
	OK(cudaDeviceSynchronize);
	OK(cudaFree, a);
	OK(cudaFree, b);
	OK(cudaFreeHost, pinned);
	free(pageable);
}
