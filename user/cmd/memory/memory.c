// SPDX-License-Identifier: BSD-2-Clause
/* kprof memory: its options, and which action is meant. */
#include "cmd/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/export/export.h"

#define DEFAULT_STACK_RATE 1000
#define MOST_STACK_RATE 1000000
#define DEFAULT_OVERHEAD 0.05
#define LEAST_OVERHEAD 0.001
#define DEFAULT_LIMIT 10
#define LEAST_RING_BYTES 4096
#define MOST_RING_BYTES (1ull << 40)

#define OPT(FIELD) OPTION_FIELD(struct memory_opts, FIELD)

static int check_overhead(const struct command *c, void *opts, const char *text)
{
	double share;

	if (value_percent(text, &share) && share <= 1 && (!share || share >= LEAST_OVERHEAD))
		return -1;
	return message_usage(
		c->name, "--max-overhead: '%s' is no share such as 2%% (0.1 … 100; 0: no bound)",
		text);
}

/* clang-format off */
static const struct option_row options[] = {
	{.name = "pid", .letter = 'p', .kind = OPTION_PID, OPT(pid), .argument = "PID",
	 .help = "the process"},
	{.name = "output", .letter = 'o', .kind = OPTION_TEXT, OPT(export.path),
	 .check = export_check_output, .argument = "FILE", .words = "<file>",
	 .help = "export: .pickle: for PyTorch's memory_viz; .pb.gz: pprof, .folded: collapsed "
		 "stacks, both in bytes; .kprof: capture; default: tables"},
	{.name = "limit", .kind = OPTION_NUMBER, OPT(limit), .most = UINT64_MAX, .argument = "N",
	 .wrong = "number of rows",
	 .help = "export: so many rows of each table (10; 0: all)"},
	{.name = "json", .kind = OPTION_FLAG, OPT(as_json),
	 .help = "export, status: as JSON"},
	{.name = "max-overhead", .kind = OPTION_TEXT, OPT(max_overhead), .check = check_overhead,
	 .argument = "PERCENT",
	 .help = "start: what it may cost, of the CPU time that the process uses: beyond, it looks "
		 "at fewer operators, then at no stacks, then it ends (5%; 0: no bound)"},
	{.name = "stack-rate", .kind = OPTION_NUMBER, OPT(session.stack_rate),
	 .most = MOST_STACK_RATE, .argument = "N", .wrong = "number of stacks (0: all)",
	 .help = "start: stacks of at most N allocations a second and thread (0: all; 1000)"},
	{.name = "ops", .kind = OPTION_LIST, OPT(ops), .argument = "GLOBS",
	 .wrong = "list of operator names",
	 .help = "start: look only at these operators: 'aten::*conv*,aten::mm'"},
	{.name = "exclude", .kind = OPTION_LIST, OPT(exclude), .argument = "GLOBS",
	 .wrong = "list of operator names",
	 .help = "start: leave these operators out"},
	{.name = "ring", .kind = OPTION_SIZE, OPT(session.ring_bytes), .least = LEAST_RING_BYTES,
	 .most = MOST_RING_BYTES, .argument = "SIZE",
	 .wrong = "size for the ring buffers (4K … 1T)",
	 .help = "start: of all ring buffers together, e.g. 64M; default: by the machine"},
	{.name = "trust-files", .kind = OPTION_FLAG, OPT(session.trust_files),
	 .help = "start: rely on the process's file systems to answer, also on FUSE and on overlays "
		 "that users have mounted"},
	{.name = "no-multi", .kind = OPTION_FLAG, OPT(session.no_multi),
	 .help = "start: place single uprobes even where uprobe_multi works"},
	{.name = "quiet", .letter = 'q', .kind = OPTION_FLAG, OPT(message.quiet),
	 .help = "only warnings"},
	{.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, OPT(message.verbose),
	 .help = "say what is being done"},
	{0},
};
/* clang-format on */

static char *command_line(int argc, char **argv)
{
	char *text = NULL, *longer;

	for (int i = 0; i < argc; i++) {
		if (asprintf(&longer, "%s%s%s", text ? text : "", text ? " " : "", argv[i]) < 0)
			longer = NULL;
		free(text);
		text = longer;
	}
	return text;
}

static int start(struct memory_opts *opts, int argc, char **argv)
{
	char *command = command_line(argc, argv);
	int code;

	opts->session.max_overhead = DEFAULT_OVERHEAD;
	if (opts->max_overhead)
		value_percent(opts->max_overhead, &opts->session.max_overhead);
	opts->session.ops = (const char *const *)opts->ops.items;
	opts->session.nr_ops = opts->ops.nr;
	opts->session.exclude = (const char *const *)opts->exclude.items;
	opts->session.nr_exclude = opts->exclude.nr;
	code = memory_start(opts, command);
	free(command);
	return code;
}

static int act(const struct command *self, struct memory_opts *opts, const char *action,
	       const char *file, int argc, char **argv)
{
	bool is_export = !strcmp(action, "export");

	if (strcmp(action, "start") && strcmp(action, "stop") && strcmp(action, "status") &&
	    !is_export)
		return message_usage(self->name,
				     "there is no '%s': it is start, stop, status or export",
				     action);
	if (file && (!is_export || opts->pid))
		return message_usage(self->name, "'%s' is too many", file);
	if (opts->export.path && !is_export)
		return message_usage(self->name, "-o is for export");
	if (!strcmp(action, "status"))
		return memory_status(opts);
	if (!opts->pid && !file)
		return message_usage(self->name, "no process is given (-p PID)");
	if (is_export)
		return memory_export(opts, file);
	return !strcmp(action, "start") ? start(opts, argc, argv) : memory_stop(opts);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct memory_opts opts = {
		.session = {.sz = sizeof(opts.session), .stack_rate = DEFAULT_STACK_RATE},
		.limit = DEFAULT_LIMIT,
	};
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code < 0) {
		message_listen(&opts.message);
		if (first >= argc)
			code = message_usage(self->name, "start, stop, status or export?");
		else if (first + 2 < argc)
			code = message_usage(self->name, "'%s' is too many", argv[first + 2]);
		else
			code = act(self, &opts, argv[first],
				   first + 1 < argc ? argv[first + 1] : NULL, argc, argv);
	}
	options_free(self, &opts);
	return code;
}

const struct command cmd_memory = {
	.name = "memory",
	.arguments = "start|stop|status|export [OPTION…] -p PID",
	.summary = "what is allocated and not freed, for hours: by operator and stack",
	.options = options,
	.epilogue =
		"start goes to the background once it records; export writes what is allocated, as "
		"often as\nyou like, also after stop; `kprof memory export FILE.kprof` reads what "
		"was exported so.\n",
	.run = run,
};
