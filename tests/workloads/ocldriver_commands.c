// SPDX-License-Identifier: BSD-2-Clause
/* What ocldriver does with a queue. */
#include <sys/syscall.h>
#include <unistd.h>

#include "ocldriver.h"

static const char source[] = "kernel void add(global uint *a, global const uint *b, uint n) {\n"
			     "	uint v = a[get_global_id(0)];\n"
			     "	for (uint i = 0; i < n; i++)\n"
			     "		v = v * 1664525u + b[get_global_id(0)] + i;\n"
			     "	a[get_global_id(0)] = v;\n"
			     "}\n"
			     "kernel void scale(global uint *a) {\n"
			     "	a[get_global_id(0)] *= 3;\n"
			     "}\n";

static cl_device_id device;

void ocl_open(void)
{
	cl_platform_id platform;

	CHECK_CL(clGetPlatformIDs(1, &platform, NULL));
	CHECK_CL(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL));
}

/* What a program is told of its queue: as it asked, whatever a profiler does. */
static void ask_queue(cl_command_queue queue)
{
	cl_command_queue_properties properties = 0;
	cl_queue_properties list[8] = {0};
	size_t bytes = 0;

	CHECK_CL(clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties,
				       NULL));
	answer("queue properties", (int64_t)properties);
	answer("queue list",
	       clGetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES_ARRAY, sizeof(list), list, &bytes));
	answer("queue list bytes", (int64_t)bytes);
	for (size_t i = 0; i < bytes / sizeof(list[0]); i++)
		answer("queue list member", (int64_t)list[i]);
}

static uint32_t sides, destroyed;

static void CL_CALLBACK context_destroyed(cl_context context, void *data)
{
	__atomic_add_fetch(&destroyed, 1, __ATOMIC_RELEASE);
}

int64_t contexts_left(void)
{
	/* A driver's threads let go of things when they come to it. */
	for (int i = 0; i < 6000 && __atomic_load_n(&destroyed, __ATOMIC_ACQUIRE) < sides; i++)
		usleep(10000);
	return sides - __atomic_load_n(&destroyed, __ATOMIC_ACQUIRE);
}

void side__open(struct side *s, cl_command_queue_properties properties)
{
	cl_queue_properties list[] = {CL_QUEUE_PROPERTIES, properties, 0};
	cl_image_format format = {CL_RGBA, CL_UNSIGNED_INT32};
	cl_image_desc image = {
		.image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 16, .image_height = 16};
	const char *text = source;
	cl_int err;

	memset(s, 0, sizeof(*s));
	s->context_number = s->queue_number = ++sides;
	if (!options.no_profiling)
		list[1] |= CL_QUEUE_PROFILING_ENABLE;
	s->context = clCreateContext(NULL, 1, &device, NULL, NULL, &err);
	CHECK_CL(err);
	CHECK_CL(clSetContextDestructorCallback(s->context, context_destroyed, NULL));
	s->queue = sides % 2 ? clCreateCommandQueueWithProperties(s->context, device, list, &err)
			     : clCreateCommandQueue(s->context, device, list[1], &err);
	CHECK_CL(err);
	ask_queue(s->queue);
	s->program = clCreateProgramWithSource(s->context, 1, &text, NULL, &err);
	CHECK_CL(err);
	CHECK_CL(clBuildProgram(s->program, 1, &device, "", NULL, NULL));
	s->add = clCreateKernel(s->program, "add", &err);
	CHECK_CL(err);
	s->scale = clCreateKernel(s->program, "scale", &err);
	CHECK_CL(err);
	s->a = clCreateBuffer(s->context, CL_MEM_READ_WRITE, BYTES, NULL, &err);
	CHECK_CL(err);
	s->b = clCreateBuffer(s->context, CL_MEM_READ_WRITE, BYTES, NULL, &err);
	CHECK_CL(err);
	s->image = clCreateImage(s->context, CL_MEM_READ_WRITE, &format, &image, NULL, &err);
	CHECK_CL(err);
	for (uint32_t i = 0; i < ITEMS; i++)
		s->host[i] = i * 7;
	CHECK_CL(clSetKernelArg(s->add, 0, sizeof(s->a), &s->a));
	CHECK_CL(clSetKernelArg(s->add, 1, sizeof(s->b), &s->b));
	CHECK_CL(clSetKernelArg(s->scale, 0, sizeof(s->a), &s->a));
}

void side__close(struct side *s)
{
	if (s->queue)
		CHECK_CL(clReleaseCommandQueue(s->queue));
	CHECK_CL(clReleaseKernel(s->add));
	CHECK_CL(clReleaseKernel(s->scale));
	CHECK_CL(clReleaseProgram(s->program));
	CHECK_CL(clReleaseMemObject(s->a));
	CHECK_CL(clReleaseMemObject(s->b));
	CHECK_CL(clReleaseMemObject(s->image));
	CHECK_CL(clReleaseContext(s->context));
}

uint64_t side__peek(const struct side *s)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < ITEMS; i++)
		sum = sum * 31 + s->host[i];
	return sum % 1000000007;
}

uint64_t side__sum(struct side *s)
{
	CHECK_CL(clFinish(s->queue));
	return side__peek(s);
}

/* ---- one command, with times around it ---- */

static struct done begin(const struct side *s, const char *call, const char *kind, const char *name,
			 uint64_t bytes)
{
	struct done d = {.call = call,
			 .kind = kind,
			 .name = name,
			 .queue = s->queue_number,
			 .context = s->context_number,
			 .tid = (uint32_t)syscall(SYS_gettid),
			 .bytes = bytes};

	d.before = clock_ns(CLOCK_MONOTONIC);
	return d;
}

static void end(struct side *s, struct done *d)
{
	d->after = clock_ns(CLOCK_MONOTONIC);
	s->last = d->event;
	did(d);
}

/*
 * DO(side, kind, name, bytes, call, arguments…): …, with an event; in unordered queues after
 * *waits.
 */
#define DO(s, kind, name, bytes, function, ...)                          \
	do {                                                             \
		struct done d_ = begin(s, #function, kind, name, bytes); \
		CHECK_CL(function(__VA_ARGS__, &d_.event));              \
		end(s, &d_);                                             \
	} while (0)

static void launch(struct side *s, cl_kernel kernel, const char *name, bool sized, cl_uint nr,
		   const cl_event *waits)
{
	size_t global[2] = {ITEMS, 1}, local[2] = {GROUP, 1};
	struct done d = begin(s, "clEnqueueNDRangeKernel", "kernel", name, 0);

	d.grid[0] = sized ? ITEMS / GROUP : ITEMS;
	d.block[0] = sized ? GROUP : 0;
	d.grid[1] = d.grid[2] = 1;
	d.block[1] = d.block[2] = sized;
	CHECK_CL(clEnqueueNDRangeKernel(s->queue, kernel, 2, NULL, global, sized ? local : NULL, nr,
					waits, &d.event));
	end(s, &d);
}

void side__step(struct side *s, uint64_t i)
{
	cl_uint zero = 0, rounds = (cl_uint)(i % 7) * 10;

	CHECK_CL(clSetKernelArg(s->add, 2, sizeof(rounds), &rounds));
	DO(s, "copy", "HtoD", BYTES, clEnqueueWriteBuffer, s->queue, s->a, CL_FALSE, 0, BYTES,
	   s->host, 0, NULL);
	DO(s, "set", "", BYTES / 2, clEnqueueFillBuffer, s->queue, s->b, &zero, sizeof(zero), 0,
	   BYTES / 2, 0, NULL);
	DO(s, "copy", "DtoD", BYTES / 2, clEnqueueCopyBuffer, s->queue, s->a, s->b, 0, BYTES / 2,
	   BYTES / 2, 0, NULL);
	launch(s, s->add, "add", true, 0, NULL);
	/* Without an event of the program's own, too: nothing says what it took. */
	CHECK_CL(clEnqueueNDRangeKernel(s->queue, s->scale, 1, NULL, (size_t[]){ITEMS}, NULL, 0,
					NULL, NULL));
	__atomic_add_fetch(&silent, 1, __ATOMIC_RELAXED);
	DO(s, "copy", "DtoH", BYTES, clEnqueueReadBuffer, s->queue, s->a, CL_FALSE, 0, BYTES,
	   s->host, 0, NULL);
	/* host[] is written again by the next step. */
	if (i % 4 == 3)
		CHECK_CL(clWaitForEvents(1, &s->last));
}

void side__graph(struct side *s)
{
	cl_uint rounds = 50;
	cl_event gate, waits[2];
	cl_int err;

	gate = clCreateUserEvent(s->context, &err);
	CHECK_CL(err);
	CHECK_CL(clSetKernelArg(s->add, 2, sizeof(rounds), &rounds));
	DO(s, "copy", "HtoD", BYTES, clEnqueueWriteBuffer, s->queue, s->a, CL_FALSE, 0, BYTES,
	   s->host, 1, &gate);
	waits[0] = s->last;
	DO(s, "copy", "HtoD", BYTES, clEnqueueWriteBuffer, s->queue, s->b, CL_FALSE, 0, BYTES,
	   s->host, 0, NULL);
	waits[1] = s->last;
	launch(s, s->add, "add", true, 2, waits);
	waits[0] = s->last;
	launch(s, s->scale, "scale", false, 2, waits);
	waits[0] = s->last;
	DO(s, "copy", "DtoH", BYTES, clEnqueueReadBuffer, s->queue, s->a, CL_FALSE, 0, BYTES,
	   s->host, 1, waits);
	CHECK_CL(clSetUserEventStatus(gate, CL_COMPLETE));
	CHECK_CL(clWaitForEvents(1, &s->last));
	CHECK_CL(clReleaseEvent(gate));
}

static void rectangles(struct side *s)
{
	size_t at[3] = {0, 0, 0}, region[3] = {64, 4, 2};

	DO(s, "copy", "HtoD", 512, clEnqueueWriteBufferRect, s->queue, s->a, CL_TRUE, at, at,
	   region, 64, 256, 64, 256, s->host, 0, NULL);
	DO(s, "copy", "DtoD", 512, clEnqueueCopyBufferRect, s->queue, s->a, s->b, at, at, region,
	   64, 256, 64, 256, 0, NULL);
	DO(s, "copy", "DtoH", 512, clEnqueueReadBufferRect, s->queue, s->b, CL_TRUE, at, at, region,
	   64, 256, 64, 256, s->host, 0, NULL);
}

static void images(struct side *s)
{
	size_t at[3] = {0, 0, 0}, to[3] = {8, 8, 0}, region[3] = {8, 8, 1};
	cl_uint color[4] = {1, 2, 3, 4};

	DO(s, "set", "", 1024, clEnqueueFillImage, s->queue, s->image, color, at, region, 0, NULL);
	DO(s, "copy", "HtoD", 1024, clEnqueueWriteImage, s->queue, s->image, CL_TRUE, at, region, 0,
	   0, s->host, 0, NULL);
	DO(s, "copy", "DtoD", 1024, clEnqueueCopyImage, s->queue, s->image, s->image, at, to,
	   region, 0, NULL);
	DO(s, "copy", "DtoD", 1024, clEnqueueCopyImageToBuffer, s->queue, s->image, s->b, at,
	   region, 0, 0, NULL);
	DO(s, "copy", "DtoD", 1024, clEnqueueCopyBufferToImage, s->queue, s->b, s->image, 0, at,
	   region, 0, NULL);
	DO(s, "copy", "DtoH", 1024, clEnqueueReadImage, s->queue, s->image, CL_TRUE, at, region, 0,
	   0, s->host, 0, NULL);
}

static void mapping(struct side *s)
{
	size_t at[3] = {0, 0, 0}, region[3] = {8, 8, 1}, row, slice;
	struct done d = begin(s, "clEnqueueMapBuffer", "copy", "DtoH", BYTES);
	cl_int err;
	cl_uint *p = clEnqueueMapBuffer(s->queue, s->a, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
					BYTES, 0, NULL, &d.event, &err);

	CHECK_CL(err);
	end(s, &d);
	p[0] = 77;
	DO(s, "copy", "HtoD", 0, clEnqueueUnmapMemObject, s->queue, s->a, p, 0, NULL);
	d = begin(s, "clEnqueueMapImage", "copy", "DtoH", 1024);
	p = clEnqueueMapImage(s->queue, s->image, CL_TRUE, CL_MAP_READ, at, region, &row, &slice, 0,
			      NULL, &d.event, &err);
	CHECK_CL(err);
	end(s, &d);
	DO(s, "copy", "HtoD", 0, clEnqueueUnmapMemObject, s->queue, s->image, p, 0, NULL);
}

static void shared_memory(struct side *s)
{
	cl_uint *p = clSVMAlloc(s->context, CL_MEM_READ_WRITE, 1024, 0), pattern = 5;

	if (!p)
		return;
	DO(s, "set", "", 1024, clEnqueueSVMMemFill, s->queue, p, &pattern, sizeof(pattern), 1024, 0,
	   NULL);
	DO(s, "copy", "DtoH", 1024, clEnqueueSVMMap, s->queue, CL_TRUE, CL_MAP_READ, p, 1024, 0,
	   NULL);
	answer("svm", p[3]);
	DO(s, "copy", "HtoD", 0, clEnqueueSVMUnmap, s->queue, p, 0, NULL);
	DO(s, "copy", "", 1024, clEnqueueSVMMemcpy, s->queue, CL_TRUE, s->host, p, 1024, 0, NULL);
	CHECK_CL(clFinish(s->queue));
	clSVMFree(s->context, p);
}

void side__every(struct side *s)
{
	struct done d;

	side__step(s, 3);
	CHECK_CL(clFinish(s->queue));
	rectangles(s);
	images(s);
	mapping(s);
	shared_memory(s);
	DO(s, "copy", "HtoD", 2 * BYTES, clEnqueueMigrateMemObjects, s->queue, 2,
	   ((cl_mem[]){s->a, s->b}), 0, 0, NULL);
	CHECK_CL(clFinish(s->queue));
	d = begin(s, "clEnqueueTask", "kernel", "scale", 0);
	for (int i = 0; i < 3; i++)
		d.grid[i] = d.block[i] = 1;
	CHECK_CL(clEnqueueTask(s->queue, s->scale, 0, NULL, &d.event));
	end(s, &d);
	CHECK_CL(clEnqueueMarkerWithWaitList(s->queue, 0, NULL, NULL));
	CHECK_CL(clEnqueueBarrierWithWaitList(s->queue, 0, NULL, NULL));
}

static void tell(bool first, const char *what, int64_t value)
{
	if (first)
		answer(what, value);
}

/* Each is refused, and nothing runs. */
void side__errors(struct side *s, bool first)
{
	size_t items = ITEMS;
	cl_event event = (cl_event)0x1234;
	cl_int err = 0;

	tell(first, "no dimensions",
	     clEnqueueNDRangeKernel(s->queue, s->add, 0, NULL, &items, NULL, 0, NULL, NULL));
	tell(first, "no dimensions, event",
	     clEnqueueNDRangeKernel(s->queue, s->add, 0, NULL, &items, NULL, 0, NULL, &event));
	tell(first, "event untouched", event == (cl_event)0x1234);
	tell(first, "bad group",
	     clEnqueueNDRangeKernel(s->queue, s->add, 1, NULL, &items, (size_t[]){100000}, 0, NULL,
				    NULL));
	tell(first, "no queue",
	     clEnqueueNDRangeKernel(NULL, s->add, 1, NULL, &items, NULL, 0, NULL, NULL));
	tell(first, "beyond the buffer",
	     clEnqueueReadBuffer(s->queue, s->a, CL_TRUE, BYTES, BYTES, s->host, 0, NULL, NULL));
	tell(first, "no memory",
	     clEnqueueWriteBuffer(s->queue, NULL, CL_TRUE, 0, BYTES, s->host, 0, NULL, NULL));
	tell(first, "waits for nothing",
	     clEnqueueReadBuffer(s->queue, s->a, CL_TRUE, 0, BYTES, s->host, 3, NULL, NULL));
	tell(first, "mapped nothing",
	     clEnqueueMapBuffer(s->queue, s->a, CL_TRUE, CL_MAP_READ, BYTES, BYTES, 0, NULL, NULL,
				&err) == NULL);
	tell(first, "mapping", err);
	tell(first, "no events", clWaitForEvents(0, NULL));
	tell(first, "finish nothing", clFinish(NULL));
	tell(first, "bad queue",
	     clCreateCommandQueue(s->context, device, 1ull << 40, &err) == NULL);
	tell(first, "bad queue error", err);
}
