/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: libcudart's kernels (as nvcc's code registers and launches them) and
 * graphs.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "runtime.h"

struct fatbin {
	const void *image;
	CUmodule module;
};

struct registered {
	const void *host;
	struct fatbin *fatbin;
	const char *name;
	CUfunction function;
	struct registered *next;
};

#define BUCKETS 256
static struct registered *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct registered **bucket(const void *host)
{
	return &table[((uintptr_t)host >> 4) % BUCKETS];
}

/* ---- what the compiler's constructors call ---- */

SIM_EXPORT void **__cudaRegisterFatBinary(void *fatbin)
{
	const struct sim_fatbin *wrapper = fatbin;
	struct fatbin *f = calloc(1, sizeof(*f));

	if (f && wrapper->magic == SIM_FATBIN_MAGIC)
		f->image = wrapper->image;
	return (void **)f;
}

SIM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
}

SIM_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BUCKETS; i++) {
		for (struct registered **p = &table[i], *r; (r = *p);) {
			if (r->fatbin != (struct fatbin *)handle) {
				p = &r->next;
				continue;
			}
			*p = r->next;
			free(r);
		}
	}
	pthread_mutex_unlock(&lock);
	free(handle);
}

SIM_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
				       const char *name, int thread_limit, void *tid, void *bid,
				       void *block, void *grid, int *warp)
{
	struct registered *r = calloc(1, sizeof(*r));

	if (!r)
		return;
	r->host = host;
	r->fatbin = (struct fatbin *)handle;
	r->name = name;
	pthread_mutex_lock(&lock);
	r->next = *bucket(host);
	*bucket(host) = r;
	pthread_mutex_unlock(&lock);
}

int rt_function(const void *host, CUfunction *f, const char **name)
{
	struct registered *r;
	int err = 0;

	pthread_mutex_lock(&lock);
	for (r = *bucket(host); r && r->host != host;)
		r = r->next;
	if (!r || !r->fatbin->image) {
		err = SIM_INVALID_DEVICE_FUNCTION;
	} else {
		if (!r->fatbin->module)
			err = rt.cuModuleLoadData(&r->fatbin->module, r->fatbin->image);
		if (!err && !r->function)
			err = rt.cuModuleGetFunction(&r->function, r->fatbin->module, r->name);
		*f = r->function;
		*name = r->name;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

/*
 * kernel<<<grid, block, shared, stream>>>(…): pushed by the caller, popped by the kernel's host
 * stub
 */
static _Thread_local struct {
	dim3 grid, block;
	size_t shared;
	cudaStream_t stream;
} configuration;

SIM_EXPORT unsigned int __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
						    cudaStream_t stream)
{
	configuration.grid = grid;
	configuration.block = block;
	configuration.shared = shared;
	configuration.stream = stream;
	return 0;
}

SIM_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
						  void *stream)
{
	*grid = configuration.grid;
	*block = configuration.block;
	*shared = configuration.shared;
	*(cudaStream_t *)stream = configuration.stream;
	return 0;
}

/* ---- launches ---- */

enum how { PLAIN, COOPERATIVE, EXTENDED };

static int launch(const struct rt_api *api, enum how how, const void *func, dim3 grid, dim3 block,
		  void **args, size_t shared, cudaStream_t stream)
{
	const char *name = "";
	bool pt = api->per_thread;
	CUfunction f;
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt_function(func, &f, &name);
	call.symbol = name;
	if (!err && how == PLAIN)
		err = rt.cuLaunchKernel[pt](f, grid.x, grid.y, grid.z, block.x, block.y, block.z,
					    (unsigned)shared, stream, args, NULL);
	else if (!err && how == COOPERATIVE)
		err = rt.cuLaunchCooperativeKernel[pt](f, grid.x, grid.y, grid.z, block.x, block.y,
						       block.z, (unsigned)shared, stream, args);
	else if (!err)
		err = rt.cuLaunchKernelEx[pt](
			&(struct sim_driver_launch_config){.grid = {grid.x, grid.y, grid.z},
							   .block = {block.x, block.y, block.z},
							   .dynamic_shared = (unsigned)shared,
							   .stream = stream},
			f, args, NULL);
	if (err == SIM_INVALID_VALUE)
		err = SIM_INVALID_CONFIGURATION;
	return rt_leave(
		&call, err,
		"\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared\":%zu,\"stream\":%lu,\"kernel\":\"%s\"",
		grid.x, grid.y, grid.z, block.x, block.y, block.z, shared, (unsigned long)stream,
		name);
}
RT_API2(cudaLaunchKernel, _ptsz,
	(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
	launch(&api, PLAIN, func, grid, block, args, shared, stream))
RT_API2(cudaLaunchCooperativeKernel, _ptsz,
	(const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
	launch(&api, COOPERATIVE, func, grid, block, args, shared, stream))
RT_API2(cudaLaunchKernelExC, _ptsz,
	(const struct sim_launch_config *config, const void *func, void **args),
	launch(&api, EXTENDED, func, config->grid, config->block, args, config->dynamic_shared,
	       config->stream))

static int host_function(const struct rt_api *api, cudaStream_t stream, CUhostFn fn, void *arg)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuLaunchHostFunc[api->per_thread](stream, fn, arg);
	return rt_leave(&call, err, "\"stream\":%lu", (unsigned long)stream);
}
RT_API2(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, CUhostFn fn, void *arg),
	host_function(&api, stream, fn, arg))

static int set_attribute(const struct rt_api *api, const void *func, int attribute, int value)
{
	const char *name;
	CUfunction f;
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt_function(func, &f, &name);
	if (!err)
		err = rt.cuFuncSetAttribute(f, attribute, value);
	return rt_leave(&call, err, NULL);
}
RT_API(cudaFuncSetAttribute, (const void *func, int attribute, int value),
       set_attribute(&api, func, attribute, value))

static int occupancy(const struct rt_api *api, int *blocks, const void *func, int threads,
		     size_t shared)
{
	const char *name;
	CUfunction f;
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt_function(func, &f, &name);
	if (!err)
		err = rt.cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared);
	return rt_leave(&call, err, NULL);
}
RT_API(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
       (int *blocks, const void *func, int block_threads, size_t dynamic_shared),
       occupancy(&api, blocks, func, block_threads, dynamic_shared))

/* ---- graphs ---- */

/* A function that hands on to the driver's, with the same arguments. */
#define FORWARD(fn, params, call_driver)                                      \
	SIM_EXPORT cudaError_t fn params                                      \
	{                                                                     \
		static const struct rt_api api = {SIM_CBID_##fn, #fn, false}; \
		struct sim_call call;                                         \
		int err = rt_begin_context(&call, &api);                      \
                                                                              \
		if (!err)                                                     \
			err = call_driver;                                    \
		return rt_leave(&call, err, NULL);                            \
	}

FORWARD(cudaGraphCreate, (cudaGraph_t * graph, unsigned int flags), rt.cuGraphCreate(graph, flags))
FORWARD(cudaGraphAddMemsetNode,
	(cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t nr,
	 const struct sim_memset_params *params),
	rt.cuGraphAddMemsetNode(node, graph, after, nr, params, NULL))
FORWARD(cudaGraphAddHostNode,
	(cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t nr,
	 const struct sim_host_node_params *params),
	rt.cuGraphAddHostNode(node, graph, after, nr, params))
FORWARD(cudaGraphAddEmptyNode,
	(cudaGraphNode_t * node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t nr),
	rt.cuGraphAddEmptyNode(node, graph, after, nr))
FORWARD(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *nr),
	rt.cuGraphGetNodes(graph, nodes, nr))
FORWARD(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
	rt.cuGraphInstantiateWithFlags(exec, graph, flags))
FORWARD(cudaGraphInstantiateWithFlags,
	(cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
	rt.cuGraphInstantiateWithFlags(exec, graph, flags))
FORWARD(cudaGraphExecDestroy, (cudaGraphExec_t exec), rt.cuGraphExecDestroy(exec))
FORWARD(cudaGraphDestroy, (cudaGraph_t graph), rt.cuGraphDestroy(graph))

static int with_exec(const struct rt_api *api, cudaGraphExec_t exec, cudaStream_t stream, bool run)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = run ? rt.cuGraphLaunch[api->per_thread](exec, stream)
			  : rt.cuGraphUpload[api->per_thread](exec, stream);
	return rt_leave(&call, err, "\"stream\":%lu", (unsigned long)stream);
}
RT_API2(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
	with_exec(&api, exec, stream, true))
RT_API2(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
	with_exec(&api, exec, stream, false))

SIM_EXPORT cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
					      const cudaGraphNode_t *after, size_t nr,
					      const struct sim_kernel_node_params *p)
{
	static const struct rt_api api = {SIM_CBID_cudaGraphAddKernelNode, "cudaGraphAddKernelNode",
					  false};
	struct sim_driver_kernel_node_params d = {.grid = {p->grid.x, p->grid.y, p->grid.z},
						  .block = {p->block.x, p->block.y, p->block.z},
						  .dynamic_shared = p->dynamic_shared,
						  .params = p->params};
	const char *name;
	struct sim_call call;
	int err = rt_begin_context(&call, &api);

	if (!err)
		err = rt_function(p->func, &d.func, &name);
	if (!err)
		err = rt.cuGraphAddKernelNode_v2(node, graph, after, nr, &d);
	return rt_leave(&call, err == SIM_INVALID_VALUE ? SIM_INVALID_CONFIGURATION : err, NULL);
}

SIM_EXPORT cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
						const cudaGraphNode_t *after, size_t nr, void *dst,
						const void *src, size_t bytes, int kind)
{
	static const struct rt_api api = {SIM_CBID_cudaGraphAddMemcpyNode1D,
					  "cudaGraphAddMemcpyNode1D", false};
	struct sim_driver_copy3d copy = {.src_type = 4, /* unified: by the address */
					 .src_device = (CUdeviceptr)src,
					 .dst_type = 4,
					 .dst_device = (CUdeviceptr)dst,
					 .width = bytes,
					 .height = 1,
					 .depth = 1};
	struct sim_call call;
	int err = rt_begin_context(&call, &api);

	if (!err)
		err = rt.cuGraphAddMemcpyNode(node, graph, after, nr, &copy, NULL);
	return rt_leave(&call, err, "\"bytes\":%zu", bytes);
}
