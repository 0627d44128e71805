// SPDX-License-Identifier: BSD-2-Clause
/*
 * An OpenCL program that knows what it did: it times its own commands by event profiling and prints
 * them.
 *
 *   ocldriver MODE [--n N] [--threads T] [--no-profiling] [--now] [--linger]
 *
 *   plain     write, two kernels, copy, fill, read, N times, on one queue
 *   every     every kind of command once, N times: rectangles, images, mapping, SVM, markers
 *   threads   plain on T threads, each with its own queue
 *   contexts  plain in two contexts, by turns
 *   unordered an out-of-order queue: commands that wait for each other and for the program
 *   errors    calls that fail, N times
 *   untidy    releases nothing, not even its events
 *   early     releases its queue while work is running
 *   fork      a child that ends at once, in the middle
 *   exit      calls exit() right after the last command has completed
 *
 * The protocol is that of protocol.py. "events": what each command was, its device's times, and
 * CLOCK_MONOTONIC around its call. "answers": what the driver said, which is the same with and
 * without a profiler.
 */
#include <inttypes.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ocldriver.h"

#define ERRORS_PAUSE_US 50000

struct options options = {.n = 10, .threads = 4};

uint64_t silent;

static char answers[16384];
static size_t answers_bytes;

void answer(const char *what, int64_t value)
{
	answers_bytes +=
		(size_t)snprintf(answers + answers_bytes, sizeof(answers) - answers_bytes,
				 "%s[\"%s\", %" PRId64 "]", answers_bytes ? ", " : "", what, value);
}

uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* The same moment on our clock and on the device's (PoCL's), and what the readings leave open. */
static struct pair {
	uint64_t mono, device, width;
} pairs[2];

static void read_pair(struct pair *p)
{
	p->width = UINT64_MAX;
	for (int i = 0; i < 50; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC);
		uint64_t device = clock_ns(CLOCK_MONOTONIC_RAW);
		uint64_t after = clock_ns(CLOCK_MONOTONIC);

		if (after - before < p->width)
			*p = (struct pair){before + (after - before) / 2, device, after - before};
	}
}

/* ---- what was done ---- */

static struct done *dones;
static uint32_t nr_dones;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct done *did(const struct done *d)
{
	struct done *at;

	pthread_mutex_lock(&lock);
	if (!dones)
		dones = calloc(MAX_DONES, sizeof(*dones));
	CHECK_CL(nr_dones < MAX_DONES ? CL_SUCCESS : CL_OUT_OF_RESOURCES);
	at = &dones[nr_dones++];
	*at = *d;
	pthread_mutex_unlock(&lock);
	return at;
}

static void read_times(struct done *d)
{
	static const cl_profiling_info what[4] = {
		CL_PROFILING_COMMAND_QUEUED, CL_PROFILING_COMMAND_SUBMIT,
		CL_PROFILING_COMMAND_START, CL_PROFILING_COMMAND_END};

	for (int i = 0; i < 4; i++)
		d->error = clGetEventProfilingInfo(d->event, what[i], sizeof(d->times[i]),
						   &d->times[i], NULL);
}

static void print_dones(void)
{
	for (uint32_t i = 0; i < nr_dones; i++) {
		const struct done *d = &dones[i];

		printf("%s{\"call\": \"%s\", \"kind\": \"%s\", \"name\": \"%s\", \"queue\": %u, "
		       "\"context\": %u, \"tid\": %u, \"bytes\": %" PRIu64 ", \"error\": %d, "
		       "\"before\": %" PRIu64 ", \"after\": %" PRIu64,
		       i ? ", " : "", d->call, d->kind, d->name, d->queue, d->context, d->tid,
		       d->bytes, d->error, d->before, d->after);
		printf(", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"queued\": %" PRIu64
		       ", \"submit\": %" PRIu64 ", \"start\": %" PRIu64 ", \"end\": %" PRIu64 "}",
		       d->grid[0], d->grid[1], d->grid[2], d->block[0], d->block[1], d->block[2],
		       d->times[0], d->times[1], d->times[2], d->times[3]);
	}
}

/* ---- the modes ---- */

static uint64_t plain(void)
{
	struct side s;
	uint64_t sum;

	side__open(&s, 0);
	for (uint64_t i = 0; i < options.n; i++)
		side__step(&s, i);
	sum = side__sum(&s);
	side__close(&s);
	return sum;
}

static void *one_thread(void *data)
{
	struct side *s = data;

	for (uint64_t i = 0; i < options.n; i++)
		side__step(s, i);
	s->sum = side__sum(s);
	return NULL;
}

static uint64_t threads(void)
{
	struct side s[MAX_THREADS];
	pthread_t thread[MAX_THREADS];
	uint64_t sum = 0;

	for (uint32_t i = 0; i < options.threads; i++)
		side__open(&s[i], 0);
	for (uint32_t i = 0; i < options.threads; i++)
		pthread_create(&thread[i], NULL, one_thread, &s[i]);
	for (uint32_t i = 0; i < options.threads; i++) {
		pthread_join(thread[i], NULL);
		sum += s[i].sum;
		side__close(&s[i]);
	}
	return sum;
}

static uint64_t contexts(void)
{
	struct side a, b;
	uint64_t sum;

	side__open(&a, 0);
	side__open(&b, 0);
	for (uint64_t i = 0; i < options.n; i++)
		side__step(i % 2 ? &b : &a, i);
	sum = side__sum(&a) + side__sum(&b);
	side__close(&a);
	side__close(&b);
	return sum;
}

static uint64_t unordered(void)
{
	struct side s;
	uint64_t sum;

	side__open(&s, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	for (uint64_t i = 0; i < options.n; i++)
		side__graph(&s);
	sum = side__sum(&s);
	side__close(&s);
	return sum;
}

static uint64_t every(void)
{
	struct side s;
	uint64_t sum;

	side__open(&s, 0);
	for (uint64_t i = 0; i < options.n; i++)
		side__every(&s);
	sum = side__sum(&s);
	side__close(&s);
	return sum;
}

static uint64_t errors(void)
{
	struct side s;
	uint64_t sum;

	side__open(&s, 0);
	/* Over some time: results are seen once kprof knows where a call returns to. */
	for (uint64_t i = 0; i < options.n; i++) {
		side__step(&s, i);
		side__errors(&s, i == 0);
		usleep(ERRORS_PAUSE_US);
	}
	sum = side__sum(&s);
	side__close(&s);
	return sum;
}

/* What it started is there until its end. */
static uint64_t untidy(void)
{
	struct side s;

	side__open(&s, 0);
	for (uint64_t i = 0; i < options.n; i++)
		side__step(&s, i);
	return side__sum(&s);
}

static uint64_t early(void)
{
	struct side s;

	side__open(&s, 0);
	for (uint64_t i = 0; i < options.n; i++)
		side__step(&s, i);
	CHECK_CL(clFlush(s.queue));
	CHECK_CL(clReleaseCommandQueue(s.queue));
	s.queue = NULL;
	CHECK_CL(clWaitForEvents(1, &s.last));
	s.sum = side__peek(&s);
	side__close(&s);
	return s.sum;
}

static uint64_t forks(void)
{
	struct side s;
	uint64_t sum;

	side__open(&s, 0);
	for (uint64_t i = 0; i < options.n; i++) {
		side__step(&s, i);
		if (i == options.n / 2) {
			int status = 0;
			pid_t child = fork();

			if (!child)
				_exit(7);
			waitpid(child, &status, 0);
			answer("child", WEXITSTATUS(status));
		}
	}
	sum = side__sum(&s);
	side__close(&s);
	return sum;
}

static const struct {
	const char *name;
	uint64_t (*run)(void);
} modes[] = {
	{"plain", plain},         {"every", every},   {"threads", threads}, {"contexts", contexts},
	{"unordered", unordered}, {"errors", errors}, {"untidy", untidy},   {"early", early},
	{"fork", forks},          {"exit", plain},
};

static void parse(int argc, char **argv)
{
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--n") && i + 1 < argc)
			options.n = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--threads") && i + 1 < argc)
			options.threads = (uint32_t)strtoul(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "--no-profiling"))
			options.no_profiling = true;
		else if (!strcmp(argv[i], "--now"))
			options.now = true;
		else if (!strcmp(argv[i], "--linger"))
			options.linger = true;
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	uint64_t sum;
	char line[64];
	size_t mode = 0;
	bool tidy;

	while (mode < sizeof(modes) / sizeof(modes[0]) &&
	       (argc < 2 || strcmp(argv[1], modes[mode].name)))
		mode++;
	if (mode == sizeof(modes) / sizeof(modes[0]))
		return 2;
	parse(argc, argv);
	ocl_open();
	printf("READY %d\n", getpid());
	fflush(stdout);
	if (!options.now && !fgets(line, sizeof(line), stdin))
		return 9;
	read_pair(&pairs[0]);
	sum = modes[mode].run();
	read_pair(&pairs[1]);
	for (uint32_t i = 0; i < nr_dones; i++)
		read_times(&dones[i]);
	tidy = strcmp(argv[1], "untidy");
	for (uint32_t i = 0; tidy && i < nr_dones; i++)
		CHECK_CL(clReleaseEvent(dones[i].event));
	if (tidy)
		answer("contexts left", contexts_left());
	printf("{\"workload\": \"ocldriver\", \"mode\": \"%s\", \"pid\": %d, \"n\": %" PRIu64
	       ", \"launches_without_event\": %" PRIu64 ", \"checksum\": %" PRIu64
	       ", \"answers\": [%s], \"clocks\": [",
	       argv[1], getpid(), options.n, silent, sum, answers);
	for (int i = 0; i < 2; i++)
		printf("%s{\"mono\": %" PRIu64 ", \"device\": %" PRIu64 ", \"width\": %" PRIu64 "}",
		       i ? ", " : "", pairs[i].mono, pairs[i].device, pairs[i].width);
	printf("], \"events\": [");
	print_dones();
	printf("]}\n");
	fflush(stdout);
	if (!strcmp(argv[1], "exit"))
		exit(0);
	if (options.linger)
		fgets(line, sizeof(line), stdin);
	return 0;
}
