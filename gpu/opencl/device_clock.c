// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each device's clock. Best is a driver that can read the clock (clGetDeviceAndHostTimer, OpenCL
 * 2.1). Else commands tell: each was queued between the begin and the end of its call. If the
 * command's time was shown by a clock of the host between the two, that is the device's clock
 * (PoCL: CLOCK_MONOTONIC_RAW). Else the begin and end of calls are used as pairs with a large
 * width.
 */
#include "gpu/base/batch.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"
#include "gpu/opencl/opencl.h"

#define PAIR_EVERY_NS 1000000000ull
#define PAIR_TRIES 9
#define ROUNDED_NS 1000 /* some drivers count in microseconds */
/* so many calls that fit no clock of the host show that the device has a clock of its own */
#define STRANGE_CALLS 3

enum { HOST_MONOTONIC, HOST_RAW, HOST_REALTIME, HOST_BOOTTIME };
static const clockid_t host_ids[OCL_HOST_CLOCKS] = {
	[HOST_MONOTONIC] = CLOCK_MONOTONIC,
	[HOST_RAW] = CLOCK_MONOTONIC_RAW,
	[HOST_REALTIME] = CLOCK_REALTIME,
	[HOST_BOOTTIME] = CLOCK_BOOTTIME,
};
static struct gpu_clock host_maps[OCL_HOST_CLOCKS];
static bool host_used[OCL_HOST_CLOCKS];

void ocl_host_times__read(struct ocl_host_times *t)
{
	for (int i = 0; i < OCL_HOST_CLOCKS; i++)
		t->ns[i] = gpu_clock_ns(host_ids[i]);
}

static void report_pair(const struct gpu_clock_pair *pair)
{
	struct kprof_agent_clock_pair r =
		BATCH_RECORD(struct kprof_agent_clock_pair, KPROF_AGENT_CLOCK, 0);

	if (!__atomic_load_n(&ocl_session, __ATOMIC_RELAXED))
		return;
	r.mono_ns = pair->mono_ns;
	r.device_ns = pair->device_ns;
	r.width_ns = pair->width_ns;
	batch__append(&r);
}

static bool read_host(void *ctx, uint64_t *device_ns)
{
	*device_ns = gpu_clock_ns(*(const clockid_t *)ctx);
	return true;
}

void ocl_clock__read_hosts(void)
{
	struct gpu_clock_pair pair = {0};

	for (int i = HOST_RAW; i < OCL_HOST_CLOCKS; i++) {
		gpu_clock__tightest(read_host, (void *)&host_ids[i], PAIR_TRIES, &pair);
		gpu_clock__add(&host_maps[i], &pair);
		if (__atomic_load_n(&host_used[i], __ATOMIC_RELAXED))
			report_pair(&pair);
	}
}

static bool read_device(void *ctx, uint64_t *device_ns)
{
	ocl_device_timer_fn *timer = (ocl_device_timer_fn *)ocl_next[OCL_clGetDeviceAndHostTimer];
	uint64_t host;

	return timer && timer(ctx, device_ns, &host) == OCL_SUCCESS && *device_ns;
}

/* Only one thread adds pairs at a time. Another thread drops its pair, since there will be more. */
static bool begin_adding(struct ocl_clock *c)
{
	return !__atomic_exchange_n(&c->adding, 1, __ATOMIC_ACQUIRE);
}

static void end_adding(struct ocl_clock *c)
{
	__atomic_store_n(&c->adding, 0, __ATOMIC_RELEASE);
}

static void add(struct ocl_clock *c, const struct gpu_clock_pair *pair)
{
	gpu_clock__add(&c->map, pair);
	c->last_pair_ns = pair->mono_ns;
	report_pair(pair);
}

void ocl_clock__read_device(struct ocl_clock *c, ocl_device device)
{
	struct gpu_clock_pair pair = {0};

	if (c->source != OCL_CLOCK_TIMER || !begin_adding(c))
		return;
	if (gpu_clock__tightest(read_device, device, PAIR_TRIES, &pair))
		add(c, &pair);
	end_adding(c);
}

bool ocl_clock__converts(const struct ocl_clock *c)
{
	return c->source != OCL_CLOCK_HOST || c->host != HOST_MONOTONIC;
}

static void is(struct ocl_clock *c, enum ocl_clock_source source)
{
	__atomic_store_n(&c->source, (uint32_t)source, __ATOMIC_RELEASE);
	if (ocl_clock__converts(c) && gpu_shm())
		gpu_shm()->clock = KPROF_AGENT_CLOCK_CONVERTED;
}

void ocl_clock__init(struct ocl_clock *c, ocl_device device)
{
	struct gpu_clock_pair pair = {0};

	if (!gpu_clock__tightest(read_device, device, PAIR_TRIES, &pair))
		return;
	add(c, &pair);
	is(c, OCL_CLOCK_TIMER);
}

bool ocl_clock__known(const struct ocl_clock *c)
{
	return __atomic_load_n(&c->source, __ATOMIC_ACQUIRE) != OCL_CLOCK_UNKNOWN;
}

/* The host's clocks that fit this command, as bits 1 << HOST_*. */
static unsigned int fitting(const struct ocl_moment *m)
{
	unsigned int fit = 0;

	for (int i = 0; i < OCL_HOST_CLOCKS; i++)
		if (m->queued + ROUNDED_NS >= m->before.ns[i] &&
		    m->queued <= m->after.ns[i] + ROUNDED_NS)
			fit |= 1u << i;
	/*
	 * Prefer CLOCK_MONOTONIC: until the machine is first suspended others show the same time.
	 */
	if (fit & 1u << HOST_MONOTONIC)
		fit &= ~(1u << HOST_BOOTTIME);
	return fit;
}

static void learn_host(struct ocl_clock *c, const struct ocl_moment *m)
{
	unsigned int fit = m->before.ns[0] ? fitting(m) : 0;
	uint32_t host = fit ? (uint32_t)__builtin_ctz(fit) : 0;

	/* no times were read, since the clock was known when the call was made */
	if (!m->before.ns[0])
		return;
	if (!fit) {
		if (__atomic_add_fetch(&c->strange, 1, __ATOMIC_RELAXED) == STRANGE_CALLS)
			is(c, OCL_CLOCK_BRACKET);
		return;
	}
	/*
	 * Soon after boot two of these clocks show nearly the same time, and drift apart later.
	 * Until then the first one will do.
	 */
	__atomic_store_n(&c->host, host, __ATOMIC_RELAXED);
	__atomic_store_n(&host_used[host], true, __ATOMIC_RELAXED);
	if (!(fit & (fit - 1)))
		is(c, OCL_CLOCK_HOST);
}

static void learn_bracket(struct ocl_clock *c, const struct ocl_moment *m)
{
	struct gpu_clock_pair pair = {m->begin_ns + (m->end_ns - m->begin_ns) / 2, m->queued,
				      m->end_ns - m->begin_ns};

	if (!begin_adding(c))
		return;
	if (!c->best.mono_ns || pair.width_ns < c->best.width_ns)
		c->best = pair;
	if (!gpu_clock__ready(&c->map) || pair.mono_ns - c->last_pair_ns > PAIR_EVERY_NS) {
		add(c, &c->best);
		c->best.mono_ns = 0;
	}
	end_adding(c);
}

void ocl_clock__learn(struct ocl_clock *c, const struct ocl_moment *m)
{
	if (!ocl_clock__known(c))
		learn_host(c, m);
	if (c->source == OCL_CLOCK_BRACKET || (!ocl_clock__known(c) && c->strange))
		learn_bracket(c, m);
}

uint64_t ocl_clock__to_mono(const struct ocl_clock *c, uint64_t device_ns)
{
	uint32_t host = __atomic_load_n(&c->host, __ATOMIC_RELAXED);

	if (gpu_clock__ready(&c->map))
		return gpu_clock__to_mono(&c->map, device_ns);
	return host == HOST_MONOTONIC ? device_ns : gpu_clock__to_mono(&host_maps[host], device_ns);
}
