// SPDX-License-Identifier: BSD-2-Clause
/* Records of operators that agents observed (refs.c), and their times (ticks.c). */
#include "agent_fixture.h"

static struct store_writer *store;
static struct agent_records *records;
static char told[1024];

static void begin(const struct agent_records_ops *ops)
{
	told[0] = '\0';
	scratch__make();
	CHECK_EQ(store_writer__open(in_scratch("c.kprof"), NULL, &store), 0);
	CHECK_EQ(agent_records__new(store, FIXTURE_PID, ops, &records), 0);
}

static void hand_over(const struct batch *b)
{
	CHECK_EQ(agent_records__batch(records, b->data, b->bytes), 0);
}

static void end(void)
{
	CHECK_EQ(store_writer__finish(store, 1000), 0);
	agent_records__free(records);
	scratch__remove();
}

static int spans(void *ctx, uint32_t tid, uint32_t depth, const struct agent_span *s, size_t nr)
{
	size_t at = strlen(told);

	at += (size_t)snprintf(told + at, sizeof(told) - at, "%u/%u:", tid, depth);
	for (size_t i = 0; i < nr; i++)
		at += s[i].kind == AGENT_SPAN_BEGIN
			      ? (size_t)snprintf(told + at, sizeof(told) - at, " %llu %s(%u)",
						 (unsigned long long)s[i].time_ns, s[i].text,
						 s[i].scope)
			      : (size_t)snprintf(told + at, sizeof(told) - at, " %llu %s%u",
						 (unsigned long long)s[i].time_ns,
						 s[i].kind == AGENT_SPAN_END ? "end" : "closed",
						 s[i].inside);
	snprintf(told + at, sizeof(told) - at, "\n");
	return 0;
}

static void operators(void)
{
	const struct agent_records_ops ops = {.spans = spans};
	struct {
		struct kprof_agent_spans s;
		struct kprof_agent_span entry[5];
	} e = {.s = {.start = 2000, .tid = 7, .depth = 3},
	       .entry = {{0, 1},
			 {5, 7u << KPROF_AGENT_SPAN_SCOPE_SHIFT | 9},
			 {6, KPROF_AGENT_SPAN_CLOSED},
			 {7, KPROF_AGENT_SPAN_END | 2},
			 {8, KPROF_AGENT_SPAN_END}}};
	struct batch b = {0};

	begin(&ops);
	e.s.h = (struct kprof_agent_head){.kind = KPROF_AGENT_SPANS, .size = sizeof(e)};
	batch_name(&b, 1, "aten::add");
	batch_add(&b, &e, sizeof(e));
	e.s.h.size = sizeof(e.s); /* none */
	batch_add(&b, &e, sizeof(e.s));
	hand_over(&b);
	CHECK_STR(told, "7/3: 2000 aten::add(0) 2005 (7) 2006 closed0 2007 end2 2008 end0\n7/3:\n");
	CHECK_EQ(agent_records__count(records)->spans, 5);
	CHECK_EQ(agent_records__count(records)->received, 1); /* the name */
	CHECK_EQ(agent_records__count(records)->unnamed, 1);
	end();
}

static int with_more(void *ctx, uint32_t tid, uint32_t depth, const struct agent_span *s, size_t nr)
{
	size_t at = strlen(told);

	for (size_t i = 0; i < nr; i++)
		at += (size_t)snprintf(
			told + at, sizeof(told) - at, "%llu %u words%s %lld of %u%s\n",
			s[i].nr_inputs ? (unsigned long long)s[i].inputs[0] : 0, s[i].nr_inputs,
			s[i].inputs_untold ? " untold" : "", (long long)s[i].sequence, s[i].thread,
			s[i].node ? " node" : "");
	return 0;
}

/* Entries that belong to that of a begin; those that belong to none are ignored. */
static void more_of_operators(void)
{
	const struct agent_records_ops ops = {.spans = with_more};
	struct {
		struct kprof_agent_inputs i;
		uint64_t words[2];
	} inputs = {.i = {.h = {KPROF_AGENT_INPUTS, sizeof(inputs), 5}, .nr = 2}, .words = {77, 8}};
	struct {
		struct kprof_agent_spans s;
		struct kprof_agent_span entry[10];
	} e = {.s = {.h = {KPROF_AGENT_SPANS, sizeof(e), 0}, .tid = 7},
	       .entry = {{0, KPROF_AGENT_SPAN_INPUTS | 5},
			 {0, 1},
			 {0, KPROF_AGENT_SPAN_INPUTS | 5},
			 {9, KPROF_AGENT_SPAN_SEQUENCE | 4},
			 {1, 1},
			 {0, KPROF_AGENT_SPAN_INPUTS | 6},
			 {9, KPROF_AGENT_SPAN_SEQUENCE | KPROF_AGENT_SPAN_NODE | 2},
			 {1, KPROF_AGENT_SPAN_SEQUENCE_HIGH | KPROF_AGENT_SPAN_NODE | 2},
			 {2, KPROF_AGENT_SPAN_END},
			 {9, KPROF_AGENT_SPAN_SEQUENCE | 4}}};
	struct batch b = {0};

	begin(&ops);
	batch_name(&b, 1, "aten::add");
	batch_add(&b, &inputs, sizeof(inputs));
	inputs.i.nr = 1000; /* more than the record has: the first are kept */
	batch_add(&b, &inputs, sizeof(inputs));
	batch_add(&b, &e, sizeof(e));
	hand_over(&b);
	CHECK_STR(told,
		  "77 2 words 9 of 4\n0 0 words untold 4294967305 of 2 node\n0 0 words 0 of 0\n");
	CHECK_EQ(agent_records__count(records)->spans, 3);
	CHECK_EQ(agent_records__count(records)->received, 1); /* the name */
	CHECK_EQ(agent_records__count(records)->malformed, 0);
	end();
}

/* Ticks of the counter, wherever the base lies. */
static void ticks(void)
{
	struct agent_ticks t = {.before = {1000, 5000}, .last = {2001000, 6005000}}; /* 3 a ns */

	CHECK_EQ(agent_ticks__ns(&t, 9000, 100, 9000), 100);
	CHECK_EQ(agent_ticks__ns(&t, 9300, 100, 9000), 200);
	CHECK_EQ(agent_ticks__ns(&t, 8700, 200, 9000), 100);
	CHECK_EQ(agent_ticks__ns(&t, 1ull << 60, 100, 9000), 100); /* makes no sense */
	CHECK_EQ(agent_ticks__ns(&t, 0, 100, 1ull << 63), 100);
}

UNIT_MAIN(TEST(operators), TEST(more_of_operators), TEST(ticks))
