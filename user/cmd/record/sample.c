// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>

#include "cmd/record/record.h"

static int run(const struct command *self, int argc, char **argv)
{
	struct record_opts opts = {0};
	int code, first;

	code = record_opts_parse(self, argc, argv, &opts, &first);
	if (code < 0 && first < argc && opts.pids.nr)
		code = message_usage(self->name, "'%s': either -p PID or a command, not both",
				     argv[first]);
	else if (code < 0 && first < argc && isdigit((unsigned char)argv[first][0]))
		code = message_usage(self->name, "'%s' is no command: did you mean -p %s?",
				     argv[first], argv[first]);
	else if (code < 0 && first >= argc && !opts.pids.nr)
		code = message_usage(self->name,
				     "neither a process (-p PID) nor a command is given");
	if (code < 0) {
		opts.argv = first < argc ? argv + first : NULL;
		code = record(&opts, argc, argv);
	}
	options_free(self, &opts);
	return code;
}

const struct command cmd_sample = {
	.name = "sample",
	.arguments = "-p PID[,PID…] [OPTION…], or [OPTION…] -- COMMAND [ARGUMENT…]",
	.summary = "sample stacks: where processes spend their CPU time",
	.options = record_options,
	.bit = RECORD_SAMPLE,
	.options_first = true,
	.epilogue =
		"Nothing is placed in the processes, which need no frame pointers, debug symbols "
		"or restart.\n"
		"Ctrl-C stops and writes; twice: the capture is kept, no output is written.\n",
	.run = run,
};
