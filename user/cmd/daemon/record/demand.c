// SPDX-License-Identifier: BSD-2-Clause
/*
 * Inside a process of its own: a recording that somebody has asked for. It prepares (probes are
 * placed, nothing is recorded), waits for the start, records, and writes a capture that belongs to
 * whoever asked. What was asked for is parsed here, and not in the daemon.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cmd/ctl/ctl.h"
#include "cmd/daemon/daemon.h"
#include "cmd/print/json_get.h"
#include "cmd/record/options.h"

#define WAIT_MS 50 /* between two looks at what happens while nothing is recorded yet */
#define POLL_MS 20
#define STATS_NS 1000000000u
#define PREPARED_NS (600 * 1000000000ull) /* probes of a recording that nobody starts are removed */
#define MOST_ARGUMENTS 1000

struct demand {
	const struct demand_job *job;
	int fd;
	struct record_opts opts;
	struct kprof_session *session;
	char folder[DAEMON_PATH_BYTES]; /* of the captures */
	char path[DAEMON_PATH_BYTES];
	uint32_t round;            /* from 1 */
	uint64_t start_at_ns;      /* CLOCK_REALTIME; 0: at once */
	uint64_t longest_until_ns; /* of all rounds; 0: none has begun */
	uint64_t until_ns, next_stats_ns;
	uint64_t written_bytes; /* by the rounds before */
	bool start, stop, cancel, closed;
};

/* What an owner may ask for: nothing that tells of other users' processes, or of the kernel. */
static const char *const owners[] = {
	"pid",      "duration",      "steps",      "warm-up",    "repeat", "step-at", "ops",
	"exclude",  "stack-rate",    "with-stack", "shapes",     "flops",  "flow",    "memory",
	"modules",  "activities",    "types",      "only",       "scopes", "within",  "start-at",
	"no-agent", "max-overhead",  "trace-id",   "trace-name", "quiet",  "verbose", "socket",
	"json",     "step-multiple", "tid", /* of these processes: the library looks */
};

static bool may_use(void *ctx, const char *name)
{
	const struct demand *d = ctx;

	if (d->job->any_process)
		return strcmp(name, "config") && strcmp(name, "all");
	for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++)
		if (!strcmp(owners[i], name))
			return true;
	return false;
}

static volatile sig_atomic_t terminated;

static void on_term(int signal)
{
	(void)signal;
	terminated = 1;
}

/* ---- what is said to the daemon ---- */

/* error: NULL: it was sent as a message of the log. */
static int fail(const struct demand *d, const char *hint, const char *error)
{
	cJSON *m = cJSON_CreateObject();

	cJSON_AddStringToObject(m, "state", "failed");
	if (error)
		cJSON_AddStringToObject(m, "error", error);
	if (hint)
		cJSON_AddStringToObject(m, "hint", hint);
	link_send(d->fd, m);
	return -EINVAL;
}

static void send_state(const struct demand *d, const char *state)
{
	struct kprof_session_stats s = {0};
	cJSON *m = cJSON_CreateObject();

	if (d->session)
		kprof_session_stats(d->session, &s);
	cJSON_AddStringToObject(m, "state", state);
	cJSON_AddNumberToObject(m, "round", d->round);
	cJSON_AddStringToObject(m, "path", d->path);
	cJSON_AddNumberToObject(m, "at_ms", (double)in_ms(now_ns(CLOCK_REALTIME)));
	cJSON_AddNumberToObject(m, "elapsed_ns", (double)s.elapsed_ns);
	cJSON_AddNumberToObject(m, "events", (double)s.events);
	cJSON_AddNumberToObject(m, "samples", (double)s.samples);
	cJSON_AddNumberToObject(m, "lost", (double)(s.dropped + s.missed));
	cJSON_AddNumberToObject(m, "processes", s.processes);
	cJSON_AddNumberToObject(m, "cost_share", s.cost_share);
	link_send(d->fd, m);
}

static void send_plan(const struct demand *d)
{
	cJSON *m = cJSON_CreateObject(), *pids;

	cJSON_AddStringToObject(m, "state", "preparing");
	pids = cJSON_AddArrayToObject(m, "pids");
	for (size_t i = 0; i < d->opts.pids.nr; i++)
		cJSON_AddItemToArray(pids, cJSON_CreateNumber(d->opts.pids.items[i]));
	if (d->start_at_ns)
		cJSON_AddNumberToObject(m, "start_at_ms", (double)in_ms(d->start_at_ns));
	link_send(d->fd, m);
}

/* ---- what was asked for ---- */

/* The number that a thread has in its own PID namespace; 0: it has ended. */
static pid_t number_inside(pid_t pid, const char *tid)
{
	char path[64], line[512] = "", *last = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%.20s/status", (int)pid, tid);
	f = fopen(path, "re");
	while (f && !last && fgets(line, sizeof(line), f))
		if (!strncmp(line, "NSpid:", 6))
			last = strrchr(line, '\t');
	if (f)
		fclose(f);
	return last ? (pid_t)strtol(last, NULL, 10) : 0;
}

/* A thread of this process by that number; 0: it has none. */
static pid_t find_thread(pid_t pid, pid_t inside)
{
	const struct dirent *e;
	char path[64];
	pid_t found = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	while (d && !found && (e = readdir(d)))
		if (number_inside(pid, e->d_name) == inside)
			found = (pid_t)strtol(e->d_name, NULL, 10);
	if (d)
		closedir(d);
	return found;
}

/*
 * The words of the options, behind the command's name, with room for one before. Freed by the
 * caller.
 */
static char **make_arguments(const struct demand_job *job, int *argc)
{
	char **argv = calloc(job->nr_options + 7, sizeof(*argv));
	static char pid[16], thread[16];
	int nr = 1;

	if (!argv || job->nr_options > MOST_ARGUMENTS) {
		free(argv);
		return NULL;
	}
	argv[nr++] = (char *)"ctl";
	if (job->pid) {
		snprintf(pid, sizeof(pid), "%d", (int)job->pid);
		argv[nr++] = (char *)"-p";
		argv[nr++] = pid;
	}
	if (job->thread) { /* one that has ended is refused, as 0 is */
		snprintf(thread, sizeof(thread), "%d", (int)find_thread(job->pid, job->thread));
		argv[nr++] = (char *)"--tid";
		argv[nr++] = thread;
	}
	for (size_t i = 0; i < job->nr_options; i++)
		argv[nr++] = (char *)job->options[i];
	*argc = nr;
	return argv;
}

/* An owner's processes: those whose memory it could read itself. */
static int check_owner(const struct demand *d, bool may_be_gone)
{
	char error[128];

	for (size_t i = 0; i < d->opts.pids.nr && !d->job->any_process; i++) {
		int err = process_check_owner(d->opts.pids.items[i], d->job->uid, d->job->space,
					      d->job->asker);

		if (!err || (may_be_gone && err == -ENOENT))
			continue;
		if (err == -ENOENT) {
			snprintf(error, sizeof(error), "process %d has exited",
				 (int)d->opts.pids.items[i]);
			return fail(d, NULL, error);
		}
		snprintf(error, sizeof(error), "process %d is not yours to record",
			 (int)d->opts.pids.items[i]);
		return fail(d, "root, and members of the daemon's group, may record any process",
			    error);
	}
	return 0;
}

static int parse(struct demand *d, int argc, char **argv)
{
	const char *refused = NULL;
	int first, code;

	if (!options_used(&cmd_ctl, argc - 1, argv + 1, may_use, d, &refused)) {
		char error[160];

		snprintf(error, sizeof(error), "--%s is not for requests%s", refused,
			 d->job->any_process ? "" : " of a process's owner");
		return fail(d, "`kprof attach` as root has it", error);
	}
	if (d->job->any_process) {
		code = record_opts_parse(&cmd_ctl, argc - 1, argv + 1, &d->opts, &first);
	} else { /* what root has set for all recordings is more than an owner may ask for */
		argv[0] = argv[1];
		argv[1] = (char *)"--config=/dev/null";
		code = record_opts_parse(&cmd_ctl, argc, argv, &d->opts, &first);
	}
	if (code >= 0) /* what is wrong was sent as a message of the log */
		return fail(d, NULL, NULL);
	if (!d->opts.pids.nr)
		return fail(d, "-p PID names one", "no process is given");
	if (d->opts.start_at && ctl_time(d->opts.start_at, &d->start_at_ns))
		return fail(d, "--start-at takes seconds since 1970, 12:30:00, or +5s",
			    "the time of the start is not valid");
	if (d->start_at_ns > now_ns(CLOCK_REALTIME) + FURTHEST_START_NS)
		return fail(d, "ask for it on that day", "it is to start in more than a day");
	if (!d->job->any_process) { /* children and other programs may be other users' */
		d->opts.session.children = KPROF_CHILDREN_NONE;
		d->opts.session.until_exec = true;
	}
	return check_owner(d, false);
}

/* ---- messages from the daemon ---- */

/* With what was still chosen then, which the daemon has looked at. */
static void take_start(struct demand *d, const cJSON *m)
{
	double at_ns = json_number(m, "start_at_ns"), duration_ns = json_number(m, "duration_ns");

	d->start = true;
	if (at_ns > 0)
		d->start_at_ns = (uint64_t)at_ns;
	if (duration_ns > 0)
		d->opts.duration_ns = (uint64_t)duration_ns;
}

static void obey(struct demand *d, int timeout_ms)
{
	cJSON *m = link_take(d->fd, timeout_ms, &d->closed);
	const char *what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "do"));

	if (what && !strcmp(what, "start"))
		take_start(d, m);
	else if (what && !strcmp(what, "stop"))
		d->stop = true;
	else if (what && !strcmp(what, "cancel"))
		d->cancel = true;
	cJSON_Delete(m);
	if (d->closed || terminated) /* the daemon has ended: what was recorded stays */
		d->stop = true;
}

/* ---- a round ---- */

static void name_capture(struct demand *d)
{
	d->round++;
	if (d->opts.repeat > 1)
		snprintf(d->path, sizeof(d->path), "%.*s.%u.kprof",
			 (int)(strlen(d->job->path) - strlen(".kprof")), d->job->path, d->round);
	else
		snprintf(d->path, sizeof(d->path), "%s", d->job->path);
}

static int prepare(struct demand *d)
{
	struct kprof_session_opts session = d->opts.session;
	int err;

	name_capture(d);
	session.capture_path = d->path;
	session.command = "kprof ctl";
	session.capture_uid = d->job->uid;
	session.capture_gid = d->job->gid;
	session.set_owner = true;
	session.confine = d->round == 1;
	session.alive = d->job->alive;
	if (d->job->alive) { /* whatever root has set for all recordings */
		session.sample_hz = 0;
		session.waits = false;
	}
	err = kprof_session_new(&session, &d->session);
	for (size_t i = 0; i < d->opts.pids.nr && !err; i++)
		err = kprof_session_add_pid(d->session, d->opts.pids.items[i]);
	if (!err)
		err = check_owner(d, false); /* once more: the number may have become another's */
	if (!err)
		err = kprof_session_prepare(d->session);
	return err;
}

/* How long until the start that was asked for, in ms; -1: it is not known. */
static int64_t until_start_ms(const struct demand *d)
{
	uint64_t now = now_ns(CLOCK_REALTIME);

	if (!d->start && !d->start_at_ns)
		return -1;
	if (d->start_at_ns <= now)
		return 0;
	return (int64_t)((d->start_at_ns - now) / 1000000) + 1;
}

/* Sleeps the last moments until the start to the microsecond. */
static void sleep_until_start(const struct demand *d)
{
	struct timespec at = {.tv_sec = (time_t)(d->start_at_ns / 1000000000),
			      .tv_nsec = (long)(d->start_at_ns % 1000000000)};

	int nice = getpriority(PRIO_PROCESS, 0);

	if (!d->start_at_ns)
		return;
	setpriority(PRIO_PROCESS, 0, -20); /* on a busy machine others would go first */
	while (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
	setpriority(PRIO_PROCESS, 0, nice);
}

/* 0: it is to start; 1: it is not; or a negative errno. */
static int wait_for_start(struct demand *d)
{
	uint64_t until = now_ns(CLOCK_MONOTONIC) + PREPARED_NS;

	while (!d->stop && !d->cancel) {
		int64_t left_ms = until_start_ms(d);
		int n;

		if (left_ms >= 0 && left_ms <= WAIT_MS) {
			sleep_until_start(d);
			return 0;
		}
		n = kprof_session_poll(d->session, 0);
		if (n < 0)
			return n;
		if (n)
			return fail(d, NULL, "the process has ended before the recording began");
		if (left_ms < 0 && now_ns(CLOCK_MONOTONIC) > until)
			return fail(d, NULL, "nobody has started it within ten minutes");
		obey(d, WAIT_MS);
	}
	return 1;
}

/* What has been asked for ends here, with what it has: the disk is others', too. */
static void end_without_room(struct demand *d)
{
	struct kprof_session_stats s;
	cJSON *m;

	kprof_session_stats(d->session, &s);
	if (d->written_bytes + s.written_bytes <= d->job->most_bytes &&
	    folder_free(d->folder) >= d->job->min_free)
		return;
	m = cJSON_CreateObject();
	cJSON_AddStringToObject(
		m, "log",
		"the recording ends early: it has written as much as it may, or the "
		"disk is nearly full");
	link_send(d->fd, m);
	d->stop = true;
}

static int record_on(struct demand *d)
{
	uint64_t now = now_ns(CLOCK_MONOTONIC);
	int n = 0;

	if (!d->longest_until_ns)
		d->longest_until_ns = now + d->job->longest_ns;
	d->until_ns = d->longest_until_ns;
	if (d->opts.duration_ns && now + d->opts.duration_ns < d->until_ns)
		d->until_ns = now + d->opts.duration_ns;
	while (!n && !d->stop && !d->cancel) {
		uint64_t left_ms;

		now = now_ns(CLOCK_MONOTONIC);
		left_ms = now >= d->until_ns ? 0 : (d->until_ns - now) / 1000000 + 1;
		d->stop |= now >= d->longest_until_ns;
		if (!left_ms)
			break;
		n = kprof_session_poll(d->session, left_ms < POLL_MS ? (int)left_ms : POLL_MS);
		if (now >= d->next_stats_ns) {
			send_state(d, "recording");
			end_without_room(d);
			d->next_stats_ns = now + STATS_NS;
		}
		obey(d, 0);
	}
	return n < 0 ? n : 0;
}

/* A trace that cannot be written is no reason to throw the capture away: it is said. */
static int write_trace(const struct demand *d)
{
	int err = trace_write(d->job, d->path);

	if (err)
		message_warn("the capture has all of it: `kprof ctl get` writes that",
			     "cannot write %s: %s", d->job->trace_path, strerror(-err));
	return 0;
}

/* 0; 1: cancelled; or a negative errno. */
static int record_round(struct demand *d)
{
	struct kprof_session_stats stats = {0};
	int err = prepare(d);

	if (err)
		return err;
	send_state(d, "prepared");
	err = wait_for_start(d);
	if (err)
		return err;
	err = kprof_session_start(d->session);
	if (!err) /* from here on, the session itself looks */
		err = check_owner(d, true);
	if (err)
		return err;
	send_state(d, "recording");
	err = record_on(d);
	if (err || d->cancel)
		return err ? err : 1;
	send_state(d, "stopping");
	err = kprof_session_stop(d->session);
	kprof_session_stats(d->session, &stats);
	d->written_bytes += stats.written_bytes;
	if (!err && d->job->trace_path)
		err = write_trace(d);
	if (!err)
		send_state(d, d->round < d->opts.repeat && !d->stop ? "round" : "done");
	return err;
}

static int run_rounds(struct demand *d)
{
	int err;

	d->start = d->job->start;
	snprintf(d->folder, sizeof(d->folder), "%.*s",
		 (int)(strrchr(d->job->path, '/') - d->job->path), d->job->path);
	do {
		err = record_round(d);
		kprof_session_free(d->session);
		d->session = NULL;
		d->start_at_ns = 0;
		d->start = true; /* of the rounds that follow */
	} while (!err && !d->stop && d->round < d->opts.repeat);
	return err;
}

int demand_run(int fd, void *job)
{
	struct demand d = {.job = job, .fd = fd};
	int argc = 0, err;
	char **argv;

	signal(SIGTERM, on_term);
	link_log(fd);
	argv = make_arguments(job, &argc);
	err = argv ? parse(&d, argc, argv) : fail(&d, NULL, "there are too many options");
	if (err)
		return EXIT_FAILED;
	send_plan(&d);
	err = run_rounds(&d);
	if (err == 1)
		send_state(&d, "cancelled");
	else if (err && kprof_error_cause()[0])
		link_fail(fd);
	return err ? EXIT_FAILED : EXIT_DONE;
}
