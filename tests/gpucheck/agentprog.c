// SPDX-License-Identifier: BSD-2-Clause
/*
 * The agent without kprof, which needs no right at all: a CUDA program that plays kprof's part as
 * well. It asks the agent to record, works, and says what is in the agent's memory file, and what
 * gpucheck_watch.so has seen of CUPTI.
 *
 *   agentprog AGENT WATCH injection|dlopen [N]
 *
 * injection: CUDA loads the agent, in cuInit. dlopen: the program does, when it has used CUDA.
 */
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cudawork.h"
#include "kprof/agent.h"
#include "tests/gpu/find_shm.h"
#include "watch.h"

#define MS UINT64_C(1000000)
#define PATIENCE_NS (20000 * MS)

static struct kprof_agent_shm *shm;
static bool beating = true, was_recording;

static void command(enum kprof_agent_command c)
{
	__atomic_store_n(&shm->command, c, __ATOMIC_RELEASE);
	syscall(SYS_futex, &shm->command, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Kprof's part: asks the agent to record once it is there, and lives. */
static void *kprof(void *arg)
{
	const uint64_t types = ~UINT64_C(0);

	while (__atomic_load_n(&beating, __ATOMIC_RELAXED)) {
		if (!shm) {
			struct kprof_agent_shm *found = find_shm();

			if (found &&
			    __atomic_load_n(&found->magic, __ATOMIC_ACQUIRE) == KPROF_AGENT_MAGIC) {
				found->heartbeat_ns = work_now_ns();
				found->types = types;
				found->session = 1;
				__atomic_store_n(&shm, found, __ATOMIC_RELEASE);
				command(KPROF_AGENT_RECORD);
			}
		} else {
			__atomic_store_n(&shm->heartbeat_ns, work_now_ns(), __ATOMIC_RELAXED);
		}
		usleep(1000);
	}
	return NULL;
}

static struct kprof_agent_shm *memory(void)
{
	return __atomic_load_n(&shm, __ATOMIC_ACQUIRE);
}

/* True: one of these states (bits 1 << enum kprof_agent_state) was reached. */
static bool await(unsigned int states)
{
	uint64_t until_ns = work_now_ns() + PATIENCE_NS;

	while (work_now_ns() < until_ns) {
		if (memory() && states & 1u << __atomic_load_n(&memory()->state, __ATOMIC_ACQUIRE))
			return true;
		usleep(1000);
	}
	return false;
}

static void load_agent(const char *path)
{
	void *agent = dlopen(path, RTLD_NOW);
	int (*start)(void) = agent ? (int (*)(void))dlsym(agent, KPROF_AGENT_START_SYMBOL) : NULL;

	if (start && !start())
		return;
	fprintf(stderr, "gpucheck: %s\n", agent ? "the agent does not start" : dlerror());
	exit(1);
}

static void print_memory(void)
{
	const struct kprof_agent_shm *m = memory();

	if (!m) {
		printf("null");
		return;
	}
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{"state", m->state},
		{"reason", m->reason},
		{"clock", m->clock},
		{"cupti_version", m->cupti_version},
		{"driver_version", m->driver_version},
		{"runtime_version", m->runtime_version},
		{"records", m->records},
		{"device_dropped", m->device_dropped},
		{"agent_dropped", m->agent_dropped},
		{"unknown_records", m->unknown_records},
		{"buffers", m->buffers},
		{"max_buffers", m->max_buffers},
	};

	printf("{\"recorded\": %s, \"detail\": \"%s\"", was_recording ? "true" : "false",
	       m->detail);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		printf(", \"%s\": %" PRIu64, numbers[i].key, numbers[i].value);
	printf("}");
}

static void print_watch(void *watch)
{
	void (*print)(FILE *) = watch ? (void (*)(FILE *))dlsym(watch, "watch_print") : NULL;

	if (print)
		print(stdout);
	else
		printf("null");
}

/* Works in the middle of a recording, for longer than CUPTI took to change its clock once. */
static bool record(void *watch, uint64_t rounds)
{
	void (*clock)(const char *) =
		watch ? (void (*)(const char *))dlsym(watch, "watch_clock") : NULL;
	bool right = true;

	if (clock)
		clock("begun");
	for (uint64_t i = 0; i < rounds; i++) {
		if (i == rounds / 2)
			usleep(1100000);
		right = cuda__round() && right;
	}
	if (clock)
		clock("a second later");
	return right;
}

int main(int argc, char **argv)
{
	uint64_t rounds = argc > 4 ? strtoull(argv[4], NULL, 10) : 50;
	bool injection = argc > 3 && !strcmp(argv[3], "injection"), right;
	pthread_t other;
	void *watch;

	if (argc < 4 || (!injection && strcmp(argv[3], "dlopen") != 0))
		return 2;
	setenv("KPROF_CUPTI_PATH", argv[2], 1);
	if (injection) {
		setenv("CUDA_INJECTION64_PATH", argv[1], 1);
		setenv("KPROF_AGENT_WAIT_MS", "2000", 1);
	}
	if (pthread_create(&other, NULL, kprof, NULL))
		return 1;
	cuda__open();
	cuda__set_up();
	if (!injection)
		load_agent(argv[1]);
	was_recording = await(1u << KPROF_AGENT_RECORDING | 1u << KPROF_AGENT_FAILED) &&
			memory()->state == KPROF_AGENT_RECORDING;
	watch = dlopen(argv[2], RTLD_NOLOAD | RTLD_NOW);
	right = record(watch, rounds);
	if (memory()) {
		command(KPROF_AGENT_REST);
		await(1u << KPROF_AGENT_RESTING | 1u << KPROF_AGENT_LEFT);
	}
	printf("{\"pid\": %d, \"how\": \"%s\", \"right\": %s, ", getpid(), argv[3],
	       right ? "true" : "false");
	work_print(stdout);
	printf(", \"agent\": ");
	print_memory();
	printf(", \"watch\": ");
	print_watch(watch);
	printf("}\n");
	fflush(stdout);
	if (memory()) {
		command(KPROF_AGENT_LEAVE);
		await(1u << KPROF_AGENT_LEFT);
	}
	__atomic_store_n(&beating, false, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
	return 0;
}
