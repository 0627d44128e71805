// SPDX-License-Identifier: BSD-2-Clause
/*
 * Metrics on a profiler of the test's own: each call of it fails once, and the context is destroyed
 * before each; then what was begun is ended, and nothing is used that is no more.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "gpu/base/batch.h"
#include "gpu/base/host.h"
#include "gpu/base/util.h"
#include "gpu/cupti/metrics.h"
#include "gpu/cupti/profiler.h"
#include "gpu_fixture.h"

/* ---- the agent's surroundings ---- */

static struct kprof_agent_shm *shm;
static char context;

struct kprof_agent_shm *gpu_shm(void)
{
	return shm;
}

void cuda__look(struct cuda_process *p)
{
	memset(p, 0, sizeof(*p));
	strcpy(p->cupti, "/no/such/folder/libcupti.so.13");
}

static int count(int *nr)
{
	*nr = 1;
	return 0;
}

static int get(int *device, int ordinal)
{
	*device = ordinal;
	return 0;
}

static struct {
	int calls[PROFILER_CALLS], nr;
	enum profiler_call failing; /* PROFILER_CALLS: none */
	int with, dies_at;          /* the context, at this call */
	pthread_t destroyer;        /* once it has been made */
	pid_t destroyer_tid;        /* once it runs */
	bool alive, enabled, started, pushed;
	int refs;
	size_t ranges, passes;
	char name[PROFILER_RANGES][8];
} fake;

static int state(int device, unsigned int *flags, int *active)
{
	*active = fake.alive;
	return 0;
}

static int retain(void **out, int device)
{
	fake.refs++;
	*out = &context;
	return 0;
}

static int release(int device)
{
	fake.refs--;
	return 0;
}

bool cuda__primary(const struct cuda_process *p, struct cuda_primary *out)
{
	*out = (struct cuda_primary){count, get, state, retain, release};
	return true;
}

/* ---- the profiler ---- */

static void destroy(void)
{
	metrics__context_ends(&context);
	fake.alive = false;
}

static void *destroying(void *arg)
{
	__atomic_store_n(&fake.destroyer_tid, gettid(), __ATOMIC_RELEASE);
	destroy();
	return NULL;
}

/* It waits for something; or it has ended, which it should not. */
static bool destroyer_waits(void)
{
	pid_t tid = __atomic_load_n(&fake.destroyer_tid, __ATOMIC_ACQUIRE);
	char path[64], state = 'X';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	f = tid ? fopen(path, "re") : NULL;
	if (!f)
		return tid != 0;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 'X';
	fclose(f);
	return state == 'S' || state == 'X';
}

static int called(enum profiler_call id)
{
	fake.calls[id]++;
	CHECK(fake.alive);
	if (++fake.nr == fake.dies_at) {
		/* It waits until this call has returned. */
		CHECK_EQ(pthread_create(&fake.destroyer, NULL, destroying, NULL), 0);
		for (int ms = 0; ms < 10000 && !destroyer_waits(); ms++)
			usleep(1000);
		CHECK(fake.alive);
	}
	return id == fake.failing ? fake.with : CUPTI_OK;
}

/* What a call does beyond its answer. */
static void enable(void *parameters)
{
	((struct profiler_enable *)parameters)->object = &fake;
	fake.enabled = true;
}

static void push(void *parameters)
{
	const struct profiler_push *p = parameters;

	CHECK(fake.started && !fake.pushed && fake.ranges < PROFILER_RANGES);
	fake.pushed = true;
	strcpy(fake.name[fake.ranges++], p->name);
}

static void pop(void)
{
	CHECK(fake.started && fake.pushed);
	fake.pushed = false;
}

static void sizes(enum profiler_call id, void *parameters)
{
	if (id == PROFILER_CALL_AVAILABILITY)
		((struct profiler_availability *)parameters)->image_bytes = 64;
	if (id == PROFILER_CALL_CONFIG_SIZE)
		((struct profiler_config_size *)parameters)->config_bytes = 64;
	if (id == PROFILER_CALL_DATA_SIZE)
		((struct profiler_data_size *)parameters)->data_bytes = 64;
	if (id == PROFILER_CALL_PASSES)
		((struct profiler_passes *)parameters)->passes = fake.passes;
	if (id == PROFILER_CALL_HOST)
		((struct profiler_host *)parameters)->host = &fake;
	if (id == PROFILER_CALL_CHIP)
		((struct profiler_chip *)parameters)->name = "T100";
}

static void values(enum profiler_call id, void *parameters)
{
	struct profiler_evaluate *e = parameters;
	struct profiler_range *r = parameters;

	if (id == PROFILER_CALL_INFO)
		((struct profiler_info *)parameters)->nr = fake.ranges;
	if (id == PROFILER_CALL_RANGE)
		r->name = fake.name[r->range];
	for (size_t i = 0; id == PROFILER_CALL_EVALUATE && i < e->nr; i++)
		e->values[i] = (double)e->range + (double)i / 10;
}

static int answer(enum profiler_call id, void *parameters)
{
	int result = called(id);

	if (id == PROFILER_CALL_DISABLE) { /* never while it is started, unless Stop fails */
		CHECK(fake.enabled);
		CHECK(!fake.started || fake.failing == PROFILER_CALL_STOP);
		fake.enabled = fake.started = false;
	}
	if (result != CUPTI_OK)
		return result;
	sizes(id, parameters);
	values(id, parameters);
	if (id == PROFILER_CALL_ENABLE)
		enable(parameters);
	if (id == PROFILER_CALL_START)
		fake.ranges = 0;
	if (id == PROFILER_CALL_START || id == PROFILER_CALL_STOP)
		fake.started = id == PROFILER_CALL_START;
	if (id == PROFILER_CALL_PUSH)
		push(parameters);
	if (id == PROFILER_CALL_POP)
		pop();
	return CUPTI_OK;
}

#define FAKE(id, symbol)                                       \
	static int call_##id(void *parameters)                 \
	{                                                      \
		return answer(PROFILER_CALL_##id, parameters); \
	}
PROFILER_FUNCTIONS(FAKE)

static int enable_callback(uint32_t on, void *subscriber, int domain, uint32_t cbid)
{
	CHECK_EQ(domain, CUPTI_RESOURCE);
	return CUPTI_OK;
}

static int result_string(int result, const char **text)
{
	*text = "AN ERROR";
	return CUPTI_OK;
}

static struct cupti_functions functions = {
	.enable_callback = enable_callback,
	.result_string = result_string,
	.profiler =
		{
#define TAKE(id, symbol) [PROFILER_CALL_##id] = call_##id,
			PROFILER_FUNCTIONS(TAKE)},
};

/* ---- a session ---- */

static void begin(enum profiler_call failing, int with, int dies_at)
{
	static struct cuda_process process;

	if (!shm) {
		CHECK_EQ(shm__make(&shm), 0);
		CHECK_EQ(batch__init(shm), 0);
	}
	seen_clear();
	batch__open(1);
	memset(&fake, 0, sizeof(fake));
	fake.alive = true;
	fake.failing = failing;
	fake.with = with;
	fake.dies_at = dies_at;
	fake.passes = 1;
	shm->options = KPROF_AGENT_OPT_METRICS;
	strcpy(shm->metrics, "a.sum,b.avg");
	shm->metrics_range_ns = 1;
	metrics__start(&process, &functions, NULL);
}

/* So many ranges, of which the last is ended by the stop. */
static void run(int ranges)
{
	for (int i = 0; i < ranges; i++)
		metrics__tick();
	metrics__stop();
	batch__close();
}

static void values_of_ranges(void)
{
	const struct kprof_agent_range *e = (const void *)seen.kept[0];
	double v;

	begin(PROFILER_CALLS, 0, 0);
	run(PROFILER_RANGES + 3);
	CHECK_EQ(seen.records[KPROF_AGENT_RANGE], PROFILER_RANGES + 3);
	CHECK_EQ(shm->metrics_ranges, PROFILER_RANGES + 3);
	CHECK_EQ(shm->metrics_lost, 0);
	CHECK_EQ(shm->metrics_state, KPROF_AGENT_METRICS_MEASURE);
	CHECK_EQ(fake.calls[PROFILER_CALL_START], 2);
	CHECK_EQ(fake.calls[PROFILER_CALL_DISABLE], 1);
	CHECK_EQ(fake.calls[PROFILER_CALL_HOST_END], 1);
	CHECK_EQ(fake.refs, 0);
	CHECK_EQ(e->nr, 2);
	memcpy(&v, &e->values[1], sizeof(v));
	CHECK(v == 0.1);
	CHECK(e->a.start_ns && e->a.start_ns <= e->a.end_ns);
}

/* Each call fails, in each of the ways that have a reason of their own. */
static void each_call_fails(void)
{
	const struct {
		int result;
		enum kprof_agent_metrics_reason reason;
	} ways[] = {
		{999, KPROF_AGENT_METRICS_OTHER},
		{CUPTI_INSUFFICIENT_PRIVILEGES, KPROF_AGENT_METRICS_PERMISSION},
		{CUPTI_HARDWARE_BUSY, KPROF_AGENT_METRICS_BUSY},
	};

	for (int id = 0; id < PROFILER_CALLS; id++) {
		for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
			begin((enum profiler_call)id, ways[i].result, 0);
			run(3);
			CHECK(!fake.enabled);
			CHECK_EQ(fake.calls[PROFILER_CALL_ENABLE] > 0 && id != PROFILER_CALL_ENABLE,
				 fake.calls[PROFILER_CALL_DISABLE]);
			if (id == PROFILER_CALL_DISABLE || id == PROFILER_CALL_HOST_END)
				continue; /* nothing can be done about it */
			CHECK_EQ(shm->metrics_state, KPROF_AGENT_METRICS_FAIL);
			CHECK_EQ(shm->metrics_reason,
				 id == PROFILER_CALL_METRIC ? KPROF_AGENT_METRICS_UNKNOWN
				 : id == PROFILER_CALL_INITIALIZE || id == PROFILER_CALL_HOST
					 ? KPROF_AGENT_METRICS_LIBRARY
					 : ways[i].reason);
			CHECK(shm->metrics_detail[0]);
			CHECK_EQ(shm->metrics_ranges, 0);
		}
	}
}

static void several_passes(void)
{
	begin(PROFILER_CALLS, 0, 0);
	fake.passes = 8;
	run(3);
	CHECK_EQ(shm->metrics_reason, KPROF_AGENT_METRICS_PASSES);
	CHECK(strstr(shm->metrics_detail, "8 passes"));
	CHECK_EQ(fake.calls[PROFILER_CALL_ENABLE], 0);
}

/* answer() checks that none is made once the context is no more. */
static void context_dies_at_each_call(void)
{
	int nr;

	begin(PROFILER_CALLS, 0, 0);
	run(3);
	nr = fake.nr;
	for (int at = 1; at <= nr; at++) {
		begin(PROFILER_CALLS, 0, at);
		for (int i = 0; i < 3; i++) {
			metrics__tick();
			for (int ms = 0; fake.nr >= at && fake.alive && ms < 1000; ms++)
				usleep(1000);
		}
		run(0);
		CHECK_EQ(fake.nr, at);
		if (fake.nr >= at) /* it must not come upon the next context */
			CHECK_EQ(pthread_join(fake.destroyer, NULL), 0);
		if (at < nr - 2) /* the last value, and two that let go of what is through */
			CHECK_EQ(shm->metrics_reason, KPROF_AGENT_METRICS_CONTEXT);
	}
}

static void not_asked_for(void)
{
	static struct cuda_process process;

	begin(PROFILER_CALLS, 0, 0);
	shm->options = 0;
	metrics__start(&process, &functions, NULL);
	CHECK_EQ(shm->metrics_state, KPROF_AGENT_METRICS_NONE);
	run(3);
	CHECK_EQ(fake.nr, 0);
}

UNIT_MAIN(TEST(values_of_ranges), TEST(each_call_fails), TEST(several_passes),
	  TEST(context_dies_at_each_call), TEST(not_asked_for))
