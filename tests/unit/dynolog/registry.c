// SPDX-License-Identifier: BSD-2-Clause
/* user/dynolog/registry.c: how many of whom there is room for, and configs that several share. */
#include "unit.h"

#include <errno.h>

#include "dynolog/impl.h"

static void bounds_of_a_user(void)
{
	struct registry r = {.most = 5, .most_of_user = 2};
	struct entry e = {.p.uid = 1000}, *out;

	for (int i = 0; i < 2; i++, e.p.pid++)
		CHECK_EQ(registry__add(&r, &e, &out), 0);
	CHECK_EQ(registry__add(&r, &e, &out), -ENOSPC);
	e.p.uid = 1001;
	CHECK_EQ(registry__add(&r, &e, &out), 0);
	e.p.uid = 0;
	for (int i = 0; i < 2; i++, e.p.pid++)
		CHECK_EQ(registry__add(&r, &e, &out), 0);
	CHECK_EQ(registry__add(&r, &e, &out), -ENOSPC);
	registry__free(&r);
}

/* One that several processes wait for lives until the last of them is gone. */
static void shared_configs(void)
{
	struct registry r = {.most = 5, .most_of_user = 5};
	struct entry e = {.takes = TAKES_ACTIVITIES}, *a, *b;
	struct handed *h = handed_new("X=1", 7);

	CHECK(h && !strcmp(h->text, "X=1\nREQUEST_TRACE_ID=7\n") && h->bytes == strlen(h->text));
	e.p.pid = 1;
	CHECK_EQ(registry__add(&r, &e, &a), 0);
	e.p.pid = 2;
	CHECK_EQ(registry__add(&r, &e, &b), 0);
	CHECK(!entry__hand(a, h) && !entry__hand(b, h) && entry__hand(a, h) == -EBUSY);
	handed_drop(h);
	CHECK_EQ(h->uses, 2);
	CHECK(entry__shown(a)->waiting && entry__shown(a)->idle);
	entry__taken(a);
	CHECK(!entry__shown(a)->waiting);
	registry__remove(&r, a);
	CHECK_EQ(r.nr, 1);
	CHECK_EQ(h->uses, 1);
	CHECK(registry__find(&r, 2) == b && !registry__find(&r, 1));
	registry__free(&r);
}

UNIT_MAIN(TEST(bounds_of_a_user), TEST(shared_configs))
