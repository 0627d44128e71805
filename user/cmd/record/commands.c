// SPDX-License-Identifier: BSD-2-Clause
/* attach, run and sample: they differ in what has to follow their options. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/record/record.h"

/* Reports an operand, since attach takes only options; explains the most likely mistake. */
static int too_many(const struct command *self, char **operands)
{
	if (!strcmp(operands[-1], "--")) {
		message_warn("kprof run -- COMMAND", "'%s': attach takes no command", operands[0]);
		return EXIT_USAGE;
	}
	if (isdigit((unsigned char)operands[0][0]))
		return message_usage(self->name, "'%s' is no option: did you mean -p %s?",
				     operands[0], operands[0]);
	return message_usage(self->name, "'%s' is no option", operands[0]);
}

/* Checks what follows the options; NULL: nothing. Returns -1 if it is fine, else the exit code. */
static int check_operands(const struct command *self, const struct record_opts *opts,
			  char **operands)
{
	switch (self->bit) {
	case RECORD_ATTACH:
		if (operands)
			return too_many(self, operands);
		if (opts->session.all_processes && opts->pids.nr)
			return message_usage(self->name,
					     "either all processes (-a), or some (-p PID)");
		if (!opts->session.all_processes && !opts->pids.nr)
			return message_usage(self->name,
					     "neither a process (-p PID) nor all (-a) is given");
		return -1;
	case RECORD_RUN:
		if (!operands)
			return message_usage(self->name,
					     "no command is given (-- COMMAND [ARGUMENT…])");
		return -1;
	default:
		if (opts->session.all_processes && (operands || opts->pids.nr))
			return message_usage(
				self->name,
				"either all processes (-a), or some (-p PID), or a command");
		if (opts->session.all_processes)
			return -1;
		if (operands && opts->pids.nr)
			return message_usage(self->name,
					     "'%s': either -p PID or a command, not both",
					     operands[0]);
		if (operands && isdigit((unsigned char)operands[0][0]))
			return message_usage(self->name, "'%s' is no command: did you mean -p %s?",
					     operands[0], operands[0]);
		if (!operands && !opts->pids.nr)
			return message_usage(
				self->name,
				"neither a process (-p PID) nor a command nor all (-a) is given");
		return -1;
	}
}

static int run(const struct command *self, int argc, char **argv)
{
	struct record_opts opts = {0};
	int first, code = record_opts_parse(self, argc, argv, &opts, &first);

	opts.argv = first < argc ? argv + first : NULL;
	if (code < 0)
		code = check_operands(self, &opts, opts.argv);
	if (code < 0)
		code = record(&opts, argc, argv);
	options_free(self, &opts);
	chosen_free(&opts.chosen);
	return code;
}

const struct command cmd_attach = {
	.name = "attach",
	.arguments = "[OPTION…] -p PID[,PID…] | -a",
	.summary = "record running processes",
	.options = record_options,
	.bit = RECORD_ATTACH,
	.options_first = true,
	.epilogue = "Ctrl-C stops and writes; twice: the capture is kept, no trace is written.\n",
	.run = run,
};

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

const struct command cmd_sample = {
	.name = "sample",
	.arguments = "[OPTION…] -p PID[,PID…] | -a | -- COMMAND [ARGUMENT…]",
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
