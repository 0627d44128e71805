/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: libcuda's memory. The device's is ordinary memory of the process that
 * only copies and kernels are meant to touch, so that what a program calculates with it comes out
 * right.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver.h"

static struct sim_region *regions;

/* ---- what lies where ---- */

struct sim_region sim_region__of(uint64_t p)
{
	struct sim_region found = {.base = p, .kind = SIM_PAGEABLE}, *r;

	pthread_mutex_lock(&sim_lock);
	for (r = regions; r; r = r->next) {
		if (p >= r->base && p < r->base + r->bytes) {
			found = *r;
			break;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return found;
}

static int add_region(uint64_t base, size_t bytes, enum sim_memory kind, struct sim_context *c,
		      bool registered)
{
	struct sim_region *r = calloc(1, sizeof(*r));

	if (!r)
		return SIM_OUT_OF_MEMORY;
	*r = (struct sim_region){
		.base = base, .bytes = bytes, .kind = kind, .context = c, .registered = registered};
	pthread_mutex_lock(&sim_lock);
	r->next = regions;
	regions = r;
	if (kind == SIM_DEVICE)
		c->device->used_bytes += bytes;
	pthread_mutex_unlock(&sim_lock);
	return 0;
}

/* Takes the region that begins at base out of the list; it is the caller's then. */
static struct sim_region *remove_region(uint64_t base, bool registered)
{
	struct sim_region **p, *r = NULL;

	pthread_mutex_lock(&sim_lock);
	for (p = &regions; *p; p = &(*p)->next) {
		if ((*p)->base == base && (*p)->registered == registered) {
			r = *p;
			*p = r->next;
			if (r->kind == SIM_DEVICE)
				r->context->device->used_bytes -= r->bytes;
			break;
		}
	}
	pthread_mutex_unlock(&sim_lock);
	return r;
}

/* ---- allocation ---- */

static void tell(bool release, const struct sim_context *c, uint64_t address, size_t bytes,
		 enum sim_memory kind)
{
	const struct sim_hooks *hooks = sim_engine__hooks();

	if (hooks)
		hooks->memory(release, address, bytes, (uint32_t)kind, c->id,
			      (uint32_t)c->device->ordinal);
}

static int allocate(struct sim_context *c, void **p, size_t bytes, enum sim_memory kind)
{
	size_t rounded = (bytes + 511) & ~511ul;
	int err;

	if (!p || !bytes)
		return SIM_INVALID_VALUE;
	if (!c)
		return SIM_INVALID_CONTEXT;
	if (rounded < bytes ||
	    (kind == SIM_DEVICE && rounded > c->device->memory_bytes - c->device->used_bytes))
		return SIM_OUT_OF_MEMORY;
	*p = mmap(NULL, rounded, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (*p == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	err = add_region((uint64_t)*p, rounded, kind, c, false);
	if (err)
		munmap(*p, rounded);
	else
		tell(false, c, (uint64_t)*p, rounded, kind);
	return err;
}

static int alloc(const struct sim_api *api, void **p, size_t bytes, enum sim_memory kind)
{
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = allocate(sim_context__current(), p, bytes, kind);
	return sim_leave(&call, err, "\"bytes\":%zu,\"ptr\":%lu", bytes, err ? 0 : (uint64_t)*p);
}
SIM_API(cuMemAlloc_v2, (CUdeviceptr * p, size_t bytes), alloc(&api, (void **)p, bytes, SIM_DEVICE))
SIM_API(cuMemAllocManaged, (CUdeviceptr * p, size_t bytes, unsigned int flags),
	alloc(&api, (void **)p, bytes, SIM_MANAGED))
SIM_API(cuMemAllocHost_v2, (void **p, size_t bytes), alloc(&api, p, bytes, SIM_PINNED))
SIM_API(cuMemHostAlloc, (void **p, size_t bytes, unsigned int flags),
	alloc(&api, p, bytes, SIM_PINNED))

static int release(const struct sim_api *api, uint64_t p)
{
	struct sim_region *r = NULL;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err && p) {
		struct sim_context *c = sim_context__current();

		if (c) /* waits for the device, as the real one does */
			sim_wait_until(sim_stream__tail(c->legacy));
		sim_engine__drain();
		r = remove_region(p, false);
		err = r ? 0 : SIM_INVALID_VALUE;
	}
	if (r) {
		tell(true, r->context, r->base, r->bytes, r->kind);
		munmap((void *)r->base, r->bytes);
	}
	free(r);
	return sim_leave(&call, err, "\"ptr\":%lu", p);
}
SIM_API(cuMemFree_v2, (CUdeviceptr p), release(&api, p))
SIM_API(cuMemFreeHost, (void *p), release(&api, (uint64_t)p))

/*
 * In the order of the stream in reality; here at once, and given back to the system only when the
 * process ends.
 */
static int alloc_async(const struct sim_api *api, CUdeviceptr *p, size_t bytes, CUstream stream)
{
	struct sim_call call;
	int err = sim_begin(&call, api);
	struct sim_stream *s = err ? NULL : sim_stream__find(stream, api->per_thread);

	if (!err)
		err = s ? allocate(s->context, (void **)p, bytes, SIM_DEVICE) : SIM_INVALID_HANDLE;
	return sim_leave(&call, err, "\"bytes\":%zu,\"ptr\":%lu,\"stream\":%u", bytes,
			 err ? 0 : (uint64_t)*p, s ? s->id : 0);
}
SIM_API2(cuMemAllocAsync, _ptsz, (CUdeviceptr * p, size_t bytes, CUstream stream),
	 alloc_async(&api, p, bytes, stream))

static int free_async(const struct sim_api *api, CUdeviceptr p, CUstream stream)
{
	struct sim_call call;
	int err = sim_begin(&call, api);
	struct sim_stream *s = err ? NULL : sim_stream__find(stream, api->per_thread);

	if (!err)
		err = s ? 0 : SIM_INVALID_HANDLE;
	if (!err) {
		struct sim_region *r = remove_region(p, false);

		err = r ? 0 : SIM_INVALID_VALUE;
		if (r)
			tell(true, r->context, r->base, r->bytes, r->kind);
		free(r);
	}
	return sim_leave(&call, err, "\"ptr\":%lu,\"stream\":%u", (uint64_t)p, s ? s->id : 0);
}
SIM_API2(cuMemFreeAsync, _ptsz, (CUdeviceptr p, CUstream stream), free_async(&api, p, stream))

static int host_register(const struct sim_api *api, void *p, size_t bytes, bool on)
{
	struct sim_context *c = sim_context__current();
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = !p ? SIM_INVALID_VALUE : c ? 0 : SIM_INVALID_CONTEXT;
	if (!err && on) {
		err = add_region((uint64_t)p, bytes, SIM_PINNED, c, true);
	} else if (!err) {
		struct sim_region *r = remove_region((uint64_t)p, true);

		err = r ? 0 : SIM_INVALID_VALUE;
		free(r);
	}
	return sim_leave(&call, err, "\"bytes\":%zu,\"ptr\":%lu", bytes, (uint64_t)p);
}
SIM_API(cuMemHostRegister_v2, (void *p, size_t bytes, unsigned int flags),
	host_register(&api, p, bytes, true))
SIM_API(cuMemHostUnregister, (void *p), host_register(&api, p, 0, false))

static int get_info(const struct sim_api *api, size_t *free_bytes, size_t *total)
{
	struct sim_context *c = sim_context__current();
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = c ? 0 : SIM_INVALID_CONTEXT;
	if (!err) {
		*total = c->device->memory_bytes;
		*free_bytes = *total - c->device->used_bytes;
	}
	return sim_leave(&call, err, NULL);
}
SIM_API(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total), get_info(&api, free_bytes, total))

/*
 * CU_POINTER_ATTRIBUTE_… CONTEXT 1, MEMORY_TYPE 2, DEVICE_POINTER 3, IS_MANAGED 8, DEVICE_ORDINAL 9
 */
static int pointer_attribute(const struct sim_api *api, void *value, int attribute, CUdeviceptr p)
{
	struct sim_region r = sim_region__of(p);
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err)
		err = r.kind == SIM_PAGEABLE || !value ? SIM_INVALID_VALUE : 0;
	if (!err && attribute == 1)
		*(struct sim_context **)value = r.context;
	else if (!err && attribute == 2)
		*(int *)value = r.kind == SIM_PINNED ? 1 : 2;
	else if (!err && attribute == 3)
		*(CUdeviceptr *)value = p;
	else if (!err && attribute == 8)
		*(int *)value = r.kind == SIM_MANAGED;
	else if (!err && attribute == 9)
		*(int *)value = r.context->device->ordinal;
	else if (!err)
		err = SIM_NOT_SUPPORTED;
	return sim_leave(&call, err, NULL);
}
SIM_API(cuPointerGetAttribute, (void *value, int attribute, CUdeviceptr p),
	pointer_attribute(&api, value, attribute, p))

/* ---- copies and sets ---- */

static bool on_device(const struct sim_region *r)
{
	return r->kind == SIM_DEVICE || r->kind == SIM_MANAGED;
}

static bool inside(const struct sim_region *r, uint64_t p, size_t bytes)
{
	return !on_device(r) || p + bytes <= r->base + r->bytes;
}

int sim_copy__prepare(struct sim_work *w, uint64_t dst, uint64_t src, size_t bytes, int kind)
{
	struct sim_region to = sim_region__of(dst), from = sim_region__of(src);
	/* By where things lie: the upper bit, from; the lower, to. */
	static const uint8_t kinds[] = {9, 1, 2, 8};

	*w = (struct sim_work){.a.type = SIM_COPY, .rows = 1, .width = bytes};
	if (kind < SIM_HOST_TO_HOST || kind > SIM_MEMCPY_DEFAULT || !inside(&to, dst, bytes) ||
	    !inside(&from, src, bytes))
		return SIM_INVALID_VALUE;
	if ((kind == SIM_HOST_TO_DEVICE && !on_device(&to)) ||
	    (kind == SIM_DEVICE_TO_HOST && !on_device(&from)) ||
	    (kind == SIM_DEVICE_TO_DEVICE && (!on_device(&to) || !on_device(&from))))
		return SIM_INVALID_VALUE;
	w->dst = (void *)dst;
	w->src = (const void *)src;
	w->a.bytes = bytes;
	w->a.from = (uint8_t)from.kind;
	w->a.to = (uint8_t)to.kind;
	w->a.copy_kind = kinds[2 * on_device(&from) + on_device(&to)];
	if (w->a.copy_kind == 8 && from.context->device != to.context->device) {
		w->a.copy_kind = 10;
		w->a.from_device = (uint32_t)from.context->device->ordinal;
		w->a.from_context = from.context->id;
		w->a.to_device = (uint32_t)to.context->device->ordinal;
		w->a.to_context = to.context->id;
	}
	w->duration_ns = sim_copy_ns(&w->a);
	return 0;
}

int sim_set__prepare(struct sim_work *w, uint64_t dst, unsigned value, unsigned element_bytes,
		     size_t count)
{
	struct sim_region to = sim_region__of(dst);
	size_t bytes = count * element_bytes;

	*w = (struct sim_work){
		.a.type = SIM_SET, .rows = 1, .width = bytes, .element_bytes = element_bytes};
	if (!on_device(&to) || !inside(&to, dst, bytes))
		return SIM_INVALID_VALUE;
	w->dst = (void *)dst;
	w->a.value = value;
	w->a.bytes = bytes;
	w->a.to = (uint8_t)to.kind;
	w->duration_ns = 1000 + bytes / 1000;
	return 0;
}

/*
 * Runs w in the stream; waits for it unless it is asynchronous, which from or to pageable memory no
 * copy is.
 */
static int run(const struct sim_api *api, CUstream handle, struct sim_work *w, bool async,
	       uint32_t *stream_id)
{
	struct sim_stream *s = sim_stream__find(handle, api->per_thread);
	int err;

	if (!s)
		return sim_context__current() ? SIM_INVALID_HANDLE : SIM_INVALID_CONTEXT;
	*stream_id = s->id;
	w->a.async = async;
	if (s->capture && (!async || w->a.from == SIM_PAGEABLE || w->a.to == SIM_PAGEABLE))
		return sim_capture__forbid(s);
	err = sim_stream__run(s, w);
	if (!err && !s->capture && (!async || (w->a.type == SIM_COPY && w->a.to == SIM_PAGEABLE)) &&
	    w->a.copy_kind != 8) {
		sim_wait_until(w->a.end_ns);
		sim_engine__drain();
	}
	return err;
}

static int copy(const struct sim_api *api, uint64_t dst, uint64_t src, size_t bytes, int kind,
		CUstream stream, bool async)
{
	struct sim_work w;
	uint32_t stream_id = 0;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err && !sim_context__current())
		err = SIM_INVALID_CONTEXT;
	if (!err && bytes) {
		err = sim_copy__prepare(&w, dst, src, bytes, kind);
		if (!err)
			err = run(api, stream, &w, async, &stream_id);
	}
	return sim_leave(&call, err, "\"bytes\":%zu,\"dst\":%lu,\"src\":%lu,\"stream\":%u", bytes,
			 dst, src, stream_id);
}

#define PTR(p) ((uint64_t)(p))
SIM_API2(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
	 copy(&api, dst, src, bytes, 4, NULL, false))
SIM_API2(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t bytes),
	 copy(&api, dst, PTR(src), bytes, 1, NULL, false))
SIM_API2(cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t bytes),
	 copy(&api, PTR(dst), src, bytes, 2, NULL, false))
SIM_API2(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
	 copy(&api, dst, src, bytes, 3, NULL, false))
SIM_API2(cuMemcpyPeer, _ptds,
	 (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes),
	 copy(&api, dst, src, bytes, 3, NULL, false))
SIM_API2(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	 copy(&api, dst, src, bytes, 4, stream, true))
SIM_API2(cuMemcpyHtoDAsync_v2, _ptsz,
	 (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
	 copy(&api, dst, PTR(src), bytes, 1, stream, true))
SIM_API2(cuMemcpyDtoHAsync_v2, _ptsz, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream),
	 copy(&api, PTR(dst), src, bytes, 2, stream, true))
SIM_API2(cuMemcpyDtoDAsync_v2, _ptsz,
	 (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
	 copy(&api, dst, src, bytes, 3, stream, true))
SIM_API2(cuMemcpyPeerAsync, _ptsz,
	 (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes,
	  CUstream stream),
	 copy(&api, dst, src, bytes, 3, stream, true))

static int set(const struct sim_api *api, uint64_t dst, unsigned value, unsigned element_bytes,
	       size_t count, CUstream stream, bool async)
{
	struct sim_work w;
	uint32_t stream_id = 0;
	struct sim_call call;
	int err = sim_begin(&call, api);

	if (!err && !sim_context__current())
		err = SIM_INVALID_CONTEXT;
	if (!err && count) {
		err = sim_set__prepare(&w, dst, value, element_bytes, count);
		if (!err) /* of the device's memory: returns before it is done */
			err = run(api, stream, &w, true, &stream_id);
	}
	return sim_leave(&call, err, "\"bytes\":%zu,\"dst\":%lu,\"value\":%u,\"stream\":%u",
			 count * element_bytes, dst, value, stream_id);
}
SIM_API2(cuMemsetD8_v2, _ptds, (CUdeviceptr dst, unsigned char value, size_t count),
	 set(&api, dst, value, 1, count, NULL, false))
SIM_API2(cuMemsetD32_v2, _ptds, (CUdeviceptr dst, unsigned int value, size_t count),
	 set(&api, dst, value, 4, count, NULL, false))
SIM_API2(cuMemsetD8Async, _ptsz,
	 (CUdeviceptr dst, unsigned char value, size_t count, CUstream stream),
	 set(&api, dst, value, 1, count, stream, true))
SIM_API2(cuMemsetD32Async, _ptsz,
	 (CUdeviceptr dst, unsigned int value, size_t count, CUstream stream),
	 set(&api, dst, value, 4, count, stream, true))
