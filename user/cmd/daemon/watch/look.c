// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside a process of its own, without rights: looks at what the flight recorder has just written,
 * and says what of it meets a rule.
 */
#include <cjson/cJSON.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cmd/daemon/watch/triggers.h"
#include "kprof/chunks.h"

#define MOST_STEPS 400 /* of one look: the latest */
#define NICE 19

struct look {
	const struct look_job *job;
	int fd;
	struct kprof_capture *capture;
	uint64_t new_ns; /* CLOCK_MONOTONIC: the begin of the capture that is new */
};

static void send_met(const struct look *l, const struct trigger_rule *rule, pid_t pid,
		     const char *what)
{
	cJSON *m = cJSON_CreateObject();

	cJSON_AddNumberToObject(m, "met", (double)(rule - l->job->rules));
	cJSON_AddNumberToObject(m, "pid", pid);
	cJSON_AddStringToObject(m, "what", what);
	link_send(l->fd, m);
}

/* ---- steps ---- */

static int look_at_steps(const struct look *l)
{
	uint64_t from_ns = kprof_capture_info(l->capture)->start_mono_ns;
	uint64_t until_ns = kprof_capture_info(l->capture)->end_mono_ns;
	cJSON *m = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(m, "steps");
	struct kprof_result *result;
	size_t nr, first;
	int err;

	err = kprof_result_new(l->capture, KPROF_BY_STEP, KPROF_SORT_NAME, &result);
	if (err) {
		cJSON_Delete(m);
		return err;
	}
	nr = kprof_result_nr_rows(result);
	first = nr > MOST_STEPS ? nr - MOST_STEPS : 0;
	for (size_t i = first; i < nr; i++) {
		const struct kprof_row *row = kprof_result_row(result, i);
		uint64_t end_ns = from_ns + row->start_ns + row->total_ns;
		double numbers[] = {row->pid, (double)end_ns, (double)row->total_ns,
				    end_ns >= until_ns};

		/* others were told of by the look before */
		if (end_ns >= l->new_ns)
			cJSON_AddItemToArray(list, cJSON_CreateDoubleArray(numbers, 4));
	}
	kprof_result_free(result);
	link_send(l->fd, m);
	return 0;
}

/* ---- what one capture has ---- */

static int look_at_names(const struct look *l, const struct trigger_rule *rule)
{
	struct kprof_result *result;
	char what[320];
	int err;

	err = kprof_result_new(l->capture, KPROF_BY_OP, KPROF_SORT_SELF, &result);
	for (size_t i = 0; !err && i < kprof_result_nr_rows(result); i++) {
		const struct kprof_row *row = kprof_result_row(result, i);
		bool annotation = !strcmp(row->category, "user_annotation");

		if (!row->calls || annotation != (rule->kind == TRIGGER_MARK) ||
		    fnmatch(rule->glob, row->name, 0))
			continue;
		snprintf(what, sizeof(what), "%.200s was met %llu times", row->name,
			 (unsigned long long)row->calls);
		send_met(l, rule, 0, what);
		break;
	}
	if (!err)
		kprof_result_free(result);
	return err;
}

static int look_at_gpus(const struct look *l, const struct trigger_rule *rule)
{
	struct kprof_result *result;
	char what[160];
	int err;

	err = kprof_result_new(l->capture, KPROF_BY_STREAM, KPROF_SORT_SELF, &result);
	for (size_t i = 0; !err && i < kprof_result_nr_rows(result); i++) {
		const struct kprof_row *row = kprof_result_row(result, i);
		double all_ns = (double)(row->idle_ns + row->self_ns);

		if (row->stream != UINT32_MAX || !row->calls || all_ns <= 0 ||
		    (double)row->idle_ns / all_ns <= rule->share)
			continue;
		snprintf(what, sizeof(what), "device %u of process %d was idle %.0f %% of the time",
			 row->device, (int)row->pid, 100 * (double)row->idle_ns / all_ns);
		send_met(l, rule, row->pid, what);
		break;
	}
	if (!err)
		kprof_result_free(result);
	return err;
}

static int look_at_threads(const struct look *l, const struct trigger_rule *rule)
{
	struct kprof_thread_time t;
	char what[160];

	for (size_t i = 0;; i++) {
		int n = kprof_capture_thread_time(l->capture, i, &t);

		if (n < 0)
			return 0;
		if (!n || !t.life_ns || (double)t.runnable_ns / (double)t.life_ns <= rule->share)
			continue;
		snprintf(what, sizeof(what),
			 "thread %d of process %d waited for a CPU %.0f %% of the time", (int)t.tid,
			 (int)t.pid, 100 * (double)t.runnable_ns / (double)t.life_ns);
		send_met(l, rule, t.pid, what);
		return 0;
	}
}

/* Processes that have ended in this capture; that of one before has told of its own. */
static int look_at_ends(const struct look *l, const struct trigger_rule *rule)
{
	struct kprof_capture_process p;
	char what[160];

	for (size_t i = 0; !kprof_capture_process(l->capture, i, &p); i++) {
		int signal = p.exit_status > 0 ? p.exit_status & 0x7f : 0;

		if (!p.exit_mono_ns || !signal || signal > 63 || !(rule->signals >> signal & 1))
			continue;
		snprintf(what, sizeof(what), "process %d (%.16s) was ended by signal %d (%s)",
			 (int)p.pid, p.name, signal,
			 sigabbrev_np(signal) ? sigabbrev_np(signal) : "real-time");
		send_met(l, rule, p.pid, what);
		return 0;
	}
	return 0;
}

static int look_at_rule(const struct look *l, const struct trigger_rule *rule)
{
	if (l->job->only_gpus && rule->kind != TRIGGER_GPU_IDLE)
		return 0;
	switch (rule->kind) {
	case TRIGGER_MARK:
	case TRIGGER_CALL:
		return look_at_names(l, rule);
	case TRIGGER_GPU_IDLE:
		return look_at_gpus(l, rule);
	case TRIGGER_RUNNABLE:
		return look_at_threads(l, rule);
	case TRIGGER_SIGNAL:
		return look_at_ends(l, rule);
	default:
		return 0;
	}
}

/* ---- the captures ---- */

/* Steps that lie in several captures are whole only in all of these together. */
static int look_at_joined(struct look *l)
{
	char path[DAEMON_PATH_BYTES];
	struct kprof_join_opts opts = {.sz = sizeof(opts), .output = path, .skip_gone = true};
	int err;

	snprintf(path, sizeof(path), "%s/.look.%d.tmp", l->job->folder, (int)getpid());
	err = kprof_join(l->job->paths, l->job->nr_paths, &opts, NULL);
	if (!err)
		err = kprof_capture_open(path, &l->capture);
	unlink(path);
	if (!err)
		err = look_at_steps(l);
	kprof_capture_close(l->capture);
	l->capture = NULL;
	return err;
}

static int look(struct look *l)
{
	const char *path = l->job->paths[l->job->nr_paths - 1];
	int err = kprof_capture_open(path, &l->capture);

	if (err)
		return err;
	l->new_ns = kprof_capture_info(l->capture)->start_mono_ns;
	for (size_t i = 0; i < l->job->nr && !err; i++)
		err = look_at_rule(l, &l->job->rules[i]);
	if (!err && l->job->steps && l->job->nr_paths == 1)
		err = look_at_steps(l);
	kprof_capture_close(l->capture);
	l->capture = NULL;
	return !err && l->job->steps && l->job->nr_paths > 1 ? look_at_joined(l) : err;
}

int look_run(int fd, void *job)
{
	struct look l = {.job = job, .fd = fd};
	int err;

	link_log(fd);
	setpriority(PRIO_PROCESS, 0, NICE);
	/* captures have what targets chose: they are not read with root's rights */
	err = kprof_keep_to_folders(l.job->folder, l.job->folder, false);
	if (!err)
		err = look(&l);
	if (err)
		link_fail(fd);
	return err ? EXIT_FAILED : EXIT_DONE;
}
