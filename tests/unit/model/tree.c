// SPDX-License-Identifier: BSD-2-Clause
/* user/model/report/tree.c: spans merged by path. */
#include "model_fixture.h"
#include "unit.h"

#include "kprof.h"

static struct kprof_tree *tree_of_fake(void)
{
	struct kprof_capture *c = NULL;
	struct kprof_tree *t = NULL;

	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	CHECK_EQ(kprof_tree_new(c, &t), 0);
	kprof_capture_close(c); /* a tree outlives what it was made of */
	if (!t) {
		printf("# %s\n", kprof_error_cause());
		exit(1);
	}
	return t;
}

static void expect(const struct kprof_node *n, const char *name, const struct kprof_node *parent,
		   uint64_t calls, uint64_t total_ns, uint64_t self_ns)
{
	CHECK(n);
	if (!n)
		exit(1);
	CHECK_STR(n->name, name);
	CHECK(n->parent == parent);
	CHECK_EQ(n->calls, calls);
	CHECK_EQ(n->total_ns, total_ns);
	CHECK_EQ(n->self_ns, self_ns);
}

/* Two threads share the path a/b; recursion a/a is a path of its own; overloads are one name. */
static void paths(void)
{
	const struct kprof_node *root, *a, *b, *n;
	uint32_t wa, wa2, wb, wc;
	struct kprof_tree *t;

	start_capture(1, "main", "other");
	wa = fake_what("a");
	wa2 = fake_what_of("a", "out", "user_annotation", 0);
	wb = fake_what("b");
	wc = fake_what("c");
	fake_begin(100, 0, wa);
	fake_begin(105, 1, wa2);
	fake_begin(110, 0, wa);
	fake_end(120, 0);
	fake_begin(115, 1, wb);
	fake_begin(130, 0, wb);
	fake_begin(131, 0, wc);
	fake_end(135, 0);
	fake_end(140, 0);
	fake_end(145, 1);
	fake_end(200, 0);
	fake_end(205, 1);
	fake_begin(210, 0, wb);
	fake_end(211, 0);
	fake_begin(220, 0, wc);
	fake_end(221, 0);
	fake_finish(300);
	t = tree_of_fake();
	root = kprof_tree_root(t);
	expect(root, "", NULL, 0, 202, 0);
	CHECK(!root->next_sibling);
	a = root->first_child;
	expect(a, "a", root, 2, 200, 80 + 70);
	b = a->first_child;
	expect(b, "b", a, 2, 40, 36);
	expect(b->first_child, "c", b, 1, 4, 4);
	CHECK(!b->first_child->first_child);
	CHECK(!b->first_child->next_sibling);
	expect(b->next_sibling, "a", a, 1, 10, 10);
	CHECK(!b->next_sibling->next_sibling);
	n = a->next_sibling; /* as long as c: by name */
	expect(n, "b", root, 1, 1, 1);
	expect(n->next_sibling, "c", root, 1, 1, 1);
	CHECK(!n->next_sibling->next_sibling);
	kprof_tree_free(t);
	kprof_tree_free(NULL);
}

static void empty(void)
{
	struct kprof_tree *t;

	fake_reset();
	fake_finish(5);
	t = tree_of_fake();
	expect(kprof_tree_root(t), "", NULL, 0, 0, 0);
	CHECK(!kprof_tree_root(t)->first_child);
	kprof_tree_free(t);
}

/* A path a million names long, built and freed without recursion. */
static void deep(void)
{
	const uint32_t depth = 1000000;
	const struct kprof_node *n;
	struct kprof_tree *t;
	uint32_t a, steps = 0;

	fake_reset();
	fake_clock(1, 1);
	a = fake_what("a");
	fake_source(0, "operators")->source.begins = depth;
	fake_thread(0, 10, 10, "main");
	for (uint32_t i = 0; i < depth; i++)
		fake_begin(10 + i, 0, a);
	for (uint32_t i = 0; i < depth; i++)
		fake_end(10 + depth + i, 0);
	fake_finish(3000000);
	t = tree_of_fake();
	for (n = kprof_tree_root(t)->first_child; n; n = n->first_child) {
		steps++;
		if (n->next_sibling || n->calls != 1 || n->self_ns != (n->first_child ? 2 : 1))
			break;
	}
	CHECK(!n);
	CHECK_EQ(steps, depth);
	kprof_tree_free(t);
}

/* Every path different: refused at a bound, not served until memory is gone. */
#define NAMES 1500
static char names[NAMES][16];

/* Each name once as the outermost span, with each name once inside. */
static bool all_pairs(size_t at, struct store_record *out)
{
	size_t per_name = 2 * NAMES + 2, in_name = at % per_name;
	bool begin = in_name == 0 || (in_name % 2 && in_name < per_name - 1);

	if (at >= NAMES * per_name)
		return false;
	*out = (struct store_record){.type = begin ? STORE_BEGIN : STORE_END};
	if (begin) {
		out->begin.time_ns = 10 + at;
		out->begin.description =
			1 + (uint32_t)(in_name ? (in_name - 1) / 2 : at / per_name);
	} else {
		out->end.time_ns = 10 + at;
	}
	return true;
}

static void too_many(void)
{
	struct kprof_capture *c = NULL;
	struct kprof_tree *t;

	fake_reset();
	fake_clock(1, 1);
	for (int i = 0; i < NAMES; i++) {
		snprintf(names[i], sizeof(names[i]), "n%d", i);
		fake_what(names[i]);
	}
	fake_source(0, "operators")->source.begins = 1;
	fake_thread(0, 10, 10, "main");
	fake_finish(30000000);
	fake.generate = all_pairs;
	CHECK_EQ(kprof_capture_open("fake", &c), 0);
	CHECK_EQ(kprof_tree_new(c, &t), -E2BIG);
	CHECK(!t);
	CHECK(strstr(kprof_error_cause(), "call tree"));
	kprof_capture_close(c);
}

UNIT_MAIN(TEST(paths), TEST(empty), TEST(deep), TEST(too_many))
