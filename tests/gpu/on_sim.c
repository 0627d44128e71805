// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent with CUPTI, on the simulated CUDA: a program that launches, copies, sets and waits, and
 * plays kprof beside it. What CUPTI said and what arrived must be the same. The library path and
 * KPROF_SIM_… choose which CUDA, and what is wrong with it.
 *   on_sim MAJOR SCENARIO
 */
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu_fixture.h"
#include "gpu/base/module.h"
#include "gpu/base/util.h"
#include "tests/sim/cuda_abi.h"

#define LAUNCHES 3000
#define COPIES 500
#define SETS 300
#define THREADS 4

int kprof_agent_start(void);

struct dim3 {
	unsigned int x, y, z;
};

static struct {
	void **(*fat_binary)(void *);
	void (*function)(void **, const char *, char *, const char *, int, void *, void *, void *,
			 void *, int *);
	int (*launch)(const void *, struct dim3, struct dim3, void **, size_t, void *);
	int (*copy)(void *, const void *, size_t, int, void *);
	int (*set)(void *, int, size_t, void *);
	int (*malloc)(void **, size_t);
	int (*wait)(void);
	int (*get_device)(int *);
	int (*event)(void **);
	int (*record)(void *, void *);
	int (*event_wait)(void *);
} cuda;

static void *device_memory;
static char gemm, relu; /* what the host has in place of a kernel */

static const struct sim_kernel_desc kernels[] = {
	{.name = "_Z4gemmPfS_", .registers = 40, .fixed_ns = 3000},
	{.name = "_Z4reluPf", .registers = 16, .fixed_ns = 1000},
};
static const struct sim_image image = {SIM_IMAGE_MAGIC, 2, kernels};
static struct sim_fatbin fatbin = {SIM_FATBIN_MAGIC, 1, &image, NULL};

static void *function(void *lib, const char *name)
{
	void *f = dlsym(lib, name);

	if (!f) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	return f;
}

static void load_cuda(const char *major)
{
	char name[64];
	void *lib;
	void **binary;

	snprintf(name, sizeof(name), "libcudart.so.%s", major);
	lib = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		exit(2);
	}
	*(void **)&cuda.fat_binary = function(lib, "__cudaRegisterFatBinary");
	*(void **)&cuda.function = function(lib, "__cudaRegisterFunction");
	*(void **)&cuda.launch = function(lib, "cudaLaunchKernel");
	*(void **)&cuda.copy = function(lib, "cudaMemcpyAsync");
	*(void **)&cuda.set = function(lib, "cudaMemsetAsync");
	*(void **)&cuda.malloc = function(lib, "cudaMalloc");
	*(void **)&cuda.wait = function(lib, "cudaDeviceSynchronize");
	*(void **)&cuda.get_device = function(lib, "cudaGetDevice");
	*(void **)&cuda.event = function(lib, "cudaEventCreate");
	*(void **)&cuda.record = function(lib, "cudaEventRecord");
	*(void **)&cuda.event_wait = function(lib, "cudaEventSynchronize");
	binary = cuda.fat_binary(&fatbin);
	cuda.function(binary, &gemm, NULL, "_Z4gemmPfS_", -1, NULL, NULL, NULL, NULL, NULL);
	cuda.function(binary, &relu, NULL, "_Z4reluPf", -1, NULL, NULL, NULL, NULL, NULL);
}

/* CUDA starts with the first call; where it can't (too old a driver), the agent has to say why. */
static void use_cuda(void)
{
	cuda.malloc(&device_memory, 1 << 20);
}

static void *work(void *arg)
{
	struct dim3 grid = {8, 1, 1}, block = {128, 1, 1};
	static char host[4096];
	int device;

	for (int i = 0; i < LAUNCHES / THREADS; i++) {
		CHECK_EQ(cuda.get_device(&device), 0);
		CHECK_EQ(cuda.launch(i & 1 ? &gemm : &relu, grid, block, NULL, 0, NULL), 0);
	}
	for (int i = 0; i < COPIES / THREADS; i++)
		CHECK_EQ(cuda.copy(device_memory, host, sizeof(host), 1, NULL), 0);
	for (int i = 0; i < SETS / THREADS; i++)
		CHECK_EQ(cuda.set(device_memory, 0, 64, NULL), 0);
	return NULL;
}

static void work_by_threads(void)
{
	pthread_t t[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(cuda.wait(), 0);
}

/* ---- kprof ---- */

static bool beating;
static pthread_t heart;

static void *beats(void *arg)
{
	while (__atomic_load_n(&beating, __ATOMIC_RELAXED)) {
		__atomic_store_n(&gpu_shm()->heartbeat_ns, gpu_now_ns(), __ATOMIC_RELAXED);
		usleep(20000);
	}
	return NULL;
}

static void command(enum kprof_agent_command c)
{
	__atomic_store_n(&gpu_shm()->command, c, __ATOMIC_RELEASE);
	gpu_futex_wake(&gpu_shm()->command, true);
}

static void wait_for(enum kprof_agent_state state)
{
	const kprof_u32 *word = &gpu_shm()->state;
	uint32_t now;

	while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) != state)
		gpu_futex_wait(word, now, 100, true);
}

static void record(uint32_t session)
{
	struct kprof_agent_shm *shm = gpu_shm();

	shm->types = ~UINT64_C(0);
	shm->options = KPROF_AGENT_OPT_SYNC;
	shm->session = session;
	command(KPROF_AGENT_RECORD);
}

static void attach(void)
{
	CHECK_EQ(kprof_agent_start(), 0);
	beating = true;
	pthread_create(&heart, NULL, beats, NULL);
}

static void detach(void)
{
	command(KPROF_AGENT_LEAVE);
	wait_for(KPROF_AGENT_LEFT);
	__atomic_store_n(&beating, false, __ATOMIC_RELAXED);
	pthread_join(heart, NULL);
}

static void rest(void)
{
	command(KPROF_AGENT_REST);
	wait_for(KPROF_AGENT_RESTING);
}

/* ---- scenarios ---- */

static void check_session(void)
{
	struct kprof_agent_shm *shm = gpu_shm();
	uint64_t sum = 0;

	CHECK_EQ(shm->device_dropped, 0);
	CHECK_EQ(shm->agent_dropped, 0);
	CHECK_EQ(shm->unknown_records, 0);
	CHECK_EQ(shm->buffers, 0);
	CHECK_EQ(seen.broken, 0);
	CHECK_EQ(seen.nameless, 0);
	CHECK_EQ(seen.records[KPROF_AGENT_KERNEL], LAUNCHES);
	CHECK_EQ(seen.records[KPROF_AGENT_COPY], COPIES + SETS);
	CHECK(seen.records[KPROF_AGENT_API] >= LAUNCHES + COPIES + SETS + 1);
	CHECK(seen.records[KPROF_AGENT_API] <
	      3 * (LAUNCHES + COPIES + SETS)); /* no cudaGetDevice */
	CHECK(seen.records[KPROF_AGENT_DEVICE] >= 1);
	CHECK(seen.records[KPROF_AGENT_CONTEXT] >= 1);
	CHECK(seen.records[KPROF_AGENT_SYNC] >= 1);
	CHECK(seen.records[KPROF_AGENT_CLOCK] >= 2); /* first and last */
	for (int i = 0; i < 16; i++)
		sum += seen.records[i];
	CHECK_EQ(sum, shm->records);
	CHECK_EQ(seen.names > 4, 1);
}

/* Two sessions with a detach between, in a process that goes on using CUDA. */
static void sessions(void)
{
	use_cuda();
	CHECK(device_memory);
	attach();
	for (uint32_t session = 1; session <= 3; session++) {
		seen_clear();
		record(session);
		wait_for(KPROF_AGENT_RECORDING);
		work_by_threads();
		rest();
		check_session();
		work_by_threads(); /* unobserved */
		CHECK_EQ(seen.records[KPROF_AGENT_KERNEL], LAUNCHES);
	}
	detach();
	printf("left: %s\n", gpu_shm()->detail);
	work_by_threads();
	attach();
	seen_clear();
	record(4);
	wait_for(KPROF_AGENT_RECORDING);
	work_by_threads();
	rest();
	check_session();
	printf("clock %u\n", gpu_shm()->clock);
	detach();
}

static void *keeps_working(void *arg)
{
	const bool *on = arg;

	while (__atomic_load_n(on, __ATOMIC_RELAXED))
		work(NULL);
	return NULL;
}

/* A process that makes CUDA calls while kprof leaves: CUPTI is finalized at the end of one. */
static void busy(void)
{
	bool on = true;
	pthread_t t;

	use_cuda();
	attach();
	record(1);
	wait_for(KPROF_AGENT_RECORDING);
	pthread_create(&t, NULL, keeps_working, &on);
	while (!__atomic_load_n(&seen.records[KPROF_AGENT_KERNEL], __ATOMIC_RELAXED))
		usleep(1000);
	detach();
	printf("left: %s\n", gpu_shm()->detail);
	attach();
	record(2);
	wait_for(KPROF_AGENT_RECORDING);
	rest();
	detach();
	__atomic_store_n(&on, false, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	CHECK_EQ(cuda.wait(), 0);
}

/*
 * What readings of both clocks leave open: two microseconds, and more on a machine that was busy at
 * each of them.
 */
static uint64_t left_open_ns(void)
{
	const struct kprof_agent_clock_pair *pair;
	uint64_t widest_ns = 0;

	for (unsigned int i = 0; i < seen.nr_kept; i++) {
		pair = (const void *)seen.kept[i];
		if (pair->h.kind == KPROF_AGENT_CLOCK && pair->width_ns > widest_ns)
			widest_ns = pair->width_ns;
	}
	return 2000 + widest_ns;
}

/* Device times on our clock: in a launch's call or after it, never before. */
static void clocks(void)
{
	const struct kprof_agent_kernel *k;
	uint64_t start, end, open_ns;
	struct dim3 one = {1, 1, 1};
	int kernels = 0;

	use_cuda();
	attach();
	record(1);
	wait_for(KPROF_AGENT_RECORDING);
	usleep(2500000); /* time for two pairs to show a drift */
	start = gpu_now_ns();
	for (int i = 0; i < 10; i++)
		cuda.launch(&gemm, one, one, NULL, 0, NULL);
	CHECK_EQ(cuda.wait(), 0);
	end = gpu_now_ns();
	rest();
	open_ns = left_open_ns();
	for (unsigned int i = 0; i < seen.nr_kept; i++) {
		k = (const void *)seen.kept[i];
		if (k->a.h.kind != KPROF_AGENT_KERNEL)
			continue;
		kernels++;
		CHECK(k->a.start_ns + open_ns >= start && k->a.start_ns <= k->a.end_ns &&
		      k->a.end_ns <= end + open_ns);
		if (k->a.start_ns + open_ns < start || k->a.end_ns > end + open_ns)
			printf("# %lld before, %lld after\n", (long long)(start - k->a.start_ns),
			       (long long)(k->a.end_ns - end));
	}
	CHECK_EQ(kernels, 10);
	printf("clock %u\n", gpu_shm()->clock);
	detach();
}

/* Another tool takes CUPTI in the middle of it: nothing that is that tool's is touched any more. */
static void taken(void)
{
	bool on = true;
	pthread_t t;

	use_cuda();
	attach();
	record(1);
	wait_for(KPROF_AGENT_RECORDING);
	pthread_create(&t, NULL, keeps_working, &on);
	wait_for(KPROF_AGENT_FAILED);
	printf("reason %u: %s\n", gpu_shm()->reason, gpu_shm()->detail);
	CHECK(seen.records[KPROF_AGENT_KERNEL] > 0);
	rest();
	__atomic_store_n(&on, false, __ATOMIC_RELAXED);
	pthread_join(t, NULL);
	detach();
	CHECK_EQ(cuda.wait(), 0);
}

/* More work than there are buffers for: what has no place in one is counted. */
static void flooded(void)
{
	struct kprof_agent_shm *shm;

	use_cuda();
	attach();
	shm = gpu_shm();
	record(1);
	wait_for(KPROF_AGENT_RECORDING);
	for (int i = 0; i < 4; i++)
		work_by_threads();
	rest();
	CHECK_EQ(seen.broken, 0);
	printf("kernels %llu copies %llu dropped %llu buffers %llu\n",
	       (unsigned long long)seen.records[KPROF_AGENT_KERNEL],
	       (unsigned long long)seen.records[KPROF_AGENT_COPY],
	       (unsigned long long)shm->device_dropped, (unsigned long long)shm->max_buffers);
	detach();
}

static void *work_a_little(void *arg)
{
	struct dim3 one = {1, 1, 1};

	for (int i = 0; i < 10; i++)
		CHECK_EQ(cuda.launch(&gemm, one, one, NULL, 0, NULL), 0);
	pthread_barrier_wait(arg);
	return NULL;
}

/* As many threads as a data loader and a parallel backward have, all alive at a time. */
static void many_threads(void)
{
	pthread_barrier_t all;
	pthread_t t[150];

	pthread_barrier_init(&all, NULL, 150);
	use_cuda();
	attach();
	record(1);
	wait_for(KPROF_AGENT_RECORDING);
	for (int i = 0; i < 150; i++)
		pthread_create(&t[i], NULL, work_a_little, &all);
	for (int i = 0; i < 150; i++)
		pthread_join(t[i], NULL);
	CHECK_EQ(cuda.wait(), 0);
	rest();
	CHECK_EQ(seen.records[KPROF_AGENT_KERNEL], 1500);
	CHECK_EQ(gpu_shm()->device_dropped, 0);
	CHECK(gpu_shm()->max_buffers < 10);
	detach();
	pthread_barrier_destroy(&all);
}

/* Not recorded, for a reason. */
static void refused(void)
{
	use_cuda();
	attach();
	record(1);
	wait_for(KPROF_AGENT_FAILED);
	printf("reason %u: %s\n", gpu_shm()->reason, gpu_shm()->detail);
	if (device_memory)
		work_by_threads();
	CHECK_EQ(seen.records[KPROF_AGENT_KERNEL], 0);
	detach();
}

/* CUDA is loaded, but first used after kprof has come. */
static void later(void)
{
	attach();
	record(1);
	while (!__atomic_load_n(&gpu_shm()->reason, __ATOMIC_ACQUIRE))
		usleep(1000);
	printf("reason %u: %s\n", gpu_shm()->reason, gpu_shm()->detail);
	CHECK_EQ(gpu_shm()->state, KPROF_AGENT_LOADED);
	use_cuda();
	wait_for(KPROF_AGENT_RECORDING);
	work_by_threads();
	rest();
	check_session();
	detach();
}

static void lossy(void)
{
	use_cuda();
	attach();
	record(1);
	wait_for(KPROF_AGENT_RECORDING);
	work_by_threads();
	rest();
	CHECK(gpu_shm()->device_dropped > 0);
	printf("kernels %llu copies %llu api %llu dropped %llu\n",
	       (unsigned long long)seen.records[KPROF_AGENT_KERNEL],
	       (unsigned long long)seen.records[KPROF_AGENT_COPY],
	       (unsigned long long)seen.records[KPROF_AGENT_API],
	       (unsigned long long)gpu_shm()->device_dropped);
	detach();
}

/* A child of a process that is being recorded, and exit() in the middle of it. */
static void forks(void)
{
	int status = -1;
	pid_t child;

	use_cuda();
	attach();
	record(1);
	wait_for(KPROF_AGENT_RECORDING);
	child = fork();
	if (!child)
		_exit(gpu_shm() != NULL);
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	child = fork();
	if (!child)
		exit(0); /* with all its handlers */
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
	work_by_threads();
	fflush(stdout);
	exit(unit_failures_here ? 1 : 0);
}

int main(int argc, char *argv[])
{
	static const struct {
		const char *name;
		void (*run)(void);
	} scenarios[] = {
		{"sessions", sessions}, {"busy", busy},
		{"clocks", clocks},     {"refused", refused},
		{"later", later},       {"lossy", lossy},
		{"forks", forks},       {"taken", taken},
		{"flooded", flooded},   {"many_threads", many_threads},
	};

	if (argc != 3)
		return 2;
	load_cuda(argv[1]);
	for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		if (strcmp(argv[2], scenarios[i].name))
			continue;
		scenarios[i].run();
		return unit_failures_here ? 1 : 0;
	}
	return 2;
}
