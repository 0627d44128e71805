// SPDX-License-Identifier: BSD-2-Clause
/*
 * The CUDA module: records CUPTI's activities in a session, and does not use CUPTI at other times.
 *
 * CUPTI allows one subscriber per process. By this two tools notice each other, and a callback at
 * the end of API calls needs it. So the agent subscribes before it enables anything, and
 * unsubscribes as soon as it has stopped.
 */
#include <errno.h>
#include <time.h>

#include "gpu/base/batch.h"
#include "gpu/base/clock.h"
#include "gpu/cupti/cupti.h"
#include "gpu/base/util.h"

#define FLUSH_NS UINT64_C(250000000)
#define PAIR_NS UINT64_C(1000000000)
#define PAIR_TRIES 32
#define RATE_NS 20000000       /* pairs this far apart give the rate with an error of some 1e-6 */
#define CLOCK_SLACK_NS 1000000 /* clocks that differ by less than this are taken for the same */
#define STOP_WAIT_MS 500       /* for work that is still running on the device */
#define FINALIZE_WAIT_MS 500   /* for the process to make a CUDA call */

static struct {
	struct cuda_process process;
	struct cupti_functions f;
	uint32_t version; /* 0: not loaded */
	void *subscriber;
	struct cupti_reader reader;
	uint64_t enabled; /* bits 1 << enum cupti_kind */
	bool converts;    /* CUPTI uses a clock that another tool has set */
	struct gpu_clock_pair first;
	double rate; /* CLOCK_MONOTONIC nanoseconds in one unit of that clock */
	struct gpu_clock clock;
	uint64_t flushed_ns, paired_ns;
	bool devices_told;
	bool in_child;
	uint32_t finalize; /* enum finalize; a futex */
} u;

enum finalize { NOT_WANTED, WANTED, RUNNING, DONE };

static int fail(struct gpu_report *r, int result, const char *what)
{
	const char *words = NULL;
	char number[24];

	if (u.f.result_string && u.f.result_string(result, &words) != CUPTI_OK)
		words = NULL;
	if (!words)
		words = gpu_number(number, (uint64_t)(unsigned int)result);
	switch (result) {
	case CUPTI_MULTIPLE_SUBSCRIBERS:
	case CUPTI_MAX_LIMIT_REACHED:
	case CUPTI_OLD_PROFILER:
		return gpu_report(r, -EBUSY, KPROF_AGENT_BUSY,
				  "another tool in the process uses CUPTI: ", words, NULL);
	case CUPTI_INSUFFICIENT_PRIVILEGES:
	case CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES:
		return gpu_report(r, -EPERM, KPROF_AGENT_NO_PERMISSION, what, ": ", words, NULL);
	case CUPTI_NOT_INITIALIZED:
		return gpu_report(r, -ENODEV, KPROF_AGENT_NO_DRIVER, what, ": ", words, NULL);
	default:
		return gpu_report(r, -EIO, KPROF_AGENT_OTHER, what, ": ", words, NULL);
	}
}

/* ---- called by CUPTI, in threads of the process or in CUPTI's own ---- */

static void requested(uint8_t **buffer, size_t *bytes, size_t *max_records)
{
	*buffer = buffers__take();
	*bytes = *buffer ? CUPTI_BUFFER_BYTES : 0;
	*max_records = 0;
}

static void count_dropped(void *context, uint32_t stream)
{
	struct kprof_agent_shm *shm = gpu_shm();
	size_t nr = 0;

	if (shm && u.f.dropped(context, stream, &nr) == CUPTI_OK && nr)
		__atomic_fetch_add(&shm->device_dropped, nr, __ATOMIC_RELAXED);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
		      size_t valid_bytes)
{
	int saved = errno;

	if (!u.in_child) {
		cupti_records__read(&u.reader, buffer, valid_bytes);
		count_dropped(context, stream);
		buffers__give_back(buffer);
	}
	errno = saved;
}

static uint64_t realtime_ns(void)
{
	return gpu_clock_ns(CLOCK_REALTIME);
}

/* CUPTI can be finalized safely only at the end of an API call. */
static void called(void *ctx, int domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;
	uint32_t wanted = WANTED;
	int saved = errno;

	if (domain != CUPTI_DRIVER_API && domain != CUPTI_RUNTIME_API)
		return;
	if (d->site != CUPTI_API_EXIT_SITE ||
	    !__atomic_compare_exchange_n(&u.finalize, &wanted, RUNNING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	u.f.finalize();
	__atomic_store_n(&u.finalize, DONE, __ATOMIC_RELEASE);
	gpu_futex_wake(&u.finalize, false);
	errno = saved;
}

/* ---- clocks ---- */

static bool read_cupti(void *ctx, uint64_t *time)
{
	return u.f.timestamp(time) == CUPTI_OK;
}

/*
 * Converts a time to ns. Another tool's clock may count anything (that of Kineto: the processor's
 * ticks), so its rate was measured at the start.
 */
static uint64_t in_ns(uint64_t time)
{
	if (!u.converts)
		return time;
	return u.first.mono_ns +
	       (uint64_t)(int64_t)((double)(int64_t)(time - u.first.device_ns) * u.rate);
}

static bool read_in_ns(void *ctx, uint64_t *time)
{
	if (!read_cupti(ctx, time))
		return false;
	*time = in_ns(*time);
	return true;
}

static bool near(uint64_t a, uint64_t b, uint64_t slack)
{
	return a - b + slack <= 2 * slack;
}

static uint64_t to_mono(uint64_t time)
{
	return gpu_clock__to_mono(&u.clock, in_ns(time));
}

/*
 * Reads a pair of both clocks: for a CLOCK record, and for the conversion if times are converted.
 */
static void pair(void)
{
	struct gpu_clock_pair p;
	struct kprof_agent_clock_pair out;

	u.paired_ns = gpu_now_ns();
	if (!gpu_clock__tightest(read_in_ns, NULL, PAIR_TRIES, &p))
		return;
	if (u.converts)
		gpu_clock__add(&u.clock, &p);
	out = BATCH_RECORD(struct kprof_agent_clock_pair, KPROF_AGENT_CLOCK, 0);
	out.mono_ns = p.mono_ns;
	out.device_ns = p.device_ns;
	out.width_ns = p.width_ns;
	batch__append(&out);
}

/* Measures the rate of CUPTI's clock. False: the clock stands still, or runs backwards. */
static bool measure_rate(void)
{
	static const uint32_t word;
	struct gpu_clock_pair second;

	if (!gpu_clock__tightest(read_cupti, NULL, PAIR_TRIES, &u.first))
		return false;
	while (gpu_now_ns() - u.first.mono_ns < RATE_NS)
		gpu_futex_wait(&word, 0, RATE_NS / 1000000, false);
	if (!gpu_clock__tightest(read_cupti, NULL, PAIR_TRIES, &second) ||
	    second.device_ns <= u.first.device_ns)
		return false;
	u.rate = (double)(second.mono_ns - u.first.mono_ns) /
		 (double)(second.device_ns - u.first.device_ns);
	return true;
}

/*
 * Does CUPTI use the agent's clock? Its time is then between two readings of that clock, however
 * long this thread had to wait for a CPU.
 */
static bool is_ours(void)
{
	uint64_t before = gpu_now_ns(), time = 0, after;

	if (u.f.timestamp(&time) != CUPTI_OK)
		return false;
	after = gpu_now_ns();
	return time + CLOCK_SLACK_NS >= before && time <= after + CLOCK_SLACK_NS;
}

/*
 * CUPTI's own clock is CLOCK_REALTIME. If it shows another time, another tool has registered a
 * clock and relies on it: then that clock is kept, and times are converted.
 */
static int set_clock(struct gpu_report *r)
{
	static const struct gpu_clock none;
	uint64_t time = 0;

	u.converts = false;
	u.clock = none;
	if (u.f.timestamp(&time) != CUPTI_OK)
		return gpu_report(r, -EIO, KPROF_AGENT_OTHER, "CUPTI does not tell the time", NULL);
	if (u.f.register_timestamp && near(time, realtime_ns(), UINT64_C(1000000000)))
		u.f.register_timestamp(gpu_now_ns);
	if (!is_ours()) {
		if (!measure_rate())
			return gpu_report(r, -EIO, KPROF_AGENT_OTHER, "CUPTI's clock stands still",
					  NULL);
		u.converts = true;
	}
	u.reader.to_mono = u.converts ? to_mono : NULL;
	gpu_shm()->clock = u.converts ? KPROF_AGENT_CLOCK_CONVERTED : KPROF_AGENT_CLOCK_MONOTONIC;
	pair();
	return 0;
}

/* ---- kinds ---- */

#define BIT(n) (UINT64_C(1) << (n))
#define DEVICE_TYPES                                                   \
	(BIT(KPROF_ACTIVITY_KERNEL) | BIT(KPROF_ACTIVITY_GPU_MEMCPY) | \
	 BIT(KPROF_ACTIVITY_GPU_MEMSET) | BIT(KPROF_ACTIVITY_GPU_USER_ANNOTATION))

static uint64_t kinds_for(uint64_t types, uint32_t options)
{
	uint64_t kinds = 0;
	bool sync = options & KPROF_AGENT_OPT_SYNC;

	if (types & (BIT(KPROF_ACTIVITY_KERNEL) | BIT(KPROF_ACTIVITY_GPU_USER_ANNOTATION)))
		kinds |= BIT(CUPTI_KIND_CONCURRENT_KERNEL);
	if (types & BIT(KPROF_ACTIVITY_GPU_MEMCPY))
		kinds |= BIT(CUPTI_KIND_MEMCPY) | BIT(CUPTI_KIND_MEMCPY2);
	if (types & BIT(KPROF_ACTIVITY_GPU_MEMSET))
		kinds |= BIT(CUPTI_KIND_MEMSET);
	/* Memory in use is shown beside the work of the devices. */
	if (types & BIT(KPROF_ACTIVITY_CPU_INSTANT_EVENT) && types & DEVICE_TYPES)
		kinds |= BIT(CUPTI_KIND_MEMORY2);
	if (types & BIT(KPROF_ACTIVITY_OVERHEAD))
		kinds |= BIT(CUPTI_KIND_OVERHEAD);
	if (types & BIT(KPROF_ACTIVITY_EXTERNAL_CORRELATION))
		kinds |= BIT(CUPTI_KIND_EXTERNAL_CORRELATION);
	if (sync)
		kinds |= BIT(CUPTI_KIND_SYNCHRONIZATION);
	if (sync || types & BIT(KPROF_ACTIVITY_CUDA_EVENT))
		kinds |= BIT(CUPTI_KIND_CUDA_EVENT);
	/* Device activities are joined to the call that caused them, which may be of either API. */
	if (kinds || types & (BIT(KPROF_ACTIVITY_CUDA_RUNTIME) | BIT(KPROF_ACTIVITY_CUDA_DRIVER)))
		kinds |= BIT(CUPTI_KIND_RUNTIME) | BIT(CUPTI_KIND_DRIVER) | BIT(CUPTI_KIND_DEVICE) |
			 BIT(CUPTI_KIND_CONTEXT);
	return kinds;
}

static int enable(int kind)
{
	/* Devices and contexts that exist already are recorded at once. */
	if (u.f.enable_and_dump && (kind == CUPTI_KIND_DEVICE || kind == CUPTI_KIND_CONTEXT))
		return u.f.enable_and_dump(kind);
	return u.f.enable(kind);
}

/* Without these there is no point in recording. */
static bool essential(int kind)
{
	return kind == CUPTI_KIND_CONCURRENT_KERNEL || kind == CUPTI_KIND_MEMCPY ||
	       kind == CUPTI_KIND_RUNTIME;
}

static void disable_all(void)
{
	for (int kind = 0; kind < 64; kind++) {
		if (u.enabled & BIT(kind))
			u.f.disable(kind);
	}
	u.enabled = 0;
}

static int enable_all(uint64_t kinds, struct gpu_report *r)
{
	int result;

	for (int kind = 0; kind < 64; kind++) {
		if (!(kinds & BIT(kind)))
			continue;
		result = enable(kind);
		if (result == CUPTI_OK)
			u.enabled |= BIT(kind);
		else if (essential(kind))
			return fail(r, result, "cuptiActivityEnable");
	}
	return 0;
}

/* ---- the module ---- */

static int probe(struct gpu_report *r)
{
	struct kprof_agent_shm *shm = gpu_shm();
	int err;

	if (u.in_child)
		return gpu_report(r, -ENODEV, KPROF_AGENT_NO_RUNTIME,
				  "the process was forked from one that used CUDA", NULL);
	cuda__look(&u.process);
	shm->driver_version = (kprof_u32)u.process.driver_version;
	shm->runtime_version = (kprof_u32)u.process.runtime_version;
	err = cuda__initialized(&u.process, r);
	if (err)
		return err;
	if (u.version)
		return 0;
	err = cupti__load(&u.process, &u.f, &shm->cupti_version, r);
	if (!err)
		u.version = shm->cupti_version;
	return err;
}

static void tell_devices(void)
{
	/* While cuInit() runs, the driver's functions cannot be called. */
	if (!u.devices_told && !gpu_in_injection())
		u.devices_told = cuda__devices(&u.process) > 0;
}

static void unsubscribe(void)
{
	if (u.subscriber)
		u.f.unsubscribe(u.subscriber);
	u.subscriber = NULL;
}

static int start(uint64_t types, uint32_t options, struct gpu_report *r)
{
	uint64_t kinds = kinds_for(types, options);
	int err, result;

	if (!kinds)
		return 0;
	result = u.f.subscribe(&u.subscriber, called, NULL);
	if (result != CUPTI_OK) {
		u.subscriber = NULL;
		return fail(r, result, "cuptiSubscribe");
	}
	cupti_records__reset();
	u.reader = (struct cupti_reader){
		.f = &u.f,
		.process = &u.process,
		.sync = options & KPROF_AGENT_OPT_SYNC,
		.events = kinds & BIT(CUPTI_KIND_CUDA_EVENT),
		.calls = {types & (DEVICE_TYPES | BIT(KPROF_ACTIVITY_CUDA_DRIVER)),
			  types & (DEVICE_TYPES | BIT(KPROF_ACTIVITY_CUDA_RUNTIME))},
		.own_tid = gpu_in_injection() ? 0 : gpu_tid(),
	};
	u.devices_told = false;
	u.finalize = NOT_WANTED;
	tell_devices();
	u.f.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	err = set_clock(r);
	if (!err) {
		result = u.f.register_callbacks(requested, completed);
		if (result != CUPTI_OK)
			err = fail(r, result, "cuptiActivityRegisterCallbacks");
	}
	if (!err)
		err = enable_all(kinds, r);
	if (err) {
		disable_all();
		unsubscribe();
	}
	u.flushed_ns = gpu_now_ns();
	return err;
}

static void flush(void)
{
	uint64_t now = gpu_now_ns();

	if (!u.enabled)
		return;
	tell_devices();
	if (now - u.paired_ns >= PAIR_NS)
		pair();
	if (now - u.flushed_ns < FLUSH_NS)
		return;
	u.flushed_ns = now;
	u.f.flush_all(0);
	count_dropped(NULL, 0);
}

/*
 * CUPTI returns a buffer once all work in it has finished. Work that runs for longer than
 * STOP_WAIT_MS is not recorded.
 */
static void stop(void)
{
	if (!u.enabled) {
		unsubscribe();
		return;
	}
	disable_all();
	for (unsigned int ms = 0; ms < STOP_WAIT_MS; ms += 10) {
		u.f.flush_all(0);
		if (!buffers__in_use())
			break;
		gpu_futex_wait(&u.finalize, NOT_WANTED, 10, false);
	}
	u.f.flush_all(CUPTI_FLUSH_FORCED);
	count_dropped(NULL, 0);
	pair();
	unsubscribe();
}

static void at_exit(void)
{
	if (!u.enabled)
		return;
	u.f.flush_all(CUPTI_FLUSH_FORCED);
	count_dropped(NULL, 0);
	u.enabled = 0; /* from now on CUPTI is not called any more, since it may be finalized */
}

/* Finalizes CUPTI. True: CUPTI is inactive in this process until it is used again. */
static bool finalized(void)
{
	uint32_t wanted = WANTED;

	if (u.version < CUPTI_VERSION_FINALIZES ||
	    u.f.subscribe(&u.subscriber, called, NULL) != CUPTI_OK) {
		/* another tool uses CUPTI now, or this version must not be finalized */
		u.subscriber = NULL;
		return false;
	}
	__atomic_store_n(&u.finalize, WANTED, __ATOMIC_RELEASE);
	u.f.enable_domain(1, u.subscriber, CUPTI_DRIVER_API);
	u.f.enable_domain(1, u.subscriber, CUPTI_RUNTIME_API);
	gpu_futex_wait(&u.finalize, WANTED, FINALIZE_WAIT_MS, false);
	if (__atomic_compare_exchange_n(&u.finalize, &wanted, NOT_WANTED, false, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE)) {
		u.f.enable_domain(0, u.subscriber, CUPTI_DRIVER_API);
		u.f.enable_domain(0, u.subscriber, CUPTI_RUNTIME_API);
		unsubscribe();
		return false;
	}
	for (int i = 0; i < 10 && __atomic_load_n(&u.finalize, __ATOMIC_ACQUIRE) == RUNNING; i++)
		gpu_futex_wait(&u.finalize, RUNNING, 50, false);
	u.subscriber = NULL;
	return true;
}

static void release(void)
{
	struct kprof_agent_shm *shm = gpu_shm();

	if (u.version && !finalized()) {
		/* Restore the clock that CUPTI had, for the next tool that uses it. */
		if (!u.converts && u.f.register_timestamp)
			u.f.register_timestamp(realtime_ns);
		gpu_append(shm->detail, sizeof(shm->detail), 0,
			   "CUPTI stays loaded, with nothing enabled");
	}
	buffers__free();
}

/* Neither CUDA nor CUPTI works in a forked child, unless the parent had not used CUDA. */
static void forked(void)
{
	if (!u.version)
		return;
	u.in_child = true;
	u.enabled = 0;
	buffers__forget();
}

const struct gpu_module gpu_cuda = {
	.runtime = KPROF_AGENT_CUDA,
	.probe = probe,
	.start = start,
	.flush = flush,
	.stop = stop,
	.release = release,
	.at_exit = at_exit,
	.forked = forked,
};
