// SPDX-License-Identifier: BSD-2-Clause
/*
 * One job per command, from its call to its completion. While a session records, a command gets an
 * event (the one that the program wants, or one of the layer's own) with a callback, which reads
 * the times and releases the layer's reference.
 *
 * Jobs come from a pool of fixed size: a program that queues more than that without one completing
 * is not recorded further, and that is counted.
 */
#include <sys/mman.h>

#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"
#include "gpu/opencl/opencl.h"

/* 128 MiB of addresses; memory is used only for as many as were ever in use at once */
#define MAX_JOBS (1u << 19)
#define NAME_BYTES 1024
/* Correlation ids start here, to differ from CUDA's 32-bit ones in the same process. */
#define CORRELATION_BASE (1ull << 32)

static struct ocl_job *jobs;
/* jobs used so far, from the begin of the pool; the others were never touched */
static uint32_t jobs_used;
/* index + 1 of the first free job, and in bits 32 and up a count of changes */
static uint64_t free_jobs;
static uint32_t pending;
static uint64_t correlations;

static void count_dropped(void)
{
	struct kprof_agent_shm *shm = gpu_shm();

	if (shm) /* NULL in a forked child */
		__atomic_add_fetch(&shm->agent_dropped, 1, __ATOMIC_RELAXED);
}

static struct ocl_job *make_pool(void)
{
	struct ocl_job *pool = __atomic_load_n(&jobs, __ATOMIC_ACQUIRE), *expected = NULL;

	if (pool)
		return pool;
	pool = mmap(NULL, MAX_JOBS * sizeof(*pool), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (pool == MAP_FAILED)
		return NULL;
	if (__atomic_compare_exchange_n(&jobs, &expected, pool, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return pool;
	munmap(pool, MAX_JOBS * sizeof(*pool));
	return expected;
}

static struct ocl_job *take(void)
{
	struct ocl_job *pool = make_pool(), *job;
	uint64_t head = __atomic_load_n(&free_jobs, __ATOMIC_ACQUIRE), after;
	uint32_t index;

	if (!pool)
		return NULL;
	while ((uint32_t)head) {
		job = &pool[(uint32_t)head - 1];
		after = ((head >> 32) + 1) << 32 | __atomic_load_n(&job->next, __ATOMIC_RELAXED);
		if (__atomic_compare_exchange_n(&free_jobs, &head, after, true, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			goto taken;
	}
	index = __atomic_load_n(&jobs_used, __ATOMIC_RELAXED);
	do {
		if (index >= MAX_JOBS)
			return NULL;
	} while (!__atomic_compare_exchange_n(&jobs_used, &index, index + 1, true, __ATOMIC_RELAXED,
					      __ATOMIC_RELAXED));
	job = &pool[index];
taken:
	__atomic_add_fetch(&pending, 1, __ATOMIC_RELAXED);
	return job;
}

static void give_back(struct ocl_job *job)
{
	uint32_t index = (uint32_t)(job - jobs) + 1;
	uint64_t head = __atomic_load_n(&free_jobs, __ATOMIC_RELAXED), after;

	do {
		__atomic_store_n(&job->next, (uint32_t)head, __ATOMIC_RELAXED);
		after = ((head >> 32) + 1) << 32 | index;
	} while (!__atomic_compare_exchange_n(&free_jobs, &head, after, true, __ATOMIC_ACQ_REL,
					      __ATOMIC_RELAXED));
	__atomic_sub_fetch(&pending, 1, __ATOMIC_RELEASE);
}

uint32_t ocl_jobs__pending(void)
{
	return __atomic_load_n(&pending, __ATOMIC_ACQUIRE);
}

/* ---- the call ---- */

void ocl_call__begin(struct ocl_call *c, const char *function)
{
	c->function = function;
	c->queue = NULL;
	c->job = NULL;
	c->event = NULL;
	c->correlation = CORRELATION_BASE + __atomic_add_fetch(&correlations, 1, __ATOMIC_RELAXED);
	c->begin_ns = gpu_now_ns();
}

void ocl_call__enqueue(struct ocl_call *c, const char *function, ocl_queue queue)
{
	ocl_call__begin(c, function);
	c->queue = ocl_queue_object(queue);
}

/* Gets a job for the call. false: this type is not recorded, or the pool is full. */
static bool want(struct ocl_call *c, enum kprof_activity type)
{
	struct ocl_job *job;

	if (!c->queue || !(ocl_recording() & 1ull << type))
		return false;
	job = take();
	if (!job) {
		count_dropped();
		return false;
	}
	ocl_queue_object__tell(c->queue);
	job->session = __atomic_load_n(&ocl_session, __ATOMIC_RELAXED);
	job->device = c->queue->device;
	job->profiled = c->queue->profiled;
	job->moment = (struct ocl_moment){.begin_ns = c->begin_ns};
	if (!ocl_clock__known(&job->device->clock))
		ocl_host_times__read(&job->moment.before);
	c->job = job;
	return true;
}

static void set_common(struct ocl_call *c, enum kprof_activity type)
{
	struct kprof_agent_activity *a = &c->job->a;

	a->correlation = c->correlation;
	a->device = c->queue->device->o.number;
	a->context = c->queue->context->number;
	a->stream = c->queue->o.number;
	a->type = (uint16_t)type;
	a->runtime = KPROF_AGENT_OPENCL;
}

void ocl_call__kernel(struct ocl_call *c, ocl_kernel kernel, uint32_t dimensions,
		      const size_t *global, const size_t *local)
{
	char name[NAME_BYTES] = "";
	struct kprof_agent_kernel *k;

	if (!want(c, KPROF_ACTIVITY_KERNEL))
		return;
	ocl_info(OCL_clGetKernelInfo, kernel, OCL_KERNEL_FUNCTION_NAME, sizeof(name) - 1, name);
	k = &c->job->kernel;
	*k = BATCH_ACTIVITY(struct kprof_agent_kernel, KPROF_AGENT_KERNEL, batch__name_of(name));
	set_common(c, KPROF_ACTIVITY_KERNEL);
	for (uint32_t i = 0; i < 3; i++) {
		bool there = i < dimensions && global;
		size_t items = there ? global[i] : 1, group = there && local ? local[i] : 0;

		/*
		 * If the program gives no size, the driver chooses one that cannot be queried: 0.
		 */
		k->block[i] = !local ? 0 : there ? (uint32_t)group : 1;
		k->grid[i] = (uint32_t)(group ? items / group + (items % group != 0) : items);
	}
}

void ocl_call__native(struct ocl_call *c)
{
	if (!want(c, KPROF_ACTIVITY_KERNEL))
		return;
	c->job->kernel = BATCH_ACTIVITY(struct kprof_agent_kernel, KPROF_AGENT_KERNEL,
					batch__name_of("native kernel"));
	set_common(c, KPROF_ACTIVITY_KERNEL);
}

void ocl_call__copy(struct ocl_call *c, enum kprof_agent_copy_kind kind, uint64_t bytes)
{
	static const struct {
		uint8_t from, to;
	} memory[] = {
		[KPROF_AGENT_COPY_HTOD] = {KPROF_AGENT_MEMORY_PAGEABLE, KPROF_AGENT_MEMORY_DEVICE},
		[KPROF_AGENT_COPY_DTOH] = {KPROF_AGENT_MEMORY_DEVICE, KPROF_AGENT_MEMORY_PAGEABLE},
		[KPROF_AGENT_COPY_DTOD] = {KPROF_AGENT_MEMORY_DEVICE, KPROF_AGENT_MEMORY_DEVICE},
	};
	struct kprof_agent_copy *r;

	if (!want(c, KPROF_ACTIVITY_GPU_MEMCPY))
		return;
	r = &c->job->copy;
	*r = BATCH_ACTIVITY(struct kprof_agent_copy, KPROF_AGENT_COPY, 0);
	set_common(c, KPROF_ACTIVITY_GPU_MEMCPY);
	r->a.bytes = bytes;
	r->kind = (uint8_t)kind;
	if (kind < sizeof(memory) / sizeof(memory[0])) {
		r->from = memory[kind].from;
		r->to = memory[kind].to;
	}
}

void ocl_call__set(struct ocl_call *c, uint64_t bytes)
{
	struct kprof_agent_copy *r;

	if (!want(c, KPROF_ACTIVITY_GPU_MEMSET))
		return;
	r = &c->job->copy;
	*r = BATCH_ACTIVITY(struct kprof_agent_copy, KPROF_AGENT_COPY, 0);
	set_common(c, KPROF_ACTIVITY_GPU_MEMSET);
	r->a.bytes = bytes;
	r->to = KPROF_AGENT_MEMORY_DEVICE;
}

ocl_event *ocl_call__event(struct ocl_call *c, ocl_event *wanted)
{
	return c->job ? &c->event : wanted;
}

static void tell_call(const struct ocl_call *c, uint64_t end_ns, int32_t result)
{
	struct kprof_agent_api r =
		BATCH_RECORD(struct kprof_agent_api, KPROF_AGENT_API, batch__name_of(c->function));

	r.start_ns = c->begin_ns;
	r.end_ns = end_ns;
	r.correlation = c->correlation;
	/* not kept in the thread: a forked child would have its parent's */
	r.tid = gpu_tid();
	r.type = KPROF_ACTIVITY_OPENCL_RUNTIME;
	r.result = result;
	batch__append(&r);
}

/* ---- the completion ---- */

static uint64_t time_of(ocl_event event, uint32_t what)
{
	uint64_t ns = 0;

	ocl_info(OCL_clGetEventProfilingInfo, event, what, sizeof(ns), &ns);
	return ns;
}

static void finish(struct ocl_job *job, ocl_event event)
{
	const struct ocl_clock *clock = &job->device->clock;
	uint64_t start = time_of(event, OCL_PROFILING_COMMAND_START);
	uint64_t end = time_of(event, OCL_PROFILING_COMMAND_END);

	job->moment.queued = time_of(event, OCL_PROFILING_COMMAND_QUEUED);
	if (job->moment.queued)
		ocl_clock__learn(&job->device->clock, &job->moment);
	job->a.start_ns = ocl_clock__to_mono(clock, start);
	job->a.end_ns = ocl_clock__to_mono(clock, end);
	if (job->moment.queued)
		job->a.queued_ns = ocl_clock__to_mono(clock, job->moment.queued);
	if (!start || end < start)
		count_dropped();
	else
		batch__append(job);
}

/* Times of a command whose queue gives none: from its call to the callback. */
static void finish_roughly(struct ocl_job *job)
{
	job->a.start_ns = job->moment.begin_ns;
	job->a.queued_ns = job->moment.begin_ns;
	job->a.end_ns = gpu_now_ns();
	job->a.type = KPROF_ACTIVITY_GPU_APPROXIMATE;
	batch__append(&job->a);
}

static void completed(ocl_event event, int32_t status, void *data)
{
	struct ocl_job *job = data;
	int cancel = gpu_cancel_off();

	/*
	 * A command that failed has no times, and one that ends after its session is not recorded.
	 */
	if (status == OCL_COMPLETE &&
	    job->session == __atomic_load_n(&ocl_session, __ATOMIC_RELAXED)) {
		if (job->profiled)
			finish(job, event);
		else
			finish_roughly(job);
	}
	((ocl_event_fn *)ocl_next[OCL_clReleaseEvent])(event);
	give_back(job);
	gpu_cancel_back(cancel);
}

/* The job gets the command's event, and waits for its completion. */
static void follow(struct ocl_call *c, int32_t result, ocl_event *wanted, uint64_t end_ns)
{
	ocl_set_event_callback_fn *set =
		(ocl_set_event_callback_fn *)ocl_next[OCL_clSetEventCallback];
	struct ocl_job *job = c->job;

	if (result != OCL_SUCCESS || !c->event) {
		if (wanted && c->event)
			*wanted = c->event;
		give_back(job);
		return;
	}
	job->moment.end_ns = end_ns;
	if (job->moment.before.ns[0])
		ocl_host_times__read(&job->moment.after);
	/* The layer holds a reference until the command has completed. */
	if (wanted) {
		((ocl_event_fn *)ocl_next[OCL_clRetainEvent])(c->event);
		*wanted = c->event;
	}
	if (set(c->event, OCL_COMPLETE, completed, job) != OCL_SUCCESS) {
		((ocl_event_fn *)ocl_next[OCL_clReleaseEvent])(c->event);
		count_dropped();
		give_back(job);
	}
}

void ocl_call__end(struct ocl_call *c, int32_t result, ocl_event *wanted)
{
	uint64_t end_ns = gpu_now_ns();
	int cancel = gpu_cancel_off();

	tell_call(c, end_ns,
		  /* recorded whatever the types are, since it joins activities to their call */
		  result);
	if (c->job)
		follow(c, result, wanted, end_ns);
	gpu_cancel_back(cancel);
}
