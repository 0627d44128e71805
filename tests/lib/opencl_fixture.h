/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of the OpenCL layer begin with: a queue, a session, a kernel, and what was told of
 * it. Include it once.
 */
#ifndef KPROF_TESTS_OPENCL_FIXTURE_H
#define KPROF_TESTS_OPENCL_FIXTURE_H

#include "fake_opencl.h"
#include "unit.h"

static const ocl_function *cl;
static ocl_context context;

#define AS(name, wrapped) ((__typeof__(&wrapped))cl[OCL_##name])

static inline ocl_queue new_queue(uint64_t properties)
{
	int32_t err = -1;

	context = AS(clCreateContext, wrap_clCreateContext)(NULL, 0, NULL, NULL, NULL, &err);
	return AS(clCreateCommandQueue, wrap_clCreateCommandQueue)(context, NULL, properties, &err);
}

static inline void open_session(uint64_t types)
{
	struct gpu_report r = {0};

	fake_session();
	CHECK_EQ(gpu_opencl.probe(&r), 0);
	CHECK_EQ(gpu_opencl.start(types, 0, &r), 0);
}

static inline int32_t launch(ocl_queue queue, const char *name, ocl_event *event)
{
	size_t global[2] = {100, 6}, local[2] = {32, 2};

	return AS(clEnqueueNDRangeKernel, wrap_clEnqueueNDRangeKernel)(
		queue, (ocl_kernel)(uintptr_t)name, 2, NULL, global, local, 0, NULL, event);
}

static inline const struct kprof_agent_activity *activity(uint32_t i)
{
	const union fake_record *r = fake_at(KPROF_AGENT_KERNEL, i);

	return r ? &r->activity : NULL;
}

#endif
