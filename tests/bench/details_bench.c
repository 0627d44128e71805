// SPDX-License-Identifier: BSD-2-Clause
/*
 * What details cost in a capture: bytes, and records per second written and read on one core.
 *
 *   details_bench [millions of activities] [file]
 *
 * "kernel": activities with 14 attributes, shaped like a training loop: steps of 400 launches of 60
 * kernels on three streams, the same each step but for times. Durations are log-uniform medians
 * (1.5 … 400 µs) times a log-normal factor (sigma 0.05: devices are steadier than CPUs), pauses 0.8
 * … 4 µs (sigma 0.3), queued 5 … 500 µs before the start. Correlations count up by what else a
 * program calls between launches. "api": the runtime calls that launched them, without attributes.
 * "args": what is told of a span of such a call, grid, block, stream and kernel. Prints "name value
 * unit" lines, medians of 5 runs; sizes are the file's, tables included, divided by the records.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kprof.h"
#include "kprof/activity.h"
#include "store/store.h"
#include "util/util.h"

enum { RUNS = 5, KERNELS = 60, LAUNCHES = 400, STREAMS = 3, ATTRS = 14, CALL_ATTRS = 4 };

enum shape { KERNEL, API, ARGS, SHAPES };
static const char *const shape_names[] = {"kernel", "api", "args"};

struct launch {
	uint32_t kernel, stream;
	double median_ns, pause_ns;
	uint32_t calls_between;
};

static struct launch launches[LAUNCHES];
static struct store_attr kernel_attrs[KERNELS][ATTRS];
static struct store_attr call_attrs[LAUNCHES][CALL_ATTRS];
static uint64_t random_state;

static double uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return ((double)(random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

static double log_uniform(double from, double to)
{
	return from * exp(uniform() * log(to / from));
}

static uint64_t bits_of(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static uint64_t dim3(double x, double y)
{
	return (uint64_t)x | (uint64_t)y << 32 | 1ull << 48;
}

/* What a kernel of Kineto's traces has, beside what every activity has. */
static void make_attrs(struct store_attr *a)
{
	double blocks = floor(log_uniform(1, 20000)), threads = 32 * floor(log_uniform(2, 33));
	const struct {
		uint32_t type;
		uint64_t value;
	} values[ATTRS] = {
		{STORE_ATTR_DIM3, dim3(blocks, 1)},                             /* grid */
		{STORE_ATTR_DIM3, dim3(threads, 1)},                            /* block */
		{STORE_ATTR_U64, 16 + (uint64_t)(uniform() * 200)},             /* registers */
		{STORE_ATTR_U64, (uint64_t)(uniform() * 48) * 1024},            /* static shared */
		{STORE_ATTR_U64, (uint64_t)(uniform() * 2) * 16384},            /* dynamic shared */
		{STORE_ATTR_U64, 0},                                            /* local memory */
		{STORE_ATTR_DOUBLE, bits_of((float)(blocks / 132))},            /* blocks per SM */
		{STORE_ATTR_DOUBLE, bits_of((float)(blocks * threads / 4224))}, /* warps per SM */
		{STORE_ATTR_U64, (uint64_t)(uniform() * 100)},                  /* occupancy, % */
		{STORE_ATTR_I64, 0},                                            /* priority */
		{STORE_ATTR_U64, 0},                                            /* graph */
		{STORE_ATTR_U64, 0},                                            /* graph node */
		{STORE_ATTR_U64, 102400}, /* shared memory, configured */
		{STORE_ATTR_U64, 1},      /* cluster */
	};

	for (uint32_t i = 0; i < ATTRS; i++)
		a[i] = (struct store_attr){1 + i, values[i].type, values[i].value};
}

static void make_step(void)
{
	for (uint32_t i = 0; i < KERNELS; i++)
		make_attrs(kernel_attrs[i]);
	for (uint32_t i = 0; i < LAUNCHES; i++) {
		struct launch *l = &launches[i];

		l->kernel = (uint32_t)(uniform() * KERNELS);
		l->stream = uniform() < 0.9 ? 7 : 7 + (uint32_t)(uniform() * STREAMS);
		l->median_ns = log_uniform(1500, 400000);
		l->pause_ns = log_uniform(800, 4000);
		l->calls_between = uniform() < 0.7 ? 1 : 1 + (uint32_t)(uniform() * 5);
		call_attrs[i][0] = kernel_attrs[l->kernel][0];
		call_attrs[i][1] = kernel_attrs[l->kernel][1];
		call_attrs[i][2] =
			(struct store_attr){16, STORE_ATTR_HEX, 0x55d0c0de0000 + l->stream * 1328};
		call_attrs[i][3] = (struct store_attr){17, STORE_ATTR_STRING, 20 + l->kernel};
	}
}

static int put_tables(struct store_writer *w)
{
	struct store_record thread = {.type = STORE_THREAD}, source = {.type = STORE_SOURCE};
	struct store_record description = {.type = STORE_DESCRIPTION, .description = {.id = 1}};
	int err;

	for (uint32_t i = 0; i < 20 + KERNELS; i++) {
		char name[96];
		int len = snprintf(name, sizeof(name), "_ZN2at6native27vectorized_kernel_number_%u",
				   i);

		if (!store_writer__string(w, name, (size_t)len))
			return -1;
	}
	err = store_writer__put(w, &thread);
	if (!err)
		err = store_writer__put(w, &source);
	return err ? err : store_writer__put(w, &description);
}

struct clock {
	uint64_t ns, correlation, begins;
	int at;
};

static void next_activity(struct clock *c, struct store_record *r)
{
	const struct launch *l = &launches[c->at];

	c->ns += (uint64_t)(l->pause_ns * exp(0.3 * normal()));
	c->correlation += l->calls_between;
	*r = (struct store_record){.type = STORE_ACTIVITY};
	r->activity.pid = 31337;
	r->activity.type = KPROF_ACTIVITY_KERNEL;
	r->activity.name = 20 + l->kernel;
	r->activity.context = 1;
	r->activity.stream = l->stream;
	r->activity.start_ns = c->ns;
	r->activity.end_ns = c->ns + (uint64_t)(l->median_ns * exp(0.05 * normal()));
	r->activity.queued_ns = c->ns - (uint64_t)log_uniform(5000, 500000);
	r->activity.correlation = c->correlation;
	r->attrs = kernel_attrs[l->kernel];
	r->nr_attrs = ATTRS;
	c->ns = r->activity.end_ns;
}

static void next_api(struct clock *c, struct store_record *r)
{
	const struct launch *l = &launches[c->at];

	c->ns += (uint64_t)(l->pause_ns * 3 * exp(0.25 * normal()));
	c->correlation += l->calls_between;
	*r = (struct store_record){.type = STORE_API};
	r->api.type = KPROF_ACTIVITY_CUDA_RUNTIME;
	r->api.name = 18;
	r->api.start_ns = c->ns;
	r->api.end_ns = c->ns + (uint64_t)(4000 * exp(0.25 * normal()));
	r->api.correlation = c->correlation;
	c->ns = r->api.end_ns;
}

static void next_args(struct clock *c, struct store_record *r)
{
	*r = (struct store_record){.type = STORE_ARGS, .args = {1}};
	r->attrs = call_attrs[c->at];
	r->nr_attrs = CALL_ATTRS;
}

static void next_record(enum shape shape, struct clock *c, struct store_record *r)
{
	if (shape == KERNEL)
		next_activity(c, r);
	else if (shape == API)
		next_api(c, r);
	else
		next_args(c, r);
	c->at = (c->at + 1) % LAUNCHES;
}

static int write_once(const char *path, const struct store_record *records, size_t nr,
		      double *seconds)
{
	const struct store_record begin = {.type = STORE_BEGIN, .begin = {.description = 1}};
	struct store_writer *w;
	uint64_t start_ns;
	int err = store_writer__open(path, NULL, &w);

	if (err)
		return err;
	err = put_tables(w);
	if (!err)
		err = store_writer__put(w, &begin); /* what args are about */
	start_ns = clock_mono_ns();
	for (size_t i = 0; !err && i < nr; i++)
		err = store_writer__put(w, &records[i]);
	if (!err)
		err = store_writer__flush(w);
	*seconds = (double)(clock_mono_ns() - start_ns) / 1e9; /* the disk is not what we measure */
	if (err) {
		store_writer__discard(w);
		return err;
	}
	return store_writer__finish(w, 1);
}

static int read_once(const char *path, size_t want, double *seconds)
{
	uint64_t start_ns = clock_mono_ns(), sum = 0;
	struct store_record record;
	struct store_reader *r;
	size_t nr = 0;
	int err = store_reader__open(path, &r);

	if (err)
		return err;
	store_reader__rewind(r, STORE_READ_DETAILS);
	while ((err = store_reader__next(r, &record)) == 1) {
		if (record.type < STORE_ARGS)
			continue;
		nr++;
		if (record.nr_attrs)
			sum += record.attrs[record.nr_attrs - 1].value;
	}
	*seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
	store_reader__close(r);
	if (nr != want || sum == UINT64_MAX) {
		fprintf(stderr, "details_bench: what was read is not what was written\n");
		return -1;
	}
	return err;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values)
{
	qsort(values, RUNS, sizeof(*values), compare);
	return values[RUNS / 2];
}

static int bench(enum shape shape, const char *path, struct store_record *records, size_t nr)
{
	struct clock clock = {.ns = 1000000000000};
	double written[RUNS], read[RUNS];
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < nr; i++)
		next_record(shape, &clock, &records[i]);
	for (int i = 0; !err && i < RUNS; i++) {
		err = write_once(path, records, nr, &written[i]);
		if (!err)
			err = read_once(path, nr, &read[i]);
	}
	if (err || stat(path, &st) < 0)
		return err ? err : -1;
	printf("details_%s_write %.1f Mrecords/s\n", shape_names[shape],
	       (double)nr / median(written) / 1e6);
	printf("details_%s_read %.1f Mrecords/s\n", shape_names[shape],
	       (double)nr / median(read) / 1e6);
	printf("details_%s_size %.2f bytes/record\n", shape_names[shape],
	       (double)st.st_size / (double)nr);
	return 0;
}

int main(int argc, char **argv)
{
	double millions = argc > 1 ? strtod(argv[1], NULL) : 2;
	char own[] = "/tmp/kprof-details-bench-XXXXXX", path[64];
	struct store_record *records;
	size_t nr;
	int err = 0;

	if (!(millions > 0 && millions <= 20)) {
		fprintf(stderr, "usage: details_bench [millions of activities, up to 20] [file]\n");
		return 2;
	}
	random_state = 88172645463325252ull;
	make_step();
	nr = (size_t)(millions * 1e6);
	records = reallocarray(NULL, nr, sizeof(*records));
	if (!records || (argc < 3 && !mkdtemp(own)))
		return 1;
	snprintf(path, sizeof(path), "%s/bench.kprof", own);
	for (int shape = 0; shape < SHAPES && !err; shape++)
		err = bench((enum shape)shape, argc > 2 ? argv[2] : path, records, nr);
	if (err)
		fprintf(stderr, "details_bench: %s\n", kprof_error_cause());
	if (argc < 3) {
		unlink(path);
		rmdir(own);
	}
	free(records);
	return err ? 1 : 0;
}
