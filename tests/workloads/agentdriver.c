// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process with kprof's agent in it, that makes the agent's records up: what kprof then has to say
 * about them is known.
 *
 *   agentdriver LIBRARY MODE [--n N] [--threads T]
 *
 *   slots     leaves N records in slots of the memory file, not handed over, and dies by SIGKILL
 *   handed    the same, but the last slot was handed over and not emptied before the end
 *   flood     hands over N batches of kernels on each of T threads, as fast as it can
 *   garbage   hands over N batches of random bytes, then one good record
 *   cut       unmaps the memory file and ends
 *
 * The protocol is that of protocol.py; "records" is how many good ones it made.
 */
#include <dlfcn.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "kprof/activity.h"
#include "kprof/agent.h"

#define PER_BATCH (KPROF_WIRE_BATCH_BYTES / sizeof(struct kprof_agent_kernel))
#define FIRST_SLOT 100 /* the agent's own use is of the first ones */

static void (*batch)(const void *data, uint32_t bytes);
static struct kprof_agent_shm *shm;
static uint64_t n = 10, threads = 1, records;

static void die(const char *what)
{
	fprintf(stderr, "agentdriver: %s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* As kprof finds it, but for the file: this is the mapping itself. */
static struct kprof_agent_shm *find_shm(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long start = 0;
	char line[512];

	while (maps && fgets(line, sizeof(line), maps))
		if (strstr(line, KPROF_AGENT_SHM_NAME) && sscanf(line, "%lx", &start) == 1)
			break;
	if (maps)
		fclose(maps);
	if (!start)
		die("the agent has made no memory file");
	return (struct kprof_agent_shm *)start;
}

static void load(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW);
	int (*start)(void) = NULL;

	if (handle) {
		*(void **)&start = dlsym(handle, KPROF_AGENT_START_SYMBOL);
		*(void **)&batch = dlsym(handle, KPROF_AGENT_BATCH_SYMBOL);
	}
	if (!start || !batch)
		die(dlerror());
	if (start())
		die("the agent does not start");
	shm = find_shm();
}

/* Until kprof has asked for records, and the agent has taken note. */
static uint32_t wait_for_session(void)
{
	uint32_t session;

	while (!(session = __atomic_load_n(&shm->recording, __ATOMIC_ACQUIRE)))
		usleep(1000);
	return session;
}

static void fill(struct kprof_agent_kernel *e, uint64_t number)
{
	*e = (struct kprof_agent_kernel){
		.a = {.h = {KPROF_AGENT_KERNEL, sizeof(*e), 0},
		      .start_ns = now_ns(),
		      .correlation = number,
		      .stream = 7,
		      .type = KPROF_ACTIVITY_KERNEL},
		.grid = {1, 1, 1},
		.block = {32, 1, 1},
	};
	e->a.end_ns = e->a.start_ns + 1000;
}

static struct kprof_agent_slot *slot_at(uint64_t i)
{
	return (struct kprof_agent_slot *)((char *)shm + KPROF_AGENT_HEAD_BYTES) + FIRST_SLOT + i;
}

static void add(struct kprof_agent_slot *slot, uint32_t session)
{
	if (!slot->used) {
		slot->owner = (uint32_t)getpid();
		slot->session = session;
		slot->opened_ns = UINT64_MAX; /* the agent's thread leaves it alone */
	}
	fill((struct kprof_agent_kernel *)(slot->data + slot->used), ++records);
	slot->used += sizeof(struct kprof_agent_kernel);
	__atomic_fetch_add(&shm->records, 1, __ATOMIC_RELAXED);
}

static void say(void)
{
	printf("{\"workload\": \"agentdriver\", \"pid\": %d, \"records\": %" PRIu64
	       ", \"threads\": %" PRIu64 "}\n",
	       getpid(), records, threads);
	fflush(stdout);
}

static void slots(bool handed_over)
{
	uint32_t session = wait_for_session();
	struct kprof_agent_slot *slot = slot_at(0);
	uint64_t used = 0;

	for (uint64_t i = 0; i < n; i++) {
		if (slot->used + sizeof(struct kprof_agent_kernel) > sizeof(slot->data))
			slot = slot_at(++used);
		add(slot, session);
	}
	if (handed_over) /* … and is killed before it says so */
		batch(slot->data, slot->used);
	say();
	kill(getpid(), SIGKILL);
}

/* Other work than the batch before: a batch takes longer than its records' times do. */
static void restamp(struct kprof_agent_slot *slot, uint32_t stream, uint64_t *next)
{
	struct kprof_agent_kernel *e = (struct kprof_agent_kernel *)slot->data;
	uint64_t start_ns = now_ns();

	for (uint64_t k = 0; k < PER_BATCH; k++) {
		e[k].a.correlation = (*next)++;
		e[k].a.stream = stream;
		e[k].a.start_ns = start_ns + k * 10;
		e[k].a.end_ns = e[k].a.start_ns + 5;
	}
}

static void *flood_thread(void *arg)
{
	static _Thread_local struct kprof_agent_slot slot;
	uint64_t next = (uint64_t)(uintptr_t)arg * n * PER_BATCH + 1;

	slot.session = wait_for_session();
	for (uint64_t i = 0; i < PER_BATCH; i++)
		add(&slot, slot.session);
	__atomic_fetch_sub(&shm->records, PER_BATCH, __ATOMIC_RELAXED);
	for (uint64_t i = 0; i < n; i++) {
		restamp(&slot, 8 + (uint32_t)(uintptr_t)arg, &next);
		batch(slot.data, slot.used);
		__atomic_fetch_add(&shm->records, PER_BATCH, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void flood(void)
{
	pthread_t list[64];
	uint64_t begin_ns, ns;

	wait_for_session();
	begin_ns = now_ns();
	for (uint64_t i = 0; i < threads && i < 64; i++)
		if (pthread_create(&list[i], NULL, flood_thread, (void *)(uintptr_t)i))
			die("no thread");
	for (uint64_t i = 0; i < threads && i < 64; i++)
		pthread_join(list[i], NULL);
	ns = now_ns() - begin_ns;
	records = n * threads * PER_BATCH;
	fprintf(stderr, "%" PRIu64 " records in %.3f s: %.2f M/s\n", records, (double)ns / 1e9,
		(double)records * 1e3 / (double)ns);
	say();
}

static void garbage(void)
{
	static struct kprof_agent_slot slot;
	uint64_t state = 88172645463325252ull;

	slot.session = wait_for_session();
	for (uint64_t i = 0; i < n; i++) {
		for (size_t at = 0; at < sizeof(slot.data); at += sizeof(state)) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			memcpy(slot.data + at, &state, sizeof(state));
		}
		batch(slot.data, (uint32_t)(state % (sizeof(slot.data) + 1)));
	}
	slot.used = 0;
	add(&slot, slot.session);
	batch(slot.data, slot.used);
	batch(slot.data, UINT32_MAX); /* longer than can be: dropped */
	batch((void *)8, 64);         /* from nowhere: dropped */
	say();
}

static void cut(void)
{
	wait_for_session();
	munmap(shm, KPROF_AGENT_SHM_BYTES);
	say();
	_exit(0);
}

int main(int argc, char **argv)
{
	char line[64];

	if (argc < 3)
		die("LIBRARY MODE [--n N] [--threads T]");
	for (int i = 3; i + 1 < argc; i += 2) {
		if (!strcmp(argv[i], "--n"))
			n = strtoull(argv[i + 1], NULL, 0);
		else if (!strcmp(argv[i], "--threads"))
			threads = strtoull(argv[i + 1], NULL, 0);
	}
	load(argv[1]);
	printf("READY %d\n", getpid());
	fflush(stdout);
	if (!fgets(line, sizeof(line), stdin))
		return 9;
	if (!strcmp(argv[2], "slots") || !strcmp(argv[2], "handed"))
		slots(argv[2][0] == 'h');
	else if (!strcmp(argv[2], "flood"))
		flood();
	else if (!strcmp(argv[2], "garbage"))
		garbage();
	else if (!strcmp(argv[2], "cut"))
		cut();
	else
		die("no such mode");
	(void)!fgets(line, sizeof(line), stdin); /* lingers */
	return 0;
}
