// SPDX-License-Identifier: BSD-2-Clause
/* user/merge/: captures of several machines as one, on one clock. */
#include "merge_fixture.h"
#include "model/timeline/timeline.h"

/* Each machine shares a group with the next one, but for the last one, which is alone. */
static void write_captures(void)
{
	static struct writer w[MACHINES];
	char path[32];

	srand(5);
	for (int i = 0; i < MACHINES; i++) {
		snprintf(path, sizeof(path), "%d.kprof", i);
		start(&w[i], in_scratch(path), &machines[i], MONO_NS + (i == 3 ? 5000000 : 0));
		if (i == 3) { /* one that began before */
			put_begin(&w[i], MONO_NS + 5000000, w[i].main, w[i].work);
			put_end(&w[i], MONO_NS + 5500000, w[i].main);
		}
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

struct look {
	struct kprof_capture *t;
	const struct told *told;
	uint64_t spans[MACHINES], cut;
};

/* Of a machine, its first operator and what it did for collectives, in the order of time. */
static int on_span(void *ctx, const struct tl_span *s)
{
	struct look *look = ctx;
	const struct tl_thread *th = timeline__thread(look->t, s->thread);
	size_t i = (size_t)(th->pid / 10000000);
	bool op = !strcmp(s->description->name, "aten::add");

	CHECK(i < MACHINES && th->pid % 10000000 == PID);
	CHECK_EQ(th->tid,
		 th->pid - PID + (op || s->flags & KPROF_EVENT_OPEN_AT_START ? PID : WORKER));
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
	if (s->flags & KPROF_EVENT_OPEN_AT_START) {
		CHECK_EQ(i, 3);
		look->cut++;
		return 0;
	}
	CHECK_EQ(s->nr_attrs, 7);
	if (s->nr_attrs != 7)
		return 0;
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
			if (r.activity.type == KPROF_ACTIVITY_CPU_OP)
				CHECK_EQ(pids[r.activity.stream], r.activity.pid);
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
		CHECK_EQ(seen[i], 5);
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
	size_t gaps[2] = {0};

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
	CHECK_EQ(look.spans[3], TIMES + 2);
	CHECK_EQ(look.cut, 1);
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
	for (size_t i = 0; (gap = kprof_capture_gap(look.t, i)); i++) {
		bool own = !strcmp(gap->what, "at"); /* of all processes of its machine */

		CHECK(own || gap->pid == 30000000 + PID);
		CHECK_EQ(gap->pid % 10000000, PID);
		gaps[own]++;
	}
	CHECK_EQ(gaps[0], 2); /* the fourth began later, and was over earlier */
	CHECK_EQ(gaps[1], MACHINES);
	/* One of them is known by Unix time. */
	CHECK(timeline__clock_error_ns(look.t) == UINT64_MAX);
	CHECK_EQ(timeline__machines(look.t), MACHINES);
	CHECK_STR(timeline__process_of(look.t, 20000000 + PID)->host, "third");
	CHECK_EQ(timeline__process_of(look.t, 20000000 + PID)->host_pid, PID);
	/* Sums, where all have the same frequency. */
	CHECK_STR(kprof_capture_meta(look.t, "stacks"), "{\"frequency_hz\":99,\"samples\":10}");
	CHECK_STR(kprof_capture_meta(look.t, "counters"), "[\"cycles\"]");
	CHECK_STR(kprof_capture_meta(look.t, "steps"), "{\"pid\":100}");
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
	/* One ends where the other begins. */
	CHECK_EQ(kprof_capture_info(t)->nr_gaps, 0);
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

/* Both errors of two machines that are not the reference; metadata that differs; one cut short. */
static void three_machines(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof", "c.kprof"};
	const struct machine odd = {"\"odd\"",
				    "\"odd\"",
				    -1000000000,
				    0,
				    0,
				    "[\"cycles\",\"misses\"]",
				    "{\"frequency_hz\":499,\"samples\":5}"};
	static struct writer w[3];
	struct told told = {0};
	struct kprof_capture *t;
	uint8_t *bytes;
	size_t nr;

	start(&w[0], in_scratch(names[0]), &machines[0], MONO_NS);
	start(&w[1], in_scratch(names[1]), &machines[1], MONO_NS);
	start(&w[2], in_scratch(names[2]), &odd, MONO_NS);
	for (uint64_t n = 0; n < 20; n++)
		meet((struct writer *[]){&w[0], &w[1], &w[2]}, 3, "0", n,
		     MONO_NS + 10000000 + n * 10000000);
	for (int i = 0; i < 3; i++)
		finish(&w[i], END_NS);
	bytes = slurp(in_scratch(names[2]), &nr);
	spit(in_scratch(names[2]), bytes, nr - 10); /* without its last record */
	free(bytes);
	CHECK_EQ(merge_of(names, 3, &told), 0);
	CHECK_EQ(kprof_capture_open(in_scratch("merged.kprof"), &t), 0);
	CHECK_EQ(timeline__clock_error_ns(t), told.all[1].error_ns + told.all[2].error_ns);
	CHECK_STR(kprof_capture_meta(t, "counters"), "[\"cycles\",\"misses\"]");
	CHECK_STR(kprof_capture_meta(t, "stacks"), "{\"samples\":9}");
	/* The one that was cut short has what is in it, not what it said at first. */
	CHECK_EQ(kprof_capture_source(t, 0)->begins, 2 * TIMES + 20);
	kprof_capture_close(t);
}

/* Two machines of one name that booted at the same moment, and a capture that has no clocks. */
static void which_machine(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof"};
	const struct machine twin = {"\"first\"", "\"another boot\"", 0, 0, 0, NULL, NULL};
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

static void check_within(const char *const within[3], const char *merged)
{
	static const char *const names[] = {"a.kprof", "b.kprof", "c.kprof"};
	struct kprof_capture *t;
	struct writer w;

	/* the first two are parts of one process */
	for (int i = 0; i < 3; i++) {
		start(&w, in_scratch(names[i]), &machines[i / 2],
		      MONO_NS + (uint64_t)(i % 2) * SEC_NS);
		if (within[i])
			made__meta(&w.m, "within", within[i]);
		finish(&w, MONO_NS + (uint64_t)(i % 2 + 1) * SEC_NS);
	}
	CHECK_EQ(merge_of(names, 3, NULL), 0);
	CHECK_EQ(kprof_capture_open(in_scratch("merged.kprof"), &t), 0);
	CHECK_STR(kprof_capture_meta(t, "within") ? kprof_capture_meta(t, "within") : "", merged);
	kprof_capture_close(t);
}

/* What is allocated at a moment is not merged: the sums beside it are one process's. */
static void what_is_allocated(void)
{
	static const char *const names[] = {"a.kprof", "b.kprof"};
	struct writer w;

	for (int i = 0; i < 2; i++) {
		start(&w, in_scratch(names[i]), &machines[i], MONO_NS);
		made__meta(&w.m, "memory_alive", "{\"devices\":[]}");
		finish(&w, END_NS);
	}
	CHECK_EQ(merge_of(names, 2, NULL), -EINVAL);
	CHECK(strstr(kprof_error_cause(), "says what one process has allocated"));
}

/* Which of them were recorded within annotations only. */
static void within_annotations(void)
{
	static const char *const none[3] = {0}, *const same[] = {"\"a*\"", "\"a*\"", "\"a*\""};
	static const char *const last[] = {NULL, NULL, "\"a\""};
	static const char *const others[] = {"\"a\"", "\"b\"", NULL};
	static const char *const half[] = {NULL, "\"b\"", "\"a\""};

	check_within(none, "");
	check_within(same, "\"a*\"");
	check_within(last, "[{\"name\":\"a\",\"pids\":[10000100]}]");
	check_within(others, "[{\"name\":\"a\",\"pids\":[100]},{\"name\":\"b\",\"pids\":[100]}]");
	/* of the process, everything was recorded for a part of the time */
	check_within(half, "[{\"name\":\"b\",\"pids\":[]},{\"name\":\"a\",\"pids\":[10000100]}]");
}

static void run_in_scratch(void)
{
	scratch__make();
	clocks_of_machines();
	one_machine();
	two_trainings();
	no_bounds();
	three_machines();
	which_machine();
	within_annotations();
	what_is_allocated();
	cut_collectives();
	by_unix_time();
	scratch__remove();
}

UNIT_MAIN(TEST(run_in_scratch))
