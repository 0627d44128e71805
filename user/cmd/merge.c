// SPDX-License-Identifier: BSD-2-Clause
/* kprof merge: the captures of several ranks, or machines, as one. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/commands.h"
#include "cmd/export/export.h"
#include "cmd/print/json.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "kprof/diff.h"
#include "kprof/merge.h"

struct merge {
	struct kprof_merge_opts library;
	struct value_list files;
	struct message_opts message;
	struct message_progress progress;
	bool as_json;
	struct kprof_merge_machine *machines;
	size_t nr;
	bool guessed; /* a clock is known by Unix time only */
};

static int check_output(const struct command *c, void *opts, const char *text)
{
	size_t len = strlen(text), suffix = strlen(".kprof");

	if (!len)
		return message_usage(c->name, "the output's name is empty");
	if (len <= suffix || strcmp(text + len - suffix, ".kprof"))
		return message_usage(c->name, "'%s' is no .kprof: export makes others of it", text);
	return -1;
}

/* ---- what is told of machines ---- */

static void json_machine(struct json *j, const struct kprof_merge_machine *m)
{
	json_open(j, NULL, '{');
	json_string(j, "host", m->host);
	json_uint(j, "captures", m->captures);
	json_uint(j, "first_pid", m->first_pid);
	json_string(j, "clock", kprof_merge_clock_name(m->clock));
	json_int(j, "offset_ns", m->offset_ns);
	json_double(j, "drift_ppm", m->drift_ppm);
	if (m->clock == KPROF_MERGE_CLOCK_UNIX)
		json_null(j, "error_ns");
	else
		json_uint(j, "error_ns", m->error_ns);
	json_uint(j, "slack_ns", m->slack_ns);
	json_uint(j, "collectives", m->collectives);
	json_close(j, '}');
}

static void note_machine(const struct kprof_merge_machine *m)
{
	const char *host = *m->host ? m->host : "a machine without a name";
	char error[TEXT_NUMBER_BYTES], slack[TEXT_NUMBER_BYTES], pids[64] = "", more[96] = "";
	double offset_s = (double)m->offset_ns / 1e9;

	if (m->first_pid)
		snprintf(pids, sizeof(pids), "; PIDs + %" PRIu32, m->first_pid);
	if (m->slack_ns)
		snprintf(more, sizeof(more), " (its speed changed: %s)",
			 text_time(slack, m->slack_ns));
	switch (m->clock) {
	case KPROF_MERGE_CLOCK_ITS_OWN:
		message_note("%.64s: times are those of its clock%s", host, pids);
		return;
	case KPROF_MERGE_CLOCK_COLLECTIVES:
		message_note("%.64s: clock %+.6f s and %+.3f ppm, known to %s from %" PRIu64
			     " collectives%s%s",
			     host, offset_s, m->drift_ppm, text_time(error, m->error_ns),
			     m->collectives, more, pids);
		return;
	case KPROF_MERGE_CLOCK_UNIX:
		message_note("%.64s: clock %+.6f s by Unix time%s", host, offset_s, pids);
		return;
	}
}

static void on_machine(void *ctx, const struct kprof_merge_machine *m)
{
	struct merge *o = ctx;
	struct kprof_merge_machine *to;

	o->guessed |= m->clock == KPROF_MERGE_CLOCK_UNIX;
	if (!o->as_json) {
		note_machine(m);
		return;
	}
	to = reallocarray(o->machines, o->nr + 1, sizeof(*to));
	if (!to)
		return;
	o->machines = to;
	to[o->nr] = *m;
	to[o->nr++].host = strdup(m->host);
}

/* Once the capture is there. */
static void print_json(const struct merge *o)
{
	struct json j = {.to = stdout};

	json_open(&j, NULL, '{');
	json_string(&j, "output", o->library.output);
	json_open(&j, "machines", '[');
	for (size_t i = 0; i < o->nr; i++)
		json_machine(&j, &o->machines[i]);
	json_close(&j, ']');
	json_close(&j, '}');
}

static int on_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct merge *o = ctx;

	message_progress(&o->progress, "merging", done, total);
	return 0;
}

/* ---- command ---- */

static int merge(struct merge *o)
{
	const struct kprof_diff_set set = {(const char *const *)o->files.items, o->files.nr};
	struct caller caller = caller_get();
	int err;

	if (kprof_give_up_root_of(&set, NULL, o->library.output, caller.uid, caller.gid, true))
		return message_error();
	o->library.uid = caller.uid;
	o->library.gid = caller.gid;
	o->library.set_owner = caller.by_sudo;
	o->library.machine = on_machine;
	o->library.progress = on_progress;
	o->library.ctx = o;
	o->progress.shown = message_line_wanted();
	message_listen(&o->message);
	err = kprof_merge(set.paths, set.nr, &o->library);
	message_line("");
	if (err)
		return message_error();
	if (o->guessed)
		message_warn("record ranks on all machines while they communicate with gloo",
			     "Unix time tells clocks apart as exactly as the machines keep it");
	if (o->as_json)
		print_json(o);
	else
		puts(o->library.output);
	return EXIT_DONE;
}

#define OPT(FIELD) OPTION_FIELD(struct merge, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "output", .letter = 'o', .kind = OPTION_TEXT, OPT(library.output), .check = check_output,
	 .argument = "FILE.kprof", .words = "<file>",
	 .help = "the capture that is made"},
	{.name = "json", .kind = OPTION_FLAG, OPT(as_json),
	 .help = "what is known of the machines' clocks as JSON, times in nanoseconds"},
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct merge o = {.library.sz = sizeof(o.library)};
	int first, code = options_parse(self, argc, argv, &o, &first);

	if (code < 0 && first == argc)
		code = message_usage(self->name, "no captures are given");
	if (code < 0 && !o.library.output)
		code = message_usage(self->name, "no output is given (-o FILE.kprof)");
	for (int i = first; i < argc && code < 0; i++)
		code = options_add_captures(&o.files, argv[i]);
	if (code < 0)
		code = merge(&o);
	for (size_t i = 0; i < o.nr; i++)
		free((char *)(uintptr_t)o.machines[i].host);
	free(o.machines);
	value_list_free(&o.files);
	options_free(self, &o);
	return code;
}

const struct command cmd_merge = {
	.name = "merge",
	.arguments = "FILE.kprof|FOLDER… -o OUTPUT.kprof [OPTION…]",
	.summary = "captures of several ranks or machines as one, on one clock; needs no root",
	.options = options,
	.run = run,
};
