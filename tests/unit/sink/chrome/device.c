// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/sink/chrome/: what devices did, to the last character; and where rows, numbers and flows
 * differ.
 */
#include "sink_fixture.h"

#include "kprof/activity.h"

/* Microseconds of the window's start in the trace, without its last four places. */
#define T0 "4320000"

static struct made m;
static uint32_t linear, launch, sync_, annotation;

static void start(const char *path)
{
	made__start(&m, path);
	made__process(&m, 7, 1, "python3");
	made__thread(&m, 7, 7, "main");
	linear = made__what(&m, "aten::linear", "", "cpu_op", 0);
	launch = made__what(&m, "cudaLaunchKernel", "", "cuda_runtime", 0);
	sync_ = made__what(&m, "cudaDeviceSynchronize", "", "cuda_runtime", 0);
	annotation = made__what(&m, "my \"range\"", "", "user_annotation", 0);
}

static struct store_attr attr(const char *key, enum store_attr_type type, uint64_t value)
{
	return (struct store_attr){made__string(&m, key), type, value};
}

static void api_of(uint32_t thread, const char *name, uint64_t start_ns, uint64_t end_ns,
		   uint64_t correlation)
{
	struct store_attr cbid = attr("cbid", STORE_ATTR_U64, 211);

	made__put(&m, (struct store_record){
			      STORE_API,
			      .api = {.thread = thread,
				      .type = KPROF_ACTIVITY_CUDA_RUNTIME,
				      .name = made__string(&m, name),
				      .start_ns = MONO_NS + start_ns,
				      .end_ns = MONO_NS + end_ns,
				      .correlation = correlation},
			      .attrs = &cbid,
			      .nr_attrs = 1,
		      });
}

static void activity_of(uint32_t pid, enum kprof_activity type, const char *name, uint32_t stream,
			uint64_t start_ns, uint64_t end_ns, uint64_t correlation,
			const struct store_attr *attrs, uint32_t nr)
{
	made__put(&m, (struct store_record){
			      STORE_ACTIVITY,
			      .activity = {.pid = pid,
					   .type = type,
					   .name = made__string(&m, name),
					   .context = 1,
					   .stream = stream,
					   .start_ns = MONO_NS + start_ns,
					   .end_ns = MONO_NS + end_ns,
					   .correlation = correlation},
			      .attrs = attrs,
			      .nr_attrs = nr,
		      });
}

static void kernel(uint32_t stream, uint64_t start_ns, uint64_t end_ns, uint64_t correlation)
{
	activity_of(7, KPROF_ACTIVITY_KERNEL, "_Z3addPfi", stream, start_ns, end_ns, correlation,
		    NULL, 0);
}

static void span(uint64_t start_ns, uint64_t end_ns, uint32_t description)
{
	made__begin(&m, start_ns, 0, description);
	made__end(&m, end_ns, 0, 0);
}

static char *exported(const char *name)
{
	char path[64];
	int err;

	made__finish(&m);
	snprintf(path, sizeof(path), "%s.json", name);
	err = export_as(in_scratch(name), (struct kprof_export_opts){.path = in_scratch(path)});
	CHECK_EQ(err, 0);
	if (err)
		printf("# %s\n", kprof_error_cause());
	cJSON_Delete(trace_of(in_scratch(path)));
	return text_of(in_scratch(path));
}

static bool has_line(const char *text, const char *line)
{
	const char *at = strstr(text, line);

	if (at && at[-1] == '\n')
		return true;
	printf("# no such line: %s\n", line);
	return false;
}

static int occurrences(const char *text, const char *of)
{
	int n = 0;

	for (; (text = strstr(text, of)); text++)
		n++;
	return n;
}

static void events_to_the_letter(void)
{
	struct store_attr attrs[5];
	struct store_attr bytes, handle;
	char *text;

	start(in_scratch("a.kprof"));
	made__meta(&m, "device.7.0",
		   "{\"id\": 0, \"name\": \"A100\", \"computeMajor\": 8, \"computeMinor\": 0, "
		   "\"maxThreadsPerMultiprocessor\": 2048, \"regsPerMultiprocessor\": 65536, "
		   "\"warpSize\": 32, \"sharedMemPerMultiprocessor\": 167936, \"numSms\": 108}");
	made__meta(&m, "cupti_version", "26");
	attrs[0] = attr("grid", STORE_ATTR_DIM3, 864 | 1ull << 32 | 1ull << 48);
	attrs[1] = attr("block", STORE_ATTR_DIM3, 256 | 1ull << 32 | 1ull << 48);
	attrs[2] = attr("registers per thread", STORE_ATTR_U64, 47);
	attrs[3] = attr("shared memory", STORE_ATTR_U64, 0);
	attrs[4] = attr("device", STORE_ATTR_U64, 9); /* has a field of its own */
	activity_of(7, KPROF_ACTIVITY_KERNEL, "_Z3addPfi", 7, 5000, 9000, 3, attrs, 5);
	bytes = attr("bytes", STORE_ATTR_U64, 92928);
	activity_of(7, KPROF_ACTIVITY_GPU_MEMCPY, "Memcpy HtoD (Pinned -> Device)", 7, 10000, 18000,
		    0, &bytes, 1);
	api_of(0, "cudaLaunchKernel_v7000", 1200, 1800, 3);
	made__begin(&m, 1000, 0, linear); /* 1 */
	made__begin(&m, 1100, 0, launch); /* 2 */
	handle = attr("stream", STORE_ATTR_HEX, 0x7f);
	made__put(&m,
		  (struct store_record){STORE_ARGS, .args = {2}, .attrs = &handle, .nr_attrs = 1});
	made__end(&m, 1900, 0, 0);
	made__end(&m, 2000, 0, 0);
	text = exported("a.kprof");
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
			     "\"pid\":7,\"tid\":7,\"ts\":" T0 "0001.100,\"dur\":0.800,\"args\":{"
			     "\"External id\":1,\"cbid\":211,\"correlation\":3,"
			     "\"stream handle\":\"0x7f\"}},\n"));
	CHECK(has_line(text, "{\"ph\":\"s\",\"id\":3,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":7,"
			     "\"tid\":7,\"ts\":" T0 "0001.100},\n"));
	CHECK(has_line(text,
		       "{\"ph\":\"X\",\"cat\":\"kernel\",\"name\":\"add(float*, int)\","
		       "\"pid\":0,\"tid\":7,\"ts\":" T0 "0005.000,\"dur\":4.000,\"args\":{"
		       "\"External id\":1,\"device\":0,\"context\":1,\"stream\":7,"
		       "\"correlation\":3,\"queued\":0,\"grid\":[864,1,1],\"block\":[256,1,1],"
		       "\"registers per thread\":47,\"shared memory\":0,"
		       "\"blocks per SM\":8.000000,\"warps per SM\":64.000000,"
		       "\"est. achieved occupancy %\":63,"
		       "\"occupancy\":{\"activeBlocksPerMultiprocessor\":5,"
		       "\"limitingFactors\":\"REGS\",\"blockLimitRegs\":5,"
		       "\"blockLimitSharedMem\":164,\"blockLimitWarps\":8,"
		       "\"blockLimitBlocks\":32,\"allocatedRegistersPerBlock\":12288,"
		       "\"allocatedSharedMemPerBlock\":1024}}},\n"));
	CHECK(has_line(text,
		       "{\"ph\":\"f\",\"bp\":\"e\",\"id\":3,\"cat\":\"ac2g\",\"name\":\"ac2g\","
		       "\"pid\":0,\"tid\":7,\"ts\":" T0 "0005.000},\n"));
	/* Without a call: no operator, a number of its own. */
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"gpu_memcpy\","
			     "\"name\":\"Memcpy HtoD (Pinned -> Device)\",\"pid\":0,\"tid\":7,"
			     "\"ts\":" T0 "0010.000,\"dur\":8.000,\"args\":{\"device\":0,"
			     "\"context\":1,\"stream\":7,\"correlation\":4503599627370497,"
			     "\"bytes\":92928,\"memory bandwidth (GB/s)\":11.616000}},\n"));
	CHECK_EQ(occurrences(text, "\"ph\":\"f\""), 1);
	CHECK(has_line(text, "{\"ph\":\"M\",\"name\":\"process_labels\",\"ts\":" T0 "0000.000,"
			     "\"pid\":0,\"tid\":0,\"args\":{\"labels\":\"GPU 0\"}},\n"));
	CHECK(has_line(text, "{\"ph\":\"M\",\"name\":\"thread_name\",\"ts\":" T0 "0000.000,"
			     "\"pid\":0,\"tid\":7,\"args\":{\"name\":\"stream 7 \"}},\n"));
	CHECK(strstr(text, "\n  \"deviceProperties\": [\n    {\"id\": 0, \"name\":\"A100\","));
	CHECK(strstr(text, "\n  \"cupti_version\": 26,\n"));
	CHECK(strstr(text, "\"correlation\": {\"activities\": 2, \"linked\": 1, "
			   "\"without_call\": 1, \"without_op\": 0,"));
	CHECK(!strstr(text, "\"device.7.0\""));
	free(text);
}

/* A wait is on a row of its own and no arrow leads to it; a graph's kernels get one each. */
static void waits_and_graphs(void)
{
	struct store_attr kind, wait[2];
	char *text;

	start(in_scratch("w.kprof"));
	for (int i = 0; i < 3; i++)
		kernel(7, 5000 + i * 100, 6000, 3);
	kind = attr("cuda_sync_kind", STORE_ATTR_STRING, made__string(&m, "Context Sync"));
	activity_of(7, KPROF_ACTIVITY_CUDA_SYNC, "Context Sync", UINT32_MAX, 3000, 6100, 4, &kind,
		    1);
	wait[0] = attr("wait_on_stream", STORE_ATTR_U64, 7);
	wait[1] = attr("wait_on_cuda_event_record_corr_id", STORE_ATTR_U64, 3);
	activity_of(7, KPROF_ACTIVITY_CUDA_SYNC, "Stream Wait Event", 7, 3000, 6100, 5, wait, 2);
	api_of(0, "cudaLaunchKernel", 1200, 1800, 3);
	api_of(0, "cudaDeviceSynchronize", 2900, 6200, 4);
	span(1100, 1900, launch);
	span(2800, 6300, sync_);
	text = exported("w.kprof");
	CHECK_EQ(occurrences(text, "\"ph\":\"s\""), 1);
	CHECK_EQ(occurrences(text, "\"ph\":\"f\""), 3);
	CHECK(strstr(text, "\"name\":\"Context Sync\",\"pid\":0,\"tid\":1073741888,"));
	CHECK(strstr(text, "\"stream\":-1,\"correlation\":4,\"cuda_sync_kind\":\"Context Sync\"}"));
	CHECK(strstr(text, "\"name\":\"Stream Wait Event\",\"pid\":0,\"tid\":64007,"));
	CHECK(strstr(text, "\"wait_on_stream\":7,\"wait_on_cuda_event_record_corr_id\":3}"));
	CHECK(strstr(text, "\"tid\":2007,\"args\":{\"name\":\"stream 7 lane 3 \"}"));
	CHECK(strstr(text, "\"tid\":64007,\"args\":{\"name\":\"stream 7 waits \"}"));
	CHECK(strstr(text, "\"tid\":1073741888,\"args\":{\"name\":\"waits \"}"));
	free(text);
}

/* Consumers lose a stream 0: then all of the device's are numbered from 1. */
static void streams_from_one(void)
{
	char *text;

	start(in_scratch("z.kprof"));
	kernel(0, 5000, 6000, 3);
	kernel(1, 5000, 6000, 4);
	text = exported("z.kprof");
	CHECK(strstr(text, "\"tid\":1,\"ts\":" T0 "0005.000"));
	CHECK(strstr(text, "\"stream\":1,\"correlation\":3"));
	CHECK(strstr(text, "\"stream\":2,\"correlation\":4"));
	free(text);
}

/* Further processes' devices have pids, and correlations, of their own. */
static void two_processes(void)
{
	cJSON *trace;
	char *text;

	start(in_scratch("p.kprof"));
	made__process(&m, 9, 1, "python3");
	made__thread(&m, 9, 9, "main");
	made__meta(&m, "device.7.0", "{\"id\": 0, \"name\": \"first\"}");
	made__meta(&m, "device.9.0", "{\"id\": 0, \"name\": \"second\"}");
	kernel(7, 5000, 6000, 3);
	activity_of(9, KPROF_ACTIVITY_KERNEL, "k", 7, 5000, 6000, 3, NULL, 0);
	api_of(0, "cudaLaunchKernel", 1200, 1800, 3);
	api_of(1, "cudaLaunchKernel", 1300, 1700, 3);
	text = exported("p.kprof");
	CHECK(strstr(text, "\"pid\":0,\"tid\":7,\"ts\":" T0 "0005.000"));
	CHECK(strstr(text, "\"pid\":8388608,\"tid\":7,\"ts\":" T0 "0005.000"));
	CHECK(strstr(text, "\"args\":{\"labels\":\"GPU 0 of process 9\"}"));
	CHECK_EQ(occurrences(text, "\"correlation\":3,"), 2); /* the first's call and kernel … */
	CHECK_EQ(occurrences(text, "\"id\":4294967299,"), 2); /* … and the second's arrow */
	CHECK(strstr(text, "{\"id\": 8388608, \"name\":\"second\"}"));
	free(text);
	/* Alone, the second is the first. */
	CHECK_EQ(export_as(in_scratch("p.kprof"),
			   (struct kprof_export_opts){.path = in_scratch("9.json"), .pid = 9}),
		 0);
	text = text_of(in_scratch("9.json"));
	trace = trace_of(in_scratch("9.json"));
	CHECK(strstr(text, "\"pid\":0,\"tid\":7,\"ts\":" T0 "0005.000"));
	CHECK(!strstr(text, "\"pid\":7,"));
	CHECK_EQ(cJSON_GetArraySize(cJSON_GetObjectItem(trace, "deviceProperties")), 1);
	cJSON_Delete(trace);
	free(text);
}

/*
 * Rows of a PID that two processes had are named by the later one, a device's like the process's
 * own. No name is empty: Perfetto refuses that.
 */
static void names_of_processes(void)
{
	char *text;

	start(in_scratch("r.kprof"));
	made__process(&m, 9, 1, "");
	made__process_at(&m, 5000, 7, 9, "second");
	kernel(7, 5000, 6000, 3);
	activity_of(9, KPROF_ACTIVITY_KERNEL, "k", 7, 5000, 6000, 3, NULL, 0);
	activity_of(11, KPROF_ACTIVITY_KERNEL, "k", 7, 5000, 6000, 3, NULL, 0);
	text = exported("r.kprof");
	CHECK_EQ(occurrences(text, "\"process_name\""), 5); /* processes 7 and 9, three devices */
	CHECK_EQ(occurrences(text, "{\"name\":\"second\""), 2);
	CHECK_EQ(occurrences(text, "{\"name\":\"process 9\""), 2);
	CHECK_EQ(occurrences(text, "{\"name\":\"process 11\""), 1);
	CHECK_EQ(occurrences(text, "\"parent pid\":9}"), 1);
	free(text);
}

/* A call that no span was seen of, in an operator; ranges on the device; what the tools cost. */
static void calls_ranges_overhead(void)
{
	char *text;

	start(in_scratch("c.kprof"));
	api_of(0, "cudaLaunchKernel_ptsz", 1200, 1800, 3);
	kernel(7, 5000, 6000, 3);
	activity_of(7, KPROF_ACTIVITY_OVERHEAD, "Buffer Flush", 0, 7000, 7500, 0, NULL, 0);
	made__begin(&m, 900, 0, annotation); /* 1 */
	span(1000, 2000, linear);            /* 2 */
	made__end(&m, 2100, 0, 0);
	text = exported("c.kprof");
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"cuda_runtime\",\"name\":\"cudaLaunchKernel\","
			     "\"pid\":7,\"tid\":7,\"ts\":" T0 "0001.200,\"dur\":0.600,\"args\":{"
			     "\"External id\":2,\"cbid\":211,\"correlation\":3,"
			     "\"seen by\":\"agent\"}},\n"));
	CHECK(has_line(text, "{\"ph\":\"s\",\"id\":3,\"cat\":\"ac2g\",\"name\":\"ac2g\",\"pid\":7,"
			     "\"tid\":7,\"ts\":" T0 "0001.200},\n"));
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\","
			     "\"name\":\"my \\\"range\\\"\",\"pid\":0,\"tid\":7,\"ts\":" T0
			     "0005.000,\"dur\":1.000,\"args\":{\"External id\":1}},\n"));
	CHECK(has_line(text, "{\"ph\":\"X\",\"cat\":\"overhead\",\"name\":\"Buffer Flush\","
			     "\"pid\":7,\"tid\":1073741824,\"ts\":" T0 "0007.000,\"dur\":0.500,"
			     "\"args\":{}},\n"));
	CHECK(strstr(text,
		     "\"pid\":7,\"tid\":1073741824,\"args\":{\"name\":\"profiler overhead \"}"));
	CHECK(strstr(text, "\"Op count\":6}"));
	free(text);
}

static void instants_and_counters(void)
{
	struct store_attr attrs[6];
	uint32_t memory, text_id, json;
	double ratio = 0.25;
	char *text;

	start(in_scratch("i.kprof"));
	memory = made__what(&m, "[memory]", "", "cpu_instant_event", 0);
	text_id = made__string(&m, "a\"b");
	json = made__string(&m, "{\"x\": [1]}");
	attrs[0] = attr("Bytes", STORE_ATTR_I64, (uint64_t)-512);
	attrs[1] = attr("Addr", STORE_ATTR_U64, 4096);
	attrs[2] = attr("note", STORE_ATTR_STRING, text_id);
	attrs[3] = attr("payload", STORE_ATTR_JSON, json);
	attrs[4] = attr("ratio", STORE_ATTR_DOUBLE, 0);
	memcpy(&attrs[4].value, &ratio, sizeof(ratio));
	attrs[5] = attr("bad", STORE_ATTR_JSON, text_id);
	made__put(&m, (struct store_record){STORE_INSTANT, .instant = {MONO_NS + 3000, 0, memory},
					    .attrs = attrs, .nr_attrs = 6});
	kernel(7, 5000, 6000, 0);
	made__put(&m, (struct store_record){STORE_COUNTER,
					    .counter = {MONO_NS + 4000, 7, UINT32_MAX,
							made__string(&m, "open files"), -3}});
	made__put(&m, (struct store_record){
			      STORE_COUNTER,
			      .counter = {MONO_NS + 4000, 7, 0, made__string(&m, "memory"), 77}});
	text = exported("i.kprof");
	CHECK(has_line(text, "{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"cpu_instant_event\","
			     "\"name\":\"[memory]\",\"pid\":7,\"tid\":7,\"ts\":" T0
			     "0003.000,\"args\":{\"Bytes\":-512,\"Addr\":4096,\"note\":\"a\\\"b\","
			     "\"payload\":{\"x\": [1]},\"ratio\":0.25,\"bad\":\"a\\\"b\"}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"open files\",\"pid\":7,\"tid\":0,\"ts\":" T0
			     "0004.000,\"args\":{\"value\":-3}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"memory\",\"pid\":0,\"tid\":0,\"ts\":" T0
			     "0004.000,\"args\":{\"value\":77}},\n"));
	free(text);
}

static void allocation(uint32_t description, uint64_t ns, uint64_t allocated)
{
	struct store_attr attrs[] = {
		attr("Addr", STORE_ATTR_U64, 4096),
		attr("Bytes", STORE_ATTR_I64, 1),
		attr("Total Allocated", STORE_ATTR_U64, allocated),
	};

	made__put(&m,
		  (struct store_record){STORE_INSTANT, .instant = {MONO_NS + ns, 0, description},
					.attrs = attrs, .nr_attrs = ARRAY_SIZE(attrs)});
}

/* Each in the trace, and in a counter the last one of a step of some 76 us. */
static void allocations(void)
{
	uint32_t marked, memory;
	char *text;

	start(in_scratch("m.kprof"));
	made__meta(&m, "profile_memory", "true");
	made__put(&m, (struct store_record){
			      STORE_SOURCE,
			      .source = {.index = 1, .name = made__string(&m, "memory")}});
	marked = made__what(&m, "[memory]", "", "cpu_instant_event", 0);
	memory = m.descriptions + 1;
	made__put(&m, (struct store_record){
			      STORE_DESCRIPTION,
			      .description = {.id = ++m.descriptions,
					      .name = made__string(&m, "[memory]"),
					      .overload = made__string(&m, ""),
					      .category = made__string(&m, "cpu_instant_event"),
					      .source = 1}});
	allocation(memory, 1000, 10);
	allocation(memory, 2000, 20);
	allocation(marked, 3000, 77777); /* by a mark: another's books */
	allocation(memory, 4000, 15);
	allocation(memory, 900000, UINT64_MAX);
	text = exported("m.kprof");
	CHECK(strstr(text, "\"profile_memory\": 1,\n"));
	CHECK_EQ(occurrences(text, "\"name\":\"[memory]\""), 5);
	CHECK_EQ(occurrences(text, "\"ph\":\"C\""), 2);
	CHECK(has_line(text,
		       "{\"ph\":\"C\",\"name\":\"CPU memory allocated since the start\","
		       "\"pid\":7,\"tid\":0,\"ts\":" T0 "0004.000,\"args\":{\"value\":15}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"CPU memory allocated since the start\","
			     "\"pid\":7,\"tid\":0,\"ts\":" T0
			     "0900.000,\"args\":{\"value\":9223372036854775807}},\n"));
	free(text);
}

/* How much is queued and runs: in steps, the last value of each, nothing where nothing changes. */
static void computed_counters(void)
{
	struct store_attr bytes;
	char *text;

	start(in_scratch("n.kprof"));
	api_of(0, "cudaLaunchKernel", 0, 90, 1);
	api_of(0, "cudaLaunchKernel", 100, 190, 2);
	kernel(7, 200000, 400000, 1);
	kernel(9, 300000, 600000, 2);
	bytes = attr("bytes", STORE_ATTR_U64, 200000);
	activity_of(7, KPROF_ACTIVITY_GPU_MEMCPY, "Memcpy", 7, 700000, 800000, 0, &bytes, 1);
	text = exported("n.kprof");
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"Queue depth\",\"pid\":0,\"tid\":0,\"ts\":" T0
			     "0000.100,\"args\":{\"value\":2}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"Queue depth\",\"pid\":0,\"tid\":0,\"ts\":" T0
			     "0400.000,\"args\":{\"value\":1}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"Kernels in flight\",\"pid\":0,\"tid\":0,"
			     "\"ts\":" T0 "0300.000,\"args\":{\"value\":2}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"Kernels in flight\",\"pid\":0,\"tid\":0,"
			     "\"ts\":" T0 "0600.000,\"args\":{\"value\":0}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"Copy bandwidth (MB/s)\",\"pid\":0,"
			     "\"tid\":0,\"ts\":" T0 "0700.000,\"args\":{\"value\":2000}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"Copy bandwidth (MB/s)\",\"pid\":0,"
			     "\"tid\":0,\"ts\":" T0 "0800.000,\"args\":{\"value\":0}},\n"));
	CHECK(has_line(text, "{\"ph\":\"C\",\"name\":\"Kernels in flight, stream 9\",\"pid\":0,"
			     "\"tid\":0,\"ts\":" T0 "0300.000,\"args\":{\"value\":1}},\n"));
	CHECK_EQ(occurrences(text, "\"name\":\"Queue depth\""), 5);
	CHECK_EQ(occurrences(text, "\"name\":\"Kernels in flight\""), 4);
	free(text);
}

UNIT_MAIN(TEST(events_to_the_letter), TEST(waits_and_graphs), TEST(streams_from_one),
	  TEST(two_processes), TEST(names_of_processes), TEST(calls_ranges_overhead),
	  TEST(instants_and_counters), TEST(allocations), TEST(computed_counters))
