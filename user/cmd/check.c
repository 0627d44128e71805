// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/message.h"
#include "cmd/options.h"
#include "cmd/text.h"

static const struct option longs[] = {
	{"pid", required_argument, NULL, 'p'},
	{"verbose", no_argument, NULL, 'v'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int print_line(void *ctx, const struct kprof_check_line *line)
{
	static const char *const words[] = {
		[KPROF_CHECK_OK] = "ok",
		[KPROF_CHECK_MISSING] = "missing",
		[KPROF_CHECK_FATAL] = "MISSING", /* attach cannot work without */
		[KPROF_CHECK_NOTE] = "",
	};

	printf("%-7s  ", words[line->state]);
	text_print(stdout, line->name);
	for (size_t columns = text_columns(line->name); columns < 16; columns++)
		putchar(' ');
	fputs("  ", stdout);
	text_print(stdout, line->detail);
	putchar('\n');
	if (line->hint) {
		printf("%-7s  hint: ", "");
		text_print(stdout, line->hint);
		putchar('\n');
	}
	return 0;
}

static int check(pid_t pid, bool verbose)
{
	int machine = EXIT_DONE;

	if (kprof_check_machine(print_line, NULL)) {
		fflush(stdout);
		machine = message_error();
	}
	if (!pid)
		return machine;
	putchar('\n');
	if (kprof_check_process(pid, verbose, print_line, NULL)) {
		fflush(stdout);
		return message_error();
	}
	return machine;
}

static int run(const struct command *self, int argc, char **argv)
{
	const struct message_opts message = {0};
	bool verbose = false;
	pid_t pid = 0;
	int option;

	while ((option = option_next(self, argc, argv, ":p:vh", longs)) != -1) {
		switch (option) {
		case 'h':
			return command_help(self);
		case 'v':
			verbose = true;
			break;
		case 'p':
			if (!option_pid(optarg, &pid))
				return message_usage(self, "'%s' is no process number", optarg);
			break;
		default:
			return EXIT_USAGE;
		}
	}
	if (optind < argc)
		return message_usage(self, "'%s' is too many: check takes options only",
				     argv[optind]);
	message_listen(&message);
	return check(pid, verbose);
}

const struct command cmd_check = {
	.name = "check",
	.arguments = "[-p PID] [-v]",
	.summary = "what this machine, and a process, allow; exit status 3 if attach cannot work",
	.help = "  -p, --pid PID         what would be recorded of this process; nothing in it is touched\n"
		"  -v, --verbose         with -p: each kind of event, its probes, what is not seen\n"
		"  -h, --help            this text\n",
	.run = run,
};
