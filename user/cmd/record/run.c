// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/record/record.h"

static int run(const struct command *self, int argc, char **argv)
{
	struct record_opts opts = {0};
	int code, first;

	code = record_opts_parse(self, argc, argv, &opts, &first);
	if (code < 0 && first >= argc)
		code = message_usage(self->name, "no command is given (-- COMMAND [ARGUMENT…])");
	if (code < 0) {
		opts.argv = argv + first;
		code = record(&opts, argc, argv);
	}
	options_free(self, &opts);
	return code;
}

const struct command cmd_run = {
	.name = "run",
	.arguments = "[OPTION…] -- COMMAND [ARGUMENT…]",
	.summary = "start a program and record it from its start",
	.options = record_options,
	.bit = RECORD_RUN,
	.options_first = true,
	.epilogue =
		"Under sudo the command runs as the user who called sudo. The exit status is the "
		"command's\n"
		"(128 + N when signal N killed it) if the recording went well, else kprof's own.\n"
		"Ctrl-C goes to the command too, and kprof stops when it ends; twice: stops at "
		"once.\n",
	.run = run,
};
