// SPDX-License-Identifier: BSD-2-Clause
/*
 * The CUDA module on a CUPTI of the test's own, which notes what it is asked for: callbacks in
 * threads that have been cancelled, what is enabled, and what is left out.
 */
#include <errno.h>
#include <pthread.h>

#include "gpu/base/batch.h"
#include "gpu/base/host.h"
#include "gpu/base/util.h"
#include "gpu/cupti/cupti.h"
#include "gpu_fixture.h"

/* ---- the agent's surroundings ---- */

static struct kprof_agent_shm *shm;

/*
 * The agent asks for its memory wherever it does something, also while it holds a lock: a thread
 * that can be cancelled ends here.
 */
struct kprof_agent_shm *gpu_shm(void)
{
	pthread_testcancel();
	return shm;
}

bool gpu_in_injection(void)
{
	return false;
}

uint64_t gpu_cpu_begin(void)
{
	return 0;
}

void gpu_cpu_end(uint64_t begin_ns)
{
	(void)begin_ns;
}

void cuda__look(struct cuda_process *p)
{
	memset(p, 0, sizeof(*p));
}

int cuda__initialized(const struct cuda_process *p, struct gpu_report *r)
{
	return 0;
}

unsigned int cuda__devices(const struct cuda_process *p)
{
	return 1;
}

void cuda__device(const struct cuda_process *p, const struct cupti_device *d)
{
}

bool cuda__primary(const struct cuda_process *p, struct cuda_primary *out)
{
	return false;
}

/* ---- CUPTI ---- */

static struct {
	cupti_requested_fn requested;
	cupti_completed_fn completed;
	cupti_callback_fn called;
	unsigned int finalized, unsubscribed;
	uint64_t kinds;       /* bits 1 << enum cupti_kind that are enabled */
	bool left_out[2][16]; /* of the driver's functions, and of the runtime's */
	int event_times;      /* as it was set last; -1: it was not */
} cupti;

static void run_cancelled(void (*door)(void));

static void end_of_a_call(void)
{
	const struct cupti_callback_data data = {.site = CUPTI_API_EXIT_SITE};

	cupti.called(NULL, CUPTI_RUNTIME_API, 1, &data);
}

static int subscribe(void **subscriber, cupti_callback_fn fn, void *ctx)
{
	*subscriber = &cupti;
	cupti.called = fn;
	return CUPTI_OK;
}

static int unsubscribe(void *subscriber)
{
	pthread_testcancel();
	cupti.unsubscribed++;
	return CUPTI_OK;
}

/* When the agent asks for the ends of calls, a thread of the program comes to one. */
static int enable_domain(uint32_t enable, void *subscriber, int domain)
{
	if (enable && domain == CUPTI_RUNTIME_API)
		run_cancelled(end_of_a_call);
	return CUPTI_OK;
}

static int callback_name(int domain, uint32_t cbid, const char **name)
{
	static const char *const runtime[] = {NULL, "cudaLaunchKernel_v7000", "cudaGetDevice_v3020",
					      "cudaMalloc_v3020"};
	static const char *const driver[] = {NULL, "cuCtxGetCurrent", "cuLaunchKernel"};

	*name = NULL;
	if (domain == CUPTI_RUNTIME_API && cbid < 4)
		*name = runtime[cbid];
	if (domain == CUPTI_DRIVER_API && cbid < 3)
		*name = driver[cbid];
	return *name ? CUPTI_OK : 1;
}

static int timestamp(uint64_t *time)
{
	*time = gpu_now_ns();
	return CUPTI_OK;
}

/* To enable a kind is to have all of its functions. */
static int enable(int kind)
{
	if (kind == CUPTI_KIND_RUNTIME || kind == CUPTI_KIND_DRIVER)
		memset(cupti.left_out[kind == CUPTI_KIND_RUNTIME], 0, 16);
	cupti.kinds |= UINT64_C(1) << kind;
	return CUPTI_OK;
}

static int disable(int kind)
{
	cupti.kinds &= ~(UINT64_C(1) << kind);
	return CUPTI_OK;
}

static int enable_runtime_call(uint32_t cbid, uint8_t on)
{
	cupti.left_out[1][cbid] = !on;
	return CUPTI_OK;
}

static int enable_driver_call(uint32_t cbid, uint8_t on)
{
	cupti.left_out[0][cbid] = !on;
	return CUPTI_OK;
}

static int event_times(uint8_t on)
{
	cupti.event_times = on;
	return CUPTI_OK;
}

static int set_thread_id_type(int type)
{
	return CUPTI_OK;
}

static int register_callbacks(cupti_requested_fn requested, cupti_completed_fn completed)
{
	cupti.requested = requested;
	cupti.completed = completed;
	return CUPTI_OK;
}

static int flush_all(uint32_t flags)
{
	return CUPTI_OK;
}

static int next_record(uint8_t *buffer, size_t bytes, void **record)
{
	return CUPTI_MAX_LIMIT_REACHED;
}

static int dropped(void *context, uint32_t stream, size_t *nr)
{
	return CUPTI_OK;
}

static int finalize(void)
{
	pthread_testcancel();
	cupti.finalized++;
	return CUPTI_OK;
}

int cupti__load(const struct cuda_process *p, struct cupti_functions *f, uint32_t *version,
		struct gpu_report *r)
{
	*version = CUPTI_VERSION_NO_BUFFER;
	*f = (struct cupti_functions){
		.subscribe = subscribe,
		.unsubscribe = unsubscribe,
		.enable_domain = enable_domain,
		.callback_name = callback_name,
		.timestamp = timestamp,
		.enable = enable,
		.disable = disable,
		.register_callbacks = register_callbacks,
		.flush_all = flush_all,
		.next_record = next_record,
		.dropped = dropped,
		.set_thread_id_type = set_thread_id_type,
		.finalize = finalize,
		.event_times = event_times,
		.enable_runtime_call = enable_runtime_call,
		.enable_driver_call = enable_driver_call,
	};
	return 0;
}

static void start(uint64_t types, uint32_t options)
{
	struct gpu_report r = {0};

	if (!shm) {
		CHECK_EQ(shm__make(&shm), 0);
		CHECK_EQ(batch__init(shm), 0);
	}
	seen_clear();
	batch__open(1);
	memset(&cupti, 0, sizeof(cupti));
	cupti.event_times = -1;
	CHECK_EQ(gpu_cuda.probe(&r), 0);
	CHECK_EQ(gpu_cuda.start(types, options, &r), 0);
}

static void stop(void)
{
	gpu_cuda.stop();
	batch__close();
	gpu_cuda.release();
}

/* ---- tests ---- */

#define KERNELS (UINT64_C(1) << KPROF_ACTIVITY_KERNEL)

static bool came_through;

static void *cancelled(void *arg)
{
	void (**door)(void) = arg;

	pthread_cancel(pthread_self()); /* acts at the next call that is a cancellation point */
	(*door)();
	came_through = true;
	pthread_testcancel();
	return NULL;
}

static void run_cancelled(void (*door)(void))
{
	pthread_t thread;
	void *result;

	came_through = false;
	CHECK_EQ(pthread_create(&thread, NULL, cancelled, &door), 0);
	pthread_join(thread, &result);
	CHECK(came_through);
	if (!came_through)
		exit(1); /* the thread took a lock with it: all else would hang */
	/* It ended where the program expects it. */
	CHECK(result == PTHREAD_CANCELED);
}

static uint8_t *buffer;
static size_t buffer_bytes;

static void ask_for_a_buffer(void)
{
	size_t records = 1;

	errno = 4711;
	cupti.requested(&buffer, &buffer_bytes, &records);
	CHECK_EQ(errno, 4711);
	CHECK_EQ(records, 0);
}

static void give_it_back(void)
{
	errno = 4711;
	cupti.completed(NULL, 0, buffer, buffer_bytes, 8);
	CHECK_EQ(errno, 4711);
}

/* CUPTI's callbacks run in threads of the program, which may have been cancelled before. */
static void cancelled_threads_come_through(void)
{
	start(KERNELS, 0);
	run_cancelled(ask_for_a_buffer);
	CHECK(buffer && buffer_bytes == CUPTI_BUFFER_BYTES);
	CHECK_EQ(buffers__in_use(), 1);
	run_cancelled(give_it_back);
	CHECK_EQ(buffers__in_use(), 0);
	setenv("TEARDOWN_CUPTI", "1", 1);
	stop(); /* in this a thread comes to the end of a call, at which CUPTI is finalized */
	unsetenv("TEARDOWN_CUPTI");
	CHECK_EQ(cupti.finalized, 1);
	CHECK_EQ(cupti.unsubscribed, 2);
}

/* Functions of no interest are left out, all others are not. */
static void calls_are_left_out(void)
{
	start(KERNELS, 0);
	CHECK(cupti.kinds >> CUPTI_KIND_RUNTIME & cupti.kinds >> CUPTI_KIND_DRIVER & 1);
	for (uint32_t cbid = 0; cbid < 16; cbid++) {
		CHECK_EQ(cupti.left_out[1][cbid], cbid == 2);
		CHECK_EQ(cupti.left_out[0][cbid], cbid == 1);
	}
	stop();
	CHECK_EQ(cupti.kinds, 0);
}

/* Times of events cost something: they are asked for only if events are, and not for ever. */
static void times_of_events(void)
{
	start(KERNELS, KPROF_AGENT_OPT_SYNC);
	CHECK(cupti.kinds >> CUPTI_KIND_CUDA_EVENT & 1);
	stop();
	CHECK_EQ(cupti.event_times, -1);
	start(KERNELS | UINT64_C(1) << KPROF_ACTIVITY_CUDA_EVENT, 0);
	CHECK(cupti.kinds >> CUPTI_KIND_CUDA_EVENT & 1);
	CHECK_EQ(cupti.event_times, 1);
	stop();
	CHECK_EQ(cupti.event_times, 0);
}

/* Memory is recorded only if it is asked for, and beside work of the devices. */
static void memory_if_asked_for(void)
{
	start(~UINT64_C(0), KPROF_AGENT_OPT_SYNC);
	CHECK(!(cupti.kinds >> CUPTI_KIND_MEMORY2 & 1));
	stop();
	start(KERNELS, KPROF_AGENT_OPT_MEMORY);
	CHECK(cupti.kinds >> CUPTI_KIND_MEMORY2 & 1);
	stop();
	start(UINT64_C(1) << KPROF_ACTIVITY_CUDA_RUNTIME, KPROF_AGENT_OPT_MEMORY);
	CHECK(!(cupti.kinds >> CUPTI_KIND_MEMORY2 & 1));
	stop();
}

UNIT_MAIN(TEST(calls_are_left_out), TEST(memory_if_asked_for), TEST(times_of_events),
	  TEST(cancelled_threads_come_through))
