// SPDX-License-Identifier: BSD-2-Clause
#include <pwd.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define LEAST_COMMAND_COLUMNS 20
#define OTHER_COLUMNS 70 /* usual width of the other columns */

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

/* How many columns the command may take on this terminal; 0: no limit. */
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
	int err = t ? kprof_list_processes(all, add_process, t) : -1;

	if (err == -1)
		message_no_memory();
	else if (err)
		message_error();
	else
		table__print(t, stdout, false);
	table__free(t);
	return err ? EXIT_FAILED : EXIT_DONE;
}

struct list_opts {
	bool all;
};

/* clang-format off */
static const struct option_row options[] = {
	{.name = "all", .letter = 'a', .kind = OPTION_FLAG, OPTION_FIELD(struct list_opts, all),
	 .help = "processes without a known framework or runtime, too"},
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	const struct message_opts message = {0};
	struct list_opts opts = {0};
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code >= 0)
		return code;
	if (first < argc)
		return message_usage(self->name, "'%s' is too many: list takes options only",
				     argv[first]);
	message_listen(&message);
	return list(opts.all);
}

const struct command cmd_list = {
	.name = "list",
	.arguments = "[-a]",
	.summary = "the processes that kprof can profile, and what runs in them",
	.options = options,
	.run = run,
};
