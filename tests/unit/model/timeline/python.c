// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/timeline/python.c: which Python functions go on, by stacks that are written by hand.
 *
 * A stack is a text, outermost first: "main:10" is a function at the instruction 10; L behind it:
 * in a loop, which begins at the number behind that; G: of a generator; ?: nothing is known of it. "!run:4" is native. What comes out is a
 * text too: "f@100{ op[ ] }@150" is a function that is known from 100 to 150, around an operator.
 */
#include "model_fixture.h"
#include "unit.h"

#include <stdarg.h>

#include "model/timeline/timeline.h"
#include "util/util.h"

static char seen[4096];
static uint64_t nr_spans;
static struct {
	char text[128], name[64];
	struct store_line line;
} frames[64], stacks[64];
static uint32_t nr_frames, nr_stacks;
static struct store_attr attrs[64];

static void say(const char *format, ...)
{
	size_t at = strlen(seen);
	va_list args;

	va_start(args, format);
	vsnprintf(seen + at, sizeof(seen) - at, format, args);
	va_end(args);
}

static void begin_test(void)
{
	start_capture(7, "main", "other");
	fake_source(0, "operators");
	nr_spans = nr_frames = nr_stacks = 0;
	fake_add(STORE_MODULE)->module.id = 1;
}

static uint32_t frame(const char *text)
{
	bool native = *text == '!';
	struct store_record *r;
	struct store_line line = {0};
	char *name = frames[nr_frames].name;
	const char *instr = strrchr(text, ':'), *loop = strchr(text, 'L');

	for (uint32_t i = 0; i < nr_frames; i++)
		if (!strcmp(frames[i].text, text))
			return i + 1;
	snprintf(name, sizeof(frames[0].name), "%.*s", (int)(instr - text - native), text + native);
	snprintf(frames[nr_frames++].text, sizeof(frames[0].text), "%s", text);
	line.function = fake_string(name);
	line.file =
		fake_string(strstr(name, "call_impl") ? "/lib/torch/nn/modules/module.py" : "a.py");
	r = fake_frame(nr_frames, native ? STORE_FRAME_NATIVE : STORE_FRAME_PYTHON, NULL);
	r->frame.nr_lines = 1;
	frames[nr_frames - 1].line = line;
	r->frame.lines = &frames[nr_frames - 1].line;
	r->frame.module = native;
	r->frame.address = (uint64_t)atoi(instr + 1);
	if (native || strchr(text, '?'))
		return nr_frames;
	r = fake_add(STORE_PYTHON_FRAME);
	r->python_frame.frame = nr_frames;
	r->python_frame.first_line = 1;
	r->python_frame.instr = (uint32_t)atoi(instr + 1);
	r->python_frame.flags = strchr(text, 'G') ? STORE_PYTHON_RESUMED : 0;
	r->python_frame.loop = loop ? (uint32_t)atoi(loop + 1) + 1 : 0;
	return nr_frames;
}

static uint32_t stack_of(const char *text)
{
	const char *last = strrchr(text, ' ');
	char outer[128];
	uint32_t parent = 0, id;

	for (uint32_t i = 0; i < nr_stacks; i++)
		if (!strcmp(stacks[i].text, text))
			return i + 1;
	if (last) {
		snprintf(outer, sizeof(outer), "%.*s", (int)(last - text), text);
		parent = stack_of(outer);
	}
	id = frame(last ? last + 1 : text);
	snprintf(stacks[nr_stacks++].text, sizeof(stacks[0].text), "%s", text);
	fake_stack(nr_stacks, parent, id);
	return nr_stacks;
}

/* Begins a span with this stack; NULL: it has none. */
static void begin_of(uint64_t ns, uint32_t thread, const char *name, const char *category,
		     const char *stack)
{
	uint32_t id = stack ? stack_of(stack) : 0;

	fake_begin(ns, thread, fake_what_of(name, "", category, 0));
	nr_spans++;
	attrs[nr_spans] = (struct store_attr){fake_string("Call stack"), STORE_ATTR_STACK, id};
	if (stack)
		fake_args(nr_spans, &attrs[nr_spans], 1);
}

static void begin(uint64_t ns, const char *stack)
{
	begin_of(ns, 0, "op", "cpu_op", stack);
}

static void end(uint64_t ns)
{
	fake_end(ns, 0);
}

static void op(uint64_t ns, const char *stack)
{
	begin(ns, stack);
	end(ns + 10);
}

static void module(uint64_t ns, const char *name)
{
	uint32_t what = fake_what_of(name, "", "python_function", 0), text = fake_string(name);
	struct store_record *r = fake_add(STORE_NN_MODULE);

	r->nn_module.description = what;
	r->nn_module.class_name = text;
	fake_begin(ns, 0, what);
	nr_spans++;
}

/* ---- what comes out ---- */

static int on_begin(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	say("%s[ ", s->description->name);
	return 0;
}

static int on_end(void *ctx, const struct tl_span *s, void *data)
{
	say("] ");
	return 0;
}

static int on_enter(void *ctx, const struct tl_function *f)
{
	CHECK(f->id > nr_spans && f->parent_id < f->id);
	say("%s@%llu{ ", f->frame->lines->function, (unsigned long long)f->start_ns);
	return 0;
}

static int on_leave(void *ctx, const struct tl_function *f)
{
	CHECK(f->end_ns >= f->start_ns);
	say("}@%llu%s ", (unsigned long long)f->end_ns,
	    f->flags & KPROF_EVENT_CLOSED        ? "closed"
	    : f->flags & KPROF_EVENT_OPEN_AT_END ? "open"
						 : "");
	return 0;
}

static void expect(const char *text)
{
	const struct tl_walker walker = {.modules = true,
					 .begin = on_begin,
					 .end = on_end,
					 .enter = on_enter,
					 .leave = on_leave};
	struct kprof_capture *t;

	fake_finish(2000);
	t = fake_timeline();
	for (int pass = 0; pass < 2; pass++) {
		seen[0] = '\0';
		CHECK_EQ(timeline__walk(t, &walker, NULL), 0);
		CHECK_STR(seen, text);
	}
	kprof_capture_close(t);
}

/* ---- the tests ---- */

static void what_goes_on_is_one_call(void)
{
	begin_test();
	op(200, "main:10 f:2");
	op(300, "main:10 f:4");
	op(400, "main:12");
	op(500, "main:14 f:2");
	expect("main@200{ f@200{ op[ ] op[ ] }@311 op[ ] f@500{ op[ ] }@511 }@511 ");
}

/* The loop is in main: the same instruction of f can not come twice in one call. */
static void what_is_repeated_is_called_again(void)
{
	begin_test();
	op(200, "main:10L f:2 g:2");
	op(300, "main:10L f:2 g:2");
	op(400, "main:10L f:2 h:2");
	op(500, "main:10L f:1");
	expect("main@200{ f@200{ g@200{ op[ ] }@211 }@211 f@300{ g@300{ op[ ] }@311 }@311 "
	       "f@400{ h@400{ op[ ] }@411 }@411 f@500{ op[ ] }@511 }@511 ");
	/* The loop is in f, further in. */
	begin_test();
	op(200, "main:10L f:2L g:2");
	op(300, "main:10L f:2L g:2");
	op(400, "main:10L f:1L");
	expect("main@200{ f@200{ g@200{ op[ ] }@211 g@300{ op[ ] }@311 op[ ] }@411 }@411 ");
	/* Two loops of f, one after the other: no way leads from the second to the first. */
	begin_test();
	op(200, "main:10L f:2L");
	op(300, "main:10L f:8L6");
	op(400, "main:10L f:2L");
	op(500, "main:10L f:8L6");
	expect("main@200{ f@200{ op[ ] op[ ] }@311 f@400{ op[ ] op[ ] }@511 }@511 ");
	/* No loop is known: nothing is certain. */
	begin_test();
	op(200, "main:10 f:2");
	op(300, "main:10 f:2");
	expect("main@200{ f@200{ op[ ] }@211 }@211 main@300{ f@300{ op[ ] }@311 }@311 ");
}

static void other_callers_make_other_calls(void)
{
	begin_test();
	op(200, "main:10 f:2 g:2");
	op(300, "main:10 f:3 g:3"); /* called again, from further on */
	op(400, "main:11 f:4 g:4");
	expect("main@200{ f@200{ g@200{ op[ ] }@211 g@300{ op[ ] }@311 }@311 "
	       "f@400{ g@400{ op[ ] }@411 }@411 }@411 ");
}

static void recursion(void)
{
	begin_test();
	op(200, "f:1");
	op(300, "f:2 f:1");
	op(400, "f:2 f:2 f:1");
	op(500, "f:2 f:4");
	op(600, "f:3 f:1");
	expect("f@200{ op[ ] f@300{ op[ ] f@400{ op[ ] }@411 op[ ] }@511 f@600{ op[ ] }@611 }@611 ");
}

static void a_generator_is_left_and_entered_again(void)
{
	begin_test();
	op(200, "main:10L make:2G f:1");
	op(300, "main:10L make:4G");
	op(400, "main:12L");
	expect("main@200{ make@200{ f@200{ op[ ] }@211 }@211 make@300{ op[ ] }@311 op[ ] }@411 ");
}

static void without_a_stack_nothing_is_known(void)
{
	begin_test();
	op(200, "main:10 f:2");
	op(300, NULL);
	op(400, "main:10 f:4");
	op(500, "main:10 f:5?"); /* as good as none */
	expect("main@200{ f@200{ op[ ] }@211 }@211 op[ ] main@400{ f@400{ op[ ] }@411 }@411 op[ ] ");
}

/* Functions around an operator go on as long as it does, and those inside are inside. */
static void an_operator_holds_its_callers(void)
{
	begin_test();
	begin(200, "main:10 f:2");
	op(300, "main:10 f:2 !run:1 hook:2");
	op(400, NULL);
	op(500, "main:10 f:2 !run:1 hook:1");
	op(550, "main:11 f:2"); /* makes no sense in there */
	end(600);
	op(700, "main:10 f:4");
	expect("main@200{ f@200{ op[ hook@300{ op[ ] }@311 op[ ] hook@500{ op[ ] }@511 op[ ] ] "
	       "op[ ] }@711 }@711 ");
	/* Of functions around an operator without a stack nothing is told inside of it. */
	begin_test();
	begin(200, NULL);
	op(300, "main:10 f:2");
	end(400);
	op(500, "main:10");
	expect("op[ op[ ] ] main@500{ op[ ] }@511 ");
}

/* A C function may call several operators: the stacks part inside of it. */
static void a_call_in_c_may_have_several_operators(void)
{
	begin_test();
	op(200, "main:10L f:2 !backward:1 !add:1");
	op(300, "main:10L f:2 !backward:2 !mul:1");
	op(400, "main:10L f:2 !backward:3 !apply:1 hook:1");
	expect("main@200{ f@200{ op[ ] }@211 f@300{ op[ ] }@311 f@400{ hook@400{ op[ ] }@411 }@411 "
	       "}@411 ");
	begin_test();
	op(200, "main:10L f:2 !backward:1 !add:1");
	op(300, "main:10L f:2 !backward:1 !mul:1");
	op(400, "main:10L f:2 !backward:1 !apply:1 hook:1");
	op(450,
	   "main:10L f:2 !backward:1 !apply:1 hook:1"); /* called again, who knows from where */
	op(500, "main:10L f:2 !backward:1 !mul:1");
	op(600, "main:10L f:2 !backward:1 !mul:1"); /* it as well */
	expect("main@200{ f@200{ op[ ] op[ ] hook@400{ op[ ] }@411 }@411 f@450{ hook@450{ op[ ] }@461 "
	       "op[ ] }@511 f@600{ op[ ] }@611 }@611 ");
	/* PyTorch's engine calls one node after the other. */
	begin_test();
	op(200, "main:10L f:2 !torch::autograd::Engine::thread_main:1");
	op(300, "main:10L f:2 !torch::autograd::Engine::thread_main:1");
	expect("main@200{ f@200{ op[ ] op[ ] }@311 }@311 ");
}

/* An annotation may outlast the function in which it begins. */
static void annotations_hold_nothing(void)
{
	begin_test();
	op(200, "main:10 f:2");
	begin_of(300, 0, "note", "user_annotation", "main:10 f:4 enter:2");
	op(400, "main:10 f:6");
	end(500);
	op(600, "main:12");
	expect("main@200{ f@200{ op[ ] }@300 }@300 note[ main@400{ f@400{ op[ ] }@411 }@411 ] "
	       "main@600{ op[ ] }@611 ");
}

static void modules_are_calls_of_their_own(void)
{
	begin_test();
	op(200, "main:10");
	module(300, "Net_0");
	module(301, "Linear_0");
	begin(302, "main:12L _call_impl:1 forward:1 _call_impl:1 forward:3");
	end(310);
	end(311);
	module(400, "Linear_1");
	begin(401, "main:12L _call_impl:1 forward:2 _call_impl:1 forward:3");
	end(410);
	end(411);
	end(412);
	op(500, "main:14");
	expect("main@200{ op[ ] Net_0[ _call_impl@301{ forward@301{ Linear_0[ _call_impl@302{ forward@302{ "
	       "op[ ] }@311 }@311 ] Linear_1[ _call_impl@401{ forward@401{ op[ ] }@411 }@411 ] }@412 }@412 ] "
	       "op[ ] }@511 ");
	/* Where stacks do not have the modules, no functions are told of inside. */
	begin_test();
	module(300, "Net_0");
	op(301, "main:12");
	op(320, "main:14");
	end(340);
	op(500, "main:16");
	expect("Net_0[ op[ ] op[ ] ] main@500{ op[ ] }@511 ");
}

static void threads_and_ends(void)
{
	begin_test();
	begin(200, "main:10 f:2");
	begin_of(210, 1, "op", "cpu_op", "other:1");
	fake_end_flags(220, 1, KPROF_EVENT_CLOSED);
	expect("other@210{ op[ ] main@200{ f@200{ op[ ] }@2000open }@2000open }@221closed ");
}

/* In a part of the time, those come whole that have an operator in it. */
static void of_a_part(void)
{
	/* since the begin of the recording, at 100 */
	const struct kprof_range part = {
		.sz = sizeof(part), .has_from = true, .has_to = true, .from_ns = 250, .to_ns = 450};
	const struct tl_walker walker = {.modules = true,
					 .begin = on_begin,
					 .end = on_end,
					 .enter = on_enter,
					 .leave = on_leave};
	struct kprof_capture *t;

	begin_test();
	op(200, "main:10 f:2");
	op(400, "main:10 f:4");
	op(500, "main:12 g:4");
	op(700, "main:14 h:4");
	fake_finish(2000);
	t = fake_timeline();
	CHECK_EQ(kprof_capture_select(t, &part), 0);
	seen[0] = '\0';
	CHECK_EQ(timeline__walk(t, &walker, NULL), 0);
	CHECK_STR(seen, "main@200{ f@200{ op[ ] }@411 g@500{ op[ ] }@511 }@711 ");
	kprof_capture_close(t);
}

/* ---- captures that were made to need much ---- */

#define DEEP 500
#define THREADS 3000

static struct {
	uint64_t now, most, all;
} calls;

static int count_enter(void *ctx, const struct tl_function *f)
{
	calls.all++;
	calls.most = ++calls.now > calls.most ? calls.now : calls.most;
	return 0;
}

static int count_leave(void *ctx, const struct tl_function *f)
{
	calls.now--;
	return 0;
}

/* Threads with an operator each, in a deep stack, which ends, or goes on to the end. */
static void many_threads(bool end)
{
	const struct tl_walker walker = {
		.begin = on_begin, .end = on_end, .enter = count_enter, .leave = count_leave};
	struct kprof_capture *t;
	uint32_t what;

	begin_test();
	frame("f:1");
	for (uint32_t i = 1; i <= DEEP; i++)
		fake_stack(i, i - 1, 1);
	what = fake_what_of("op", "", "cpu_op", 0);
	attrs[0] = (struct store_attr){fake_string("Call stack"), STORE_ATTR_STACK, DEEP};
	for (uint32_t i = 0; i < THREADS; i++) {
		fake_thread(2 + i, 7, 100 + i, "");
		fake_begin(200 + 2 * i, 2 + i, what);
		fake_args(end ? i + 1 : 2 * i + 1, &attrs[0], 1);
		if (end)
			fake_end(201 + 2 * i, 2 + i);
		else /* shows that the other one goes on */
			fake_begin(201 + 2 * i, 2 + i, what);
	}
	fake_finish(10000);
	t = fake_timeline();
	memset(&calls, 0, sizeof(calls));
	seen[0] = '\0';
	CHECK_EQ(timeline__walk(t, &walker, NULL), 0);
	CHECK_EQ(calls.now, 0);
	CHECK(calls.most > DEEP * 1000 && calls.most <= 1 << 20);
	CHECK_EQ(calls.all, end ? DEEP * THREADS : calls.most);
	kprof_capture_close(t);
}

/* A million calls may go on at once; inside of more, none are told of. */
static void bounded(void)
{
	many_threads(false);
}

/* Those of threads that have come and gone are told of all. */
static void of_many_threads(void)
{
	many_threads(true);
}

UNIT_MAIN(TEST(bounded), TEST(of_many_threads), TEST(what_goes_on_is_one_call),
	  TEST(what_is_repeated_is_called_again), TEST(other_callers_make_other_calls),
	  TEST(recursion), TEST(a_generator_is_left_and_entered_again),
	  TEST(without_a_stack_nothing_is_known), TEST(an_operator_holds_its_callers),
	  TEST(a_call_in_c_may_have_several_operators), TEST(annotations_hold_nothing),
	  TEST(modules_are_calls_of_their_own), TEST(threads_and_ends), TEST(of_a_part))
