// SPDX-License-Identifier: BSD-2-Clause
/*
 * The wrapped calls. While no session records, each only tests a flag and jumps to the driver's
 * function. Results, events and the order of calls are those of the driver.
 */
#include "gpu/base/util.h"
#include "gpu/opencl/opencl.h"

#define UNWRAP(...) __VA_ARGS__

/* Wraps a call that makes no work on a device: only its times are recorded. */
#define CALL(name, PARAMETERS, ARGUMENTS)                \
	static int32_t wrap_##name PARAMETERS            \
	{                                                \
		struct ocl_call call;                    \
		int32_t result;                          \
                                                         \
		if (!ocl_recording())                    \
			return OCL_NEXT(name) ARGUMENTS; \
		ocl_call__begin(&call, #name);           \
		result = OCL_NEXT(name) ARGUMENTS;       \
		ocl_call__end(&call, result, NULL);      \
		return result;                           \
	}

/*
 * Wraps a call that queues a command, with the usual parameters: (queue, …, number of events to
 * wait for, these events, event).
 */
#define ENQUEUE(name, PARAMETERS, ARGUMENTS, DOES)                                              \
	static int32_t wrap_##name(ocl_queue queue, UNWRAP PARAMETERS, uint32_t nr_waits,       \
				   const ocl_event *waits, ocl_event *event)                    \
	{                                                                                       \
		struct ocl_call call;                                                           \
		int32_t result;                                                                 \
		int cancel;                                                                     \
                                                                                                \
		if (!ocl_recording())                                                           \
			return OCL_NEXT(name)(queue, UNWRAP ARGUMENTS, nr_waits, waits, event); \
		cancel = gpu_cancel_off();                                                      \
		ocl_call__enqueue(&call, #name, queue);                                         \
		DOES;                                                                           \
		gpu_cancel_back(cancel);                                                        \
		result = OCL_NEXT(name)(queue, UNWRAP ARGUMENTS, nr_waits, waits,               \
					ocl_call__event(&call, event));                         \
		ocl_call__end(&call, result, event);                                            \
		return result;                                                                  \
	}

/* ---- bytes ---- */

static uint64_t box(const size_t *region)
{
	return region ? (uint64_t)region[0] * region[1] * region[2] : 0;
}

/* Bytes of a region of an image, which is given in elements of the image. */
static uint64_t image_box(ocl_mem image, const size_t *region)
{
	size_t element_bytes = 0;

	ocl_info(OCL_clGetImageInfo, image, OCL_IMAGE_ELEMENT_SIZE, sizeof(element_bytes),
		 &element_bytes);
	return box(region) * element_bytes;
}

static uint64_t sizes_of(uint32_t nr, const ocl_mem *objects)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; objects && i < nr; i++) {
		size_t bytes = 0;

		ocl_info(OCL_clGetMemObjectInfo, objects[i], OCL_MEM_SIZE, sizeof(bytes), &bytes);
		sum += bytes;
	}
	return sum;
}

static uint64_t sum_of(uint32_t nr, const size_t *sizes)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; sizes && i < nr; i++)
		sum += sizes[i];
	return sum;
}

/* ---- kernels ---- */

ENQUEUE(clEnqueueNDRangeKernel,
	(ocl_kernel kernel, uint32_t dimensions, const size_t *offset, const size_t *global,
	 const size_t *local),
	(kernel, dimensions, offset, global, local),
	ocl_call__kernel(&call, kernel, dimensions, global, local))
ENQUEUE(clEnqueueTask, (ocl_kernel kernel), (kernel),
	ocl_call__kernel(&call, kernel, 1, (const size_t[]){1}, (const size_t[]){1}))
ENQUEUE(clEnqueueNativeKernel,
	(void (*function)(void *), void *arguments, size_t bytes, uint32_t nr,
	 const ocl_mem *objects, const void **places),
	(function, arguments, bytes, nr, objects, places), ocl_call__native(&call))

/* ---- buffers ---- */

ENQUEUE(clEnqueueReadBuffer,
	(ocl_mem buffer, uint32_t blocking, size_t offset, size_t bytes, void *to),
	(buffer, blocking, offset, bytes, to), ocl_call__copy(&call, KPROF_AGENT_COPY_DTOH, bytes))
ENQUEUE(clEnqueueWriteBuffer,
	(ocl_mem buffer, uint32_t blocking, size_t offset, size_t bytes, const void *from),
	(buffer, blocking, offset, bytes, from),
	ocl_call__copy(&call, KPROF_AGENT_COPY_HTOD, bytes))
ENQUEUE(clEnqueueCopyBuffer,
	(ocl_mem from, ocl_mem to, size_t from_offset, size_t to_offset, size_t bytes),
	(from, to, from_offset, to_offset, bytes),
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOD, bytes))
ENQUEUE(clEnqueueReadBufferRect,
	(ocl_mem buffer, uint32_t blocking, const size_t *origin, const size_t *host_origin,
	 const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
	 void *to),
	(buffer, blocking, origin, host_origin, region, row, slice, host_row, host_slice, to),
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOH, box(region)))
ENQUEUE(clEnqueueWriteBufferRect,
	(ocl_mem buffer, uint32_t blocking, const size_t *origin, const size_t *host_origin,
	 const size_t *region, size_t row, size_t slice, size_t host_row, size_t host_slice,
	 const void *from),
	(buffer, blocking, origin, host_origin, region, row, slice, host_row, host_slice, from),
	ocl_call__copy(&call, KPROF_AGENT_COPY_HTOD, box(region)))
ENQUEUE(clEnqueueCopyBufferRect,
	(ocl_mem from, ocl_mem to, const size_t *from_origin, const size_t *to_origin,
	 const size_t *region, size_t from_row, size_t from_slice, size_t to_row, size_t to_slice),
	(from, to, from_origin, to_origin, region, from_row, from_slice, to_row, to_slice),
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOD, box(region)))
ENQUEUE(clEnqueueFillBuffer,
	(ocl_mem buffer, const void *pattern, size_t pattern_bytes, size_t offset, size_t bytes),
	(buffer, pattern, pattern_bytes, offset, bytes), ocl_call__set(&call, bytes))
ENQUEUE(clEnqueueUnmapMemObject, (ocl_mem object, void *mapped), (object, mapped),
	ocl_call__copy(&call, KPROF_AGENT_COPY_HTOD, 0))
ENQUEUE(clEnqueueMigrateMemObjects, (uint32_t nr, const ocl_mem *objects, uint64_t flags),
	(nr, objects, flags),
	ocl_call__copy(&call,
		       flags &OCL_MIGRATE_MEM_OBJECT_HOST ? KPROF_AGENT_COPY_DTOH
							  : KPROF_AGENT_COPY_HTOD,
		       sizes_of(nr, objects)))

/* ---- images ---- */

ENQUEUE(clEnqueueReadImage,
	(ocl_mem image, uint32_t blocking, const size_t *origin, const size_t *region, size_t row,
	 size_t slice, void *to),
	(image, blocking, origin, region, row, slice, to),
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOH, image_box(image, region)))
ENQUEUE(clEnqueueWriteImage,
	(ocl_mem image, uint32_t blocking, const size_t *origin, const size_t *region, size_t row,
	 size_t slice, const void *from),
	(image, blocking, origin, region, row, slice, from),
	ocl_call__copy(&call, KPROF_AGENT_COPY_HTOD, image_box(image, region)))
ENQUEUE(clEnqueueCopyImage,
	(ocl_mem from, ocl_mem to, const size_t *from_origin, const size_t *to_origin,
	 const size_t *region),
	(from, to, from_origin, to_origin, region),
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOD, image_box(from, region)))
ENQUEUE(clEnqueueCopyImageToBuffer,
	(ocl_mem from, ocl_mem to, const size_t *origin, const size_t *region, size_t offset),
	(from, to, origin, region, offset),
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOD, image_box(from, region)))
ENQUEUE(clEnqueueCopyBufferToImage,
	(ocl_mem from, ocl_mem to, size_t offset, const size_t *origin, const size_t *region),
	(from, to, offset, origin, region),
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOD, image_box(to, region)))
ENQUEUE(clEnqueueFillImage,
	(ocl_mem image, const void *color, const size_t *origin, const size_t *region),
	(image, color, origin, region), ocl_call__set(&call, image_box(image, region)))

/* ---- shared virtual memory ---- */

ENQUEUE(clEnqueueSVMMemcpy, (uint32_t blocking, void *to, const void *from, size_t bytes),
	(blocking, to, from, bytes), ocl_call__copy(&call, KPROF_AGENT_COPY_UNKNOWN, bytes))
ENQUEUE(clEnqueueSVMMemFill,
	(void *memory, const void *pattern, size_t pattern_bytes, size_t bytes),
	(memory, pattern, pattern_bytes, bytes), ocl_call__set(&call, bytes))
ENQUEUE(clEnqueueSVMMap, (uint32_t blocking, uint64_t flags, void *memory, size_t bytes),
	(blocking, flags, memory, bytes), ocl_call__copy(&call, KPROF_AGENT_COPY_DTOH, bytes))
ENQUEUE(clEnqueueSVMUnmap, (void *memory), (memory),
	ocl_call__copy(&call, KPROF_AGENT_COPY_HTOD, 0))
ENQUEUE(clEnqueueSVMMigrateMem,
	(uint32_t nr, const void **memory, const size_t *sizes, uint64_t flags),
	(nr, memory, sizes, flags),
	ocl_call__copy(&call,
		       flags &OCL_MIGRATE_MEM_OBJECT_HOST ? KPROF_AGENT_COPY_DTOH
							  : KPROF_AGENT_COPY_HTOD,
		       sum_of(nr, sizes)))

/* ---- calls that return memory, and the error through a pointer ---- */

static void *wrap_clEnqueueMapBuffer(ocl_queue queue, ocl_mem buffer, uint32_t blocking,
				     uint64_t flags, size_t offset, size_t bytes, uint32_t nr_waits,
				     const ocl_event *waits, ocl_event *event, int32_t *result)
{
	struct ocl_call call;
	int32_t r = OCL_SUCCESS;
	void *mapped;

	if (!ocl_recording())
		return OCL_NEXT(clEnqueueMapBuffer)(queue, buffer, blocking, flags, offset, bytes,
						    nr_waits, waits, event, result);
	ocl_call__enqueue(&call, "clEnqueueMapBuffer", queue);
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOH,
		       flags & OCL_MAP_WRITE_INVALIDATE_REGION ? 0 : bytes);
	mapped = OCL_NEXT(clEnqueueMapBuffer)(queue, buffer, blocking, flags, offset, bytes,
					      nr_waits, waits, ocl_call__event(&call, event), &r);
	ocl_call__end(&call, r, event);
	if (result)
		*result = r;
	return mapped;
}

static void *wrap_clEnqueueMapImage(ocl_queue queue, ocl_mem image, uint32_t blocking,
				    uint64_t flags, const size_t *origin, const size_t *region,
				    size_t *row, size_t *slice, uint32_t nr_waits,
				    const ocl_event *waits, ocl_event *event, int32_t *result)
{
	struct ocl_call call;
	int32_t r = OCL_SUCCESS;
	void *mapped;

	if (!ocl_recording())
		return OCL_NEXT(clEnqueueMapImage)(queue, image, blocking, flags, origin, region,
						   row, slice, nr_waits, waits, event, result);
	ocl_call__enqueue(&call, "clEnqueueMapImage", queue);
	ocl_call__copy(&call, KPROF_AGENT_COPY_DTOH,
		       flags & OCL_MAP_WRITE_INVALIDATE_REGION ? 0 : image_box(image, region));
	mapped = OCL_NEXT(clEnqueueMapImage)(queue, image, blocking, flags, origin, region, row,
					     slice, nr_waits, waits, ocl_call__event(&call, event),
					     &r);
	ocl_call__end(&call, r, event);
	if (result)
		*result = r;
	return mapped;
}

/* ---- calls that make no work on a device ---- */

CALL(clFlush, (ocl_queue queue), (queue))
CALL(clFinish, (ocl_queue queue), (queue))
CALL(clWaitForEvents, (uint32_t nr, const ocl_event *events), (nr, events))
CALL(clEnqueueMarker, (ocl_queue queue, ocl_event *event), (queue, event))
CALL(clEnqueueBarrier, (ocl_queue queue), (queue))
CALL(clEnqueueWaitForEvents, (ocl_queue queue, uint32_t nr, const ocl_event *events),
     (queue, nr, events))
CALL(clEnqueueMarkerWithWaitList,
     (ocl_queue queue, uint32_t nr, const ocl_event *waits, ocl_event *event),
     (queue, nr, waits, event))
CALL(clEnqueueBarrierWithWaitList,
     (ocl_queue queue, uint32_t nr, const ocl_event *waits, ocl_event *event),
     (queue, nr, waits, event))
CALL(clEnqueueSVMFree,
     (ocl_queue queue, uint32_t nr, void **memory,
      void (*free_fn)(ocl_queue, uint32_t, void **, void *), void *data, uint32_t nr_waits,
      const ocl_event *waits, ocl_event *event),
     (queue, nr, memory, free_fn, data, nr_waits, waits, event))

#define WRAPPER(name)                                 \
	{                                             \
		OCL_##name, (ocl_function)wrap_##name \
	}
const struct ocl_wrapper ocl_call_wrappers[] = {
	WRAPPER(clEnqueueNDRangeKernel),
	WRAPPER(clEnqueueTask),
	WRAPPER(clEnqueueNativeKernel),
	WRAPPER(clEnqueueReadBuffer),
	WRAPPER(clEnqueueWriteBuffer),
	WRAPPER(clEnqueueCopyBuffer),
	WRAPPER(clEnqueueReadBufferRect),
	WRAPPER(clEnqueueWriteBufferRect),
	WRAPPER(clEnqueueCopyBufferRect),
	WRAPPER(clEnqueueFillBuffer),
	WRAPPER(clEnqueueMapBuffer),
	WRAPPER(clEnqueueMapImage),
	WRAPPER(clEnqueueUnmapMemObject),
	WRAPPER(clEnqueueMigrateMemObjects),
	WRAPPER(clEnqueueReadImage),
	WRAPPER(clEnqueueWriteImage),
	WRAPPER(clEnqueueCopyImage),
	WRAPPER(clEnqueueCopyImageToBuffer),
	WRAPPER(clEnqueueCopyBufferToImage),
	WRAPPER(clEnqueueFillImage),
	WRAPPER(clEnqueueSVMMemcpy),
	WRAPPER(clEnqueueSVMMemFill),
	WRAPPER(clEnqueueSVMMap),
	WRAPPER(clEnqueueSVMUnmap),
	WRAPPER(clEnqueueSVMMigrateMem),
	WRAPPER(clEnqueueSVMFree),
	WRAPPER(clFlush),
	WRAPPER(clFinish),
	WRAPPER(clWaitForEvents),
	WRAPPER(clEnqueueMarker),
	WRAPPER(clEnqueueBarrier),
	WRAPPER(clEnqueueWaitForEvents),
	WRAPPER(clEnqueueMarkerWithWaitList),
	WRAPPER(clEnqueueBarrierWithWaitList),
	{0, NULL},
};
