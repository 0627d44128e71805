// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the capture says about itself: where and how it was recorded, and how many events of each
 * source were recorded, dropped and missed.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

static int put_string(struct kprof_session *s, const char *key, const char *value)
{
	return recorder__meta_value(s->recorder, key, cJSON_CreateString(value));
}

/* By which captures of one machine are known: they have one monotonic clock. */
static int put_boot(struct kprof_session *s)
{
	char *id;
	int err = read_file("/proc/sys/kernel/random/boot_id", 64, &id, NULL);

	if (err)
		return err == -ENOMEM ? err : 0;
	id[strcspn(id, "\n")] = '\0';
	err = put_string(s, "boot", id);
	free(id);
	return err;
}

static uint64_t agents_ns(void *ctx)
{
	const struct kprof_session *s = ctx;

	return agents__cpu_ns(s->agents);
}

static void give_up_waits(void *ctx)
{
	struct kprof_session *s = ctx;

	waits__give_up(s->waits);
}

static int resume_waits(void *ctx, uint64_t *from_ns)
{
	struct kprof_session *s = ctx;

	return waits__resume(s->waits, from_ns);
}

int account__new(struct kprof_session *s)
{
	struct overhead_opts opts = {
		.recorder = s->recorder,
		.targets = s->targets,
		.attacher = s->attacher,
		.probes = s->probes,
		.stacks = s->stacks,
		.reading = &s->reading,
		.most = s->opts.max_overhead,
		.all_processes = s->opts.all_processes,
		.steady = s->opts.rotates,
		.single = s->single,
		.with_probes = !s->opts.samples_only,
		.children = s->opts.children != KPROF_CHILDREN_NONE && !s->joining,
		.given_up = dispatch__given_up,
		.agents_ns = agents_ns,
		.give_up_waits = s->waits ? give_up_waits : NULL,
		.resume_waits = resume_waits,
		.ctx = s,
	};

	return overhead__new(&opts, &s->overhead);
}

/* Which recording the file is a part of, and the how-manieth. */
static int put_part(struct kprof_session *s)
{
	char json[96];

	if (!s->opts.rotates)
		return 0;
	snprintf(json, sizeof(json), "{\"of\":\"%d.%" PRIu64 "\",\"number\":%" PRIu64 "}",
		 (int)getpid(), recorder__window(s->recorder)->first_ns,
		 recorder__rotations(s->recorder) + 1);
	return recorder__meta_here(s->recorder, "part", json);
}

int account__begin(struct kprof_session *s)
{
	uint64_t start_ns = recorder__window(s->recorder)->start_ns;
	struct utsname u;
	uint64_t mono, real;
	char kernel[512];
	int err;

	uname(&u);
	snprintf(kernel, sizeof(kernel), "%s %s %s", u.sysname, u.release, u.machine);
	clock_pair(&mono, &real);
	/* The first pair of clock readings: the window's start on both clocks. */
	err = recorder__clock(s->recorder, start_ns, real + start_ns - mono);
	if (!err)
		err = put_part(s);
	if (!err)
		err = put_string(s, "version", kprof_version());
	if (!err)
		err = put_string(s, "host", u.nodename);
	if (!err)
		err = put_boot(s);
	if (!err)
		err = put_string(s, "kernel", kernel);
	if (!err && s->opts.command)
		err = put_string(s, "command", s->opts.command);
	if (!err && s->opts.memory)
		err = recorder__meta(s->recorder, "profile_memory", "true");
	if (!err)
		err = opts__put(s);
	if (!err)
		err = put_string(s, "probe_kind", s->single ? "uprobe" : "uprobe_multi");
	return err;
}

/* What there is of the source since the recording began. */
static int sum_up(struct kprof_session *s, uint32_t i, uint64_t missed, struct account_told *out)
{
	const struct record_source *source = recorder__source_at(s->recorder, i);
	struct kprof_wire_count kernel;
	int err = attacher__counts(s->attacher, i, &kernel);

	if (err)
		return err;
	*out = (struct account_told){
		.fired = kernel.fired,
		.captured = source->captured,
		.dropped = source->counted_here ? source->dropped : kernel.dropped,
		.missed = missed,
		.spans = *spans__count(s->spans, i),
	};
	if (source->counted_here)
		out->fired = out->captured + out->dropped;
	return 0;
}

int account__forget(struct kprof_session *s)
{
	uint64_t missed = attacher__missed(s->attacher);
	int err = 0;

	for (uint32_t i = 0; i < recorder__nr_sources(s->recorder) && !err; i++) {
		struct account_told *told = &s->told[i];

		err = sum_up(s, i, i == KPROF_WIRE_SOURCE_SITES ? missed : 0, told);
		told->fired = told->captured + told->dropped;
	}
	return err;
}

/*
 * The part since the last rotation. The kernel has counted what is still in its rings, too; where
 * the recording goes on, that belongs to the next part, and the last part's fired is what all
 * others have left of the kernel's count.
 */
static int put_source(struct kprof_session *s, uint32_t i, uint64_t missed)
{
	struct account_told *told = &s->told[i], now;
	struct store_record r = {.type = STORE_SOURCE};
	int err = sum_up(s, i, missed, &now);

	if (err)
		return err;
	s->dropped += now.dropped;
	if (recorder__is_closing(s->recorder))
		now.fired = now.captured + now.dropped;
	r.source.index = i;
	r.source.name = recorder__source_at(s->recorder, i)->string;
	r.source.fired = now.fired - told->fired;
	r.source.captured = now.captured - told->captured;
	r.source.dropped = now.dropped - told->dropped;
	r.source.missed = now.missed - told->missed;
	r.source.begins = now.spans.begins - told->spans.begins;
	r.source.ends_exact = now.spans.ends_exact - told->spans.ends_exact;
	r.source.ends_closed = now.spans.ends_closed - told->spans.ends_closed;
	r.source.orphan_ends = now.spans.orphan_ends - told->spans.orphan_ends;
	err = recorder__put(s->recorder, &r);
	if (!err && recorder__is_closing(s->recorder))
		*told = now;
	return err;
}

static int put_sources(struct kprof_session *s)
{
	int err = 0;

	s->dropped = 0;
	s->missed = attacher__missed(s->attacher);
	/*
	 * The kernel counts skipped runs by BPF program, not by source: all are put down to the
	 * return sites.
	 */
	for (uint32_t i = 0; i < recorder__nr_sources(s->recorder) && !err; i++)
		err = put_source(s, i, i == KPROF_WIRE_SOURCE_SITES ? s->missed : 0);
	return err;
}

static int put_overhead(struct kprof_session *s, const struct kprof_wire_foreign *foreign)
{
	const struct probe_set_stats *stats = probe_set__stats(s->probes);
	cJSON *o = cJSON_CreateObject();
	struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{"attach_ns", s->attach_ns},
		{"detach_ns", s->detach_ns},
		{"probes", probe_set__nr(s->probes)},
		{"probes_not_placed", stats->single_cut},
		{"probes_refused_by_kernel", attacher__refused(s->attacher)},
		{"return_sites", stats->nr_sites},
		{"return_sites_single_stepped", stats->sites_stepped},
		{"return_addresses", stats->nr_returns},
		{"return_addresses_followed", stats->returns_followed},
		{"return_addresses_without_site", stats->returns_none},
		{"idle_site_hits", spans__idle_sites(s->spans)},
		{"late_records", spans__late(s->spans)},
		{"records_of_other_processes", s->unknown_pids},
		{"records_damaged", rings__damaged(s->rings) + s->unknown_records},
		{"hits_in_other_processes", foreign->hits},
		{"children_not_recorded", attacher__children_refused(s->attacher)},
		{"within_unknown", attacher__within_unknown(s->attacher) - s->within_unknown},
		{"news_of_processes_lost", s->joining ? joins__lost(s) : 0},
	};
	int err;

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		cJSON_AddNumberToObject(o, numbers[i].name, (double)numbers[i].value);
	err = overhead__finish(s->overhead, o);
	if (!err)
		return recorder__meta_value(s->recorder, "overhead", o);
	cJSON_Delete(o);
	return err;
}

/* What was asked for was not met, or calls may have been inside of it, which is not known. */
static void warn_of_not_inside(const struct kprof_session *s)
{
	uint64_t unknown = attacher__within_unknown(s->attacher) - s->within_unknown;
	bool symbol = s->within_of == KPROF_WITHIN_SYMBOL;

	if (symbol && !probe_set__stats(s->probes)->functions)
		log_warn("names are those that `nm -D` and `nm -DC` show, without * and ?",
			 "--within %s: no file of the process has such a function",
			 s->within_asked);
	else if (!attacher__within_met(s->attacher))
		log_warn(
			symbol ? "calls that were compiled into others can't be seen"
			: s->within_of == KPROF_WITHIN_MODULES
				? "names are those of classes, as `kprof report --by module` "
				  "shows them without --within"
				: "names are those that `kprof sample` shows of Python's functions; "
				  "Decoder.forward from Python 3.11 on, before that forward",
			"--within %s: %s", s->within_asked,
			symbol ? "it was not called" : "no operator or call was met inside");
	if (unknown)
		log_warn(NULL,
			 symbol ? "--within %s: inside of %llu calls of it, nothing is recorded: "
				  "where they return was not known yet"
				: "--within %s: of %llu calls it is not known whether they were "
				  "inside; they are not recorded",
			 s->within_asked, (unsigned long long)unknown);
}

/* A pattern that matches nothing is more often than not a mistake. */
static void warn_of_unmatched(const struct kprof_session *s)
{
	for (size_t i = 0; i < s->filter.nr_ops && i < 64; i++)
		if (!(s->ops_matched >> i & 1))
			log_warn(
				"names are as `kprof report` shows them: aten::add, aten::*conv*; annotations are recorded in any case",
				"--ops %s: no operator is called so", s->filter.ops[i]);
	if (s->within_of != KPROF_WITHIN_ANNOTATIONS)
		warn_of_not_inside(s);
	else if (s->opts.within && !(s->opts.observe ? recorder__nr_events(s->recorder)
						     : attacher__within_met(s->attacher)))
		log_warn(
			"names are those of annotations (record_function, NVTX, ITT, marks), as `kprof report` "
			"shows them without --within",
			"--within %s: no annotation of this name began", s->opts.within);
	if (s->filter.within && attacher__within_unread(s->attacher))
		log_warn(
			"a name in memory that the program has not used yet cannot be read where it is needed",
			"--within %s: the names of %" PRIu64
			" annotations could not be read: they do not count",
			s->opts.within, attacher__within_unread(s->attacher));
}

/* Other processes paid for the recording, or children are missing from it. */
static void warn_of_others(const struct kprof_session *s, const struct kprof_wire_foreign *foreign)
{
	uint64_t refused = attacher__children_refused(s->attacher);
	char comm[PROC_COMM_BYTES];

	if (refused)
		log_warn("--no-children, or fewer processes at once",
			 "%llu children are not recorded: more processes than kprof can follow",
			 (unsigned long long)refused);
	if (s->joining && joins__lost(s))
		log_warn(
			NULL,
			"the kernel had no room for %llu reports of what processes mapped: some may not be recorded",
			(unsigned long long)joins__lost(s));
	/* without children, these are those of vfork, which run in a target's memory */
	if (!foreign->hits || s->opts.children == KPROF_CHILDREN_NONE)
		return;
	if (proc_thread_comm((pid_t)foreign->pid, (pid_t)foreign->pid, comm))
		snprintf(comm, sizeof(comm), "it has ended");
	log_warn(
		s->joining ? NULL : "--children follow places probes in the targets only",
		"other processes ran into probes in files that they share with the targets, %llu times, "
		"process %u (%s) the last",
		(unsigned long long)foreign->hits, foreign->pid, comm);
}

int account__so_far(struct kprof_session *s)
{
	uint64_t mono, real;
	int err;

	clock_pair(&mono, &real);
	err = recorder__clock(s->recorder, mono, real);
	return err ? err : put_sources(s);
}

_Static_assert(ARRAY_SIZE(((struct kprof_session_stats *)0)->cost_part_ns) == KPROF_OVERHEAD_PARTS,
	       "kprof.h: the parts of costs");

static void add_state(const struct kprof_session *s, struct kprof_session_stats *out)
{
	struct overhead_state state;

	overhead__state(s->overhead, &state);
	out->cost_share = state.share;
	out->last_cost_share = state.last_share;
	out->max_overhead = s->opts.max_overhead;
	memcpy(out->cost_part_ns, state.part_ns, sizeof(out->cost_part_ns));
	out->cost_base_ns = state.base_ns;
	out->given_up = state.nr_steps;
	out->given_up_now = state.nr_now;
	out->sample_hz = state.hz;
	out->kernel_bytes = attacher__map_bytes(s->attacher);
	out->table_bytes = recorder__table_bytes(s->recorder);
	out->unstored = recorder__unstored(s->recorder);
	recorder__unstored_since(s->recorder, &out->unstored_error);
	out->rotations = recorder__rotations(s->recorder);
}

void kprof_session_stats(const struct kprof_session *s, struct kprof_session_stats *out)
{
	const struct record_window *window = recorder__window(s->recorder);

	*out = (struct kprof_session_stats){
		.elapsed_ns = window->open ? clock_mono_ns() - window->first_ns : 0,
		.events = recorder__nr_events(s->recorder),
		.dropped = window->closed ? s->dropped : 0,
		.missed = s->missed,
		.written_bytes = recorder__bytes(s->recorder),
		.processes = s->nr_processes,
		.threads = threads__nr_ever(s->threads),
		.sites = (uint32_t)probe_set__stats(s->probes)->nr_sites,
		.attach_ns = s->attach_ns,
		.detach_ns = s->detach_ns,
	};
	stacks__stats(s->stacks, out);
	add_state(s, out);
	if (s->alive) {
		struct alive_sums sums;

		alive__sums(s->alive, &sums);
		out->blocks = sums.blocks;
		out->block_bytes = sums.bytes;
		out->blocks_not_kept = sums.not_kept;
	}
	for (uint32_t i = 0; i < recorder__nr_sources(s->recorder) && !window->closed; i++) {
		struct kprof_wire_count count;

		if (!attacher__counts(s->attacher, i, &count))
			out->dropped += count.dropped;
	}
}

uint64_t kprof_session_asked(const struct kprof_session *s, pid_t *pid, uint32_t *by, int *signal)
{
	struct attach_asked asked;

	attacher__asked(s->attacher, &asked);
	*pid = asked.pid;
	*by = asked.uid;
	*signal = asked.signal;
	return asked.times;
}

/* What parts of the recording have counted. */
static int put_counts(struct kprof_session *s)
{
	int err = s->opts.shapes ? inputs__account(s->inputs, s->probes) : 0;

	if (!err && s->opts.flow)
		err = sequences__account(&s->sequences, s->recorder);
	if (!err && s->opts.flops)
		err = recorder__meta(s->recorder, "with_flops", "1");
	if (!err)
		err = calls__account(s->calls);
	if (!err)
		err = marks__account(s->marks);
	if (!err && s->opts.memory)
		err = memory__account(s->memory);
	if (!err && s->modules)
		err = modules_seen__account(s->modules);
	return err;
}

/* How clocks and counts stand, and what was paid. */
static int put_end(struct kprof_session *s, struct kprof_wire_foreign *foreign)
{
	const struct record_window *window = recorder__window(s->recorder);
	uint64_t mono, real;
	int err;

	clock_pair(&mono, &real);
	if (recorder__is_closing(s->recorder)) { /* nothing in the file is of a later time */
		real -= mono - window->end_ns;
		mono = window->end_ns;
	}
	err = recorder__clock(s->recorder, mono, real);
	if (!err)
		err = put_sources(s);
	if (!err)
		err = attacher__foreign(s->attacher, foreign);
	return err ? err : put_overhead(s, foreign);
}

int account__end(struct kprof_session *s)
{
	struct kprof_wire_foreign foreign;
	int err;

	warn_of_unmatched(s);
	err = put_end(s, &foreign);
	if (!err)
		warn_of_others(s, &foreign);
	return err ? err : put_counts(s);
}

int account__end_part(struct kprof_session *s)
{
	struct kprof_wire_foreign foreign;
	int err = put_end(s, &foreign);

	return err ? err : put_counts(s);
}

int account__next_part(struct kprof_session *s)
{
	const struct record_window *window = recorder__window(s->recorder);
	uint64_t mono, real;
	int err;

	clock_pair(&mono, &real);
	s->within_unknown = attacher__within_unknown(s->attacher);
	/* first, as it opens the window */
	err = recorder__clock(s->recorder, window->start_ns, real - (mono - window->start_ns));
	return err ? err : put_part(s);
}
