// SPDX-License-Identifier: BSD-2-Clause
/*
 * The CUDA module: records CUPTI's activities in a session, and does not use CUPTI at other times.
 *
 * CUPTI allows one subscriber per process. By this two tools notice each other, if both subscribe,
 * and a callback at the end of API calls needs it. So the agent subscribes before it enables
 * anything, and unsubscribes as soon as it has stopped. A tool that does not subscribe, as Kineto
 * of PyTorch 2.15, replaces the agent's callbacks and clock, without either being told. It is
 * noticed by the clock. From then on everything that is enabled belongs to that tool.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/base/util.h"
#include "gpu/cupti/cupti.h"
#include "gpu/cupti/metrics.h"

#define FLUSH_NS UINT64_C(250000000)
#define PAIR_NS UINT64_C(1000000000)
#define STOP_WAIT_MS 500     /* for work that is still running on the device */
#define FINALIZE_WAIT_MS 500 /* for the process to make a CUDA call */
/* By this, users of PyTorch ask that CUPTI is finalized when a profiler has ended. */
#define FINALIZE_VARIABLE "TEARDOWN_CUPTI"

static struct {
	struct cuda_process process;
	struct cupti_functions f;
	uint32_t version; /* 0: not loaded */
	void *subscriber;
	struct cupti_reader reader;
	uint64_t enabled; /* bits 1 << enum cupti_kind */
	uint64_t flushed_ns, paired_ns;
	bool taken_over; /* by another tool, while the agent recorded */
	/* The agent was there before CUDA was used: no graph can be older than the recording. */
	bool was_first;
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
	int saved = errno, cancel = gpu_cancel_off();
	bool spare;

	*buffer = buffers__take(u.version >= CUPTI_VERSION_NO_BUFFER);
	spare = buffers__is_spare(*buffer);
	*bytes = !*buffer ? 0 : spare ? CUPTI_SPARE_BYTES : CUPTI_BUFFER_BYTES;
	*max_records = spare; /* one, or as many as fit (0) */
	gpu_cancel_back(cancel);
	errno = saved;
}

/* `nr` records that have come for nothing, and those that CUPTI itself has lost. */
static void count_dropped(void *context, uint32_t stream, size_t nr)
{
	struct kprof_agent_shm *shm = gpu_shm();
	size_t nr_lost = 0;

	if (shm && u.f.dropped(context, stream, &nr_lost) == CUPTI_OK)
		nr += nr_lost;
	if (shm && nr)
		__atomic_fetch_add(&shm->device_dropped, nr, __ATOMIC_RELAXED);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t bytes,
		      size_t valid_bytes)
{
	int saved = errno, cancel = gpu_cancel_off();
	uint64_t begin_ns = gpu_cpu_begin();

	if (!u.in_child) {
		bool spare = buffers__is_spare(buffer);

		if (!spare)
			cupti_records__read(&u.reader, buffer, valid_bytes);
		count_dropped(context, stream, spare && valid_bytes ? 1 : 0);
		buffers__give_back(buffer);
		gpu_cpu_end(begin_ns);
	}
	gpu_cancel_back(cancel);
	errno = saved;
}

static void resource_ends(uint32_t cbid, const struct cupti_resource_data *d)
{
	int saved = errno, cancel = gpu_cancel_off();

	if (cbid == CUPTI_CONTEXT_ENDS && !u.in_child)
		metrics__context_ends(d->context);
	gpu_cancel_back(cancel);
	errno = saved;
}

/* CUPTI can be finalized safely only at the end of an API call. */
static void called(void *ctx, int domain, uint32_t cbid, const void *data)
{
	const struct cupti_callback_data *d = data;
	uint32_t wanted = WANTED;
	int saved = errno, cancel;

	if (domain == CUPTI_RESOURCE)
		resource_ends(cbid, data);
	if (domain != CUPTI_DRIVER_API && domain != CUPTI_RUNTIME_API)
		return;
	if (d->site != CUPTI_API_EXIT_SITE ||
	    !__atomic_compare_exchange_n(&u.finalize, &wanted, RUNNING, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	cancel = gpu_cancel_off();
	u.f.unsubscribe(u.subscriber);
	u.f.finalize();
	__atomic_store_n(&u.finalize, DONE, __ATOMIC_RELEASE);
	gpu_futex_wake(&u.finalize, false);
	gpu_cancel_back(cancel);
	errno = saved;
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
	/* Only if asked for: NVIDIA warns of a significant overhead. */
	if (options & KPROF_AGENT_OPT_MEMORY && types & DEVICE_TYPES)
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
	if (kinds || options & KPROF_AGENT_OPT_METRICS ||
	    types & (BIT(KPROF_ACTIVITY_CUDA_RUNTIME) | BIT(KPROF_ACTIVITY_CUDA_DRIVER)))
		kinds |= BIT(CUPTI_KIND_RUNTIME) | BIT(CUPTI_KIND_DRIVER) | BIT(CUPTI_KIND_DEVICE) |
			 BIT(CUPTI_KIND_CONTEXT);
	return kinds;
}

static int enable(int kind)
{
	/*
	 * Devices and contexts that exist already are recorded at once. While cuInit() runs, there
	 * are none, and not all of CUPTI works.
	 */
	if (u.f.enable_and_dump && !gpu_in_injection() &&
	    (kind == CUPTI_KIND_DEVICE || kind == CUPTI_KIND_CONTEXT))
		return u.f.enable_and_dump(kind);
	return u.f.enable(kind);
}

/* Without these there is no point in recording. */
static bool essential(int kind)
{
	return kind == CUPTI_KIND_CONCURRENT_KERNEL || kind == CUPTI_KIND_MEMCPY ||
	       kind == CUPTI_KIND_RUNTIME;
}

/*
 * When devices come to events is told from CUDA 13.0 on, if a tool asks for it, as it costs
 * something.
 */
static void set_event_times(bool yes)
{
	if (u.reader.event_times && u.f.event_times)
		u.f.event_times(yes);
}

static void disable_all(void)
{
	set_event_times(false);
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

/*
 * From CUDA 12.5 on CUPTI can leave out single functions. To enable a kind switches all of its
 * functions on again (cupti_activity.h says so), so nothing of this is to be undone.
 */
static void leave_out_calls(void)
{
	for (uint32_t cbid = 1; cbid < CUPTI_CALLS; cbid++) {
		if (u.f.enable_runtime_call && cupti_records__unwanted(&u.f, true, cbid))
			u.f.enable_runtime_call(cbid, 0);
		if (u.f.enable_driver_call && cupti_records__unwanted(&u.f, false, cbid))
			u.f.enable_driver_call(cbid, 0);
	}
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
	u.was_first |= err == -EAGAIN || gpu_in_injection();
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

/* Does another tool record, though it has not subscribed? CUPTI can tell from CUDA 13.2 on. */
static bool others_record(void)
{
	uint32_t nr = 0;

	return u.f.enabled_kinds && u.f.enabled_kinds(NULL, NULL, NULL, &nr) == CUPTI_OK && nr;
}

/*
 * From CUDA 13.0 on each thread has a buffer of its own unless CUPTI is told otherwise: a process
 * of many threads would need more of them than there are.
 */
static void share_buffers(void)
{
	uint8_t no = 0;
	size_t bytes = sizeof(no);

	if (u.f.set_attribute)
		u.f.set_attribute(CUPTI_ATTRIBUTE_BUFFER_PER_THREAD, &bytes, &no);
}

/*
 * With CUDA 11, recording the work of graphs that were made before can crash the process, and
 * whether there are any cannot be found out.
 */
static int graphs_suit(struct gpu_report *r)
{
	bool old = u.process.runtime_version ? u.process.runtime_version < 12000
					     : u.version < CUPTI_VERSION_11_8;

	if (u.was_first || !old)
		return 0;
	return gpu_report(
		r, -ENOTSUP, KPROF_AGENT_BAD_VERSION,
		"with CUDA 11, to record graphs that were made before kprof came can crash "
		"the process",
		NULL);
}

static int begin(uint64_t kinds, struct gpu_report *r)
{
	int err, result;

	if (others_record())
		return gpu_report(r, -EBUSY, KPROF_AGENT_BUSY,
				  "another tool in the process records with CUPTI", NULL);
	u.f.set_thread_id_type(CUPTI_THREAD_ID_SYSTEM);
	err = cupti_clock__set(&u.f, r);
	if (err)
		return err;
	u.paired_ns = gpu_now_ns();
	u.reader.to_mono = cupti_clock__to_mono;
	share_buffers();
	set_event_times(true);
	result = u.f.register_callbacks(requested, completed);
	err = result == CUPTI_OK ? enable_all(kinds, r)
				 : fail(r, result, "cuptiActivityRegisterCallbacks");
	if (!err)
		leave_out_calls();
	return err;
}

static int start(uint64_t types, uint32_t options, struct gpu_report *r)
{
	uint64_t kinds = kinds_for(types, options);
	int err, result;

	if (!kinds)
		return 0;
	err = graphs_suit(r);
	if (err)
		return err;
	result = u.f.subscribe(&u.subscriber, called, NULL);
	if (result != CUPTI_OK) {
		u.subscriber = NULL;
		err = fail(r, result, "cuptiSubscribe");
		return gpu_in_injection() ? -EAGAIN : err;
	}
	cupti_records__reset();
	buffers__reset();
	u.reader = (struct cupti_reader){
		.f = &u.f,
		.process = &u.process,
		.sync = options & KPROF_AGENT_OPT_SYNC,
		.events = kinds & BIT(CUPTI_KIND_CUDA_EVENT),
		.event_times = types & BIT(KPROF_ACTIVITY_CUDA_EVENT),
		.calls = {types & (DEVICE_TYPES | BIT(KPROF_ACTIVITY_CUDA_DRIVER)),
			  types & (DEVICE_TYPES | BIT(KPROF_ACTIVITY_CUDA_RUNTIME))},
		.own_tid = gpu_in_injection() ? 0 : gpu_tid(),
	};
	u.devices_told = u.taken_over = false;
	u.finalize = NOT_WANTED;
	tell_devices();
	err = begin(kinds, r);
	if (err) {
		disable_all();
		unsubscribe();
	} else {
		metrics__start(&u.process, &u.f, u.subscriber);
	}
	/* While cuInit() runs, no device is used yet. */
	if (!err && !gpu_in_injection())
		metrics__tick();
	u.flushed_ns = gpu_now_ns();
	/* While cuInit() runs, not all of CUPTI works: what fails is tried again after it. */
	return err && gpu_in_injection() ? -EAGAIN : err;
}

/* CUPTI can wait for ever when it is to flush before it has asked for a buffer. */
static void flush_all(uint32_t flags)
{
	if (buffers__were_taken())
		u.f.flush_all(flags);
}

/* Another tool has replaced the callbacks and the clock: what is enabled now is that tool's. */
static bool taken_over(void)
{
	if (!u.taken_over && !cupti_clock__lost())
		return false;
	u.taken_over = true;
	u.enabled = 0;
	metrics__stop();
	unsubscribe();
	return true;
}

static int flush(struct gpu_report *r)
{
	uint64_t now = gpu_now_ns();

	if (!u.enabled)
		return 0;
	if (taken_over())
		return gpu_report(r, -EBUSY, KPROF_AGENT_BUSY,
				  "another tool in the process has begun to use CUPTI", NULL);
	if (!u.reader.own_tid) /* CUDA itself called start() */
		u.reader.own_tid = gpu_tid();
	tell_devices();
	metrics__tick();
	if (now - u.paired_ns >= PAIR_NS) {
		u.paired_ns = now;
		cupti_clock__pair();
	}
	if (now - u.flushed_ns < FLUSH_NS)
		return 0;
	u.flushed_ns = now;
	flush_all(0);
	count_dropped(NULL, 0, 0);
	return 0;
}

/*
 * CUPTI returns a buffer once all work in it has finished. Work that runs for longer than
 * STOP_WAIT_MS is not recorded.
 */
static void stop(void)
{
	struct kprof_agent_shm *shm = gpu_shm();

	if (!u.enabled) {
		unsubscribe();
		return;
	}
	if (taken_over()) {
		gpu_append(shm->detail, sizeof(shm->detail), 0,
			   "another tool in the process has begun to use CUPTI at the end");
		return;
	}
	metrics__stop();
	disable_all();
	for (unsigned int ms = 0; ms < STOP_WAIT_MS; ms += 10) {
		flush_all(0);
		if (!buffers__in_use())
			break;
		gpu_futex_wait(&u.finalize, NOT_WANTED, 10, false);
	}
	flush_all(CUPTI_FLUSH_FORCED);
	count_dropped(NULL, 0, 0);
	cupti_clock__pair();
	unsubscribe();
}

static void at_exit(void)
{
	if (!u.enabled || taken_over())
		return;
	metrics__stop();
	flush_all(CUPTI_FLUSH_FORCED);
	count_dropped(NULL, 0, 0);
	u.enabled = 0; /* from now on CUPTI is not called any more, since it may be finalized */
}

/*
 * Finalizes CUPTI, where the process's environment asks for it: CUPTI was seen to crash now and
 * then when it is. True: CUPTI is inactive in this process until it is used again.
 */
static bool finalized(void)
{
	const char *asked = getenv(FINALIZE_VARIABLE);
	uint32_t wanted = WANTED;

	if (!asked || strcmp(asked, "1") || u.version < CUPTI_VERSION_FINALIZES ||
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

	if (u.version && !u.taken_over && !finalized()) {
		/* Restore the clock that CUPTI had, for the next tool that uses it. */
		if (!others_record())
			cupti_clock__restore();
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
	metrics__forget();
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
