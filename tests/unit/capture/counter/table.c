// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/counter/table.c: names of counters, and what is said of others. */
#include "capture/counter/table.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "kprof/counters.h"
#include "kprof/wire.h"
#include "unit.h"

static struct counter at[KPROF_WIRE_MAX_COUNTERS];

static void names(void)
{
	CHECK_EQ(counters_parse("page-faults,cs,task-clock,cycles,LLC-load-misses", at), 5);
	CHECK_EQ(at[0].source, KPROF_COUNTER_FAULTS);
	CHECK_EQ(at[1].source, KPROF_COUNTER_SWITCHES);
	CHECK_STR(at[1].name, "cs"); /* as it was asked for */
	CHECK_EQ(at[2].source, KPROF_COUNTER_CLOCK);
	CHECK_EQ(at[3].source, KPROF_COUNTER_EVENT);
	CHECK_EQ(at[3].type, PERF_TYPE_HARDWARE);
	CHECK_EQ(at[3].config, PERF_COUNT_HW_CPU_CYCLES);
	CHECK_EQ(counters_parse("pagefaults,faults,idle-cycles-backend", at), 3);
	CHECK_EQ(at[0].source, KPROF_COUNTER_FAULTS);
	CHECK_STR(at[0].name, "pagefaults");
	CHECK_EQ(at[2].config, PERF_COUNT_HW_STALLED_CYCLES_BACKEND);
	CHECK_EQ(counters_parse("page-faults,cs,task-clock,cycles,LLC-load-misses", at), 5);
	/* perf_event_open(2): id | operation << 8 | result << 16 */
	CHECK_EQ(at[4].type, PERF_TYPE_HW_CACHE);
	CHECK_EQ(at[4].config, 2 | 0 << 8 | 1 << 16);
}

static void modifiers(void)
{
	CHECK_EQ(counters_parse("cycles:u,cycles:k,cycles:uk,page-faults:u,page-faults", at), 5);
	CHECK(at[0].exclude_kernel && !at[0].exclude_user);
	CHECK(!at[1].exclude_kernel && at[1].exclude_user);
	CHECK(!at[2].exclude_kernel && !at[2].exclude_user);
	/* one that the kernel keeps of each thread is an event of perf's then */
	CHECK_EQ(at[3].source, KPROF_COUNTER_EVENT);
	CHECK_EQ(at[3].type, PERF_TYPE_SOFTWARE);
	CHECK_EQ(at[3].config, PERF_COUNT_SW_PAGE_FAULTS);
	CHECK_STR(at[3].name, "page-faults:u");
	CHECK_EQ(at[4].source, KPROF_COUNTER_FAULTS);
}

static void raw_numbers(void)
{
	CHECK_EQ(counters_parse("r01c2,rF:u,rffffffffffffffff", at), 3);
	CHECK_EQ(at[0].type, PERF_TYPE_RAW);
	CHECK_EQ(at[0].config, 0x1c2);
	CHECK_EQ(at[1].config, 0xf);
	CHECK(at[1].exclude_kernel);
	CHECK_EQ(at[2].config, UINT64_MAX);
	CHECK_EQ(counters_parse("r10000000000000000", at), -EINVAL);
	CHECK_EQ(counters_parse("r", at), -EINVAL);
	CHECK_EQ(counters_parse("rxyz", at), -EINVAL);
}

static void wrong(void)
{
	static const char *const texts[] = {
		"",
		"cycle",
		"page-faults,",
		",page-faults",
		"cycles:",
		"cycles:h",
		"task-clock:u",
		"context-switches:k",
		"pagefault",
		"faults,pagefaults,",
		"cycles,cycles",
		"page-faults cs",
		"page-faults:u:u",
	};
	char longer[400];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		CHECK_EQ(kprof_counters_check(texts[i]), -EINVAL);
		CHECK(*kprof_error_cause() && kprof_error_hint());
	}
	CHECK_EQ(kprof_counters_check("cycles:u,cycles:k,cycles,faults,cs,r1,r2,r3"), 0);
	CHECK_EQ(kprof_counters_check("cycles:u,cycles:k,cycles,faults,cs,r1,r2,r3,r4"), -EINVAL);
	memset(longer, 'u', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	memcpy(longer, "cycles:", 7);
	CHECK_EQ(kprof_counters_check(longer), -EINVAL);
}

/* Each that is listed is found by its name. */
static void listed(void)
{
	struct kprof_counter c;
	size_t i = 0;

	for (; !kprof_counter_at(i, &c); i++) {
		CHECK_EQ(kprof_counters_check(c.name), 0);
		CHECK(*c.what);
	}
	CHECK(i > 10);
	CHECK_EQ(kprof_counter_at(i, &c), -ENOENT);
}

UNIT_MAIN(TEST(names), TEST(modifiers), TEST(raw_numbers), TEST(wrong), TEST(listed))
