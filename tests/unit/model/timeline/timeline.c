// SPDX-License-Identifier: BSD-2-Clause
/* user/model/timeline/: streams written by hand, and what must come out of each. */
#include "model_fixture.h"
#include "unit.h"

#include "model/timeline/impl.h"
#include "util/util.h"

struct seen {
	char name[24];
	char parent[24];
	struct tl_span span;
};

struct collected {
	struct seen spans[32];
	size_t nr;
	size_t stop_after; /* 0: never */
};

static int collect(void *ctx, const struct tl_span *s)
{
	struct collected *c = ctx;

	if (c->nr < sizeof(c->spans) / sizeof(c->spans[0])) {
		struct seen *seen = &c->spans[c->nr];

		snprintf(seen->name, sizeof(seen->name), "%s", s->description->name);
		snprintf(seen->parent, sizeof(seen->parent), "%s",
			 s->parent_what ? s->parent_what->name : "-");
		seen->span = *s;
	}
	c->nr++;
	return c->nr == c->stop_after ? 77 : 0;
}

static void expect(const struct collected *c, size_t i, const char *name, const char *parent,
		   uint64_t start_ns, uint64_t end_ns, uint64_t self_ns, uint32_t flags)
{
	const struct seen *s = &c->spans[i];

	CHECK(i < c->nr);
	CHECK_STR(s->name, name);
	CHECK_STR(s->parent, parent);
	CHECK_EQ(s->span.start_ns, start_ns);
	CHECK_EQ(s->span.end_ns, end_ns);
	CHECK_EQ(s->span.self_ns, self_ns);
	CHECK_EQ(s->span.flags, flags);
}

/* Two levels with recursion, ids and depths; and a second pass says the same. */
static void nested(void)
{
	struct collected c;
	struct kprof_capture *t;
	uint32_t a, b;

	fake_reset();
	fake_clock(1000, 501000);
	a = fake_what("aten::a");
	b = fake_what("aten::b");
	fake_thread(0, 10, 11, "main");
	fake_begin(1100, 0, a);
	fake_begin(1110, 0, b);
	fake_begin(1120, 0, a);
	fake_end(1150, 0);
	fake_end(1160, 0);
	fake_begin(1170, 0, b);
	fake_end_flags(1180, 0, KPROF_EVENT_CLOSED);
	fake_end(1200, 0);
	fake_finish(2000);
	t = fake_timeline();
	for (int pass = 0; pass < 2; pass++) {
		memset(&c, 0, sizeof(c));
		CHECK_EQ(timeline__spans(t, collect, &c), 0);
		CHECK_EQ(c.nr, 4);
		expect(&c, 0, "aten::a", "aten::b", 1120, 1150, 30, 0);
		expect(&c, 1, "aten::b", "aten::a", 1110, 1160, 20, 0);
		expect(&c, 2, "aten::b", "aten::a", 1170, 1180, 10, KPROF_EVENT_CLOSED);
		expect(&c, 3, "aten::a", "-", 1100, 1200, 40, 0);
		CHECK_EQ(c.spans[0].span.depth, 2);
		CHECK_EQ(c.spans[0].span.id, 3);
		CHECK_EQ(c.spans[0].span.parent_id, 2);
		CHECK_EQ(c.spans[2].span.id, 4);
		CHECK_EQ(c.spans[2].span.parent_id, 1);
		CHECK_EQ(c.spans[3].span.depth, 0);
		CHECK_EQ(c.spans[3].span.id, 1);
		CHECK_EQ(c.spans[3].span.parent_id, 0);
		CHECK(c.spans[3].span.description == timeline__description(t, a - 1));
		CHECK_EQ(t->reader->at, fake.nr);
	}
	kprof_capture_close(t);
}

/* Threads of two processes take turns; a reused tid is another thread, its index says so. */
static void threads(void)
{
	struct collected c = {0};
	struct kprof_capture *t;
	uint32_t a, b;

	start_capture(10, "main", "worker");
	a = fake_what("a");
	b = fake_what("b");
	fake_begin(110, 0, a);
	fake_begin(115, 1, b);
	fake_begin(120, 0, b);
	fake_end(125, 1);
	fake_end(130, 0);
	fake_thread(1, 10, 11, "worker renamed")->thread.exit_ns = 140;
	fake_thread(2, 10, 11, "reused");
	fake_begin(150, 2, b);
	fake_end(160, 0);
	fake_end(170, 2);
	fake_finish(200);
	t = fake_timeline();
	CHECK_EQ(timeline__spans(t, collect, &c), 0);
	CHECK_EQ(c.nr, 4);
	expect(&c, 0, "b", "-", 115, 125, 10, 0);
	CHECK_EQ(c.spans[0].span.thread, 1);
	expect(&c, 1, "b", "a", 120, 130, 10, 0);
	expect(&c, 2, "a", "-", 110, 160, 40, 0);
	expect(&c, 3, "b", "-", 150, 170, 20, 0);
	CHECK_EQ(c.spans[3].span.thread, 2);
	CHECK_EQ(timeline__thread(t, 1)->tid, timeline__thread(t, 2)->tid);
	CHECK_STR(timeline__thread(t, 1)->name, "worker renamed");
	CHECK_EQ(timeline__thread(t, 1)->exit_ns, 140);
	CHECK_STR(timeline__thread(t, 2)->name, "reused");
	CHECK(!timeline__thread(t, 3));
	kprof_capture_close(t);
}

static void fake_own_name(uint32_t thread, const char *name)
{
	uint32_t id = fake_string(name);
	struct store_record *r = fake_add(STORE_THREAD_NAME);

	r->thread_name.thread = thread;
	r->thread_name.name = id;
}

/* What a thread is called by its language, and what of both names people are shown. */
static void own_names(void)
{
	static const struct {
		const char *name, *own, *title;
	} cases[] = {
		{"python3", "", "python3"},
		{"python3", "worker 1", "worker 1"}, /* the process's */
		{"a name of 15 b", "a name of 15 bytes and more", "a name of 15 bytes and more"},
		{"pt_autograd_0", "Dummy-1", "Dummy-1 (pt_autograd_0)"},
		{"", "worker 2", "worker 2"},
		{"loader", "loader", "loader"},
	};
	struct store_record *r;
	struct kprof_capture *t;
	uint32_t comm;

	fake_reset();
	fake_clock(100, 100);
	comm = fake_string("python3");
	r = fake_add(STORE_PROCESS);
	r->process.pid = 10;
	r->process.comm = comm;
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		fake_thread(i, 10, 10 + i, "before");
		if (*cases[i].own) {
			fake_own_name(i, "earlier");
			fake_own_name(i, cases[i].own);
		}
		fake_thread(i, 10, 10 + i, cases[i].name); /* it stays when that changes */
	}
	fake_finish(200);
	t = fake_timeline();
	for (uint32_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK_STR(timeline__thread(t, i)->name, cases[i].name);
		CHECK_STR(timeline__thread(t, i)->own_name, cases[i].own);
		CHECK_STR(timeline__thread(t, i)->title, cases[i].title);
	}
	kprof_capture_close(t);
}

/*
 * Open at the end: to the window's end, or to where the thread ended; innermost first, last of all.
 */
static void open_at_end(void)
{
	struct collected c = {0};
	struct kprof_capture *t;
	uint32_t a, b;

	start_capture(10, "main", "gone", "gone before its last event");
	a = fake_what("a");
	b = fake_what("b");
	fake_begin(110, 0, a);
	fake_begin(120, 1, a);
	fake_begin(130, 0, b);
	fake_begin(140, 1, b);
	fake_begin(145, 2, b);
	fake_thread(1, 10, 11, "gone")->thread.exit_ns = 150;
	fake_thread(2, 10, 12, "gone")->thread.exit_ns = 142;
	fake_source(0, "operators")->source.begins = 5;
	fake_finish(200);
	t = fake_timeline();
	CHECK_EQ(timeline__spans(t, collect, &c), 0);
	CHECK_EQ(c.nr, 5);
	expect(&c, 0, "b", "-", 145, 145, 0, KPROF_EVENT_OPEN_AT_END);
	expect(&c, 1, "b", "a", 140, 149, 9, KPROF_EVENT_OPEN_AT_END);
	expect(&c, 2, "a", "-", 120, 150, 21, KPROF_EVENT_OPEN_AT_END);
	expect(&c, 3, "b", "a", 130, 199, 69, KPROF_EVENT_OPEN_AT_END);
	expect(&c, 4, "a", "-", 110, 200, 21, KPROF_EVENT_OPEN_AT_END);
	CHECK_EQ(kprof_capture_source(t, 0)->ends_window, 5);
	kprof_capture_close(t);
}

/* What was open when the window opened was recorded as beginning then, whether it ends or not. */
static void open_at_start(void)
{
	struct collected c = {0};
	struct kprof_capture *t;
	uint32_t a;

	start_capture(10, "main", "other");
	a = fake_what("a");
	fake_begin(100, 0, a);
	fake_end(150, 0);
	fake_begin(151, 0, a);
	fake_end(152, 0);
	fake_begin(100, 1, a);
	fake_finish(200);
	t = fake_timeline();
	CHECK_EQ(timeline__spans(t, collect, &c), 0);
	CHECK_EQ(c.nr, 3);
	expect(&c, 0, "a", "-", 100, 150, 50, KPROF_EVENT_OPEN_AT_START);
	expect(&c, 1, "a", "-", 151, 152, 1, 0);
	expect(&c, 2, "a", "-", 100, 200, 100, KPROF_EVENT_OPEN_AT_START | KPROF_EVENT_OPEN_AT_END);
	kprof_capture_close(t);
}

/* Times that go backwards or leave the window; ends without begins. */
static void odd_times(void)
{
	struct collected c = {0};
	struct kprof_capture *t;
	uint32_t a, b;

	start_capture(10, "main", "other");
	a = fake_what("a");
	b = fake_what("b");
	fake_end(101, 0);     /* nothing is open */
	fake_begin(50, 0, a); /* before the window */
	fake_begin(160, 0, b);
	fake_end(155, 0);      /* before its begin */
	fake_begin(140, 0, b); /* before the end of its elder sibling */
	fake_end(170, 0);
	fake_begin(120, 1, b); /* the clock of one thread does not bind another */
	fake_end(130, 1);
	fake_end(900, 0); /* after the window */
	fake_end(901, 0);
	fake_end(902, 0);
	fake_finish(200);
	t = fake_timeline();
	CHECK_EQ(timeline__spans(t, collect, &c), 0);
	CHECK_EQ(c.nr, 4);
	expect(&c, 0, "b", "a", 160, 160, 0, 0);
	expect(&c, 1, "b", "a", 160, 170, 10, 0);
	expect(&c, 2, "b", "-", 120, 130, 10, 0);
	expect(&c, 3, "a", "-", 101, 200, 89, KPROF_EVENT_OPEN_AT_START);
	CHECK_EQ(t->orphan_ends, 3);
	kprof_capture_close(t);
}

static void tables(void)
{
	const struct kprof_capture_info *info;
	struct store_record *r;
	struct kprof_capture *t;
	uint32_t comm, renamed, cmd;

	fake_reset();
	fake_clock(1000, 5000);
	fake_meta("host", "\"a\"");
	fake_meta("kernel", "\"6.1\"");
	fake_meta("host", "\"b\"");
	comm = fake_string("python3");
	cmd = fake_string("python3 train.py");
	for (int i = 0; i < 3; i++) { /* alive; gone; its number taken by another */
		renamed = fake_string("renamed");
		r = fake_add(STORE_PROCESS);
		r->process.pid = 10, r->process.ppid = 1, r->process.ns_pid = 3;
		r->process.comm = i == 1 ? renamed : comm;
		r->process.cmdline = cmd;
		r->process.start_ns = i == 2 ? 1500 : 900;
		r->process.exit_ns = i == 1 ? 1400 : 0;
	}
	r = fake_source(0, "operators");
	r->source.fired = 100, r->source.captured = 95, r->source.dropped = 5;
	r->source.begins = 1;
	r = fake_source(1, "autograd");
	fake_what_of("op", "Tensor", "cpu_op", 1);
	fake.records[fake.nr - 1].description.flags = KPROF_EVENT_UNNAMED | KPROF_EVENT_CLOSED;
	r = fake_source(0, "operators");
	r->source.fired = 1000, r->source.captured = 990, r->source.dropped = 10;
	r->source.missed = 3, r->source.begins = 900, r->source.ends_exact = 800;
	r->source.ends_closed = 90, r->source.orphan_ends = 4;
	r = fake_add(STORE_GAP);
	r->gap.pid = 10, r->gap.what = cmd, r->gap.reason = comm;
	r->gap.start_ns = 1100, r->gap.end_ns = 1200;
	fake_finish(2000);
	t = fake_timeline();
	info = kprof_capture_info(t);
	CHECK(info->complete);
	CHECK_EQ(info->start_mono_ns, 1000);
	CHECK_EQ(info->end_mono_ns, 2000);
	CHECK_EQ(info->start_real_ns, 5000);
	CHECK_EQ(info->nr_processes, 2);
	CHECK_EQ(info->nr_threads, 0);
	CHECK_EQ(info->nr_sources, 2);
	CHECK_EQ(info->nr_gaps, 1);
	CHECK_EQ(info->format_major, STORE_FORMAT_MAJOR);
	CHECK_EQ(info->size_bytes, fake.nr * 10);
	CHECK_STR(timeline__path(t), "fake");
	CHECK_STR(kprof_capture_meta(t, "host"), "\"b\"");
	CHECK(!kprof_capture_meta(t, "nothing"));
	CHECK_STR(timeline__meta_key(t, 0), "host");
	CHECK_STR(timeline__meta_key(t, 1), "kernel");
	CHECK(!timeline__meta_key(t, 2));
	CHECK_STR(timeline__process(t, 0)->comm, "renamed");
	CHECK_EQ(timeline__process(t, 0)->exit_ns, 1400);
	CHECK_EQ(timeline__process(t, 0)->ns_pid, 3);
	CHECK_EQ(timeline__process(t, 1)->start_ns, 1500);
	CHECK_STR(timeline__process(t, 1)->cmdline, "python3 train.py");
	CHECK(!timeline__process(t, 2));
	CHECK_EQ(timeline__description(t, 0)->flags, KPROF_EVENT_UNNAMED);
	CHECK_EQ(timeline__description(t, 0)->source, 1);
	CHECK_STR(timeline__description(t, 0)->overload, "Tensor");
	CHECK(!timeline__description(t, 1));
	CHECK_EQ(kprof_capture_source(t, 0)->fired, 1000);
	CHECK_EQ(kprof_capture_source(t, 0)->dropped, 10);
	CHECK_EQ(kprof_capture_source(t, 0)->missed, 3);
	CHECK_EQ(kprof_capture_source(t, 0)->ends_window, 10);
	CHECK_EQ(kprof_capture_source(t, 0)->orphan_ends, 4);
	CHECK_STR(kprof_capture_source(t, 1)->name, "autograd");
	CHECK(!kprof_capture_source(t, 2));
	CHECK_EQ(kprof_capture_gap(t, 0)->end_mono_ns, 1200);
	CHECK_STR(kprof_capture_gap(t, 0)->what, "python3 train.py");
	CHECK(!kprof_capture_gap(t, 1));
	kprof_capture_close(t);
}

/* No FINISH: the window ends with the last event, and the counts come from the events. */
static void cut_short(void)
{
	struct collected c = {0};
	const struct kprof_source *s;
	struct kprof_capture *t;
	uint32_t a, b;

	fake_reset();
	fake_clock(100, 1100);
	fake_source(0, "operators")->source.begins = 1; /* stale */
	fake_source(1, "autograd");
	a = fake_what("a");
	b = fake_what_of("b", "", "cpu_op", 1);
	fake_thread(0, 10, 10, "main");
	fake_begin(110, 0, a);
	fake_begin(120, 0, b);
	fake_end(130, 0);
	fake_begin(140, 0, a);
	fake_end_flags(150, 0, KPROF_EVENT_CLOSED);
	fake_begin(170, 0, a);
	t = fake_timeline();
	CHECK(!kprof_capture_info(t)->complete);
	CHECK_EQ(kprof_capture_info(t)->lost_bytes, 7);
	CHECK_EQ(kprof_capture_info(t)->events, 4);
	CHECK_EQ(kprof_capture_info(t)->end_mono_ns, 170);
	s = kprof_capture_source(t, 0);
	CHECK_EQ(s->begins, 3);
	CHECK_EQ(s->ends_exact, 0);
	CHECK_EQ(s->ends_closed, 1);
	CHECK_EQ(s->ends_window, 2);
	s = kprof_capture_source(t, 1);
	CHECK_EQ(s->begins, 1);
	CHECK_EQ(s->ends_exact, 1);
	CHECK_EQ(timeline__spans(t, collect, &c), 0);
	CHECK_EQ(c.nr, 4);
	expect(&c, 2, "a", "a", 170, 170, 0, KPROF_EVENT_OPEN_AT_END);
	expect(&c, 3, "a", "-", 110, 170, 40, KPROF_EVENT_OPEN_AT_END);
	kprof_capture_close(t);
}

/* A chunk of events that proves damaged only when its events are read. */
static void damaged_late(void)
{
	struct collected c = {0};
	struct kprof_capture *t;
	uint32_t a;

	fake_reset();
	fake_clock(100, 1100);
	fake_source(0, "operators")->source.begins = 2;
	a = fake_what("a");
	fake_thread(0, 10, 10, "main");
	fake_begin(110, 0, a);
	fake.cut_at = fake.nr;
	fake.late_damage = true;
	fake_end(130, 0);
	fake_begin(140, 0, a);
	fake_end(150, 0);
	fake_finish(200);
	t = fake_timeline();
	CHECK(kprof_capture_info(t)->complete);
	CHECK_EQ(kprof_capture_info(t)->events, 2);
	CHECK_EQ(timeline__spans(t, collect, &c), 0);
	CHECK_EQ(c.nr, 1);
	expect(&c, 0, "a", "-", 110, 200, 90, KPROF_EVENT_OPEN_AT_END);
	CHECK(!kprof_capture_info(t)->complete);
	CHECK_EQ(kprof_capture_info(t)->events, 1);
	CHECK_EQ(kprof_capture_source(t, 0)->begins, 1);
	CHECK_EQ(kprof_capture_source(t, 0)->ends_window, 1);
	kprof_capture_close(t);
}

static void clocks(void)
{
	struct kprof_capture *t;

	fake_reset();
	fake_clock(3000, 13000); /* not in order */
	fake_clock(1000, 10000);
	fake_clock(3000, 13000); /* twice */
	fake_clock(4000, 12500); /* stepped back */
	fake_finish(5000);
	t = fake_timeline();
	CHECK_EQ(timeline__real_ns(t, 900), 9900);
	CHECK_EQ(timeline__real_ns(t, 1000), 10000);
	CHECK_EQ(timeline__real_ns(t, 2000), 11500);
	CHECK_EQ(timeline__real_ns(t, 3000), 13000);
	CHECK_EQ(timeline__real_ns(t, 3500), 12750);
	CHECK_EQ(timeline__real_ns(t, 4000), 12500);
	CHECK_EQ(timeline__real_ns(t, 4100), 12600);
	CHECK_EQ(kprof_capture_info(t)->start_real_ns, 10000);
	kprof_capture_close(t);

	fake_reset();
	fake_finish(5000);
	t = fake_timeline();
	CHECK_EQ(timeline__real_ns(t, 4100), 4100);
	kprof_capture_close(t);
}

/* An operator a million deep: no recursion of ours, and the times still add up. */
static int check_deep(void *ctx, const struct tl_span *s)
{
	uint32_t *left = ctx;

	--*left;
	if (s->depth != *left || s->self_ns != (*left == 999999 ? 1 : 2))
		return 1;
	return 0;
}

static void deep(void)
{
	const uint32_t depth = 1000000;
	uint32_t a, left = depth;
	struct kprof_capture *t;

	fake_reset();
	fake_clock(1, 1);
	a = fake_what("a");
	fake_thread(0, 10, 10, "main");
	for (uint32_t i = 0; i < depth; i++)
		fake_begin(10 + i, 0, a);
	for (uint32_t i = 0; i < depth; i++)
		fake_end(10 + depth + i, 0);
	fake_finish(3000000);
	t = fake_timeline();
	CHECK_EQ(timeline__spans(t, check_deep, &left), 0);
	CHECK_EQ(left, 0);
	kprof_capture_close(t);
}

/* More than anything real opens: refused with a reason, not served until memory is gone. */
static void too_deep(void)
{
	struct collected c = {0};
	struct kprof_capture *t;
	uint32_t a;

	fake_reset();
	fake_clock(1, 1);
	a = fake_what("a");
	fake_source(0, "operators")->source.begins = 1;
	fake_thread(0, 10, 10, "main");
	fake_thread(1, 10, 11, "other");
	for (uint32_t i = 0; i < 1100000; i++)
		fake_begin(10 + i, i & 1, a);
	fake_finish(3000000);
	t = fake_timeline();
	CHECK_EQ(timeline__spans(t, collect, &c), -E2BIG);
	CHECK(strstr(kprof_error_cause(), "open at once"));
	CHECK(kprof_error_hint());
	kprof_capture_close(t);
}

static int reenter(void *ctx, const struct tl_span *s)
{
	CHECK_EQ(timeline__spans(ctx, reenter, ctx), -EBUSY);
	return 0;
}

static void stops_and_errors(void)
{
	struct collected c = {.stop_after = 1};
	struct kprof_capture *t = (void *)1;
	uint32_t a;

	CHECK_EQ(kprof_capture_open("absent", &t), -ENOENT);
	CHECK(!t);
	kprof_capture_close(NULL);

	fake_reset();
	a = fake_what("a");
	fake_source(0, "operators")->source.begins = 2;
	fake_thread(0, 10, 10, "main");
	fake_begin(110, 0, a);
	fake_end(120, 0);
	fake_begin(130, 0, a);
	fake_finish(200);
	t = fake_timeline();
	CHECK_EQ(timeline__spans(t, collect, &c), 77);
	CHECK_EQ(c.nr, 1);
	CHECK_EQ(timeline__spans(t, reenter, t), 0);
	c = (struct collected){.stop_after = 2}; /* at a span that the end of the window ends */
	CHECK_EQ(timeline__spans(t, collect, &c), 77);
	CHECK_EQ(c.nr, 2);
	fake.fail_at = fake.nr - 1;
	CHECK_EQ(timeline__spans(t, collect, &c), -EIO);
	fake.fail_at = 0;
	fake_thread(1, 10, 11, "since then");
	fake_begin(140, 1, a);
	c = (struct collected){0};
	CHECK_EQ(timeline__spans(t, collect, &c), -EIO);
	CHECK(strstr(kprof_error_cause(), "changed"));
	kprof_capture_close(t);
}

/* What the reader should never let through does not get past the tables either. */
static void contradictions(void)
{
	struct kprof_capture *t;

	for (int i = 0; i < 7; i++) {
		struct store_record *r;

		fake_reset();
		fake_source(0, "operators");
		r = fake_add(STORE_STRING);
		*r = (struct store_record){.type = STORE_STRING, .string = {.id = 2, .bytes = ""}};
		if (i == 0)
			r->string.id = 7;
		else if (i == 1)
			*r = (struct store_record){.type = STORE_THREAD, .thread = {.index = 1}};
		else if (i == 2)
			*r = (struct store_record){.type = STORE_THREAD, .thread = {.name = 9}};
		else if (i == 3)
			*r = (struct store_record){.type = STORE_DESCRIPTION,
						   .description = {.id = 2}};
		else if (i == 4)
			*r = (struct store_record){.type = STORE_DESCRIPTION,
						   .description = {1, 0, 0, 0, 1, 0}};
		else if (i == 5)
			*r = (struct store_record){.type = STORE_SOURCE, .source = {UINT32_MAX}};
		else
			*r = (struct store_record){.type = STORE_GAP, .gap = {.reason = 9}};
		CHECK_EQ(kprof_capture_open("fake", &t), -EBADMSG);
		CHECK(!t);
		CHECK(kprof_error_hint());
	}
}

UNIT_MAIN(TEST(nested), TEST(threads), TEST(own_names), TEST(open_at_end), TEST(open_at_start),
	  TEST(odd_times), TEST(tables), TEST(cut_short), TEST(damaged_late), TEST(clocks),
	  TEST(deep), TEST(too_deep), TEST(stops_and_errors), TEST(contradictions))
