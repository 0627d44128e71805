// SPDX-License-Identifier: BSD-2-Clause
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/message.h"
#include "cmd/options.h"
#include "cmd/text.h"

#define LEAST_COMMAND_COLUMNS 20
#define OTHER_COLUMNS 70 /* what the other columns usually take */

static const struct option longs[] = {
	{"all", no_argument, NULL, 'a'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int add_process(void *ctx, const struct kprof_process_info *info)
{
	const struct passwd *pw = getpwuid(info->uid);
	char pid[16], uid[16], threads[16];
	const char *cells[] = {pid,
			       pw ? pw->pw_name : uid,
			       threads,
			       info->python[0] ? info->python : "-",
			       info->frameworks[0] ? info->frameworks : "-",
			       info->runtimes[0] ? info->runtimes : "-",
			       info->cmdline};

	snprintf(pid, sizeof(pid), "%d", (int)info->pid);
	snprintf(uid, sizeof(uid), "%u", info->uid);
	snprintf(threads, sizeof(threads), "%u", info->nr_threads);
	return table__add(ctx, cells) ? 0 : -1;
}

/* So many columns the command may take on this terminal; 0: no limit. */
static size_t command_columns(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || !size.ws_col)
		return 0;
	return size.ws_col > OTHER_COLUMNS + LEAST_COMMAND_COLUMNS
		       ? (size_t)size.ws_col - OTHER_COLUMNS
		       : LEAST_COMMAND_COLUMNS;
}

static int list(bool all)
{
	const struct table_column columns[] = {
		{"PID", true, 0},
		{"USER", false, 16},
		{"THREADS", true, 0},
		{"PYTHON", false, 0},
		{"FRAMEWORK", false, 0},
		{"RUNTIME", false, 0},
		{"COMMAND", false, command_columns()},
	};
	struct table *t = table__new(columns, sizeof(columns) / sizeof(columns[0]));
	int err, code = EXIT_DONE;

	err = t ? kprof_list_processes(all, add_process, t) : -1;
	if (err == -1)
		message_warn(NULL, "out of memory");
	else if (err)
		message_error();
	code = err ? EXIT_FAILED : EXIT_DONE;
	if (!err)
		table__print(t, stdout, false);
	table__free(t);
	return code;
}

static int run(const struct command *self, int argc, char **argv)
{
	const struct message_opts message = {0};
	bool all = false;
	int option;

	while ((option = option_next(self, argc, argv, ":ah", longs)) != -1) {
		if (option == 'h')
			return command_help(self);
		if (option == '?')
			return EXIT_USAGE;
		all = true;
	}
	if (optind < argc)
		return message_usage(self, "'%s' is too many: list takes options only",
				     argv[optind]);
	message_listen(&message);
	return list(all);
}

const struct command cmd_list = {
	.name = "list",
	.arguments = "[-a]",
	.summary = "the processes that kprof can profile, and what runs in them",
	.help = "  -a, --all             processes without a known framework or runtime, too\n"
		"  -h, --help            this text\n",
	.run = run,
};
