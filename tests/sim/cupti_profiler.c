/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: CUPTI's host API of metrics, and its range profiler (CUDA 12.6 and
 * later). A range's values follow from the work that ended in it. Of the errors that the real one
 * was seen to give, those are given that README.md has a knob for.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../gpu/cupti/profiler_abi.h"
#include "cupti.h"

#if SIM_MAJOR >= 13

#define MAX_RANGES 4096
#define AVAILABLE 7 /* each byte of an image of counters */
#define MAX_METRICS 64
#define MAX_DEVICES 8
#define DATA_MAGIC 0x73696d64617461ull

/* ---- metrics ---- */

struct sums { /* of a range */
	uint64_t ns, kernels, warps, busy_ns, bytes;
};

static double duration(const struct sums *s)
{
	return (double)s->ns;
}

static double active(const struct sums *s)
{
	return (double)s->busy_ns;
}

static double warps(const struct sums *s)
{
	return (double)s->warps;
}

static double instructions(const struct sums *s)
{
	return (double)s->warps * 50;
}

static double bytes(const struct sums *s)
{
	return (double)s->bytes;
}

static double rate(const struct sums *s)
{
	return (double)s->bytes * 1e9 / (double)s->ns;
}

/* No number where nothing ran. */
static double of_active(const struct sums *s)
{
	return s->busy_ns ? 100.0 * (double)s->busy_ns / (double)s->busy_ns : NAN;
}

static const struct metric {
	const char *name;
	double (*value)(const struct sums *s);
	unsigned passes;
} metrics[] = {
	{"gpu__time_duration.sum", duration, 1},
	{"sm__cycles_active.avg", active, 1},
	{"sm__warps_launched.sum", warps, 1},
	{"sm__inst_executed.sum", instructions, 1},
	{"dram__bytes.sum", bytes, 1},
	{"dram__bytes.sum.per_second", rate, 1},
	{"sm__warps_active.avg.pct_of_peak_sustained_active", of_active, 1},
	{"sm__throughput.avg.pct_of_peak_sustained_elapsed", active, 8},
};
#define METRICS (sizeof(metrics) / sizeof(metrics[0]))

static const struct metric *find(const char *name)
{
	for (size_t i = 0; i < METRICS; i++)
		if (!strcmp(metrics[i].name, name))
			return &metrics[i];
	return NULL;
}

/* ---- calls ---- */

#define API(name, type)               \
	SIM_EXPORT int name(type *p); \
	SIM_EXPORT int name(type *p)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized;

/* Notes a call that goes wrong, or that takes something to be told. */
static int told(const char *name, int result)
{
	if (sim)
		sim->say("{\"t\":\"cupti\",\"call\":\"%s\",\"result\":%d,\"time\":%lu}", name,
			 result, sim->now_ns());
	return result;
}

static bool wrong(size_t bytes, size_t size, const void *priv)
{
	return bytes != size || priv;
}

API(cuptiProfilerInitialize, struct profiler_initialize)
{
	if (wrong(p->bytes, PROFILER_INITIALIZE, p->priv))
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (!cupti_ready())
		return told("cuptiProfilerInitialize", CUPTI_ERROR_NOT_INITIALIZED);
	initialized = true;
	return told("cuptiProfilerInitialize", CUPTI_SUCCESS);
}

API(cuptiDeviceGetChipName, struct profiler_chip)
{
	if (!initialized) /* the real one was seen to crash */
		cupti_misuse("cuptiDeviceGetChipName before cuptiProfilerInitialize");
	if (wrong(p->bytes, PROFILER_CHIP, p->priv) || !sim ||
	    p->device >= (size_t)sim->nr_devices())
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->name = "SIM100";
	return CUPTI_SUCCESS;
}

static int usable(void *context)
{
	if (!initialized || !sim)
		return CUPTI_ERROR_NOT_INITIALIZED;
	if (!sim->context_id(context)) {
		cupti_misuse("a metric of a context that is no more");
		return CUPTI_ERROR_INVALID_CONTEXT;
	}
	return CUPTI_SUCCESS;
}

API(cuptiProfilerGetCounterAvailability, struct profiler_availability)
{
	int result = wrong(p->bytes, PROFILER_AVAILABILITY, p->priv) ? CUPTI_ERROR_INVALID_PARAMETER
								     : usable(p->context);

	if (!result && !p->image)
		p->image_bytes = 64;
	else if (!result && p->image_bytes < 64)
		result = CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT;
	else if (!result && sim->env("CUPTI_PROFILER_BUSY", 0))
		result = CUPTI_ERROR_HARDWARE_BUSY;
	else if (!result)
		memset(p->image, AVAILABLE, 64);
	return result;
}

/* ---- the host API ---- */

struct host {
	char names[MAX_METRICS][80];
	size_t nr;
	const volatile uint8_t *availability; /* the caller's, which NVIDIA's reads later, too */
};

API(cuptiProfilerHostInitialize, struct profiler_host)
{
	struct host *h;

	if (wrong(p->bytes, PROFILER_HOST, p->priv) || p->type != PROFILER_TYPE_RANGE || !p->chip ||
	    !p->availability)
		return CUPTI_ERROR_INVALID_PARAMETER;
	if (sim->env("CUPTI_PROFILER_NO_HOST", 0))
		return told("cuptiProfilerHostInitialize", CUPTI_ERROR_UNKNOWN);
	p->host = h = calloc(1, sizeof(struct host));
	if (!h)
		return CUPTI_ERROR_OUT_OF_MEMORY;
	h->availability = p->availability;
	return CUPTI_SUCCESS;
}

API(cuptiProfilerHostDeinitialize, struct profiler_host_end)
{
	if (wrong(p->bytes, PROFILER_HOST_END, p->priv))
		return CUPTI_ERROR_INVALID_PARAMETER;
	free(p->host);
	return CUPTI_SUCCESS;
}

API(cuptiProfilerHostGetMetricProperties, struct profiler_metric)
{
	if (wrong(p->bytes, PROFILER_METRIC, p->priv) || !p->host)
		return CUPTI_ERROR_INVALID_PARAMETER;
	return find(p->name) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_METRIC_NAME;
}

API(cuptiProfilerHostConfigAddMetrics, struct profiler_add)
{
	struct host *h = p->host;

	if (wrong(p->bytes, PROFILER_ADD, p->priv) || !h || h->nr + p->nr > MAX_METRICS ||
	    h->availability[63] != AVAILABLE)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->nr; i++) {
		if (!find(p->names[i]))
			return CUPTI_ERROR_INVALID_PARAMETER;
		snprintf(h->names[h->nr++], sizeof(h->names[0]), "%s", p->names[i]);
	}
	return CUPTI_SUCCESS;
}

API(cuptiProfilerHostGetConfigImageSize, struct profiler_config_size)
{
	if (wrong(p->bytes, PROFILER_CONFIG_SIZE, p->priv) || !p->host)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->config_bytes = sizeof(struct host);
	return CUPTI_SUCCESS;
}

API(cuptiProfilerHostGetConfigImage, struct profiler_config)
{
	if (wrong(p->bytes, PROFILER_CONFIG, p->priv) || !p->host ||
	    p->config_bytes < sizeof(struct host))
		return CUPTI_ERROR_INVALID_PARAMETER;
	memcpy(p->config, p->host, sizeof(struct host));
	return CUPTI_SUCCESS;
}

API(cuptiProfilerHostGetNumOfPasses, struct profiler_passes)
{
	const struct host *h = (const void *)p->config;

	if (wrong(p->bytes, PROFILER_PASSES, p->priv) || p->config_bytes < sizeof(struct host))
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->passes = 1;
	for (size_t i = 0; i < h->nr; i++)
		if (find(h->names[i])->passes > p->passes)
			p->passes = find(h->names[i])->passes;
	return CUPTI_SUCCESS;
}

/* ---- the range profiler ---- */

struct range {
	char name[64];
	uint64_t begin_ns, end_ns;
	struct sums sums;
};

struct data { /* the counter data image */
	uint64_t magic;
	size_t max, nr;
	struct range ranges[];
};

struct work {
	uint64_t start_ns, end_ns, warps, bytes;
	bool kernel;
};

static struct profiler { /* of each device, one at a time, as the hardware has it */
	bool enabled, started, set, pushed, automatic;
	void *context;
	uint32_t context_id, device;
	struct data *data;
	size_t data_bytes, max, dropped;
	struct range ranges[MAX_RANGES];
	size_t nr;
	struct work *work;
	size_t nr_work, cap_work;
} all[MAX_DEVICES];

void cupti_profile(const struct sim_activity *a)
{
	struct profiler *r = &all[a->device % MAX_DEVICES];
	struct work *w;

	if (!__atomic_load_n(&r->started, __ATOMIC_ACQUIRE) ||
	    (a->type != SIM_KERNEL && a->type != SIM_COPY && a->type != SIM_SET))
		return;
	pthread_mutex_lock(&lock);
	if (r->started && a->context == r->context_id) {
		if (r->nr_work == r->cap_work) {
			r->cap_work = r->cap_work ? r->cap_work * 2 : 4096;
			r->work = realloc(r->work, r->cap_work * sizeof(*r->work));
		}
		w = &r->work[r->nr_work++];
		*w = (struct work){.start_ns = a->start_ns,
				   .end_ns = a->end_ns,
				   .kernel = a->type == SIM_KERNEL,
				   .bytes = a->bytes};
		if (w->kernel)
			w->warps = (uint64_t)a->grid[0] * a->grid[1] * a->grid[2] *
				   ((a->block[0] * a->block[1] * a->block[2] + 31) / 32);
	}
	pthread_mutex_unlock(&lock);
}

static int mine(const struct profiler *r)
{
	return r >= all && r < all + MAX_DEVICES && r->enabled ? usable(r->context)
							       : CUPTI_ERROR_INVALID_PARAMETER;
}

API(cuptiRangeProfilerEnable, struct profiler_enable)
{
	struct profiler *r;
	int result = wrong(p->bytes, PROFILER_ENABLE, p->priv) ? CUPTI_ERROR_INVALID_PARAMETER
							       : usable(p->context);

	if (!result && sim->env("CUPTI_PROFILER_DENIED", 0))
		result = CUPTI_ERROR_INSUFFICIENT_PRIVILEGES;
	if (!result) {
		r = &all[sim->context_device(p->context) % MAX_DEVICES];
		result = r->enabled ? CUPTI_ERROR_HARDWARE_BUSY : CUPTI_SUCCESS;
	}
	if (!result) {
		memset(r, 0, offsetof(struct profiler, work));
		r->enabled = true;
		r->context = p->context;
		r->context_id = sim->context_id(p->context);
		r->device = sim->context_device(p->context);
		p->object = r;
	}
	return told("cuptiRangeProfilerEnable", result);
}

API(cuptiRangeProfilerDisable, struct profiler_object)
{
	struct profiler *r = p->object;
	int result =
		wrong(p->bytes, PROFILER_OBJECT, p->priv) ? CUPTI_ERROR_INVALID_PARAMETER : mine(r);

	if (r->started)
		cupti_misuse("cuptiRangeProfilerDisable while it is started");
	if (!result)
		r->enabled = false;
	return told("cuptiRangeProfilerDisable", result);
}

API(cuptiRangeProfilerGetCounterDataSize, struct profiler_data_size)
{
	struct profiler *r = p->object;
	if (wrong(p->bytes, PROFILER_DATA_SIZE, p->priv) || mine(r) || p->ranges > MAX_RANGES)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->data_bytes = sizeof(struct data) + p->ranges * sizeof(struct range);
	return CUPTI_SUCCESS;
}

API(cuptiRangeProfilerCounterDataImageInitialize, struct profiler_data)
{
	struct profiler *r = p->object;
	struct data *d = (void *)p->data;

	if (wrong(p->bytes, PROFILER_DATA, p->priv) || mine(r) || p->data_bytes < sizeof(*d))
		return CUPTI_ERROR_INVALID_PARAMETER;
	*d = (struct data){.magic = DATA_MAGIC,
			   .max = (p->data_bytes - sizeof(*d)) / sizeof(struct range)};
	return CUPTI_SUCCESS;
}

API(cuptiRangeProfilerSetConfig, struct profiler_set)
{
	struct profiler *r = p->object;
	struct data *d = (void *)p->data;

	if (wrong(p->bytes, PROFILER_SET, p->priv) || mine(r) || r->started ||
	    p->config_bytes < sizeof(struct host) || d->magic != DATA_MAGIC ||
	    p->replay != PROFILER_USER_REPLAY || p->level != 1 || p->levels != 1 ||
	    p->ranges > d->max)
		return CUPTI_ERROR_INVALID_PARAMETER;
	r->data = d;
	r->data_bytes = p->data_bytes;
	r->max = p->ranges;
	r->automatic = p->range == PROFILER_AUTO_RANGE;
	r->set = true;
	return CUPTI_SUCCESS;
}

API(cuptiRangeProfilerStart, struct profiler_object)
{
	struct profiler *r = p->object;
	struct timespec t = {0};
	int result = wrong(p->bytes, PROFILER_OBJECT, p->priv) || !r->set
			     ? CUPTI_ERROR_INVALID_PARAMETER
			     : mine(r);
	uint64_t ms = sim ? sim->env("CUPTI_PROFILER_START_MS", 0) : 0;

	if (!result) {
		t.tv_sec = (time_t)(ms / 1000);
		t.tv_nsec = (long)(ms % 1000) * 1000000;
		nanosleep(&t, NULL);
		r->nr = r->dropped = r->nr_work = 0;
		r->pushed = false;
		__atomic_store_n(&r->started, true, __ATOMIC_RELEASE);
	}
	return told("cuptiRangeProfilerStart", result);
}

API(cuptiRangeProfilerPushRange, struct profiler_push)
{
	struct profiler *r = p->object;
	int result =
		wrong(p->bytes, PROFILER_PUSH, p->priv) ? CUPTI_ERROR_INVALID_PARAMETER : mine(r);

	if (!result && (!r->started || r->pushed || r->automatic))
		result = CUPTI_ERROR_INVALID_OPERATION;
	if (result)
		return told("cuptiRangeProfilerPushRange", result);
	r->pushed = true;
	if (r->nr == r->max) {
		r->dropped++;
		return CUPTI_SUCCESS;
	}
	r->ranges[r->nr] = (struct range){.begin_ns = sim->now_ns()};
	snprintf(r->ranges[r->nr].name, sizeof(r->ranges[0].name), "%s", p->name);
	r->nr++;
	return CUPTI_SUCCESS;
}

API(cuptiRangeProfilerPopRange, struct profiler_object)
{
	struct profiler *r = p->object;
	int result =
		wrong(p->bytes, PROFILER_OBJECT, p->priv) ? CUPTI_ERROR_INVALID_PARAMETER : mine(r);

	if (!result && (!r->started || !r->pushed))
		result = CUPTI_ERROR_INVALID_OPERATION;
	if (result)
		return told("cuptiRangeProfilerPopRange", result);
	r->pushed = false;
	r->ranges[r->nr - 1].end_ns = sim->now_ns();
	return CUPTI_SUCCESS;
}

API(cuptiRangeProfilerStop, struct profiler_stop)
{
	struct profiler *r = p->object;
	int result =
		wrong(p->bytes, PROFILER_STOP, p->priv) ? CUPTI_ERROR_INVALID_PARAMETER : mine(r);

	if (!result && !r->started)
		result = CUPTI_ERROR_INVALID_OPERATION;
	if (!result) {
		sim->drain();
		__atomic_store_n(&r->started, false, __ATOMIC_RELEASE);
		p->all = 1;
	}
	return told("cuptiRangeProfilerStop", result);
}

/* ---- values ---- */

static int by_start(const void *a, const void *b)
{
	const struct work *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static void add_work(struct sums *sums, const struct work *w)
{
	sums->kernels += w->kernel;
	sums->warps += w->warps;
	sums->busy_ns += w->kernel ? w->end_ns - w->start_ns : 0;
	sums->bytes += w->kernel ? 0 : w->bytes;
}

static void sum_up(struct profiler *p, struct range *r)
{
	r->sums.ns = r->end_ns - r->begin_ns;
	for (size_t i = 0; i < p->nr_work; i++)
		if (p->work[i].end_ns >= r->begin_ns && p->work[i].end_ns < r->end_ns)
			add_work(&r->sums, &p->work[i]);
	sim->say("{\"t\":\"range\",\"device\":%u,\"context\":%u,\"begin\":%lu,\"end\":%lu,"
		 "\"kernels\":%lu,\"warps\":%lu,\"busy\":%lu,\"bytes\":%lu}",
		 p->device, p->context_id, r->begin_ns, r->end_ns, r->sums.kernels, r->sums.warps,
		 r->sums.busy_ns, r->sums.bytes);
}

/* A range for each kernel, in the order in which they ran. */
static void each_kernel(struct profiler *p)
{
	qsort(p->work, p->nr_work, sizeof(*p->work), by_start);
	for (size_t i = 0; i < p->nr_work; i++) {
		const struct work *w = &p->work[i];
		struct range *r = &p->ranges[p->nr];

		if (!w->kernel)
			continue;
		if (p->nr == p->max) {
			p->dropped++;
			continue;
		}
		*r = (struct range){.begin_ns = w->start_ns, .end_ns = w->end_ns};
		snprintf(r->name, sizeof(r->name), "%zu", p->nr++);
		r->sums.ns = w->end_ns - w->start_ns;
		add_work(&r->sums, w);
	}
}

API(cuptiRangeProfilerDecodeData, struct profiler_decode)
{
	struct profiler *r = p->object;
	int result =
		wrong(p->bytes, PROFILER_DECODE, p->priv) ? CUPTI_ERROR_INVALID_PARAMETER : mine(r);

	if (!result && r->started)
		result = CUPTI_ERROR_INVALID_OPERATION;
	if (result)
		return told("cuptiRangeProfilerDecodeData", result);
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < r->nr && !r->automatic; i++)
		sum_up(r, &r->ranges[i]);
	if (r->automatic)
		each_kernel(r);
	pthread_mutex_unlock(&lock);
	memcpy(r->data->ranges, r->ranges, r->nr * sizeof(struct range));
	r->data->nr = r->nr;
	p->dropped = r->dropped;
	return told("cuptiRangeProfilerDecodeData", CUPTI_SUCCESS);
}

static const struct data *data_of(const uint8_t *image, size_t bytes)
{
	const struct data *d = (const void *)image;

	return d && bytes >= sizeof(*d) && d->magic == DATA_MAGIC ? d : NULL;
}

API(cuptiRangeProfilerGetCounterDataInfo, struct profiler_info)
{
	const struct data *d = data_of(p->data, p->data_bytes);

	if (wrong(p->bytes, PROFILER_INFO, p->priv) || !d)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->nr = d->nr;
	return CUPTI_SUCCESS;
}

API(cuptiRangeProfilerCounterDataGetRangeInfo, struct profiler_range)
{
	const struct data *d = data_of(p->data, p->data_bytes);

	if (wrong(p->bytes, PROFILER_RANGE, p->priv) || !d || p->range >= d->nr || !p->delimiter)
		return CUPTI_ERROR_INVALID_PARAMETER;
	p->name = d->ranges[p->range].name;
	return CUPTI_SUCCESS;
}

API(cuptiProfilerHostEvaluateToGpuValues, struct profiler_evaluate)
{
	const struct data *d = data_of(p->data, p->data_bytes);

	if (wrong(p->bytes, PROFILER_EVALUATE, p->priv) || !p->host || !d || p->range >= d->nr)
		return CUPTI_ERROR_INVALID_PARAMETER;
	for (size_t i = 0; i < p->nr; i++) {
		const struct metric *metric = find(p->names[i]);

		if (!metric)
			return CUPTI_ERROR_INVALID_METRIC_NAME;
		/* A range that was left open has no values. */
		p->values[i] =
			d->ranges[p->range].end_ns ? metric->value(&d->ranges[p->range].sums) : NAN;
	}
	return CUPTI_SUCCESS;
}
#else

void cupti_profile(const struct sim_activity *a)
{
}
#endif
