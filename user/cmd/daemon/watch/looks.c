// SPDX-License-Identifier: BSD-2-Clause
/*
 * The numbers by process, out of chunks that a process without rights looks at, one at a time. What
 * that costs is bounded: a look reads at a pace, after it no other one begins until its share has
 * come down, and none begins in the second in which a chunk has ended, for that costs by itself.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/daemon/show/serve.h"
#include "cmd/print/json_get.h"

#define SECOND_NS 1000000000ull
#define SHARE 0.3       /* what looks may take of the daemon's bound */
#define MOST_WAITING 12 /* a minute of the flight recorder's */
#define MOST_STEPPERS 64
#define TOO_LONG_NS (600 * SECOND_NS)
/* After the chunk has ended, which cost much; before names of the next one are looked up. */
#define LATER_NS (5 * SECOND_NS / 4)

struct waiting {
	enum chunk_kind kind;
	char path[DAEMON_PATH_BYTES];
	uint64_t not_before_ns;
};

/* A step that went on when its chunk ended. */
struct open_step {
	pid_t pid;
	double number, begin_ns;
};

struct looks {
	struct loop *loop;
	struct metrics *metrics;
	const char *folder;
	struct child child;
	struct count_job job;
	bool done;    /* it has said what it cost */
	double share; /* of one CPU's time */
	uint64_t begun_ns, not_before_ns, cpu_ns;
	struct waiting waiting[MOST_WAITING];
	size_t nr_waiting;
	struct open_step open[MOST_STEPPERS];
	size_t next_open;
	struct looked samples;
	bool has_samples, sampler_has_times;
	bool ended[CHUNK_KINDS];  /* nothing records these any more */
	cJSON *said[CHUNK_KINDS]; /* the last lists of processes */
	double window_ns[CHUNK_KINDS];
	double gpu_busy;
};

static double number(const cJSON *list, int at)
{
	double v = cJSON_GetNumberValue(cJSON_GetArrayItem(list, at));

	return v > 0 && v < 1e19 ? v : 0;
}

static const char *text(const cJSON *list, int at)
{
	const char *s = cJSON_GetStringValue(cJSON_GetArrayItem(list, at));

	return s ? s : "";
}

static void result(struct looks *l, enum chunk_kind kind, const char *what)
{
	metrics__add(l->metrics, METRICS_LOOKS, METRICS_OF(chunk_kind_names[kind], what), 1);
}

/* ---- what a look says; count.c has the order ---- */

enum { NAME, USER, PID, SAMPLES, CPU, OPERATORS, DEVICE, LIFE, RUNNABLE, BLOCKED };

/*
 * Shares of the time of all processes of a name together. The sampler sees the switches of all
 * threads; where it does not, the flight recorder may see those of what it watches.
 */
static void set_shares(struct looks *l, const cJSON *list)
{
	const cJSON *p, *other;

	if (l->job.kind == CHUNK_SAMPLES) {
		l->sampler_has_times = false;
		cJSON_ArrayForEach(p, list)
		{
			l->sampler_has_times |= number(p, LIFE) > 0;
		}
	} else if (l->job.kind != CHUNK_FLIGHT || l->sampler_has_times) {
		return;
	}
	metrics__clear(l->metrics, METRICS_RUNQUEUE);
	metrics__clear(l->metrics, METRICS_WAIT);
	cJSON_ArrayForEach(p, list)
	{
		double life = 0, runnable = 0, blocked = 0;

		cJSON_ArrayForEach(other, list)
		{
			if (strcmp(text(p, NAME), text(other, NAME)) != 0)
				continue;
			life += number(other, LIFE);
			runnable += number(other, RUNNABLE);
			blocked += number(other, BLOCKED);
		}
		if (!(life > 0))
			continue;
		metrics__set(l->metrics, METRICS_RUNQUEUE, METRICS_OF(text(p, NAME)),
			     runnable / life);
		metrics__set(l->metrics, METRICS_WAIT, METRICS_OF(text(p, NAME)), blocked / life);
	}
}

static void take_processes(struct looks *l, const cJSON *m, const cJSON *list)
{
	const cJSON *p;

	cJSON_ArrayForEach(p, list)
	{
		if (l->job.kind == CHUNK_SAMPLES && number(p, SAMPLES) > 0)
			metrics__add(l->metrics, METRICS_SAMPLES, METRICS_OF(text(p, NAME)),
				     number(p, SAMPLES));
		if (l->job.kind == CHUNK_FLIGHT && number(p, OPERATORS) > 0)
			metrics__add(l->metrics, METRICS_OPERATORS, METRICS_OF(text(p, NAME)),
				     number(p, OPERATORS));
	}
	set_shares(l, list);
	cJSON_Delete(l->said[l->job.kind]);
	l->said[l->job.kind] = cJSON_Duplicate(m, true);
}

void looks__no_gpus(struct looks *l)
{
	metrics__clear(l->metrics, METRICS_GPU_BUSY);
	metrics__clear(l->metrics, METRICS_GPU_RATE);
	l->gpu_busy = -1;
	cJSON_Delete(l->said[CHUNK_DEVICE]);
	l->said[CHUNK_DEVICE] = NULL;
}

/* Only device windows have them. */
static void take_gpus(struct looks *l, const cJSON *list, double window_ns)
{
	enum { GPU_PID, GPU_NAME, GPU_DEVICE, GPU_ACTIVITIES, GPU_BUSY };
	const cJSON *g, *other;
	char device[24];

	if (!(window_ns > 0))
		return;
	metrics__clear(l->metrics, METRICS_GPU_BUSY);
	metrics__clear(l->metrics, METRICS_GPU_RATE);
	l->gpu_busy = -1;
	cJSON_ArrayForEach(g, list)
	{
		double busy = 0, nr = 0;

		/* ranks of a job may all call theirs 0: the mean of these */
		cJSON_ArrayForEach(other, list)
		{
			if (number(g, GPU_DEVICE) != number(other, GPU_DEVICE) ||
			    strcmp(text(g, GPU_NAME), text(other, GPU_NAME)) != 0)
				continue;
			busy += number(other, GPU_BUSY);
			nr++;
		}
		snprintf(device, sizeof(device), "%.0f", number(g, GPU_DEVICE));
		metrics__add(l->metrics, METRICS_GPU_ACTIVITIES, METRICS_OF(text(g, GPU_NAME)),
			     number(g, GPU_ACTIVITIES));
		metrics__add(l->metrics, METRICS_GPU_RATE, METRICS_OF(text(g, GPU_NAME)),
			     number(g, GPU_ACTIVITIES) * 1e9 / window_ns);
		metrics__set(l->metrics, METRICS_GPU_BUSY, METRICS_OF(device, text(g, GPU_NAME)),
			     busy / nr);
		if (number(g, GPU_BUSY) > l->gpu_busy)
			l->gpu_busy = number(g, GPU_BUSY);
	}
}

static struct open_step *open_of(struct looks *l, double pid, double step)
{
	for (size_t i = 0; i < MOST_STEPPERS; i++)
		if (l->open[i].pid == (pid_t)pid && l->open[i].number == step)
			return &l->open[i];
	return NULL;
}

/* A step that lies in several chunks is the same number in each. */
static void take_steps(struct looks *l, const cJSON *list)
{
	enum { STEP_PID, STEP_NAME, STEP_NUMBER, STEP_BEGIN, STEP_END, STEP_FLAGS };
	const cJSON *s;

	cJSON_ArrayForEach(s, list)
	{
		double pid = number(s, STEP_PID), begin_ns = number(s, STEP_BEGIN);
		unsigned int flags = (unsigned int)number(s, STEP_FLAGS);
		bool from_before = flags & COUNT_STEP_FROM_BEFORE;
		struct open_step *open = open_of(l, pid, number(s, STEP_NUMBER));

		if (from_before && open)
			begin_ns = open->begin_ns;
		if (flags & COUNT_STEP_GOES_ON) {
			if (!open && from_before)
				continue; /* nobody saw its begin */
			if (!open)
				open = &l->open[l->next_open++ % MOST_STEPPERS];
			*open = (struct open_step){(pid_t)pid, number(s, STEP_NUMBER), begin_ns};
			continue;
		}
		if (open)
			*open = (struct open_step){0};
		if (!from_before || open)
			metrics__observe(l->metrics, METRICS_STEP_TIME,
					 METRICS_OF(text(s, STEP_NAME)),
					 (number(s, STEP_END) - begin_ns) / 1e9);
	}
}

static void take_cost(struct looks *l, const cJSON *m)
{
	l->done = true;
	l->cpu_ns += (uint64_t)json_number(m, "cost_ns");
	l->not_before_ns = l->begun_ns + (uint64_t)(json_number(m, "cost_ns") / l->share);
	l->window_ns[l->job.kind] = json_number(m, "window_ns");
	if (l->job.kind != CHUNK_SAMPLES)
		return;
	l->has_samples = true;
	memcpy(l->samples.path, l->job.path, sizeof(l->samples.path));
	l->samples.samples = (uint64_t)json_number(m, "samples");
	l->samples.from_ms = (uint64_t)json_number(m, "from_ms");
	l->samples.to_ms = (uint64_t)json_number(m, "to_ms");
}

/* Not what is counted. */
static void forget(struct looks *l, enum chunk_kind kind)
{
	enum chunk_kind of_shares = l->sampler_has_times ? CHUNK_SAMPLES : CHUNK_FLIGHT;

	cJSON_Delete(l->said[kind]);
	l->said[kind] = NULL;
	l->window_ns[kind] = 0;
	if (kind == of_shares) {
		metrics__clear(l->metrics, METRICS_RUNQUEUE);
		metrics__clear(l->metrics, METRICS_WAIT);
	}
	if (kind == CHUNK_SAMPLES)
		l->has_samples = l->sampler_has_times = false;
	if (kind == CHUNK_DEVICE)
		looks__no_gpus(l);
}

void looks__ended(struct looks *l, enum chunk_kind kind)
{
	l->ended[kind] = true;
	forget(l, kind);
}

static void on_message(void *ctx, const cJSON *m)
{
	const cJSON *processes = cJSON_GetObjectItemCaseSensitive(m, "processes");
	const cJSON *gpus = cJSON_GetObjectItemCaseSensitive(m, "gpus");
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "error"));
	struct looks *l = ctx;

	if (cJSON_IsArray(processes))
		take_processes(l, m, processes);
	if (cJSON_IsArray(gpus))
		take_gpus(l, gpus, json_number(m, "window_ns"));
	take_steps(l, cJSON_GetObjectItemCaseSensitive(m, "steps"));
	if (cJSON_HasObjectItem(m, "cost_ns"))
		take_cost(l, m);
	if (l->ended[l->job.kind])
		forget(l, l->job.kind);
	if (error)
		log_line("warning", "look", NULL, "%s could not be looked at: %s", l->job.path,
			 error);
}

static void on_end(void *ctx, int status)
{
	struct looks *l = ctx;

	(void)status;
	result(l, l->job.kind, l->done ? "done" : "failed");
	if (!l->done) /* nobody knows what it took: as long as it lived, at most */
		l->not_before_ns = now_ns(CLOCK_MONOTONIC) + 10 * SECOND_NS;
}

/* ---- one after the other ---- */

static void begin(struct looks *l, uint64_t now)
{
	struct waiting next;

	if (l->child.pid || !l->nr_waiting || now < l->not_before_ns ||
	    now < l->waiting[0].not_before_ns)
		return;
	next = l->waiting[0];
	memmove(l->waiting, l->waiting + 1, --l->nr_waiting * sizeof(next));
	l->job.kind = next.kind;
	l->done = false;
	l->begun_ns = now;
	l->job.folder = l->folder;
	l->job.ns_a_second = (uint64_t)(l->share * (double)SECOND_NS);
	memcpy(l->job.path, next.path, sizeof(l->job.path));
	l->child = (struct child){
		.name = LOOKS_PROCESS,
		.message = on_message,
		.ended = on_end,
		.ctx = l,
	};
	if (child__start(l->loop, &l->child, count_run, &l->job))
		result(l, l->job.kind, "failed");
}

void looks__chunk(struct looks *l, enum chunk_kind kind, const char *path)
{
	struct waiting *w;

	l->ended[kind] = false;
	if (l->nr_waiting == MOST_WAITING) { /* the oldest gives way */
		result(l, l->waiting[0].kind, "skipped");
		memmove(l->waiting, l->waiting + 1, --l->nr_waiting * sizeof(*w));
	}
	w = &l->waiting[l->nr_waiting++];
	w->kind = kind;
	snprintf(w->path, sizeof(w->path), "%s", path);
	w->not_before_ns = now_ns(CLOCK_MONOTONIC) + LATER_NS;
}

void looks__tend(struct looks *l, uint64_t now, double bound)
{
	l->share = bound * SHARE;
	if (l->child.pid && now > l->begun_ns + TOO_LONG_NS)
		kill(l->child.pid, SIGKILL);
	begin(l, now);
}

void looks__stop(struct looks *l)
{
	l->nr_waiting = 0;
	if (l->child.pid)
		kill(l->child.pid, SIGKILL);
}

struct looks *looks__new(struct loop *loop, struct metrics *m, const char *folder)
{
	struct looks *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->loop = loop;
	l->metrics = m;
	l->folder = folder;
	l->gpu_busy = -1;
	return l;
}

void looks__free(struct looks *l)
{
	for (int i = 0; l && i < CHUNK_KINDS; i++)
		cJSON_Delete(l->said[i]);
	free(l);
}

uint64_t looks__cpu_ns(const struct looks *l)
{
	return l->cpu_ns;
}

const struct looked *looks__samples(const struct looks *l)
{
	return l->has_samples ? &l->samples : NULL;
}

double looks__gpu_busy(const struct looks *l)
{
	return l->gpu_busy;
}

/* ---- for the page ---- */

/* What the last device window says of a process. */
static double device_ratio(const struct looks *l, double pid)
{
	const cJSON *p,
		*list = cJSON_GetObjectItemCaseSensitive(l->said[CHUNK_DEVICE], "processes");

	cJSON_ArrayForEach(p, list)
	{
		if (number(p, PID) == pid && number(p, DEVICE) > 0 &&
		    l->window_ns[CHUNK_DEVICE] > 0)
			return number(p, DEVICE) / l->window_ns[CHUNK_DEVICE];
	}
	return -1;
}

static double memory_of(pid_t pid)
{
	unsigned long long pages = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	if (fscanf(f, "%*u %llu", &pages) != 1)
		pages = 0;
	fclose(f);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static cJSON *describe(const struct looks *l, const cJSON *p)
{
	cJSON *o = cJSON_CreateObject();
	double life = number(p, LIFE), window = l->window_ns[CHUNK_SAMPLES], gpu, bytes;

	cJSON_AddNumberToObject(o, "pid", number(p, PID));
	cJSON_AddStringToObject(o, "name", text(p, NAME));
	cJSON_AddStringToObject(o, "user", text(p, USER));
	if (window > 0)
		cJSON_AddNumberToObject(o, "cpu_ratio", number(p, CPU) / window);
	if (life > 0) {
		cJSON_AddNumberToObject(o, "wait_ratio", number(p, BLOCKED) / life);
		cJSON_AddNumberToObject(o, "runqueue_ratio", number(p, RUNNABLE) / life);
	}
	bytes = memory_of((pid_t)number(p, PID));
	if (bytes > 0)
		cJSON_AddNumberToObject(o, "memory_bytes", bytes);
	gpu = device_ratio(l, number(p, PID));
	if (gpu >= 0)
		cJSON_AddNumberToObject(o, "gpu_ratio", gpu);
	return o;
}

cJSON *looks__processes(const struct looks *l)
{
	cJSON *o = cJSON_CreateObject(), *to = cJSON_AddArrayToObject(o, "processes");
	/* where nothing is sampled, at least those that are watched */
	const cJSON *said = l->said[l->said[CHUNK_SAMPLES] ? CHUNK_SAMPLES : CHUNK_FLIGHT], *p;
	double others = json_number(said, "others");

	cJSON_ArrayForEach(p, cJSON_GetObjectItemCaseSensitive(said, "processes"))
	{
		if (number(p, PID) > 0)
			cJSON_AddItemToArray(to, describe(l, p));
		else /* those that lived too briefly for a row of their own, or are too many */
			others += *text(p, USER) ? 1 : 0;
	}
	cJSON_AddNumberToObject(o, "others", others);
	return o;
}
