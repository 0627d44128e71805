// SPDX-License-Identifier: BSD-2-Clause
/* Begins a recording in the background, ends it, and says what there is of it. */
#include "cmd/memory/memory.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/print/json.h"
#include "cmd/print/json_get.h"
#include "cmd/print/text.h"

#define STOP_MS 180000 /* names of functions, and probes that the kernel removes one by one */
#define STATUS_MS 5000

/* ---- start ---- */

/* The process in the background: none of the caller's descriptors, session or folder is its own. */
static int in_background(const struct memory_opts *opts, const char *command, int ready)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), code;

	setsid();
	if (null >= 0) {
		dup2(null, STDIN_FILENO);
		dup2(null, STDOUT_FILENO);
	}
	dup2(ready, STDERR_FILENO + 1);
	close_range(STDERR_FILENO + 2, ~0u, 0);
	fcntl(STDERR_FILENO + 1, F_SETFD, FD_CLOEXEC);
	code = chdir("/") ? EXIT_FAILED : memory_record(opts, command, STDERR_FILENO + 1);
	return code;
}

int memory_start(const struct memory_opts *opts, const char *command)
{
	int ends[2], status = 0;
	pid_t child;
	ssize_t n;
	char byte;

	memory_forget_old();
	if (pipe2(ends, O_CLOEXEC)) {
		message_warn(NULL, "cannot make a pipe: %s", strerror(errno));
		return EXIT_FAILED;
	}
	fflush(NULL);
	child = fork();
	if (child < 0) {
		message_warn(NULL, "cannot begin a process: %s", strerror(errno));
		return EXIT_FAILED;
	}
	if (!child) {
		close(ends[0]);
		_exit(in_background(opts, command, ends[1]));
	}
	close(ends[1]);
	do
		n = read(ends[0], &byte, 1);
	while (n < 0 && errno == EINTR);
	close(ends[0]);
	if (n == 1) {
		if (!opts->message.quiet)
			message_note("recording the memory of process %d, in process %d",
				     (int)opts->pid, (int)child);
		return EXIT_DONE;
	}
	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || !WEXITSTATUS(status)) {
		message_warn(NULL, "the process in the background ended before it recorded");
		return EXIT_FAILED;
	}
	return WEXITSTATUS(status);
}

/* ---- stop ---- */

int memory_stop(const struct memory_opts *opts)
{
	char folder[KPROF_CONTROL_PATH_BYTES], bytes[TEXT_NUMBER_BYTES];
	cJSON *answer = NULL;
	int err = memory_folder(opts->pid, false, folder);

	if (err && err != -ENOENT)
		return message_error();
	if (!err)
		err = memory_ask(folder, "stop", STOP_MS, &answer);
	if (err == -ENOENT || err == -ESRCH) {
		message_note("the memory of process %d is not being recorded", (int)opts->pid);
		return EXIT_DONE;
	}
	if (err)
		return EXIT_FAILED;
	if (!opts->message.quiet)
		message_note("%.0f blocks of %s are allocated; `kprof memory export` shows them",
			     cJSON_GetNumberValue(cJSON_GetObjectItem(answer, "blocks")),
			     text_bytes(bytes, (uint64_t)cJSON_GetNumberValue(
						       cJSON_GetObjectItem(answer, "bytes"))));
	cJSON_Delete(answer);
	return kprof_control_wait(folder, STOP_MS) ? EXIT_FAILED : EXIT_DONE;
}

/* ---- status ---- */

struct status {
	const struct memory_opts *opts;
	struct table *table;
	struct json json;
	bool failed;
};

static void add_json(struct status *s, pid_t pid, const cJSON *o)
{
	static const char *const keys[] = {"recorder",       "elapsed_ns",   "blocks",
					   "bytes",          "not_kept",     "lost",
					   "resident_bytes", "written_bytes"};

	json_open(&s->json, NULL, '{');
	json_uint(&s->json, "pid", (uint64_t)pid);
	json_string(&s->json, "state", o ? "recording" : "stopped");
	for (size_t i = 0; o && i < sizeof(keys) / sizeof(keys[0]); i++)
		json_uint(&s->json, keys[i], json_number(o, keys[i]));
	if (o)
		json_double(&s->json, "cost_share",
			    cJSON_GetNumberValue(cJSON_GetObjectItem(o, "cost_share")));
	json_close(&s->json, '}');
}

static void add_row(struct status *s, pid_t pid, const cJSON *o)
{
	char id[16], since[TEXT_NUMBER_BYTES], blocks[24], bytes[TEXT_NUMBER_BYTES], lost[24],
		cost[16], own[TEXT_NUMBER_BYTES];
	const char *cells[] = {id, "stopped", "-", "-", "-", "-", "-", "-"};
	double share = o ? cJSON_GetNumberValue(cJSON_GetObjectItem(o, "cost_share")) : 0;

	snprintf(id, sizeof(id), "%d", (int)pid);
	if (o) {
		snprintf(blocks, sizeof(blocks), "%.0f", json_number(o, "blocks"));
		snprintf(lost, sizeof(lost), "%.0f",
			 json_number(o, "lost") + json_number(o, "not_kept"));
		snprintf(cost, sizeof(cost), "%.2f %%", 100 * share);
		cells[1] = "recording";
		cells[2] = text_time(since, json_number(o, "elapsed_ns"));
		cells[3] = blocks;
		cells[4] = text_bytes(bytes, json_number(o, "bytes"));
		cells[5] = lost;
		cells[6] = cost;
		cells[7] = text_bytes(own, json_number(o, "resident_bytes"));
	}
	s->failed |= !table__add(s->table, cells);
}

static int on_process(void *ctx, pid_t pid, const char *folder)
{
	struct status *s = ctx;
	char path[MEMORY_PATH_BYTES];
	cJSON *answer = NULL;
	int err;

	if (s->opts->pid && s->opts->pid != pid)
		return 0;
	err = memory_ask(folder, "status", STATUS_MS, &answer);
	if (err && err != -ESRCH) {
		s->failed = true;
		return 0;
	}
	memory_state(folder, path);
	if (err && access(path, F_OK))
		return 0;
	if (s->opts->as_json)
		add_json(s, pid, answer);
	else
		add_row(s, pid, answer);
	cJSON_Delete(answer);
	return 0;
}

int memory_status(const struct memory_opts *opts)
{
	static const struct table_column columns[] = {
		{"PID", true, 0},    {"STATE", false, 0},     {"SINCE", true, 0},
		{"BLOCKS", true, 0}, {"BYTES", true, 0},      {"LOST", true, 0},
		{"COST", true, 0},   {"OWN MEMORY", true, 0},
	};
	struct status s = {.opts = opts, .json = {.to = stdout}};
	int err;

	s.table = table__new(columns, sizeof(columns) / sizeof(columns[0]));
	if (!s.table)
		return message_no_memory();
	if (opts->as_json)
		json_open(&s.json, NULL, '[');
	err = memory_each(on_process, &s);
	if (opts->as_json)
		json_close(&s.json, ']');
	else if (!err)
		table__print(s.table, stdout, false);
	table__free(s.table);
	return err ? message_error() : s.failed ? EXIT_FAILED : EXIT_DONE;
}
