// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the capture file costs: records per second written and read on one core, bytes per event.
 *
 *   store_bench [millions of events] [file]
 *
 * The stream is synthetic but shaped like a training loop: four threads (two busy, two loaders),
 * each repeating a step of 300 operators of 60 kinds, nested up to four deep, merged by time.
 * Every duration and every pause is its operator's own median (0.4 … 40 µs, log-uniform) times a
 * log-normal factor (sigma 0.25), with one in 500 ten times as long: times carry the noise that
 * they have on a real machine, which is what a compressor cannot remove. One event is a BEGIN
 * and an END. Prints "name value unit" lines, medians of 5 runs.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "kprof.h"
#include "store/store.h"
#include "util/util.h"

enum { RUNS = 5, THREADS = 4, WHATS = 60, OPS = 300, DEPTH = 4, CALLS = 2 * OPS };

/* A step of one thread: what begins (> 0) or ends (0), and the median pause before it. */
struct step {
	uint32_t description[CALLS];
	double pause_ns[CALLS];
};

struct source {
	struct step step;
	uint64_t time_ns;
	int at;
};

static uint64_t random_state = 88172645463325252ull;

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

static double median_ns(double from, double to)
{
	return from * exp(uniform() * log(to / from));
}

/* A random walk over the depth that begins OPS operators and closes them all. */
static void make_step(struct step *s)
{
	int depth = 0, begun = 0;

	for (int i = 0; i < CALLS; i++) {
		bool begin = begun < OPS && (!depth || (depth < DEPTH && uniform() < 0.5));

		s->description[i] = begin ? 1 + (uint32_t)(uniform() * WHATS) : 0;
		s->pause_ns[i] = median_ns(400, begin ? 10000 : 40000);
		begun += begin;
		depth += begin ? 1 : -1;
	}
}

static void advance(struct source *s)
{
	double ns = s->step.pause_ns[s->at] * exp(0.25 * normal());

	s->time_ns += (uint64_t)(uniform() < 0.002 ? ns * 10 : ns);
}

/* The next record of the thread whose time is next. */
static void next_record(struct source *sources, struct store_record *r)
{
	uint32_t t = 0;
	struct source *s;

	for (uint32_t i = 1; i < THREADS; i++)
		if (sources[i].time_ns < sources[t].time_ns)
			t = i;
	s = &sources[t];
	if (s->step.description[s->at]) {
		r->type = STORE_BEGIN;
		r->begin.time_ns = s->time_ns;
		r->begin.thread = t;
		r->begin.description = s->step.description[s->at];
	} else {
		r->type = STORE_END;
		r->end.time_ns = s->time_ns;
		r->end.thread = t;
		r->end.flags = 0;
	}
	s->at = (s->at + 1) % CALLS;
	advance(s);
}

static struct store_record *make_stream(size_t nr)
{
	static struct source sources[THREADS];
	struct store_record *records = malloc(nr * sizeof(*records));

	if (!records)
		return NULL;
	for (uint32_t t = 0; t < THREADS; t++) {
		make_step(&sources[t].step);
		sources[t].time_ns = 1000000000000ull + t * 12345;
		advance(&sources[t]);
		/* The loaders have less to do. */
		for (int i = 0; t >= 2 && i < CALLS; i++)
			sources[t].step.pause_ns[i] *= 8;
	}
	for (size_t i = 0; i < nr; i++)
		next_record(sources, &records[i]);
	return records;
}

static int put_tables(struct store_writer *w)
{
	struct store_record r = {.type = STORE_SOURCE};
	int err = store_writer__put(w, &r);

	for (uint32_t i = 0; !err && i < THREADS; i++) {
		r = (struct store_record){STORE_THREAD, .thread = {.index = i}};
		err = store_writer__put(w, &r);
	}
	for (uint32_t i = 1; !err && i <= WHATS; i++) {
		char name[32];
		int len = snprintf(name, sizeof(name), "aten::operator_%u", i);

		r = (struct store_record){STORE_DESCRIPTION, .description = {.id = i}};
		r.description.name = store_writer__string(w, name, (size_t)len);
		err = store_writer__put(w, &r);
	}
	return err;
}

static int write_once(const char *path, const struct store_record *records, size_t nr,
		      double *seconds)
{
	struct store_writer *w;
	uint64_t start_ns = clock_mono_ns();
	int err = store_writer__open(path, NULL, &w);

	if (err)
		return err;
	err = put_tables(w);
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

static int read_once(const char *path, enum store_read_mode mode, size_t want_begins,
		     double *seconds)
{
	uint64_t start_ns = clock_mono_ns(), sum = 0;
	struct store_reader_info info;
	struct store_record record;
	struct store_reader *r;
	int err = store_reader__open(path, &r);

	if (err)
		return err;
	store_reader__rewind(r, mode);
	while ((err = store_reader__next(r, &record)) == 1)
		sum += record.type == STORE_BEGIN ? record.begin.time_ns : record.end.time_ns;
	*seconds = (double)(clock_mono_ns() - start_ns) / 1e9;
	store_reader__info(r, &info);
	store_reader__close(r);
	if (!info.complete || info.begins != want_begins || !sum) {
		fprintf(stderr, "store_bench: what was read is not what was written\n");
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

static int bench(const char *path, const struct store_record *records, size_t nr)
{
	double written[RUNS], read[RUNS], passed[RUNS];
	size_t begins = 0;
	struct stat st;
	int err = 0;

	for (size_t i = 0; i < nr; i++)
		begins += records[i].type == STORE_BEGIN;
	for (int i = 0; !err && i < RUNS; i++) {
		err = write_once(path, records, nr, &written[i]);
		if (!err)
			err = read_once(path, STORE_READ_ALL, begins, &read[i]);
		if (!err)
			err = read_once(path, STORE_READ_TABLES, begins, &passed[i]);
	}
	if (err || stat(path, &st) < 0)
		return err ? err : -1;
	printf("store_write %.1f Mrecords/s\n", (double)nr / median(written) / 1e6);
	printf("store_read %.1f Mrecords/s\n", (double)nr / median(read) / 1e6);
	printf("store_pass_over %.1f Mrecords/s\n", (double)nr / median(passed) / 1e6);
	printf("store_size %.2f bytes/event\n", (double)st.st_size / (double)begins);
	return 0;
}

int main(int argc, char **argv)
{
	double millions = argc > 1 ? strtod(argv[1], NULL) : 2;
	char own[] = "/tmp/kprof-store-bench-XXXXXX", path[64];
	struct store_record *records;
	size_t nr;
	int err;

	if (!(millions > 0 && millions <= 40)) {
		fprintf(stderr, "usage: store_bench [millions of events, up to 40] [file]\n");
		return 2;
	}
	nr = (size_t)(millions * 1e6) * 2;
	records = make_stream(nr);
	if (!records || (argc < 3 && !mkdtemp(own)))
		return 1;
	snprintf(path, sizeof(path), "%s/bench.kprof", own);
	err = bench(argc > 2 ? argv[2] : path, records, nr);
	if (err)
		fprintf(stderr, "store_bench: %s\n", kprof_error_cause());
	if (argc < 3) {
		unlink(path);
		rmdir(own);
	}
	free(records);
	return err ? 1 : 0;
}
