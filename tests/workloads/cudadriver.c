/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Uses CUDA a known number of times, in the ways that matter to a profiler.
 *
 *   cudadriver MODE [--n N] [--streams S] [--threads T] [--children K] [--bytes B] [--kernel-ns NS]
 *   [--gap-us US]
 *              [--pace MS] [--records FILE] [--now] [--linger]
 *
 * Speaks the protocol of protocol.py: "READY pid", a line on standard input, work, one line of JSON
 * (how often each function of the runtime was called, a checksum, whether it is the right one).
 * With the truth file of tests/sim that is all there is to know about a run. Also built as a
 * library that cudadriver-dl opens when told to go, and with the runtime linked statically.
 */
#include "cudadriver.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const struct {
	const char *name;
	mode_fn *fn;
} modes[] = {
	{"loop", mode_loop},         {"nosync", mode_nosync},   {"graph", mode_graph},
	{"copies", mode_copies},     {"errors", mode_errors},   {"threads", mode_threads},
	{"ptsz", mode_ptsz},         {"fork", mode_fork},       {"idle", mode_idle},
	{"children", mode_children}, {"alloc", mode_alloc},     {"exit", mode_exit},
	{"kill", mode_kill},         {"spin", mode_spin},       {"api", mode_api},
	{"driver", mode_driver},     {"cupti", mode_cupti},     {"events", mode_events},
	{"reset", mode_reset},       {"devices", mode_devices}, {"context", mode_context},
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct counter *counters;
static volatile sig_atomic_t stop;

void count_call(struct counter *c, const char *name)
{
	if (__atomic_fetch_add(&c->calls, 1, __ATOMIC_RELAXED))
		return;
	pthread_mutex_lock(&lock);
	c->name = name;
	c->next = counters;
	counters = c;
	pthread_mutex_unlock(&lock);
}

void must(int result, int expected, const char *what)
{
	if (result == expected)
		return;
	fprintf(stderr, "cudadriver: %s: %d (%s), not %d\n", what, result, cudaGetErrorName(result),
		expected);
	exit(1);
}

uint64_t mix(uint64_t sum, uint64_t x)
{
	return (sum ^ x) * 0x9e3779b97f4a7c15ull + (sum >> 29);
}

uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void rest(const struct options *o, uint64_t i)
{
	if (o->pace_ms && i % (o->n / 100 + 1) == 0)
		usleep(o->pace_ms * 1000);
}

bool stopped(void)
{
	return stop;
}

static void on_term(int sig)
{
	stop = 1;
}

/* One line of standard input; without one nobody is there any more to profile us. */
static void wait_for_line(bool needed)
{
	char c = 0;
	ssize_t got;

	do
		got = read(STDIN_FILENO, &c, 1);
	while (got == 1 && c != '\n');
	if (got != 1 && needed)
		exit(9);
}

static void usage(void)
{
	fputs("usage: cudadriver MODE [--n N] [--streams S] [--threads T] [--children K] [--bytes B] [--kernel-ns NS]\n"
	      "                  [--gap-us US] [--pace MS] [--records FILE] [--now] [--linger]\nmodes:",
	      stderr);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		fprintf(stderr, " %s", modes[i].name);
	fputc('\n', stderr);
	exit(2);
}

static void parse_number(struct options *o, const char *name, const char *text)
{
	uint64_t value = strtoull(text, NULL, 0);

	if (!strcmp(name, "--n"))
		o->n = value;
	else if (!strcmp(name, "--streams"))
		o->streams = (unsigned)value;
	else if (!strcmp(name, "--threads"))
		o->threads = (unsigned)value;
	else if (!strcmp(name, "--children"))
		o->children = (unsigned)value;
	else if (!strcmp(name, "--bytes"))
		o->bytes = value;
	else if (!strcmp(name, "--kernel-ns"))
		o->kernel_ns = value;
	else if (!strcmp(name, "--gap-us"))
		o->gap_us = (unsigned)value;
	else if (!strcmp(name, "--pace"))
		o->pace_ms = (unsigned)value;
	else
		usage();
}

static mode_fn *parse(int argc, char **argv, struct options *o)
{
	mode_fn *fn = NULL;

	o->self = argv[0];
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			fn = modes[i].fn;
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--now"))
			o->now = true;
		else if (!strcmp(argv[i], "--linger"))
			o->linger = true;
		else if (i + 1 == argc)
			usage();
		else if (!strcmp(argv[i], "--records"))
			o->records = argv[++i];
		else
			parse_number(o, argv[i], argv[i + 1]), i++;
	}
	if (!fn)
		usage();
	return fn;
}

static void report(const char *mode, const struct result *r, const char *more)
{
	printf("{\"mode\": \"%s\", \"pid\": %d, \"checksum\": \"%016" PRIx64
	       "\", \"ok\": %s, \"calls\": {",
	       mode, getpid(), r->sum, r->ok ? "true" : "false");
	for (struct counter *c = counters; c; c = c->next) {
		uint64_t calls = 0;
		bool first = true;

		/*
		 * A function is called from several places, each with a counter: the first of a
		 * name tells them all.
		 */
		for (struct counter *o = counters; o != c; o = o->next)
			first &= strcmp(o->name, c->name) != 0;
		for (struct counter *o = c; o; o = o->next)
			calls += strcmp(o->name, c->name) ? 0 : o->calls;
		if (first)
			printf("%s\"%s\": %" PRIu64, c == counters ? "" : ", ", c->name, calls);
	}
	printf("}%s}\n", more);
	fflush(stdout);
}

int cudadriver_main(int argc, char **argv);
int cudadriver_main(int argc, char **argv)
{
	struct options o = {.n = 100,
			    .kernel_ns = 20000,
			    .bytes = 4096,
			    .streams = 2,
			    .threads = 4,
			    .children = 2,
			    .gap_us = 2000};
	mode_fn *fn = parse(argc, argv, &o);
	struct result r = {.ok = true};
	char *more = NULL;
	size_t size;

	signal(SIGTERM, on_term);
	r.more = open_memstream(&more, &size);
	if (!r.more)
		return 1;
	if (!o.now) {
		printf("READY %d\n", getpid());
		fflush(stdout);
		wait_for_line(true);
	}
	fn(&o, &r);
	fclose(r.more);
	report(argv[1], &r, more);
	free(more);
	if (o.linger)
		wait_for_line(false);
	return r.ok ? 0 : 1;
}

#ifndef CUDADRIVER_LIBRARY
int main(int argc, char **argv)
{
	return cudadriver_main(argc, argv);
}
#endif
