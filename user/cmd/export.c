// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/message.h"
#include "cmd/options.h"
#include "cmd/output.h"
#include "cmd/text.h"

enum { OPT_LEVEL = 256, OPT_INTERPRETER };

static const struct option longs[] = {
	{"output", required_argument, NULL, 'o'},
	{"pid", required_argument, NULL, 'p'},
	{"level", required_argument, NULL, OPT_LEVEL},
	{"interpreter", no_argument, NULL, OPT_INTERPRETER},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int show_progress(void *ctx, uint64_t done, uint64_t total)
{
	char line[64];

	snprintf(line, sizeof(line), "writing %3.0f %%",
		 total ? 100.0 * (double)done / (double)total : 0);
	message_line(line);
	return 0;
}

static void wrote(void *ctx, const char *path)
{
	message_line("");
	puts(path);
}

static int export_file(const char *from, bool interpreter, struct kprof_export_opts *opts)
{
	struct kprof_capture *c;
	struct caller caller = caller_get();
	int code = EXIT_DONE;

	if (kprof_capture_open(from, &c))
		return message_error();
	kprof_capture_show_interpreter(c, interpreter);
	opts->uid = caller.uid;
	opts->gid = caller.gid;
	opts->set_owner = caller.by_sudo;
	opts->progress = show_progress;
	opts->wrote = wrote;
	if (kprof_capture_export(c, opts))
		code = message_error();
	message_line("");
	message_cut(from, kprof_capture_info(c));
	kprof_capture_close(c);
	return code;
}

/* -1: go on; else the exit code. */
static int parse_option(const struct command *self, struct kprof_export_opts *opts,
			bool *interpreter, int option)
{
	uint64_t level;

	switch (option) {
	case 'o':
		opts->path = optarg;
		if (!*optarg)
			return message_usage(self, "the output's name is empty");
		return kprof_export_check_path(optarg) ? message_error() : -1;
	case 'p':
		return option_pid(optarg, &opts->pid)
			       ? -1
			       : message_usage(self, "'%s' is no process number", optarg);
	case OPT_LEVEL:
		if (!option_uint(optarg, 1, 9, &level))
			return message_usage(self, "--level is 1 (fast) to 9 (small), not '%s'",
					     optarg);
		opts->gzip_level = (int)level;
		return -1;
	case OPT_INTERPRETER:
		*interpreter = true;
		return -1;
	case 'h':
		return command_help(self);
	}
	return EXIT_USAGE;
}

static int run(const struct command *self, int argc, char **argv)
{
	struct kprof_export_opts opts = {.sz = sizeof(opts)};
	bool interpreter = false;
	int option, code;

	while ((option = option_next(self, argc, argv, ":o:p:h", longs)) != -1) {
		code = parse_option(self, &opts, &interpreter, option);
		if (code >= 0)
			return code;
	}
	code = option_capture(self, argc, argv);
	if (code >= 0)
		return code;
	if (!opts.path)
		return message_usage(self, "no output is given (-o FILE)");
	return export_file(argv[optind], interpreter, &opts);
}

const struct command cmd_export = {
	.name = "export",
	.arguments = "FILE.kprof -o OUTPUT [OPTION…]",
	.summary = "make a trace of a capture; needs no root",
	.help = "  -o, --output FILE     .json, .json.gz: Chrome trace; .pftrace, .pftrace.gz: Perfetto;\n"
		"                        .kprof: capture; -: Chrome trace to standard output; %p in the\n"
		"                        name: one file per process\n"
		"                        of samples: .svg: flame graph; .folded: collapsed stacks (in\n"
		"                        microseconds); .speedscope.json: speedscope; .pb.gz: pprof\n"
		"  -p, --pid PID         only this process\n"
		"      --level N         of gzip, 1 (fast) to 9 (small)\n"
		"      --interpreter     in stacks: CPython's own C frames around Python's, too\n"
		"  -h, --help            this text\n",
	.run = run,
};
