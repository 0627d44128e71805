/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: libcudart.so: how it finds the driver, its calls, devices and errors.
 */
#include "runtime.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rt_driver rt;
const struct sim_table *rt_table;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int load_error = -1; /* not tried */
static unsigned generation = 1;
static _Thread_local int last_error, device;
static _Thread_local unsigned bound_generation;
static _Thread_local int bound_device;

/* ---- the driver ---- */

static bool resolve(void *lib)
{
	bool all = true;

#define RT_FIND(fn) all &= (*(void **)&rt.fn = dlsym(lib, #fn)) != NULL;
#define RT_FIND_PTSZ(fn)                                          \
	all &= (*(void **)&rt.fn[0] = dlsym(lib, #fn)) != NULL && \
	       (*(void **)&rt.fn[1] = dlsym(lib, #fn "_ptsz")) != NULL;
#define RT_FIND_PTDS(fn)                                          \
	all &= (*(void **)&rt.fn[0] = dlsym(lib, #fn)) != NULL && \
	       (*(void **)&rt.fn[1] = dlsym(lib, #fn "_ptds")) != NULL;
	RT_DRIVER(RT_FIND, RT_FIND_PTSZ, RT_FIND_PTDS)
	return all;
}

static int load(void)
{
	struct sim_uuid id;
	int (*get_table)(const void **, const struct sim_uuid *);
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return SIM_INSUFFICIENT_DRIVER;
	memcpy(id.bytes, SIM_TABLE_UUID_BYTES, sizeof(id.bytes));
	*(void **)&get_table = dlsym(lib, "cuGetExportTable");
	if (!get_table || get_table((const void **)&rt_table, &id) || !resolve(lib))
		return SIM_INSUFFICIENT_DRIVER;
	return rt_table->driver_version / 1000 < RT_VERSION / 1000 ? SIM_INSUFFICIENT_DRIVER : 0;
}

static int loaded(void)
{
	int err = __atomic_load_n(&load_error, __ATOMIC_ACQUIRE);

	if (err >= 0)
		return err;
	pthread_mutex_lock(&lock);
	if (load_error < 0)
		__atomic_store_n(&load_error, load(), __ATOMIC_RELEASE);
	err = load_error;
	pthread_mutex_unlock(&lock);
	return err;
}

/* ---- calls ---- */

int *rt_last_error(void)
{
	return &last_error;
}

int rt_begin(struct sim_call *call, const struct rt_api *api)
{
	int err = loaded();

	call->domain = 0;
	if (rt_table)
		rt_table->enter(call, SIM_RUNTIME, api->cbid, api->name, NULL);
	return err;
}

int rt_begin_init(struct sim_call *call, const struct rt_api *api)
{
	static bool done;
	int err = rt_begin(call, api);

	if (!err && !__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
		err = rt.cuInit(0);
		if (!err)
			__atomic_store_n(&done, true, __ATOMIC_RELEASE);
	}
	return err;
}

int rt_begin_context(struct sim_call *call, const struct rt_api *api)
{
	CUcontext context;
	int err = rt_begin_init(call, api);

	if (err || (bound_generation == __atomic_load_n(&generation, __ATOMIC_ACQUIRE) &&
		    bound_device == device))
		return err;
	err = rt.cuDevicePrimaryCtxRetain(&context, device);
	if (!err)
		err = rt.cuCtxSetCurrent(context);
	if (!err) {
		bound_generation = generation;
		bound_device = device;
	}
	return err;
}

int rt_end(struct sim_call *call, int result, const char *args, ...)
{
	char text[1024] = "";
	va_list list;

	if (args) {
		va_start(list, args);
		vsnprintf(text, sizeof(text), args, list);
		va_end(list);
	}
	if (result && result != SIM_NOT_READY)
		last_error = result;
	if (call->domain)
		rt_table->exit(call, result, "%s", text);
	return result;
}

int rt_device(void)
{
	return device;
}

void rt_set_device(int d)
{
	device = d;
}

void rt_forget_contexts(void)
{
	__atomic_fetch_add(&generation, 1, __ATOMIC_RELEASE);
}

/* ---- versions and devices ---- */

static int runtime_version(const struct rt_api *api, int *version)
{
	struct sim_call call;

	rt_begin(&call, api); /* needs no driver */
	*version = loaded() ? RT_VERSION : (int)rt_table->env("RUNTIME_VERSION", RT_VERSION);
	return rt_leave(&call, 0, NULL);
}
RT_API(cudaRuntimeGetVersion, (int *version), runtime_version(&api, version))

static int driver_version(const struct rt_api *api, int *version)
{
	struct sim_call call;
	int err = rt_begin(&call, api);

	*version = 0;
	if (rt_table)
		err = rt.cuDriverGetVersion(version);
	return rt_leave(&call, rt_table ? err : 0, NULL); /* without a driver: 0, and no error */
}
RT_API(cudaDriverGetVersion, (int *version), driver_version(&api, version))

static int device_count(const struct rt_api *api, int *count)
{
	struct sim_call call;
	int err = rt_begin_init(&call, api);

	*count = 0;
	if (!err)
		err = rt.cuDeviceGetCount(count);
	return rt_leave(&call, err, NULL);
}
RT_API(cudaGetDeviceCount, (int *count), device_count(&api, count))

static int get_device(const struct rt_api *api, int *out)
{
	struct sim_call call;
	int err = rt_begin_init(&call, api);

	if (!err)
		*out = device;
	return rt_leave(&call, err, NULL);
}
RT_API(cudaGetDevice, (int *out), get_device(&api, out))

static int set_device(const struct rt_api *api, int d)
{
	struct sim_call call;
	int err = rt_begin_init(&call, api);

	if (!err && (d < 0 || d >= rt_table->nr_devices()))
		err = SIM_INVALID_DEVICE;
	if (!err)
		device = d;
	return rt_leave(&call, err, "\"device\":%d", d);
}
RT_API(cudaSetDevice, (int d), set_device(&api, d))

static int device_attribute(const struct rt_api *api, int *value, int attribute, int d)
{
	struct sim_call call;
	int err = rt_begin_init(&call, api);

	if (!err)
		err = rt.cuDeviceGetAttribute(value, attribute, d);
	return rt_leave(&call, err, "\"attribute\":%d", attribute);
}
RT_API(cudaDeviceGetAttribute, (int *value, int attribute, int d),
       device_attribute(&api, value, attribute, d))

/*
 * Where cudaDeviceProp has what; the majors differ. Found with offsetof() on the real headers:
 * abi_check.c.
 */
static const struct {
	int attribute;
	unsigned short offset12, offset13;
} properties[] = {
#define RT_PROPERTY(field, attribute, offset12, offset13) {attribute, offset12, offset13},
#include "device_prop.h"
};

static int get_properties(const struct rt_api *api, char *out, int d)
{
	const size_t bytes = SIM_MAJOR == 12 ? 1032 : 1008;
	struct sim_device_info info;
	struct sim_call call;
	int err = rt_begin_init(&call, api);

	if (!err && (d < 0 || d >= rt_table->nr_devices()))
		err = SIM_INVALID_DEVICE;
	if (err)
		return rt_leave(&call, err, NULL);
	info = rt_table->device(d);
	memset(out, 0, bytes);
	snprintf(out, 256, "%s", info.name);
	memcpy(out + 256, &info.uuid, 16);
	memcpy(out + 288, &info.memory_bytes, 8);
	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++) {
		int value;

		rt_table->device_attribute(&value, properties[i].attribute, d);
		memcpy(out + (SIM_MAJOR == 12 ? properties[i].offset12 : properties[i].offset13),
		       &value, 4);
	}
	return rt_leave(&call, err, "\"device\":%d", d);
}
RT_API(cudaGetDeviceProperties, (void *out, int d), get_properties(&api, out, d))
#if SIM_MAJOR == 12
RT_API(cudaGetDeviceProperties_v2, (void *out, int d), get_properties(&api, out, d))
#endif

static int priorities(const struct rt_api *api, int *least, int *greatest)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuCtxGetStreamPriorityRange(least, greatest);
	return rt_leave(&call, err, NULL);
}
RT_API(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
       priorities(&api, least, greatest))

static int can_access(const struct rt_api *api, int *can, int d, int peer)
{
	struct sim_call call;
	int err = rt_begin_init(&call, api);

	if (!err)
		err = rt.cuDeviceCanAccessPeer(can, d, peer);
	return rt_leave(&call, err, NULL);
}
RT_API(cudaDeviceCanAccessPeer, (int *can, int d, int peer), can_access(&api, can, d, peer))

static int enable_peer(const struct rt_api *api, int peer, unsigned flags)
{
	CUcontext context;
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuDevicePrimaryCtxRetain(&context, peer);
	if (!err)
		err = rt.cuCtxEnablePeerAccess(context, flags);
	return rt_leave(&call, err, "\"peer\":%d", peer);
}
RT_API(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags), enable_peer(&api, peer, flags))

static int synchronize(const struct rt_api *api)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuCtxSynchronize();
	return rt_leave(&call, err, NULL);
}
RT_API(cudaDeviceSynchronize, (void), synchronize(&api))

static int reset(const struct rt_api *api)
{
	struct sim_call call;
	int err = rt_begin_init(&call, api);

	if (!err)
		err = rt.cuDevicePrimaryCtxReset_v2(device);
	rt_forget_contexts();
	return rt_leave(&call, err, NULL);
}
RT_API(cudaDeviceReset, (void), reset(&api))

static int profiler(const struct rt_api *api)
{
	struct sim_call call;

	return rt_leave(&call, rt_begin_context(&call, api), NULL);
}
RT_API(cudaProfilerStart, (void), profiler(&api))
RT_API(cudaProfilerStop, (void), profiler(&api))

/* ---- errors ---- */

static int take_error(const struct rt_api *api, bool clear)
{
	struct sim_call call;
	int err;

	rt_begin(&call, api);
	err = last_error;
	if (call.domain)
		rt_table->exit(&call, err, NULL);
	if (clear)
		last_error = 0;
	return err;
}
RT_API(cudaGetLastError, (void), take_error(&api, true))
RT_API(cudaPeekAtLastError, (void), take_error(&api, false))

static const struct {
	int error;
	const char *name, *text;
} errors[] = {
	{SIM_SUCCESS, "cudaSuccess", "no error"},
	{SIM_INVALID_VALUE, "cudaErrorInvalidValue", "invalid argument"},
	{SIM_OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "out of memory"},
	{SIM_NOT_INITIALIZED, "cudaErrorInitializationError", "initialization error"},
	{SIM_DEINITIALIZED, "cudaErrorCudartUnloading", "driver shutting down"},
	{SIM_INVALID_CONFIGURATION, "cudaErrorInvalidConfiguration",
	 "invalid configuration argument"},
	{SIM_INSUFFICIENT_DRIVER, "cudaErrorInsufficientDriver",
	 "CUDA driver version is insufficient for CUDA runtime version"},
	{SIM_INVALID_DEVICE_FUNCTION, "cudaErrorInvalidDeviceFunction", "invalid device function"},
	{SIM_NO_DEVICE, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
	{SIM_INVALID_DEVICE, "cudaErrorInvalidDevice", "invalid device ordinal"},
	{SIM_INVALID_IMAGE, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
	{SIM_INVALID_CONTEXT, "cudaErrorDeviceUninitialized", "invalid device context"},
	{SIM_INVALID_HANDLE, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
	{SIM_NOT_FOUND, "cudaErrorSymbolNotFound", "named symbol not found"},
	{SIM_NOT_READY, "cudaErrorNotReady", "device not ready"},
	{SIM_CONTEXT_IS_DESTROYED, "cudaErrorContextIsDestroyed", "context is destroyed"},
	{SIM_LAUNCH_FAILED, "cudaErrorLaunchFailure", "unspecified launch failure"},
	{SIM_NOT_SUPPORTED, "cudaErrorNotSupported", "operation not supported"},
	{SIM_CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported",
	 "operation not permitted when stream is capturing"},
	{SIM_CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated",
	 "operation failed due to a previous error during capture"},
	{SIM_CAPTURE_UNMATCHED, "cudaErrorStreamCaptureUnmatched",
	 "capture was not initiated in this stream"},
	{SIM_CAPTURE_IMPLICIT, "cudaErrorStreamCaptureImplicit",
	 "operation would make the legacy stream depend on a capturing blocking stream"},
	{SIM_UNKNOWN_ERROR, "cudaErrorUnknown", "unknown error"},
};

static const char *describe(int error, bool text)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (errors[i].error == error)
			return text ? errors[i].text : errors[i].name;
	return "unrecognized error code";
}

SIM_EXPORT const char *cudaGetErrorName(cudaError_t error)
{
	return describe(error, false);
}

SIM_EXPORT const char *cudaGetErrorString(cudaError_t error)
{
	return describe(error, true);
}
