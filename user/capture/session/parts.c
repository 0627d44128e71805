// SPDX-License-Identifier: BSD-2-Clause
/* Creates the parts of a recording, and frees them. */
#include <unistd.h>

#include "capture/session/session.h"
#include "util/util.h"

/* It goes on for long, with a bound on what it costs. */
static bool is_bound(const struct kprof_session *s)
{
	return s->opts.rotates && s->opts.max_overhead > 0;
}

static int load(struct kprof_session *s)
{
	struct attacher_opts attach = {
		.single = s->single,
		.follow_children = s->opts.children != KPROF_CHILDREN_NONE,
		.until_exec = s->opts.until_exec,
		.asked_by = s->opts.asked_by,
		.all_processes = s->machine,
		.joins = s->joining,
		.no_probes = s->opts.samples_only,
		.stacks = s->opts.sample_hz || s->opts.with_stack || s->opts.waits,
		.entry_stacks = s->opts.with_stack,
		.books = s->opts.alive,
		.inputs = s->opts.shapes,
		.modules = s->opts.modules,
		.flow = s->opts.flow,
		.within = s->opts.observe ? NULL : s->opts.within,
		.within_of = s->within_of,
		.tids = s->opts.choice.tids,
		.nr_tids = s->opts.choice.nr_tids,
		.stack_rate = s->opts.stack_rate,
		.waits = s->opts.waits,
		.min_wait_ns = s->opts.min_wait_ns,
		.wait_stacks = is_bound(s) ? overhead__wait_stacks(s->opts.max_overhead, 1,
								   sysconf(_SC_NPROCESSORS_ONLN))
					   : 0,
		.patient = s->machine && is_bound(s),
		.counters = counters__sources(s->counters),
		.nr_counters = counters__nr(s->counters),
		.counter_cpus = counters__cpus(s->counters),
	};
	int nr_cpus = (int)sysconf(_SC_NPROCESSORS_CONF);
	uint64_t each, bytes = s->opts.ring_bytes;
	int err;

	/* samples are few */
	if (!bytes && s->machine && !s->opts.waits && s->opts.sample_hz <= MACHINE_SLOW_HZ)
		bytes = MACHINE_RING_BYTES * (uint64_t)nr_cpus;
	rings_layout(nr_cpus, bytes, &attach.nr_rings, &each);
	s->ring_bytes = each;
	err = attacher__new(&attach, &s->attacher);
	if (!err)
		err = rings__new(attacher__rings_fd(s->attacher), attach.nr_rings, each, &s->rings);
	if (!err && attach.counter_cpus)
		err = counters__install(s->counters, attacher__counter_events(s->attacher));
	if (!err && s->counters)
		rings__with_counters(s->rings, counters__wire_bytes(s->counters));
	return err;
}

static int new_recorder(struct kprof_session *s)
{
	struct outfile_opts owner = {
		.set_owner = s->opts.set_owner,
		.uid = s->opts.capture_uid,
		.gid = s->opts.capture_gid,
	};
	int err = recorder__new(s->opts.capture_path, &owner, &s->recorder);
	uint32_t index;

	if (!err && s->opts.rotates)
		recorder__may_rotate(s->recorder);
	if (!err && s->opts.alive)
		recorder__only_tables(s->recorder, ALIVE_TABLE_BYTES);
	if (!err) /* KPROF_WIRE_SOURCE_SITES, _TASKS */
		err = recorder__source(s->recorder, "return_sites", &index);
	if (!err)
		err = recorder__source(s->recorder, "tasks", &index);
	return err;
}

static int new_probes(struct kprof_session *s)
{
	struct probe_set_opts opts = {
		.attacher = s->attacher,
		.recorder = s->recorder,
		.targets = s->targets,
		.filter = &s->filter,
		.single = s->single,
		.max_single_probes = s->opts.max_single_probes,
		.children = s->opts.children,
		.entry_stacks = s->opts.with_stack,
		.memory_stacks = s->opts.with_stack && s->opts.alive,
		.agent = s->opts.agent != KPROF_AGENT_NONE,
	};

	return probe_set__new(&opts, &s->probes);
}

static struct thread *thread_of(void *ctx, struct target *t, uint64_t pid_tgid, uint64_t time_ns)
{
	return thread__of(ctx, t, pid_tgid, time_ns);
}

static int new_agents(struct kprof_session *s)
{
	struct agents_opts opts = {
		.recorder = s->recorder,
		.targets = s->targets,
		.threads = s->threads,
		.probes = s->probes,
		.session = &s->opts,
		.ctx = s,
		.thread = thread_of,
		.observed = observed__spans,
		.drain = loop__drain_and_wait,
	};

	return agents__new(&opts, &s->agents);
}

static int stack_taken(void *ctx, uint64_t number, uint32_t stack)
{
	struct kprof_session *s = ctx;

	alive__stack(s->alive, number, stack);
	return 0;
}

/* At the begin, where much is to be done at once in any case. */
#define READ_AT_ONCE_NS (20 * NSEC_PER_MSEC)

static int new_stacks(struct kprof_session *s)
{
	uint64_t pace_ns =
		is_bound(s) ? (uint64_t)(s->opts.max_overhead * (double)NSEC_PER_SEC) : 0;
	struct stacks_opts opts = {
		.recorder = s->recorder,
		.targets = s->targets,
		.attacher = s->attacher,
		.sample_hz = s->opts.sample_hz,
		.with_stack = s->opts.with_stack,
		.waits = s->opts.waits,
		.gil_only = s->opts.gil_only,
		.ask_jvm = s->opts.ask_jvm,
		.all_processes = s->machine,
		.steady = s->opts.rotates,
		.pace_ns = pace_ns,
		.reading = &s->reading,
		.kernel_bytes = s->opts.kernel_bytes,
		.few = s->opts.alive,
		.taken = s->opts.alive ? stack_taken : NULL,
		.ctx = s,
	};

	int err;

	if (is_bound(s) && s->machine)
		ration__begin(&s->reading, pace_ns / 4, READ_AT_ONCE_NS);
	err = stacks__new(&opts, &s->stacks);
	if (!err && s->machine)
		err = rings__watch(s->rings, stacks__fd(s->stacks));
	return err;
}

/* Of all processes, one is recorded once anything of it is. */
static struct thread *waiting_thread(void *ctx, struct target *t, uint64_t pid_tgid,
				     uint64_t time_ns)
{
	struct kprof_session *s = ctx;

	if (s->machine && machine__sampled(s, t, time_ns))
		return NULL;
	return thread__of(s, t, pid_tgid, time_ns);
}

static bool wants(void *ctx, uint64_t pid_tgid)
{
	return session_wants(ctx, pid_tgid);
}

static int new_waits(struct kprof_session *s)
{
	struct waits_opts opts = {
		.recorder = s->recorder,
		.targets = s->targets,
		.threads = s->threads,
		.attacher = s->attacher,
		.min_wait_ns = s->opts.min_wait_ns,
		.part = s->schedule.steps,
		.wants = wants,
		.ctx = s,
		.thread = waiting_thread,
	};

	return s->opts.waits ? waits__new(&opts, &s->waits) : 0;
}

int parts__new(struct kprof_session *s)
{
	int err = new_recorder(s);

	if (!err)
		err = targets__new(&s->targets);
	if (!err)
		err = threads__new(&s->threads);
	if (!err)
		err = dispatch__spans_new(s);
	if (!err && s->opts.counters)
		err = counters__new(s->opts.counters, s->recorder, &s->counters);
	if (!err && s->counters) /* and the epoch */
		spans__with_counters(s->spans, 1 + counters__nr(s->counters));
	if (!err)
		err = load(s);
	if (!err)
		err = new_probes(s);
	if (!err)
		err = event_parts__new(s);
	if (!err && s->opts.observe)
		err = observed__new(s, dispatch__thread);
	if (!err)
		err = new_agents(s);
	if (!err)
		err = new_stacks(s);
	if (!err && s->joining)
		err = joins__new(s);
	if (!err)
		err = new_waits(s);
	if (!err)
		err = schedule__new(s);
	return err ? err : account__new(s);
}

/*
 * Frees the parts in the reverse order of their creation, because each first removes from the
 * targets what it keeps there.
 */
void parts__free(struct kprof_session *s)
{
	overhead__free(s->overhead);
	free(s->early_waits.data);
	joins__free(s);
	agents__free(s->agents);
	observed__free(s);
	waits__free(s->waits);
	stacks__free(s->stacks);
	event_parts__free(s);
	spans__free(s->spans);
	steps__free(s->steps);
	probe_set__free(s->probes);
	copied_walker__free(s->walker);
	rings__free(s->rings);
	attacher__free(s->attacher);
	counters__free(s->counters);
	threads__free(s->threads);
	targets__free(s->targets);
	recorder__free(s->recorder);
}
