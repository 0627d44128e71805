// SPDX-License-Identifier: BSD-2-Clause
/* Rules by which dumps are made: how often. */
#include "unit.h"

#include <signal.h>
#include <string.h>

#include "cmd/daemon/watch/triggers.h"

#define HOUR (3600 * 1000000000ull)

static struct loop *loop;
static char dumps[256]; /* the rules that they were made by */

static void met(void *ctx, const struct trigger_rule *rule, uid_t asked_by, const char *what)
{
	strcat(strcat(dumps, rule->text), " ");
}

static struct triggers *watching(const struct value_list *rules, uint64_t pause_ns)
{
	const struct triggers_opts opts = {
		.loop = loop, .rules = rules, .pause_ns = pause_ns, .met = met};
	struct triggers *t = triggers__new(&opts);

	CHECK(t);
	*dumps = '\0';
	return t;
}

/* A rule that is met all the time holds back itself, and no other. */
static void each_has_its_pause(void)
{
	char often[] = "asked:URG", seldom[] = "asked:WINCH", both[] = "asked:URG+CONT";
	char *items[] = {often, seldom, both};
	const struct value_list rules = {.items = items, .nr = 3};
	struct triggers *t = watching(&rules, HOUR);

	triggers__asked(t, 1, SIGURG, 1, 0);
	CHECK_STR(dumps, "asked:URG ");
	triggers__asked(t, 1, SIGWINCH, 1, 0);
	CHECK_STR(dumps, "asked:URG asked:WINCH ");
	/* where the first one that is met is held back, the next one is not */
	for (int i = 0; i < 3; i++)
		triggers__asked(t, 1, SIGURG, 1, 0);
	CHECK_STR(dumps, "asked:URG asked:WINCH asked:URG+CONT ");
	triggers__free(t);
	t = watching(&rules, 0);
	for (int i = 0; i < 2; i++)
		triggers__asked(t, 1, SIGURG, 1, 0);
	CHECK_STR(dumps, "asked:URG asked:URG ");
	triggers__free(t);
}

static void begin(void)
{
	loop = loop__new();
	CHECK(loop);
}

UNIT_MAIN(TEST(begin), TEST(each_has_its_pause))
