// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/collectives.c: who came last to a collective, how long the others waited. */
#include "fake_store.h"
#include "unit.h"

#include "kprof/collectives.h"

static struct kprof_capture *c;
static struct kprof_result *r;
static uint32_t work;
static bool forget; /* the texts of the capture before */

/* The window is 1000 … 90000 ns; rank n is thread n of process 10 + n. */
static void begin(void)
{
	fake_reset();
	fake_clock(1000, 1000);
	fake_source(0, "distributed");
	for (uint32_t i = 0; i < 4; i++)
		fake_thread(i, 10 + i, 10 + i, "gloo");
	forget = true;
	work = fake_what_of("AsyncAllreduceWork", "", "collective_comm", 0);
}

static struct store_attr attrs[1024][8];
static size_t nr_parts;

/* A capture has each text once. */
static uint32_t text(const char *of)
{
	static struct {
		const char *text;
		uint32_t id;
	} known[32];
	size_t i = 0;

	if (forget)
		memset(known, 0, sizeof(known));
	forget = false;
	while (known[i].text && strcmp(known[i].text, of))
		i++;
	if (!known[i].text) {
		known[i].text = of;
		known[i].id = fake_string(of);
	}
	return known[i].id;
}

struct collective {
	const char *name, *group;
	uint64_t number, ranks, nelems;
};

static void part_flags(const struct collective *of, uint32_t thread, uint64_t rank,
		       uint64_t from_ns, uint64_t to_ns, uint32_t flags)
{
	struct store_attr *a = attrs[nr_parts];
	uint32_t nr = 0;

	a[nr++] = (struct store_attr){text("Collective name"), STORE_ATTR_STRING, text(of->name)};
	if (of->group)
		a[nr++] = (struct store_attr){text("Process Group Name"), STORE_ATTR_STRING,
					      text(of->group)};
	a[nr++] = (struct store_attr){text("Seq"), STORE_ATTR_U64, of->number};
	a[nr++] = (struct store_attr){text("Group size"), STORE_ATTR_U64, of->ranks};
	a[nr++] = (struct store_attr){text("Rank"), STORE_ATTR_U64, rank};
	if (of->nelems) {
		a[nr++] = (struct store_attr){text("In msg nelems"), STORE_ATTR_U64, of->nelems};
		a[nr++] = (struct store_attr){text("dtype"), STORE_ATTR_STRING, text("Float")};
	}
	fake_args(++nr_parts, a, nr);
	fake_begin(from_ns, thread, work);
	fake_end_flags(to_ns, thread, flags);
}

static void part(const struct collective *of, uint32_t rank, uint64_t from_ns, uint64_t to_ns)
{
	part_flags(of, rank, rank, from_ns, to_ns, 0);
}

static void end(void)
{
	fake_finish(90000);
	c = fake_capture();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_COLLECTIVE, KPROF_SORT_SELF, &r), 0);
	if (!r)
		abort();
}

static void close_it(void)
{
	kprof_result_free(r);
	kprof_capture_close(c);
	nr_parts = 0;
}

static const struct kprof_row *row(size_t i)
{
	static const struct kprof_collective_info nothing;
	static const struct kprof_row none = {.name = "", .category = "", .collective = &nothing};

	return i < kprof_result_nr_rows(r) ? kprof_result_row(r, i) : &none;
}

static struct kprof_collective_rank rank_at(size_t i)
{
	struct kprof_collective_rank rank = {.group = ""};

	CHECK_EQ(kprof_result_collective_rank(r, i, &rank), 0);
	return rank;
}

static void who_came_last(void)
{
	const struct collective first = {"allreduce", "0", 1, 3, 25},
				second = {"allreduce", "0", 2, 3, 25};
	struct kprof_collective one;

	begin();
	part(&first, 0, 2000, 5000);
	part(&first, 1, 4000, 5100);
	part(&first, 2, 3000, 4900);
	part(&second, 0, 6000, 7400);
	part(&second, 1, 7000, 7500);
	part(&second, 2, 6500, 7300);
	end();
	CHECK_EQ(kprof_result_nr_rows(r), 1);
	CHECK(!strcmp(row(0)->name, "allreduce") && !strcmp(row(0)->category, "0"));
	CHECK_EQ(row(0)->calls, 2);
	CHECK_EQ(row(0)->bytes, 200);
	CHECK_EQ(row(0)->total_ns, 1100 + 500);
	CHECK_EQ(row(0)->min_ns, 500);
	CHECK_EQ(row(0)->max_ns, 1100);
	CHECK_EQ(row(0)->collective->ranks, 3);
	CHECK_EQ(row(0)->collective->waited_ns, 2000 + 1000 + 1000 + 500);
	CHECK_EQ(row(0)->collective->longest_ns, 2000);
	CHECK_EQ(row(0)->collective->last_rank, 1);
	CHECK_EQ(row(0)->collective->last_times, 2);
	CHECK(row(0)->collective->gb_per_s == 200.0 / 1600.0);
	CHECK_EQ(rank_at(0).waited_ns, 3000);
	CHECK_EQ(rank_at(1).last, 2);
	CHECK_EQ(rank_at(1).awaited_ns, 4500);
	CHECK_EQ(rank_at(1).pid, 11);
	CHECK_EQ(rank_at(2).waited_ns, 1500);
	CHECK_EQ(kprof_result_collective(r, 0, &one), 0);
	CHECK_EQ(one.number, 1);
	CHECK_EQ(one.at_ns, 3000); /* the recording began at 1000 */
	CHECK_EQ(one.last_pid, 11);
	CHECK_EQ(kprof_result_collective(r, 2, &one), -ENOENT);
	CHECK_EQ(kprof_result_unmatched(r), 0);
	close_it();
}

/* The root of a broadcast is done before another rank comes: it has not waited for that one. */
static void not_for_the_others(void)
{
	const struct collective broadcast = {"broadcast", "0", 1, 2, 1};

	begin();
	part(&broadcast, 0, 2000, 2100);
	part(&broadcast, 1, 8000, 8050);
	end();
	CHECK_EQ(row(0)->collective->waited_ns, 100);
	CHECK_EQ(row(0)->total_ns, 50);
	close_it();
}

/* Two programs with groups of one name: they can't have met where one is over before. */
static void of_other_programs(void)
{
	const struct collective one = {"allreduce", "0", 1, 2, 1},
				two = {"allreduce", "0", 2, 2, 1};

	begin();
	part(&one, 0, 2000, 2100);
	part(&one, 1, 8000, 8050);
	/* … and the same rank of both */
	part_flags(&two, 0, 0, 8100, 8200, 0);
	part_flags(&two, 2, 0, 8100, 8200, 0);
	part_flags(&two, 1, 1, 8100, 8200, 0);
	end();
	CHECK_EQ(kprof_result_nr_rows(r), 0);
	CHECK_EQ(kprof_result_unmatched(r), 5);
	close_it();
}

/* Ranks that were not recorded, a number or group that is not known, an end that was not seen. */
static void not_known(void)
{
	const struct collective alone = {"barrier", "0", 1, 2, 0},
				nobody = {"barrier", NULL, 1, 2, 0},
				senseless = {"barrier", "0", 3, 1ull << 40, 0},
				open = {"barrier", "1", 4, 2, 0};

	begin();
	part(&alone, 0, 2000, 2100);
	part(&nobody, 0, 3000, 3100);
	part(&nobody, 1, 3000, 3100);
	part(&senseless, 1, 3200, 3300);
	part(&open, 0, 4000, 5000);
	part_flags(&open, 1, 1, 4500, 6000, KPROF_EVENT_CLOSED);
	end();
	CHECK_EQ(kprof_result_nr_rows(r), 1);
	CHECK_EQ(row(0)->calls, 1);
	CHECK_EQ(row(0)->timed, 0);
	CHECK_EQ(row(0)->inexact, 1);
	CHECK_EQ(row(0)->collective->waited_ns, 500);
	CHECK_EQ(row(0)->collective->sized, 0);
	CHECK_EQ(kprof_result_unmatched(r), 4);
	close_it();
}

/* More than are kept: those with the longest waits. */
static void longest(void)
{
	struct kprof_collective one = {0};

	begin();
	for (uint64_t i = 0; i < 500; i++) {
		const struct collective of = {"barrier", "0", i, 2, 0};

		part(&of, 0, 2000 + 100 * i, 2090 + 100 * i);
		part(&of, 1, 2000 + 100 * i + i % 50, 2090 + 100 * i);
	}
	end();
	CHECK_EQ(row(0)->calls, 500);
	CHECK_EQ(kprof_result_collective(r, 0, &one), 0);
	CHECK_EQ(one.longest_ns, 49);
	CHECK_EQ(one.number, 49);
	close_it();
}

UNIT_MAIN(TEST(who_came_last), TEST(not_for_the_others), TEST(of_other_programs), TEST(not_known),
	  TEST(longest))
