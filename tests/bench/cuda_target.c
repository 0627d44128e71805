// SPDX-License-Identifier: BSD-2-Clause
/*
 * The process that is measured where launches are: target.py's protocol ("run" and "free"), an
 * iteration is a cudaLaunchKernel. It runs on the simulated CUDA of tests/sim, with kernels that
 * take no time, so that the host never waits for the device. Each chunk of launches ends with a
 * cudaStreamSynchronize.
 *
 *   cuda_target
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../workloads/cudadriver.h"

#define CHUNK_NS 2000000 /* recorded, a launch takes several times as long */

static struct {
	uint64_t *at;
	size_t nr, cap;
} stamps;

void must(int result, int expected, const char *description)
{
	if (result == expected)
		return;
	fprintf(stderr, "cuda_target: %s: %d, not %d\n", description, result, expected);
	exit(1);
}

static uint64_t mono_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void launches(uint64_t nr)
{
	uint64_t ns = 1;

	for (uint64_t i = 0; i < nr; i++)
		must(cudaLaunchKernel((const void *)_Z4spinm, (dim3){4, 1, 1}, (dim3){128, 1, 1},
				      (void *[]){&ns}, 0, NULL),
		     0, "cudaLaunchKernel");
	must(cudaStreamSynchronize(NULL), 0, "cudaStreamSynchronize");
}

/* Launches that take CHUNK_NS; the first ones load the libraries. */
static uint64_t calibrate(void)
{
	const uint64_t nr = 20000;
	uint64_t took;

	launches(nr);
	took = mono_ns();
	launches(nr);
	took = mono_ns() - took;
	return nr * CHUNK_NS / (took ? took : 1) + 1;
}

static void stamp(void)
{
	if (stamps.nr == stamps.cap) {
		stamps.cap = stamps.cap ? 2 * stamps.cap : 1024;
		stamps.at = realloc(stamps.at, stamps.cap * sizeof(*stamps.at));
		if (!stamps.at)
			exit(1);
	}
	stamps.at[stamps.nr++] = mono_ns();
}

static bool spoken_to(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	return poll(&in, 1, 0) > 0;
}

static void answer(void)
{
	fputs("{\"stamps\": [", stdout);
	for (size_t i = 0; i < stamps.nr; i++)
		printf("%s%" PRIu64, i ? ", " : "", stamps.at[i]);
	puts("]}");
	fflush(stdout);
	stamps.nr = 0;
}

int main(void)
{
	uint64_t chunk = calibrate(), chunks;
	char line[256];

	setvbuf(stdin, NULL, _IONBF, 0); /* poll() must know of every line */
	printf("{\"ready\": {\"pid\": %d, \"torch\": null, \"chunk\": %" PRIu64 "}}\n", getpid(),
	       chunk);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		const char *number = strstr(line, "\"chunks\": ");

		stamp();
		if (number) {
			chunks = strtoull(number + strlen("\"chunks\": "), NULL, 10);
			for (; chunks; chunks--, stamp())
				launches(chunk);
		} else {
			for (; !spoken_to(); stamp())
				launches(chunk);
			if (!fgets(line, sizeof(line), stdin))
				return 0;
		}
		answer();
	}
	return 0;
}
