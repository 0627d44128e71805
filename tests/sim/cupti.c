/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: libcupti.so: how it finds the driver; its one subscriber; whatever is
 * small.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cupti.h"

#define NR_DOMAINS 7
#define NR_CBIDS 1024
#define DOMAIN_RESOURCE 3
#define CONTEXT_DESTROY_STARTING 2

struct cupti_subscriber {
	cupti_callback_fn fn;
	void *userdata;
	uint8_t enabled[NR_DOMAINS][NR_CBIDS];
};

const struct sim_table *sim;
struct cupti_settings cupti_settings = {.version = SIM_MAJOR == 12 ? 18 : 130202};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cupti_subscriber only, *subscriber;
static unsigned nr_enabled; /* callbacks */
static _Thread_local unsigned in_exit_callback;

/* ---- the driver ---- */

static void connect(void)
{
	struct sim_uuid id;
	int (*get_table)(const void **, const struct sim_uuid *);
	const struct sim_table *table;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return;
	memcpy(id.bytes, SIM_TABLE_UUID_BYTES, sizeof(id.bytes));
	*(void **)&get_table = dlsym(lib, "cuGetExportTable");
	if (!get_table || get_table((const void **)&table, &id))
		return;
	cupti_settings = (struct cupti_settings){
		.late_ns = table->env("CUPTI_LATE_NS", 0),
		.drop = table->env("CUPTI_DROP", 0),
		.shuffle = table->env("CUPTI_SHUFFLE", 0),
		.buffer_records = table->env("CUPTI_BUFFER_RECORDS", 0),
		.drift_ppb = (int64_t)table->env("CUPTI_CLOCK_DRIFT_PPB", 0),
		.offset_ns = (int64_t)table->env("CUPTI_CLOCK_OFFSET_NS", 0),
		.skew_ns = (int64_t)table->env("CUPTI_SKEW_NS", 0),
		.denied = table->env("CUPTI_DENIED", 0),
		.busy = table->env("CUPTI_BUSY", 0),
		.taken = table->env("CUPTI_TIMESTAMP_TAKEN", 0),
		.taken_over = table->env("CUPTI_TAKEN_OVER", 0),
		.clock_lost = table->env("CUPTI_CLOCK_LOST", 0),
		.bad_record = table->env("CUPTI_BAD_RECORD", 0),
		.other_kinds = table->env("CUPTI_OTHER_KINDS", 0),
		.late_start = table->env("CUPTI_LATE_START", 0),
		.version = (uint32_t)table->env("CUPTI_VERSION", SIM_MAJOR == 12 ? 18 : 130202),
	};
	__atomic_store_n(&sim, table, __ATOMIC_RELEASE);
}

bool cupti_ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, connect);
	/*
	 * One that is older than this library: cuptiSubscribe and everything else says so in the
	 * same way.
	 */
	return sim && sim->driver_version / 1000 >= SIM_MAJOR && !sim->env("NO_DEVICE", 0) &&
	       !(cupti_settings.late_start && sim->initializing);
}

uint32_t cupti_version(void)
{
	cupti_ready();
	return cupti_settings.version;
}

SIM_EXPORT int cuptiGetVersion(uint32_t *version)
{
	if (!version)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*version = cupti_version();
	return CUPTI_SUCCESS;
}

void cupti_misuse(const char *what)
{
	if (sim)
		sim->say("{\"t\":\"misuse\",\"what\":\"%s\",\"time\":%lu}", what, sim->now_ns());
}

bool cupti_other_tool;

void cupti_taken(const char *what)
{
	if (cupti_other_tool)
		cupti_misuse(what);
}

/* ---- what the driver tells us ---- */

void cupti_call_back(struct sim_call *call, uint32_t site)
{
	struct cupti_subscriber *s = __atomic_load_n(&subscriber, __ATOMIC_ACQUIRE);
	struct cupti_callback_data data = {.callbackSite = site,
					   .functionName = call->name,
					   .functionParams = call->params,
					   .functionReturnValue = site ? &call->result : NULL,
					   .symbolName = call->symbol,
					   .context = call->context,
					   .contextUid = call->context_id,
					   .correlationData = &call->correlation_data,
					   .correlationId = call->correlation};

	if (!s || call->cbid >= NR_CBIDS || !s->enabled[call->domain][call->cbid])
		return;
	in_exit_callback += site;
	s->fn(s->userdata, (int)call->domain, call->cbid, &data);
	in_exit_callback -= site;
}

static void enter(struct sim_call *call)
{
	call->called_back = true;
	cupti_call_back(call, 0);
}

static void context_ends(CUcontext context)
{
	struct cupti_subscriber *s = __atomic_load_n(&subscriber, __ATOMIC_ACQUIRE);
	struct {
		CUcontext context;
		void *stream, *descriptor;
	} data = {.context = context};

	if (s && s->enabled[DOMAIN_RESOURCE][CONTEXT_DESTROY_STARTING])
		s->fn(s->userdata, DOMAIN_RESOURCE, CONTEXT_DESTROY_STARTING, &data);
}

static void leave(struct sim_call *call)
{
	if (!call->called_back) /* it began before anything was enabled */
		return;
	cupti_record_call(call);
	cupti_call_back(call, 1);
}

static const struct sim_hooks hooks = {
	.enter = enter,
	.exit = leave,
	.queued = cupti_record_queued,
	.finished = cupti_record_finished,
	.context = cupti_record_context,
	.context_ends = context_ends,
	.stream = cupti_record_stream,
	.memory = cupti_record_memory,
};

/*
 * Once anything was enabled they stay until cuptiFinalize(): what is queued has its place in a
 * buffer, and is finished when it is finished.
 */
void cupti_update_hooks(void)
{
	if (__atomic_load_n(&cupti_enabled, __ATOMIC_RELAXED) || nr_enabled)
		sim->set_hooks(&hooks);
}

/* ---- the subscriber ---- */

SIM_EXPORT int cuptiSubscribe(struct cupti_subscriber **out, cupti_callback_fn fn, void *userdata)
{
	int result = CUPTI_SUCCESS;

	if (!out || !fn)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	pthread_mutex_lock(&lock);
	if (subscriber || cupti_settings.busy) {
		result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
	} else {
		memset(&only, 0, sizeof(only));
		only.fn = fn;
		only.userdata = userdata;
		*out = &only;
		__atomic_store_n(&subscriber, &only, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&lock);
	sim->say("{\"t\":\"cupti\",\"call\":\"cuptiSubscribe\",\"result\":%d,\"time\":%lu}", result,
		 sim->now_ns());
	return result;
}

SIM_EXPORT int cuptiUnsubscribe(struct cupti_subscriber *s)
{
	int result = CUPTI_SUCCESS;

	pthread_mutex_lock(&lock);
	if (!s || s != subscriber) {
		result = CUPTI_ERROR_INVALID_PARAMETER;
	} else {
		__atomic_store_n(&subscriber, NULL, __ATOMIC_RELEASE);
		nr_enabled = 0;
	}
	pthread_mutex_unlock(&lock);
	if (sim)
		sim->say(
			"{\"t\":\"cupti\",\"call\":\"cuptiUnsubscribe\",\"result\":%d,\"time\":%lu}",
			result, sim->now_ns());
	return result;
}

static int enable_cbids(uint32_t enable, struct cupti_subscriber *s, int domain, uint32_t first,
			uint32_t last)
{
	if (!s || s != subscriber || domain <= 0 || domain >= NR_DOMAINS || last >= NR_CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	pthread_mutex_lock(&lock);
	for (uint32_t i = first; i <= last; i++) {
		nr_enabled += (enable != 0) - s->enabled[domain][i];
		s->enabled[domain][i] = enable != 0;
	}
	pthread_mutex_unlock(&lock);
	cupti_update_hooks();
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiEnableCallback(uint32_t enable, struct cupti_subscriber *s, int domain,
				   uint32_t cbid)
{
	return enable_cbids(enable, s, domain, cbid, cbid);
}

SIM_EXPORT int cuptiEnableDomain(uint32_t enable, struct cupti_subscriber *s, int domain)
{
	return enable_cbids(enable, s, domain, 0, NR_CBIDS - 1);
}

SIM_EXPORT int cuptiEnableAllDomains(uint32_t enable, struct cupti_subscriber *s)
{
	int result = CUPTI_SUCCESS;

	for (int domain = 1; domain < NR_DOMAINS && !result; domain++)
		result = cuptiEnableDomain(enable, s, domain);
	return result;
}

SIM_EXPORT int cuptiGetCallbackState(uint32_t *enable, struct cupti_subscriber *s, int domain,
				     uint32_t cbid)
{
	if (!enable || !s || s != subscriber || domain <= 0 || domain >= NR_DOMAINS ||
	    cbid >= NR_CBIDS)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*enable = s->enabled[domain][cbid];
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiFinalize(void)
{
	if (!sim)
		return CUPTI_SUCCESS;
	if (!in_exit_callback)
		cupti_misuse("cuptiFinalize outside of an API-exit callback");
	if (subscriber)
		cupti_misuse("cuptiFinalize while there is a subscriber");
	cupti_taken("cuptiFinalize while another tool records");
	sim->say("{\"t\":\"cupti\",\"call\":\"cuptiFinalize\",\"time\":%lu}", sim->now_ns());
	__atomic_store_n(&cupti_enabled, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&subscriber, NULL, __ATOMIC_RELEASE);
	nr_enabled = 0;
	sim->set_hooks(NULL);
	cupti_stop_worker();
	return CUPTI_SUCCESS;
}

/* ---- names ---- */

struct named {
	uint32_t cbid;
	const char *name;
};

#define RUNTIME_NAME(fn, number, version) {number, #fn "_v" #version},
#define DRIVER_NAME(fn, number) {number, #fn},
static const struct named runtime_names[] = {
	{0, "INVALID"}, SIM_RUNTIME_CBIDS(RUNTIME_NAME) SIM_RUNTIME_CBIDS_MAJOR(RUNTIME_NAME)};
static const struct named driver_names[] = {
	{0, "INVALID"}, SIM_DRIVER_CBIDS(DRIVER_NAME) SIM_DRIVER_CBIDS_LATER(DRIVER_NAME)};

SIM_EXPORT int cuptiGetCallbackName(int domain, uint32_t cbid, const char **name)
{
	const struct named *names = domain == SIM_RUNTIME ? runtime_names : driver_names;
	size_t nr = domain == SIM_RUNTIME ? sizeof(runtime_names) / sizeof(runtime_names[0])
					  : sizeof(driver_names) / sizeof(driver_names[0]);

	if (!name)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*name = NULL;
	for (size_t i = 0; (domain == SIM_RUNTIME || domain == SIM_DRIVER) && i < nr; i++)
		if (names[i].cbid == cbid)
			*name = names[i].name;
	return *name ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

#define RESULT(name, number) {CUPTI_##name, "CUPTI_" #name},
static const struct {
	int result;
	const char *name;
} results[] = {CUPTI_RESULTS(RESULT)};

SIM_EXPORT int cuptiGetResultString(int result, const char **text)
{
	if (!text)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*text = "<unknown>";
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		if (results[i].result == result) {
			*text = results[i].name;
			return CUPTI_SUCCESS;
		}
	}
	return CUPTI_ERROR_INVALID_PARAMETER;
}

#if SIM_MAJOR >= 13
SIM_EXPORT int cuptiGetErrorMessage(int result, const char **text)
{
	return cuptiGetResultString(result, text);
}
#endif

SIM_EXPORT int cuptiGetLastError(void)
{
	return CUPTI_SUCCESS;
}

/* ---- the rest ---- */

SIM_EXPORT int cuptiSupportedDomains(size_t *nr, int **domains)
{
	static int all[] = {1, 2, 3, 4, 5, 6};

	if (!nr || !domains)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*nr = sizeof(all) / sizeof(all[0]);
	*domains = all;
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiGetContextId(void *context, uint32_t *id)
{
	if (!id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	*id = sim->context_id(context);
	return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT int cuptiGetDeviceId(void *context, uint32_t *id)
{
	if (!id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	*id = sim->context_device(context);
	return *id != UINT32_MAX ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
	if (!id)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	*id = sim->stream_id(context, stream, per_thread);
	return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

SIM_EXPORT int cuptiGetStreamId(void *context, void *stream, uint32_t *id)
{
	return cuptiGetStreamIdEx(context, stream, 0, id);
}

SIM_EXPORT int cuptiDeviceSupported(int device, int *supported)
{
	if (!supported)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*supported = cupti_ready() && device >= 0 && device < sim->nr_devices();
	return CUPTI_SUCCESS;
}

/* Taken down; only the ninth is heeded. */
#define NR_ATTRIBUTES 24
static uint64_t attributes[NR_ATTRIBUTES] = {3 << 20, 8 << 20, 250, [9] = SIM_MAJOR >= 13};

uint64_t cupti_attribute(int attribute)
{
	return attributes[attribute];
}

#if SIM_MAJOR >= 13
/* Of all subscribers together: it is not asked for anything else. */
SIM_EXPORT int cuptiActivityGetEnabledKinds(struct cupti_subscriber *s, int *buffer, uint32_t *size,
					    uint32_t *nr)
{
	if (!nr || s || buffer)
		return CUPTI_ERROR_INVALID_PARAMETER;
	*nr = (uint32_t)__builtin_popcountll(cupti_enabled) +
	      3 * (cupti_settings.other_kinds || cupti_other_tool);
	return CUPTI_SUCCESS;
}
#endif

SIM_EXPORT int cuptiActivityGetAttribute(int attribute, size_t *size, void *value)
{
	if (!size || !value || attribute < 0 || attribute >= NR_ATTRIBUTES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	memcpy(value, &attributes[attribute], *size < 8 ? *size : 8);
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivitySetAttribute(int attribute, size_t *size, void *value)
{
	if (!size || !value || attribute < 0 || attribute >= NR_ATTRIBUTES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return CUPTI_ERROR_NOT_INITIALIZED;
	attributes[attribute] = 0;
	memcpy(&attributes[attribute], value, *size < 8 ? *size : 8);
	return CUPTI_SUCCESS;
}

SIM_EXPORT int cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
	return cupti_ready() ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}

SIM_EXPORT int cuptiActivityEnableLaunchAttributes(uint8_t enable)
{
	return cupti_ready() ? CUPTI_SUCCESS : CUPTI_ERROR_NOT_INITIALIZED;
}
