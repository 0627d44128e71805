// SPDX-License-Identifier: BSD-2-Clause
/* kprof ctl: what is asked of the daemon, and what it answers, for people. */
#include "cmd/ctl/ctl.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/export/export.h"
#include "cmd/print/json_get.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "cmd/record/options.h"
#include "kprof/client.h"

#define ANSWER_MS 10000
#define LONG_MS 600000 /* placing probes, finishing a capture */

struct ctl {
	const struct command *self;
	struct record_opts *opts;
	const char *verb, *id; /* NULL: none was given */
	uint64_t start_at_ns;  /* CLOCK_REALTIME; 0: none was given */
	int argc;
	char **argv;
	cJSON *answer;
	int file; /* that came with it; -1: none */
};

/* ---- asking ---- */

static int no_daemon(const struct ctl *c)
{
	message_warn("`systemctl start kprof`, or `sudo kprof daemon` in a terminal",
		     "no daemon listens at %s", kprof_client_socket(c->opts->socket));
	return EXIT_FAILED;
}

static int take_answer(struct ctl *c, const char *text)
{
	c->answer = cJSON_Parse(text);
	ctl_defuse(c->answer);
	if (!cJSON_IsObject(c->answer)) {
		message_warn("is it another version?", "the daemon's answer is not understood");
		return EXIT_FAILED;
	}
	if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(c->answer, "ok")))
		return -1;
	message_warn(*ctl_text(c->answer, "hint") ? ctl_text(c->answer, "hint") : NULL, "%s",
		     *ctl_text(c->answer, "error") ? ctl_text(c->answer, "error")
						   : "the daemon says no, and not why");
	return EXIT_FAILED;
}

/* Asks, and frees the question. Returns -1, or an exit code after a message. */
static int ask(struct ctl *c, cJSON *question, int timeout_ms)
{
	char *text, *answer;
	int err, code;

	cJSON_AddStringToObject(question, "do", c->verb);
	if (c->id)
		cJSON_AddStringToObject(question, "id", c->id);
	else if (c->opts->pids.nr)
		cJSON_AddNumberToObject(question, "pid", c->opts->pids.items[0]);
	text = cJSON_PrintUnformatted(question);
	cJSON_Delete(question);
	if (!text)
		return message_no_memory();
	err = kprof_client_ask(c->opts->socket, text, timeout_ms, &answer, &c->file);
	cJSON_free(text);
	if (err == -ESRCH)
		return no_daemon(c);
	if (err)
		return message_error();
	code = take_answer(c, answer);
	free(answer);
	return code;
}

static int print_json(const struct ctl *c)
{
	char *text = cJSON_Print(c->answer);

	if (text)
		puts(text);
	cJSON_free(text);
	return EXIT_DONE;
}

/* ---- recordings ---- */

/* The options of the recording, as they were given: the daemon's process takes them apart again. */
static cJSON *options_given(const struct ctl *c)
{
	cJSON *question = cJSON_CreateObject(),
	      *options = cJSON_AddArrayToObject(question, "options");

	/* operands are at the end by now: see getopt_long(3) */
	for (int i = 1; i < c->argc; i++)
		cJSON_AddItemToArray(options, cJSON_CreateString(c->argv[i]));
	if (c->opts->start_at)
		cJSON_AddBoolToObject(question, "later", true);
	return question;
}

static int print_id(const struct ctl *c)
{
	if (c->opts->as_json)
		return print_json(c);
	puts(ctl_text(c->answer, "id"));
	return EXIT_DONE;
}

/* What can still be chosen for a recording that is prepared. */
static bool is_of_start(void *lasts, const char *name)
{
	static const char *const names[] = {"start-at", "duration", "socket", "json",
					    "quiet",    "verbose",  "config"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name)) {
			*(bool *)lasts |= !strcmp(name, "duration");
			return true;
		}
	return false;
}

static int start_prepared(struct ctl *c)
{
	const char *refused;
	bool lasts = false; /* as is said here, and not by a configuration file */
	cJSON *question;
	int code;

	if (!options_used(c->self, c->argc, c->argv, is_of_start, &lasts, &refused)) {
		message_warn("start ID takes --start-at and --duration; all else is for "
			     "`kprof ctl prepare`",
			     "--%s comes too late: recording %s is prepared without it", refused,
			     c->id);
		return EXIT_USAGE;
	}
	question = cJSON_CreateObject();
	if (lasts)
		cJSON_AddNumberToObject(question, "duration_ns", (double)c->opts->duration_ns);
	if (c->start_at_ns) {
		cJSON_AddNumberToObject(question, "start_at_ns", (double)c->start_at_ns);
		cJSON_AddBoolToObject(question, "later", true);
	}
	code = ask(c, question, LONG_MS);
	return code >= 0 ? code : print_id(c);
}

static int begin(struct ctl *c)
{
	int code;

	if (c->id && c->opts->pids.nr)
		return message_usage(c->self->name,
				     "either a recording that was prepared, or a process (-p PID)");
	if (c->id && !strcmp(c->verb, "prepare"))
		return message_usage(c->self->name, "'%s' is too many", c->id);
	if (c->id)
		return start_prepared(c);
	if (!c->opts->pids.nr)
		return message_usage(c->self->name, "no process is given (-p PID)");
	code = ask(c, options_given(c), LONG_MS);
	return code >= 0 ? code : print_id(c);
}

static int stop(struct ctl *c)
{
	char bytes[TEXT_NUMBER_BYTES];
	int code;

	if (!c->id && !c->opts->pids.nr)
		return message_usage(c->self->name, "which recording (its id, or -p PID)?");
	code = ask(c, cJSON_CreateObject(), LONG_MS);
	if (code >= 0)
		return code;
	if (c->opts->as_json)
		return print_json(c);
	if (*ctl_text(c->answer, "early"))
		message_note("it %s", ctl_text(c->answer, "early"));
	if (*ctl_text(c->answer, "note"))
		message_note("%s", ctl_text(c->answer, "note"));
	else if (!c->opts->message.quiet)
		message_note("%.0f events, %.0f samples in %s; `kprof ctl get %s -o FILE` has them",
			     json_number(c->answer, "events"), json_number(c->answer, "samples"),
			     text_time(bytes, (uint64_t)json_number(c->answer, "elapsed_ns")),
			     ctl_text(c->answer, "id"));
	if (*ctl_text(c->answer, "id"))
		puts(ctl_text(c->answer, "id"));
	return EXIT_DONE;
}

/* ---- what there is ---- */

static void time_text(char buf[32], double ms)
{
	time_t s = (time_t)(ms / 1000);
	struct tm tm;

	strcpy(buf, "-");
	if (s)
		strftime(buf, 32, "%F %T", localtime_r(&s, &tm));
}

static void add_row(struct table *t, const cJSON *r)
{
	char pids[64] = "-", begun[32], elapsed[TEXT_NUMBER_BYTES], events[24];
	const char *cells[] = {ctl_text(r, "id"),
			       ctl_text(r, "state"),
			       pids,
			       begun,
			       elapsed,
			       events,
			       *ctl_text(r, "error") ? ctl_text(r, "error") : ctl_text(r, "early")};
	const cJSON *pid;
	size_t at = 0;

	cJSON_ArrayForEach(pid,
			   cJSON_GetObjectItemCaseSensitive(r, "pids")) if (at < sizeof(pids) - 16)
		at += (size_t)snprintf(pids + at, sizeof(pids) - at, "%s%d", at ? "," : "",
				       pid->valueint);
	time_text(begun, json_number(r, "begun_ms"));
	text_time(elapsed, (uint64_t)json_number(r, "elapsed_ns"));
	snprintf(events, sizeof(events), "%.0f",
		 json_number(r, "events") + json_number(r, "samples"));
	table__add(t, cells);
}

static struct table *new_table(void)
{
	static const struct table_column columns[] = {
		{"ID", false, 0},    {"STATE", false, 0}, {"PID", false, 40},   {"ASKED", false, 0},
		{"LENGTH", true, 0}, {"EVENTS", true, 0}, {"ERROR", false, 60},
	};

	return table__new(columns, sizeof(columns) / sizeof(columns[0]));
}

static int list(struct ctl *c)
{
	int code = ask(c, cJSON_CreateObject(), ANSWER_MS);
	struct table *t;
	const cJSON *r;

	if (code >= 0)
		return code;
	if (c->opts->as_json)
		return print_json(c);
	t = new_table();
	if (!t)
		return message_no_memory();
	cJSON_ArrayForEach(r, cJSON_GetObjectItemCaseSensitive(c->answer, "recordings"))
		add_row(t, r);
	table__print(t, stdout, false);
	table__free(t);
	return EXIT_DONE;
}

static void print_keeper(const cJSON *daemon, const char *key, const char *name)
{
	const cJSON *k = cJSON_GetObjectItemCaseSensitive(daemon, key);
	const cJSON *now = cJSON_GetObjectItemCaseSensitive(k, "now");
	char bytes[TEXT_NUMBER_BYTES];

	if (!k)
		return;
	printf("%-10s %s; %.0f captures of %s in %s\n", name, ctl_text(k, "state"),
	       json_number(k, "stored_files"),
	       text_bytes(bytes, (uint64_t)json_number(k, "stored_bytes")), ctl_text(k, "folder"));
	printf("%-10s %.0f samples, %.0f events, %.0f lost; costs %.2f %% now\n", "",
	       json_number(k, "samples"), json_number(k, "events"), json_number(k, "dropped"),
	       100 * json_number(now, "cost_share"));
}

static void print_windows(const cJSON *w)
{
	char bytes[TEXT_NUMBER_BYTES];

	if (!w)
		return;
	printf("%-10s %s; %.0f captures of %s in %s\n", "device", ctl_text(w, "state"),
	       json_number(w, "stored_files"),
	       text_bytes(bytes, (uint64_t)json_number(w, "stored_bytes")), ctl_text(w, "folder"));
	printf("%-10s %.1f s each %.0f s, as asked %.0f s; the last one cost %.2f s of CPU time, all "
	       "%.2f %%\n",
	       "", json_number(w, "window_ns") / 1e9, json_number(w, "pause_ns") / 1e9,
	       json_number(w, "every_ns") / 1e9, json_number(w, "cost_ns") / 1e9,
	       100 * json_number(w, "cost_share"));
}

static int status(struct ctl *c)
{
	char since[32], bytes[TEXT_NUMBER_BYTES], most[TEXT_NUMBER_BYTES];
	int code = ask(c, cJSON_CreateObject(), ANSWER_MS);
	struct table *t;

	if (code >= 0)
		return code;
	if (c->opts->as_json)
		return print_json(c);
	if (c->id || c->opts->pids.nr) {
		t = new_table();
		if (!t)
			return message_no_memory();
		add_row(t, c->answer);
		table__print(t, stdout, false);
		table__free(t);
		return EXIT_DONE;
	}
	time_text(since, json_number(c->answer, "begun_ms"));
	printf("%-10s %s, process %.0f, since %s\n", "kprof", ctl_text(c->answer, "version"),
	       json_number(c->answer, "pid"), since);
	printf("%-10s %s of at most %s; %.1f s of CPU time\n", "memory",
	       text_bytes(bytes, (uint64_t)json_number(c->answer, "memory_bytes")),
	       text_bytes(most, (uint64_t)json_number(c->answer, "max_memory_bytes")),
	       json_number(c->answer, "cpu_ns") / 1e9);
	print_keeper(c->answer, "sampler", "samples");
	print_keeper(c->answer, "flight", "flight");
	print_windows(cJSON_GetObjectItemCaseSensitive(c->answer, "device"));
	printf("%-10s %.0f go on\n", "recordings", json_number(c->answer, "recordings"));
	return EXIT_DONE;
}

static int no_file(void)
{
	message_warn(NULL, "the daemon has sent no file");
	return EXIT_FAILED;
}

/* ---- get ---- */

/* Writes a capture as it is, or in the format of the output's name. */
static int write_file(const struct ctl *c)
{
	struct kprof_export_opts opts = {.path = c->opts->output};
	struct write_what what = {.quiet = c->opts->message.quiet};
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->file);
	return write_capture(path, &opts, &what);
}

static int get(struct ctl *c)
{
	cJSON *question;
	int code;

	if (!c->id)
		return message_usage(c->self->name,
				     "which recording? `kprof ctl list` has their ids");
	if (!c->opts->output)
		return message_usage(c->self->name, "no file is given to write to (-o FILE)");
	question = cJSON_CreateObject();
	if (c->opts->round)
		cJSON_AddNumberToObject(question, "round", (double)c->opts->round);
	code = ask(c, question, ANSWER_MS);
	if (code >= 0)
		return code;
	if (c->file < 0)
		return no_file();
	if (*ctl_text(c->answer, "early"))
		message_note("it %s", ctl_text(c->answer, "early"));
	return write_file(c);
}

static void tell_gone(const cJSON *answer)
{
	double gone = json_number(answer, "gone");

	if (gone > 0)
		message_warn("the oldest go where the disk is nearly full (min-free), or a dump "
			     "takes long",
			     "%.0f captures of the flight recorder were removed before they were "
			     "in the dump",
			     gone);
}

/* What the flight recorder has, as a recording; with -o also written at once. */
static int dump(struct ctl *c)
{
	cJSON *question = cJSON_CreateObject();
	char *id;
	int code;

	if (c->id)
		return message_usage(c->self->name, "'%s' is too many", c->id);
	if (c->opts->last_ns)
		cJSON_AddNumberToObject(question, "last_ns", (double)c->opts->last_ns);
	code = ask(c, question, LONG_MS);
	if (code >= 0)
		return code;
	tell_gone(c->answer);
	if (!c->opts->output)
		return print_id(c);
	id = strdup(ctl_text(c->answer, "id"));
	if (!id)
		return message_no_memory();
	cJSON_Delete(c->answer);
	c->answer = NULL;
	c->id = id;
	c->verb = "get";
	code = get(c);
	free(id);
	return code;
}

static int processes(struct ctl *c)
{
	int code;

	if (c->id)
		return message_usage(c->self->name, "'%s' is too many", c->id);
	code = ask(c, cJSON_CreateObject(), ANSWER_MS);
	if (code >= 0)
		return code;
	if (c->file < 0)
		return no_file();
	return ctl_processes(c->file, &c->opts->pids, c->opts->as_json);
}

static int cancel(struct ctl *c)
{
	int code = c->id || c->opts->pids.nr
			   ? ask(c, cJSON_CreateObject(), LONG_MS)
			   : message_usage(c->self->name, "which recording (its id, or -p PID)?");

	return code >= 0 ? code : print_id(c);
}

static const struct {
	const char *name;
	int (*run)(struct ctl *c);
} verbs[] = {
	{"prepare", begin}, {"start", begin},   {"stop", stop},
	{"status", status}, {"list", list},     {"get", get},
	{"dump", dump},     {"cancel", cancel}, {"processes", processes},
};

#define VERBS "prepare, start, stop, status, list, get, cancel, dump or processes"

static int act(struct ctl *c, int first)
{
	if (first >= c->argc)
		return message_usage(c->self->name, VERBS "?");
	c->verb = c->argv[first];
	c->id = first + 1 < c->argc ? c->argv[first + 1] : NULL;
	if (first + 2 < c->argc)
		return message_usage(c->self->name, "'%s' is too many", c->argv[first + 2]);
	for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
		if (!strcmp(verbs[i].name, c->verb))
			return verbs[i].run(c);
	return message_usage(c->self->name, "there is no '%s': it is " VERBS, c->verb);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct record_opts opts = {0};
	struct ctl c = {.self = self, .opts = &opts, .argc = argc, .argv = argv, .file = -1};
	int first, code = record_opts_parse(self, argc, argv, &opts, &first);

	if (code < 0 && opts.start_at && ctl_time(opts.start_at, &c.start_at_ns))
		code = message_usage(self->name,
				     "--start-at: '%s' is no time (1700000000, 12:30:00, +5s)",
				     opts.start_at);
	if (code < 0) {
		message_listen(&opts.message);
		code = act(&c, first);
	}
	cJSON_Delete(c.answer);
	if (c.file >= 0)
		close(c.file);
	options_free(self, &opts);
	chosen_free(&opts.chosen);
	return code;
}

const struct command cmd_ctl = {
	.name = "ctl",
	.arguments = "prepare|start|stop|status|list|get|cancel|dump|processes [OPTION…] [ID]",
	.summary = "ask the daemon for recordings",
	.options = record_options,
	.bit = RECORD_CTL,
	.epilogue =
		"prepare places probes and prints the recording's id; start ID begins to record, "
		"start -p PID does\nboth; stop ends it; get ID -o FILE writes it. dump is of the "
		"flight recorder.\n",
	.run = run,
};
