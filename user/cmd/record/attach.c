// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>
#include <string.h>

#include "cmd/record/record.h"

/* Reports an operand, since attach takes only options; explains the most likely mistake. */
static int too_many(const struct command *self, char **argv, int first)
{
	if (!strcmp(argv[first - 1], "--")) {
		message_warn("kprof run -- COMMAND", "'%s': attach takes no command", argv[first]);
		return EXIT_USAGE;
	}
	if (isdigit((unsigned char)argv[first][0]))
		return message_usage(self->name, "'%s' is no option: did you mean -p %s?",
				     argv[first], argv[first]);
	return message_usage(self->name, "'%s' is no option", argv[first]);
}

static int run(const struct command *self, int argc, char **argv)
{
	struct record_opts opts = {0};
	int code, first;

	code = record_opts_parse(self, argc, argv, &opts, &first);
	if (code < 0 && first < argc)
		code = too_many(self, argv, first);
	else if (code < 0 && !opts.pids.nr)
		code = message_usage(self->name, "no process is given (-p PID)");
	if (code < 0)
		code = record(&opts, argc, argv);
	options_free(self, &opts);
	return code;
}

const struct command cmd_attach = {
	.name = "attach",
	.arguments = "-p PID[,PID…] [OPTION…]",
	.summary = "record running processes",
	.options = record_options,
	.bit = RECORD_ATTACH,
	.options_first = true,
	.epilogue = "Ctrl-C stops and writes; twice: the capture is kept, no trace is written.\n",
	.run = run,
};
