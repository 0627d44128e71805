// SPDX-License-Identifier: BSD-2-Clause
/* Which spans of a thread are open, whatever order they end in. */
#include "gpu/pytorch/open_spans.h"

#include "gpu/base/host.h"
#include "gpu/base/module.h"
#include "gpu_fixture.h"

static struct kprof_agent_shm *shm;
static struct open_spans o;

struct kprof_agent_shm *gpu_shm(void)
{
	return shm;
}

/* Addresses, as objects in the program's memory have them. */
static const void *object(unsigned int i)
{
	static char objects[1024 * 16];

	return &objects[i * 16];
}

static void begin(void)
{
	if (!shm) {
		CHECK_EQ(shm__make(&shm), 0);
		CHECK_EQ(batch__init(shm), 0);
	}
	seen_clear();
	batch__open(1);
	open_spans__reset(&o, 1, 7, false);
}

static void ends(unsigned int i, uint32_t closed, bool found, uint32_t inside)
{
	struct open_spans_end end = open_spans__pop(&o, object(i));

	CHECK_EQ(end.closed, closed);
	CHECK_EQ(end.found, found);
	CHECK_EQ(end.inside, inside);
}

static void operators_nest(void)
{
	begin();
	CHECK(open_spans__push(&o, object(1), false, false));
	CHECK(open_spans__push(&o, object(2), false, false));
	CHECK_EQ(o.depth, 2);
	ends(2, 0, true, 0);
	ends(1, 0, true, 0);
	CHECK_EQ(o.depth, 0);
	ends(1, 0, false, 0);
}

/* An operator's end shows that everything inside of it is over. */
static void an_operator_closes(void)
{
	begin();
	open_spans__push(&o, object(1), false, false);
	open_spans__push(&o, object(2), true, false);
	open_spans__push(&o, object(3), false, false);
	ends(1, 2, true, 0);
	CHECK_EQ(o.depth, 0);
}

static void annotations_cross(void)
{
	begin();
	open_spans__push(&o, object(1), true, false);
	open_spans__push(&o, object(2), true, false);
	open_spans__push(&o, object(3), false, false);
	ends(1, 0, true, 2);
	CHECK_EQ(o.depth, 2);
	ends(3, 0, true, 0);
	ends(2, 0, true, 0);
	CHECK_EQ(o.depth, 0);
}

/* An annotation that a future ends, on whatever thread. */
static void an_end_on_another_thread(void)
{
	struct open_spans other = {0};

	begin();
	open_spans__reset(&other, 1, 8, false);
	open_spans__push(&o, object(1), true, false);
	open_spans__push(&o, object(2), true, false);
	CHECK(!open_spans__pop(&other, object(2)).found);
	ends(1, 1, true, 0);
	CHECK_EQ(o.depth, 0);
}

/* Nothing is around these, whose end would show that they are over. */
static void many_ends_on_another_thread(void)
{
	struct open_spans other = {0};

	begin();
	open_spans__reset(&other, 1, 8, false);
	for (unsigned int i = 0; i < 4 * OPEN_SPANS_DEPTH; i++) {
		CHECK_EQ(open_spans__settle(&o), i > 0);
		CHECK(open_spans__push(&o, object(i % 3), true, false));
		CHECK(!open_spans__pop(&other, object(i % 3)).found);
	}
	CHECK_EQ(o.depth, 1);
}

/* The memory of what ended elsewhere is another object's now. */
static void an_address_again(void)
{
	struct open_spans other = {0};

	begin();
	open_spans__reset(&other, 1, 8, false);
	CHECK(!open_spans__pop(&other, object(1)).found);
	open_spans__push(&o, object(1), true, false);
	CHECK_EQ(open_spans__settle(&o), 0);
	open_spans__push(&o, object(2), true, false);
	CHECK(!open_spans__pop(&other, object(1)).found);
	open_spans__push(&o, object(1), true, false); /* a new one, inside of 2 */
	ends(1, 0, true, 0);
	CHECK_EQ(open_spans__settle(&o), 0);
	ends(2, 0, true, 0);
	CHECK_EQ(open_spans__settle(&o), 1);
	CHECK_EQ(o.depth, 0);
}

static void what_is_too_deep_is_not_recorded(void)
{
	begin();
	for (unsigned int i = 0; i < OPEN_SPANS_DEPTH; i++)
		CHECK(open_spans__push(&o, object(i), false, false));
	CHECK(!open_spans__push(&o, object(600), false, false));
	ends(600, 0, false, 0);
	ends(OPEN_SPANS_DEPTH - 1, 0, true, 0);
}

/* The same text has the same id wherever it lies, and each is told once. */
#define NAMES_NR 600 /* more than the cache has places */
static void names(void)
{
	char text[NAMES_NR][24];
	uint32_t first[NAMES_NR];

	begin();
	for (unsigned int round = 0; round < 2; round++) {
		for (unsigned int i = 0; i < NAMES_NR; i++) {
			int len = snprintf(text[i], sizeof(text[i]), "aten::operator_%u", i);
			uint32_t id = open_spans__name(&o, text[i], (size_t)len);

			CHECK(id > 0);
			if (!round)
				first[i] = id;
			CHECK_EQ(id, first[i]);
			memset(text[i], 'x', sizeof(text[i]));
		}
	}
	CHECK_EQ(seen.batches, NAMES_NR);
	CHECK(open_spans__name(&o, "aten::a", 7) != open_spans__name(&o, "aten::b", 7));
	CHECK(open_spans__name(&o, "aten::aten", 4) != open_spans__name(&o, "aten::aten", 10));
}

/* What is recorded inside of: the thread is outside once the last of them is over. */
static void wanted_annotations(void)
{
	struct open_spans o;
	struct open_spans_end end;

	memset(&o, 0, sizeof(o));
	open_spans__reset(&o, 1, 1, false);
	open_spans__push(&o, object(1), true, true);
	open_spans__push(&o, object(2), true, true);
	open_spans__push(&o, object(3), false, false);
	CHECK(o.wanted == 2 && open_spans__is_top(&o, object(3)));
	CHECK(!open_spans__is_top(&o, object(2)));
	end = open_spans__pop(&o, object(1)); /* the outer one, before the inner */
	CHECK(end.found && o.wanted == 1);
	open_spans__pop(&o, object(2));
	CHECK(!o.wanted);
	open_spans__pop(&o, object(3));
	/* ended on another thread: the next event shows it */
	open_spans__push(&o, object(4), true, true);
	open_spans__elsewhere(object(4));
	CHECK(o.wanted == 1);
	CHECK(open_spans__settle(&o) == 1 && !o.wanted && !open_spans__is_top(&o, object(4)));
	/* an operator around: what is inside of it has ended with it */
	open_spans__push(&o, object(5), false, false);
	open_spans__push(&o, object(6), true, true);
	end = open_spans__pop(&o, object(5));
	CHECK(end.closed == 1 && !o.wanted && !o.depth);
	open_spans__push(&o, object(7), true, true);
	open_spans__reset(&o, 2, 1, false);
	CHECK(!o.wanted && !open_spans__is_top(&o, object(7)));
	/* an operator that has ended on another thread, and another one at its address */
	open_spans__push(&o, object(8), false, false);
	CHECK(open_spans__is_top(&o, object(8)));
	open_spans__elsewhere(object(8));
	CHECK(!open_spans__is_top(&o, object(8)));
	open_spans__push(&o, object(8), false, false);
	CHECK(open_spans__is_top(&o, object(8)));
}

UNIT_MAIN(TEST(wanted_annotations), TEST(operators_nest), TEST(an_operator_closes),
	  TEST(annotations_cross), TEST(an_end_on_another_thread),
	  TEST(many_ends_on_another_thread), TEST(an_address_again),
	  TEST(what_is_too_deep_is_not_recorded), TEST(names))
