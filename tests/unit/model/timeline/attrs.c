// SPDX-License-Identifier: BSD-2-Clause
#include "model/timeline/attrs.h"

#include "unit.h"

static struct store_attr attr(uint32_t key, uint64_t value)
{
	return (struct store_attr){key, STORE_ATTR_U64, value};
}

static void add(struct attrs *a, uint64_t span, uint32_t key, uint64_t value)
{
	struct store_attr one = attr(key, value);

	CHECK_EQ(attrs__add(a, span, &one, 1), 0);
}

static void several_records_add_up(void)
{
	struct attrs a = {0};

	add(&a, 7, 1, 10);
	add(&a, 8, 1, 80);
	add(&a, 7, 2, 20);
	CHECK_EQ(attrs__take(&a, 9), 0);
	CHECK_EQ(attrs__take(&a, 7), 2);
	CHECK_EQ(a.taken[0].value, 10);
	CHECK_EQ(a.taken[1].key, 2);
	CHECK_EQ(attrs__take(&a, 7), 0);
	CHECK_EQ(a.waiting, 1);
	attrs__free(&a);
}

/* A call's result, say, told twice: the later holds. */
static void the_latest_value_of_a_key(void)
{
	struct attrs a = {0};

	add(&a, 1, 5, 1);
	add(&a, 1, 6, 2);
	add(&a, 1, 5, 3);
	CHECK_EQ(attrs__take(&a, 1), 2);
	CHECK_EQ(a.taken[0].value, 3);
	CHECK_EQ(a.taken[1].value, 2);
	attrs__free(&a);
}

static void many_spans_in_any_order(void)
{
	struct attrs a = {0};
	uint64_t seed = 1, sum = 0;

	for (int round = 0; round < 3; round++) {
		for (uint64_t span = 1; span <= 5000; span++)
			add(&a, span, 1, span);
		for (uint64_t i = 0; i < 5000; i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			if (attrs__take(&a, 1 + (seed >> 33) % 5000))
				sum += a.taken[0].value;
		}
		for (uint64_t span = 1; span <= 5000; span++)
			if (attrs__take(&a, span))
				sum += a.taken[0].value;
		CHECK_EQ(a.waiting, 0);
		CHECK(a.by_span.used <= 5000);
	}
	CHECK_EQ(sum, 3 * 5000ull * 5001 / 2);
	CHECK(a.nr_nodes <= 5000); /* given back and used again */
	attrs__free(&a);
}

static void too_many_are_counted(void)
{
	struct attrs a = {0};

	for (uint32_t key = 0; key < TL_MAX_ATTRS + 5; key++)
		add(&a, 1, key, key);
	add(&a, 0, 1, 1); /* no span has this number */
	CHECK_EQ(attrs__take(&a, 1), TL_MAX_ATTRS);
	CHECK_EQ(a.lost, 6);
	attrs__free(&a);
}

UNIT_MAIN(TEST(several_records_add_up), TEST(the_latest_value_of_a_key),
	  TEST(many_spans_in_any_order), TEST(too_many_are_counted))
