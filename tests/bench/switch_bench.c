// SPDX-License-Identifier: BSD-2-Clause
/*
 * Two threads on one CPU that wake each other through pipes: what a switch takes. Speaks as
 * target.py does: a line on standard input asks for so many chunks of round trips, of which each is
 * two switches, and two wakings.
 *
 *     switch_bench SPIN-NS    work between two switches
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 20000 /* round trips */

static int there[2], back[2];
static uint64_t spin_ns;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void spin(void)
{
	uint64_t until_ns = now_ns() + spin_ns;

	while (spin_ns && now_ns() < until_ns)
		;
}

static void pass(int from, int to)
{
	char byte = 0;

	if (read(from, &byte, 1) != 1)
		exit(0);
	spin();
	if (write(to, &byte, 1) != 1)
		exit(0);
}

static void *answer(void *unused)
{
	for (;;)
		pass(there[0], back[1]);
	return NULL;
}

static void chunk(void)
{
	char byte = 0;

	for (int i = 0; i < CHUNK; i++) {
		spin();
		if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
			exit(1);
	}
}

int main(int argc, char **argv)
{
	char line[256], *chunks;
	pthread_t thread;

	spin_ns = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	if (pipe(there) || pipe(back) || pthread_create(&thread, NULL, answer, NULL))
		return 1;
	printf("{\"ready\": {\"pid\": %d, \"torch\": null, \"chunk\": %d}}\n", getpid(), CHUNK * 2);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		chunks = strstr(line, "\"chunks\": ");
		if (!chunks)
			continue;
		printf("{\"stamps\": [%llu", (unsigned long long)now_ns());
		for (long n = strtol(chunks + 10, NULL, 10); n > 0; n--) {
			chunk();
			printf(", %llu", (unsigned long long)now_ns());
		}
		printf("]}\n");
		fflush(stdout);
	}
	return 0;
}
