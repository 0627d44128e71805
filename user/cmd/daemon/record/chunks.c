// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside a process of its own: a recording that goes on, written as a row of captures, each whole
 * by itself. The daemon begins another such process now and then, and ends this one once that
 * records, so that nothing here grows for ever.
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"

/* Two of the longest pauses of a session that has nothing to do (session/loop.c). */
#define POLL_MS 320
#define STATS_NS 1000000000u

static volatile sig_atomic_t terminated;

static void on_term(int signal)
{
	(void)signal;
	terminated = 1;
}

struct recorder {
	const struct chunks_job *job;
	int fd;
	struct kprof_session *session;
	char path[DAEMON_PATH_BYTES]; /* of the capture that is being written */
	uint64_t chunk_real_ns;       /* its begin */
	uint64_t next_cut_ns, next_stats_ns;
	uint64_t asked; /* signals of .asked_by that the daemon was told of */
	uint32_t number;
	bool stop, failing;
};

/* Names sort by time. The number tells those apart that begin at the same moment. */
static void name_next(struct recorder *r)
{
	r->chunk_real_ns = now_ns(CLOCK_REALTIME);
	snprintf(r->path, sizeof(r->path), "%s/%013" PRIu64 "-%d-%u.kprof", r->job->folder,
		 r->chunk_real_ns / 1000000, (int)getpid(), ++r->number);
}

static void send_state(const struct recorder *r, const char *state)
{
	cJSON *m = cJSON_CreateObject();

	cJSON_AddStringToObject(m, "state", state);
	link_send(r->fd, m);
}

static void send_chunk(const struct recorder *r, const char *path, uint64_t from_real_ns,
		       bool asked)
{
	cJSON *m = cJSON_CreateObject();
	struct stat st = {0};

	stat(path, &st);
	cJSON_AddStringToObject(m, "chunk", path);
	cJSON_AddNumberToObject(m, "from_ms", (double)in_ms(from_real_ns));
	cJSON_AddNumberToObject(m, "to_ms", (double)in_ms(now_ns(CLOCK_REALTIME)));
	cJSON_AddNumberToObject(m, "bytes", (double)st.st_size);
	cJSON_AddBoolToObject(m, "asked", asked);
	link_send(r->fd, m);
}

static void send_cost(cJSON *o, const struct kprof_session_stats *s)
{
	double parts[sizeof(s->cost_part_ns) / sizeof(s->cost_part_ns[0])];

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		parts[i] = (double)s->cost_part_ns[i];
	cJSON_AddItemToObject(o, "cost_part_ns",
			      cJSON_CreateDoubleArray(parts, sizeof(parts) / sizeof(parts[0])));
	cJSON_AddNumberToObject(o, "cost_base_ns", (double)s->cost_base_ns);
	cJSON_AddNumberToObject(o, "last_cost_share", s->last_cost_share);
	cJSON_AddNumberToObject(o, "max_overhead", s->max_overhead);
	cJSON_AddNumberToObject(o, "given_up", (double)s->given_up);
	cJSON_AddNumberToObject(o, "given_up_now", s->given_up_now);
	cJSON_AddNumberToObject(o, "sample_hz", s->sample_hz);
	cJSON_AddNumberToObject(o, "kernel_bytes", (double)s->kernel_bytes);
	cJSON_AddNumberToObject(o, "unstored", (double)s->unstored);
}

static void send_stats(const struct recorder *r)
{
	cJSON *m = cJSON_CreateObject(), *o;
	struct kprof_session_stats s;

	kprof_session_stats(r->session, &s);
	o = cJSON_AddObjectToObject(m, "stats");
	cJSON_AddNumberToObject(o, "pid", getpid());
	cJSON_AddNumberToObject(o, "elapsed_ns", (double)s.elapsed_ns);
	cJSON_AddNumberToObject(o, "events", (double)s.events);
	cJSON_AddNumberToObject(o, "samples", (double)s.samples);
	cJSON_AddNumberToObject(o, "sampled_ns", (double)s.sampled_ns);
	cJSON_AddNumberToObject(o, "dropped", (double)s.dropped);
	cJSON_AddNumberToObject(o, "missed", (double)s.missed);
	cJSON_AddNumberToObject(o, "processes", s.processes);
	cJSON_AddNumberToObject(o, "threads", s.threads);
	cJSON_AddNumberToObject(o, "written_bytes", (double)s.written_bytes);
	cJSON_AddNumberToObject(o, "unwind_bytes", (double)s.unwind_bytes);
	cJSON_AddNumberToObject(o, "cost_share", s.cost_share);
	cJSON_AddNumberToObject(o, "table_bytes", (double)s.table_bytes);
	send_cost(o, &s);
	link_send(r->fd, m);
}

/* Somebody asks by a signal: what there is of it so far, in one message. */
static void send_asked(struct recorder *r)
{
	uint64_t times;
	uint32_t uid;
	int signal;
	pid_t pid;
	cJSON *m;

	times = kprof_session_asked(r->session, &pid, &uid, &signal);
	if (times == r->asked)
		return;
	m = cJSON_CreateObject();
	cJSON_AddNumberToObject(m, "asked", (double)(times - r->asked));
	cJSON_AddNumberToObject(m, "pid", pid);
	cJSON_AddNumberToObject(m, "uid", uid);
	cJSON_AddNumberToObject(m, "signal", signal);
	link_send(r->fd, m);
	r->asked = times;
}

/* Ends the capture that is being written, and goes on in another one. */
static void cut(struct recorder *r, bool asked)
{
	char before[DAEMON_PATH_BYTES];
	uint64_t from_ns = r->chunk_real_ns;
	cJSON *m;

	memcpy(before, r->path, sizeof(before));
	name_next(r);
	r->next_cut_ns = now_ns(CLOCK_MONOTONIC) + r->job->chunk_ns;
	if (!kprof_session_rotate(r->session, r->path)) {
		r->failing = false;
		send_chunk(r, before, from_ns, asked);
		return;
	}
	/* said once, until it works again: the disk may be full for long */
	if (!r->failing) {
		m = cJSON_CreateObject();
		cJSON_AddStringToObject(m, "log", kprof_error_cause());
		link_send(r->fd, m);
	}
	r->failing = true;
	send_state(r, "not_stored");
}

static void obey(struct recorder *r, int timeout_ms)
{
	cJSON *m = link_take(r->fd, timeout_ms, &r->stop);
	const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "do"));

	if (what && !strcmp(what, "stop"))
		r->stop = true;
	else if (what && !strcmp(what, "cut"))
		cut(r, true);
	cJSON_Delete(m);
}

static int on_process(void *ctx, const struct kprof_process_info *info)
{
	return *info->runtimes ? 1 : 0;
}

/* Waits for its time. 1: a process uses a device; 0: there is nothing to be recorded; or -errno. */
static int wait_for_devices(struct recorder *r)
{
	uint64_t now;

	while ((now = now_ns(CLOCK_MONOTONIC)) < r->job->once_ns && !r->stop && !terminated)
		obey(r, (int)in_ms(r->job->once_ns - now) + 1);
	return r->stop || terminated ? 0 : kprof_list_processes(false, on_process, NULL);
}

static int begin(struct recorder *r)
{
	struct kprof_session_opts session = r->job->session;
	uint32_t uid;
	int err, signal;
	pid_t pid;

	name_next(r);
	session.capture_path = r->path;
	err = kprof_session_new(&session, &r->session);
	if (!err)
		err = kprof_session_start(r->session);
	if (err)
		return err;
	r->next_cut_ns = now_ns(CLOCK_MONOTONIC) + r->job->chunk_ns;
	/* one before may have seen these */
	r->asked = kprof_session_asked(r->session, &pid, &uid, &signal);
	send_state(r, "recording");
	return 0;
}

static int poll_ms(const struct recorder *r)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	uint64_t left = now < r->next_cut_ns ? r->next_cut_ns - now : 0;

	return left < POLL_MS * 1000000ull ? (int)in_ms(left) + 1 : POLL_MS;
}

static int go_on(struct recorder *r)
{
	while (!r->stop && !terminated) {
		uint64_t now;
		int n = kprof_session_poll(r->session, poll_ms(r));

		if (n < 0)
			return n;
		send_asked(r);
		now = now_ns(CLOCK_MONOTONIC);
		if (now >= r->next_cut_ns && r->job->once_ns)
			return 0;
		if (now >= r->next_cut_ns)
			cut(r, false);
		if (now >= r->next_stats_ns) {
			send_stats(r);
			r->next_stats_ns = now + STATS_NS;
		}
		obey(r, 0);
	}
	send_asked(r);
	return 0;
}

/* A window of devices that no chosen process uses is not kept. */
static void end_once(struct recorder *r)
{
	struct kprof_session_stats s;

	kprof_session_stats(r->session, &s);
	send_stats(r);
	if (s.processes)
		send_chunk(r, r->path, r->chunk_real_ns, false);
	else
		unlink(r->path);
}

int chunks_run(int fd, void *job)
{
	struct recorder r = {.job = job, .fd = fd};
	int err = 0;

	signal(SIGTERM, on_term);
	link_log(fd);
	if (r.job->once_ns) {
		int there = wait_for_devices(&r);

		if (!there)
			return EXIT_DONE;
		err = there < 0 ? there : 0;
	}
	if (!err)
		err = begin(&r);
	if (!err)
		err = go_on(&r);
	if (!err)
		err = kprof_session_stop(r.session);
	if (err)
		link_fail(fd);
	else if (r.job->once_ns)
		end_once(&r);
	else
		send_chunk(&r, r.path, r.chunk_real_ns, false);
	kprof_session_free(r.session);
	return err ? EXIT_FAILED : EXIT_DONE;
}
