// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/event/sequences.c: what begins say of sequence numbers. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "capture/event/sequences.h"
#include "catalog/sequence.h"
#include "model/timeline/timeline.h"

/* What the attributes of the spans say, in the order of the spans. */
static char said[512];

static int on_span(void *ctx, const struct tl_span *span)
{
	const struct kprof_capture *t = ctx;
	static const char *const keys[] = {SEQUENCE_KEY, SEQUENCE_FORWARD_KEY, SEQUENCE_THREAD_KEY,
					   SEQUENCE_MAYBE_KEY};
	size_t used = strlen(said);

	used += (size_t)snprintf(said + used, sizeof(said) - used, "|");
	for (size_t i = 0; i < 4; i++) {
		const struct store_attr *a =
			timeline__attr(t, span->attrs, span->nr_attrs, keys[i]);

		if (a)
			used += (size_t)snprintf(said + used, sizeof(said) - used, "%c%llu",
						 "nfot?"[i == 3 ? 4 : i],
						 (unsigned long long)a -> value);
	}
	return 0;
}

struct hit {
	uint32_t flags, thread;
	uint64_t number;
};

static void record(const struct hit *hits, size_t nr)
{
	struct store_record r = {.type = STORE_SOURCE};
	struct sequences sequences = {0};
	struct recorder *recorder;
	struct kprof_capture *t;
	uint64_t around = 0;
	uint32_t index, what;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/kprof-unit-sequences-%d.kprof", (int)getpid());
	CHECK_EQ(recorder__new(path, &(struct outfile_opts){0}, &recorder), 0);
	CHECK_EQ(recorder__source(recorder, "operators", &index), 0);
	r.source.name = recorder__string(recorder, "operators");
	CHECK_EQ(recorder__put(recorder, &r), 0);
	r = (struct store_record){.type = STORE_THREAD, .thread = {.pid = 7, .tid = 7}};
	CHECK_EQ(recorder__put(recorder, &r), 0);
	r = (struct store_record){.type = STORE_DESCRIPTION};
	r.description.name = r.description.category = recorder__string(recorder, "cpu_op");
	CHECK_EQ(recorder__describe(recorder, &r, &what), 0);
	CHECK_EQ(recorder__clock(recorder, 1000, 1000), 0);
	recorder__prepare(recorder, 1);
	recorder__open_window(recorder, 1000);
	for (size_t i = 0; i < nr; i++) {
		struct kprof_wire_begin b = {.flags = hits[i].flags,
					     .thread = hits[i].thread,
					     .sequence = hits[i].number};

		r = (struct store_record){.type = STORE_BEGIN, .begin = {1000 + i, 0, what}};
		CHECK_EQ(recorder__event(recorder, &r), 0);
		CHECK_EQ(sequences__begun(&sequences, recorder, &b, &around,
					  recorder__last_begin(recorder)),
			 0);
		CHECK_EQ(sequences__begun(&sequences, recorder, &b, &(uint64_t){0}, 0), 0);
	}
	for (size_t i = 0; i < nr; i++) {
		r = (struct store_record){.type = STORE_END, .end = {2000 + i, 0, 0}};
		CHECK_EQ(recorder__put(recorder, &r), 0);
	}
	CHECK_EQ(sequences__account(&sequences, recorder), 0);
	recorder__close_window(recorder, 3000);
	CHECK_EQ(recorder__finish(recorder, 3000), 0);
	recorder__free(recorder);
	CHECK_EQ(kprof_capture_open(path, &t), 0);
	said[0] = '\0';
	CHECK_EQ(timeline__spans(t, on_span, t), 0);
	kprof_capture_close(t);
	unlink(path);
}

#define NODE KPROF_WIRE_F_NODE
#define AROUND (KPROF_WIRE_F_NODE | KPROF_WIRE_F_AROUND)

/* Spans end in the reverse order of their begins. */
static void said_of_each(void)
{
	record((const struct hit[]){{0, 0, 0},
				    {KPROF_WIRE_F_SEQUENCE, 3, 5},
				    {KPROF_WIRE_F_MAYBE, 3, 6},
				    {NODE, 2, 7},
				    {KPROF_WIRE_F_SEQUENCE, 3, UINT64_MAX}},
	       5);
	CHECK_STR(said, "||n7f2|?6|n5o3|");
}

/* What is around a node has its number only if the node runs next. */
static void around(void)
{
	record((const struct hit[]){{AROUND, 2, 7}, {NODE, 2, 7}}, 2);
	CHECK_STR(said, "|n7f2|n7f2");
	record((const struct hit[]){{AROUND, 2, 7}, {0, 0, 0}, {NODE, 2, 7}}, 3);
	CHECK_STR(said, "|n7f2||");
	record((const struct hit[]){{AROUND, 2, 7}, {KPROF_WIRE_F_SEQUENCE, 1, 9}}, 2);
	CHECK_STR(said, "|n9o1|");
	record((const struct hit[]){{AROUND, 2, 7}, {AROUND, 2, 8}, {NODE, 2, 8}}, 3);
	CHECK_STR(said, "|n8f2|n8f2|");
}

UNIT_MAIN(TEST(said_of_each), TEST(around))
