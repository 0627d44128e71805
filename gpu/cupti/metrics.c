// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hardware metrics, by CUPTI's range profiler: what the device did in one range of time after the
 * other, in the primary context of each device that the process uses.
 *
 * All of it is done by the agent's thread. The work is not repeated, so a set of metrics must be
 * had in one pass. A range is pushed and popped; values can be had after Stop, so PROFILER_RANGES
 * ranges make a round, which is stopped, read and started again. To start takes CUPTI some 150 ms
 * and about 1 ms more for each range, for which launches wait: so there are not many.
 */
#include <string.h>

#include "gpu/base/batch.h"
#include "gpu/base/util.h"
#include "gpu/cupti/metrics.h"
#include "gpu/cupti/profiler.h"

#define DEVICES 16
#define TICK_NS UINT64_C(100000000) /* how often the agent's thread comes here */
#define NAME "__profile__"          /* Kineto's name of such a range */

static struct {
	bool on;
	const struct cupti_functions *f;
	const char *names[KPROF_AGENT_METRICS];
	size_t nr;
	char text[KPROF_AGENT_METRICS_BYTES]; /* the names, each with a NUL */
	uint64_t range_ns;
	struct profiler_device devices[DEVICES];
	struct cuda_primary driver;
} m;

/* ---- values ---- */

static bool put(struct profiler_device *d, size_t index)
{
	struct profiler_range range = {.bytes = PROFILER_RANGE,
				       .data = d->data,
				       .data_bytes = d->data_bytes,
				       .range = index,
				       .delimiter = "/"};
	struct profiler_evaluate p = {.bytes = PROFILER_EVALUATE,
				      .host = d->host,
				      .data = d->data,
				      .data_bytes = d->data_bytes,
				      .range = index,
				      .names = m.names,
				      .nr = m.nr};
	struct kprof_agent_range out =
		BATCH_ACTIVITY(struct kprof_agent_range, KPROF_AGENT_RANGE, batch__name_of(NAME));
	double values[KPROF_AGENT_METRICS] = {0};
	unsigned int nr = 0;

	p.values = values;
	if (!profiler__works(d, PROFILER_CALL_RANGE, &range) ||
	    !profiler__works(d, PROFILER_CALL_EVALUATE, &p))
		return false;
	for (const char *c = range.name; c && *c >= '0' && *c <= '9' && nr < PROFILER_RANGES; c++)
		nr = nr * 10 + (unsigned int)(*c - '0');
	if (nr >= d->nr || !d->end_ns[nr])
		return false;
	out.a.type = KPROF_ACTIVITY_CUDA_PROFILER_RANGE;
	out.a.runtime = KPROF_AGENT_CUDA;
	out.a.device = d->ordinal;
	out.a.context = d->context_id;
	out.a.stream = UINT32_MAX;
	out.a.start_ns = d->begin_ns[nr];
	out.a.end_ns = d->end_ns[nr];
	out.nr = (kprof_u32)m.nr;
	out.a.h.size =
		(kprof_u16)(offsetof(struct kprof_agent_range, values) + m.nr * sizeof(values[0]));
	memcpy(out.values, values, sizeof(values));
	return batch__append(&out);
}

/* Reads the values of a round that was stopped. Returns of how many ranges. */
static size_t read_values(struct profiler_device *d)
{
	struct profiler_decode decode = {.bytes = PROFILER_DECODE, .object = d->object};
	struct profiler_info info = {
		.bytes = PROFILER_INFO, .data = d->data, .data_bytes = d->data_bytes};
	size_t nr = 0;

	if (!profiler__works(d, PROFILER_CALL_DECODE, &decode) ||
	    !profiler__works(d, PROFILER_CALL_INFO, &info))
		return 0;
	for (size_t i = 0; i < info.nr && i < PROFILER_RANGES; i++)
		nr += put(d, i);
	return nr;
}

/* Ends a round. */
static bool stop(struct profiler_device *d)
{
	struct profiler_stop p = {.bytes = PROFILER_STOP, .object = d->object};
	struct kprof_agent_shm *shm = gpu_shm();
	size_t got = 0;
	bool ok;

	if (!d->started)
		return true;
	d->started = false;
	ok = profiler__pop(d);
	ok = profiler__works(d, PROFILER_CALL_STOP, &p) && ok;
	if (ok)
		got = read_values(d);
	shm->metrics_ranges += got;
	shm->metrics_lost += d->nr > got ? d->nr - got : 0;
	memset(d->end_ns, 0, sizeof(d->end_ns));
	d->nr = 0;
	return ok;
}

/* ---- devices ---- */

static void close_device(struct profiler_device *d)
{
	stop(d);
	profiler__close(d);
}

/*
 * The primary context, if the program has made one. It is not kept alive: the program is to be able
 * to end it, and metrics__context_ends() is told.
 */
static void *context_of(int device)
{
	unsigned int flags = 0;
	void *context = NULL;
	int active = 0;

	if (m.driver.state(device, &flags, &active) || !active || m.driver.retain(&context, device))
		return NULL;
	m.driver.release(device);
	return context;
}

static void open_device(struct profiler_device *d, unsigned int ordinal, void *context)
{
	memset(d, 0, sizeof(*d));
	d->state = PROFILER_OPEN;
	d->ordinal = ordinal;
	__atomic_store_n(&d->context, context, __ATOMIC_SEQ_CST);
	if (m.f->context_id)
		m.f->context_id(context, &d->context_id);
	if (profiler__open(d) && profiler__start(d)) {
		if (!gpu_shm()->metrics_reason)
			profiler__set_state(KPROF_AGENT_METRICS_MEASURE);
	} else {
		close_device(d);
	}
}

/* Begins with one device that the program has begun to use: to start takes a while. */
static void look_for_device(void)
{
	int nr = 0, device;

	if (m.driver.count(&nr))
		return;
	for (int i = 0; i < nr && i < DEVICES; i++) {
		void *context = m.devices[i].state == PROFILER_UNUSED && !m.driver.get(&device, i)
					? context_of(device)
					: NULL;

		if (context) {
			open_device(&m.devices[i], (unsigned int)i, context);
			return;
		}
	}
}

/* Ends the range, if it has lasted for long enough, and begins the next. */
static void go_on(struct profiler_device *d)
{
	bool ok;

	if (__atomic_load_n(&d->gone, __ATOMIC_SEQ_CST))
		ok = profiler__gone();
	else if (gpu_now_ns() - d->begin_ns[d->nr - 1] + TICK_NS / 2 < m.range_ns)
		return;
	else if (d->nr < PROFILER_RANGES)
		ok = profiler__pop(d) && profiler__push(d);
	else
		ok = stop(d) && profiler__start(d);
	if (!ok)
		close_device(d);
}

/* ---- a session ---- */

static void read_names(const struct kprof_agent_shm *shm)
{
	bool in_name = false;

	memcpy(m.text, shm->metrics, sizeof(m.text));
	m.text[sizeof(m.text) - 1] = '\0';
	m.nr = 0;
	for (char *c = m.text; *c; c++) {
		if (*c == ',') {
			*c = '\0';
			in_name = false;
		} else if (!in_name && m.nr < KPROF_AGENT_METRICS) {
			m.names[m.nr++] = c;
			in_name = true;
		}
	}
}

static bool has_functions(const struct cupti_functions *f)
{
	for (size_t i = 0; i < PROFILER_CALLS; i++)
		if (!f->profiler[i])
			return false;
	return f->enable_callback;
}

void metrics__start(const struct cuda_process *p, const struct cupti_functions *f, void *subscriber)
{
	struct kprof_agent_shm *shm = gpu_shm();
	int result;

	memset(&m, 0, sizeof(m));
	memset(shm->metrics_detail, 0, sizeof(shm->metrics_detail));
	shm->metrics_reason = KPROF_AGENT_METRICS_OK;
	shm->metrics_ranges = shm->metrics_lost = shm->metrics_longest_ns = 0;
	profiler__set_state(KPROF_AGENT_METRICS_NONE);
	if (!(shm->options & KPROF_AGENT_OPT_METRICS))
		return;
	profiler__set_state(KPROF_AGENT_METRICS_WAIT);
	m.f = f;
	m.range_ns = shm->metrics_range_ns;
	read_names(shm);
	profiler__use(f, m.names, m.nr);
	if (!has_functions(f)) {
		profiler__fail(KPROF_AGENT_METRICS_OLD, "this libcupti has no range profiler", "",
			       "");
		return;
	}
	result = f->enable_callback(1, subscriber, CUPTI_RESOURCE, CUPTI_CONTEXT_ENDS);
	if (result != CUPTI_OK || !cuda__primary(p, &m.driver) || !m.nr)
		profiler__fail(
			KPROF_AGENT_METRICS_OTHER,
			"CUPTI does not say when a context is destroyed, or the driver which there are",
			"", "");
	else
		m.on = true;
}

void metrics__tick(void)
{
	if (!m.on)
		return;
	for (size_t i = 0; i < DEVICES; i++)
		if (m.devices[i].state == PROFILER_OPEN)
			go_on(&m.devices[i]);
	look_for_device();
}

void metrics__stop(void)
{
	if (!m.on)
		return;
	for (size_t i = 0; i < DEVICES; i++)
		if (m.devices[i].state == PROFILER_OPEN)
			close_device(&m.devices[i]);
	m.on = false;
}

void metrics__forget(void)
{
	memset(&m, 0, sizeof(m));
}

void metrics__context_ends(void *context)
{
	for (size_t i = 0; i < DEVICES && m.on; i++)
		if (context && __atomic_load_n(&m.devices[i].context, __ATOMIC_ACQUIRE) == context)
			profiler__context_ends(&m.devices[i]);
}
