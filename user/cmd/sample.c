// SPDX-License-Identifier: BSD-2-Clause
#include <ctype.h>

#include "cmd/record.h"

static int run(const struct command *self, int argc, char **argv)
{
	struct record_opts opts = {0};
	int code, first;

	code = record_opts_parse(self, argc, argv, RECORD_SAMPLE, &opts, &first);
	if (code < 0 && first < argc && opts.nr_pids)
		code = message_usage(self, "'%s': either -p PID or a command, not both",
				     argv[first]);
	else if (code < 0 && first < argc && isdigit((unsigned char)argv[first][0]))
		code = message_usage(self, "'%s' is no command: did you mean -p %s?", argv[first],
				     argv[first]);
	else if (code < 0 && first >= argc && !opts.nr_pids)
		code = message_usage(self, "neither a process (-p PID) nor a command is given");
	if (code < 0) {
		opts.argv = first < argc ? argv + first : NULL;
		code = record(&opts, argc, argv);
	}
	record_opts_free(&opts);
	return code;
}

const struct command cmd_sample = {
	.name = "sample",
	.arguments = "-p PID[,PID…] [OPTION…], or [OPTION…] -- COMMAND [ARGUMENT…]",
	.summary = "sample stacks: where processes spend their CPU time",
	.help = "  -p, --pid PID[,PID…]  the processes; may be given again\n"
		"  -F, --frequency HZ    how often to look at what each CPU does (99)\n"
		"  -d, --duration TIME   stop after 5s, 500ms, 2m …; without: at Ctrl-C or the end of the targets\n"
		"  -o, --output FILE     .svg: flame graph; .folded; .speedscope.json; .pb.gz: pprof; .pftrace;\n"
		"                        .json.gz: Chrome trace; .kprof: capture; %p in the name: one file per\n"
		"                        process. Default: HOST_PID.NANOSECONDS.svg\n"
		"      --gil             only of threads that hold the interpreter's lock (GIL) at that moment\n"
		"      --no-children     only the given processes, none of their descendants\n"
		"      --children HOW    follow (default), exact\n"
		"      --ring SIZE       of all ring buffers together, e.g. 64M; default: by the machine\n"
		"      --config FILE     defaults, an option a line, instead of those in /etc/kprof.conf\n"
		"      --strict          exit with 4 when any sample was lost\n"
		"  -q, --quiet           no progress and no summary, only warnings\n"
		"  -v, --verbose         say what is being done\n"
		"  -h, --help            this text\n"
		"\nNothing is placed in the processes, which need no frame pointers, debug symbols or restart.\n"
		"Ctrl-C stops and writes; twice: the capture is kept, no output is written.\n",
	.run = run,
};
