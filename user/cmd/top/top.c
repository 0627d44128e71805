// SPDX-License-Identifier: BSD-2-Clause
/* kprof top: what all processes do now, and what one of them does in particular. */
#include "cmd/top/top.h"

#include <unistd.h>

#include "cmd/print/message.h"
#include "cmd/record/signals.h"

#define DEFAULT_INTERVAL_NS 2000000000u
#define LEAST_INTERVAL_NS 100000000u
#define CLOSELY_NS 20000000u /* of each look, with a screen */

static int check_interval(const struct command *c, void *opts, const char *text)
{
	const struct top_opts *o = opts;

	if (o->interval_ns >= LEAST_INTERVAL_NS)
		return -1;
	return message_usage(c->name, "'%s' is too short: 100ms at least", text);
}

#define OPT(FIELD) OPTION_FIELD(struct top_opts, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "interval", .letter = 'd', .kind = OPTION_DURATION, OPT(interval_ns),
	 .check = check_interval, .argument = "TIME", .wrong = "time",
	 .help = "between two looks; default: 2s"},
	{.name = "sort", .kind = OPTION_CHOICE, OPT(sort), .choices = top_sorts, .argument = "WHAT",
	 .help = "order: cpu, wait, gpu, step, rss, threads or pid; default: cpu"},
	{.name = "filter", .kind = OPTION_TEXT, OPT(filter), .argument = "TEXT",
	 .help = "only processes with this text in command or framework, or this user or PID"},
	{.name = "steps", .letter = 's', .kind = OPTION_FLAG, OPT(steps),
	 .help = "count training steps: places a few probes in processes that have a framework"},
	{.name = "once", .kind = OPTION_FLAG, OPT(once),
	 .help = "one table instead of a screen, of the next interval"},
	{.name = "iterations", .letter = 'n', .kind = OPTION_NUMBER, OPT(looks), .least = 1,
	 .most = UINT32_MAX, .argument = "N", .wrong = "number of tables",
	 .help = "so many tables instead of a screen"},
	{.name = "limit", .kind = OPTION_NUMBER, OPT(most), .most = UINT32_MAX, .argument = "N",
	 .wrong = "number of rows",
	 .help = "rows of a table, at most; default: all"},
	{.name = "json", .kind = OPTION_FLAG, OPT(json),
	 .help = "for programs: an object for each interval, on a line of its own"},
	{0},
};
/* clang-format on */

static bool wants_screen(const struct top_opts *o)
{
	return !o->once && !o->looks && !o->json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static int run(const struct command *self, int argc, char **argv)
{
	const struct message_opts message = {0};
	struct top_opts opts = {.interval_ns = DEFAULT_INTERVAL_NS};
	struct kprof_top_opts top_opts = {.sz = sizeof(top_opts)};
	struct kprof_top *top;
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code >= 0)
		return code;
	if (first < argc)
		return message_usage(self->name, "'%s' is too many: top takes options only",
				     argv[first]);
	message_listen(&message);
	signals_catch();
	if (wants_screen(&opts) && !opts.steps) /* to count steps, all must be known */
		top_opts.closely_ns = CLOSELY_NS;
	if (kprof_top_new(&top_opts, &top))
		return message_error();
	code = wants_screen(&opts) ? top_live(&opts, top) : -1;
	if (code < 0)
		code = top_plain(&opts, top);
	kprof_top_free(top);
	return code;
}

const struct command cmd_top = {
	.name = "top",
	.arguments = "[OPTION…]",
	.summary =
		"live: what all processes do; threads, functions, operators and device calls of one",
	.options = options,
	.epilogue = "Without a terminal, or with -n, --once or --json, it prints. Keys: ?\n",
	.run = run,
};
