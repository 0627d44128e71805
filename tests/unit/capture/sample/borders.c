// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/sample/borders.c */
#include "unit.h"

#include "capture/sample/impl.h"
#include "util/util.h"

#define SECOND NSEC_PER_SEC

/* Two captures have ended, of which each took so long. */
static struct stacks after(uint64_t every_ns)
{
	return (struct stacks){.all_named_ns = 100 * SECOND, .names_every_ns = every_ns};
}

static void near_borders(void)
{
	struct stacks s = after(10 * SECOND);

	CHECK(stacks__border_is_near(&s, 100 * SECOND));
	CHECK(stacks__border_is_near(&s, 101 * SECOND));
	CHECK(!stacks__border_is_near(&s, 102 * SECOND));
	CHECK(!stacks__border_is_near(&s, 108 * SECOND));
	CHECK(stacks__border_is_near(&s, 109 * SECOND));
	CHECK(stacks__border_is_near(&s, 111 * SECOND)); /* it is late */
	CHECK(!stacks__border_is_near(&s, 112 * SECOND));
}

/* Nobody knows when the first one ends, but that it has. */
static void first_ones(void)
{
	struct stacks s = {0}, first = {.all_named_ns = 100 * SECOND};

	CHECK(!stacks__border_is_near(&s, 100 * SECOND));
	CHECK(stacks__border_is_near(&first, 101 * SECOND));
	CHECK(!stacks__border_is_near(&first, 102 * SECOND));
	CHECK(!stacks__border_is_near(&first, 1000 * SECOND));
}

/* Of short captures, a border is always near: what waits for another time would never come. */
static void short_ones(void)
{
	struct stacks s = after(2 * SECOND);

	CHECK(!stacks__border_is_near(&s, 100 * SECOND));
	CHECK(!stacks__border_is_near(&s, 102 * SECOND));
}

UNIT_MAIN(TEST(near_borders), TEST(first_ones), TEST(short_ones))
