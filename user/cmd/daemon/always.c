// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is recorded without being asked for: samples of all processes, the flight recorder, and
 * device windows.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/daemon/pusher.h"
#include "cmd/daemon/show/serve.h"
#include "cmd/daemon/record/windows.h"
#include "cmd/daemon/watch/triggers.h"

#define RECORDERS_SHARE 0.8 /* of what all may cost */
#define TRIM_NS 10000000000ull
/* While a device window goes on, it may cost so many times what all may cost in the mean. */
#define WINDOW_TIMES 10
#define WINDOW_TYPES \
	"kernel,gpu_memcpy,gpu_memset,cuda_runtime,cuda_driver,opencl_runtime,xpu_driver"

/*
 * The bound of a recording: it sees what it costs after it has been paid, and goes over its bound
 * for moments. And the daemon itself, its helpers and what starts now and then are paid from the
 * rest.
 */
static double overhead_of(const struct daemon_opts *opts)
{
	int nr = !opts->no_sampling + !!opts->watch.nr + !!opts->device_window_ns;

	return opts->overhead * RECORDERS_SHARE / nr;
}

/* Also goes on with one that is there, with other options. */
static int begin_keeper(const struct keeper_opts *opts, struct keeper **k)
{
	if (!*k)
		return keeper__new(opts, k);
	keeper__change(*k, opts);
	return 0;
}

static void on_samples(void *ctx, const char *path)
{
	struct daemon *d = ctx;

	if (d->pusher)
		pusher__chunk(d->pusher);
	serve__chunk(d->serve, CHUNK_SAMPLES, path);
}

static void begin_pusher(struct daemon *d)
{
	if (!d->opts->push.library.url)
		pusher__off(d->pusher, d->opts->state);
	else if (d->pusher)
		pusher__change(d->pusher, &d->opts->push);
	else
		pusher__new(d->loop, &d->opts->push, d->opts->state, &d->pusher);
}

int always_sample(struct daemon *d)
{
	const struct daemon_opts *opts = d->opts;
	/* a sampler that hands over and its successor are there at once: two of each */
	uint64_t share = opts->max_memory / (opts->watch.nr ? 6 : 4);
	struct keeper_opts keeper = {
		.loop = d->loop,
		.name = "kprof-sampler",
		.chunk_ns = opts->chunk_ns,
		.keep_ns = opts->keep_ns,
		.keep_bytes = opts->keep_bytes,
		.min_free = opts->min_free,
		.max_tables = 4 << 20,
		.session =
			{
				.sz = sizeof(keeper.session),
				.samples_only = true,
				.all_processes = true,
				.sample_hz = opts->hz,
				.waits = opts->min_wait_ns,
				.min_wait_ns = opts->min_wait_ns,
				.agent = KPROF_AGENT_NONE,
				.confine = true,
				.no_cmdlines = !opts->record_cmdline,
				.rotates = true,
				.kernel_bytes = share,
				.own_bytes = share,
				.command = "kprof daemon",
			},
		.stored = on_samples,
		.ctx = d,
	};

	begin_pusher(d);
	if (opts->no_sampling) {
		keeper__stop(d->sampler);
		return 0;
	}
	keeper.session.max_overhead = overhead_of(opts);
	chosen_fill(&opts->chosen, &keeper.session.choice);
	snprintf(keeper.folder, sizeof(keeper.folder), "%s/samples", opts->state);
	return begin_keeper(&keeper, &d->sampler);
}

static void on_flight_chunk(void *ctx, const char *path)
{
	struct daemon *d = ctx;

	if (d->triggers)
		triggers__chunk(d->triggers, path);
	serve__chunk(d->serve, CHUNK_FLIGHT, path);
}

static void on_asked(void *ctx, uint64_t times, int signal, pid_t pid, uid_t uid)
{
	struct daemon *d = ctx;

	if (d->triggers)
		triggers__asked(d->triggers, times, signal, pid, uid);
}

/* A dump that waits until the last moments are stored. */
struct rule_met {
	struct daemon *daemon;
	uid_t asked_by;
	char why[256];
};

static void dump_for_rule(void *ctx)
{
	struct rule_met *met = ctx;
	struct daemon *d = met->daemon;
	struct demand_job job = {.why = met->why, .asked_by = met->asked_by}; /* root's */
	struct recording *r;

	if (!d->ending && d->flight && daemon_dump(d, &job, &r))
		log_line("error", "trigger", NULL, "a dump cannot be begun");
	free(met);
}

static void on_rule(void *ctx, const struct trigger_rule *rule, uid_t asked_by, const char *what)
{
	struct daemon *d = ctx;
	cJSON *fields = cJSON_CreateObject();
	struct rule_met *met;

	cJSON_AddStringToObject(fields, "rule", rule->text);
	log_line("info", "trigger", fields, "%s: %s", rule->text, what);
	met = d->flight && !d->ending ? calloc(1, sizeof(*met)) : NULL;
	if (!met)
		return;
	serve__dumped(d->serve, rule->text);
	met->daemon = d;
	met->asked_by = asked_by;
	snprintf(met->why, sizeof(met->why), "%s: %s", rule->text, what);
	keeper__cut(d->flight, dump_for_rule, met);
}

/* Those of the options before are given up with what they know. */
static void begin_triggers(struct daemon *d)
{
	struct triggers_opts opts = {
		.loop = d->loop,
		.rules = &d->opts->triggers,
		.pause_ns = d->opts->trigger_pause_ns,
		/* one that ends soon is in the dump whole, and of the others the begin still is */
		.open_ns = d->opts->flight_ns / 4,
		.met = on_rule,
		.ctx = d,
	};

	triggers__free(d->triggers);
	d->triggers = d->opts->triggers.nr && d->opts->watch.nr ? triggers__new(&opts) : NULL;
}

/* What rules are about must be seen. */
static void record_for_rules(const struct daemon_opts *opts, struct kprof_session_opts *session)
{
	const struct value_list *rules = &opts->triggers;
	struct trigger_rule rule;

	for (size_t i = 0; i < rules->nr; i++) {
		if (!trigger_parse(rules->items[i], &rule))
			continue;
		session->waits |= rule.kind == TRIGGER_RUNNABLE;
		/* an agent records for one at a time: where there are device windows, for these */
		if (rule.kind == TRIGGER_GPU_IDLE && !opts->device_window_ns)
			session->agent = KPROF_AGENT_THERE;
		else if (rule.kind == TRIGGER_ASKED)
			session->asked_by |= rule.signals;
	}
}

int always_watch(struct daemon *d)
{
	const struct daemon_opts *opts = d->opts;
	struct keeper_opts keeper = {
		.loop = d->loop,
		.name = "kprof-flight",
		.chunk_ns = opts->flight_chunk_ns,
		.keep_ns = opts->flight_ns,
		.keep_bytes = opts->flight_bytes,
		.min_free = opts->min_free,
		.max_tables = 16 << 20,
		.session =
			{
				.sz = sizeof(keeper.session),
				.all_processes = true,
				.agent = KPROF_AGENT_NONE,
				.confine = true,
				.no_cmdlines = !opts->record_cmdline,
				.rotates = true,
				.command = "kprof daemon",
			},
		.stored = on_flight_chunk,
		.asked = on_asked,
		.ctx = d,
	};

	begin_triggers(d);
	record_for_rules(opts, &keeper.session);
	if (!opts->watch.nr) {
		keeper__stop(d->flight);
		return 0;
	}
	if (kprof_session_opts_activities(&keeper.session, NULL, NULL)) {
		keeper__stop(d->flight); /* its options refer to those of before */
		return message_error();
	}
	keeper.session.max_overhead = overhead_of(opts);
	chosen_fill(&opts->chosen, &keeper.session.choice);
	keeper.session.choice.comms = (const char *const *)opts->watch.items;
	keeper.session.choice.nr_comms = opts->watch.nr;
	snprintf(keeper.folder, sizeof(keeper.folder), "%s/flight", opts->state);
	return begin_keeper(&keeper, &d->flight);
}

static void on_window(void *ctx, const char *path)
{
	struct daemon *d = ctx;

	if (d->triggers)
		triggers__window(d->triggers, path);
	serve__chunk(d->serve, CHUNK_DEVICE, path);
}

int always_device(struct daemon *d)
{
	const struct daemon_opts *opts = d->opts;
	struct windows_opts windows = {
		.loop = d->loop,
		.window_ns = opts->device_window_ns,
		.every_ns = opts->device_every_ns,
		.keep_ns = opts->keep_ns,
		.keep_bytes = opts->keep_bytes,
		.min_free = opts->min_free,
		.session =
			{
				.sz = sizeof(windows.session),
				.all_processes = true,
				.agent = opts->device_inject ? KPROF_AGENT_AUTO : KPROF_AGENT_THERE,
				.window = true,
				.confine = true,
				.no_cmdlines = !opts->record_cmdline,
				.max_overhead = opts->overhead * WINDOW_TIMES,
				.command = "kprof daemon",
			},
		.stored = on_window,
		.ctx = d,
	};

	if (!opts->device_window_ns) {
		windows__stop(d->windows);
		return 0;
	}
	windows.share = overhead_of(opts);
	chosen_fill(&opts->chosen, &windows.session.choice);
	if (opts->device_comms.nr) {
		windows.session.choice.comms = (const char *const *)opts->device_comms.items;
		windows.session.choice.nr_comms = opts->device_comms.nr;
	}
	if (kprof_session_opts_activities(&windows.session, NULL, WINDOW_TYPES)) {
		windows__stop(d->windows); /* its options refer to those of before */
		return message_error();
	}
	snprintf(windows.folder, sizeof(windows.folder), "%s/device", opts->state);
	if (!d->windows)
		return windows__new(&windows, &d->windows);
	windows__change(d->windows, &windows);
	return 0;
}

/* ---- what is left of before ---- */

void always_tend(struct daemon *d, uint64_t now)
{
	const struct daemon_opts *o = d->opts;
	const struct {
		const char *name;
		bool there; /* who records into it keeps it to its limits, also when it has ended */
		uint64_t keep_ns, keep_bytes;
	} folders[] = {
		{"samples", d->sampler, o->keep_ns, o->keep_bytes},
		{"flight", d->flight, o->flight_ns, o->flight_bytes},
		{"device", d->windows, o->keep_ns, o->keep_bytes},
	};
	char path[DAEMON_PATH_BYTES];

	if (now < d->next_left_ns)
		return;
	d->next_left_ns = now + TRIM_NS;
	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", o->state, folders[i].name);
		if (!folders[i].there && shelf__trim(&d->left[i], path, folders[i].keep_ns,
						     folders[i].keep_bytes, o->min_free))
			d->next_left_ns = now;
	}
}
