// SPDX-License-Identifier: BSD-2-Clause
/* The OpenCL layer on a driver of which every answer is known. */
#include <sys/wait.h>
#include <unistd.h>

#include "opencl_fixture.h"

static ocl_queue queue_in_session(void)
{
	ocl_queue queue;

	cl = fake_opencl(CLOCK_MONOTONIC, false);
	queue = new_queue(0);
	open_session(~0ull);
	return queue;
}

static int32_t read_buffer(ocl_queue queue, ocl_event *event)
{
	return AS(clEnqueueReadBuffer, wrap_clEnqueueReadBuffer)(queue, NULL, 1, 0, 4096, NULL, 0,
								 NULL, event);
}

/* ---- the layer ---- */

static void says_what_it_is(void)
{
	uint32_t version = 0;
	char name[16] = "";
	size_t bytes = 0;

	CHECK_EQ(clGetLayerInfo(OCL_LAYER_API_VERSION, sizeof(version), &version, &bytes), 0);
	CHECK_EQ(version, 100);
	CHECK_EQ(bytes, 4);
	CHECK_EQ(clGetLayerInfo(OCL_LAYER_NAME, sizeof(name), name, NULL), 0);
	CHECK_STR(name, "kprof");
	CHECK_EQ(clGetLayerInfo(OCL_LAYER_NAME, 3, name, NULL), OCL_INVALID_VALUE);
	CHECK_EQ(clGetLayerInfo(1, sizeof(name), name, NULL), OCL_INVALID_VALUE);
}

static void older_drivers_have_fewer_functions(void)
{
	const ocl_function *table = NULL;
	uint32_t nr = 0;

	fake_opencl(CLOCK_MONOTONIC, false);
	ocl_loaded = false;
	memset(ocl_next, 0, sizeof(ocl_next));
	memset(layer, 0, sizeof(layer));
	CHECK_EQ(clInitLayer(OCL_clFinish + 1, fake_table, &nr, &table), OCL_SUCCESS);
	CHECK(table[OCL_clFinish] == (ocl_function)wrap_clFinish);
	CHECK(table[OCL_clEnqueueFillBuffer] == NULL);
	/* Not there in the driver, though its table is long enough. */
	CHECK(table[OCL_clFlush] == NULL);
}

static void without_memory_there_is_no_layer(void)
{
	const ocl_function *table = NULL;
	uint32_t nr = 0;

	fake_opencl(CLOCK_MONOTONIC, false);
	ocl_loaded = false;
	fake_start_error = -12;
	CHECK_EQ(clInitLayer(OCL_ENTRIES, fake_table, &nr, &table), OCL_OUT_OF_HOST_MEMORY);
	fake_start_error = 0;
	CHECK_EQ(clInitLayer(OCL_ENTRIES, NULL, &nr, &table), OCL_INVALID_VALUE);
}

/* The second one, between the first and the program, hands everything on. */
static void named_twice(void)
{
	const ocl_function *first = fake_opencl(CLOCK_MONOTONIC, false), *second = NULL;
	uint32_t nr = 0;
	ocl_queue queue;

	CHECK_EQ(clInitLayer(OCL_ENTRIES, first, &nr, &second), OCL_SUCCESS);
	cl = second;
	queue = new_queue(0);
	open_session(~0ull);
	CHECK_EQ(launch(queue, "once", NULL), 0);
	CHECK_EQ(fake.enqueued, 1);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 1);
	gpu_opencl.stop();
}

/* ---- while nothing records ---- */

static void passes_through(void)
{
	ocl_event event = NULL;
	ocl_queue queue;

	cl = fake_opencl(CLOCK_MONOTONIC, false);
	fake_session();
	queue = new_queue(0);
	CHECK_EQ(launch(queue, "k", &event), 0);
	CHECK(fake.last_wanted == &event);
	fake_release(event);
	CHECK_EQ(launch(queue, "k", NULL), 0);
	CHECK(fake.last_wanted == NULL);
	CHECK_EQ(fake.events_alive, 0);
	CHECK_EQ(fake_nr, 0);
}

static void queues_look_as_asked(void)
{
	uint64_t properties = 99, list[8] = {0},
		 asked[] = {0x1094, 512, OCL_QUEUE_PROPERTIES, 1, 0};
	ocl_event event = NULL;
	ocl_queue queue;
	size_t bytes = 0;
	int32_t err = 0;

	cl = fake_opencl(CLOCK_MONOTONIC, false);
	queue = new_queue(1);
	CHECK_EQ(fake.queues[0].properties, 1 | OCL_QUEUE_PROFILING_ENABLE);
	AS(clGetCommandQueueInfo, wrap_clGetCommandQueueInfo)
	(queue, OCL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL);
	CHECK_EQ(properties, 1);
	/* Its events have no times for the program, though they have for us. */
	CHECK_EQ(launch(queue, "k", &event), 0);
	CHECK_EQ(AS(clGetEventProfilingInfo, wrap_clGetEventProfilingInfo)(
			 event, OCL_PROFILING_COMMAND_END, 8, &properties, NULL),
		 OCL_PROFILING_INFO_NOT_AVAILABLE);
	fake_release(event);
	/* A program that asks by itself has them. */
	queue = new_queue(OCL_QUEUE_PROFILING_ENABLE);
	CHECK_EQ(launch(queue, "k", &event), 0);
	CHECK_EQ(AS(clGetEventProfilingInfo, wrap_clGetEventProfilingInfo)(
			 event, OCL_PROFILING_COMMAND_END, 8, &properties, NULL),
		 0);
	fake_release(event);
	/* By list: the driver got one with profiling, the program sees its own. */
	queue = AS(clCreateCommandQueueWithProperties,
		   wrap_clCreateCommandQueueWithProperties)(context, NULL, asked, &err);
	CHECK_EQ(fake.queues[2].properties, 3);
	CHECK_EQ(AS(clGetCommandQueueInfo, wrap_clGetCommandQueueInfo)(
			 queue, OCL_QUEUE_PROPERTIES_ARRAY, sizeof(list), list, &bytes),
		 0);
	CHECK_EQ(bytes, sizeof(asked));
	CHECK(!memcmp(list, asked, sizeof(asked)));
	CHECK_EQ(AS(clGetCommandQueueInfo,
		    wrap_clGetCommandQueueInfo)(queue, OCL_QUEUE_PROPERTIES_ARRAY, 8, list, &bytes),
		 OCL_INVALID_VALUE);
	/* Without a list: the driver's has a pair more than there is room for. */
	queue = AS(clCreateCommandQueueWithProperties,
		   wrap_clCreateCommandQueueWithProperties)(context, NULL, NULL, &err);
	CHECK_EQ(fake.queues[3].properties, OCL_QUEUE_PROFILING_ENABLE);
	CHECK_EQ(AS(clGetCommandQueueInfo,
		    wrap_clGetCommandQueueInfo)(queue, OCL_QUEUE_PROPERTIES_ARRAY, 0, list, &bytes),
		 0);
	CHECK_EQ(bytes, 0);
}

static void queues_of_the_device_are_left_alone(void)
{
	uint64_t asked[] = {OCL_QUEUE_PROPERTIES, 1 | OCL_QUEUE_ON_DEVICE, 0};
	int32_t err = 0;

	cl = fake_opencl(CLOCK_MONOTONIC, false);
	AS(clCreateCommandQueueWithProperties, wrap_clCreateCommandQueueWithProperties)
	(context, NULL, asked, &err);
	CHECK_EQ(fake.queues[0].properties, 1 | OCL_QUEUE_ON_DEVICE);
}

static void profiling_stays_when_switched_off(void)
{
	uint64_t old = 0, properties = 0;
	ocl_queue queue;

	cl = fake_opencl(CLOCK_MONOTONIC, false);
	queue = new_queue(OCL_QUEUE_PROFILING_ENABLE);
	CHECK_EQ(AS(clSetCommandQueueProperty,
		    wrap_clSetCommandQueueProperty)(queue, OCL_QUEUE_PROFILING_ENABLE, 0, &old),
		 0);
	CHECK_EQ(old, OCL_QUEUE_PROFILING_ENABLE);
	CHECK_EQ(fake.queues[0].properties, OCL_QUEUE_PROFILING_ENABLE);
	AS(clGetCommandQueueInfo, wrap_clGetCommandQueueInfo)
	(queue, OCL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL);
	CHECK_EQ(properties, 0);
}

/* ---- recording ---- */

static void a_kernel_and_its_call(void)
{
	const union fake_record *api, *kernel, *device;
	uint64_t before, after;
	ocl_queue queue;

	queue = queue_in_session();
	before = gpu_now_ns();
	CHECK_EQ(launch(queue, "saxpy", NULL), 0);
	after = gpu_now_ns();
	api = fake_at(KPROF_AGENT_API, 0);
	kernel = fake_at(KPROF_AGENT_KERNEL, 0);
	CHECK(api && kernel);
	if (!api || !kernel)
		return;
	CHECK_STR(fake_name(api), "clEnqueueNDRangeKernel");
	CHECK_EQ(api->api.type, KPROF_ACTIVITY_OPENCL_RUNTIME);
	CHECK(api->api.start_ns >= before && api->api.end_ns <= after);
	CHECK_EQ(api->api.result, 0);
	CHECK_STR(fake_name(kernel), "saxpy");
	CHECK_EQ(kernel->activity.type, KPROF_ACTIVITY_KERNEL);
	CHECK_EQ(kernel->activity.runtime, KPROF_AGENT_OPENCL);
	CHECK_EQ(kernel->activity.correlation, api->api.correlation);
	CHECK_EQ(kernel->activity.stream, 1);
	CHECK_EQ(kernel->activity.context, 1);
	CHECK_EQ(kernel->activity.device, 0);
	CHECK_EQ(kernel->activity.end_ns - kernel->activity.start_ns, 5000);
	CHECK(kernel->activity.queued_ns >= before && kernel->activity.queued_ns <= after);
	CHECK_EQ(kernel->kernel.grid[0], 4); /* 100 in groups of 32 */
	CHECK_EQ(kernel->kernel.grid[1], 3);
	CHECK_EQ(kernel->kernel.grid[2], 1);
	CHECK_EQ(kernel->kernel.block[0], 32);
	CHECK_EQ(kernel->kernel.block[1], 2);
	CHECK_EQ(kernel->kernel.block[2], 1);
	device = fake_at(KPROF_AGENT_DEVICE, 0);
	CHECK(device && !strcmp(fake_name(device), "fake device"));
	CHECK(device && device->device.multiprocessors == 8 && device->device.memory_bytes == 1024);
	CHECK_EQ(launch(queue, "saxpy", NULL), 0);
	CHECK_EQ(fake_count(KPROF_AGENT_DEVICE), 1);
	CHECK_EQ(fake_count(KPROF_AGENT_CONTEXT), 1);
	gpu_opencl.stop();
	/* Another session is told anew. */
	open_session(~0ull);
	CHECK_EQ(launch(queue, "saxpy", NULL), 0);
	CHECK_EQ(fake_count(KPROF_AGENT_DEVICE), 1);
	gpu_opencl.stop();
}

static void events_are_given_back(void)
{
	ocl_event event = NULL;
	ocl_queue queue;

	queue = queue_in_session();
	fake.held = true;
	CHECK_EQ(launch(queue, "a", &event), 0);
	CHECK_EQ(launch(queue, "b", NULL), 0);
	CHECK_EQ(fake.events_alive, 2);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 0);
	CHECK_EQ(ocl_jobs__pending(), 2);
	fake_complete(OCL_COMPLETE);
	CHECK_EQ(fake.events_alive, 1);
	CHECK_EQ(((struct fake_event *)event)->refs, 1); /* the program's */
	fake_release(event);
	CHECK_EQ(fake.events_alive, 0);
	CHECK_EQ(ocl_jobs__pending(), 0);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 2);
	gpu_opencl.stop();
}

static void refused_calls(void)
{
	ocl_event event = (ocl_event)(uintptr_t)0x1234;
	const union fake_record *api;
	int32_t err = 0;
	ocl_queue queue;

	queue = queue_in_session();
	fake.fails = -53;
	CHECK_EQ(launch(queue, "k", &event), -53);
	CHECK(event == (ocl_event)(uintptr_t)0x1234);
	fake.fails = -38;
	CHECK(!AS(clEnqueueMapBuffer, wrap_clEnqueueMapBuffer)(queue, NULL, 1, 0, 0, 64, 0, NULL,
							       NULL, &err));
	CHECK_EQ(err, -38);
	fake.fails = -36;
	CHECK_EQ(AS(clFinish, wrap_clFinish)(queue), -36);
	api = fake_at(KPROF_AGENT_API, 0);
	CHECK(api && api->api.result == -53);
	CHECK_EQ(fake_count(KPROF_AGENT_API), 3);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL) + fake_count(KPROF_AGENT_COPY), 0);
	CHECK_EQ(ocl_jobs__pending(), 0);
	CHECK_EQ(fake.events_alive, 0);
	gpu_opencl.stop();
}

static void commands_that_fail(void)
{
	ocl_queue queue;

	queue = queue_in_session();
	fake.held = true;
	CHECK_EQ(launch(queue, "k", NULL), 0);
	fake_complete(-14);
	CHECK_EQ(fake.events_alive, 0);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 0);
	CHECK_EQ(fake_count(KPROF_AGENT_API), 1);
	gpu_opencl.stop();
}

static void drivers_without_callbacks(void)
{
	ocl_event event = NULL;
	ocl_queue queue;

	queue = queue_in_session();
	fake.no_callbacks = true;
	CHECK_EQ(launch(queue, "k", &event), 0);
	fake_release(event);
	CHECK_EQ(fake.events_alive, 0);
	CHECK_EQ(fake_shm.agent_dropped, 1);
	CHECK_EQ(ocl_jobs__pending(), 0);
	gpu_opencl.stop();
}

static void drivers_without_times(void)
{
	const struct kprof_agent_activity *a;
	ocl_queue queue;

	cl = fake_opencl(CLOCK_MONOTONIC, false);
	fake.no_profiling = true;
	queue = new_queue(0);
	CHECK(queue != NULL);
	open_session(~0ull);
	CHECK_EQ(launch(queue, "k", NULL), 0);
	a = activity(0);
	CHECK(a && a->type == KPROF_ACTIVITY_GPU_APPROXIMATE);
	CHECK(a && a->start_ns && a->end_ns >= a->start_ns);
	gpu_opencl.stop();
}

static void only_what_is_asked_for(void)
{
	ocl_queue queue;

	cl = fake_opencl(CLOCK_MONOTONIC, false);
	queue = new_queue(0);
	open_session(1ull << KPROF_ACTIVITY_GPU_MEMCPY);
	CHECK_EQ(launch(queue, "k", NULL), 0);
	CHECK(fake.last_wanted == NULL); /* not even an event */
	CHECK_EQ(read_buffer(queue, NULL), 0);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 0);
	CHECK_EQ(fake_count(KPROF_AGENT_COPY), 1);
	CHECK_EQ(fake_count(KPROF_AGENT_API), 2);
	CHECK(fake_at(KPROF_AGENT_COPY, 0)->copy.kind == KPROF_AGENT_COPY_DTOH);
	CHECK_EQ(fake_at(KPROF_AGENT_COPY, 0)->copy.a.bytes, 4096);
	gpu_opencl.stop();
}

/* A session waits a moment for what is running, and no longer; then it belongs to no session. */
static void completes_when_the_session_is_over(void)
{
	ocl_queue queue;

	queue = queue_in_session();
	fake.held = true;
	CHECK_EQ(launch(queue, "k", NULL), 0);
	gpu_opencl.stop();
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 0);
	open_session(~0ull);
	fake_complete(OCL_COMPLETE);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 0);
	CHECK_EQ(fake.events_alive, 0);
	CHECK_EQ(ocl_jobs__pending(), 0);
	gpu_opencl.stop();
}

static void handles_that_come_again(void)
{
	ocl_queue queue;

	queue = queue_in_session();
	CHECK_EQ(launch(queue, "k", NULL), 0);
	fake.nr_queues = 0; /* the driver's memory is used again */
	CHECK(new_queue(0) == queue);
	CHECK_EQ(launch(queue, "k", NULL), 0);
	CHECK(activity(0)->stream == 1 && activity(1)->stream == 2);
	CHECK(activity(0)->context == 1 && activity(1)->context == 2);
	CHECK_EQ(fake_count(KPROF_AGENT_CONTEXT), 2);
	CHECK_EQ(fake_count(KPROF_AGENT_DEVICE), 1);
	gpu_opencl.stop();
}

/* Where no handler of fork() has run: made by a bare system call. */
static void a_child_has_its_own_thread_id(void)
{
	const union fake_record *api;
	ocl_queue queue = queue_in_session();
	int status;
	pid_t child;

	CHECK_EQ(launch(queue, "of the parent", NULL), 0);
	api = fake_at(KPROF_AGENT_API, 0);
	CHECK(api && api->api.tid == (uint32_t)getpid());
	child = fork();
	if (!child) {
		launch(queue, "of the child", NULL);
		api = fake_at(KPROF_AGENT_API, 1);
		_exit(!api || api->api.tid != (uint32_t)getpid());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void a_forked_child_records_nothing(void)
{
	ocl_queue queue;

	queue = queue_in_session();
	gpu_opencl.forked();
	CHECK_EQ(launch(queue, "k", NULL), 0);
	CHECK_EQ(fake_nr, 0);
}

static void jobs_are_used_again(void)
{
	ocl_queue queue;
	uint32_t used;

	queue = queue_in_session();
	CHECK_EQ(launch(queue, "k", NULL), 0);
	used = jobs_used;
	for (int i = 0; i < 1000; i++)
		CHECK_EQ(launch(queue, "k", NULL), 0);
	CHECK_EQ(jobs_used, used);
	/* There is an end to them. */
	jobs_used = MAX_JOBS;
	fake.held = true;
	for (uint32_t i = 0; i < used + 5; i++)
		CHECK_EQ(launch(queue, "k", NULL), 0);
	CHECK_EQ(fake_shm.agent_dropped, 5);
	fake_complete(OCL_COMPLETE);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), 1001 + used);
	gpu_opencl.stop();
}

/* ---- many threads ---- */

enum { THREADS = 4, LAUNCHES = 5000 };

static struct fake_event finished; /* as which every command completes, at once */

static int32_t launch_finished(ocl_queue queue, ocl_kernel kernel, uint32_t dimensions,
			       const size_t *offset, const size_t *global, const size_t *local,
			       uint32_t nr, const ocl_event *waits, ocl_event *event)
{
	if (event)
		*event = (ocl_event)&finished;
	return OCL_SUCCESS;
}

static int32_t nothing(ocl_event event)
{
	return OCL_SUCCESS;
}

static void *launch_many(void *data)
{
	for (int i = 0; i < LAUNCHES; i++)
		launch(data, "k", NULL);
	return NULL;
}

static void threads_share_jobs_and_queues(void)
{
	pthread_t thread[THREADS];
	ocl_queue queue[2];
	ocl_function before[OCL_ENTRIES];

	memcpy(before, fake_table, sizeof(before));
	fake_table[OCL_clEnqueueNDRangeKernel] = (ocl_function)launch_finished;
	fake_table[OCL_clRetainEvent] = fake_table[OCL_clReleaseEvent] = (ocl_function)nothing;
	cl = fake_opencl(CLOCK_MONOTONIC, false);
	queue[0] = new_queue(0);
	queue[1] = new_queue(0);
	finished = (struct fake_event){
		.queue = (struct fake_queue *)queue[0], .times = {1, 1, 2, 3}, .complete = true};
	jobs_used = 0;
	free_jobs = 0;
	open_session(~0ull);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, launch_many, queue[i % 2]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	CHECK_EQ(fake_count(KPROF_AGENT_KERNEL), THREADS * LAUNCHES);
	CHECK_EQ(fake_count(KPROF_AGENT_API), THREADS * LAUNCHES);
	CHECK_EQ(fake_count(KPROF_AGENT_DEVICE), 1);
	CHECK(jobs_used <= THREADS);
	CHECK_EQ(ocl_jobs__pending(), 0);
	gpu_opencl.stop();
	memcpy(fake_table, before, sizeof(before));
}

UNIT_MAIN(TEST(says_what_it_is), TEST(older_drivers_have_fewer_functions),
	  TEST(without_memory_there_is_no_layer), TEST(named_twice), TEST(passes_through),
	  TEST(queues_look_as_asked), TEST(queues_of_the_device_are_left_alone),
	  TEST(profiling_stays_when_switched_off), TEST(a_kernel_and_its_call),
	  TEST(events_are_given_back), TEST(refused_calls), TEST(commands_that_fail),
	  TEST(drivers_without_callbacks), TEST(drivers_without_times),
	  TEST(only_what_is_asked_for), TEST(completes_when_the_session_is_over),
	  TEST(handles_that_come_again), TEST(a_child_has_its_own_thread_id),
	  TEST(a_forked_child_records_nothing), TEST(jobs_are_used_again),
	  TEST(threads_share_jobs_and_queues))
