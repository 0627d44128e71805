/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: libcuda.so.1: its life, its calls, and what the other libraries get of
 * it.
 */
#include "driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

static bool ready; /* written once */
static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_correlation = 1;
static _Thread_local struct sim_call *current;
static _Thread_local uint32_t tid;

/* ---- calls ---- */

struct sim_call *sim_current(void)
{
	return current;
}

bool sim_ready(void)
{
	return ready && !sim_engine__forked();
}

uint32_t sim_correlation(void)
{
	struct sim_call *c = current;

	while (c && c->parent)
		c = c->parent;
	return c ? c->correlation : 0;
}

/* 0 means "none": it is skipped when the numbers start anew. */
static uint32_t new_correlation(void)
{
	uint32_t n = __atomic_fetch_add(&next_correlation, 1, __ATOMIC_RELAXED);

	return n ? n : new_correlation();
}

static uint32_t this_tid(void)
{
	if (!tid)
		tid = (uint32_t)syscall(SYS_gettid);
	return tid;
}

void sim_enter(struct sim_call *call, enum sim_domain domain, uint32_t cbid, const char *name,
	       const void *params)
{
	const struct sim_hooks *hooks = sim_engine__hooks();
	struct sim_context *c = sim_context__current();

	*call = (struct sim_call){
		.domain = domain, .cbid = cbid, .name = name, .params = params, .parent = current};
	call->correlation =
		current && !sim_settings.own_correlation ? current->correlation : new_correlation();
	call->context = c;
	call->context_id = c ? c->id : 0;
	current = call;
	call->start_ns = sim_now();
	if (hooks)
		hooks->enter(call);
	if (sim_settings.api_ns)
		while (sim_now() < call->start_ns + sim_settings.api_ns)
			;
}

static void say_call(const struct sim_call *call, const char *args, va_list list)
{
	char text[2048] = "";

	if (args)
		vsnprintf(text, sizeof(text), args, list);
	truth__say(
		"{\"t\":\"api\",\"domain\":\"%s\",\"name\":\"%s\",\"cbid\":%u,\"tid\":%u,\"start\":%lu,\"end\":%lu,"
		"\"corr\":%u,\"result\":%d,\"parent\":%s%s%s,\"cupti\":%s,\"args\":{%s}}",
		call->domain == SIM_RUNTIME ? "runtime" : "driver", call->name, call->cbid,
		this_tid(), call->start_ns, call->end_ns, call->correlation, call->result,
		call->parent ? "\"" : "", call->parent ? call->parent->name : "null",
		call->parent ? "\"" : "", call->recorded ? "true" : "false", text);
}

static int leave(struct sim_call *call, int result, const char *args, va_list list)
{
	const struct sim_hooks *hooks = sim_engine__hooks();

	call->result = result;
	call->end_ns = sim_now();
	if (hooks)
		hooks->exit(call);
	if (truth__on())
		say_call(call, args, list);
	current = call->parent;
	return result;
}

int sim_leave(struct sim_call *call, int result, const char *args, ...)
{
	va_list list;

	va_start(list, args);
	leave(call, result, args, list);
	va_end(list);
	return result;
}

/* KPROF_SIM_FAIL=name:n:error: the nth call (from 1) of a function fails. */
static int ordered_failure(const char *name)
{
	static unsigned calls;
	const char *order = getenv("KPROF_SIM_FAIL");
	size_t len = strlen(name);
	char *end;

	if (!order || strncmp(order, name, len) || order[len] != ':')
		return 0;
	if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) != strtoul(order + len + 1, &end, 10))
		return 0;
	return *end == ':' ? atoi(end + 1) : SIM_UNKNOWN_ERROR;
}

/* A tool's entry point is called while cuInit is at work: the driver is of no use yet. */
static bool in_init(const struct sim_call *call)
{
	for (call = call->parent; call; call = call->parent)
		if (call->domain == SIM_DRIVER && call->cbid == SIM_CBID_cuInit)
			return true;
	return false;
}

int sim_begin(struct sim_call *call, const struct sim_api *api)
{
	sim_enter(call, SIM_DRIVER, api->cbid, api->name, NULL);
	if (!ready || sim_engine__forked())
		return SIM_NOT_INITIALIZED;
	if (in_init(call)) {
		truth__say("{\"t\":\"misuse\",\"what\":\"%s inside cuInit\",\"time\":%lu}",
			   api->name, sim_now());
		return SIM_NOT_INITIALIZED;
	}
	return ordered_failure(api->name);
}

/* ---- life ---- */

static void make_devices(void)
{
	sim_nr_devices = (int)sim_env("DEVICES", 1);
	if (sim_nr_devices > SIM_MAX_DEVICES)
		sim_nr_devices = SIM_MAX_DEVICES;
	for (int i = 0; i < sim_nr_devices; i++) {
		struct sim_device *d = &sim_devices[i];

		d->ordinal = i;
		snprintf(d->name, sizeof(d->name), "Simulated GPU %d", i);
		d->memory_bytes = sim_env("MEMORY_MB", 16384) << 20;
		truth__say("{\"t\":\"device\",\"id\":%d,\"name\":\"%s\",\"memory\":%lu}", i,
			   d->name, d->memory_bytes);
	}
}

/* What the real driver does for tools: loads what CUDA_INJECTION64_PATH names. */
static void load_injection(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *lib = path && *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*initialize)(void);

	if (!lib) {
		if (path && *path)
			truth__say("{\"t\":\"injection\",\"path\":\"%s\",\"loaded\":false}", path);
		return;
	}
	*(void **)&initialize = dlsym(lib, "InitializeInjection");
	sim_table.initializing = true;
	truth__say("{\"t\":\"injection\",\"path\":\"%s\",\"loaded\":true,\"result\":%d}", path,
		   initialize ? initialize() : -1);
	usleep((unsigned int)sim_env("CUPTI_LATE_START", 0) * 1000); /* cuInit has more to do */
	sim_table.initializing = false;
}

static int initialize(void)
{
	bool first;

	if (sim_engine__forked())
		return SIM_NOT_INITIALIZED;
	if (sim_env("NO_DEVICE", 0) || !sim_env("DEVICES", 1))
		return SIM_NO_DEVICE;
	pthread_mutex_lock(&init_lock);
	first = !ready;
	if (first) {
		make_devices();
		if (sim_engine__start()) {
			pthread_mutex_unlock(&init_lock);
			return SIM_OUT_OF_MEMORY;
		}
		ready = true;
	}
	pthread_mutex_unlock(&init_lock);
	if (first)
		load_injection();
	return 0;
}

static int init(const struct sim_api *api, unsigned flags)
{
	struct sim_call call;
	int err;

	sim_enter(&call, SIM_DRIVER, api->cbid, api->name, NULL);
	err = flags ? SIM_INVALID_VALUE : initialize();
	return sim_leave(&call, err, NULL);
}
SIM_API(cuInit, (unsigned int flags), init(&api, flags))

static void say_process(void)
{
	truth__say("{\"t\":\"process\",\"pid\":%d,\"parent\":%d,\"driver\":%d,\"time\":%lu}",
		   getpid(), getppid(), sim_table.driver_version, sim_now());
}

static void in_child(void)
{
	tid = 0; /* the only thread's, and another number now */
	sim_engine__in_child();
	truth__open();
	say_process();
}

__attribute__((constructor)) static void at_load(void)
{
	sim_table.driver_version = (int)sim_env("DRIVER_VERSION", 13020);
	sim_read_settings();
	next_correlation = (uint32_t)sim_env("CORRELATION", 1);
	pthread_atfork(NULL, NULL, in_child);
	truth__open();
	say_process();
}

__attribute__((destructor)) static void at_exit(void)
{
	sim_engine__stop();
	truth__say("{\"t\":\"exit\",\"time\":%lu}", sim_now());
	truth__close();
}

/* ---- the table ---- */

static int table_leave(struct sim_call *call, int result, const char *args, ...)
{
	va_list list;

	va_start(list, args);
	leave(call, result, args, list);
	va_end(list);
	return result;
}

static int nr_devices(void)
{
	return sim_nr_devices;
}

static struct sim_device_info device(int ordinal)
{
	const struct sim_device *d = &sim_devices[ordinal];
	struct sim_device_info info = {
		.id = (uint32_t)ordinal, .name = d->name, .memory_bytes = d->memory_bytes};

	memcpy(info.uuid.bytes, "simulated GPU  ", 16);
	info.uuid.bytes[15] = (char)ordinal;
	return info;
}

static void each_context(void (*fn)(uint32_t, uint32_t, uint32_t))
{
	for (struct sim_context *c = __atomic_load_n(&sim_contexts, __ATOMIC_ACQUIRE); c;
	     c = c->next)
		if (!c->dead)
			fn(c->id, (uint32_t)c->device->ordinal, c->legacy->id);
}

static uint32_t stream_id(CUcontext context, CUstream stream, bool per_thread)
{
	struct sim_context *before = sim_context__current();
	struct sim_stream *s;

	if (context)
		sim_context__set_current(context);
	s = sim_stream__find(stream, per_thread);
	sim_context__set_current(before);
	return s ? s->id : 0;
}

static uint32_t context_id(CUcontext context)
{
	struct sim_context *c = sim_context__valid(context);

	return c ? c->id : 0;
}

static uint32_t context_device(CUcontext context)
{
	struct sim_context *c = sim_context__valid(context);

	return c ? (uint32_t)c->device->ordinal : UINT32_MAX;
}

struct sim_table sim_table = {
	.size = sizeof(struct sim_table),
	.enter = sim_enter,
	.exit = table_leave,
	.set_hooks = sim_engine__set_hooks,
	.now_ns = sim_now,
	.ready = sim_ready,
	.drain = sim_engine__drain,
	.say = truth__say,
	.env = sim_env,
	.nr_devices = nr_devices,
	.device = device,
	.device_attribute = sim_context__attribute,
	.each_context = each_context,
	.current = sim_current,
	.stream_id = stream_id,
	.context_id = context_id,
	.context_device = context_device,
};

SIM_EXPORT int cuGetExportTable(const void **table, const struct sim_uuid *id)
{
	if (!table || !id)
		return SIM_INVALID_VALUE;
	if (memcmp(id->bytes, SIM_TABLE_UUID_BYTES, 16))
		return SIM_NOT_FOUND;
	*table = &sim_table;
	return 0;
}

/* ---- by name ---- */

/* This library, however it was opened. */
static void *self(void)
{
	static void *handle;
	Dl_info info;

	if (!handle && dladdr((void *)&sim_table, &info))
		handle = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
	return handle;
}

/* The newest of a function, as the real one finds it for a new enough version. */
static void *find_symbol(const char *symbol, bool per_thread)
{
	static const char *const versions[] = {"_v2", ""};
	static const char *const twins[] = {"_ptsz", "_ptds", ""};
	char name[128];

	for (int t = per_thread ? 0 : 2; t < 3; t++) {
		for (int v = 0; v < 2; v++) {
			void *p;

			snprintf(name, sizeof(name), "%s%s%s", symbol, versions[v], twins[t]);
			p = self() ? dlsym(self(), name) : NULL;
			if (p)
				return p;
		}
	}
	return NULL;
}

#define PROC_PER_THREAD 2u

SIM_EXPORT int cuGetProcAddress_v2(const char *symbol, void **fn, int version, uint64_t flags,
				   int *status)
{
	if (!symbol || !fn)
		return SIM_INVALID_VALUE;
	*fn = find_symbol(symbol, flags & PROC_PER_THREAD);
	if (status)
		*status = *fn ? 0 : 1; /* CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND */
	return *fn ? 0 : SIM_NOT_FOUND;
}

SIM_EXPORT int cuGetProcAddress(const char *symbol, void **fn, int version, uint64_t flags)
{
	return cuGetProcAddress_v2(symbol, fn, version, flags, NULL);
}
