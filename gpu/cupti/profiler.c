// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls of CUPTI's profiler: what is to be measured on a device (the host API), and the range
 * profiler of its context. What fails is said once.
 */
#include <dlfcn.h>
#include <string.h>

#include "gpu/base/util.h"
#include "gpu/cupti/profiler.h"

#define HOST_LIBRARY "libnvperf_host.so"
#define GONE (-1) /* result of a call that was not made, since the context is no more */
#define LEAVE_MS 500

static struct {
	const struct cupti_functions *f;
	const char **names;
	size_t nr;
	bool initialized, has_host_library;
	uint32_t calling; /* the agent's thread is in a function of the profiler's; a futex */
} shared;

/* ---- saying what failed ---- */

static const char *const names_of_calls[] = {
#define PROFILER_NAME(id, symbol) [PROFILER_CALL_##id] = #symbol,
	PROFILER_FUNCTIONS(PROFILER_NAME)
#undef PROFILER_NAME
};

void profiler__set_state(enum kprof_agent_metrics state)
{
	__atomic_store_n(&gpu_shm()->metrics_state, state, __ATOMIC_RELEASE);
}

/* The first failure of a session is told. Returns false. */
bool profiler__fail(enum kprof_agent_metrics_reason reason, const char *what, const char *more,
		    const char *last)
{
	struct kprof_agent_shm *shm = gpu_shm();
	size_t at;

	if (shm->metrics_reason)
		return false;
	at = gpu_append(shm->metrics_detail, sizeof(shm->metrics_detail), 0, what);
	at = gpu_append(shm->metrics_detail, sizeof(shm->metrics_detail), at, more);
	gpu_append(shm->metrics_detail, sizeof(shm->metrics_detail), at, last);
	__atomic_store_n(&shm->metrics_reason, reason, __ATOMIC_RELEASE);
	profiler__set_state(KPROF_AGENT_METRICS_FAIL);
	return false;
}

static enum kprof_agent_metrics_reason reason_of(int result)
{
	switch (result) {
	case CUPTI_INSUFFICIENT_PRIVILEGES:
	case CUPTI_VIRTUALIZED_INSUFFICIENT_PRIVILEGES:
		return KPROF_AGENT_METRICS_PERMISSION;
	case CUPTI_HARDWARE_BUSY:
		return KPROF_AGENT_METRICS_BUSY;
	default:
		return KPROF_AGENT_METRICS_OTHER;
	}
}

bool profiler__gone(void)
{
	return profiler__fail(KPROF_AGENT_METRICS_CONTEXT,
			      "the program has destroyed its context while it was measured", "",
			      "");
}

static bool failed(enum profiler_call id, int result)
{
	const char *words = NULL;
	char number[24];

	if (result == GONE)
		return profiler__gone();
	if ((id == PROFILER_CALL_HOST || id == PROFILER_CALL_INITIALIZE) &&
	    !shared.has_host_library)
		return profiler__fail(
			KPROF_AGENT_METRICS_LIBRARY, HOST_LIBRARY,
			" cannot be loaded, neither from beside libcupti nor by the loader", "");
	if (!shared.f->result_string || shared.f->result_string(result, &words) != CUPTI_OK ||
	    !words)
		words = gpu_number(number, (uint64_t)(unsigned int)result);
	return profiler__fail(reason_of(result), names_of_calls[id], ": ", words);
}

/* ---- calls of the profiler ---- */

/*
 * A context must not be used once the program destroys it, of which profiler__context_ends() is
 * told. That waits while a call is made here, and no call is made afterwards.
 */
int profiler__call(struct profiler_device *d, enum profiler_call id, void *parameters)
{
	int result = GONE;

	__atomic_store_n(&shared.calling, 1, __ATOMIC_SEQ_CST);
	if (!__atomic_load_n(&d->gone, __ATOMIC_SEQ_CST))
		result = shared.f->profiler[id](parameters);
	__atomic_store_n(&shared.calling, 0, __ATOMIC_SEQ_CST);
	gpu_futex_wake(&shared.calling, false);
	return result;
}

bool profiler__works(struct profiler_device *d, enum profiler_call id, void *parameters)
{
	int result = profiler__call(d, id, parameters);

	return result == CUPTI_OK || failed(id, result);
}

void profiler__context_ends(struct profiler_device *d)
{
	__atomic_store_n(&d->gone, 1, __ATOMIC_SEQ_CST);
	for (int ms = 0; ms < LEAVE_MS && __atomic_load_n(&shared.calling, __ATOMIC_SEQ_CST);
	     ms += 10)
		gpu_futex_wait(&shared.calling, 1, 10, false);
}

/* ---- the host API: what is to be measured ---- */

/*
 * CUPTI opens this library by its bare name, which it finds where it is loaded already. It lies
 * beside libcupti.
 */
static void open_host_library(void)
{
	static struct cuda_process process;
	char path[600];
	char *slash;

	cuda__look(&process);
	gpu_append(path, sizeof(path), 0, process.cupti);
	slash = strrchr(path, '/');
	gpu_append(path, sizeof(path), slash ? (size_t)(slash + 1 - path) : 0, HOST_LIBRARY);
	shared.has_host_library = dlopen(path, RTLD_LAZY | RTLD_LOCAL) ||
				  dlopen(HOST_LIBRARY, RTLD_LAZY | RTLD_LOCAL);
}

static bool initialize(struct profiler_device *d)
{
	struct profiler_initialize p = {.bytes = PROFILER_INITIALIZE};

	if (shared.initialized)
		return true;
	open_host_library();
	shared.initialized = profiler__works(d, PROFILER_CALL_INITIALIZE, &p);
	return shared.initialized;
}

static bool open_host(struct profiler_device *d)
{
	struct profiler_availability a = {.bytes = PROFILER_AVAILABILITY, .context = d->context};
	struct profiler_chip chip = {.bytes = PROFILER_CHIP, .device = d->ordinal};
	struct profiler_host p = {.bytes = PROFILER_HOST, .type = PROFILER_TYPE_RANGE};
	bool ok;

	if (!profiler__works(d, PROFILER_CALL_CHIP, &chip) ||
	    !profiler__works(d, PROFILER_CALL_AVAILABILITY, &a))
		return false;
	d->availability = a.image = gpu_pages(a.image_bytes);
	if (!a.image)
		return profiler__fail(KPROF_AGENT_METRICS_OTHER, "no memory", "", "");
	d->availability_bytes = a.image_bytes;
	p.chip = chip.name;
	p.availability = a.image;
	ok = profiler__works(d, PROFILER_CALL_AVAILABILITY, &a) &&
	     profiler__works(d, PROFILER_CALL_HOST, &p);
	d->host = p.host;
	return ok;
}

static bool known(struct profiler_device *d)
{
	for (size_t i = 0; i < shared.nr; i++) {
		struct profiler_metric p = {
			.bytes = PROFILER_METRIC, .host = d->host, .name = shared.names[i]};
		int result = profiler__call(d, PROFILER_CALL_METRIC, &p);

		if (result == GONE)
			return failed(PROFILER_CALL_METRIC, result);
		if (result != CUPTI_OK)
			return profiler__fail(KPROF_AGENT_METRICS_UNKNOWN,
					      "this device has no metric '", shared.names[i], "'");
	}
	return true;
}

static bool add(struct profiler_device *d)
{
	struct profiler_add p = {
		.bytes = PROFILER_ADD, .host = d->host, .names = shared.names, .nr = shared.nr};
	int result = profiler__call(d, PROFILER_CALL_ADD, &p);

	if (result == CUPTI_INVALID_PARAMETER)
		return profiler__fail(KPROF_AGENT_METRICS_UNKNOWN,
				      "one of the metrics has no such rollup", "", "");
	return result == CUPTI_OK || failed(PROFILER_CALL_ADD, result);
}

static bool one_pass(struct profiler_device *d)
{
	struct profiler_passes p = {
		.bytes = PROFILER_PASSES, .config_bytes = d->config_bytes, .config = d->config};
	char number[24];

	if (!profiler__works(d, PROFILER_CALL_PASSES, &p))
		return false;
	if (p.passes <= 1)
		return true;
	return profiler__fail(KPROF_AGENT_METRICS_PASSES, "to measure them takes ",
			      gpu_number(number, p.passes),
			      " passes over the same work, and there is one");
}

static bool configure(struct profiler_device *d)
{
	struct profiler_config_size size = {.bytes = PROFILER_CONFIG_SIZE, .host = d->host};
	struct profiler_config p = {.bytes = PROFILER_CONFIG, .host = d->host};

	if (!known(d) || !add(d) || !profiler__works(d, PROFILER_CALL_CONFIG_SIZE, &size))
		return false;
	d->config_bytes = p.config_bytes = size.config_bytes;
	d->config = p.config = gpu_pages(size.config_bytes);
	if (!d->config)
		return profiler__fail(KPROF_AGENT_METRICS_OTHER, "no memory", "", "");
	return profiler__works(d, PROFILER_CALL_CONFIG, &p) && one_pass(d);
}

/* ---- the range profiler ---- */

static bool make_room(struct profiler_device *d)
{
	struct profiler_enable enable = {.bytes = PROFILER_ENABLE, .context = d->context};
	struct profiler_data_size size = {.bytes = PROFILER_DATA_SIZE,
					  .names = shared.names,
					  .nr = shared.nr,
					  .ranges = PROFILER_RANGES,
					  .nodes = PROFILER_RANGES};

	if (!profiler__works(d, PROFILER_CALL_ENABLE, &enable))
		return false;
	d->enabled = true;
	d->object = size.object = enable.object;
	if (!profiler__works(d, PROFILER_CALL_DATA_SIZE, &size))
		return false;
	d->data_bytes = size.data_bytes;
	d->data = gpu_pages(size.data_bytes);
	return d->data || profiler__fail(KPROF_AGENT_METRICS_OTHER, "no memory", "", "");
}

bool profiler__push(struct profiler_device *d)
{
	struct profiler_push p = {.bytes = PROFILER_PUSH, .object = d->object};
	char number[24];

	/* Ranges of one name would be one range. */
	p.name = gpu_number(number, d->nr);
	d->begin_ns[d->nr] = gpu_now_ns();
	if (!profiler__works(d, PROFILER_CALL_PUSH, &p))
		return false;
	d->nr++;
	d->pushed = true;
	return true;
}

bool profiler__pop(struct profiler_device *d)
{
	struct profiler_object p = {.bytes = PROFILER_OBJECT, .object = d->object};

	if (!d->pushed)
		return true;
	d->pushed = false;
	if (!profiler__works(d, PROFILER_CALL_POP, &p))
		return false;
	d->end_ns[d->nr - 1] = gpu_now_ns();
	return true;
}

static void note_longest(uint64_t begin_ns)
{
	uint64_t took_ns = gpu_now_ns() - begin_ns;

	if (took_ns > gpu_shm()->metrics_longest_ns)
		gpu_shm()->metrics_longest_ns = took_ns;
}

/* Begins a round of ranges, with the first of them. */
bool profiler__start(struct profiler_device *d)
{
	struct profiler_data data = {.bytes = PROFILER_DATA,
				     .object = d->object,
				     .data_bytes = d->data_bytes,
				     .data = d->data};
	struct profiler_set set = {.bytes = PROFILER_SET,
				   .object = d->object,
				   .config_bytes = d->config_bytes,
				   .config = d->config,
				   .data_bytes = d->data_bytes,
				   .data = d->data,
				   .range = PROFILER_USER_RANGE,
				   .replay = PROFILER_USER_REPLAY,
				   .ranges = PROFILER_RANGES,
				   .levels = 1,
				   .least_level = 1,
				   .level = 1};
	struct profiler_object p = {.bytes = PROFILER_OBJECT, .object = d->object};
	uint64_t begin_ns;

	d->nr = 0;
	if (!profiler__works(d, PROFILER_CALL_DATA, &data) ||
	    !profiler__works(d, PROFILER_CALL_SET, &set))
		return false;
	begin_ns = gpu_now_ns();
	if (!profiler__works(d, PROFILER_CALL_START, &p))
		return false;
	note_longest(begin_ns);
	d->started = true;
	return profiler__push(d);
}

/* ---- the whole ---- */

void profiler__use(const struct cupti_functions *f, const char **names, size_t nr)
{
	memset(&shared, 0, sizeof(shared));
	shared.f = f;
	shared.names = names;
	shared.nr = nr;
}

bool profiler__open(struct profiler_device *d)
{
	return initialize(d) && open_host(d) && configure(d) && make_room(d);
}

void profiler__close(struct profiler_device *d)
{
	struct profiler_object disable = {.bytes = PROFILER_OBJECT, .object = d->object};
	struct profiler_host_end end = {.bytes = PROFILER_HOST_END, .host = d->host};

	if (d->enabled)
		profiler__call(d, PROFILER_CALL_DISABLE, &disable);
	if (d->host)
		profiler__call(d, PROFILER_CALL_HOST_END, &end);
	gpu_pages_free(d->availability, d->availability_bytes);
	gpu_pages_free(d->data, d->data_bytes);
	gpu_pages_free(d->config, d->config_bytes);
	__atomic_store_n(&d->context, NULL, __ATOMIC_RELEASE);
	d->enabled = false;
	d->host = d->object = NULL;
	d->data = d->config = d->availability = NULL;
	d->state = PROFILER_OVER;
}
