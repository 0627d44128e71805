/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of user/merge share: captures of machines whose clocks are known. All times of the
 * events are true ones, and are written as the machine's clock shows them.
 */
#ifndef KPROF_TESTS_MERGE_FIXTURE_H
#define KPROF_TESTS_MERGE_FIXTURE_H

#include <math.h>

#include "kprof/activity.h"
#include "kprof/merge.h"
#include "sink_fixture.h"

enum { MACHINES = 5, PID = 100, WORKER = 103, TIMES = 200, DETAILS_NS = 8000000 };

static const struct machine {
	const char *host, *boot;
	int64_t ahead_ns; /* of the true time, at the true time MONO_NS */
	double drift;
	int64_t unix_ns; /* how wrong its Unix time is */
	const char *counters, *stacks;
} machines[MACHINES] = {
	{"\"first\"", "\"boot of first\"", 0, 0, 0, NULL, NULL},
	{"\"second\"", "\"boot of second\"", -3 * (int64_t)SEC_NS, 30e-6, 40000000, NULL, NULL},
	{"\"third\"", "\"boot of third\"", -4 * (int64_t)SEC_NS, -10e-6, 0, NULL, NULL},
	{"\"fourth\"", "\"boot of fourth\"", -5 * (int64_t)SEC_NS, 5e-6, -900000000, NULL, NULL},
	{"\"alone\"", "\"boot of alone\"", -2 * (int64_t)SEC_NS, 0, 7000, NULL, NULL},
};

/* What one machine records. */
struct writer {
	struct made m;
	const struct machine *of;
	uint32_t main, worker, op, work, name, group, size, rank, seq, elements, type, of_type;
};

static inline uint64_t shown(const struct machine *of, uint64_t true_ns)
{
	double since = (double)(int64_t)(true_ns - MONO_NS);

	return true_ns + (uint64_t)of->ahead_ns + (uint64_t)(int64_t)llround(since * of->drift);
}

static inline void put_begin(struct writer *w, uint64_t true_ns, uint32_t thread, uint32_t what)
{
	made__put(&w->m, (struct store_record){STORE_BEGIN,
					       .begin = {shown(w->of, true_ns), thread, what}});
}

static inline void put_end(struct writer *w, uint64_t true_ns, uint32_t thread)
{
	made__put(&w->m,
		  (struct store_record){STORE_END, .end = {shown(w->of, true_ns), thread, 0}});
}

static inline uint32_t put_thread(struct writer *w, uint32_t tid, const char *name)
{
	made__put(&w->m, (struct store_record){STORE_THREAD,
					       .thread = {.index = w->m.threads,
							  .pid = PID,
							  .tid = tid,
							  .name = made__string(&w->m, name),
							  .start_ns = shown(w->of, MONO_NS)}});
	return w->m.threads++;
}

static inline void start(struct writer *w, const char *path, const struct machine *of,
			 uint64_t from_ns)
{
	struct made *m = &w->m;

	*w = (struct writer){.of = of};
	CHECK_EQ(store_writer__open(path, &(struct outfile_opts){0}, &m->w), 0);
	made__clock(m, shown(of, from_ns), REAL_NS + from_ns - MONO_NS + (uint64_t)of->unix_ns);
	made__meta(m, "host", of->host);
	made__meta(m, "boot", of->boot);
	made__meta(m, "device.100.0", "{\"id\":0}");
	made__meta(m, "with_modules", "true");
	made__meta(m, "counters", of->counters ? of->counters : "[\"cycles\"]");
	made__meta(m, "stacks", of->stacks ? of->stacks : "{\"frequency_hz\":99,\"samples\":2}");
	made__meta(m, "steps", "{\"pid\":100}");
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
static inline void put_details(struct writer *w)
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
	/* Reported by a thread, whose index stands for the stream; and what none of them has. */
	made__put(m,
		  (struct store_record){STORE_ACTIVITY, .activity = {.pid = PID,
								     .type = KPROF_ACTIVITY_CPU_OP,
								     .device = UINT32_MAX,
								     .stream = w->worker,
								     .start_ns = ns,
								     .end_ns = ns}});
	made__put(m,
		  (struct store_record){
			  STORE_GAP,
			  .gap = {.what = key, .reason = library, .start_ns = ns, .end_ns = ns}});
}

static inline void finish(struct writer *w, uint64_t true_ns)
{
	CHECK_EQ(store_writer__finish(w->m.w, shown(w->of, true_ns)), 0);
}

/* A rank's part of a collective begins. */
static inline void put_part(struct writer *w, const char *name, uint32_t rank, uint32_t size,
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
static inline void meet_for(const char *name, struct writer *const *ranks, uint32_t nr,
			    uint32_t size, const char *group, uint64_t number, uint64_t at_ns)
{
	for (uint32_t rank = 0; rank < nr; rank++) {
		struct writer *w = ranks[rank];

		put_part(w, name, rank, size, group, number,
			 at_ns - (rank == number % size ? 0 : (uint64_t)rand() % 2000000));
		put_end(w, at_ns + 20000 + (uint64_t)rand() % 300000, w->worker);
	}
}

static inline void meet(struct writer *const *ranks, uint32_t size, const char *group,
			uint64_t number, uint64_t at_ns)
{
	meet_for("allreduce", ranks, size, size, group, number, at_ns);
}

struct told {
	struct kprof_merge_machine all[MACHINES];
	size_t nr;
};

static inline void on_machine(void *ctx, const struct kprof_merge_machine *m)
{
	struct told *told = ctx;

	if (told->nr < MACHINES)
		told->all[told->nr++] = *m;
}

static inline int merge_of(const char *const *names, size_t nr, struct told *told)
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

#endif
