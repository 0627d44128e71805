// SPDX-License-Identifier: BSD-2-Clause
#include "model/stacks/stacks.h"
#include "stacks_fixture.h"

static struct kprof_capture *timeline;

static struct stack_tree *tree_of(const char *capture, pid_t pid)
{
	struct stack_tree *s;

	CHECK_EQ(kprof_capture_open(in_scratch(capture), &timeline), 0);
	CHECK_EQ(stack_tree__new(timeline, false, &s), 0);
	CHECK_EQ(stack_tree__read(s, pid), 0);
	CHECK_EQ(stack_tree__sum(s), 0);
	return s;
}

static void done(struct stack_tree *s)
{
	stack_tree__free(s);
	kprof_capture_close(timeline);
}

static void check_node(const struct stack_tree *s, uint32_t i, const char *name,
		       enum stack_kind kind, uint32_t depth, uint64_t samples, uint64_t own)
{
	const struct stack_node *n = stack_tree__node(s, i);

	CHECK_STR(n->symbol->name, name);
	CHECK_EQ(n->symbol->kind, kind);
	CHECK_EQ(n->depth, depth);
	CHECK_EQ(n->samples, samples);
	CHECK_EQ(n->self_samples, own);
}

static void known(void)
{
	static const struct {
		const char *name;
		enum stack_kind kind;
		uint32_t depth;
		uint64_t samples, own;
	} expected[] = {
		{"all", STACK_ROOT, 0, 11, 0},
		{"main (7)", STACK_THREAD, 1, 6, 0},
		{"main", STACK_NATIVE, 2, 6, 0},
		{"train (train.py)", STACK_PYTHON, 3, 6, 1},
		{"aten::add", STACK_OP, 4, 5, 0},
		{"outer", STACK_NATIVE, 5, 5, 0},
		{"inlined", STACK_NATIVE, 6, 5, 4},
		{"sys_read", STACK_KERNEL, 7, 1, 1},
		{"worker (8)", STACK_THREAD, 1, 5, 0},
		{"[incomplete]", STACK_NOTE, 2, 1, 0},
		{"main", STACK_NATIVE, 3, 1, 1},
		{"[no stack]", STACK_NOTE, 2, 1, 1},
		{"main", STACK_NATIVE, 2, 3, 1},
		{"[off CPU]", STACK_NOTE, 3, 1, 1},
		{"train (train.py)", STACK_PYTHON, 3, 1, 0},
	};
	const struct stack_counts *counts;
	struct stack_tree *s;
	uint32_t at = 0;

	known_capture(in_scratch("a.kprof"));
	s = tree_of("a.kprof", 0);
	for (size_t i = 0; i < ARRAY_SIZE(expected); i++, at = stack_tree__next(s, at))
		check_node(s, at, expected[i].name, expected[i].kind, expected[i].depth,
			   expected[i].samples, expected[i].own);
	CHECK_EQ(stack_tree__nr_nodes(s), 18);
	CHECK_EQ(stack_tree__node(s, 0)->total_ns, 10 * PERIOD_NS + 1001);
	counts = stack_tree__counts(s);
	CHECK_EQ(counts->samples, 11);
	CHECK_EQ(counts->whole, 9);
	CHECK_EQ(counts->walked, 10); /* one had nothing to walk */
	CHECK_EQ(counts->off_cpu_ns, PERIOD_NS);
	done(s);
}

/* Every node is met once, parents first, and time is neither lost nor made. */
static void walk_and_sums(void)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		uint32_t nr, met = 0, at = 0;
		struct stack_tree *s;
		uint8_t *seen;

		hostile_capture(in_scratch("h.kprof"), seed);
		s = tree_of("h.kprof", 7);
		nr = stack_tree__nr_nodes(s);
		seen = calloc(nr, 1);
		do {
			const struct stack_node *n = stack_tree__node(s, at);
			uint64_t below = n->self_ns;

			CHECK(!seen[at] && (!at || seen[n->parent]));
			seen[at] = 1;
			met++;
			for (uint32_t c = n->first_child; c;
			     c = stack_tree__node(s, c)->next_sibling) {
				CHECK_EQ(stack_tree__node(s, c)->parent, at);
				below += stack_tree__node(s, c)->total_ns;
			}
			CHECK_EQ(below, n->total_ns);
			at = stack_tree__next(s, at);
		} while (at);
		CHECK_EQ(met, nr);
		CHECK_EQ(stack_tree__node(s, 0)->total_ns, HOSTILE_NAMES * PERIOD_NS);
		free(seen);
		done(s);
	}
}

/* One name in two modules or files is two functions; at two lines it is one. */
static void what_is_one_function(void)
{
	struct made_stacks s;
	struct stack_tree *tree;
	uint32_t other;

	known_tables(&s, in_scratch("f.kprof"));
	other = made__module(&s, STORE_MODULE_FILE, "/lib/liby.so", "");
	for (uint32_t line = 1; line <= 3; line++)
		made__sample(&s, line, 0,
			     made__stack(&s, 0,
					 made__frame(&s, STORE_FRAME_PYTHON, 0, "", "step",
						     line < 3 ? "/a/x.py" : "/b/x.py", line, NULL)),
			     1, WHOLE);
	for (uint32_t module = 1; module <= 2; module++)
		made__sample(
			&s, 10 + module, 0,
			made__stack(&s, 0,
				    made__frame(&s, STORE_FRAME_NATIVE, module == 1 ? 1 : other, "",
						"init", "", module, NULL)),
			1, WHOLE);
	made__finish(&s.m);
	tree = tree_of("f.kprof", 0);
	CHECK_EQ(stack_tree__nr_nodes(tree), 2 + 2 + 2);
	check_node(tree, 2, "step (x.py)", STACK_PYTHON, 2, 2, 2);
	check_node(tree, 3, "step (x.py)", STACK_PYTHON, 2, 1, 1);
	done(tree);
}

/*
 * Places in code without names are one a module; where there is no module they say what they are.
 */
static void nameless(void)
{
	struct made_stacks s;
	struct stack_tree *tree;
	uint32_t other;

	known_tables(&s, in_scratch("n.kprof"));
	other = made__module(&s, STORE_MODULE_FILE, "/opt/libx.so", "");
	for (uint32_t i = 0; i < 6; i++) {
		uint32_t module = i < 3 ? 1 : i < 5 ? other : 0;

		made__put(&s.m,
			  (struct store_record){STORE_FRAME, .frame = {.id = ++s.frames,
								       .kind = STORE_FRAME_NATIVE,
								       .module = module,
								       .address = 0x1000 + i}});
		made__sample(&s, i, 0, made__stack(&s, 0, s.frames), 1, WHOLE);
	}
	made__finish(&s.m);
	tree = tree_of("n.kprof", 0);
	CHECK_EQ(stack_tree__nr_nodes(tree), 2 + 3);
	check_node(tree, 2, "[libx.so]", STACK_NATIVE, 2, 3, 3);
	CHECK_STR(stack_tree__node(tree, 2)->symbol->module, "/lib/libx.so");
	check_node(tree, 3, "[libx.so]", STACK_NATIVE, 2, 2, 2);
	check_node(tree, 4, "[unknown]", STACK_NATIVE, 2, 1, 1);
	done(tree);
}

static void too_many(void)
{
	struct made_stacks s;
	struct stack_tree *tree;
	uint32_t frames[64], stack = 0;

	/* 64 inlined functions a frame, a stack of 70,000 of them. */
	known_tables(&s, in_scratch("m.kprof"));
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		struct store_line lines[STORE_MAX_LINES] = {0};

		for (uint32_t l = 0; l < STORE_MAX_LINES; l++)
			lines[l].function = made__string(&s.m, l % 2 ? "a" : "b");
		made__put(&s.m,
			  (struct store_record){STORE_FRAME, .frame = {.id = frames[i] = ++s.frames,
								       .kind = STORE_FRAME_NATIVE,
								       .nr_lines = STORE_MAX_LINES,
								       .lines = lines}});
	}
	for (uint32_t i = 0; i < 70000; i++)
		stack = made__stack(&s, stack, frames[i % ARRAY_SIZE(frames)]);
	made__sample(&s, 0, 0, stack, 1, WHOLE);
	made__finish(&s.m);
	CHECK_EQ(kprof_capture_open(in_scratch("m.kprof"), &timeline), 0);
	CHECK_EQ(stack_tree__new(timeline, false, &tree), 0);
	CHECK_EQ(stack_tree__read(tree, 0), -E2BIG);
	CHECK(kprof_error_hint() != NULL);
	done(tree);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(known), TEST(walk_and_sums), TEST(what_is_one_function),
	  TEST(nameless), TEST(too_many), {"(clean-up)", scratch__remove})
