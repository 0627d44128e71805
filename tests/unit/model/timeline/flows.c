// SPDX-License-Identifier: BSD-2-Clause
/* user/model/timeline/flows.c: which operator made which node. */
#include "model_fixture.h"
#include "unit.h"

#include "catalog/sequence.h"
#include "util/bulk.h"

static struct {
	uint32_t number, forward, thread, maybe, what;
	uint64_t now_ns, spans;
	struct store_attr attrs[64][2];
} s;

static void begin(void)
{
	memset(&s, 0, sizeof(s));
	start_capture(7, "forward", "backward");
	s.number = fake_string(SEQUENCE_KEY);
	s.forward = fake_string(SEQUENCE_FORWARD_KEY);
	s.thread = fake_string(SEQUENCE_THREAD_KEY);
	s.maybe = fake_string(SEQUENCE_MAYBE_KEY);
	s.what = fake_what("aten::mul");
	s.now_ns = 1000;
}

static uint64_t open_span(uint32_t thread, uint32_t key, uint64_t number, uint32_t second_key,
			  uint64_t second)
{
	struct store_attr *attrs = s.attrs[s.spans];

	attrs[0] = (struct store_attr){key, STORE_ATTR_U64, number};
	attrs[1] = (struct store_attr){second_key, STORE_ATTR_U64, second};
	fake_begin(s.now_ns += 10, thread, s.what);
	fake_args(++s.spans, attrs, second_key ? 2 : 1);
	return s.spans;
}

static uint64_t span(uint32_t thread, uint32_t key, uint64_t number, uint32_t second_key,
		     uint64_t second)
{
	uint64_t id = open_span(thread, key, number, second_key, second);

	fake_end(s.now_ns += 10, thread);
	return id;
}

/* own: the thread's number */
static uint64_t op(uint32_t thread, uint64_t number, uint64_t own)
{
	return span(thread, s.number, number, s.thread, own);
}

static uint64_t node(uint64_t number, uint64_t by)
{
	return span(1, s.number, number, s.forward, by);
}

static void expect(size_t nr, const struct tl_flow *flows)
{
	struct kprof_capture *t = fake_timeline();
	struct bulk found;

	CHECK_EQ(timeline__flows(t, 0, &found), 0);
	CHECK_EQ(found.nr, nr);
	for (size_t i = 0; i < nr && i < found.nr; i++) {
		const struct tl_flow *f = bulk__at(&found, i);

		CHECK_EQ(f->from, flows[i].from);
		CHECK_EQ(f->to, flows[i].to);
	}
	bulk__free(&found);
	kprof_capture_close(t);
}

/* The last one of a number that began; what encloses it has the same. */
static void last(void)
{
	uint64_t first, second, a, b;

	begin();
	open_span(0, s.number, 5, s.thread, 1);
	first = op(0, 5, 1);
	fake_end(s.now_ns += 10, 0);
	op(0, 6, 1);
	second = op(0, 6, 1);
	a = node(6, 1);
	b = node(5, 1);
	node(5, 1); /* it runs again */
	node(7, 1); /* of an operator that was not seen */
	node(5, 2); /* of a thread that was not seen */
	expect(2, (const struct tl_flow[]){{first, b}, {second, a}});
}

/* The thread has no number before its first node. */
static void first_of_thread(void)
{
	uint64_t from, to;

	begin();
	from = op(0, 0, 0);
	op(0, 1, 3);
	to = node(0, 3);
	expect(1, (const struct tl_flow[]){{from, to}});
}

/* Of what may be another operator's node, nothing is said. */
static void unsure(void)
{
	uint64_t from, to;

	begin();
	op(0, 5, 1);
	span(0, s.maybe, 5, 0, 0);
	node(5, 1);
	span(0, s.maybe, 6, 0, 0);
	from = op(0, 6, 1);
	to = node(6, 1);
	expect(1, (const struct tl_flow[]){{from, to}});
}

/* Numbers of any size; those that fall on the same place, of which the older goes at last. */
static void any_numbers(void)
{
	uint64_t from, to;

	begin();
	op(0, 0, 1);
	op(0, 1ull << 40, 1);
	from = op(0, INT64_MAX, 1);
	to = node(INT64_MAX, 1);
	node(0, 1);
	expect(1, (const struct tl_flow[]){{from, to}});
}

/* Two are remembered though they are far apart. */
static void room_for_many(void)
{
	uint64_t a, b, x, y;

	begin();
	a = op(0, 7, 1);
	b = op(0, 7 + 4096, 1);
	x = node(7, 1);
	y = node(7 + 4096, 1);
	expect(2, (const struct tl_flow[]){{a, x}, {b, y}});
}

/* What agents observed of one thread may come after what they observed of another. */
static void late(void)
{
	uint64_t a, b, x, y;

	begin();
	s.now_ns = 10000;
	x = node(5, 1);
	s.now_ns = 1000;
	op(0, 5, 1);
	a = op(0, 5, 1);
	/* … but not by more than a second, and what began later has not made the node */
	s.now_ns = 2000000000;
	y = node(6, 1);
	s.now_ns = 1900000000;
	b = op(0, 6, 1);
	s.now_ns = 4000000000;
	node(7, 1);
	s.now_ns = 8000000000;
	op(0, 8, 1);
	s.now_ns = 3000000000;
	op(0, 7, 1);
	expect(2, (const struct tl_flow[]){{a, x}, {b, y}});
}

/* Where there is no more room, nodes don't wait: another number would take their place. */
static void no_room(void)
{
	const uint64_t far = 1ull << 20; /* the same place, however large the table becomes */
	uint64_t a, b, x, y;

	begin();
	a = op(0, 7, 1);
	x = node(7, 1);
	b = op(0, 7 + far, 1);
	y = node(7 + far, 1);
	expect(2, (const struct tl_flow[]){{a, x}, {b, y}});
}

static void none(void)
{
	struct kprof_capture *t;
	struct bulk found;

	fake_reset();
	start_capture(7, "thread");
	s.what = fake_what("aten::mul");
	fake_begin(1000, 0, s.what);
	fake_end(1010, 0);
	t = fake_timeline();
	CHECK_EQ(timeline__flows(t, 0, &found), 0);
	CHECK_EQ(found.nr, 0);
	bulk__free(&found);
	kprof_capture_close(t);
}

UNIT_MAIN(TEST(last), TEST(first_of_thread), TEST(unsure), TEST(any_numbers), TEST(room_for_many),
	  TEST(late), TEST(no_room), TEST(none))
