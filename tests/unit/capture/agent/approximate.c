// SPDX-License-Identifier: BSD-2-Clause
/* Launches and waits of a program, and the brackets around what its device did. */
#include "capture/agent/approximate.h"

#include "agent_fixture.h"

static struct store_writer *store;
static struct approximate *a;

static void begin(void)
{
	scratch__make();
	CHECK_EQ(store_writer__open(in_scratch("c.kprof"), NULL, &store), 0);
	CHECK_EQ(approximate__new(store, 7, &a), 0);
}

static void ends_with(const char *expected)
{
	struct lines *l;

	approximate__free(a);
	CHECK_EQ(store_writer__finish(store, 1), 0);
	l = lines_read(in_scratch("c.kprof"));
	CHECK_STR(l->text, expected);
	lines_free(l);
	scratch__remove();
}

static void work(enum device_role role, uint64_t stream, uint64_t ns)
{
	approximate__work(a, role, stream, ns);
}

static void waited(enum device_role role, uint64_t handle, uint64_t ns)
{
	CHECK_EQ(approximate__waited(a, role, handle, ns, "busy"), 0);
}

#define ROW(stream, times, counts, handle)                                       \
	"7 40 [device work (approximate)] 0/0/" stream " " times " q0 c0" counts \
	" stream handle=" handle " reason=busy\n"

static void streams(void)
{
	begin();
	waited(DEVICE_ROLE_WAIT_STREAM, 100, 5); /* for nothing */
	work(DEVICE_ROLE_LAUNCH, 100, 10);
	work(DEVICE_ROLE_LAUNCH, 100, 11);
	work(DEVICE_ROLE_COPY, 200, 12);
	work(DEVICE_ROLE_SET, 100, 13);
	waited(DEVICE_ROLE_WAIT_STREAM, 100, 20);
	waited(DEVICE_ROLE_WAIT_STREAM, 100, 21); /* nothing new */
	work(DEVICE_ROLE_LAUNCH, 100, 30);
	ends_with(ROW("1", "10-20", " launches=2 sets=1", "100"));
}

static void device(void)
{
	begin();
	work(DEVICE_ROLE_LAUNCH, 0, 10);
	work(DEVICE_ROLE_LAUNCH, 1, 11); /* the default stream by its other name */
	work(DEVICE_ROLE_COPY, 200, 12);
	waited(DEVICE_ROLE_WAIT_DEVICE, 0, 20);
	ends_with(ROW("1", "10-20", " launches=2", "0") ROW("2", "12-20", " copies=1", "200"));
}

static void events(void)
{
	begin();
	CHECK_EQ(approximate__record(a, 55, 100, 5), 0); /* before there is any work */
	waited(DEVICE_ROLE_WAIT_EVENT, 55, 6);
	work(DEVICE_ROLE_LAUNCH, 100, 10);
	CHECK_EQ(approximate__record(a, 55, 100, 15), 0);
	work(DEVICE_ROLE_LAUNCH, 100, 17); /* behind the event: not waited for */
	waited(DEVICE_ROLE_WAIT_EVENT, 55, 20);
	waited(DEVICE_ROLE_WAIT_EVENT, 55, 25); /* once is enough */
	waited(DEVICE_ROLE_WAIT_EVENT, 66, 26); /* unknown */
	waited(DEVICE_ROLE_WAIT_STREAM, 100, 30);
	ends_with(ROW("1", "10-20", " launches=1", "100") ROW("1", "17-30", " launches=1", "100"));
}

static void many(void)
{
	begin();
	for (uint64_t i = 0; i < 200000; i++)
		CHECK_EQ(approximate__record(a, i, 100, i), 0);
	work(DEVICE_ROLE_LAUNCH, 100, 300000);
	waited(DEVICE_ROLE_WAIT_EVENT, 3, 300001); /* long forgotten */
	ends_with("");
}

static void roles(void)
{
	static const struct {
		const char *call;
		enum device_role role;
	} expected[] = {
		{"cudaLaunchKernel", DEVICE_ROLE_LAUNCH},
		{"cudaLaunchKernelExC", DEVICE_ROLE_LAUNCH},
		{"cuLaunchKernelEx", DEVICE_ROLE_LAUNCH},
		{"cudaLaunchHostFunc", DEVICE_ROLE_NONE},
		{"cudaGraphLaunch", DEVICE_ROLE_LAUNCH},
		{"cudaMemcpyAsync", DEVICE_ROLE_COPY},
		{"cuMemcpyHtoDAsync", DEVICE_ROLE_COPY},
		{"cudaMemcpy", DEVICE_ROLE_COPY_AND_WAIT},
		{"cudaMemset2DAsync", DEVICE_ROLE_SET},
		{"cuMemsetD32", DEVICE_ROLE_SET},
		{"cudaEventRecord", DEVICE_ROLE_RECORD},
		{"cuStreamSynchronize", DEVICE_ROLE_WAIT_STREAM},
		{"cudaStreamWaitEvent", DEVICE_ROLE_NONE},
		{"cudaEventSynchronize", DEVICE_ROLE_WAIT_EVENT},
		{"cudaDeviceSynchronize", DEVICE_ROLE_WAIT_DEVICE},
		{"cudaMalloc", DEVICE_ROLE_ALLOCATE},
	};

	for (size_t i = 0; i < ARRAY_SIZE(expected); i++)
		CHECK_EQ(device_role_of(expected[i].call), expected[i].role);
}

UNIT_MAIN(TEST(streams), TEST(device), TEST(events), TEST(many), TEST(roles))
