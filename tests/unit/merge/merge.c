// SPDX-License-Identifier: BSD-2-Clause
/*
 * user/merge/: captures of machines whose clocks are known, as one. All times of the events are
 * true ones here, and are written as the machine's clock shows them.
 */
#include <inttypes.h>
#include <math.h>

#include "kprof/merge.h"
#include "model/timeline/timeline.h"
#include "sink_fixture.h"

enum { MACHINES = 5, PID = 100, WORKER = 103, TIMES = 200, DETAILS_NS = 8000000 };

static const struct machine {
	const char *host, *boot;
	int64_t ahead_ns; /* of the true time, at the true time MONO_NS */
	double drift;
	int64_t unix_ns; /* how wrong its Unix time is */
} machines[MACHINES] = {
	{"\"first\"", "\"boot of first\"", 0, 0, 0},
	{"\"second\"", "\"boot of second\"", -3 * (int64_t)SEC_NS, 30e-6, 40000000},
	{"\"third\"", "\"boot of third\"", -4 * (int64_t)SEC_NS, -10e-6, 0},
	{"\"fourth\"", "\"boot of fourth\"", -5 * (int64_t)SEC_NS, 5e-6, -900000000},
	{"\"alone\"", "\"boot of alone\"", -2 * (int64_t)SEC_NS, 0, 7000},
};

/* What one machine records. */
struct writer {
	struct made m;
	const struct machine *of;
	uint32_t main, worker, op, work, name, group, size, rank, seq, elements, type, of_type;
};

static uint64_t shown(const struct machine *of, uint64_t true_ns)
{
	double since = (double)(int64_t)(true_ns - MONO_NS);

	return true_ns + (uint64_t)of->ahead_ns + (uint64_t)(int64_t)llround(since * of->drift);
}

static void put_begin(struct writer *w, uint64_t true_ns, uint32_t thread, uint32_t what)
{
	made__put(&w->m, (struct store_record){STORE_BEGIN,
					       .begin = {shown(w->of, true_ns), thread, what}});
}

static void put_end(struct writer *w, uint64_t true_ns, uint32_t thread)
{
	made__put(&w->m,
		  (struct store_record){STORE_END, .end = {shown(w->of, true_ns), thread, 0}});
}

static uint32_t put_thread(struct writer *w, uint32_t tid, const char *name)
{
	made__put(&w->m, (struct store_record){STORE_THREAD,
					       .thread = {.index = w->m.threads,
							  .pid = PID,
							  .tid = tid,
							  .name = made__string(&w->m, name),
							  .start_ns = shown(w->of, MONO_NS)}});
	return w->m.threads++;
}

static void start(struct writer *w, const char *path, const struct machine *of, uint64_t from_ns)
{
	struct made *m = &w->m;

	*w = (struct writer){.of = of};
	CHECK_EQ(store_writer__open(path, &(struct outfile_opts){0}, &m->w), 0);
	made__clock(m, shown(of, from_ns), REAL_NS + from_ns - MONO_NS + (uint64_t)of->unix_ns);
	made__meta(m, "host", of->host);
	made__meta(m, "boot", of->boot);
	made__meta(m, "device.100.0", "{\"id\":0}");
	made__meta(m, "with_modules", "true");
	made__meta(m, "inputs", "{\"read\":5,\"none\":{\"list\":1}}");
	made__put(m, (struct store_record){STORE_SOURCE,
					   .source = {.name = made__string(m, "operators"),
						      .captured = 10,
						      .missed = 3,
						      .begins = TIMES}});
	made__put(m, (struct store_record){STORE_PROCESS,
					   .process = {.pid = PID,
						       .ppid = 1,
						       .comm = made__string(m, "python"),
						       .start_ns = shown(of, from_ns)}});
	w->main = put_thread(w, PID, "python");
	w->worker = put_thread(w, WORKER, "gloo");
	w->op = made__what(m, "aten::add", "", "cpu_op", 0);
	w->work = made__what(m, "AsyncAllreduceWork", "", "collective_comm", 0);
	w->name = made__string(m, "Collective name");
	w->group = made__string(m, "Process Group Name");
	w->size = made__string(m, "Group size");
	w->rank = made__string(m, "Rank");
	w->seq = made__string(m, "Seq");
	w->elements = made__string(m, "In msg nelems");
	w->type = made__string(m, "dtype");
	w->of_type = made__string(m, "Float");
}

/* A stack in a library that is named after the host, where a sample, a wait and device work are. */
static void put_details(struct writer *w)
{
	struct made *m = &w->m;
	uint32_t library = made__string(m, w->of->host), key = made__string(m, "at");
	const struct store_attr attr = {key, STORE_ATTR_STACK, 1};
	uint64_t ns = shown(w->of, MONO_NS + DETAILS_NS);

	made__put(m, (struct store_record){STORE_MODULE,
					   .module = {1, STORE_MODULE_FILE, library, 0}});
	made__put(m, (struct store_record){
			     STORE_FRAME,
			     .frame = {.id = 1, .kind = STORE_FRAME_NATIVE, .module = 1}});
	made__put(m, (struct store_record){STORE_STACK, .stack = {1, 0, 1}});
	made__put(m, (struct store_record){STORE_SAMPLE,
					   .sample = {.time_ns = ns, .thread = w->main, .stack = 1},
					   .attrs = &attr, .nr_attrs = 1});
	made__put(m, (struct store_record){STORE_WAIT, .wait = {.start_ns = ns,
								.wake_ns = ns,
								.end_ns = ns,
								.thread = w->worker,
								.stack = 1,
								.waker_pid = PID,
								.waker_tid = WORKER}});
	made__put(m, (struct store_record){STORE_ACTIVITY, .activity = {.pid = PID,
									.name = library,
									.start_ns = ns,
									.end_ns = ns,
									.correlation = 9}});
	made__put(m, (struct store_record){STORE_COUNTER,
					   .counter = {.time_ns = ns, .pid = PID, .name = key}});
}

static void finish(struct writer *w, uint64_t true_ns)
{
	CHECK_EQ(store_writer__finish(w->m.w, shown(w->of, true_ns)), 0);
}

/* A rank's part of a collective begins. */
static void put_part(struct writer *w, const char *name, uint32_t rank, uint32_t size,
		     const char *group, uint64_t number, uint64_t begin_ns)
{
	const struct store_attr attrs[] = {
		{w->name, STORE_ATTR_STRING, made__string(&w->m, name)},
		{w->group, STORE_ATTR_STRING, made__string(&w->m, group)},
		{w->size, STORE_ATTR_U64, size},
		{w->rank, STORE_ATTR_U64, rank},
		{w->seq, STORE_ATTR_U64, number},
		{w->elements, STORE_ATTR_U64, 64},
		{w->type, STORE_ATTR_STRING, w->of_type},
	};

	put_begin(w, begin_ns, w->worker, w->work);
	made__put(&w->m, (struct store_record){STORE_ARGS, .args = {store_writer__begins(w->m.w)},
					       .attrs = attrs, .nr_attrs = ARRAY_SIZE(attrs)});
}

/* The parts of all ranks of a collective: `last` begins at `at_ns`, and all end after that. */
static void meet_for(const char *name, struct writer *const *ranks, uint32_t nr, uint32_t size,
		     const char *group, uint64_t number, uint64_t at_ns)
{
	for (uint32_t rank = 0; rank < nr; rank++) {
		struct writer *w = ranks[rank];

		put_part(w, name, rank, size, group, number,
			 at_ns - (rank == number % size ? 0 : (uint64_t)rand() % 2000000));
		put_end(w, at_ns + 20000 + (uint64_t)rand() % 300000, w->worker);
	}
}

static void meet(struct writer *const *ranks, uint32_t size, const char *group, uint64_t number,
		 uint64_t at_ns)
{
	meet_for("allreduce", ranks, size, size, group, number, at_ns);
}

/* Each machine shares a group with the next one, but for the last one, which is alone. */
static void write_captures(void)
{
	static struct writer w[MACHINES];
	char path[32];

	srand(5);
	for (int i = 0; i < MACHINES; i++) {
		snprintf(path, sizeof(path), "%d.kprof", i);
		start(&w[i], in_scratch(path), &machines[i], MONO_NS + (i == 3 ? 5000000 : 0));
		/* An operator that is still running at the end. */
		put_begin(&w[i], MONO_NS + 6000000, w[i].main, w[i].op);
		put_details(&w[i]);
	}
	for (uint64_t n = 0; n < TIMES; n++) {
		for (int i = 0; i + 2 < MACHINES; i++) {
			char group[16];

			snprintf(group, sizeof(group), "%d", i);
			meet((struct writer *[]){&w[i], &w[i + 1]}, 2, group, n,
			     MONO_NS + 10000000 + n * 40000000 + (uint64_t)i * 3000000);
		}
	}
	for (int i = 0; i < MACHINES; i++)
		finish(&w[i], END_NS - (i == 3 ? SEC_NS : 0));
}

struct told {
	struct kprof_merge_machine all[MACHINES];
	size_t nr;
};

static void on_machine(void *ctx, const struct kprof_merge_machine *m)
{
	struct told *told = ctx;

	if (told->nr < MACHINES)
		told->all[told->nr++] = *m;
}

static int merge_of(const char *const *names, size_t nr, struct told *told)
{
	const struct kprof_merge_opts opts = {.sz = sizeof(opts),
					      .output = in_scratch("merged.kprof"),
					      .machine = told ? on_machine : NULL,
					      .ctx = told};
	const char *paths[8];

	for (size_t i = 0; i < nr; i++)
		paths[i] = in_scratch(names[i]);
	return kprof_merge(paths, nr, &opts);
}

struct look {
	struct kprof_capture *t;
	const struct told *told;
	uint64_t spans[MACHINES], open[MACHINES], last_ns;
	bool in_order;
};

/* Of a machine, its first operator and what it did for collectives, in the order of time. */
static int on_span(void *ctx, const struct tl_span *s)
{
	struct look *look = ctx;
	const struct tl_thread *th = timeline__thread(look->t, s->thread);
	size_t i = (size_t)(th->pid / 10000000);
	bool op = !strcmp(s->description->name, "aten::add");

	CHECK(i < MACHINES && th->pid % 10000000 == PID);
	CHECK_EQ(th->tid, th->pid - PID + (op ? PID : WORKER));
	look->spans[i]++;
	if (op) {
		int64_t off = (int64_t)(s->whole_start_ns - (MONO_NS + 6000000));

		CHECK(s->flags & KPROF_EVENT_OPEN_AT_END);
		CHECK(!(s->flags & KPROF_EVENT_OPEN_AT_START));
		CHECK(llabs(off) <= (int64_t)look->told->all[i].error_ns + 10000);
		/* It is drawn to where its own recording ended. */
		off = (int64_t)(s->whole_end_ns - (END_NS - (i == 3 ? SEC_NS : 0)));
		CHECK(llabs(off) <= (int64_t)look->told->all[i].error_ns + 10000);
		return 0;
	}
	CHECK_EQ(s->nr_attrs, 7);
	CHECK_STR(timeline__string(
			  look->t,
			  (uint32_t)timeline__attr(look->t, s->attrs, s->nr_attrs, "dtype")->value),
		  "Float");
	return 0;
}

/* Details are where they were, of the process and in the library of their machine. */
static void check_details(const struct told *told)
{
	char *strings[512] = {""};
	uint32_t paths[MACHINES + 1] = {0}, modules[MACHINES + 1] = {0}, frames[MACHINES + 1] = {0};
	uint32_t pids[4 * MACHINES] = {0}, seen[MACHINES] = {0};
	uint64_t event_ns = 0, sample_ns = 0;
	struct store_reader *in;
	struct store_record r;

	CHECK_EQ(store_reader__open(in_scratch("merged.kprof"), &in), 0);
	while (store_reader__next(in, &r) == 1) {
		uint32_t stack = 0, pid = 0, name = 0;
		uint64_t ns = 0;

		switch (r.type) {
		case STORE_BEGIN:
		case STORE_END: /* their times are at the same place */
			CHECK(r.begin.time_ns >= event_ns);
			event_ns = r.begin.time_ns;
			break;
		case STORE_STRING:
			strings[r.string.id % 512] = strndup(r.string.bytes, r.string.len);
			break;
		case STORE_MODULE:
			paths[r.module.id] = r.module.path;
			break;
		case STORE_FRAME:
			modules[r.frame.id] = r.frame.module;
			break;
		case STORE_STACK:
			frames[r.stack.id] = r.stack.frame;
			break;
		case STORE_THREAD:
			pids[r.thread.index] = r.thread.pid;
			break;
		case STORE_PROCESS:
			CHECK_EQ(r.process.ppid, r.process.pid - PID + 1);
			break;
		case STORE_SAMPLE:
			CHECK_EQ(r.attrs[0].value, r.sample.stack);
			CHECK(r.sample.time_ns >= sample_ns);
			sample_ns = r.sample.time_ns;
			ns = r.sample.time_ns, stack = r.sample.stack;
			pid = pids[r.sample.thread];
			break;
		case STORE_WAIT:
			ns = r.wait.end_ns, stack = r.wait.stack, pid = pids[r.wait.thread];
			CHECK_EQ(r.wait.waker_pid, pid);
			CHECK_EQ(r.wait.waker_tid, pid - PID + WORKER);
			break;
		case STORE_ACTIVITY:
			CHECK_EQ(r.activity.end_ns, r.activity.start_ns);
			ns = r.activity.start_ns, name = r.activity.name, pid = r.activity.pid;
			break;
		case STORE_COUNTER:
			ns = r.counter.time_ns, pid = r.counter.pid;
			break;
		default:
			break;
		}
		if (!pid)
			continue;
		seen[pid / 10000000]++;
		CHECK(llabs((int64_t)(ns - MONO_NS - DETAILS_NS)) <=
		      (int64_t)told->all[pid / 10000000].error_ns + 10000);
		name = stack ? paths[modules[frames[stack]]] : name;
		CHECK(!name || !strcmp(strings[name], machines[pid / 10000000].host));
	}
	for (int i = 0; i < MACHINES; i++)
		CHECK_EQ(seen[i], 4);
	for (int i = 1; i < 512; i++)
		free(strings[i]);
	store_reader__close(in);
}

static void clocks_of_machines(void)
{
	static const char *const names[] = {"0.kprof", "1.kprof", "2.kprof", "3.kprof", "4.kprof"};
	struct told told = {0};
	struct look look = {.told = &told};
	const struct kprof_source *source;
	const struct kprof_gap *gap;
	size_t gaps = 0;

	write_captures();
	CHECK_EQ(merge_of(names, MACHINES, &told), 0);
	CHECK_EQ(told.nr, MACHINES);
	CHECK_EQ(told.all[0].clock, KPROF_MERGE_CLOCK_ITS_OWN);
	CHECK_EQ(told.all[0].error_ns, 0);
	for (size_t i = 1; i < 4; i++) {
		CHECK_EQ(told.all[i].clock, KPROF_MERGE_CLOCK_COLLECTIVES);
		CHECK_EQ(told.all[i].collectives, TIMES);
		CHECK_EQ(told.all[i].first_pid, 10000000 * i);
		CHECK_EQ(told.all[i].slack_ns, 0);
		CHECK(told.all[i].error_ns >= 20000 * i && told.all[i].error_ns < 150000 * i);
		CHECK(fabs(told.all[i].drift_ppm + machines[i].drift * 1e6) < 20);
	}
	CHECK_EQ(told.all[4].clock, KPROF_MERGE_CLOCK_UNIX);
	CHECK_EQ(told.all[4].offset_ns, 2 * SEC_NS + 7000);

	CHECK_EQ(kprof_capture_open(in_scratch("merged.kprof"), &look.t), 0);
	CHECK_EQ(timeline__spans(look.t, on_span, &look), 0);
	CHECK_EQ(look.spans[0], TIMES + 1);
	CHECK_EQ(look.spans[1], 2 * TIMES + 1);
	CHECK_EQ(look.spans[2], 2 * TIMES + 1);
	CHECK_EQ(look.spans[3], TIMES + 1);
	CHECK_EQ(look.spans[4], 1);
	/* Sources of one name are one; its counts are all of theirs. */
	CHECK_EQ(kprof_capture_info(look.t)->nr_sources, 1);
	source = kprof_capture_source(look.t, 0);
	CHECK_EQ(source->captured, 10 * MACHINES);
	CHECK_EQ(source->begins, TIMES * MACHINES);
	CHECK_EQ(source->missed, 3 * MACHINES);
	CHECK(kprof_capture_meta(look.t, "device.100.0") &&
	      kprof_capture_meta(look.t, "device.30000100.0"));
	CHECK_STR(kprof_capture_meta(look.t, "inputs"), "{\"read\":25,\"none\":{\"list\":5}}");
	CHECK_STR(kprof_capture_meta(look.t, "host"), "\"first\"");
	CHECK(!kprof_capture_meta(look.t, "boot") && kprof_capture_meta(look.t, "merged"));
	for (size_t i = 0; (gap = kprof_capture_gap(look.t, i)); i++, gaps++)
		CHECK_EQ(gap->pid, 30000000 + PID);
	CHECK_EQ(gaps, 2); /* the fourth began later, and was over earlier */
	kprof_capture_close(look.t);
	check_details(&told);
	/* What has been merged is not merged again. */
	CHECK_EQ(rename(in_scratch("merged.kprof"), in_scratch("before.kprof")), 0);
	CHECK_EQ(merge_of((const char *const[]){"0.kprof", "before.kprof"}, 2, NULL), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "has been merged"));
}

/* Two parts of one recording's process, one after the other, and at the same time. */
static void one_machine(void)
{
	static const char *const names[] = {"early.kprof", "late.kprof", "both.kprof"};
	struct told told = {0};
	struct writer w;
	struct kprof_capture *t;

	start(&w, in_scratch(names[0]), &machines[0], MONO_NS);
	finish(&w, MONO_NS + SEC_NS);
	start(&w, in_scratch(names[1]), &machines[0], MONO_NS + SEC_NS);
	finish(&w, MONO_NS + 2 * SEC_NS);
	start(&w, in_scratch(names[2]), &machines[0], MONO_NS);
	finish(&w, MONO_NS + 2 * SEC_NS);
	CHECK_EQ(merge_of(names, 2, &told), 0);
	CHECK_EQ(told.nr, 1);
	CHECK_EQ(told.all[0].captures, 2);
	CHECK_EQ(kprof_capture_open(in_scratch("merged.kprof"), &t), 0);
	CHECK_EQ(kprof_capture_info(t)->start_mono_ns, MONO_NS);
	CHECK_EQ(kprof_capture_info(t)->start_real_ns, REAL_NS);
	CHECK_EQ(kprof_capture_info(t)->end_mono_ns, MONO_NS + 2 * SEC_NS);
	CHECK(kprof_capture_info(t)->complete);
	kprof_capture_close(t);
	CHECK_EQ(unlink(in_scratch("merged.kprof")), 0);
	CHECK_EQ(merge_of(names, 3, NULL), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "both have process 100 at the same time"));
	CHECK(!file_exists(in_scratch("merged.kprof")));
	CHECK_EQ(merge_of((const char *const[]){"early.kprof", "early.kprof"}, 2, NULL), -EINVAL);
	CHECK_EQ(link(in_scratch("early.kprof"), in_scratch("link.kprof")), 0);
	CHECK_EQ(merge_of((const char *const[]){"early.kprof", "link.kprof"}, 2, NULL), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "are the same file"));
	/* Nor is it replaced while it is read. */
	CHECK_EQ(rename(in_scratch("link.kprof"), in_scratch("merged.kprof")), 0);
	CHECK_EQ(merge_of((const char *const[]){"late.kprof", "early.kprof"}, 2, NULL), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "are the same file"));
	CHECK_EQ(unlink(in_scratch("merged.kprof")), 0);
	CHECK_EQ(merge_of((const char *const[]){"early.kprof", "none.kprof"}, 2, NULL), -ENOENT);
	CHECK_EQ(merge_of(names, 0, NULL), -EINVAL);
}

/* Two trainings whose groups have the same names: their collectives are not each other's. */
static void two_trainings(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof"};
	static struct writer a, b;
	struct told told = {0};

	start(&a, in_scratch(names[0]), &machines[0], MONO_NS);
	start(&b, in_scratch(names[1]), &machines[1], MONO_NS);
	/* Both have rank 0 of group 0 and its collective 1, and also rank 1. */
	for (uint64_t n = 0; n < 10; n++) {
		meet((struct writer *[]){&a, &a}, 2, "0", n, MONO_NS + 10000000 + n * 10000000);
		meet((struct writer *[]){&b, &b}, 2, "0", n, MONO_NS + 300000000 + n * 10000000);
	}
	/* One has rank 0, the other one rank 1, seconds apart: no two clocks are like that. */
	for (uint64_t n = 0; n < 4; n++) {
		static struct writer other;

		start(&other, in_scratch("other.kprof"), &machines[2], MONO_NS);
		meet((struct writer *[]){&a, &other}, 2, "1", n,
		     MONO_NS + 400000000 + n * 10000000);
		meet((struct writer *[]){&other, &b}, 2, "1", n,
		     MONO_NS + 400000000 + n * 90000000);
		store_writer__discard(other.m.w);
	}
	finish(&a, END_NS);
	finish(&b, END_NS);
	CHECK_EQ(merge_of(names, 2, &told), 0);
	CHECK_EQ(told.all[1].clock, KPROF_MERGE_CLOCK_UNIX);
}

/* What does not say how clocks differ, although its times would. */
static void no_bounds(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof"};
	static struct writer a, b;

	for (int what = 0; what < 3; what++) {
		struct told told = {0};

		start(&a, in_scratch(names[0]), &machines[0], MONO_NS);
		start(&b, in_scratch(names[1]), &machines[1], MONO_NS);
		for (uint64_t n = 0; n < 20; n++) {
			struct writer *both[] = {&a, &b}, *own[2][2] = {{&a, &a}, {&b, &b}};
			uint64_t at_ns = MONO_NS + 10000000 + n * 10000000;

			if (what == 0) /* for each other there may be nothing */
				meet_for("all_to_all", both, 2, 2, "0", n, at_ns);
			else if (what == 1) /* the root need not wait */
				meet_for("broadcast", both, 2, 2, "0", n, at_ns);
			for (int i = 0; i < 2 && what == 2;
			     i++) /* each has ranks 0 and 1 of four */
				meet_for("allreduce", own[i], 2, 4, "0", n, at_ns);
		}
		finish(&a, END_NS);
		finish(&b, END_NS);
		CHECK_EQ(merge_of(names, 2, &told), 0);
		CHECK_EQ(told.nr, 2);
		CHECK_EQ(told.all[1].clock, KPROF_MERGE_CLOCK_UNIX);
	}
}

/*
 * One begins the first collective before it is recorded, and is in the last one when its recording
 * is over: neither is when it really began or ended, and bounds nothing.
 */
static void cut_collectives(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof"};
	static struct writer a, b;
	struct told told = {0};

	start(&a, in_scratch(names[0]), &machines[0], MONO_NS);
	start(&b, in_scratch(names[1]), &machines[1], MONO_NS + 5 * SEC_NS);
	put_part(&a, "allreduce", 0, 2, "0", 1, MONO_NS + SEC_NS);
	put_end(&a, MONO_NS + 2 * SEC_NS, a.worker);
	put_part(&b, "allreduce", 1, 2, "0", 1, MONO_NS + 5 * SEC_NS);
	put_end(&b, MONO_NS + 5 * SEC_NS + 1000, b.worker);
	for (uint64_t n = 2; n < 20; n++)
		meet((struct writer *[]){&a, &b}, 2, "0", n, MONO_NS + 5 * SEC_NS + n * 10000000);
	put_part(&b, "allreduce", 1, 2, "0", 20, MONO_NS + 6 * SEC_NS);
	finish(&b, MONO_NS + 7 * SEC_NS);
	put_part(&a, "allreduce", 0, 2, "0", 20, MONO_NS + 8 * SEC_NS);
	put_end(&a, MONO_NS + 8 * SEC_NS + 1000, a.worker);
	finish(&a, END_NS);
	CHECK_EQ(merge_of(names, 2, &told), 0);
	CHECK_EQ(told.all[1].clock, KPROF_MERGE_CLOCK_COLLECTIVES);
	CHECK_EQ(told.all[1].slack_ns, 0);
}

/* Unix time tells of a long recording how fast the clock is, too. */
static void by_unix_time(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof"};
	struct told told = {0};
	struct writer w;

	for (int i = 0; i < 2; i++) {
		start(&w, in_scratch(names[i]), &machines[i], MONO_NS);
		made__clock(&w.m, shown(&machines[i], MONO_NS + 100 * SEC_NS),
			    REAL_NS + 100 * SEC_NS + (uint64_t)machines[i].unix_ns);
		finish(&w, MONO_NS + 100 * SEC_NS);
	}
	CHECK_EQ(merge_of(names, 2, &told), 0);
	CHECK_EQ(told.all[1].clock, KPROF_MERGE_CLOCK_UNIX);
	CHECK(fabs(told.all[1].drift_ppm + 30) < 0.1);
	CHECK(llabs(told.all[1].offset_ns - (int64_t)(3 * SEC_NS + 40000000)) < 2000000);
}

/* Two machines of one name that booted at the same moment, and a capture that has no clocks. */
static void which_machine(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof"};
	const struct machine twin = {"\"first\"", "\"another boot\"", 0, 0, 0};
	struct told told = {0};
	struct writer w;

	start(&w, in_scratch(names[0]), &machines[0], MONO_NS);
	finish(&w, END_NS);
	start(&w, in_scratch(names[1]), &twin, MONO_NS);
	finish(&w, END_NS);
	CHECK_EQ(merge_of(names, 2, &told), 0);
	CHECK_EQ(told.nr, 2);
	CHECK_EQ(store_writer__open(in_scratch(names[1]), &(struct outfile_opts){0}, &w.m.w), 0);
	CHECK_EQ(store_writer__finish(w.m.w, END_NS), 0);
	CHECK_EQ(merge_of(names, 2, NULL), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "before it had any reading of the clocks"));
}

static void run_in_scratch(void)
{
	scratch__make();
	clocks_of_machines();
	one_machine();
	two_trainings();
	no_bounds();
	which_machine();
	cut_collectives();
	by_unix_time();
	scratch__remove();
}

UNIT_MAIN(TEST(run_in_scratch))
