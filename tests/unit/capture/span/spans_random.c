// SPDX-License-Identifier: BSD-2-Clause
/*
 * The span engine against programs made at random: threads with several stacks, calls, tail calls,
 * exceptions, ranges. Where nothing is lost and every site is known, each call's end must be exact
 * and the true one. Where events are lost, late or not to be trusted, what is told must still nest.
 */
#include "capture/span/spans.h"

#include "spans_fixture.h"
#include "unit.h"

#define STACK 0x100000ull
#define NR_STACKS 3
#define NR_CALLS 40 /* call sites; each calls one function */
#define NR_FUNCTIONS 16
#define MAX_OPEN 200

static uint64_t seed;

static uint32_t rnd(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)(seed >> 33) % below;
}

/* A call or range of the simulated program that is open. */
struct call {
	size_t span;   /* which begin event it was */
	uint64_t sp;   /* of a range: 0 */
	uint32_t site; /* index into returns[] */
	int stack;
	uint32_t function;
};

struct truth { /* by begin event */
	uint64_t end_ns;
	bool thrown; /* ended by an exception: no end to be seen */
};

struct simulated {
	struct span_thread *thread;
	struct call open[MAX_OPEN];
	size_t nr;
	int stack;
	uint64_t base; /* of its stacks */
};

struct program {
	struct fixture fx;
	struct span_return returns[NR_CALLS];
	struct simulated threads[FIXTURE_THREADS];
	struct truth *truth;
	size_t nr, cap;
	uint64_t now_ns;
	uint32_t lose_percent; /* begins and ends that get lost */
	uint32_t late_percent; /* events whose time is too early */
};

static uint64_t tick(struct program *p)
{
	p->now_ns += 1000 * (1 + rnd(20));
	if (rnd(100) < p->late_percent)
		return p->now_ns - 1000 * rnd(200);
	return p->now_ns;
}

static bool lost(const struct program *p)
{
	return p->lose_percent && rnd(100) < p->lose_percent;
}

static size_t begun(struct program *p)
{
	p->truth = fixture_room(p->truth, &p->cap, p->nr, sizeof(*p->truth));
	p->truth[p->nr] = (struct truth){0};
	return p->nr++;
}

/* The stack pointer inside the innermost call of the current stack. */
static uint64_t current_sp(const struct simulated *t)
{
	for (size_t i = t->nr; i-- > 0;)
		if (t->open[i].sp && t->open[i].stack == t->stack)
			return t->open[i].sp;
	return t->base + (uint64_t)(t->stack + 1) * STACK - 64;
}

static void begin(struct program *p, struct simulated *t, const struct call *c)
{
	struct span_begin b = {
		.time_ns = tick(p),
		.sp = c->sp,
		.ret_slot = c->sp,
		.ret = &p->returns[c->site],
		.description = c->function + 1, /* 0 would be a hidden one */
		.source = c->function,
		.probe = c->function,
	};

	t->open[t->nr] = *c;
	t->open[t->nr].span = lost(p) ? SIZE_MAX : begun(p);
	if (t->open[t->nr++].span != SIZE_MAX)
		CHECK_EQ(spans__begin(p->fx.spans, t->thread, &b), 0);
}

static void do_call(struct program *p, struct simulated *t, uint32_t deep)
{
	struct call c = {.stack = t->stack, .site = rnd(NR_CALLS)};

	c.function = c.site % NR_FUNCTIONS;
	c.sp = current_sp(t) - 64 * (1 + rnd(deep)); /* room for what callers pop */
	begin(p, t, &c);
}

/* The innermost call jumps to another function: same slot, same return address. */
static void do_tail_call(struct program *p, struct simulated *t)
{
	struct call c;

	if (!t->nr || !t->open[t->nr - 1].sp || t->open[t->nr - 1].stack != t->stack)
		return;
	c = t->open[t->nr - 1];
	c.function = rnd(NR_FUNCTIONS);
	for (size_t i = 0; i < t->nr; i++) /* else it is the same as a call again */
		if (t->open[i].sp == c.sp && t->open[i].function == c.function)
			return;
	begin(p, t, &c);
}

static void do_return(struct program *p, struct simulated *t)
{
	const struct span_return *ret;
	struct span_site hit;
	struct call c;
	uint64_t end_ns;

	if (!t->nr || !t->open[t->nr - 1].sp || t->open[t->nr - 1].stack != t->stack)
		return;
	c = t->open[t->nr - 1];
	ret = &p->returns[c.site];
	end_ns = tick(p);
	hit = (struct span_site){
		.time_ns = end_ns,
		.sp = c.sp + 8 + (uint64_t)(int64_t)ret->sp_delta_bytes,
		.site = ret->site,
	};
	if (!lost(p))
		CHECK_EQ(spans__site(p->fx.spans, t->thread, &hit), 0);
	while (t->nr && t->open[t->nr - 1].sp == c.sp) { /* and those that tail-called it */
		if (t->open[t->nr - 1].span != SIZE_MAX)
			p->truth[t->open[t->nr - 1].span].end_ns = end_ns;
		t->nr--;
	}
}

/* Unwinds some calls of this stack, as far as nothing of another stack lies above them. */
static void do_throw(struct program *p, struct simulated *t)
{
	size_t catcher = t->nr;

	for (uint32_t k = rnd(5); k > 0 && catcher; k--) {
		const struct call *c = &t->open[catcher - 1];

		if (c->stack != t->stack)
			break;
		catcher--;
	}
	/* The catcher's own frame goes on; a tail-called chain goes as a whole. */
	while (catcher && catcher < t->nr && t->open[catcher].sp &&
	       t->open[catcher - 1].sp == t->open[catcher].sp)
		catcher++;
	while (catcher < t->nr &&
	       !t->open[catcher].sp) /* only calls are unwound, with what is in them */
		catcher++;
	for (size_t i = catcher; i < t->nr; i++)
		if (t->open[i].span != SIZE_MAX)
			p->truth[t->open[i].span] = (struct truth){p->now_ns, true};
	if (catcher == t->nr)
		return;
	t->nr = catcher;
	do_call(p, t, 1); /* the handler does something, right below its own frame */
	do_return(p, t);
}

static void do_range(struct program *p, struct simulated *t)
{
	bool end = t->nr && !t->open[t->nr - 1].sp;
	uint64_t time_ns, sp = current_sp(t) - 8;

	if (!end && rnd(2))
		return;
	time_ns = tick(p);
	if (end) {
		t->nr--;
		if (t->open[t->nr].span != SIZE_MAX)
			p->truth[t->open[t->nr].span].end_ns = time_ns;
		if (!lost(p))
			CHECK_EQ(spans__range_end(p->fx.spans, t->thread, time_ns, sp, 20), 0);
		return;
	}
	t->open[t->nr] = (struct call){.stack = t->stack};
	t->open[t->nr].span = lost(p) ? SIZE_MAX : begun(p);
	if (t->open[t->nr++].span != SIZE_MAX)
		CHECK_EQ(spans__range_begin(p->fx.spans, t->thread, time_ns, sp, 99, 20), 0);
}

static void step(struct program *p, struct simulated *t)
{
	uint32_t description = rnd(100);

	if (t->nr + 2 >= MAX_OPEN)
		description = 40;
	if (description < 40)
		do_call(p, t, 8);
	else if (description < 80)
		do_return(p, t);
	else if (description < 85)
		do_tail_call(p, t);
	else if (description < 88)
		do_throw(p, t);
	else if (description < 94)
		do_range(p, t);
	else
		t->stack = (int)rnd(NR_STACKS);
}

static void start(struct program *p, uint64_t number, uint64_t window_ns)
{
	memset(p, 0, sizeof(*p));
	seed = number * 0x9e3779b97f4a7c15ull + 1;
	p->now_ns = 1000000;
	fixture_start(&p->fx, STACK);
	fixture_open(&p->fx, window_ns);
	for (uint32_t i = 0; i < NR_CALLS; i++)
		p->returns[i] = (struct span_return){
			.addr = 0x1000 + i, .site = i + 1, .sp_delta_bytes = 8 * (int32_t)rnd(4)};
	for (uint32_t i = 0; i < FIXTURE_THREADS; i++) {
		p->threads[i].thread = spans__thread(p->fx.spans, i, i);
		p->threads[i].base = 0x100000000ull * (i + 1);
	}
}

static void stop(struct program *p, uint64_t number)
{
	fixture_check_counts(&p->fx);
	if (p->fx.broken)
		printf("# program %llu\n", (unsigned long long)number);
	CHECK_STR(p->fx.broken ? p->fx.broken : "", "");
	fixture_stop(&p->fx);
	free(p->truth);
}

/* Everything returns in the end, innermost first. */
static void unwind(struct program *p)
{
	for (int i = 0; i < FIXTURE_THREADS; i++) {
		struct simulated *t = &p->threads[i];

		while (t->nr) {
			size_t before = t->nr;

			t->stack = t->open[t->nr - 1].stack;
			if (t->open[t->nr - 1].sp)
				do_return(p, t);
			else
				do_range(p, t);
			if (t->nr == before)
				abort();
		}
	}
}

/*
 * What one event ends is told a nanosecond apart, level by level; events are a microsecond apart.
 */
#define LEVELS_NS 500

static size_t wrong_spans(const struct program *p)
{
	size_t wrong = 0;

	for (size_t i = 0; i < p->nr; i++) {
		const struct told *told = &p->fx.told[i];
		const struct truth *truth = &p->truth[i];

		if (truth->thrown)
			wrong += told->flags != KPROF_EVENT_CLOSED ||
				 told->end_ns + LEVELS_NS < truth->end_ns;
		else
			wrong += told->flags != 0 || told->end_ns > truth->end_ns ||
				 told->end_ns + LEVELS_NS < truth->end_ns;
	}
	return wrong;
}

static void the_truth_when_nothing_is_lost(void)
{
	static struct program p;
	uint64_t thrown = 0, returned = 0;

	for (uint64_t number = 0; number < 300; number++) {
		start(&p, number, 0);
		for (int i = 0; i < 2000; i++)
			step(&p, &p.threads[rnd(FIXTURE_THREADS)]);
		unwind(&p);
		CHECK_EQ(p.fx.nr, p.nr);
		CHECK_EQ(wrong_spans(&p), 0);
		for (size_t i = 0; i < p.nr; i++)
			p.truth[i].thrown ? thrown++ : returned++;
		stop(&p, number);
	}
	CHECK(thrown > 1000); /* the programs do what they are meant to do */
	CHECK(returned > 100000);
}

static void nesting_whatever_is_lost(void)
{
	static struct program p;
	uint64_t late = 0, closed = 0;

	for (uint64_t number = 0; number < 300; number++) {
		start(&p, number, UINT64_MAX);
		p.lose_percent = rnd(60);
		p.late_percent = rnd(30);
		for (int i = 0; i < 2000; i++) {
			if (i == 500)
				fixture_open(&p.fx, p.now_ns);
			if (rnd(20) == 0) { /* sites are learnt, or were guessed wrongly */
				struct span_return *r = &p.returns[rnd(NR_CALLS)];

				r->site = rnd(NR_CALLS + 1);
				r->sp_delta_bytes = 8 * (int32_t)rnd(4);
			}
			step(&p, &p.threads[rnd(FIXTURE_THREADS)]);
		}
		for (int i = 0; i < FIXTURE_THREADS / 2; i++)
			CHECK_EQ(spans__thread_end(p.fx.spans, p.threads[i].thread, p.now_ns), 0);
		CHECK_EQ(spans__finish(p.fx.spans), 0);
		late += spans__late(p.fx.spans);
		closed += p.fx.closed;
		stop(&p, number);
	}
	CHECK(late > 1000);
	CHECK(closed > 10000);
}

UNIT_MAIN(TEST(the_truth_when_nothing_is_lost), TEST(nesting_whatever_is_lost))
