/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: libcuda's modules, kernels and launches; errors by name. */
#include <stdlib.h>
#include <string.h>

#include "driver.h"

struct sim_module {
	const struct sim_image *image;
	struct sim_module *next;
	struct sim_function functions[];
};
static struct sim_module *modules;

/* ---- modules ---- */

static int load(const struct sim_api *api, CUmodule *module, const void *image)
{
	const struct sim_image *i = image;
	struct sim_module *m = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err && !sim_context__current())
		err = SIM_INVALID_CONTEXT;
	if (!err && (!i || i->magic != SIM_IMAGE_MAGIC))
		err = SIM_INVALID_IMAGE;
	if (!err) {
		m = calloc(1, sizeof(*m) + i->nr_kernels * sizeof(m->functions[0]));
		err = m ? 0 : SIM_OUT_OF_MEMORY;
	}
	if (!err) {
		m->image = i;
		for (unsigned k = 0; k < i->nr_kernels; k++)
			m->functions[k] = (struct sim_function){&i->kernels[k], m};
		pthread_mutex_lock(&sim_lock);
		m->next = modules;
		modules = m;
		pthread_mutex_unlock(&sim_lock);
		*module = m;
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuModuleLoadData, (CUmodule * module, const void *image), load(&api, module, image))
SIM_API(cuModuleLoadDataEx,
	(CUmodule * module, const void *image, unsigned int nr_options, void *options,
	 void **values),
	load(&api, module, image))
SIM_API(cuModuleLoadFatBinary, (CUmodule * module, const void *image), load(&api, module, image))

static int unload(const struct sim_api *api)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	return sim_leave(&call, err, NULL); /* kept: kernels may be queued */
}
SIM_API(cuModuleUnload, (CUmodule module), unload(&api))

static int get_function(const struct sim_api *api, CUfunction *function, CUmodule module,
			const char *name)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = module && name ? SIM_NOT_FOUND : SIM_INVALID_HANDLE;
	for (unsigned k = 0; err == SIM_NOT_FOUND && k < module->image->nr_kernels; k++) {
		if (strcmp(module->image->kernels[k].name, name))
			continue;
		*function = &module->functions[k];
		err = 0;
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
	get_function(&api, function, module, name))

static bool is_function(const struct sim_function *f)
{
	bool found = false;

	pthread_mutex_lock(&sim_lock);
	for (struct sim_module *m = modules; m && !found; m = m->next)
		found = f >= m->functions && f < m->functions + m->image->nr_kernels;
	pthread_mutex_unlock(&sim_lock);
	return found;
}

/* CU_FUNC_ATTRIBUTE_… MAX_THREADS_PER_BLOCK 0, SHARED 1, CONST 2, LOCAL 3, NUM_REGS 4 */
static int function_attribute(const struct sim_api *api, int *value, int attribute, CUfunction f)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = is_function(f) ? 0 : SIM_INVALID_HANDLE;
	if (!err)
		*value = attribute == 0   ? 1024
			 : attribute == 1 ? (int)f->desc->static_shared
			 : attribute == 3 ? (int)f->desc->local
			 : attribute == 4 ? (int)f->desc->registers
					  : 0;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuFuncGetAttribute, (int *value, int attribute, CUfunction function),
	function_attribute(&api, value, attribute, function))

static int set_attribute(const struct sim_api *api, CUfunction f)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = is_function(f) ? 0 : SIM_INVALID_HANDLE;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuFuncSetAttribute, (CUfunction function, int attribute, int value),
	set_attribute(&api, function))

static int get_name(const struct sim_api *api, const char **name, CUfunction f)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = is_function(f) ? 0 : SIM_INVALID_HANDLE;
	if (!err)
		*name = f->desc->name;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuFuncGetName, (const char **name, CUfunction function), get_name(&api, name, function))

static int occupancy(const struct sim_api *api, int *blocks, CUfunction f, int threads)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = !is_function(f)                 ? SIM_INVALID_HANDLE
		      : threads < 1 || threads > 1024 ? SIM_INVALID_VALUE
						      : 0;
	if (!err)
		*blocks = 2048 / threads > 32 ? 32 : 2048 / threads;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuOccupancyMaxActiveBlocksPerMultiprocessor,
	(int *blocks, CUfunction function, int block_threads, size_t dynamic_shared),
	occupancy(&api, blocks, function, block_threads))

/* ---- launches ---- */

static uint64_t kernel_ns(const struct sim_kernel_desc *d, const unsigned grid[3],
			  const unsigned block[3], void **params)
{
	uint64_t ns = d->fixed_ns;

	if (d->duration_param && params)
		memcpy(&ns, params[d->duration_param - 1], sizeof(ns));
	else if (!ns) /* 108 multiprocessors of 2048 threads, each of which needs a microsecond */
		ns = 2000 +
		     (uint64_t)grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2] / 221;
	return ns;
}

int sim_kernel__prepare(struct sim_work *w, CUfunction f, const unsigned grid[3],
			const unsigned block[3], unsigned shared, void **params)
{
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];

	*w = (struct sim_work){.a.type = SIM_KERNEL};
	if (!is_function(f))
		return SIM_INVALID_HANDLE;
	if (!grid[0] || !grid[1] || !grid[2] || !threads || threads > 1024 || block[2] > 64 ||
	    grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535 ||
	    shared + f->desc->static_shared > 166912)
		return SIM_INVALID_VALUE;
	memcpy(w->a.grid, grid, sizeof(w->a.grid));
	memcpy(w->a.block, block, sizeof(w->a.block));
	w->a.name = f->desc->name;
	w->a.registers = f->desc->registers;
	w->a.static_shared = f->desc->static_shared;
	w->a.dynamic_shared = shared;
	w->a.local = f->desc->local;
	w->duration_ns = kernel_ns(f->desc, grid, block, params);
	w->body = f->desc->body;
	w->params = params;
	w->nr_params = f->desc->nr_params;
	return 0;
}

static int launch(const struct sim_api *api, CUfunction f, const unsigned grid[3],
		  const unsigned block[3], unsigned shared, CUstream handle, void **params)
{
	struct sim_stream *s = NULL;
	struct sim_work w = {.a.name = ""};
	struct sim_call call;
	int err;

	err = sim_begin(&call, api);
	if (!err)
		err = sim_context__current() ? 0 : SIM_INVALID_CONTEXT;
	if (!err) {
		s = sim_stream__find(handle, api->per_thread);
		err = s ? sim_kernel__prepare(&w, f, grid, block, shared, params)
			: SIM_INVALID_HANDLE;
	}
	call.symbol = w.a.name;
	if (!err)
		err = sim_stream__run(s, &w);
	return sim_leave(
		&call, err,
		"\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u],\"shared\":%u,\"stream\":%u,\"kernel\":\"%s\"",
		grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, s ? s->id : 0,
		w.a.name);
}

#define XYZ(p) ((const unsigned[3]){p##x, p##y, p##z})
SIM_API2(cuLaunchKernel, _ptsz,
	 (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	  unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params,
	  void **extra),
	 launch(&api, f, XYZ(g), XYZ(b), shared, stream, params))
SIM_API2(cuLaunchCooperativeKernel, _ptsz,
	 (CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
	  unsigned int by, unsigned int bz, unsigned int shared, CUstream stream, void **params),
	 launch(&api, f, XYZ(g), XYZ(b), shared, stream, params))
SIM_API2(cuLaunchKernelEx, _ptsz,
	 (const struct sim_driver_launch_config *config, CUfunction f, void **params, void **extra),
	 launch(&api, f, config->grid, config->block, config->dynamic_shared, config->stream,
		params))

static int host_function(const struct sim_api *api, CUstream handle, CUhostFn fn, void *arg)
{
	struct sim_work w = {.a.type = SIM_HOST_FN, .duration_ns = 5000, .fn = fn, .arg = arg};
	struct sim_stream *s = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		s = sim_stream__find(handle, api->per_thread);
	if (!err)
		err = !s ? SIM_INVALID_HANDLE : !fn ? SIM_INVALID_VALUE : sim_stream__run(s, &w);
	return sim_leave(&call, err, "\"stream\":%u", s ? s->id : 0);
}
SIM_API2(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn fn, void *arg),
	 host_function(&api, stream, fn, arg))

/* ---- errors by name ---- */

static const struct {
	int error;
	const char *name, *text;
} errors[] = {
	{SIM_SUCCESS, "CUDA_SUCCESS", "no error"},
	{SIM_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
	{SIM_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
	{SIM_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
	{SIM_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
	{SIM_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
	{SIM_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
	{SIM_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
	{SIM_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
	{SIM_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
	{SIM_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
	{SIM_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
	{SIM_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
	{SIM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
	 "operation not permitted when stream is capturing"},
	{SIM_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
	 "operation failed due to a previous error during capture"},
	{SIM_UNKNOWN_ERROR, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static int describe(int error, const char **out, bool text)
{
	for (size_t i = 0; out && i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == error) {
			*out = text ? errors[i].text : errors[i].name;
			return 0;
		}
	}
	if (out)
		*out = NULL;
	return SIM_INVALID_VALUE;
}

SIM_EXPORT int cuGetErrorName(int error, const char **name)
{
	return describe(error, name, false);
}

SIM_EXPORT int cuGetErrorString(int error, const char **text)
{
	return describe(error, text, true);
}
