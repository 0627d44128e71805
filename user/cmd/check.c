// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "cmd/commands.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"

static int print_line(void *ctx, const struct kprof_check_line *line)
{
	static const char *const words[] = {
		[KPROF_CHECK_OK] = "ok",
		[KPROF_CHECK_MISSING] = "missing",
		[KPROF_CHECK_FATAL] = "MISSING", /* attach can not work without it */
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

struct check_opts {
	pid_t pid; /* 0: check only the machine */
	bool verbose;
};

#define OPT(FIELD) OPTION_FIELD(struct check_opts, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "pid", .letter = 'p', .kind = OPTION_PID, OPT(pid), .argument = "PID",
	 .help = "what would be recorded of this process; nothing in it is touched"},
	{.name = "verbose", .letter = 'v', .kind = OPTION_FLAG, OPT(verbose),
	 .help = "with -p: each kind of event, its probes, what is not seen"},
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	const struct message_opts message = {0};
	struct check_opts opts = {0};
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code >= 0)
		return code;
	if (first < argc)
		return message_usage(self->name, "'%s' is too many: check takes options only",
				     argv[first]);
	message_listen(&message);
	return check(opts.pid, opts.verbose);
}

const struct command cmd_check = {
	.name = "check",
	.arguments = "[-p PID] [-v]",
	.summary = "what this machine, and a process, allow; exit status 3 if attach cannot work",
	.options = options,
	.run = run,
};
