// SPDX-License-Identifier: BSD-2-Clause
/* Finds the subcommand, and makes its result the exit status. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/ctl/ctl.h"
#include "cmd/daemon/daemon.h"
#include "cmd/diff/diff.h"
#include "cmd/export/export.h"
#include "cmd/memory/memory.h"
#include "cmd/print/message.h"
#include "cmd/print/nearest.h"
#include "cmd/push/push.h"
#include "cmd/record/record.h"
#include "cmd/record/signals.h"
#include "cmd/report/report.h"
#include "cmd/top/top.h"
#include "cmd/why/why.h"
#include "kprof.h"

static const struct command *const commands[] = {
	&cmd_attach, &cmd_run,   &cmd_sample, &cmd_dump, &cmd_report, &cmd_why,
	&cmd_diff,   &cmd_merge, &cmd_export, &cmd_push, &cmd_memory, &cmd_top,
	&cmd_daemon, &cmd_ctl,   &cmd_status, &cmd_list, &cmd_check,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void overview(FILE *to)
{
	fputs("Usage: kprof COMMAND [OPTION…]\n\n"
	      "Profiles machine-learning processes from outside, while they run.\n\n",
	      to);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(to, "  %-8s %s\n", commands[i]->name, commands[i]->summary);
	fputs("  help     this text, or with a command what it takes\n\n"
	      "kprof --version tells the version. kprof(1) has the details.\n",
	      to);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int unknown(const char *name)
{
	const char *names[NR_COMMANDS + 1] = {"help"}, *near;
	char hint[64] = "kprof help lists the commands";

	for (size_t i = 0; i < NR_COMMANDS; i++)
		names[i + 1] = commands[i]->name;
	near = nearest(name, names, NR_COMMANDS + 1);
	if (near)
		snprintf(hint, sizeof(hint), "did you mean %s?", near);
	message_warn(hint, "there is no %s '%s'", name[0] == '-' ? "option" : "command", name);
	return EXIT_USAGE;
}

/*
 * Prints the option rows of all commands, for completion and scripts/manual. No help text mentions
 * it.
 */
static int print_rows(void)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		options_print_rows(commands[i]);
	return EXIT_DONE;
}

/* The number of the first time namespace; the same in all kernels (include/linux/proc_ns.h). */
#define TIMENS_INIT_INO 0xEFFFFFFA

/*
 * The kernel's programs know the machine's clocks only. In a time namespace, in which kprof's own
 * are shifted, the two would be compared: it leaves that, for the one of the kernel's own threads.
 * A program that it begins is to stay.
 */
static void leave_time_namespace(const struct command *c)
{
	bool records = c == &cmd_attach || c == &cmd_sample || c == &cmd_daemon || c == &cmd_top;
	struct stat own, first;
	int fd;

	if ((!records && c != &cmd_run) || stat("/proc/self/ns/time", &own) ||
	    own.st_ino == TIMENS_INIT_INO)
		return;
	fd = records ? open("/proc/2/ns/time", O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0 || fstat(fd, &first) || first.st_ino != TIMENS_INIT_INO ||
	    setns(fd, CLONE_NEWTIME))
		message_warn("begin it outside of that namespace",
			     "clocks are shifted here (time namespace): times will be wrong");
	if (fd >= 0)
		close(fd);
}

static int dispatch(int argc, char **argv)
{
	const struct command *c;
	const char *name = argc > 1 ? argv[1] : "";

	if (argc < 2) {
		overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		printf("kprof %s\n", kprof_version());
		return EXIT_DONE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h") ||
	    (!strcmp(name, "help") && argc == 2)) {
		overview(stdout);
		return EXIT_DONE;
	}
	if (!strcmp(name, "help")) {
		if (!strcmp(argv[2], "--options"))
			return print_rows();
		c = find(argv[2]);
		return c ? options_help(c) : unknown(argv[2]);
	}
	c = find(name);
	if (!c)
		return unknown(name);
	leave_time_namespace(c);
	return c->run(c, argc - 1, argv + 1);
}

/* Failing to write the result is an error, unless the reader has closed the pipe early (head). */
static int close_stdout(int code)
{
	if (!fflush(stdout) && !ferror(stdout))
		return code;
	if (errno != EPIPE) {
		message_warn(NULL, "cannot write to standard output: %s", strerror(errno));
		return code ? code : EXIT_FAILED;
	}
	return code;
}

int main(int argc, char **argv)
{
	signals_note_inherited();
	signal(SIGPIPE, SIG_IGN);
	return close_stdout(dispatch(argc, argv));
}
