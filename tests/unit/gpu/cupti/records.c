// SPDX-License-Identifier: BSD-2-Clause
/*
 * CUPTI's records into the agent's: every field, fields that only later releases have, records that
 * are cut or unknown.
 */
#include "gpu/base/host.h"
#include "gpu/base/batch.h"
#include "gpu/cupti/cupti.h"
#include "gpu_fixture.h"

static struct kprof_agent_shm *shm;

struct kprof_agent_shm *gpu_shm(void)
{
	return shm;
}

bool gpu_in_injection(void)
{
	return false;
}

static uint64_t later(uint64_t time)
{
	return time + 1000000;
}

/* ---- a CUPTI that walks over records of known sizes ---- */

static _Alignas(8) uint8_t buffer[65536];
static size_t filled, size_at[1024], nr_sizes;

static void add(const void *record, size_t bytes)
{
	memcpy(buffer + filled, record, bytes);
	filled += bytes;
	size_at[nr_sizes++] = bytes;
}

static int next_record(uint8_t *start, size_t bytes, void **record)
{
	size_t at = 0, i = 0;

	if (*record) {
		for (; buffer + at != *record; i++)
			at += size_at[i];
		at += size_at[i];
	}
	if (start != buffer || at >= bytes)
		return CUPTI_MAX_LIMIT_REACHED;
	*record = buffer + at;
	return CUPTI_OK;
}

static unsigned int asked;

static int callback_name(int domain, uint32_t cbid, const char **name)
{
	static const char *const runtime[] = {NULL, "cudaLaunchKernel_v7000",
					      "cudaMemcpyAsync_ptsz_v7000", "cudaGetDevice_v3020"};
	static const char *const driver[] = {NULL, "cuLaunchKernel_ptsz", "cuMemcpyHtoD_v2",
					     "cuCtxGetCurrent"};

	asked++;
	*name = cbid < 4 ? domain == CUPTI_RUNTIME_API ? runtime[cbid] : driver[cbid] : NULL;
	return *name ? CUPTI_OK : 1;
}

static const struct cupti_functions functions = {.next_record = next_record,
						 .callback_name = callback_name};
static const struct cuda_process process;
static struct cupti_reader reader;

static void begin(void)
{
	if (!shm) {
		CHECK_EQ(shm__make(&shm), 0);
		CHECK_EQ(batch__init(shm), 0);
	}
	seen_clear();
	batch__open(1);
	cupti_records__reset();
	filled = nr_sizes = asked = 0;
	memset(buffer, 0, sizeof(buffer));
	reader = (struct cupti_reader){.f = &functions,
				       .process = &process,
				       .sync = true,
				       .events = true,
				       .calls = {true, true}};
}

static void read_all(void)
{
	cupti_records__read(&reader, buffer, filled);
	batch__close();
	CHECK_EQ(seen.broken, 0);
	CHECK_EQ(seen.nameless, 0);
}

static const struct cupti_kernel kernel = {
	.kind = CUPTI_KIND_CONCURRENT_KERNEL,
	.registers = 40,
	.start = 1000,
	.end = 3000,
	.device = 1,
	.context = 2,
	.stream = 7,
	.grid = {10, 11, 12},
	.block = {32, 2, 1},
	.static_shared = 64,
	.dynamic_shared = 128,
	.local_per_thread = 16,
	.correlation = 99,
	.name = "_Z4gemmv",
	.queued = 500,
	.shared_executed = 65536,
	.graph_node = 0x100000005,
	.graph = 3,
	.channel = 12,
	.channel_type = 1,
	.priority = -5,
};

static void a_kernel(void)
{
	const struct kprof_agent_kernel *k = (const void *)seen.kept[0];

	begin();
	add(&kernel, sizeof(kernel));
	read_all();
	CHECK_EQ(seen.nr_kept, 1);
	CHECK_EQ(k->a.h.kind, KPROF_AGENT_KERNEL);
	CHECK_STR(seen_name(k->a.h.name), "_Z4gemmv");
	CHECK_EQ(k->a.type, KPROF_ACTIVITY_KERNEL);
	CHECK_EQ(k->a.runtime, KPROF_AGENT_CUDA);
	CHECK_EQ(k->a.start_ns, 1000);
	CHECK_EQ(k->a.end_ns, 3000);
	CHECK_EQ(k->a.queued_ns, 500);
	CHECK_EQ(k->a.correlation, 99);
	CHECK_EQ(k->a.device, 1);
	CHECK_EQ(k->a.context, 2);
	CHECK_EQ(k->a.stream, 7);
	CHECK_EQ(k->grid[0] * 10000 + k->grid[1] * 100 + k->grid[2], 101112);
	CHECK_EQ(k->block[0] * 10000 + k->block[1] * 100 + k->block[2], 320201);
	CHECK_EQ(k->static_shared_bytes, 64);
	CHECK_EQ(k->dynamic_shared_bytes, 128);
	CHECK_EQ(k->local_bytes_per_thread, 16);
	CHECK_EQ(k->registers, 40);
	CHECK_EQ(k->shared_config_bytes, 65536);
	CHECK_EQ(k->graph, 3);
	CHECK_EQ(k->graph_node, 0x100000005);
	CHECK_EQ(k->priority, -5);
	CHECK_EQ(k->channel, 12);
	CHECK_EQ(k->channel_type, 1);
	CHECK_EQ(k->a.has, KPROF_AGENT_HAS_PRIORITY | KPROF_AGENT_HAS_CHANNEL);
}

/* CUDA 12 tells the channel, and 13.1 the priority, also where it is 0. */
static void what_a_release_tells(void)
{
	const struct kprof_agent_kernel *a = (const void *)seen.kept[0],
					*b = (const void *)seen.kept[1];
	struct cupti_kernel usual = kernel;

	usual.priority = 0;
	begin();
	add(&usual, offsetof(struct cupti_kernel, priority));
	add(&usual, sizeof(usual));
	read_all();
	CHECK_EQ(seen.nr_kept, 2);
	CHECK_EQ(a->a.has, KPROF_AGENT_HAS_CHANNEL);
	CHECK_EQ(a->channel, 12);
	CHECK_EQ(b->a.has, KPROF_AGENT_HAS_PRIORITY | KPROF_AGENT_HAS_CHANNEL);
	CHECK_EQ(b->priority, 0);
}

/* As long as CUDA 11.6's: what follows it in the buffer is another record, not its priority. */
static void a_shorter_kernel(void)
{
	const struct kprof_agent_kernel *k = (const void *)seen.kept[0];
	struct cupti_memset set = {.kind = CUPTI_KIND_MEMSET,
				   .value = 255,
				   .bytes = 4096,
				   .start = 1,
				   .end = 2,
				   .correlation = 4,
				   .channel = 7,
				   .channel_type = 1,
				   .memory = KPROF_AGENT_MEMORY_DEVICE};
	const struct kprof_agent_copy *c = (const void *)seen.kept[1];

	begin();
	add(&kernel, CUPTI_KERNEL_BYTES);
	add(&set, sizeof(set));
	read_all();
	CHECK_EQ(seen.nr_kept, 2);
	CHECK_EQ(k->a.has, 0);
	CHECK_EQ(k->priority, 0);
	CHECK_EQ(k->channel, 0);
	CHECK_EQ(k->graph, 3);
	CHECK_EQ(c->a.type, KPROF_ACTIVITY_GPU_MEMSET);
	CHECK_EQ(c->value, 255);
	CHECK_EQ(c->a.bytes, 4096);
	CHECK_EQ(c->to, KPROF_AGENT_MEMORY_DEVICE);
	CHECK_EQ(c->a.has, KPROF_AGENT_HAS_CHANNEL);
	CHECK_EQ(c->channel, 7);
	CHECK_EQ(c->channel_type, 1);
}

static void memory(void)
{
	const struct kprof_agent_alloc *a = (const void *)seen.kept[0],
				       *f = (const void *)seen.kept[1];
	struct { /* of CUDA 12 and 13 */
		struct cupti_memory m;
		uint8_t later[64];
	} r = {.m = {.kind = CUPTI_KIND_MEMORY2,
		     .operation = CUPTI_MEMORY_ALLOCATION,
		     .memory = KPROF_AGENT_MEMORY_DEVICE,
		     .correlation = 9,
		     .address = 0x7f0000000000,
		     .bytes = 4096,
		     .time = 77,
		     .device = 1,
		     .context = 2}};

	begin();
	add(&r, 120);
	r.m.operation = CUPTI_MEMORY_RELEASE;
	r.m.time = 78;
	add(&r, 128);
	r.m.operation = 0;
	add(&r, 128);
	read_all();
	CHECK_EQ(seen.nr_kept, 2);
	CHECK_EQ(a->h.kind, KPROF_AGENT_ALLOC);
	CHECK_EQ(a->time_ns, 77);
	CHECK_EQ(a->address, 0x7f0000000000);
	CHECK_EQ(a->bytes, 4096);
	CHECK_EQ(a->correlation, 9);
	CHECK_EQ(a->device, 1);
	CHECK_EQ(a->context, 2);
	CHECK_EQ(a->memory, KPROF_AGENT_MEMORY_DEVICE);
	CHECK(!a->release && f->release);
	CHECK_EQ(f->time_ns, 78);
}

static void copies(void)
{
	struct cupti_memcpy m = {.kind = CUPTI_KIND_MEMCPY,
				 .copy = KPROF_AGENT_COPY_HTOD,
				 .from = KPROF_AGENT_MEMORY_PINNED,
				 .to = KPROF_AGENT_MEMORY_DEVICE,
				 .bytes = 1u << 20,
				 .start = 10,
				 .end = 20,
				 .device = 1,
				 .context = 2,
				 .stream = 3,
				 .correlation = 4,
				 .graph_node = 5,
				 .graph = 6,
				 .channel = 9,
				 .channel_type = 2};
	struct cupti_memcpy_peer p = {.kind = CUPTI_KIND_MEMCPY2,
				      .copy = KPROF_AGENT_COPY_PTOP,
				      .bytes = 77,
				      .start = 30,
				      .end = 40,
				      .from_device = 1,
				      .from_context = 2,
				      .to_device = 3,
				      .to_context = 4,
				      .correlation = 5,
				      .channel = 10,
				      .channel_type = 3};
	const struct kprof_agent_copy *a = (const void *)seen.kept[0];
	const struct kprof_agent_copy *b = (const void *)seen.kept[1];
	const struct kprof_agent_copy *older = (const void *)seen.kept[2];

	begin();
	add(&m, sizeof(m));
	add(&p, sizeof(p));
	add(&m, CUPTI_MEMCPY_BYTES); /* CUDA 11.6: the channel is padding */
	add(&p, CUPTI_MEMCPY_PEER_BYTES);
	read_all();
	CHECK_EQ(seen.nr_kept, 4);
	CHECK_EQ(a->kind, KPROF_AGENT_COPY_HTOD);
	CHECK_EQ(a->from, KPROF_AGENT_MEMORY_PINNED);
	CHECK_EQ(a->to, KPROF_AGENT_MEMORY_DEVICE);
	CHECK_EQ(a->a.type, KPROF_ACTIVITY_GPU_MEMCPY);
	CHECK_EQ(a->a.bytes, 1u << 20);
	CHECK_EQ(a->a.stream, 3);
	CHECK_EQ(a->graph_node, 5);
	CHECK_EQ(a->graph, 6);
	CHECK_EQ(b->kind, KPROF_AGENT_COPY_PTOP);
	CHECK_EQ(b->from_device, 1);
	CHECK_EQ(b->from_context, 2);
	CHECK_EQ(b->to_device, 3);
	CHECK_EQ(b->to_context, 4);
	CHECK_EQ(b->a.correlation, 5);
	CHECK_EQ(a->a.has & b->a.has, KPROF_AGENT_HAS_CHANNEL);
	CHECK_EQ(a->channel * 10 + a->channel_type, 92);
	CHECK_EQ(b->channel * 10 + b->channel_type, 103);
	for (int i = 0; i < 2; i++, older = (const void *)seen.kept[3]) {
		CHECK_EQ(older->a.has, 0);
		CHECK_EQ(older->channel, 0);
	}
}

static void waits_know_their_event(void)
{
	struct cupti_context context = {CUPTI_KIND_CONTEXT, 1, 2, 1, 7};
	struct cupti_event event = {.kind = CUPTI_KIND_CUDA_EVENT,
				    .correlation = 50,
				    .context = 1,
				    .stream = 13,
				    .event = 9,
				    .event_sync = 1};
	struct cupti_sync sync = {.kind = CUPTI_KIND_SYNCHRONIZATION,
				  .type = KPROF_AGENT_SYNC_EVENT,
				  .start = 5,
				  .end = 6,
				  .correlation = 51,
				  .context = 1,
				  .stream = UINT32_MAX,
				  .event = 9,
				  .event_sync = 1};
	const struct kprof_agent_context *c = (const void *)seen.kept[0];
	const struct kprof_agent_event *e = (const void *)seen.kept[1];
	const struct kprof_agent_sync *s = (const void *)seen.kept[2];

	begin();
	add(&context, sizeof(context));
	add(&event, CUPTI_EVENT_BYTES); /* before 12.8 */
	add(&sync, CUPTI_SYNC_BYTES);
	read_all();
	CHECK_EQ(c->device, 2);
	CHECK_EQ(c->null_stream, 7);
	CHECK_EQ(e->correlation, 50);
	CHECK_EQ(e->event, 9);
	CHECK_EQ(e->stream, 13);
	CHECK_EQ(s->kind, KPROF_AGENT_SYNC_EVENT);
	CHECK_EQ(s->event, 9);
	CHECK_EQ(s->event_correlation, 50);
	CHECK_EQ(s->event_stream, 13);
	CHECK_EQ(s->a.device, KPROF_AGENT_DEVICE_OF_CONTEXT);
	CHECK_EQ(s->a.stream, UINT32_MAX);

	/* From 12.8 on each recording has a number of its own: another one is another event. */
	sync.event_sync = 2;
	begin();
	add(&context, sizeof(context));
	add(&event, sizeof(event));
	add(&sync, sizeof(sync));
	read_all();
	CHECK_EQ(s->event, 9);
	CHECK_EQ(s->event_correlation, 0);
}

/* The device's time of an event: from 12.8 on, if it was asked for, by the clock of all records. */
static void events(void)
{
	struct cupti_event event = {.kind = CUPTI_KIND_CUDA_EVENT,
				    .correlation = 50,
				    .context = 1,
				    .stream = 13,
				    .event = 9,
				    .device = 2,
				    .device_time = 77};
	const struct kprof_agent_event *e[4];

	for (int i = 0; i < 4; i++)
		e[i] = (const void *)seen.kept[i];
	begin();
	reader.to_mono = later;
	add(&event, sizeof(event));
	read_all();
	CHECK_EQ(e[0]->time_ns, 0); /* not asked for */
	begin();
	reader.to_mono = later;
	reader.event_times = true;
	add(&event, sizeof(event));
	add(&event, CUPTI_EVENT_BYTES);
	event.device_time = 0;
	add(&event, sizeof(event));
	read_all();
	CHECK_EQ(seen.nr_kept, 3);
	CHECK_EQ(e[0]->time_ns, 1000077);
	CHECK_EQ(e[0]->device, 2);
	CHECK_EQ(e[0]->correlation, 50);
	CHECK_EQ(e[1]->time_ns, 0);
	CHECK_EQ(e[1]->device, KPROF_AGENT_DEVICE_OF_CONTEXT);
	CHECK_EQ(e[2]->time_ns, 0); /* not known stays not known */
}

static void waits_only_if_wanted(void)
{
	struct cupti_sync sync = {.kind = CUPTI_KIND_SYNCHRONIZATION, .start = 5, .end = 6};

	begin();
	reader.sync = false;
	add(&sync, sizeof(sync));
	read_all();
	CHECK_EQ(seen.nr_kept, 0);
}

static void add_call(uint32_t kind, uint32_t cbid, uint32_t thread)
{
	struct cupti_call call = {.kind = kind,
				  .cbid = cbid,
				  .start = 1,
				  .end = 2,
				  .process = 1,
				  .thread = thread,
				  .correlation = 10 + cbid,
				  .result = 719};

	add(&call, sizeof(call));
}

static void calls_have_plain_names(void)
{
	const struct kprof_agent_api *a[5];

	for (int i = 0; i < 5; i++)
		a[i] = (const void *)seen.kept[i];
	begin();
	reader.own_tid = 77;
	add_call(CUPTI_KIND_RUNTIME, 1, 5);
	add_call(CUPTI_KIND_RUNTIME, 2, 5);
	add_call(CUPTI_KIND_DRIVER, 1, 5);
	add_call(CUPTI_KIND_DRIVER, 2, 5);
	add_call(CUPTI_KIND_RUNTIME, 1, 6);
	add_call(CUPTI_KIND_RUNTIME, 3, 5); /* of no interest */
	add_call(CUPTI_KIND_DRIVER, 3, 5);
	add_call(CUPTI_KIND_DRIVER, 1, 77); /* the agent's own */
	read_all();
	CHECK_EQ(seen.nr_kept, 5);
	CHECK_STR(seen_name(a[0]->h.name), "cudaLaunchKernel_v7000");
	CHECK_STR(seen_name(a[1]->h.name), "cudaMemcpyAsync_ptsz_v7000");
	CHECK_STR(seen_name(a[2]->h.name), "cuLaunchKernel_ptsz");
	CHECK_STR(seen_name(a[3]->h.name), "cuMemcpyHtoD_v2");
	CHECK_EQ(a[4]->h.name, a[0]->h.name);
	CHECK_EQ(a[0]->type, KPROF_ACTIVITY_CUDA_RUNTIME);
	CHECK_EQ(a[2]->type, KPROF_ACTIVITY_CUDA_DRIVER);
	CHECK_EQ(a[4]->tid, 6);
	CHECK_EQ(a[1]->correlation, 12);
	CHECK_EQ(a[1]->cbid, 2);
	CHECK_EQ(a[1]->result, 719);
	CHECK_EQ(asked, 6); /* of each function once */
}

static void overhead_and_external(void)
{
	struct cupti_overhead o = {.kind = CUPTI_KIND_OVERHEAD,
				   .overhead = CUPTI_OVERHEAD_BUFFER_FLUSH,
				   .object = CUPTI_OBJECT_THREAD,
				   .id = {1, 4711, 0},
				   .start = 8,
				   .end = 9,
				   .correlation = 3};
	struct cupti_external x = {CUPTI_KIND_EXTERNAL_CORRELATION, 5, 1ull << 40, 12, 0};
	const struct kprof_agent_activity *a = (const void *)seen.kept[0];
	const struct kprof_agent_external *e = (const void *)seen.kept[2];

	begin();
	add(&o, sizeof(o));
	add(&o, CUPTI_OVERHEAD_BYTES);
	add(&x, sizeof(x));
	read_all();
	CHECK_EQ(a->type, KPROF_ACTIVITY_OVERHEAD);
	CHECK_STR(seen_name(a->h.name), "Buffer Flush");
	CHECK_EQ(a->bytes, 0);
	CHECK_EQ(a->correlation, 3);
	CHECK_EQ(((const struct kprof_agent_activity *)seen.kept[1])->correlation, 0);
	CHECK_EQ(e->external, 1ull << 40);
	CHECK_EQ(e->correlation, 12);
	CHECK_EQ(e->kind, 5);
}

static void a_device(void)
{
	struct cupti_device d = {.kind = CUPTI_KIND_DEVICE,
				 .bandwidth = 2000000,
				 .memory = 80ull << 30,
				 .warp = 32,
				 .multiprocessors = 132,
				 .max_warps_sm = 64,
				 .compute_major = 9,
				 .id = 1,
				 .name = "H100"};
	const struct kprof_agent_device *out = (const void *)seen.kept[0];

	begin();
	add(&d, sizeof(d));
	read_all();
	CHECK_STR(seen_name(out->h.name), "H100");
	CHECK_EQ(out->device, 1);
	CHECK_EQ(out->memory_bytes, 80ull << 30);
	CHECK_EQ(out->memory_bandwidth_bytes, 2000000000ull);
	CHECK_EQ(out->max_threads_per_multiprocessor, 2048);
	CHECK_EQ(out->multiprocessors, 132);
	CHECK_EQ(out->compute_major, 9);
}

static void another_clock(void)
{
	const struct kprof_agent_kernel *k = (const void *)seen.kept[0];
	struct cupti_kernel unqueued = kernel;

	unqueued.queued = 0;
	begin();
	reader.to_mono = later;
	add(&unqueued, sizeof(unqueued));
	read_all();
	CHECK_EQ(k->a.start_ns, 1001000);
	CHECK_EQ(k->a.queued_ns, 0); /* not known stays not known */
}

static void what_is_no_use_is_counted(void)
{
	struct cupti_kernel unfinished = kernel;
	uint32_t unknown[4] = {9999};

	unfinished.end = 0;
	begin();
	add(&unfinished, sizeof(unfinished));
	add(unknown, sizeof(unknown));
	add(&kernel, CUPTI_KERNEL_BYTES - 8); /* shorter than any known */
	read_all();
	CHECK_EQ(seen.nr_kept, 0);
	CHECK_EQ(shm->device_dropped, 1);
	CHECK_EQ(shm->unknown_records, 2);
}

static void buffers_are_bounded(void)
{
	uint8_t *b[CUPTI_BUFFERS];

	begin();
	batch__close();
	for (int i = 0; i < CUPTI_BUFFERS; i++) {
		b[i] = buffers__take(true);
		CHECK(b[i] && !((uintptr_t)b[i] & 7));
	}
	CHECK(!buffers__take(true));
	/* CUPTI before 12.9 always gets one. */
	CHECK(buffers__is_spare(buffers__take(false)) && buffers__is_spare(buffers__take(false)));
	CHECK_EQ(shm->buffers, CUPTI_BUFFERS);
	CHECK_EQ(shm->max_buffers, CUPTI_BUFFERS);
	buffers__give_back(b[3]);
	buffers__give_back(b[3]); /* twice is once */
	CHECK(buffers__take(true) == b[3]);
	CHECK(!buffers__take(true));
	for (int i = 0; i < CUPTI_BUFFERS; i++)
		buffers__give_back(b[i]);
	CHECK_EQ(buffers__in_use(), 0);
	buffers__free();
	b[0] = buffers__take(true);
	CHECK(b[0] && !b[0][0]);
	buffers__give_back(b[0]);
	buffers__free();
}

UNIT_MAIN(TEST(a_kernel), TEST(a_shorter_kernel), TEST(what_a_release_tells), TEST(copies),
	  TEST(memory), TEST(waits_know_their_event), TEST(events), TEST(waits_only_if_wanted),
	  TEST(calls_have_plain_names), TEST(overhead_and_external), TEST(a_device),
	  TEST(another_clock), TEST(what_is_no_use_is_counted), TEST(buffers_are_bounded))
