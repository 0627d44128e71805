// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/model/report/modules.c: calls of modules by module; and that other tables and walks are as
 * if there were none.
 */
#include "fake_store.h"
#include "unit.h"

#include "model/timeline/timeline.h"
#include "sink/trace/trace.h"

static struct kprof_capture *c;
static struct kprof_result *r;
static uint32_t net, block, linear, loop, add, note;

static uint32_t module(const char *name, uint64_t number, const char *class, const char *path,
		       const char *outermost)
{
	uint32_t what = fake_what_of(name, "", "python_function", 1);
	uint32_t class_name = fake_string(class), at = fake_string(path);
	uint32_t of = fake_string(outermost);
	struct store_record *m = fake_add(STORE_NN_MODULE);

	m->nn_module.description = what;
	m->nn_module.number = number;
	m->nn_module.class_name = class_name;
	m->nn_module.path = at;
	m->nn_module.outermost = of;
	return what;
}

/* The window is 1000 … 9000 ns. */
static void begin(void)
{
	fake_reset();
	fake_meta("with_modules", "true");
	fake_clock(1000, 1000);
	fake_source(0, "operators");
	fake_source(1, "modules");
	fake_thread(0, 1, 1, "main");
	fake_thread(1, 1, 2, "other");
	net = module("nn.Module: Net_0", 0, "Net", "", "");
	block = module("nn.Module: Block_3", 3, "Block", "layers.3", "Net_0");
	linear = module("nn.Module: Linear_0", 0, "Linear", "layers.3.up", "Net_0");
	loop = module("nn.Module: Loop_0", 0, "Loop", "", "");
	add = fake_what("aten::add");
	note = fake_what_of("note", "", "user_annotation", 0);
	fake_begin(2000, 0, note);
	fake_begin(2010, 0, net);
	fake_begin(2020, 0, block);
	fake_begin(2030, 0, linear);
	fake_begin(2100, 0, add);
	fake_begin(2200, 0, add);
	fake_end(2300, 0);
	fake_end(2400, 0);
	fake_end(2410, 0); /* linear: 380 */
	fake_begin(2500, 0, add);
	fake_end(2600, 0);
	fake_end(2620, 0); /* block: 600 */
	fake_end(3010, 0); /* net: 1000 */
	fake_begin(3020, 0, add);
	fake_end(3050, 0);
	fake_end(4000, 0);
	fake_begin(2000, 1, loop);
	fake_begin(2100, 1, loop);
	fake_begin(2200, 1, add);
	fake_end(2300, 1);
	fake_end(2400, 1);
	fake_end(2500, 1); /* the outer loop: 500 */
	fake_finish(9000);
	c = fake_capture();
}

static const struct kprof_row *row_of(const char *name)
{
	static const struct kprof_row none = {.name = ""};

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (!strcmp(kprof_result_row(r, i)->name, name))
			return kprof_result_row(r, i);
	return &none;
}

static void check_row(const char *name, const char *instance, const char *of, uint64_t calls,
		      uint64_t total_ns, uint64_t self_ns, uint64_t op_ns)
{
	const struct kprof_row *row = row_of(name);

	CHECK_STR(row->name, name);
	if (!*row->name)
		return;
	CHECK_STR(row->category, instance);
	CHECK_STR(row->where, of);
	CHECK_EQ(row->calls, calls);
	CHECK_EQ(row->total_ns, total_ns);
	CHECK_EQ(row->self_ns, self_ns);
	CHECK_EQ(row->op_ns, op_ns);
}

static void by_module(void)
{
	begin();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_MODULE, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(kprof_result_nr_rows(r), 4);
	check_row("Net_0", "Net_0", "", 1, 1000, 400, 400);
	check_row("layers.3", "Block_3", "Net_0", 1, 600, 220, 400);
	check_row("layers.3.up", "Linear_0", "Net_0", 1, 380, 380, 300);
	check_row("Loop_0", "Loop_0", "", 2, 500, 500, 100);
	kprof_result_free(r);
	kprof_capture_close(c);
}

/* A table by operator: no rows of modules, and their time is that of the annotation around. */
static void by_operator(void)
{
	begin();
	CHECK_EQ(kprof_result_new(c, KPROF_BY_OP, KPROF_SORT_SELF, &r), 0);
	CHECK_EQ(kprof_result_nr_rows(r), 2);
	CHECK_EQ(row_of("note")->self_ns, 2000 - 300 - 100 - 30);
	CHECK_EQ(row_of("aten::add")->calls, 5);
	kprof_result_free(r);
	kprof_capture_close(c);
}

static char seen[16][TRACE_MODULES_BYTES + 64];
static uint64_t parents[16];
static size_t nr_seen;

static int end(void *ctx, const struct tl_span *s, void *data)
{
	char text[TRACE_MODULES_BYTES];

	if (nr_seen == 16)
		return -1;
	snprintf(seen[nr_seen], sizeof(seen[0]), "%s %u %s", s->description->name, s->depth,
		 trace__modules(s, text) ? text : "");
	parents[nr_seen++] = s->parent_id;
	return 0;
}

static void walk(bool modules)
{
	const struct tl_walker walker = {.modules = modules, .end = end};

	nr_seen = 0;
	CHECK_EQ(timeline__walk(c, &walker, NULL), 0);
}

static void walks(void)
{
	begin();
	walk(false);
	CHECK_EQ(nr_seen, 6);
	CHECK_STR(seen[0], "aten::add 2 "
			   "TOP(Net)::forward.layers.3(Block)::forward.up(Linear)::forward");
	CHECK_STR(seen[1], "aten::add 1 "
			   "TOP(Net)::forward.layers.3(Block)::forward.up(Linear)::forward");
	CHECK_EQ(parents[1], 1);
	CHECK_STR(seen[2], "aten::add 1 TOP(Net)::forward.layers.3(Block)::forward");
	CHECK_STR(seen[3], "aten::add 1 ");
	CHECK_STR(seen[4], "note 0 ");
	CHECK_STR(seen[5], "aten::add 0 TOP(Loop)::forward.Loop_0(Loop)::forward");
	CHECK_EQ(parents[5], 0);
	walk(true);
	CHECK_EQ(nr_seen, 11);
	CHECK_STR(seen[2], "nn.Module: Linear_0 3 TOP(Net)::forward.layers.3(Block)::forward");
	CHECK_STR(seen[5], "nn.Module: Net_0 1 ");
	kprof_capture_close(c);
}

UNIT_MAIN(TEST(by_module), TEST(by_operator), TEST(walks))
