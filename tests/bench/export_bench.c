// SPDX-License-Identifier: BSD-2-Clause
/*
 * How fast a capture becomes another format, and in how much memory.
 *
 *   export_bench [-f FORMAT] [-r RUNS] IN.kprof OUT
 *
 * OUT may be /dev/null with -f. Prints one JSON line: events, seconds of CPU time (the median of
 * RUNS), millions of events per second of it, peak memory of the process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kprof.h"
#include "util/util.h"

#define MAX_RUNS 99

static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int run(const char *in, const struct kprof_export_opts *opts, uint64_t *events)
{
	struct kprof_capture *c = NULL;
	int err = kprof_capture_open(in, &c);

	if (err)
		return err;
	err = kprof_capture_export(c, opts);
	*events = kprof_capture_info(c)->events;
	kprof_capture_close(c);
	return err;
}

/* Not getrusage()'s, in which whoever started this program, and was larger, has a part. */
static unsigned long long peak_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long long kb = 0;
	char line[256];

	while (status && !kb && fgets(line, sizeof(line), status))
		sscanf(line, "VmHWM: %llu", &kb);
	if (status)
		fclose(status);
	return kb * 1024;
}

int main(int argc, char **argv)
{
	struct kprof_export_opts opts = {.sz = sizeof(opts)};
	double seconds[MAX_RUNS];
	uint64_t events = 0;
	int runs = 5, opt;

	while ((opt = getopt(argc, argv, "f:r:")) != -1) {
		if (opt == 'f')
			opts.format = optarg;
		else if (opt == 'r')
			runs = atoi(optarg);
		else
			return 2;
	}
	if (argc - optind != 2 || runs < 1 || runs > MAX_RUNS) {
		fprintf(stderr, "usage: export_bench [-f FORMAT] [-r RUNS] IN.kprof OUT\n");
		return 2;
	}
	opts.path = argv[optind + 1];
	for (int i = 0; i < runs; i++) {
		double start = cpu_seconds();

		if (run(argv[optind], &opts, &events)) {
			fprintf(stderr, "export_bench: %s\n", kprof_error_cause());
			return 1;
		}
		seconds[i] = cpu_seconds() - start;
	}
	qsort(seconds, (size_t)runs, sizeof(*seconds), by_value);
	printf("{\"events\": %llu, \"cpu_s\": %.3f, \"events_per_s\": %.0f, \"peak_bytes\": %llu}\n",
	       (unsigned long long)events, seconds[runs / 2], (double)events / seconds[runs / 2],
	       peak_bytes());
	return 0;
}
