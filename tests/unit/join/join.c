// SPDX-License-Identifier: BSD-2-Clause
/* kprof_join(): of parts that are written here, by hand. */
#include "kprof/chunks.h"
#include "sink_fixture.h"
#include "util/util.h"

/* A part of recording `of`, from one time to another, which may be cut short. */
struct part {
	struct made m;
	uint32_t op, inner, key;
};

#define PUT(...) made__put(&p->m, (struct store_record){__VA_ARGS__})

static void part__start(struct part *p, const char *path, const char *of, uint64_t from_ns)
{
	struct made *m = &p->m;
	char json[64];

	*p = (struct part){0};
	CHECK_EQ(store_writer__open(path, NULL, &m->w), 0);
	PUT(STORE_CLOCK, .clock = {from_ns, REAL_NS + from_ns - MONO_NS});
	snprintf(json, sizeof(json), "{\"of\":\"%s\",\"number\":1}", of);
	made__meta(m, "part", json);
	made__meta(m, "boot", "\"one\"");
	PUT(STORE_SOURCE, .source = {.name = made__string(m, "ops")});
	PUT(STORE_PROCESS,
	    .process = {.pid = 7, .start_ns = MONO_NS, .comm = made__string(m, "p")});
	PUT(STORE_EXECUTABLE,
	    .executable = {.pid = 7, .start_ns = MONO_NS, .path = made__string(m, "/bin/p")});
	made__thread(m, 7, 7, "main");
	PUT(STORE_DESCRIPTION, .description = {.id = 1, .name = made__string(m, "outer")});
	PUT(STORE_DESCRIPTION, .description = {.id = 2, .name = made__string(m, "inner")});
	p->key = made__string(m, "begun_before_ns");
}

static void begin(struct part *p, uint64_t ns, uint32_t what)
{
	PUT(STORE_BEGIN, .begin = {ns, 0, what});
}

static void end(struct part *p, uint64_t ns, uint32_t flags)
{
	PUT(STORE_END, .end = {ns, 0, flags});
}

static void wait_of(struct part *p, uint64_t from_ns, uint64_t to_ns, uint32_t flags)
{
	PUT(STORE_WAIT,
	    .wait = {.start_ns = from_ns, .wake_ns = to_ns, .end_ns = to_ns, .flags = flags});
}

/* fired: what its source says. end_ns 0: it is cut short. */
static void part__end(struct part *p, uint64_t fired, uint64_t end_ns)
{
	PUT(STORE_SOURCE,
	    .source = {.name = 1, .fired = fired, .captured = fired, .begins = fired});
	if (end_ns)
		CHECK_EQ(store_writer__finish(p->m.w, end_ns), 0);
	else
		CHECK_EQ(store_writer__salvage(p->m.w), 0);
}

/* ---- what came out ---- */

static struct {
	uint32_t of[32];
	uint64_t begin_ns[16], end_ns[16], wait_from_ns, wait_to_ns, fired, gap_from_ns, gap_to_ns;
	uint64_t time_on_ns, args_span;
	uint32_t end_flags[16], wait_flags, begins, ends;
	bool complete;
} out;

static void look(const char *path)
{
	struct store_reader_info info;
	struct store_record r;
	struct store_reader *in;

	memset(&out, 0, sizeof(out));
	CHECK_EQ(store_reader__open(path, &in), 0);
	while (store_reader__next(in, &r) == 1) {
		out.of[r.type]++;
		if (r.type == STORE_BEGIN)
			out.begin_ns[out.begins++ & 15] = r.begin.time_ns;
		if (r.type == STORE_END) {
			out.end_flags[out.ends & 15] = r.end.flags;
			out.end_ns[out.ends++ & 15] = r.end.time_ns;
		}
		if (r.type == STORE_WAIT) {
			out.wait_from_ns = r.wait.start_ns;
			out.wait_to_ns = r.wait.end_ns;
			out.wait_flags = r.wait.flags;
		}
		if (r.type == STORE_SOURCE)
			out.fired = r.source.fired;
		if (r.type == STORE_GAP) {
			out.gap_from_ns = r.gap.start_ns;
			out.gap_to_ns = r.gap.end_ns;
		}
		if (r.type == STORE_THREAD_TIME)
			out.time_on_ns = r.thread_time.on_ns;
		if (r.type == STORE_ARGS)
			out.args_span = r.args.span;
	}
	store_reader__info(in, &info);
	out.complete = info.complete;
	store_reader__close(in);
}

static int join(const char *const *paths, size_t nr, struct kprof_join_info *info)
{
	struct kprof_join_opts opts = {.sz = sizeof(opts), .output = in_scratch("all.kprof")};
	int err = kprof_join(paths, nr, &opts, info);

	if (!err)
		look(opts.output);
	return err;
}

#define AT(ms) (MONO_NS + (ms)*1000000ull)

static void first_part(const char *path, const char *of)
{
	struct part part, *p = &part;

	part__start(p, path, of, AT(0));
	begin(p, AT(1), 1);
	begin(p, AT(2), 2);
	wait_of(p, AT(5), AT(10), STORE_WAIT_SLEEPING | STORE_WAIT_TO_END);
	PUT(STORE_THREAD_TIME, .thread_time = {.start_ns = AT(0),
					       .end_ns = AT(10),
					       .on_ns = 5000000,
					       .blocked_ns = 5000000,
					       .told = 1});
	PUT(STORE_GAP,
	    .gap = {.pid = 7, .what = 1, .reason = 1, .start_ns = AT(3), .end_ns = AT(10)});
	part__end(p, 2, AT(10));
}

/* Both spans go on, the inner one ends, a third one begins; times are of ms. */
static void second_part(const char *path, const char *of, uint64_t from_ms)
{
	struct part part, *p = &part;
	struct store_attr before;

	part__start(p, path, of, AT(from_ms));
	before = (struct store_attr){.key = p->key, .type = STORE_ATTR_U64, .value = 9};
	begin(p, AT(from_ms), 1);
	PUT(STORE_ARGS, .args = {1}, .attrs = &before, .nr_attrs = 1);
	begin(p, AT(from_ms), 2);
	before.key = made__string(&p->m, "mine");
	PUT(STORE_ARGS, .args = {2}, .attrs = &before, .nr_attrs = 1);
	end(p, AT(22), KPROF_EVENT_OPEN_AT_START);
	begin(p, AT(23), 2);
	end(p, AT(24), 0);
	wait_of(p, AT(from_ms), AT(25), STORE_WAIT_SLEEPING | STORE_WAIT_FROM_START);
	PUT(STORE_THREAD_TIME, .thread_time = {.start_ns = AT(from_ms),
					       .end_ns = AT(30),
					       .on_ns = AT(30) - AT(from_ms) - 1000000,
					       .blocked_ns = 1000000,
					       .told = 1});
	PUT(STORE_GAP,
	    .gap = {.pid = 7, .what = 1, .reason = 1, .start_ns = AT(3), .end_ns = AT(30)});
	part__end(p, 3, AT(30));
}

static void two_parts_are_one(void)
{
	/* in whatever order they are given */
	const char *paths[] = {in_scratch("b.kprof"), in_scratch("a.kprof")};
	struct kprof_join_info info;

	first_part(paths[1], "x");
	second_part(paths[0], "x", 10);
	CHECK_EQ(join(paths, 2, &info), 0);
	CHECK_EQ(info.joined, 2);
	CHECK_EQ(info.missing + info.incomplete, 0);
	CHECK_EQ(info.end_mono_ns - info.start_mono_ns, 30000000);
	CHECK(out.complete);
	CHECK_EQ(out.begins, 3);
	CHECK_EQ(out.begin_ns[0], AT(1));
	CHECK_EQ(out.begin_ns[2], AT(23));
	CHECK_EQ(out.ends, 2); /* the outer one goes on to the end */
	CHECK_EQ(out.end_ns[0], AT(22));
	CHECK_EQ(out.end_flags[0], 0); /* it did not begin before the whole */
	CHECK_EQ(out.of[STORE_WAIT], 1);
	CHECK_EQ(out.wait_from_ns, AT(5));
	CHECK_EQ(out.wait_to_ns, AT(25));
	CHECK_EQ(out.wait_flags, STORE_WAIT_SLEEPING);
	CHECK_EQ(out.of[STORE_THREAD_TIME], 1);
	CHECK_EQ(out.time_on_ns, 5000000 + 19000000);
	CHECK_EQ(out.of[STORE_GAP], 1);
	CHECK_EQ(out.gap_from_ns, AT(3));
	CHECK_EQ(out.gap_to_ns, AT(30));
	CHECK_EQ(out.fired, 5);
	CHECK_EQ(out.of[STORE_THREAD] + out.of[STORE_PROCESS] + out.of[STORE_DESCRIPTION], 4);
	CHECK_EQ(out.of[STORE_ARGS], 1); /* not what split the span */
	CHECK_EQ(out.args_span, 2);
}

static void one_is_missing(void)
{
	const char *paths[] = {in_scratch("c.kprof"), in_scratch("d.kprof")};
	struct kprof_join_info info;

	first_part(paths[0], "x");
	second_part(paths[1], "x", 20);
	CHECK_EQ(join(paths, 2, &info), 0);
	CHECK_EQ(info.missing, 1);
	CHECK_EQ(out.of[STORE_GAP], 2);
	CHECK_EQ(out.begins, 3); /* they are the same spans nevertheless */
	CHECK_EQ(out.of[STORE_WAIT], 2);
}

/* The later recording has other numbers, and begins before the first one ends. */
static void two_recordings_overlap(void)
{
	const char *paths[] = {in_scratch("e.kprof"), in_scratch("f.kprof")};
	struct kprof_join_info info;

	first_part(paths[0], "x");
	second_part(paths[1], "y", 8);
	CHECK_EQ(join(paths, 2, &info), 0);
	CHECK_EQ(info.missing, 0);
	CHECK_EQ(out.begins, 3);
	CHECK_EQ(out.of[STORE_THREAD], 1);
	CHECK_EQ(out.of[STORE_PROCESS], 1);
	CHECK_EQ(out.of[STORE_EXECUTABLE], 1);
	CHECK_EQ(out.of[STORE_WAIT], 1); /* cut where the second one begins, and put together */
	CHECK_EQ(out.wait_from_ns, AT(5));
	CHECK_EQ(out.wait_to_ns, AT(25));
}

/* Names of captures; before one is read, names are removed, as trimming does meanwhile. */
struct removal {
	const char *const *paths;
	size_t first, nr; /* once `first` are copied, the next `nr` go */
};

static int remove_some(void *ctx, size_t done, size_t total)
{
	const struct removal *r = ctx;

	for (size_t i = 0; done == r->first && i < r->nr; i++)
		CHECK_EQ(unlink(r->paths[r->first + i]), 0);
	return 0;
}

/* What is removed while others are copied costs only itself, and a gap says where it was. */
static void one_is_removed_meanwhile(void)
{
	const char *paths[] = {in_scratch("g.kprof"), in_scratch("h.kprof"), in_scratch("i.kprof")};
	struct removal removal = {.paths = paths, .first = 1, .nr = 1};
	struct kprof_join_opts opts = {.sz = sizeof(opts),
				       .output = in_scratch("left.kprof"),
				       .progress = remove_some,
				       .ctx = &removal};
	struct kprof_join_info info;

	first_part(paths[0], "x");
	second_part(paths[1], "x", 10);
	second_part(paths[2], "x", 30);
	CHECK_EQ(kprof_join(paths, 3, &opts, &info), -ENOENT);
	CHECK(access(opts.output, F_OK));
	second_part(paths[1], "x", 10);
	opts.skip_gone = true;
	CHECK_EQ(kprof_join(paths, 3, &opts, &info), 0);
	look(opts.output);
	CHECK(out.complete);
	CHECK(info.joined == 2 && info.gone == 1 && info.missing == 1 && !info.incomplete);
	CHECK_EQ(out.gap_from_ns, AT(10));
	CHECK_EQ(out.gap_to_ns, AT(30));
}

/* The oldest ones are not there when it begins: it is of what is left, from there on. */
static void the_oldest_are_gone(void)
{
	const char *paths[] = {in_scratch("no.kprof"), in_scratch("j.kprof")};
	struct kprof_join_opts opts = {
		.sz = sizeof(opts), .output = in_scratch("all.kprof"), .skip_gone = true};
	struct kprof_join_info info;

	second_part(paths[1], "x", 10);
	CHECK_EQ(kprof_join(paths, 2, &opts, &info), 0);
	CHECK(info.joined == 1 && info.gone == 1 && !info.missing);
	CHECK_EQ(info.start_mono_ns, AT(10));
	CHECK_EQ(unlink(opts.output), 0);
	CHECK_EQ(kprof_join(paths, 1, &opts, &info), -ENOENT);
	CHECK(access(opts.output, F_OK));
}

static void what_is_refused(void)
{
	const char *paths[] = {in_scratch("e.kprof"), in_scratch("no.kprof")};
	struct kprof_join_opts opts = {.sz = sizeof(opts), .output = in_scratch("none.kprof")};

	CHECK(kprof_join(paths, 2, &opts, NULL) < 0);
	CHECK_EQ(kprof_join(paths, 0, &opts, NULL), -EINVAL);
	opts.from_mono_ns = AT(1000);
	CHECK_EQ(kprof_join(paths, 1, &opts, NULL), -EINVAL);
	CHECK(access(opts.output, F_OK));
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(two_parts_are_one), TEST(one_is_missing),
	  TEST(two_recordings_overlap), TEST(one_is_removed_meanwhile), TEST(the_oldest_are_gone),
	  TEST(what_is_refused), {"(clean-up)", scratch__remove})
