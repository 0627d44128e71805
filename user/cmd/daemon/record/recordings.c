// SPDX-License-Identifier: BSD-2-Clause
/*
 * Recordings on demand. Each is a process while it goes on, and files in a folder afterwards:
 * ID.kprof (ID.1.kprof … of several rounds), which belongs to whoever asked, and ID.json, by which
 * a later daemon knows of it.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cmd/daemon/record/recording.h"

#define STOP_NS (300 * 1000000000ull) /* naming functions and removing single probes take long */
#define TRIM_NS (60 * 1000000000ull)

const char *recording__id(const struct recording *r)
{
	return r->id;
}

enum recording_state recording__state(const struct recording *r)
{
	return r->state;
}

uid_t recording__uid(const struct recording *r)
{
	return r->uid;
}

bool recording__may_see(const struct recording *r, const struct client *c)
{
	return c->privileged ||
	       (c->uid == r->uid &&
		(!c->space || (c->space == r->space && c->space != SPACE_UNKNOWN)));
}

uint32_t recording__rounds(const struct recording *r)
{
	return r->rounds;
}

static void log_state(const struct recording *r, const char *what)
{
	cJSON *fields = recording__describe(r);

	cJSON_AddNumberToObject(fields, "asker", r->asker);
	if (r->error)
		log_line("warning", what, fields, "recording %s: %s: %s", r->id,
			 recording_state_name(r->state), r->error);
	else
		log_line("info", what, fields, "recording %s of process %d: %s", r->id,
			 r->nr_pids ? (int)r->pids[0] : 0, recording_state_name(r->state));
}

static void become(struct recording *r, enum recording_state state)
{
	if (r->state == state)
		return;
	r->state = state;
	if (state == RECORDING_ON && !r->started_ms)
		r->started_ms = in_ms(now_ns(CLOCK_REALTIME));
	if (!recording_goes_on(r)) {
		r->ended_ms = in_ms(now_ns(CLOCK_REALTIME));
		if (state == RECORDING_DONE)
			recording__keep(r);
	}
	log_state(r, "recording");
	r->all->opts.changed(r->all->opts.ctx, r);
}

/* ---- messages of its process ---- */

/* The latest one stays, with its own hint: warnings come before what ends it. */
static void set_error(struct recording *r, const cJSON *m, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, key));
	const char *hint = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "hint"));

	if (!text)
		return;
	free(r->error);
	free(r->hint);
	r->error = strdup(text);
	r->hint = hint ? strdup(hint) : NULL;
}

/* What is whole stays, of a recording of several rounds: mostly, its process has ended. */
static void fail(struct recording *r)
{
	if (!r->rounds) {
		become(r, RECORDING_FAILED);
		return;
	}
	snprintf(r->early, sizeof(r->early), "ended after %u round%s: %s", r->rounds,
		 r->rounds > 1 ? "s" : "", r->error ? r->error : "the next one could not be begun");
	become(r, RECORDING_DONE);
}

static void on_state(struct recording *r, const char *state, const cJSON *m)
{
	if (cJSON_GetObjectItemCaseSensitive(m, "elapsed_ns")) {
		cJSON_Delete(r->numbers);
		r->numbers = cJSON_Duplicate(m, true);
	}
	if (!strcmp(state, "preparing"))
		recording__take_pids(r, m);
	else if (!strcmp(state, "prepared") && r->state == RECORDING_PREPARING)
		become(r, r->job.start ? RECORDING_STARTING : RECORDING_PREPARED);
	else if (!strcmp(state, "recording") && r->state < RECORDING_ON)
		become(r, RECORDING_ON);
	else if (!strcmp(state, "stopping"))
		become(r, RECORDING_STOPPING);
	else if (!strcmp(state, "round"))
		r->rounds++, become(r, RECORDING_STARTING);
	else if (!strcmp(state, "done"))
		r->rounds++, become(r, RECORDING_DONE);
	else if (!strcmp(state, "cancelled"))
		become(r, RECORDING_CANCELLED);
	else if (!strcmp(state, "failed")) {
		set_error(r, m, "error");
		fail(r);
	}
}

static void on_message(void *ctx, const cJSON *m)
{
	struct recording *r = ctx;
	const char *state = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "state"));
	const char *log = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(m, "log"));

	if (log) {
		cJSON *fields = cJSON_CreateObject();

		cJSON_AddStringToObject(fields, "id", r->id);
		log_line("warning", "recorder", fields, "%s", log);
		/* until it is prepared, it is what is wrong with the request */
		if (r->state == RECORDING_PREPARING)
			set_error(r, m, "log");
	}
	if (state && recording_goes_on(r))
		on_state(r, state, m);
	if (r->state > RECORDING_PREPARING && r->state < RECORDING_FAILED) {
		free(r->error); /* a warning of before was none of an end */
		free(r->hint);
		r->error = r->hint = NULL;
	}
}

static void on_end(void *ctx, int status)
{
	struct recording *r = ctx;

	r->all->running--;
	if (!recording_goes_on(r))
		return;
	if (!r->error && WIFSIGNALED(status) &&
	    asprintf(&r->error, "its process was ended by signal %d", WTERMSIG(status)) < 0)
		r->error = NULL;
	if (!r->error)
		r->error = strdup("its process ended by itself");
	fail(r);
}

/* ---- begin ---- */

static void name_recording(struct recordings *rs, struct recording *r)
{
	time_t now = time(NULL);
	char at[24];
	struct tm utc;

	strftime(at, sizeof(at), "%Y%m%dT%H%M%S", gmtime_r(&now, &utc));
	do {
		snprintf(r->id, sizeof(r->id), "%s-%u", at, ++rs->number);
		snprintf(r->path, sizeof(r->path), "%s/%s.kprof", rs->opts.folder, r->id);
	} while (!access(r->path, F_OK));
}

/*
 * As after a restart of the daemon, nobody there sees what has ended longest ago any more: those
 * who come from many namespaces keep nobody from recording. False: there is none.
 */
static bool let_go_of_space(struct recordings *rs)
{
	struct recording *oldest = NULL; /* the first ones are the newest */

	for (struct recording *r = rs->first; r; r = r->next)
		if (r->space && r->space != SPACE_UNKNOWN && !recording_goes_on(r) && !r->child.pid)
			oldest = r;
	if (!oldest)
		return false;
	space_drop(oldest->space);
	oldest->space = SPACE_UNKNOWN;
	return true;
}

int recordings__begin(struct recordings *rs, const struct demand_job *job, struct recording **out)
{
	uid_t account = job->for_dyno ? ACCOUNT_OF_DYNO : space_user(job->uid, job->space);
	struct recording *r;
	int err;

	if (!recordings__may_begin(rs, account))
		return -EAGAIN;
	err = job->space ? space_hold(job->space, job->asker) : 0;
	while (err == -EMFILE && let_go_of_space(rs))
		err = space_hold(job->space, job->asker);
	if (err)
		return err;
	r = calloc(1, sizeof(*r));
	if (!r) {
		space_drop(job->space);
		return -ENOMEM;
	}
	r->all = rs;
	r->uid = job->uid;
	r->space = job->space;
	r->asked_by = job->asked_by;
	r->for_dyno = job->for_dyno;
	r->gid = job->gid;
	r->asker = job->asker;
	r->begun_ms = in_ms(now_ns(CLOCK_REALTIME));
	name_recording(rs, r);
	r->job = *job;
	r->job.path = r->path;
	r->job.longest_ns = rs->opts.longest_ns;
	r->job.most_bytes = recordings__most_bytes(rs, account);
	r->job.min_free = rs->opts.min_free;
	r->child = (struct child){
		.name = "kprof-recording",
		.message = on_message,
		.ended = on_end,
		.ctx = r,
	};
	if (job->why)
		snprintf(r->why, sizeof(r->why), "%s", job->why);
	r->dump = job->dump_folder != NULL;
	if (r->dump)
		r->child.name = "kprof-dump";
	err = child__start(rs->opts.loop, &r->child, r->dump ? dump_run : demand_run, &r->job);
	if (err) {
		recording__free(r);
		return err;
	}
	r->job.options = NULL; /* the caller's */
	r->job.dump_folder = r->job.why = NULL;
	recordings__count(rs, account);
	rs->running++;
	rs->nr++;
	r->next = rs->first;
	rs->first = r;
	log_state(r, "request");
	*out = r;
	return 0;
}

/* ---- what is asked of one that goes on ---- */

/* m: what is said besides; freed. */
static void tell(struct recording *r, const char *what, cJSON *m)
{
	cJSON_AddStringToObject(m, "do", what);
	child__send(&r->child, m);
}

void recording__start(struct recording *r, uint64_t at_ns, uint64_t duration_ns)
{
	cJSON *m = cJSON_CreateObject();

	if (at_ns)
		cJSON_AddNumberToObject(m, "start_at_ns", (double)at_ns);
	if (duration_ns)
		cJSON_AddNumberToObject(m, "duration_ns", (double)duration_ns);
	tell(r, "start", m);
	become(r, RECORDING_STARTING);
}

void recording__stop(struct recording *r)
{
	tell(r, "stop", cJSON_CreateObject());
	if (!r->stop_by_ns)
		r->stop_by_ns = now_ns(CLOCK_MONOTONIC) + STOP_NS;
}

void recording__cancel(struct recording *r)
{
	tell(r, "cancel", cJSON_CreateObject());
	if (!r->stop_by_ns)
		r->stop_by_ns = now_ns(CLOCK_MONOTONIC) + STOP_NS;
}

static int open_round(const struct recording *r, uint32_t round)
{
	char path[RECORDING_PATH_BYTES];
	int fd;

	recording__path(r, round, path);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int recording__open(const struct recording *r, uint32_t round)
{
	struct stat st;
	int fd;

	if (!round)
		round = r->rounds;
	if (round > r->rounds)
		return -ENOENT;
	fd = open_round(r, r->rounds > 1 ? round : 0);
	if (fd == -ENOENT && r->rounds == 1) /* the first of several: it was stopped then */
		fd = open_round(r, 1);
	if (fd < 0 || (!fstat(fd, &st) && S_ISREG(st.st_mode)))
		return fd;
	close(fd);
	return -EINVAL;
}

/* ---- all of them ---- */

struct recording *recordings__find(struct recordings *rs, const char *id)
{
	struct recording *r = rs->first;

	while (r && strcmp(r->id, id))
		r = r->next;
	return r;
}

bool recording__is_of(const struct recording *r, pid_t pid)
{
	for (size_t i = 0; i < r->nr_pids && recording_goes_on(r); i++)
		if (r->pids[i] == pid)
			return true;
	return false;
}

struct recording *recordings__next(struct recordings *rs, struct recording *r)
{
	return r ? r->next : rs->first;
}

struct recording *recordings__of(struct recordings *rs, pid_t pid, const struct client *c, bool on)
{
	for (struct recording *r = rs->first; r; r = r->next)
		if (recording__is_of(r, pid) && recording__may_see(r, c) &&
		    (!on || r->state == RECORDING_ON))
			return r;
	return NULL;
}

size_t recordings__running(const struct recordings *rs)
{
	return rs->running;
}

bool recordings__dumping(const struct recordings *rs)
{
	for (const struct recording *r = rs->first; r; r = r->next)
		if (r->dump && r->child.pid)
			return true;
	return false;
}

void recordings__stop_all(struct recordings *rs)
{
	for (struct recording *r = rs->first; r; r = r->next)
		if (recording_goes_on(r))
			recording__stop(r);
}

int recordings__new(const struct recordings_opts *opts, struct recordings **out)
{
	struct recordings *rs = calloc(1, sizeof(*rs));
	int err;

	if (!rs)
		return -ENOMEM;
	rs->opts = *opts;
	err = folder_make(opts->folder, 0711);
	if (err) {
		free(rs);
		return err;
	}
	recordings__read_kept(rs);
	*out = rs;
	return 0;
}

void recordings__free(struct recordings *rs)
{
	if (!rs)
		return;
	while (rs->first) {
		struct recording *r = rs->first;

		rs->first = r->next;
		recording__free(r);
	}
	free(rs);
}

void recordings__set_limits(struct recordings *rs, uint64_t keep_ns, uint64_t keep_bytes,
			    uint64_t min_free, uint64_t longest_ns)
{
	rs->opts.keep_ns = keep_ns;
	rs->opts.keep_bytes = keep_bytes;
	rs->opts.min_free = min_free;
	rs->opts.longest_ns = longest_ns;
}

void recordings__tend(struct recordings *rs, uint64_t now)
{
	struct folder_sums sums;
	bool more;

	for (struct recording *r = rs->first; r; r = r->next)
		if (r->child.pid && r->stop_by_ns && now > r->stop_by_ns)
			kill(r->child.pid, SIGKILL);
	if (now < rs->next_trim_ns)
		return;
	rs->next_trim_ns = now + TRIM_NS;
	more = recordings__forget_old(rs); /* users' shares, before all have to give way */
	if (!more) {
		folder_trim(rs->opts.folder, rs->opts.keep_ns, rs->opts.keep_bytes,
			    rs->opts.min_free, NULL, &sums);
		folder_say_want(&rs->want, rs->opts.folder, rs->opts.min_free, &sums);
		more = sums.more | (sums.removed && recordings__forget_old(rs));
	}
	if (more)
		rs->next_trim_ns = now;
}
