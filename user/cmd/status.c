// SPDX-License-Identifier: BSD-2-Clause
/* kprof status: whether a process is being recorded, or can be, for scripts: by the exit status. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/print/json_get.h"
#include "cmd/print/message.h"
#include "kprof/client.h"
#include "kprof/control.h"

#define ANSWER_MS 10000

enum { ANSWER_YES = 0, ANSWER_NO = 1 };

struct status_opts {
	bool capturing, can_capture;
	pid_t pid; /* 0: none was given */
	const char *socket;
	bool quiet;
};

#define OPT(FIELD) OPTION_FIELD(struct status_opts, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "capturing", .kind = OPTION_FLAG, OPT(capturing),
	 .help = "is the process being recorded: by the daemon, or, for root to know, by `kprof "
		 "memory`?"},
	{.name = "can-capture", .kind = OPTION_FLAG, OPT(can_capture),
	 .help = "could it be: would the daemon do it for this user, or `kprof attach` work?"},
	{.name = "pid", .letter = 'p', .kind = OPTION_PID, OPT(pid), .argument = "PID",
	 .help = "the process"},
	{.name = "socket", .kind = OPTION_TEXT, OPT(socket), .argument = "PATH", .words = "<file>",
	 .help = "where the daemon listens (" KPROF_DAEMON_SOCKET ")"},
	{.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, OPT(quiet),
	 .help = "say nothing: the exit status is the answer"},
	{0},
};
/* clang-format on */

/* What the daemon says of the process, or NULL: there is none, or it does not say. */
static cJSON *ask_daemon(const struct status_opts *opts, bool *there)
{
	char question[64], *text;
	cJSON *answer;
	int err;

	snprintf(question, sizeof(question), "{\"do\":\"capturing\",\"pid\":%d}", (int)opts->pid);
	err = kprof_client_ask(opts->socket, question, ANSWER_MS, &text, NULL);
	*there = err != -ESRCH;
	if (err) {
		if (*there)
			message_error();
		return NULL;
	}
	answer = cJSON_Parse(text);
	free(text);
	return answer;
}

/* One of root's, outside of the daemon: the only kind that says of itself that it is there. */
static bool memory_is_recorded(pid_t pid)
{
	char below[32], path[KPROF_CONTROL_PATH_BYTES];

	snprintf(below, sizeof(below), "memory/%d", (int)pid);
	return !geteuid() && !kprof_control_folder(below, false, path) &&
	       kprof_control_wait(path, 0);
}

static int capturing(const struct status_opts *opts, const cJSON *answer, bool daemon)
{
	const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(answer, "id"));
	int code = ANSWER_YES;
	char text[160];

	if (json_is_true(answer, "capturing"))
		snprintf(text, sizeof(text), "is being recorded: %s", id ? id : "");
	else if (memory_is_recorded(opts->pid))
		snprintf(text, sizeof(text), "is being recorded by `kprof memory`");
	else {
		snprintf(text, sizeof(text), "is not being recorded%s",
			 daemon ? " by the daemon, as far as this user may know"
				: ", as far as can be said: no daemon listens");
		code = ANSWER_NO;
	}
	if (!opts->quiet)
		printf("process %d %s\n", (int)opts->pid, text);
	return code;
}

static int nothing(void *ctx, const struct kprof_check_line *line)
{
	(void)ctx;
	(void)line;
	return 0;
}

static int can_capture(const struct status_opts *opts, const cJSON *answer)
{
	bool here;

	if (json_is_true(answer, "may")) {
		if (!opts->quiet)
			printf("process %d can be recorded: `kprof ctl start -p %d`\n",
			       (int)opts->pid, (int)opts->pid);
		return ANSWER_YES;
	}
	here = !kprof_check_machine(nothing, NULL) &&
	       !kprof_check_process(opts->pid, false, nothing, NULL);
	if (opts->quiet)
		return here ? ANSWER_YES : ANSWER_NO;
	if (here)
		printf("process %d can be recorded: `kprof attach -p %d`\n", (int)opts->pid,
		       (int)opts->pid);
	else
		printf("process %d cannot be recorded by this user%s: %s\n", (int)opts->pid,
		       answer ? ", nor does the daemon do it" : "", kprof_error_cause());
	return here ? ANSWER_YES : ANSWER_NO;
}

static int answer_of(const struct status_opts *opts)
{
	bool daemon;
	char path[32];
	cJSON *answer;
	int code;

	snprintf(path, sizeof(path), "/proc/%d", (int)opts->pid);
	if (access(path, F_OK)) {
		if (!opts->quiet)
			printf("there is no process %d\n", (int)opts->pid);
		return ANSWER_NO;
	}
	answer = ask_daemon(opts, &daemon);
	code = opts->capturing ? capturing(opts, answer, daemon) : can_capture(opts, answer);
	cJSON_Delete(answer);
	return code;
}

static int run(const struct command *self, int argc, char **argv)
{
	const struct message_opts message = {.quiet = true};
	struct status_opts opts = {0};
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code >= 0)
		return code;
	if (first < argc)
		return message_usage(self->name, "'%s' is too many: status takes options only",
				     argv[first]);
	if (opts.capturing == opts.can_capture)
		return message_usage(self->name, "--capturing or --can-capture? `kprof ctl status` "
						 "shows the daemon");
	if (!opts.pid)
		return message_usage(self->name, "no process is given (-p PID)");
	message_listen(&message);
	return answer_of(&opts);
}

const struct command cmd_status = {
	.name = "status",
	.arguments = "--capturing|--can-capture -p PID [-q]",
	.summary = "is a process being recorded, can it be? exit status 0 yes, 1 no",
	.options = options,
	.epilogue = "Recordings by `kprof attach` and the like are not known to anybody but "
		    "themselves.\n",
	.run = run,
};
