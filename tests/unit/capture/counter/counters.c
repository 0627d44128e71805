// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/counter/counters.c: which differences are recorded, and which are not known. */
#include "capture/counter/counters.h"

#include <stdio.h>
#include <unistd.h>

#include "capture/record/record.h"
#include "capture/span/spans.h"
#include "kprof/counters.h"
#include "model/timeline/timeline.h"
#include "unit.h"

/* The first is a number of the thread, the second one of CPUs: of that, epochs count. */
#define NAMES "page-faults,task-clock"
#define WORDS 3 /* the epoch, and both */

static char path[64];
static struct recorder *recorder;
static struct counters *counters;
static uint64_t nr_spans;

static void begin(void)
{
	struct store_record source = {.type = STORE_SOURCE}, d = {.type = STORE_DESCRIPTION},
			    th = {.type = STORE_THREAD, .thread = {.pid = 7, .tid = 7}};
	uint32_t id;

	snprintf(path, sizeof(path), "/tmp/kprof-unit-counters-%d.kprof", (int)getpid());
	CHECK_EQ(recorder__new(path, &(struct outfile_opts){0}, &recorder), 0);
	CHECK_EQ(counters__new(NAMES, recorder, &counters), 0);
	CHECK_EQ(counters__nr(counters), 2);
	CHECK(counters__cpus(counters) > 0);
	CHECK_EQ(counters__wire_bytes(counters), WORDS * 8);
	source.source.name = recorder__string(recorder, "operators");
	CHECK_EQ(recorder__put(recorder, &source), 0);
	d.description.name = recorder__string(recorder, "aten::add");
	d.description.category = recorder__string(recorder, "cpu_op");
	CHECK_EQ(recorder__describe(recorder, &d, &id), 0);
	CHECK_EQ(recorder__put(recorder, &th), 0);
	CHECK_EQ(recorder__clock(recorder, 1, 1), 0);
	nr_spans = 0;
}

static void span(const uint64_t *at_begin, const uint64_t *at_end)
{
	struct store_record b = {.type = STORE_BEGIN,
				 .begin = {.time_ns = 10 + 10000 * nr_spans, .description = 1}};
	struct store_record e = {.type = STORE_END, .end = {.time_ns = 5010 + 10000 * nr_spans}};
	struct span_end end = {.begin_ns = 10 + 10000 * nr_spans,
			       .time_ns = 5010 + 10000 * nr_spans,
			       .number = nr_spans + 1,
			       .at_begin = at_begin,
			       .at_end = at_end};

	nr_spans++;
	CHECK_EQ(recorder__put(recorder, &b), 0);
	CHECK_EQ(counters__put(counters, recorder, &end), 0);
	CHECK_EQ(recorder__put(recorder, &e), 0);
}

struct read {
	const struct kprof_capture *c;
	uint32_t known[8];
	uint64_t values[8][TL_MAX_COUNTERS];
};

static int on_span(void *ctx, const struct tl_span *s)
{
	struct read *r = ctx;

	r->known[s->id - 1] = timeline__counts(r->c, s, r->values[s->id - 1]);
	return 0;
}

static void differences(void)
{
	static const uint64_t a[] = {3, 100, 5000}, b[] = {3, 104, 7500}, other[] = {4, 107, 9000},
			      none[] = {0, 109, 0}, less[] = {4, 90, 9100},
			      late[] = {3, 10104, 10001};
	struct kprof_capture *c;
	struct read r = {0};

	begin();
	span(a, b);
	span(b, other);    /* a switch was not seen */
	span(none, none);  /* the CPU's numbers could not be read */
	span(a, NULL);     /* its end was not seen */
	span(NULL, a);     /* it began before the window */
	span(other, less); /* no number goes back: there is none */
	span(a, late);     /* an interrupt came before it was read: more time than the span took */
	CHECK_EQ(recorder__finish(recorder, 100000), 0);
	CHECK_EQ(kprof_capture_open(path, &c), 0);
	CHECK_STR(kprof_capture_counter(c, 0), "page-faults");
	CHECK_STR(kprof_capture_counter(c, 1), "task-clock");
	CHECK(!kprof_capture_counter(c, 2));
	r.c = c;
	CHECK_EQ(timeline__spans(c, on_span, &r), 0);
	CHECK_EQ(r.known[0], 3);
	CHECK_EQ(r.values[0][0], 4);
	CHECK_EQ(r.values[0][1], 2500);
	CHECK_EQ(r.known[1], 1);
	CHECK_EQ(r.values[1][0], 3);
	CHECK_EQ(r.known[2], 1);
	CHECK_EQ(r.values[2][0], 0);
	CHECK_EQ(r.known[3], 0);
	CHECK_EQ(r.known[4], 0);
	CHECK_EQ(r.known[5], 2);
	CHECK_EQ(r.values[5][1], 100);
	CHECK_EQ(r.known[6], 3);
	CHECK_EQ(r.values[6][0], 10004);
	CHECK_EQ(r.values[6][1], 5000);
	kprof_capture_close(c);
	counters__free(counters);
	recorder__free(recorder);
	unlink(path);
}

UNIT_MAIN(TEST(differences))
