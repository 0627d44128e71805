/* SPDX-License-Identifier: BSD-2-Clause */
/* SIMULATED CUDA, FOR TESTS: libcudart's memory, streams and events. */
#include "runtime.h"

#define DEV(p) ((CUdeviceptr)(p))
#define HANDLE(s) ((unsigned long)(s))

/* ---- allocation ---- */

enum space { DEVICE, MANAGED, HOST };

static int alloc(const struct rt_api *api, void **p, size_t bytes, enum space space, unsigned flags)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err && p && !bytes) /* nothing, and no error */
		*p = NULL;
	else if (!err && space == DEVICE)
		err = rt.cuMemAlloc_v2((CUdeviceptr *)p, bytes);
	else if (!err && space == MANAGED)
		err = rt.cuMemAllocManaged((CUdeviceptr *)p, bytes, flags);
	else if (!err)
		err = rt.cuMemHostAlloc(p, bytes, flags);
	return rt_leave(&call, err, "\"bytes\":%zu,\"ptr\":%lu", bytes, err ? 0 : HANDLE(*p));
}
RT_API(cudaMalloc, (void **p, size_t bytes), alloc(&api, p, bytes, DEVICE, 0))
RT_API(cudaMallocManaged, (void **p, size_t bytes, unsigned int flags),
       alloc(&api, p, bytes, MANAGED, flags))
RT_API(cudaMallocHost, (void **p, size_t bytes), alloc(&api, p, bytes, HOST, 0))
RT_API(cudaHostAlloc, (void **p, size_t bytes, unsigned int flags),
       alloc(&api, p, bytes, HOST, flags))

static int release(const struct rt_api *api, void *p, bool host)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = host ? rt.cuMemFreeHost(p) : rt.cuMemFree_v2(DEV(p));
	return rt_leave(&call, err, "\"ptr\":%lu", HANDLE(p));
}
RT_API(cudaFree, (void *p), release(&api, p, false))
RT_API(cudaFreeHost, (void *p), release(&api, p, true))

static int alloc_async(const struct rt_api *api, void **p, size_t bytes, cudaStream_t stream)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuMemAllocAsync[api->per_thread]((CUdeviceptr *)p, bytes, stream);
	return rt_leave(&call, err, "\"bytes\":%zu,\"ptr\":%lu,\"stream\":%lu", bytes,
			err ? 0 : HANDLE(*p), HANDLE(stream));
}
RT_API2(cudaMallocAsync, _ptsz, (void **p, size_t bytes, cudaStream_t stream),
	alloc_async(&api, p, bytes, stream))

static int free_async(const struct rt_api *api, void *p, cudaStream_t stream)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuMemFreeAsync[api->per_thread](DEV(p), stream);
	return rt_leave(&call, err, "\"ptr\":%lu,\"stream\":%lu", HANDLE(p), HANDLE(stream));
}
RT_API2(cudaFreeAsync, _ptsz, (void *p, cudaStream_t stream), free_async(&api, p, stream))

static int host_register(const struct rt_api *api, void *p, size_t bytes, unsigned flags, bool on)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = on ? rt.cuMemHostRegister_v2(p, bytes, flags) : rt.cuMemHostUnregister(p);
	return rt_leave(&call, err, "\"bytes\":%zu,\"ptr\":%lu", bytes, HANDLE(p));
}
RT_API(cudaHostRegister, (void *p, size_t bytes, unsigned int flags),
       host_register(&api, p, bytes, flags, true))
RT_API(cudaHostUnregister, (void *p), host_register(&api, p, 0, 0, false))

static int get_info(const struct rt_api *api, size_t *free_bytes, size_t *total)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuMemGetInfo_v2(free_bytes, total);
	return rt_leave(&call, err, NULL);
}
RT_API(cudaMemGetInfo, (size_t * free_bytes, size_t *total), get_info(&api, free_bytes, total))

static int pointer_attributes(const struct rt_api *api, struct sim_pointer_attributes *out,
			      const void *p)
{
	int type = 0, managed = 0, device = -2; /* cudaInvalidDeviceId */
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err && !rt.cuPointerGetAttribute(&type, 2, DEV(p))) {
		rt.cuPointerGetAttribute(&managed, 8, DEV(p));
		rt.cuPointerGetAttribute(&device, 9, DEV(p));
	}
	if (!err)
		*out = (struct sim_pointer_attributes){
			.type = managed ? 3 : type,
			.device = device,
			.device_pointer = type ? (void *)p : NULL,
			.host_pointer = type == 2 && !managed ? NULL : (void *)p};
	return rt_leave(&call, err, NULL);
}
RT_API(cudaPointerGetAttributes, (void *out, const void *p), pointer_attributes(&api, out, p))

/* ---- copies and sets ---- */

static int copy(const struct rt_api *api, void *dst, const void *src, size_t bytes, int kind)
{
	bool pt = api->per_thread;
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (err)
		;
	else if (kind == SIM_HOST_TO_DEVICE)
		err = rt.cuMemcpyHtoD_v2[pt](DEV(dst), src, bytes);
	else if (kind == SIM_DEVICE_TO_HOST)
		err = rt.cuMemcpyDtoH_v2[pt](dst, DEV(src), bytes);
	else if (kind == SIM_DEVICE_TO_DEVICE)
		err = rt.cuMemcpyDtoD_v2[pt](DEV(dst), DEV(src), bytes);
	else if (kind == SIM_HOST_TO_HOST || kind == SIM_MEMCPY_DEFAULT)
		err = rt.cuMemcpy[pt](DEV(dst), DEV(src), bytes);
	else
		err = 21; /* cudaErrorInvalidMemcpyDirection */
	return rt_leave(&call, err, "\"bytes\":%zu,\"kind\":%d,\"dst\":%lu,\"src\":%lu", bytes,
			kind, HANDLE(dst), HANDLE(src));
}
RT_API2(cudaMemcpy, _ptds, (void *dst, const void *src, size_t bytes, int kind),
	copy(&api, dst, src, bytes, kind))

static int copy_async(const struct rt_api *api, void *dst, const void *src, size_t bytes, int kind,
		      cudaStream_t stream)
{
	bool pt = api->per_thread;
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (err)
		;
	else if (kind == SIM_HOST_TO_DEVICE)
		err = rt.cuMemcpyHtoDAsync_v2[pt](DEV(dst), src, bytes, stream);
	else if (kind == SIM_DEVICE_TO_HOST)
		err = rt.cuMemcpyDtoHAsync_v2[pt](dst, DEV(src), bytes, stream);
	else if (kind == SIM_DEVICE_TO_DEVICE)
		err = rt.cuMemcpyDtoDAsync_v2[pt](DEV(dst), DEV(src), bytes, stream);
	else if (kind == SIM_HOST_TO_HOST || kind == SIM_MEMCPY_DEFAULT)
		err = rt.cuMemcpyAsync[pt](DEV(dst), DEV(src), bytes, stream);
	else
		err = 21;
	return rt_leave(&call, err,
			"\"bytes\":%zu,\"kind\":%d,\"dst\":%lu,\"src\":%lu,\"stream\":%lu", bytes,
			kind, HANDLE(dst), HANDLE(src), HANDLE(stream));
}
RT_API2(cudaMemcpyAsync, _ptsz,
	(void *dst, const void *src, size_t bytes, int kind, cudaStream_t stream),
	copy_async(&api, dst, src, bytes, kind, stream))

static int copy_peer(const struct rt_api *api, void *dst, int to, const void *src, int from,
		     size_t bytes, cudaStream_t stream, bool wait)
{
	CUcontext a, b;
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuDevicePrimaryCtxRetain(&a, to);
	if (!err)
		err = rt.cuDevicePrimaryCtxRetain(&b, from);
	if (!err)
		err = rt.cuMemcpyPeerAsync[0](DEV(dst), a, DEV(src), b, bytes, stream);
	if (!err && wait)
		err = rt.cuStreamSynchronize[0](stream);
	return rt_leave(&call, err, "\"bytes\":%zu,\"to\":%d,\"from\":%d", bytes, to, from);
}
RT_API(cudaMemcpyPeer, (void *dst, int to, const void *src, int from, size_t bytes),
       copy_peer(&api, dst, to, src, from, bytes, NULL, true))
RT_API(cudaMemcpyPeerAsync,
       (void *dst, int to, const void *src, int from, size_t bytes, cudaStream_t stream),
       copy_peer(&api, dst, to, src, from, bytes, stream, false))

static int set(const struct rt_api *api, void *p, int value, size_t bytes)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuMemsetD8_v2[api->per_thread](DEV(p), (unsigned char)value, bytes);
	return rt_leave(&call, err, "\"bytes\":%zu,\"value\":%d,\"dst\":%lu", bytes, value,
			HANDLE(p));
}
RT_API2(cudaMemset, _ptds, (void *p, int value, size_t bytes), set(&api, p, value, bytes))

static int set_async(const struct rt_api *api, void *p, int value, size_t bytes,
		     cudaStream_t stream)
{
	struct sim_call call;
	int err = rt_begin_context(&call, api);

	if (!err)
		err = rt.cuMemsetD8Async[api->per_thread](DEV(p), (unsigned char)value, bytes,
							  stream);
	return rt_leave(&call, err, "\"bytes\":%zu,\"value\":%d,\"dst\":%lu,\"stream\":%lu", bytes,
			value, HANDLE(p), HANDLE(stream));
}
RT_API2(cudaMemsetAsync, _ptsz, (void *p, int value, size_t bytes, cudaStream_t stream),
	set_async(&api, p, value, bytes, stream))

/* ---- streams and events ---- */

/* Functions that hand on to the driver's. `pt` is there: the per-thread twin. */
#define FORWARD_BODY(call_driver, ...)           \
	bool pt = api.per_thread;                \
	struct sim_call call;                    \
	int err = rt_begin_context(&call, &api); \
                                                 \
	if (!err)                                \
		err = call_driver;               \
	(void)pt;                                \
	return rt_leave(&call, err, __VA_ARGS__);
#define FORWARD(fn, params, call_driver, ...)                                 \
	SIM_EXPORT cudaError_t fn params                                      \
	{                                                                     \
		static const struct rt_api api = {SIM_CBID_##fn, #fn, false}; \
		FORWARD_BODY(call_driver, __VA_ARGS__)                        \
	}
#define FORWARD2(fn, params, call_driver, ...)                                              \
	FORWARD(fn, params, call_driver, __VA_ARGS__)                                       \
	SIM_EXPORT cudaError_t fn##_ptsz params                                             \
	{                                                                                   \
		static const struct rt_api api = {SIM_CBID_##fn##_ptsz, #fn "_ptsz", true}; \
		FORWARD_BODY(call_driver, __VA_ARGS__)                                      \
	}

FORWARD(cudaStreamCreate, (cudaStream_t * stream), rt.cuStreamCreateWithPriority(stream, 0, 0),
	"\"stream\":%lu", HANDLE(*stream))
FORWARD(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned int flags),
	rt.cuStreamCreateWithPriority(stream, flags, 0), "\"stream\":%lu", HANDLE(*stream))
FORWARD(cudaStreamCreateWithPriority, (cudaStream_t * stream, unsigned int flags, int priority),
	rt.cuStreamCreateWithPriority(stream, flags, priority), "\"stream\":%lu", HANDLE(*stream))
FORWARD(cudaStreamDestroy, (cudaStream_t stream), rt.cuStreamDestroy_v2(stream), "\"stream\":%lu",
	HANDLE(stream))
FORWARD2(cudaStreamSynchronize, (cudaStream_t stream), rt.cuStreamSynchronize[pt](stream),
	 "\"stream\":%lu", HANDLE(stream))
FORWARD2(cudaStreamQuery, (cudaStream_t stream), rt.cuStreamQuery[pt](stream), "\"stream\":%lu",
	 HANDLE(stream))
FORWARD2(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned int flags),
	 rt.cuStreamWaitEvent[pt](stream, event, flags), "\"stream\":%lu,\"event\":%lu",
	 HANDLE(stream), HANDLE(event))
FORWARD2(cudaStreamBeginCapture, (cudaStream_t stream, int mode),
	 rt.cuStreamBeginCapture_v2[pt](stream, mode), "\"stream\":%lu", HANDLE(stream))
FORWARD2(cudaStreamEndCapture, (cudaStream_t stream, cudaGraph_t *graph),
	 rt.cuStreamEndCapture[pt](stream, graph), "\"stream\":%lu", HANDLE(stream))
FORWARD2(cudaStreamIsCapturing, (cudaStream_t stream, int *status),
	 rt.cuStreamIsCapturing[pt](stream, status), "\"stream\":%lu", HANDLE(stream))
FORWARD(cudaEventCreate, (cudaEvent_t * event), rt.cuEventCreate(event, 0), "\"event\":%lu",
	HANDLE(*event))
FORWARD(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned int flags),
	rt.cuEventCreate(event, flags), "\"event\":%lu", HANDLE(*event))
FORWARD2(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream),
	 rt.cuEventRecord[pt](event, stream), "\"event\":%lu,\"stream\":%lu", HANDLE(event),
	 HANDLE(stream))
FORWARD2(cudaEventRecordWithFlags, (cudaEvent_t event, cudaStream_t stream, unsigned int flags),
	 rt.cuEventRecordWithFlags[pt](event, stream, flags), "\"event\":%lu,\"stream\":%lu",
	 HANDLE(event), HANDLE(stream))
FORWARD(cudaEventQuery, (cudaEvent_t event), rt.cuEventQuery(event), "\"event\":%lu", HANDLE(event))
FORWARD(cudaEventSynchronize, (cudaEvent_t event), rt.cuEventSynchronize(event), "\"event\":%lu",
	HANDLE(event))
FORWARD(cudaEventDestroy, (cudaEvent_t event), rt.cuEventDestroy_v2(event), "\"event\":%lu",
	HANDLE(event))
FORWARD(cudaEventElapsedTime, (float *ms, cudaEvent_t start, cudaEvent_t end),
	rt.cuEventElapsedTime(ms, start, end), NULL)
