/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line: one file per subcommand, each parses, calls the library, prints. It knows the
 * library by include/kprof.h only. Results go to stdout, everything else to stderr.
 */
#ifndef KPROF_CMD_CMD_H
#define KPROF_CMD_CMD_H

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_MACHINE = 3, /* permission or a kernel feature is missing */
	EXIT_LOST = 4,    /* done, but events were lost and --strict was given */
};

struct command {
	const char *name;
	const char *arguments; /* behind the name in the usage line */
	const char *summary;   /* one line for the overview */
	const char *help;      /* the options, for --help */
	/* argv[0] is the command's name. Returns the exit code. */
	int (*run)(const struct command *self, int argc, char **argv);
};

extern const struct command cmd_attach, cmd_run, cmd_sample, cmd_dump, cmd_report, cmd_export,
	cmd_list, cmd_check;

/* "Usage: kprof NAME ARGUMENTS", summary and options, to stdout. Returns EXIT_DONE. */
int command_help(const struct command *c);

#endif
