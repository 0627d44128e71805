// SPDX-License-Identifier: BSD-2-Clause
/* The numbers of /metrics that the daemon knows itself: its cost, its memory, what it has done. */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cmd/daemon/kineto.h"
#include "cmd/daemon/pusher.h"
#include "cmd/daemon/record/windows.h"
#include "cmd/daemon/show/serve.h"
#include "cmd/print/json_get.h"
#include "kprof/overhead.h"

#define PARTS KPROF_OVERHEAD_PARTS
#define PREFIX "kprof-" /* of the names of processes */

/* What a recorder last said of its session: all of it grows, until another process takes over. */
struct session {
	double pid, part_ns[PARTS], base_ns, dropped, missed, unstored;
	bool over; /* it is not shown any more, unless another process begins */
};

/* CPU time of the daemon's other processes until now. */
enum { OWN_DAEMON, OWN_WEB, OWN_PUSH, OWN_LOOKS, OWN_NR };
static const char *const own_names[OWN_NR] = {"daemon", "web", "push", "looks"};

struct figures {
	struct metrics *metrics;
	struct session sessions[CHUNK_KINDS];
	double window_begins_ns;
	uint64_t own_ns[OWN_NR];
	uint64_t busy_ns, all_ns; /* of the machine's CPUs */
	double cpu;               /* share of it in the last second */
	double busy_cpus;         /* how many were busy in the last second, in the mean */
	double history[FIGURES_HISTORY];
	size_t nr_history, next_history;
	double second; /* what the last second has cost so far as it is summed up */
	uint64_t memory;
};

static const char *const session_names[CHUNK_KINDS] = {
	[CHUNK_SAMPLES] = "sampler",
	[CHUNK_FLIGHT] = "flight",
	[CHUNK_DEVICE] = "device",
};

/* What becomes of the processes that it sees. */
static const char *const session_states[CHUNK_KINDS] = {
	[CHUNK_SAMPLES] = "sampled",
	[CHUNK_FLIGHT] = "watched",
	[CHUNK_DEVICE] = "in_window",
};

static const struct keeper *keeper_of(const struct daemon *d, enum chunk_kind kind)
{
	return kind == CHUNK_SAMPLES ? d->sampler : d->flight;
}

/* NULL: it does not go on, or has said nothing yet. */
static const cJSON *stats_of(const struct daemon *d, enum chunk_kind kind)
{
	const struct keeper *k = keeper_of(d, kind);

	if (kind == CHUNK_DEVICE)
		return windows__stats(d->windows);
	return k ? keeper__stats(k) : NULL;
}

/* Whether its process is there. */
static bool is_there(const struct daemon *d, enum chunk_kind kind)
{
	const struct keeper *k = keeper_of(d, kind);

	return kind == CHUNK_DEVICE ? windows__now(d->windows) : k && keeper__runs(k);
}

/* ---- once a second: what has grown ---- */

static double grown(double *last, double now)
{
	double more = now > *last ? now - *last : 0;

	*last = now;
	return more;
}

static void add_cost(struct figures *f, const char *session, const char *part, double ns,
		     double base_ns)
{
	if (ns > 0)
		metrics__add(f->metrics, METRICS_COST_CPU, METRICS_OF(session, part), ns / 1e9);
	if (!(base_ns > 0))
		return;
	metrics__set(f->metrics, METRICS_OVERHEAD, METRICS_OF(session, part), ns / base_ns);
	f->second += ns / base_ns;
}

static void add_lost(struct figures *f, const char *reason, double more)
{
	if (more > 0)
		metrics__add(f->metrics, METRICS_DROPPED, METRICS_OF(reason), more);
}

/* Of one whose process has ended, nothing is left but what it has cost. */
static void end_session(struct figures *f, enum chunk_kind kind)
{
	const struct session *s = &f->sessions[kind];

	for (int i = 0; i < PARTS && s->pid > 0 && !s->over; i++)
		metrics__set(f->metrics, METRICS_OVERHEAD,
			     METRICS_OF(session_names[kind], kprof_overhead_part_name(i)), 0);
}

static void tend_session(struct figures *f, enum chunk_kind kind, const cJSON *stats, bool there)
{
	const cJSON *parts = cJSON_GetObjectItemCaseSensitive(stats, "cost_part_ns");
	struct session *s = &f->sessions[kind];
	double base_ns;

	if (!there)
		end_session(f, kind); /* of what it has said at the end, the cost is set below */
	if (!stats)
		return;
	if (json_number(stats, "pid") != s->pid)
		*s = (struct session){.pid = json_number(stats, "pid")};
	base_ns = grown(&s->base_ns, json_number(stats, "cost_base_ns"));
	for (int i = 0; i < PARTS; i++) {
		double ns = cJSON_GetNumberValue(cJSON_GetArrayItem(parts, i));

		add_cost(f, session_names[kind], kprof_overhead_part_name(i),
			 grown(&s->part_ns[i], ns > 0 ? ns : 0), base_ns);
	}
	add_lost(f, "ring_full", grown(&s->dropped, json_number(stats, "dropped")));
	add_lost(f, "probe_missed", grown(&s->missed, json_number(stats, "missed")));
	add_lost(f, "not_stored", grown(&s->unstored, json_number(stats, "unstored")));
}

/* Time of the machine's CPUs since its start: all, and what was no idling. */
static bool read_machine(uint64_t *busy_ns, uint64_t *all_ns)
{
	unsigned long long t[8] = {0}, all = 0;
	FILE *file = fopen("/proc/stat", "re");
	int n = file ? fscanf(file, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &t[0], &t[1],
			      &t[2], &t[3], &t[4], &t[5], &t[6], &t[7])
		     : 0;
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK);

	if (file)
		fclose(file);
	if (n < 5)
		return false;
	for (int i = 0; i < 8; i++)
		all += t[i];
	*all_ns = all * tick_ns;
	*busy_ns = (all - t[3] - t[4]) * tick_ns; /* idle, and waiting for disks */
	return true;
}

static void each_process(void *ctx, const char *name, uint64_t cpu_ns, uint64_t bytes)
{
	uint64_t *own_ns = ctx;

	(void)bytes;
	for (int i = OWN_WEB; i <= OWN_PUSH; i++)
		if (!strcmp(name + strlen(PREFIX), own_names[i]))
			own_ns[i] += cpu_ns;
	if (!strcmp(name, LOOKS_PROCESS)) /* it lasts for seconds */
		own_ns[OWN_LOOKS] += cpu_ns;
}

static uint64_t ns_of(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static void tend_own(struct figures *f, uint64_t looks_ns, double base_ns)
{
	uint64_t now_ns[OWN_NR] = {[OWN_LOOKS] = looks_ns};
	struct rusage self = {0};

	getrusage(RUSAGE_SELF, &self);
	now_ns[OWN_DAEMON] = ns_of(self.ru_utime) + ns_of(self.ru_stime);
	children__each(each_process, now_ns);
	/* one that has ended says a little less of itself */
	if (now_ns[OWN_LOOKS] < f->own_ns[OWN_LOOKS])
		now_ns[OWN_LOOKS] = f->own_ns[OWN_LOOKS];
	for (int i = 0; i < OWN_NR; i++) {
		/* less: it is another process */
		uint64_t more = now_ns[i] - (now_ns[i] >= f->own_ns[i] ? f->own_ns[i] : 0);

		f->own_ns[i] = now_ns[i];
		add_cost(f, "daemon", own_names[i], (double)more, base_ns);
	}
}

void figures__tend(struct figures *f, struct daemon *d, uint64_t looks_ns)
{
	uint64_t busy_ns = 0, all_ns = 0;
	double base_ns = 0;

	metrics__at(f->metrics, now_ns(CLOCK_MONOTONIC) / 1000000000u);
	f->second = 0;
	f->cpu = -1;
	if (read_machine(&busy_ns, &all_ns)) {
		if (f->all_ns && all_ns > f->all_ns && busy_ns >= f->busy_ns) {
			base_ns = (double)(busy_ns - f->busy_ns);
			f->cpu = base_ns / (double)(all_ns - f->all_ns);
			f->busy_cpus = f->cpu * (double)sysconf(_SC_NPROCESSORS_ONLN);
		}
		f->busy_ns = busy_ns;
		f->all_ns = all_ns;
	}
	tend_own(f, looks_ns, base_ns);
	for (int i = 0; i < CHUNK_KINDS; i++)
		tend_session(f, i, stats_of(d, i), is_there(d, i));
	if (d->windows) /* what the last one's end took is known afterwards */
		add_cost(f, session_names[CHUNK_DEVICE], "begin",
			 grown(&f->window_begins_ns, (double)windows__begin_ns(d->windows)),
			 windows__go_on(d->windows) ? base_ns : 0);
	f->history[f->next_history] = f->second;
	f->next_history = (f->next_history + 1) % FIGURES_HISTORY;
	f->nr_history += f->nr_history < FIGURES_HISTORY;
}

void figures__ended(struct figures *f, enum chunk_kind kind)
{
	f->sessions[kind].over = true;
	metrics__clear_of(f->metrics, METRICS_OVERHEAD, session_names[kind]);
	metrics__clear_of(f->metrics, METRICS_SHED_LEVEL, session_names[kind]);
	metrics__clear_of(f->metrics, METRICS_PROCESSES, session_states[kind]);
}

/* ---- at any moment ---- */

/* o: is freed. known: whether what it does at the moment is; what it has done stays. */
static void fill_session(struct figures *f, enum chunk_kind kind, cJSON *o, bool known)
{
	const char *name = chunk_kind_names[kind];
	const cJSON *now = cJSON_GetObjectItemCaseSensitive(o, "now");
	struct metrics *m = f->metrics;

	metrics__set(m, METRICS_CHUNKS, METRICS_OF(name), json_number(o, "chunks"));
	metrics__set(m, METRICS_CHUNK_BYTES, METRICS_OF(name), json_number(o, "chunk_bytes"));
	metrics__set(m, METRICS_CHUNKS_DROPPED, METRICS_OF(name, "not_stored"),
		     json_number(o, "chunks_not_stored"));
	metrics__set(m, METRICS_STORED, METRICS_OF(name), json_number(o, "stored_bytes"));
	if (known) { /* between two windows, no process is in one */
		metrics__set(m, METRICS_SHED_LEVEL, METRICS_OF(session_names[kind]),
			     json_number(now, "given_up"));
		metrics__set(m, METRICS_PROCESSES, METRICS_OF(session_states[kind]),
			     json_number(now, "processes"));
	}
	cJSON_Delete(o);
}

static void add_memory(void *ctx, const char *name, uint64_t cpu_ns, uint64_t bytes)
{
	struct figures *f = ctx;

	(void)cpu_ns;
	if (!strncmp(name, PREFIX, strlen(PREFIX)))
		name += strlen(PREFIX);
	metrics__add(f->metrics, METRICS_MEMORY, METRICS_OF(name), (double)bytes);
	f->memory += bytes;
}

static void fill_memory(struct figures *f, const struct daemon *d)
{
	metrics__clear(f->metrics, METRICS_MEMORY);
	f->memory = 0;
	children__each(add_memory, f);
	for (int i = 0; i < CHUNK_KINDS; i++)
		if (stats_of(d, i))
			add_memory(f, "kernel", 0,
				   (uint64_t)json_number(stats_of(d, i), "kernel_bytes"));
	metrics__set(f->metrics, METRICS_MEMORY_MAX, METRICS_PLAIN, (double)d->opts->max_memory);
}

static void fill_recordings(struct figures *f, const struct daemon *d)
{
	double nr[RECORDING_DONE] = {0};
	struct recording *r = NULL;

	while ((r = recordings__next(d->recordings, r)))
		if (recording__state(r) < RECORDING_DONE)
			nr[recording__state(r)]++;
	for (int i = 0; i < RECORDING_DONE; i++)
		metrics__set(f->metrics, METRICS_RECORDINGS_ACTIVE,
			     METRICS_OF(recording_state_name(i)), nr[i]);
}

static void fill_pusher(struct figures *f, const struct pusher *p)
{
	static const char *const results[] = {"pushed", "retried", "rejected"};
	cJSON *o = pusher__state(p);
	struct metrics *m = f->metrics;

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		metrics__set(m, METRICS_PUSHES, METRICS_OF(results[i]), json_number(o, results[i]));
	for (int i = 0; i < KPROF_PUSH_DROPS; i++)
		metrics__set(m, METRICS_PUSHES, METRICS_OF(kprof_push_drop_name(i)),
			     json_number(o, kprof_push_drop_name(i)));
	metrics__set(m, METRICS_PUSHED_BYTES, METRICS_PLAIN, json_number(o, "pushed_bytes"));
	metrics__set(m, METRICS_PUSH_QUEUE, METRICS_PLAIN, json_number(o, "queued_bytes"));
	metrics__set(m, METRICS_CHUNKS_DROPPED, METRICS_OF("samples", "not_handed_on"),
		     json_number(o, "captures_not_handed_over"));
	cJSON_Delete(o);
}

static void fill_kineto(struct figures *f, struct kineto *k)
{
	cJSON *o = kineto__state(k);

	metrics__set(f->metrics, METRICS_PROCESSES, METRICS_OF("kineto"),
		     json_number(o, "registered"));
	metrics__set(f->metrics, METRICS_REQUESTS, METRICS_OF("kineto", "ok"),
		     json_number(o, "polls"));
	metrics__set(f->metrics, METRICS_REQUESTS, METRICS_OF("dyno", "ok"),
		     json_number(o, "requests"));
	metrics__set(f->metrics, METRICS_REQUESTS, METRICS_OF("dynolog", "refused"),
		     json_number(o, "refused"));
	cJSON_Delete(o);
}

void figures__fill(struct figures *f, struct daemon *d)
{
	double uptime = (double)(now_ns(CLOCK_MONOTONIC) - d->begun_ns) / 1e9;
	struct metrics *m = f->metrics;
	struct utsname un = {0};

	uname(&un);
	metrics__set(m, METRICS_BUILD, METRICS_OF(kprof_version(), un.release), 1);
	metrics__set(m, METRICS_UPTIME, METRICS_PLAIN, uptime);
	metrics__set(m, METRICS_OVERHEAD_MAX, METRICS_PLAIN, d->opts->overhead);
	metrics__clear(m, METRICS_SHED_LEVEL);
	metrics__clear(m, METRICS_PROCESSES);
	for (int i = CHUNK_SAMPLES; i <= CHUNK_FLIGHT; i++)
		if (keeper_of(d, i))
			fill_session(f, i, keeper__state(keeper_of(d, i)), stats_of(d, i));
	if (d->windows)
		fill_session(f, CHUNK_DEVICE, windows__state(d->windows),
			     windows__go_on(d->windows));
	fill_memory(f, d);
	fill_recordings(f, d);
	if (d->pusher)
		fill_pusher(f, d->pusher);
	if (d->kineto)
		fill_kineto(f, d->kineto);
}

/* ---- all ---- */

struct figures *figures__new(void)
{
	struct figures *f = calloc(1, sizeof(*f));

	if (f)
		f->metrics = metrics__new();
	if (f && f->metrics)
		return f;
	free(f);
	return NULL;
}

void figures__free(struct figures *f)
{
	if (f)
		metrics__free(f->metrics);
	free(f);
}

struct metrics *figures__metrics(struct figures *f)
{
	return f->metrics;
}

size_t figures__history(const struct figures *f, double to[FIGURES_HISTORY])
{
	for (size_t i = 0; i < f->nr_history; i++)
		to[i] = f->history[(f->next_history + FIGURES_HISTORY - f->nr_history + i) %
				   FIGURES_HISTORY];
	return f->nr_history;
}

uint64_t figures__memory(const struct figures *f)
{
	return f->memory;
}

double figures__busy_cpus(const struct figures *f)
{
	return f->busy_cpus;
}

double figures__cpu(const struct figures *f)
{
	return f->cpu;
}
