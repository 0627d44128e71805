// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rules by which a dump of the flight recorder is made without being asked for. Each capture is
 * looked at by a process of its own; what is known of steps before is kept here.
 */
#include "cmd/daemon/watch/triggers.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define SECOND_NS 1000000000ull
#define HISTORY 1000 /* durations of steps that percentiles are of */
#define LEAST_HISTORY 20
#define MOST_RULES 64
#define MOST_PROCESSES 256
#define TOO_LONG_NS (120 * SECOND_NS)
#define MESSAGE_BYTES 8192           /* of the kernel: longer ones are cut (printk) */
#define BORDER_NS (SECOND_NS / 1000) /* between two captures, a shorter time is none */

/* The steps of one process. */
struct stepper {
	pid_t pid;
	uint64_t last_end_ns;
	uint64_t open_since_ns, open_seen_ns; /* the step that goes on, or 0; when it last did */
	uint64_t told;                        /* 1 << number of each rule that it has met */
	double history[HISTORY];              /* a ring of durations */
	size_t nr, next;
};

struct triggers {
	struct triggers_opts opts;
	struct trigger_rule rules[MOST_RULES];
	size_t nr;
	bool of_captures, of_steps, of_kernel, of_gpus;
	struct child child;
	struct look_job job;
	uint64_t begun_ns;                    /* the look that goes on, if one does */
	char *paths[LOOK_MOST_CAPTURES];      /* the latest captures, as many as steps may need */
	uint64_t read_ns[LOOK_MOST_CAPTURES]; /* when each was handed over */
	size_t nr_paths;
	/* for when the look that goes on has ended: the last of these, and a device window or "" */
	bool chunk_waits;
	char window_waits[DAEMON_PATH_BYTES];
	struct stepper *steppers[MOST_PROCESSES];
	size_t nr_steppers;
	struct loop_watch kernel;
	uint64_t dumped_ns[MOST_RULES]; /* the last dump by each rule; 0: none yet */
	uint64_t looks, skipped, met, held_back, asked;
	bool freed; /* only a look still goes on */
};

static void free_all(struct triggers *t)
{
	while (t->nr_paths)
		free(t->paths[--t->nr_paths]);
	while (t->nr_steppers)
		free(t->steppers[--t->nr_steppers]);
	free(t);
}

/* False: it is held back, by itself: what is met all the time does not hold back other rules. */
static bool meet(struct triggers *t, const struct trigger_rule *rule, uid_t asked_by,
		 const char *what)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC), *last_ns = &t->dumped_ns[rule - t->rules];

	t->met++;
	if (*last_ns && now < *last_ns + t->opts.pause_ns) {
		t->held_back++;
		return false;
	}
	*last_ns = now;
	t->opts.met(t->opts.ctx, rule, asked_by, what);
	return true;
}

/* ---- steps ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double percentile_of(const struct stepper *s, double share)
{
	static double sorted[HISTORY];
	size_t at = (size_t)(share * (double)(s->nr - 1) + 0.5);

	memcpy(sorted, s->history, s->nr * sizeof(*sorted));
	qsort(sorted, s->nr, sizeof(*sorted), by_value);
	return sorted[at];
}

static struct stepper *stepper_of(struct triggers *t, pid_t pid)
{
	struct stepper *s;

	for (size_t i = 0; i < t->nr_steppers; i++)
		if (t->steppers[i]->pid == pid)
			return t->steppers[i];
	/* in place of one that has ended */
	for (size_t i = 0; i < t->nr_steppers; i++)
		if (kill(t->steppers[i]->pid, 0) && errno == ESRCH) {
			*t->steppers[i] = (struct stepper){.pid = pid};
			return t->steppers[i];
		}
	s = t->nr_steppers < MOST_PROCESSES ? calloc(1, sizeof(*s)) : NULL;
	if (!s)
		return NULL;
	s->pid = pid;
	t->steppers[t->nr_steppers++] = s;
	return s;
}

/* The limit of a rule for this process; 0: there is none yet. */
static double limit_of(const struct trigger_rule *rule, const struct stepper *s)
{
	if (rule->ns)
		return (double)rule->ns;
	return s->nr < LEAST_HISTORY ? 0 : percentile_of(s, rule->percentile) * rule->factor;
}

/* A step by its times, which may be the one that went on when it was last looked at. */
static void follow(struct stepper *s, uint64_t begin_ns, uint64_t end_ns)
{
	if (!s->open_since_ns || begin_ns > s->open_seen_ns + BORDER_NS) {
		s->open_since_ns = begin_ns;
		s->told = 0;
	}
	/* captures from before may be gone, and the begin with them */
	if (begin_ns < s->open_since_ns)
		s->open_since_ns = begin_ns;
	s->open_seen_ns = end_ns;
}

/* Each rule is met once by a step, be it while that goes on or when it is over. */
static void check_step(struct triggers *t, struct stepper *s, double ns, bool goes_on)
{
	double limits[MOST_RULES] = {0};
	uint64_t longer = 0;
	char what[160];

	for (size_t i = 0; i < t->nr; i++) {
		limits[i] = t->rules[i].kind == TRIGGER_STEP ? limit_of(&t->rules[i], s) : 0;
		if (limits[i] > 0 && ns > limits[i])
			longer |= 1ull << i;
	}
	for (size_t i = 0; i < t->nr; i++) {
		if (!((longer & ~s->told) >> i & 1))
			continue;
		snprintf(what, sizeof(what), "a step of process %d %s %.1f ms, more than %.1f ms",
			 (int)s->pid, goes_on ? "goes on after" : "took", ns / 1e6,
			 limits[i] / 1e6);
		if (meet(t, &t->rules[i], 0, what))
			s->told |= longer; /* one dump has it, for all of these */
	}
}

static void take_step(struct triggers *t, pid_t pid, uint64_t end_ns, double duration_ns,
		      bool goes_on)
{
	struct stepper *s = stepper_of(t, pid);

	if (!s || end_ns <= s->last_end_ns)
		return;
	follow(s, end_ns - (uint64_t)duration_ns, end_ns);
	duration_ns = (double)(end_ns - s->open_since_ns);
	if (!goes_on || duration_ns >= (double)t->opts.open_ns)
		check_step(t, s, duration_ns, goes_on);
	if (goes_on)
		return;
	s->open_since_ns = 0;
	s->last_end_ns = end_ns;
	s->history[s->next] = duration_ns;
	s->next = (s->next + 1) % HISTORY;
	s->nr += s->nr < HISTORY;
}

static void take_steps(struct triggers *t, const cJSON *steps)
{
	const cJSON *step;

	cJSON_ArrayForEach(step, steps)
	{
		const cJSON *pid = cJSON_GetArrayItem(step, 0), *end = cJSON_GetArrayItem(step, 1),
			    *ns = cJSON_GetArrayItem(step, 2), *on = cJSON_GetArrayItem(step, 3);

		if (cJSON_IsNumber(pid) && cJSON_IsNumber(end) && cJSON_IsNumber(ns) &&
		    end->valuedouble > 0 && end->valuedouble < 1e19 && ns->valuedouble >= 0 &&
		    ns->valuedouble <= end->valuedouble)
			take_step(t, (pid_t)pid->valueint, (uint64_t)end->valuedouble,
				  ns->valuedouble, cJSON_GetNumberValue(on) > 0);
	}
}

/* ---- looks ---- */

static void on_message(void *ctx, const cJSON *m)
{
	struct triggers *t = ctx;
	const cJSON *met = cJSON_GetObjectItemCaseSensitive(m, "met");
	const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "what"));
	const char *error = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "error"));

	if (t->freed)
		return;
	if (cJSON_IsNumber(met) && what && met->valueint >= 0 && (size_t)met->valueint < t->nr)
		meet(t, &t->rules[met->valueint], 0, what);
	take_steps(t, cJSON_GetObjectItemCaseSensitive(m, "steps"));
	if (error)
		log_line("warning", "look", NULL, "a capture could not be looked at: %s", error);
}

static void look_at_next(struct triggers *t);

static void on_end(void *ctx, int status)
{
	struct triggers *t = ctx;

	(void)status;
	t->looks++;
	if (t->freed)
		free_all(t);
	else
		look_at_next(t);
}

/* Captures from before the last step of every process are not needed any more. */
static void drop_paths(struct triggers *t)
{
	uint64_t oldest = UINT64_MAX;
	size_t drop = 0;

	for (size_t i = 0; i < t->nr_steppers; i++)
		if (t->steppers[i]->last_end_ns < oldest && !kill(t->steppers[i]->pid, 0))
			oldest = t->steppers[i]->last_end_ns;
	/* one that was handed over before then has ended before then */
	while (drop + 1 < t->nr_paths &&
	       (t->read_ns[drop] < oldest || t->nr_paths - drop == LOOK_MOST_CAPTURES))
		free(t->paths[drop++]);
	t->nr_paths -= drop;
	memmove(t->paths, t->paths + drop, t->nr_paths * sizeof(*t->paths));
	memmove(t->read_ns, t->read_ns + drop, t->nr_paths * sizeof(*t->read_ns));
}

/* Looks at what .job has the paths of, if the last one, this, is still there. */
static void look(struct triggers *t, const char *path)
{
	static char folder[DAEMON_PATH_BYTES];
	char *slash;

	if (access(path, F_OK)) {
		t->skipped++;
		return;
	}
	snprintf(folder, sizeof(folder), "%s", path);
	slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	t->job.folder = folder;
	t->job.rules = t->rules;
	t->job.nr = t->nr;
	t->child = (struct child){
		.name = "kprof-look",
		.message = on_message,
		.ended = on_end,
		.ctx = t,
	};
	t->begun_ns = now_ns(CLOCK_MONOTONIC);
	child__start(t->opts.loop, &t->child, look_run, &t->job);
}

static void look_at_chunk(struct triggers *t)
{
	size_t last = t->nr_paths - 1;

	t->job = (struct look_job){.steps = t->of_steps};
	for (size_t i = t->of_steps ? 0 : last; i < last; i++)
		if (!access(t->paths[i], F_OK)) /* old ones may have been removed */
			t->job.paths[t->job.nr_paths++] = t->paths[i];
	t->job.paths[t->job.nr_paths++] = t->paths[last];
	look(t, t->paths[last]);
}

/* One look at a time: of what comes meanwhile, the latest window and the latest chunk wait. */
static void look_at_next(struct triggers *t)
{
	if (*t->window_waits && !t->child.pid) {
		t->job = (struct look_job){
			.paths = {t->window_waits}, .nr_paths = 1, .only_gpus = true};
		look(t, t->window_waits);
		*t->window_waits = '\0'; /* the look has a copy */
	}
	if (t->chunk_waits && !t->child.pid) {
		t->chunk_waits = false;
		look_at_chunk(t);
	}
}

void triggers__window(struct triggers *t, const char *path)
{
	if (!t->of_gpus)
		return;
	t->skipped += *t->window_waits != '\0';
	snprintf(t->window_waits, sizeof(t->window_waits), "%s", path);
	look_at_next(t);
}

void triggers__chunk(struct triggers *t, const char *path)
{
	if (!t->of_captures)
		return;
	drop_paths(t);
	t->paths[t->nr_paths] = strdup(path);
	if (!t->paths[t->nr_paths])
		return;
	t->read_ns[t->nr_paths++] = now_ns(CLOCK_MONOTONIC);
	t->skipped += t->chunk_waits; /* looks are slower than the recording */
	t->chunk_waits = true;
	look_at_next(t);
}

void triggers__tend(struct triggers *t, uint64_t now)
{
	if (t && t->child.pid && now > t->begun_ns + TOO_LONG_NS)
		kill(t->child.pid, SIGKILL);
}

/* ---- messages of the kernel ---- */

static void take_message(struct triggers *t, const char *text)
{
	char what[200];

	for (size_t i = 0; i < t->nr; i++) {
		const struct trigger_rule *rule = &t->rules[i];

		if (rule->kind == TRIGGER_OOM
			    ? !strstr(text, "ut of memory: Killed process")
			    : rule->kind != TRIGGER_KERNEL || fnmatch(rule->glob, text, 0))
			continue;
		snprintf(what, sizeof(what), "the kernel says: %.160s", text);
		if (meet(t, rule, 0, what))
			return;
	}
}

/* A record is "level,number,time,flags;text\n", then lines that begin with a blank. */
static void on_kernel(void *ctx, uint32_t events)
{
	static char text[MESSAGE_BYTES + 1];
	struct triggers *t = ctx;
	ssize_t n = read(t->kernel.fd, text, MESSAGE_BYTES);
	char *message;

	(void)events;
	if (n <= 0) { /* EPIPE: some were overwritten before they were read */
		if (n < 0 && errno != EPIPE && errno != EAGAIN && errno != EINTR)
			loop__remove(t->opts.loop, &t->kernel);
		return;
	}
	text[n] = '\0';
	message = strchr(text, ';');
	if (!message)
		return;
	message++;
	message[strcspn(message, "\n")] = '\0';
	take_message(t, message);
}

static void watch_kernel(struct triggers *t)
{
	t->kernel = (struct loop_watch){
		.fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC),
		.ready = on_kernel,
		.ctx = t,
	};
	if (t->kernel.fd < 0 || lseek(t->kernel.fd, 0, SEEK_END) < 0 ||
	    loop__add(t->opts.loop, &t->kernel, EPOLLIN)) {
		log_line("error", "trigger", NULL, "the kernel's messages cannot be read: %s",
			 strerror(errno));
		if (t->kernel.fd >= 0)
			close(t->kernel.fd);
		t->kernel.fd = -1;
	}
}

/* ---- signals by which somebody asks ---- */

void triggers__asked(struct triggers *t, uint64_t times, int signal, pid_t pid, uid_t uid)
{
	char what[160];

	t->asked += times;
	for (size_t i = 0; i < t->nr; i++) {
		const struct trigger_rule *rule = &t->rules[i];

		if (rule->kind != TRIGGER_ASKED || signal < 0 || signal > 63 ||
		    !(rule->signals >> signal & 1))
			continue;
		snprintf(what, sizeof(what), "user %u has sent process %d signal %d (%s)", uid,
			 (int)pid, signal, sigabbrev_np(signal));
		if (meet(t, rule, uid, what))
			return;
	}
}

/* ---- all ---- */

struct triggers *triggers__new(const struct triggers_opts *opts)
{
	struct triggers *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->opts = *opts;
	t->kernel.fd = -1;
	for (size_t i = 0; i < opts->rules->nr && t->nr < MOST_RULES; i++) {
		struct trigger_rule *rule = &t->rules[t->nr];

		if (!trigger_parse(opts->rules->items[i], rule))
			continue; /* it was checked before */
		t->nr++;
		if (rule->kind == TRIGGER_OOM || rule->kind == TRIGGER_KERNEL)
			t->of_kernel = true;
		else if (rule->kind != TRIGGER_ASKED)
			t->of_captures = true;
		t->of_steps |= rule->kind == TRIGGER_STEP;
		t->of_gpus |= rule->kind == TRIGGER_GPU_IDLE;
	}
	if (t->of_kernel)
		watch_kernel(t);
	return t;
}

void triggers__free(struct triggers *t)
{
	if (!t)
		return;
	if (t->kernel.fd >= 0) {
		loop__remove(t->opts.loop, &t->kernel);
		close(t->kernel.fd);
	}
	t->freed = true;
	if (t->child.pid) /* nobody wants to know any more; freed when it has ended */
		kill(t->child.pid, SIGKILL);
	else
		free_all(t);
}

cJSON *triggers__state(const struct triggers *t)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "rules", (double)t->nr);
	cJSON_AddNumberToObject(o, "looks", (double)t->looks);
	cJSON_AddNumberToObject(o, "looks_skipped", (double)t->skipped);
	cJSON_AddNumberToObject(o, "met", (double)t->met);
	cJSON_AddNumberToObject(o, "held_back", (double)t->held_back);
	cJSON_AddNumberToObject(o, "asked", (double)t->asked);
	return o;
}
