// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside a process of its own, without rights: looks at a chunk for what is counted by process.
 * What it sends, a message each:
 *
 *   {"processes": [[name, user, pid, samples, cpu_ns, operators, device_ns, life_ns, runnable_ns,
 *                   blocked_ns], …], "others": N}
 *   {"gpus": [[pid, name, device, activities, busy share], …], "window_ns"}    of a device window
 *   {"steps": [[pid, name, number, begin, end, flags], …]}    of the flight recorder's, in parts; ns
 *                                                              of CLOCK_MONOTONIC, COUNT_STEP_…
 *   {"cost_ns", "window_ns", "samples", "from_ms", "to_ms"}   of the look, and of the chunk
 */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/daemon/show/serve.h"

#define STEPS_AT_ONCE 300 /* as many as a message surely has room for */
#define MOST_STEPS 20000
#define READ_MS 1000 /* for the daemon to read the messages before */
#define MOST_GPUS 64
#define EDGE_NS 1000 /* what begins so early has begun before */

const char *const chunk_kind_names[CHUNK_KINDS] = {
	[CHUNK_SAMPLES] = "samples",
	[CHUNK_FLIGHT] = "flight",
	[CHUNK_DEVICE] = "device",
};

struct threads {
	pid_t pid;
	uint64_t life_ns, runnable_ns, blocked_ns;
};

struct count {
	int fd;
	struct kprof_capture *capture;
	const struct kprof_capture_info *info;
	struct kprof_result *processes;
	struct threads *threads; /* by process */
	size_t nr_threads;
};

/* "123 python" or "python (short-lived)" becomes "python", cut to what a packet has room for. */
static cJSON *name_of(const struct kprof_row *row)
{
	static const char brief[] = " (short-lived)";
	const char *name = row->name;
	char text[COUNT_NAME_BYTES], *end;
	size_t len;

	if (row->pid && strtol(name, &end, 10) == row->pid && *end == ' ')
		name = end + 1;
	len = strlen(name);
	if (!row->pid && len > strlen(brief) && !strcmp(name + len - strlen(brief), brief))
		len -= strlen(brief);
	snprintf(text, sizeof(text), "%.*s", (int)(len < INT32_MAX ? len : INT32_MAX), name);
	/* in JSON, each of these would take the room of six */
	for (char *c = text; *c; c++)
		if (iscntrl((unsigned char)*c))
			*c = ' ';
	return cJSON_CreateString(text);
}

static cJSON *name_by_pid(const struct count *c, pid_t pid)
{
	for (size_t i = 0; i < kprof_result_nr_rows(c->processes); i++) {
		const struct kprof_row *row = kprof_result_row(c->processes, i);

		if (row->pid == pid)
			return name_of(row);
	}
	return cJSON_CreateString("");
}

static void add(cJSON *list, uint64_t number)
{
	cJSON_AddItemToArray(list, cJSON_CreateNumber((double)number));
}

/* ---- threads ---- */

static int by_pid(const void *a, const void *b)
{
	const struct threads *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static const struct threads *threads_of(const struct count *c, pid_t pid)
{
	const struct threads key = {.pid = pid};

	return c->nr_threads ? bsearch(&key, c->threads, c->nr_threads, sizeof(key), by_pid) : NULL;
}

/* Of those of one process, the times together. */
static void sum_threads(struct count *c)
{
	struct kprof_thread_time t;
	size_t nr = 0, sums = 0;
	int n;

	c->threads = calloc(c->info->nr_threads ? c->info->nr_threads : 1, sizeof(*c->threads));
	for (size_t i = 0; c->threads && nr < c->info->nr_threads; i++) {
		n = kprof_capture_thread_time(c->capture, i, &t);
		if (n < 0)
			break;
		if (n)
			c->threads[nr++] =
				(struct threads){t.pid, t.life_ns, t.runnable_ns, t.blocked_ns};
	}
	if (nr)
		qsort(c->threads, nr, sizeof(*c->threads), by_pid);
	for (size_t i = 0; i < nr; i++) {
		struct threads *sum = sums ? &c->threads[sums - 1] : NULL;

		if (sum && sum->pid == c->threads[i].pid) {
			sum->life_ns += c->threads[i].life_ns;
			sum->runnable_ns += c->threads[i].runnable_ns;
			sum->blocked_ns += c->threads[i].blocked_ns;
		} else {
			c->threads[sums++] = c->threads[i];
		}
	}
	c->nr_threads = sums;
}

/* ---- what is told ---- */

static cJSON *process(const struct count *c, const struct kprof_row *row)
{
	const struct threads *t = threads_of(c, row->pid);
	cJSON *o = cJSON_CreateArray();
	char user[COUNT_NAME_BYTES];

	snprintf(user, sizeof(user), "%s", row->category);
	cJSON_AddItemToArray(o, name_of(row));
	cJSON_AddItemToArray(o, cJSON_CreateString(user));
	add(o, (uint64_t)row->pid);
	add(o, row->self_samples);
	add(o, row->self_ns);
	add(o, row->calls - row->begun_before); /* those the chunk before has counted */
	add(o, row->device_ns);
	add(o, t ? t->life_ns : 0);
	add(o, t ? t->runnable_ns : 0);
	add(o, t ? t->blocked_ns : 0);
	return o;
}

static void tell_processes(const struct count *c)
{
	cJSON *m = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(m, "processes");
	struct kprof_row rest = {.name = "other", .category = ""};
	size_t nr = kprof_result_nr_rows(c->processes);

	for (size_t i = 0; i < nr; i++) {
		const struct kprof_row *row = kprof_result_row(c->processes, i);

		if (i < COUNT_MOST_PROCESSES) {
			cJSON_AddItemToArray(list, process(c, row));
			continue;
		}
		rest.self_samples += row->self_samples;
		rest.self_ns += row->self_ns;
		rest.calls += row->calls - row->begun_before;
	}
	if (nr > COUNT_MOST_PROCESSES)
		cJSON_AddItemToArray(list, process(c, &rest));
	cJSON_AddNumberToObject(
		m, "others", nr > COUNT_MOST_PROCESSES ? (double)(nr - COUNT_MOST_PROCESSES) : 0);
	link_send(c->fd, m);
}

static int tell_gpus(struct count *c)
{
	cJSON *m = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(m, "gpus");
	struct kprof_result *result;
	int err = kprof_result_new(c->capture, KPROF_BY_STREAM, KPROF_SORT_SELF, &result);

	for (size_t i = 0; !err && i < kprof_result_nr_rows(result); i++) {
		const struct kprof_row *row = kprof_result_row(result, i);
		double all_ns = (double)(row->idle_ns + row->self_ns);
		cJSON *o;

		if (row->stream != UINT32_MAX || !row->calls || all_ns <= 0 ||
		    cJSON_GetArraySize(list) == MOST_GPUS)
			continue;
		o = cJSON_CreateArray();
		add(o, (uint64_t)row->pid);
		cJSON_AddItemToArray(o, name_by_pid(c, row->pid));
		add(o, row->device);
		add(o, row->calls);
		cJSON_AddItemToArray(o, cJSON_CreateNumber((double)row->self_ns / all_ns));
		cJSON_AddItemToArray(list, o);
	}
	if (!err)
		kprof_result_free(result);
	cJSON_AddNumberToObject(m, "window_ns",
				(double)(c->info->end_mono_ns - c->info->start_mono_ns));
	link_send(c->fd, m);
	return err;
}

static cJSON *step(const struct count *c, const struct kprof_row *row)
{
	uint64_t window_ns = c->info->end_mono_ns - c->info->start_mono_ns;
	uint64_t end_ns = row->start_ns + row->total_ns;
	cJSON *o = cJSON_CreateArray();

	add(o, (uint64_t)row->pid);
	cJSON_AddItemToArray(o, name_by_pid(c, row->pid));
	add(o, row->step);
	add(o, c->info->start_mono_ns + row->start_ns);
	add(o, c->info->start_mono_ns + end_ns);
	add(o, (row->start_ns <= EDGE_NS ? COUNT_STEP_FROM_BEFORE : 0) |
		       (end_ns >= window_ns ? COUNT_STEP_GOES_ON : 0));
	return o;
}

static int tell_steps(struct count *c)
{
	struct kprof_result *result;
	int err = kprof_result_new(c->capture, KPROF_BY_STEP, KPROF_SORT_NAME, &result);
	size_t nr = err ? 0 : kprof_result_nr_rows(result);

	for (size_t i = 0; i < nr && i < MOST_STEPS;) {
		cJSON *m = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(m, "steps");
		struct pollfd room = {.fd = c->fd, .events = POLLOUT};

		for (int k = 0; k < STEPS_AT_ONCE && i < nr && i < MOST_STEPS; k++, i++)
			cJSON_AddItemToArray(list, step(c, kprof_result_row(result, i)));
		/* what finds no room is lost */
		poll(&room, 1, READ_MS);
		link_send(c->fd, m);
	}
	if (!err)
		kprof_result_free(result);
	return err;
}

static void tell_cost(const struct count *c)
{
	cJSON *m = cJSON_CreateObject();
	uint64_t window_ns = c->info->end_mono_ns - c->info->start_mono_ns;

	cJSON_AddNumberToObject(m, "window_ns", (double)window_ns);
	cJSON_AddNumberToObject(m, "samples", (double)c->info->nr_samples);
	cJSON_AddNumberToObject(m, "from_ms", (double)in_ms(c->info->start_real_ns));
	cJSON_AddNumberToObject(m, "to_ms", (double)in_ms(c->info->start_real_ns + window_ns));
	cJSON_AddNumberToObject(m, "cost_ns", (double)now_ns(CLOCK_PROCESS_CPUTIME_ID));
	link_send(c->fd, m);
}

int count_run(int fd, void *arg)
{
	const struct count_job *job = arg;
	struct count c = {.fd = fd};
	char path[32];
	int err;

	link_log(fd);
	kprof_read_at_pace(job->ns_a_second);
	if (reader_begin(fd, job->path, job->folder, NULL, path, sizeof(path)))
		return EXIT_FAILED;
	err = kprof_capture_open(path, &c.capture);
	if (!err) {
		c.info = kprof_capture_info(c.capture);
		sum_threads(&c);
		err = kprof_result_new(c.capture, KPROF_BY_PROCESS, KPROF_SORT_SELF, &c.processes);
	}
	if (!err)
		tell_processes(&c);
	if (!err && job->kind == CHUNK_DEVICE)
		err = tell_gpus(&c);
	if (!err && job->kind == CHUNK_FLIGHT)
		err = tell_steps(&c);
	if (err)
		link_fail(fd);
	else
		tell_cost(&c);
	return err ? EXIT_FAILED : EXIT_DONE;
}
