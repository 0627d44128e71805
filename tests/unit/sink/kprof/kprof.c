// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/sink/kprof/: what is told of spans, devices and threads finds its place in a copy, also of
 * one process.
 */
#include "model/timeline/timeline.h"
#include "sink_fixture.h"

enum { PIDS = 2, SPANS = 120000, DEPTH = 3 };

/* Each span is told its own begin as an attribute, once at its begin, and again before its end. */
static void put_args(struct made *m, uint64_t span, uint64_t begin_ns, uint32_t key)
{
	const struct store_attr attr = {key, STORE_ATTR_U64, begin_ns};

	made__put(m,
		  (struct store_record){STORE_ARGS, .args = {span}, .attrs = &attr, .nr_attrs = 1});
}

static void put_device(struct made *m, uint32_t pid, uint32_t thread, uint32_t key)
{
	const struct store_attr attr = {key, STORE_ATTR_STRING, key};

	made__put(m, (struct store_record){
			     STORE_ACTIVITY,
			     .activity = {.pid = pid, .type = 6, .name = key, .start_ns = pid},
			     .attrs = &attr, .nr_attrs = 1});
	made__put(m, (struct store_record){
			     STORE_API, .api = {.thread = thread, .name = key, .start_ns = pid}});
	made__put(m, (struct store_record){STORE_INSTANT, .instant = {pid, thread, 1}});
	made__put(m, (struct store_record){STORE_COUNTER,
					   .counter = {.pid = pid, .name = key, .value = -1}});
}

/* A module, and two frames with stacks; the second has its names only after it was used. */
static void put_stacks(struct made *m, uint32_t key)
{
	const struct store_line lines[] = {{made__string(m, "inlined"), key, 3, 0},
					   {made__string(m, "_Z5outerv"), 0, 0, 0}};

	made__put(m, (struct store_record){
			     STORE_MODULE,
			     .module = {1, STORE_MODULE_FILE, made__string(m, "/lib/x.so"), key}});
	for (uint32_t id = 1; id <= 2; id++) {
		made__put(m, (struct store_record){STORE_FRAME, .frame = {id, STORE_FRAME_NATIVE, 1,
									  id, 0, 0, NULL}});
		made__put(m, (struct store_record){STORE_STACK, .stack = {id, id - 1, id}});
	}
	made__put(m, (struct store_record){STORE_FRAME,
					   .frame = {2, STORE_FRAME_NATIVE, 1, 2, key, 2, lines}});
}

static void put_sample(struct made *m, uint32_t pid, uint32_t thread, uint32_t key)
{
	const struct store_attr attr = {key, STORE_ATTR_STACK, 2};

	made__put(m, (struct store_record){
			     STORE_SAMPLE,
			     .sample = {MONO_NS + pid, thread, 2, 1000 + pid, KPROF_SAMPLE_GIL},
			     .attrs = &attr, .nr_attrs = 1});
}

/*
 * Two processes in turn, nested spans; ids of strings differ from those of a copy of one of them.
 */
static void write_two(const char *path)
{
	uint64_t numbers[PIDS][DEPTH], begins[PIDS][DEPTH];
	uint32_t threads[PIDS], key, description;
	uint64_t ns = 0;
	struct made m;

	made__start(&m, path);
	made__process(&m, 7, 1, "only seven's");
	threads[0] = made__thread(&m, 7, 7, "thread of seven");
	made__process(&m, 8, 1, "eight");
	threads[1] = made__thread(&m, 8, 8, "eight");
	description = made__what(&m, "op", "", "cpu_op", 0);
	key = made__string(&m, "key");
	for (int i = 0; i < SPANS / DEPTH / PIDS; i++) {
		for (int depth = 0; depth < DEPTH; depth++) {
			for (int p = 0; p < PIDS; p++) {
				begins[p][depth] = MONO_NS + ++ns;
				made__begin(&m, ns, threads[p], description);
				numbers[p][depth] = store_writer__begins(m.w);
				put_args(&m, numbers[p][depth], begins[p][depth], key);
			}
		}
		for (int depth = DEPTH - 1; depth >= 0; depth--) {
			for (int p = 0; p < PIDS; p++) {
				put_args(&m, numbers[p][depth], begins[p][depth], key);
				made__end(&m, ++ns, threads[p], 0);
			}
		}
	}
	made__own_name(&m, threads[0], "only seven's own");
	made__own_name(&m, threads[1], "eight's own");
	put_device(&m, 7, threads[0], key);
	put_device(&m, 8, threads[1], key);
	put_stacks(&m, key);
	put_sample(&m, 7, threads[0], key);
	put_sample(&m, 8, threads[1], key);
	made__finish(&m);
}

struct span_seen {
	uint64_t begin_ns, told_ns;
	int told;
};

struct look {
	struct span_seen *spans; /* by number */
	uint64_t begun;
	uint64_t stack[PIDS][DEPTH]; /* by thread */
	int depth[PIDS];
	size_t own_names, activities, apis, instants, counters, samples;
	uint32_t key, pid;
	uint32_t own_name; /* the string that is seven's, alone or beside eight's */
};

static void look_at_end(struct look *l, uint32_t thread)
{
	const struct span_seen *s = &l->spans[l->stack[thread][--l->depth[thread]]];

	CHECK_EQ(s->told, 2); /* by now */
	CHECK_EQ(s->told_ns, s->begin_ns);
}

static void look_at_device(struct look *l, const struct store_record *r)
{
	switch (r->type) {
	case STORE_ACTIVITY:
		l->activities++;
		CHECK_EQ(r->activity.name, l->key);
		CHECK_EQ(r->nr_attrs, 1);
		CHECK_EQ(r->attrs[0].key, l->key);
		CHECK_EQ(r->attrs[0].value, l->key);
		CHECK(!l->pid || r->activity.pid == l->pid);
		break;
	case STORE_API:
		l->apis++;
		CHECK_EQ(r->api.name, l->key);
		CHECK(!l->pid || r->api.start_ns == l->pid);
		break;
	case STORE_INSTANT:
		l->instants++;
		CHECK(!l->pid || r->instant.time_ns == l->pid);
		break;
	case STORE_COUNTER:
		l->counters++;
		CHECK_EQ(r->counter.name, l->key);
		CHECK(!l->pid || r->counter.pid == l->pid);
		break;
	case STORE_SAMPLE:
		l->samples++;
		CHECK_EQ(r->sample.stack, 2);
		CHECK(!l->pid || r->sample.weight_ns == 1000 + l->pid);
		CHECK_EQ(r->nr_attrs, 1);
		CHECK_EQ(r->attrs[0].key, l->key);
		CHECK_EQ(r->attrs[0].value, 2);
		break;
	default:
		break;
	}
}

static void look_at(struct look *l, const struct store_record *r)
{
	switch (r->type) {
	case STORE_STRING:
		if (r->string.len == 3 && !memcmp(r->string.bytes, "key", 3))
			l->key = r->string.id;
		if (r->string.len == 16 && !memcmp(r->string.bytes, "only seven's own", 16))
			l->own_name = r->string.id;
		break;
	case STORE_THREAD_NAME:
		l->own_names++;
		CHECK_EQ(r->thread_name.name == l->own_name,
			 r->thread_name.thread == 0 && l->pid != 8);
		break;
	case STORE_BEGIN:
		l->spans[++l->begun].begin_ns = r->begin.time_ns;
		l->stack[r->begin.thread][l->depth[r->begin.thread]++] = l->begun;
		break;
	case STORE_END:
		look_at_end(l, r->end.thread);
		break;
	case STORE_ARGS:
		CHECK(r->args.span <= SPANS);
		CHECK_EQ(r->nr_attrs, 1);
		CHECK_EQ(r->attrs[0].key, l->key);
		l->spans[r->args.span].told++;
		l->spans[r->args.span].told_ns = r->attrs[0].value;
		break;
	default:
		look_at_device(l, r);
	}
}

static void check_copy(const char *path, uint32_t pid)
{
	struct look l = {.spans = calloc(SPANS + 1, sizeof(*l.spans)), .pid = pid};
	size_t processes = pid ? 1 : 2;
	struct store_reader *r = NULL;
	struct store_record record;

	CHECK_EQ(store_reader__open(path, &r), 0);
	while (store_reader__next(r, &record) == 1)
		look_at(&l, &record);
	store_reader__close(r);
	CHECK_EQ(l.begun, processes * SPANS / PIDS);
	CHECK_EQ(l.own_names, processes);
	CHECK_EQ(l.activities, processes);
	CHECK_EQ(l.apis, processes);
	CHECK_EQ(l.instants, processes);
	CHECK_EQ(l.counters, processes);
	CHECK_EQ(l.samples, processes);
	free(l.spans);
}

/* As the model sees them: names and files are the same whatever their ids. */
static void check_stacks(const char *path)
{
	struct kprof_capture *t = NULL;
	struct tl_call calls[8];

	CHECK_EQ(kprof_capture_open(path, &t), 0);
	CHECK_EQ(timeline__nr_stacks(t), 2);
	CHECK_EQ(timeline__calls(t, 2, calls, ARRAY_SIZE(calls)), 3);
	CHECK_STR(calls[0].line->function, "inlined");
	CHECK_STR(calls[0].line->file, "key");
	CHECK_STR(calls[1].line->function, "outer");
	CHECK_STR(calls[1].frame->op, "key");
	CHECK_STR(calls[2].line->function, "x.so+0x1");
	CHECK_STR(calls[2].frame->module->build_id, "key");
	kprof_capture_close(t);
}

static void details_find_their_place(void)
{
	const char *in = in_scratch("two.kprof"), *out = in_scratch("copy.kprof");

	write_two(in);
	check_copy(in, 0);
	CHECK_EQ(export_as(in, (struct kprof_export_opts){.path = out}), 0);
	check_copy(out, 0);
	check_stacks(out);
	CHECK_EQ(export_as(in, (struct kprof_export_opts){.path = out, .pid = 7}), 0);
	check_copy(out, 7);
	CHECK_EQ(export_as(in, (struct kprof_export_opts){.path = out, .pid = 8}), 0);
	check_copy(out, 8);
	check_stacks(out);
}

/*
 * The spans that details in front of the cut were about are gone: so are those details in the copy.
 */
static void of_a_cut_capture(void)
{
	const char *in = in_scratch("two.kprof"), *cut = in_scratch("cut.kprof");
	const char *out = in_scratch("copy.kprof");
	struct store_reader_info info;
	struct store_reader *r = NULL;
	struct seen seen, all;
	uint8_t *bytes;
	size_t nr;

	write_two(in);
	CHECK_EQ(store_reader__open(in, &r), 0);
	CHECK_EQ(read_all(r, STORE_READ_ALL, &all, &info), 0);
	store_reader__close(r);
	bytes = slurp(in, &nr);
	for (size_t n = nr / 4; n < nr; n += nr / 5) {
		spit(cut, bytes, n);
		CHECK_EQ(export_as(cut, (struct kprof_export_opts){.path = out}), 0);
		CHECK_EQ(store_reader__open(out, &r), 0);
		CHECK_EQ(read_all(r, STORE_READ_ALL, &seen, &info), 0);
		CHECK(!info.complete && !info.lost_bytes);
		CHECK(seen.begins < all.begins && seen.last_span <= seen.begins);
		store_reader__close(r);
	}
	free(bytes);
}

UNIT_MAIN({"(set-up)", scratch__make}, TEST(details_find_their_place), TEST(of_a_cut_capture),
	  {"(clean-up)", scratch__remove})
