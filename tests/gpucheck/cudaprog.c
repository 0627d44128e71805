// SPDX-License-Identifier: BSD-2-Clause
/*
 * A CUDA program for machines without a compiler.
 *
 *   cudaprog [--n N] [--times T] [--threads T] [--launches N] [--spin MS] [--reset] [--now]
 *            [--linger]
 *
 * Speaks the protocol of tests/workloads/protocol.py; its line of JSON says what it launched, and
 * whether the sums came out right. What it does after each line that it is told, T times:
 *
 *   --n N          N rounds of cudawork.h (50)
 *   --launches N   launches N empty kernels instead, and waits for them
 *   --threads T    T threads at a time, each of which launches 10 empty kernels in its own stream
 *   --spin MS      one kernel that runs for so long, and is waited for only when told again
 *   --reset        destroys its context at the end
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cudawork.h"

#define WARM_UP 3
#define IN_THREAD 10
#define THREADS_MAX 1000

static struct {
	uint64_t n, times, launches, threads, spin_ms;
	bool now, linger, reset;
} asked = {.n = 50, .times = 1};

static bool arguments(int argc, char **argv)
{
	const struct {
		const char *name;
		uint64_t *value;
	} numbers[] = {
		{"--n", &asked.n},
		{"--times", &asked.times},
		{"--launches", &asked.launches},
		{"--threads", &asked.threads},
		{"--spin", &asked.spin_ms},
	};
	uint64_t *value;

	for (int i = 1; i < argc; i++) {
		value = NULL;
		for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
			if (!strcmp(argv[i], numbers[k].name))
				value = numbers[k].value;
		if (value && i + 1 < argc)
			*value = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--now"))
			asked.now = true;
		else if (!strcmp(argv[i], "--reset"))
			asked.reset = true;
		else if (!strcmp(argv[i], "--linger"))
			asked.linger = true;
		else
			return false;
	}
	return asked.threads <= THREADS_MAX;
}

static bool told(void)
{
	char line[16];

	return fgets(line, sizeof(line), stdin);
}

static void *in_thread(void *arg)
{
	cuda__launch_empty(IN_THREAD, true);
	pthread_barrier_wait(arg); /* all of them are alive at a time */
	return NULL;
}

static bool by_threads(void)
{
	static pthread_t thread[THREADS_MAX];
	pthread_barrier_t all;

	pthread_barrier_init(&all, NULL, (unsigned int)asked.threads);
	for (uint64_t i = 0; i < asked.threads; i++)
		if (pthread_create(&thread[i], NULL, in_thread, &all))
			exit(1); /* the others would wait for it */
	for (uint64_t i = 0; i < asked.threads; i++)
		pthread_join(thread[i], NULL);
	cuda__wait();
	pthread_barrier_destroy(&all);
	return true;
}

/* Returns whether the results are right. `ns`: without what only finds out how it went. */
static bool work(uint64_t *ns, uint64_t *step_ns)
{
	uint64_t begin = work_now_ns();
	bool right = true;

	*step_ns = 0;
	if (asked.threads) {
		by_threads();
	} else if (asked.launches) {
		cuda__launch_empty(asked.launches, false);
		*ns = work_now_ns() - begin;
		cuda__wait();
		return true;
	} else if (asked.spin_ms) {
		cuda__spin(asked.spin_ms * 1000000);
	} else {
		for (uint64_t i = 0; i < asked.n; i++)
			right = cuda__round() && right;
	}
	*ns = work_now_ns() - begin;
	if (!asked.threads && !asked.spin_ms && asked.n)
		*step_ns = cuda__timer_step_ns();
	return right;
}

static void say(bool right, uint64_t ns, uint64_t step_ns)
{
	printf("{\"workload\": \"cudaprog\", \"pid\": %d, \"right\": %s, \"loop_ns\": %" PRIu64
	       ", \"timer_step_ns\": %" PRIu64 ", ",
	       getpid(), right ? "true" : "false", ns, step_ns);
	work_print(stdout);
	printf("}\n");
	fflush(stdout);
	work_forget();
}

int main(int argc, char **argv)
{
	bool right = true;
	uint64_t ns = 0, step_ns;

	if (!arguments(argc, argv))
		return 2;
	cuda__open();
	cuda__set_up();
	for (int i = 0; i < WARM_UP; i++)
		right = cuda__round() && right;
	/* By run, these are recorded, too: they are counted then. */
	if (!asked.now)
		work_forget();
	printf("READY %d\n", getpid());
	fflush(stdout);
	for (uint64_t i = 0; i < asked.times; i++) {
		if (!asked.now && !told())
			return 9;
		right = work(&ns, &step_ns) && right;
		say(right, ns, step_ns);
	}
	if (asked.linger)
		told();
	cuda__wait();
	if (asked.reset)
		cuda__reset();
	return right ? 0 : 1;
}
