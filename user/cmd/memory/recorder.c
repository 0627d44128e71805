// SPDX-License-Identifier: BSD-2-Clause
/* The process in the background that keeps the books of what is allocated. */
#include "cmd/memory/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "cmd/record/signals.h"

#define POLL_MS 100
#define MOST_LOG_BYTES (1 << 20)

struct recorder {
	const struct memory_opts *opts;
	char folder[KPROF_CONTROL_PATH_BYTES], state[MEMORY_PATH_BYTES];
	struct kprof_control *control;
	struct kprof_session *session;
	uint64_t begun_ns;
	bool stopped_by_question; /* who asked waits for the answer */
	char why[256];            /* it ended */
};

/* ---- what is said of it ---- */

/* A line for the machine's log, and for the recording's own. */
__attribute__((format(printf, 1, 2))) static void say(const char *fmt, ...)
{
	char text[512], at[32];
	time_t now = time(NULL);
	struct tm utc;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	fprintf(stderr, "%s %s\n", at, text);
	syslog(LOG_INFO, "%s", text);
}

/* From now on, messages go to a file beside the socket. */
static void leave_terminal(const struct recorder *r)
{
	char path[MEMORY_PATH_BYTES];
	int fd;

	snprintf(path, sizeof(path), "%s/log", r->folder);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		dup2(fd, STDERR_FILENO);
		close(fd);
	}
	setvbuf(stderr, NULL, _IOLBF, 0);
}

static void bound_log(void)
{
	struct stat st;

	if (!fstat(STDERR_FILENO, &st) && S_ISREG(st.st_mode) && st.st_size > MOST_LOG_BYTES &&
	    ftruncate(STDERR_FILENO, 0))
		dup2(STDOUT_FILENO, STDERR_FILENO); /* /dev/null */
}

/* ---- begin ---- */

static int listen_for_questions(struct recorder *r)
{
	int held = memory_lock(), err;

	if (held < 0)
		return EXIT_FAILED;
	err = memory_folder(r->opts->pid, true, r->folder);
	if (!err) {
		memory_state(r->folder, r->state);
		err = kprof_control_new(r->folder, &r->control);
	}
	close(held);
	if (err == -EBUSY) {
		message_warn(
			"`kprof memory export` writes what it has, `kprof memory stop` ends it",
			"the memory of process %d is being recorded already", (int)r->opts->pid);
		return EXIT_FAILED;
	}
	return err ? message_error() : 0;
}

static int begin(struct recorder *r, const char *command)
{
	struct kprof_session_opts session = r->opts->session;
	int err;

	session.command = command;
	session.capture_path = r->state;
	session.alive = true;
	session.confine = true;
	err = kprof_session_new(&session, &r->session);
	if (!err)
		err = kprof_session_add_pid(r->session, r->opts->pid);
	if (!err)
		err = kprof_session_start(r->session);
	if (err)
		return message_error();
	r->begun_ns = now_ns(CLOCK_MONOTONIC);
	unlink(r->state); /* of an earlier recording */
	return 0;
}

/* ---- questions ---- */

static uint64_t resident_bytes(void)
{
	unsigned long all, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%lu %lu", &all, &resident) != 2)
		resident = 0;
	if (f)
		fclose(f);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static cJSON *numbers_of(const struct recorder *r)
{
	struct kprof_session_stats s = {0};
	cJSON *o = cJSON_CreateObject();

	if (r->session)
		kprof_session_stats(r->session, &s);
	cJSON_AddBoolToObject(o, "ok", true);
	cJSON_AddNumberToObject(o, "pid", r->opts->pid);
	cJSON_AddNumberToObject(o, "recorder", getpid());
	cJSON_AddNumberToObject(o, "elapsed_ns", (double)(now_ns(CLOCK_MONOTONIC) - r->begun_ns));
	cJSON_AddNumberToObject(o, "blocks", (double)s.blocks);
	cJSON_AddNumberToObject(o, "bytes", (double)s.block_bytes);
	cJSON_AddNumberToObject(o, "not_kept", (double)s.blocks_not_kept);
	cJSON_AddNumberToObject(o, "lost", (double)(s.dropped + s.missed));
	cJSON_AddNumberToObject(o, "cost_share", s.cost_share);
	cJSON_AddNumberToObject(o, "resident_bytes", (double)resident_bytes());
	cJSON_AddNumberToObject(o, "written_bytes", (double)s.written_bytes);
	return o;
}

static void answer(struct recorder *r, cJSON *o)
{
	char *text = cJSON_PrintUnformatted(o);

	kprof_control_answer(r->control, text ? text : "{\"ok\":false}");
	cJSON_free(text);
	cJSON_Delete(o);
}

static void answer_error(struct recorder *r, const char *error, const char *hint)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddBoolToObject(o, "ok", false);
	cJSON_AddStringToObject(o, "error", error);
	if (hint)
		cJSON_AddStringToObject(o, "hint", hint);
	answer(r, o);
}

static void answer_export(struct recorder *r)
{
	if (kprof_session_snapshot(r->session, r->state))
		answer_error(r, kprof_error_cause(), kprof_error_hint());
	else
		answer(r, numbers_of(r));
}

/* Returns whether the recording is to end. */
static bool answer_next(struct recorder *r)
{
	struct kprof_control_question q;
	const char *what;
	cJSON *o;

	if (!kprof_control_take(r->control, &q))
		return false;
	o = cJSON_Parse(q.text);
	what = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, "do"));
	if (what && !strcmp(what, "stop")) {
		r->stopped_by_question = true;
		snprintf(r->why, sizeof(r->why), "process %d asked for it", (int)q.pid);
	} else if (what && !strcmp(what, "export")) {
		answer_export(r);
	} else if (what && !strcmp(what, "status")) {
		answer(r, numbers_of(r));
	} else {
		answer_error(r, "a recording of memory knows only stop, export and status", NULL);
	}
	cJSON_Delete(o);
	return r->stopped_by_question;
}

/* ---- until the end ---- */

static void record_on(struct recorder *r)
{
	for (;;) {
		int n = kprof_session_poll(r->session, POLL_MS);

		if (n < 0) {
			snprintf(r->why, sizeof(r->why), "%s", kprof_error_cause());
			return;
		}
		if (n) {
			snprintf(r->why, sizeof(r->why), "the process has ended");
			return;
		}
		if (signals_count()) {
			snprintf(r->why, sizeof(r->why), "a signal asked for it");
			return;
		}
		if (answer_next(r))
			return;
		bound_log();
	}
}

/* Writes the last state, and removes the probes. */
static int finish(struct recorder *r)
{
	struct kprof_session_stats s;
	cJSON *numbers;
	int err, code;

	kprof_session_stats(r->session, &s);
	numbers = numbers_of(r);
	err = kprof_session_stop(r->session);
	code = err ? message_error() : EXIT_DONE;
	kprof_session_free(r->session);
	r->session = NULL;
	say("kprof: recording the memory of process %d has ended: %s; %llu blocks of %llu bytes are "
	    "allocated",
	    (int)r->opts->pid, r->why, (unsigned long long)s.blocks,
	    (unsigned long long)s.block_bytes);
	if (!r->stopped_by_question) {
		cJSON_Delete(numbers);
	} else if (err) {
		cJSON_Delete(numbers);
		answer_error(r, kprof_error_cause(), kprof_error_hint());
	} else {
		answer(r, numbers);
	}
	return code;
}

int memory_record(const struct memory_opts *opts, const char *command, int ready)
{
	struct recorder r = {.opts = opts};
	int code = listen_for_questions(&r);

	if (code)
		return code;
	signals_set_last_words("");
	signals_catch();
	signal(SIGPIPE, SIG_IGN);
	openlog("kprof", LOG_PID | LOG_NDELAY, LOG_DAEMON);
	memory_clean(r.folder);
	code = begin(&r, command);
	if (!code) {
		leave_terminal(&r);
		say("kprof: recording the memory of process %d has begun", (int)opts->pid);
		if (write(ready, "", 1) == 1)
			record_on(&r);
		else
			snprintf(r.why, sizeof(r.why), "who began it did not wait");
		close(ready);
		code = finish(&r);
	}
	kprof_session_free(r.session);
	kprof_control_free(r.control);
	if (code)
		memory_forget_old(); /* a recording that did not begin leaves nothing */
	return code;
}
