// SPDX-License-Identifier: BSD-2-Clause
/* Batches of the agent, made by hand, and what the capture then says. */
#include "agent_fixture.h"

#define START 1000
#define END 5000

static struct store_writer *store;
static struct agent_records *records;

/* Thread 7 of the agent's namespace is the capture's thread 0; there is no other. */
static int thread(void *ctx, uint32_t tid, uint64_t time_ns, uint32_t *index)
{
	*index = 0;
	return tid == 7 ? 0 : -ESRCH;
}

static void begin(void)
{
	const struct agent_records_ops ops = {.thread = thread, .metrics = "sm__a.sum,b.avg"};
	const struct store_record th = {.type = STORE_THREAD, .thread = {.pid = FIXTURE_PID}};

	scratch__make();
	CHECK_EQ(store_writer__open(in_scratch("c.kprof"), NULL, &store), 0);
	CHECK_EQ(store_writer__put(store, &th), 0);
	CHECK_EQ(agent_records__new(store, FIXTURE_PID, &ops, &records), 0);
	agent_records__window(records, START, END);
}

static void hand_over(const struct batch *b)
{
	CHECK_EQ(agent_records__batch(records, b->data, b->bytes), 0);
}

static void ends_with(const char *expected)
{
	struct lines *l;

	CHECK_EQ(store_writer__finish(store, END), 0);
	l = lines_read(in_scratch("c.kprof"));
	CHECK_STR(l->text, expected);
	lines_free(l);
	agent_records__free(records);
	scratch__remove();
}

static struct kprof_agent_activity activity(uint32_t type, uint64_t start, uint64_t end)
{
	return (struct kprof_agent_activity){.type = (uint16_t)type,
					     .start_ns = start,
					     .end_ns = end,
					     .correlation = 11,
					     .device = 1,
					     .context = 2,
					     .stream = 3};
}

static struct kprof_agent_kernel kernel(uint32_t name, uint64_t start, uint64_t end)
{
	struct kprof_agent_kernel e = {
		.a = activity(KPROF_ACTIVITY_KERNEL, start, end),
		.grid = {8, 2, 1},
		.block = {256, 1, 1},
		.static_shared_bytes = 64,
		.dynamic_shared_bytes = 1024,
		.registers = 32,
	};

	e.a.h = (struct kprof_agent_head)HEAD(KPROF_AGENT_KERNEL, struct kprof_agent_kernel, name);
	return e;
}

static void add_kernel(struct batch *b, uint32_t name, uint64_t start, uint64_t end)
{
	struct kprof_agent_kernel e = kernel(name, start, end);

	batch_add(b, &e, sizeof(e));
}

static void kernels(void)
{
	struct batch b = {0};
	struct kprof_agent_kernel e = kernel(1, 2200, 2300);

	begin();
	batch_name(&b, 1, "_Z3addPf");
	add_kernel(&b, 1, 2000, 2100);
	e.priority = -5; /* of an agent that tells no other than 0 */
	e.graph = 4;
	e.graph_node = 5;
	e.shared_config_bytes = 65536;
	e.local_bytes_per_thread = 16;
	e.a.queued_ns = 1990;
	e.grid[1] = 70000; /* more than CUDA knows */
	batch_add(&b, &e, sizeof(e));
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->received, 3);
	CHECK_EQ(agent_records__count(records)->unnamed, 0);
	ends_with("4242 6 [_Z3addPf] 1/2/3 2000-2100 q0 c11 grid=8,2,1 block=256,1,1 "
		  "registers per thread=32 shared memory=1088\n"
		  "4242 6 [_Z3addPf] 1/2/3 2200-2300 q1990 c11 grid=[8,70000,1] block=256,1,1 "
		  "registers per thread=32 shared memory=1088 shared memory configured=65536 "
		  "local memory per thread=16 graph id=4 graph node id=5 priority=-5\n");
}

#define K " grid=8,2,1 block=256,1,1 registers per thread=32 shared memory=1088"

/* What CUPTI of a release tells is there, also where it is 0; what it does not tell is not. */
static void later_fields(void)
{
	struct batch b = {0};
	struct kprof_agent_kernel e = kernel(1, 2000, 2100);

	begin();
	batch_name(&b, 1, "k");
	e.a.has = KPROF_AGENT_HAS_CHANNEL;
	e.channel_type = 1;
	batch_add(&b, &e, sizeof(e));
	e.a.has |= KPROF_AGENT_HAS_PRIORITY;
	e.channel = 12;
	batch_add(&b, &e, sizeof(e));
	/* An agent from before there were channels. */
	e.a.has = 0;
	e.a.h.size = offsetof(struct kprof_agent_kernel, channel);
	batch_add(&b, &e, e.a.h.size);
	/* … whatever its bit means, the field is not that of the record before. */
	e.a.has = KPROF_AGENT_HAS_CHANNEL;
	batch_add(&b, &e, e.a.h.size);
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->malformed, 0);
	ends_with("4242 6 [k] 1/2/3 2000-2100 q0 c11" K " channel=0 channel_type=1\n"
		  "4242 6 [k] 1/2/3 2000-2100 q0 c11" K " priority=0 channel=12 channel_type=1\n"
		  "4242 6 [k] 1/2/3 2000-2100 q0 c11" K "\n"
		  "4242 6 [k] 1/2/3 2000-2100 q0 c11" K " channel=0 channel_type=0\n");
}

static struct kprof_agent_copy copy(uint32_t type, uint8_t kind, uint8_t from, uint8_t to)
{
	struct kprof_agent_copy e = {
		.a = activity(type, 2000, 2100), .kind = kind, .from = from, .to = to};

	e.a.h = (struct kprof_agent_head)HEAD(KPROF_AGENT_COPY, struct kprof_agent_copy, 0);
	e.a.bytes = 4096;
	return e;
}

static void copies(void)
{
	struct batch b = {0};
	struct kprof_agent_copy e = copy(KPROF_ACTIVITY_GPU_MEMCPY, KPROF_AGENT_COPY_HTOD,
					 KPROF_AGENT_MEMORY_PINNED, KPROF_AGENT_MEMORY_DEVICE);

	begin();
	batch_add(&b, &e, sizeof(e));
	e.a.end_ns = e.a.start_ns; /* no time, no bandwidth */
	batch_add(&b, &e, sizeof(e));
	e = copy(KPROF_ACTIVITY_GPU_MEMCPY, KPROF_AGENT_COPY_PTOP, KPROF_AGENT_MEMORY_DEVICE,
		 KPROF_AGENT_MEMORY_DEVICE);
	e.from_device = 1, e.from_context = 2, e.to_device = 3, e.to_context = 4;
	e.a.device = 7, e.a.context = 8;
	e.a.has = KPROF_AGENT_HAS_CHANNEL;
	e.channel = 9, e.channel_type = 2;
	batch_add(&b, &e, sizeof(e));
	e = copy(KPROF_ACTIVITY_GPU_MEMSET, 0, 0, KPROF_AGENT_MEMORY_DEVICE);
	e.value = 255;
	batch_add(&b, &e, sizeof(e));
	e = copy(KPROF_ACTIVITY_GPU_MEMCPY, 200, 201, 202);
	batch_add(&b, &e, sizeof(e));
	hand_over(&b);
	ends_with(
		"4242 4 [Memcpy HtoD (Pinned -> Device)] 1/2/3 2000-2100 q0 c11 bytes=4096 "
		"memory bandwidth (GB/s)=40.96\n"
		"4242 4 [Memcpy HtoD (Pinned -> Device)] 1/2/3 2000-2000 q0 c11 bytes=4096\n"
		"4242 4 [Memcpy PtoP (Device -> Device)] 7/8/3 2000-2100 q0 c11 bytes=4096 "
		"memory bandwidth (GB/s)=40.96 fromDevice=1 inDevice=7 toDevice=3 "
		"fromContext=2 inContext=8 toContext=4 channel=9 channel_type=2\n"
		"4242 5 [Memset (Device)] 1/2/3 2000-2100 q0 c11 bytes=4096 "
		"memory bandwidth (GB/s)=40.96 value=255\n"
		"4242 4 [Memcpy <unknown> (Unknown -> Unknown)] 1/2/3 2000-2100 q0 c11 bytes=4096 "
		"memory bandwidth (GB/s)=40.96\n");
}

static void add_sync(struct batch *b, uint32_t kind, uint64_t correlation, uint32_t event)
{
	struct kprof_agent_sync e = {
		.a = activity(KPROF_ACTIVITY_CUDA_SYNC, 2000, 2100), .kind = kind, .event = event};

	e.a.h = (struct kprof_agent_head)HEAD(KPROF_AGENT_SYNC, struct kprof_agent_sync, 0);
	e.a.correlation = correlation;
	batch_add(b, &e, sizeof(e));
}

/* CUPTI does not say of which device a wait is. Its context does, or other work in that context. */
static void devices_of_syncs(void)
{
	static const uint32_t contexts[] = {4, 5, 6, UINT32_MAX};
	struct kprof_agent_context context = {
		.h = HEAD(KPROF_AGENT_CONTEXT, struct kprof_agent_context, 0),
		.context = 4,
		.device = 3};
	struct kprof_agent_copy copy = {.a = activity(KPROF_ACTIVITY_GPU_MEMSET, 2000, 2100)};
	struct kprof_agent_sync sync = {.a = activity(KPROF_ACTIVITY_CUDA_SYNC, 2000, 2100),
					.kind = KPROF_AGENT_SYNC_CONTEXT};
	struct batch b = {0};

	begin();
	copy.a.h = (struct kprof_agent_head)HEAD(KPROF_AGENT_COPY, struct kprof_agent_copy, 0);
	copy.a.context = 5;
	copy.a.device = 7;
	sync.a.h = (struct kprof_agent_head)HEAD(KPROF_AGENT_SYNC, struct kprof_agent_sync, 0);
	sync.a.device = KPROF_AGENT_DEVICE_OF_CONTEXT;
	batch_add(&b, &context, sizeof(context));
	batch_add(&b, &copy, sizeof(copy));
	for (size_t i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		sync.a.context = contexts[i];
		batch_add(&b, &sync, sizeof(sync));
	}
	hand_over(&b);
	ends_with("context.4242.4 {\"device\":3,\"nullStream\":0,\"runtime\":\"cuda\"}\n"
		  "4242 5 [Memset (Unknown)] 7/5/3 2000-2100 q0 c11 bytes=0 "
		  "memory bandwidth (GB/s)=0 value=0\n"
		  "4242 13 [Context Sync] 3/4/3 2000-2100 q0 c11 cuda_sync_kind=Context Sync\n"
		  "4242 13 [Context Sync] 7/5/3 2000-2100 q0 c11 cuda_sync_kind=Context Sync\n"
		  "4242 13 [Context Sync] 0/6/3 2000-2100 q0 c11 cuda_sync_kind=Context Sync\n"
		  "4242 13 [Context Sync] 0/4294967295/3 2000-2100 q0 c11 "
		  "cuda_sync_kind=Context Sync\n");
}

static void add_event(struct batch *b, uint64_t correlation, uint32_t stream)
{
	struct kprof_agent_event e = {
		.h = HEAD(KPROF_AGENT_EVENT, struct kprof_agent_event, 0),
		.correlation = correlation,
		.event = 9,
		.context = 2,
		.stream = stream,
	};

	batch_add(b, &e, sizeof(e));
}

/*
 * An event's recording is found whether it is known before or after the next one, but not after
 * two.
 */
static void syncs(void)
{
	struct batch b = {0};

	begin();
	add_sync(&b, KPROF_AGENT_SYNC_STREAM, 20, 0);
	add_sync(&b, KPROF_AGENT_SYNC_CONTEXT, 20, 0);
	add_sync(&b, KPROF_AGENT_SYNC_EVENT, 20, 9);
	add_event(&b, 15, 33);
	add_sync(&b, KPROF_AGENT_SYNC_EVENT, 20, 9);
	add_event(&b, 25, 34);
	add_sync(&b, KPROF_AGENT_SYNC_STREAM_WAIT_EVENT, 20, 9);
	add_sync(&b, KPROF_AGENT_SYNC_EVENT, 30, 9);
	add_event(&b, 35, 35);
	add_sync(&b, KPROF_AGENT_SYNC_EVENT, 20, 9);
	add_sync(&b, 77, 20, 0);
	hand_over(&b);
	ends_with(
		"4242 13 [Stream Sync] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Stream Sync\n"
		"4242 13 [Context Sync] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Context Sync\n"
		"4242 13 [Event Sync] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Event Sync "
		"wait_on_cuda_event_id=9\n"
		"4242 13 [Event Sync] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Event Sync "
		"wait_on_stream=33 wait_on_cuda_event_record_corr_id=15 wait_on_cuda_event_id=9\n"
		"4242 13 [Stream Wait Event] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Stream Wait Event "
		"wait_on_stream=33 wait_on_cuda_event_record_corr_id=15 wait_on_cuda_event_id=9\n"
		"4242 13 [Event Sync] 1/2/3 2000-2100 q0 c30 cuda_sync_kind=Event Sync "
		"wait_on_stream=34 wait_on_cuda_event_record_corr_id=25 wait_on_cuda_event_id=9\n"
		"4242 13 [Event Sync] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Event Sync "
		"wait_on_cuda_event_id=9\n"
		"4242 13 [Unknown Sync] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Unknown Sync\n");
}

/* A row where the device came to an event, if it is known when that was. */
static void event_rows(void)
{
	struct kprof_agent_context context = {
		.h = HEAD(KPROF_AGENT_CONTEXT, struct kprof_agent_context, 0),
		.context = 2,
		.device = 3};
	struct kprof_agent_event e = {
		.h = HEAD(KPROF_AGENT_EVENT, struct kprof_agent_event, 0),
		.correlation = 15,
		.event = 9,
		.context = 2,
		.stream = 33,
		.device = 1,
	};
	struct batch b = {0};

	begin();
	batch_add(&b, &context, sizeof(context));
	batch_add(&b, &e, sizeof(e));
	e.time_ns = 2000;
	batch_add(&b, &e, sizeof(e));
	e.device = KPROF_AGENT_DEVICE_OF_CONTEXT;
	batch_add(&b, &e, sizeof(e));
	e.time_ns = START - 1;
	batch_add(&b, &e, sizeof(e));
	/* An agent that knows no times; and what it wrote is not the record before. */
	e.h.size = offsetof(struct kprof_agent_event, time_ns);
	batch_add(&b, &e, e.h.size);
	add_sync(&b, KPROF_AGENT_SYNC_EVENT, 20, 9);
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->malformed, 0);
	CHECK_EQ(agent_records__count(records)->outside, 1);
	ends_with("context.4242.2 {\"device\":3,\"nullStream\":0,\"runtime\":\"cuda\"}\n"
		  "4242 14 [cudaEvent] 1/2/33 2000-2000 q0 c15 event_id=9\n"
		  "4242 14 [cudaEvent] 3/2/33 2000-2000 q0 c15 event_id=9\n"
		  "4242 13 [Event Sync] 1/2/3 2000-2100 q0 c20 cuda_sync_kind=Event Sync "
		  "wait_on_stream=33 wait_on_cuda_event_record_corr_id=15 "
		  "wait_on_cuda_event_id=9\n");
}

static void add_call(struct batch *b, uint32_t tid, uint64_t start, uint64_t end, int32_t result)
{
	struct kprof_agent_api e = {
		.h = HEAD(KPROF_AGENT_API, struct kprof_agent_api, 1),
		.start_ns = start,
		.end_ns = end,
		.correlation = 11,
		.tid = tid,
		.cbid = 211,
		.type = KPROF_ACTIVITY_CUDA_RUNTIME,
		.result = result,
	};

	batch_add(b, &e, sizeof(e));
}

static void calls(void)
{
	struct batch b = {0};

	begin();
	batch_name(&b, 1, "cudaLaunchKernel_ptsz_v7000");
	add_call(&b, 7, 2000, 2010, 0);
	add_call(&b, 7, 2020, 2030, 2);
	add_call(&b, 8, 2000, 2010, 0);
	add_call(&b, 7, 100, 200, 0);
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->threadless, 1);
	CHECK_EQ(agent_records__count(records)->outside, 1);
	CHECK_EQ(agent_records__count(records)->received, 5);
	ends_with(
		"call 0 8 [cudaLaunchKernel] 2000-2010 c11 cbid=211\n"
		"call 0 8 [cudaLaunchKernel] 2020-2030 c11 cbid=211 error=cudaErrorMemoryAllocation (2)\n");
}

/* What ends before the window or begins after it is not kept; what reaches into it is. */
static void window(void)
{
	struct batch b = {0};

	begin();
	batch_name(&b, 1, "k");
	add_kernel(&b, 1, 500, START - 1);
	add_kernel(&b, 1, 500, START);
	add_kernel(&b, 1, END, END + 100);
	add_kernel(&b, 1, END + 1, END + 100);
	add_kernel(&b, 1, 0, 0);
	add_kernel(&b, 1, 2000, 1999);
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->outside, 2);
	CHECK_EQ(agent_records__count(records)->timeless, 2);
	ends_with("4242 6 [k] 1/2/3 500-1000 q0 c11" K "\n"
		  "4242 6 [k] 1/2/3 5000-5100 q0 c11" K "\n");
}

static void add_alloc(struct batch *b, uint64_t time, uint64_t address, uint64_t bytes,
		      uint32_t device, uint8_t release)
{
	struct kprof_agent_alloc e = {
		.h = HEAD(KPROF_AGENT_ALLOC, struct kprof_agent_alloc, 0),
		.time_ns = time,
		.address = address,
		.bytes = bytes,
		.device = device,
		.memory = KPROF_AGENT_MEMORY_DEVICE,
		.release = release,
	};

	batch_add(b, &e, sizeof(e));
}

/* What a device's memory holds more, or less, than when the recording began. */
static void memory(void)
{
	struct batch b = {0};

	begin();
	add_alloc(&b, 500, 0x1000, 100, 0, 0); /* before the window: counts, is not told */
	add_alloc(&b, 2000, 0x2000, 50, 0, 0);
	add_alloc(&b, 2001, 0x3000, 7, 1, 0);
	add_alloc(&b, 2002, 0x1000, 0, 0, 1);  /* a release that does not tell its size */
	add_alloc(&b, 2003, 0x9000, 30, 0, 1); /* of memory from before the recording */
	add_alloc(&b, 2004, 0x8000, 0, 0, 1);  /* … whose size nobody knows */
	add_alloc(&b, 2005, UINT64_MAX, 1, 1, 0);
	add_alloc(&b, 2006, 0x4000, UINT64_MAX, 0, 0);
	add_alloc(&b, END + 1, 0x5000, 1, 0, 0);
	((struct kprof_agent_alloc *)(void *)(b.data + b.bytes))[-1].memory =
		KPROF_AGENT_MEMORY_PINNED;
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->timeless, 1);
#define M "4242 memory allocated since the start of "
	ends_with(M "0 at 2000: 150\n" M "1 at 2001: 7\n" M "0 at 2002: 50\n" M "0 at 2003: 20\n" M
		    "0 at 2004: 20\n" M "1 at 2005: 8\n");
}

/* Values are those of the metrics that were asked for; what is no number is left out. */
static void ranges(void)
{
	struct kprof_agent_range e = {.a = activity(KPROF_ACTIVITY_KERNEL, 2000, 2100), .nr = 2};
	const double values[] = {6209305112.0, 0.5, 3};
	const double nan = __builtin_nan(""), inf = __builtin_inf();
	struct batch b = {0};

	e.a.h = (struct kprof_agent_head)HEAD(KPROF_AGENT_RANGE, struct kprof_agent_range, 1);
	begin();
	batch_name(&b, 1, "__profile__");
	memcpy(e.values, values, sizeof(values));
	batch_add(&b, &e, sizeof(e));
	e.nr = UINT32_MAX; /* more than were asked for */
	memcpy(&e.values[0], &nan, sizeof(nan));
	batch_add(&b, &e, sizeof(e));
	memcpy(&e.values[1], &inf, sizeof(inf));
	e.a.start_ns = 2100;
	batch_add(&b, &e, sizeof(e));
	e.a.start_ns = 2101;
	batch_add(&b, &e, sizeof(e));
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->timeless, 1);
	ends_with("4242 20 [__profile__] 1/2/3 2000-2100 q0 c0 sm__a.sum=6.20931e+09 b.avg=0.5\n"
		  "4242 20 [__profile__] 1/2/3 2000-2100 q0 c0 b.avg=0.5\n"
		  "4242 20 [__profile__] 1/2/3 2100-2100 q0 c0\n");
}

/* Ids that the program has pushed, one of each kind for a call; the work comes later. */
static void external_ids(void)
{
	struct kprof_agent_external e = {.h = {KPROF_AGENT_EXTERNAL, sizeof(e), 0},
					 .correlation = 11,
					 .external = 77,
					 .kind = 3};
	struct batch b = {0};

	begin();
	batch_name(&b, 1, "_Z3addPf");
	batch_add(&b, &e, sizeof(e));
	e.kind = 5;
	e.external = 1ull << 40;
	batch_add(&b, &e, sizeof(e));
	e.kind = 9; /* none that is known */
	batch_add(&b, &e, sizeof(e));
	e.kind = 3;
	e.correlation = 12;
	batch_add(&b, &e, sizeof(e));
	add_kernel(&b, 1, 2000, 2100);
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->externals, 4);
	ends_with("4242 6 [_Z3addPf] 1/2/3 2000-2100 q0 c11" K " external id (custom0)=77 "
		  "external id (custom2)=1099511627776\n");
}

static void lost_names(void)
{
	struct batch b = {0}, names = {0};

	begin();
	batch_name(&names, 2, "late");
	add_kernel(&b, 1, 2000, 2100);
	add_kernel(&b, 2, 2000, 2100);
	/* As slots of a dead process are read: the names of all of them first. */
	CHECK_EQ(agent_records__names(records, names.data, names.bytes), 0);
	CHECK_EQ(agent_records__count(records)->received, 0);
	hand_over(&b);
	hand_over(&names);
	CHECK_EQ(agent_records__count(records)->unnamed, 1);
	CHECK_EQ(agent_records__count(records)->received, 3);
	ends_with("4242 6 [(name lost)] 1/2/3 2000-2100 q0 c11" K "\n"
		  "4242 6 [late] 1/2/3 2000-2100 q0 c11" K "\n");
}

static void devices(void)
{
	struct batch b = {0};
	struct kprof_agent_device d = {
		.h = HEAD(KPROF_AGENT_DEVICE, struct kprof_agent_device, 1),
		.device = 1,
		.memory_bytes = 80ull << 30,
		.compute_major = 9,
		.warp_size = 32,
		.multiprocessors = 132,
		.clock_khz = 1980000,
	};
	struct kprof_agent_context c = {
		.h = HEAD(KPROF_AGENT_CONTEXT, struct kprof_agent_context, 0),
		.context = 5,
		.device = 1,
		.null_stream = 7,
	};
	struct kprof_agent_clock_pair p = {
		.h = HEAD(KPROF_AGENT_CLOCK, struct kprof_agent_clock_pair, 0),
		.width_ns = 40,
	};

	begin();
	batch_name(&b, 1, "Simulated \xff\"GPU\"");
	batch_add(&b, &d, sizeof(d));
	batch_add(&b, &c, sizeof(c));
	for (int i = 0; i < 3; i++) { /* 100 ppm fast */
		p.mono_ns = 1000000ull * (uint64_t)i;
		p.device_ns = 77000 + 1000100ull * (uint64_t)i;
		batch_add(&b, &p, sizeof(p));
	}
	hand_over(&b);
	CHECK_EQ(agent_records__finish(records), 0);
	ends_with(
		"device.4242.1 {\"id\":1,\"name\":\"Simulated ?\\\"GPU\\\"\",\"runtime\":\"cuda\","
		"\"computeMajor\":9,\"computeMinor\":0,\"totalGlobalMem\":85899345920,"
		"\"warpSize\":32,\"numSms\":132,\"clockRateKHz\":1980000}\n"
		"context.4242.5 {\"device\":1,\"nullStream\":7,\"runtime\":\"cuda\"}\n"
		"clock.device.4242 {\"pairs\":3,\"drift_ppm\":100,\"residual_rms_ns\":0,"
		"\"residual_max_ns\":0,\"width_min_ns\":40,\"width_max_ns\":40}\n");
}

/* A record that cannot be ends its batch, and only that; an unknown kind is passed over. */
static void malformed(void)
{
	static const uint16_t sizes[] = {0, 4, 12, 8, 4096, 65528};
	struct kprof_agent_head strange = {.kind = 999, .size = 8};
	struct batch b = {0};

	begin();
	batch_name(&b, 1, "k");
	batch_add(&b, &strange, sizeof(strange));
	hand_over(&b);
	CHECK_EQ(agent_records__count(records)->unknown, 1);
	CHECK_EQ(agent_records__count(records)->malformed, 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct kprof_agent_kernel e = kernel(1, 2000, 2100);

		b.bytes = 0;
		e.a.h.size = sizes[i];
		batch_add(&b, &e, sizeof(e));
		hand_over(&b);
		CHECK_EQ(agent_records__count(records)->malformed, i + 1);
	}
	for (size_t cut = 1; cut < 8; cut++) { /* not even a head */
		b.bytes = cut;
		hand_over(&b);
	}
	CHECK_EQ(agent_records__count(records)->malformed, ARRAY_SIZE(sizes) + 7);
	CHECK_EQ(agent_records__count(records)->received, 2);
	ends_with("");
}

UNIT_MAIN(TEST(kernels), TEST(later_fields), TEST(copies), TEST(syncs), TEST(event_rows),
	  TEST(devices_of_syncs), TEST(calls), TEST(window), TEST(external_ids), TEST(lost_names),
	  TEST(devices), TEST(malformed), TEST(memory), TEST(ranges))
