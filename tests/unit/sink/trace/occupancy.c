// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/sink/trace/occupancy.c: properties from the metadata, occupancy as CUDA's occupancy
 * calculator has it.
 */
#include "fake_store.h"

#include "sink/trace/occupancy.h"
#include "unit.h"

#define A100                                                                         \
	"{\"id\": 0, \"name\": \"A100\", \"computeMajor\": 8, \"computeMinor\": 0, " \
	"\"maxThreadsPerMultiprocessor\": 2048, \"regsPerMultiprocessor\": 65536, "  \
	"\"warpSize\": 32, \"sharedMemPerMultiprocessor\": 167936, \"numSms\": 108}"

#define V100                                                                         \
	"{\"id\": 0, \"name\": \"V100\", \"computeMajor\": 7, \"computeMinor\": 0, " \
	"\"maxThreadsPerMultiprocessor\": 2048, \"regsPerMultiprocessor\": 65536, "  \
	"\"warpSize\": 32, \"sharedMemPerMultiprocessor\": 98304, \"numSms\": 80}"

static struct device_props read_props(const char *json)
{
	struct device_props p;
	struct kprof_capture *t;

	fake_reset();
	fake_meta("device.42.0", json);
	fake_clock(1, 1);
	fake_finish(2);
	CHECK_EQ(kprof_capture_open("fake", &t), 0);
	device_props__read(t, 42, 0, &p);
	kprof_capture_close(t);
	return p;
}

static void properties(void)
{
	struct device_props p = read_props(A100);

	CHECK_EQ(p.multiprocessors, 108);
	CHECK_EQ(p.blocks_per_multiprocessor, 32); /* not in the JSON: by compute capability */
	CHECK_EQ(p.shared_per_multiprocessor, 167936);
	p = read_props("{\"computeMajor\": 8, \"computeMinor\": 9}");
	CHECK_EQ(p.blocks_per_multiprocessor, 24);
	p = read_props("{\"computeMajor\": 7, \"computeMinor\": 5, "
		       "\"maxBlocksPerMultiprocessor\": 5}");
	CHECK_EQ(p.blocks_per_multiprocessor, 5);
	p = read_props("[not json");
	CHECK_EQ(p.multiprocessors, 0);
	p = read_props("{\"numSms\": -3, \"warpSize\": 1e300, \"computeMajor\": \"8\"}");
	CHECK_EQ(p.multiprocessors, 0);
	CHECK_EQ(p.warp_size, 0);
}

/* What torch.profiler wrote on an A100 for kernels of these shapes. */
static void occupancy(void)
{
	static const struct {
		struct launch_shape shape;
		uint64_t blocks, warps; /* millionths */
		uint32_t percent;
	} known[] = {
		{{864, 256, 47, 0}, 8000000, 64000000, 63}, /* registers are scarce */
		{{128, 128, 16, 0}, 1185185, 4740741, 7},   /* not a wave of blocks */
		{{1, 512, 32, 2064}, 9259, 148148, 0},
		{{12, 256, 16, 0}, 111111, 888889, 1},
		{{1, 1, 16, 0}, 9259, 289, 0},
		{{10800, 64, 0, 0}, 100000000, 200000000, 100},
		{{10800, 32, 0, 0}, 100000000, 100000000, 50},       /* 32 blocks at most */
		{{10800, 256, 16, 40000}, 100000000, 800000000, 50}, /* 4 blocks' shared memory */
	};
	struct device_props p = read_props(A100);
	struct occupancy o;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		CHECK(device_occupancy(&p, &known[i].shape, &o));
		CHECK_EQ(o.blocks_millionths, known[i].blocks);
		CHECK_EQ(o.warps_millionths, known[i].warps);
		CHECK_EQ(o.percent, known[i].percent);
	}
}

/*
 * What NVIDIA's calculator says, in Kineto's words. tests/device.bats asks it about many more.
 */
static void limits(void)
{
	static const struct {
		const char *device;
		struct launch_shape shape;
		const char *json;
	} known[] = {
		{A100,
		 {864, 256, 47, 0},
		 "{\"activeBlocksPerMultiprocessor\":5,\"limitingFactors\":\"REGS\","
		 "\"blockLimitRegs\":5,\"blockLimitSharedMem\":164,\"blockLimitWarps\":8,"
		 "\"blockLimitBlocks\":32,\"allocatedRegistersPerBlock\":12288,"
		 "\"allocatedSharedMemPerBlock\":1024}"},
		{A100,
		 {1, 64, 32, 3000},
		 "{\"activeBlocksPerMultiprocessor\":32,\"limitingFactors\":\"WARPS|REGS|BLOCKS\","
		 "\"blockLimitRegs\":32,\"blockLimitSharedMem\":41,\"blockLimitWarps\":32,"
		 "\"blockLimitBlocks\":32,\"allocatedRegistersPerBlock\":2048,"
		 "\"allocatedSharedMemPerBlock\":4096}"},
		{V100,
		 {1, 96, 40, 3000},
		 "{\"activeBlocksPerMultiprocessor\":16,\"limitingFactors\":\"REGS\","
		 "\"blockLimitRegs\":16,\"blockLimitSharedMem\":32,\"blockLimitWarps\":21,"
		 "\"blockLimitBlocks\":32,\"allocatedRegistersPerBlock\":3840,"
		 "\"allocatedSharedMemPerBlock\":3072}"},
		{V100,
		 {1, 128, 16, 40000},
		 "{\"activeBlocksPerMultiprocessor\":2,\"limitingFactors\":\"SMEM\","
		 "\"blockLimitRegs\":32,\"blockLimitSharedMem\":2,\"blockLimitWarps\":16,"
		 "\"blockLimitBlocks\":32,\"allocatedRegistersPerBlock\":2048,"
		 "\"allocatedSharedMemPerBlock\":40192}"},
		{V100, /* no shared memory: none is scarce */
		 {1, 128, 16, 0},
		 "{\"activeBlocksPerMultiprocessor\":16,\"limitingFactors\":\"WARPS\","
		 "\"blockLimitRegs\":32,\"blockLimitWarps\":16,\"blockLimitBlocks\":32,"
		 "\"allocatedRegistersPerBlock\":2048,\"allocatedSharedMemPerBlock\":0}"},
	};
	char text[OCCUPANCY_JSON_BYTES];
	struct device_props p;
	struct occupancy o;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		p = read_props(known[i].device);
		CHECK(device_occupancy(&p, &known[i].shape, &o));
		CHECK(o.is_whole);
		CHECK_STR(occupancy__json(&o, text), known[i].json);
	}
	/* Without the registers of either side, nobody knows which limit is the least. */
	CHECK(device_occupancy(&p, &(struct launch_shape){1, 128, 0, 0}, &o) && !o.is_whole);
	p.registers_per_multiprocessor = 0;
	CHECK(device_occupancy(&p, &known[4].shape, &o) && !o.is_whole);
}

/* Numbers from a file that are as large as can be. */
static void the_largest(void)
{
	struct device_props p = {
		.compute_major = INT32_MAX,
		.multiprocessors = 1,
		.warp_size = 1,
		.threads_per_multiprocessor = INT32_MAX,
		.blocks_per_multiprocessor = INT32_MAX,
		.registers_per_multiprocessor = INT32_MAX,
		.shared_per_multiprocessor = UINT64_C(1) << 53,
	};
	struct launch_shape shape = {1, 1, 1, 0};
	char text[OCCUPANCY_JSON_BYTES];
	struct occupancy o;

	CHECK(device_occupancy(&p, &shape, &o));
	CHECK(strlen(occupancy__json(&o, text)) < sizeof(text) - 1);
	shape = (struct launch_shape){1, 1 << 20, UINT16_MAX, UINT64_C(1) << 40};
	p.warp_size = INT32_MAX;
	CHECK(device_occupancy(&p, &shape, &o));
	CHECK(strlen(occupancy__json(&o, text)) < sizeof(text) - 1);
	CHECK(text[strlen(text) - 1] == '}');
}

static void not_known_well_enough(void)
{
	struct device_props p = read_props(A100), none = {0};
	struct launch_shape shape = {.blocks = 1, .threads = 32};
	struct occupancy o;

	CHECK(!device_occupancy(&none, &shape, &o));
	shape.threads = 0;
	CHECK(!device_occupancy(&p, &shape, &o));
	shape = (struct launch_shape){.blocks = UINT64_MAX, .threads = 1024};
	CHECK(!device_occupancy(&p, &shape, &o));
	shape = (struct launch_shape){
		.blocks = 1, .threads = UINT32_MAX, .shared_bytes = UINT64_MAX};
	CHECK(!device_occupancy(&p, &shape, &o));
}

UNIT_MAIN(TEST(properties), TEST(occupancy), TEST(limits), TEST(the_largest),
	  TEST(not_known_well_enough))
