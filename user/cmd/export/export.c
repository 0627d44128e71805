// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/export/export.h"

#include "cmd/print/message.h"

int export_check_output(const struct command *c, void *opts, const char *text)
{
	if (!*text)
		return message_usage(c->name, "the output's name is empty");
	return kprof_export_check_path(text) ? message_error() : -1;
}

struct export_opts {
	struct kprof_export_opts library;
	bool interpreter;
	struct range_opts range;
};

#define OPT(FIELD) OPTION_FIELD(struct export_opts, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "output", .letter = 'o', .kind = OPTION_TEXT, OPT(library.path),
	 .check = export_check_output, .argument = "FILE", .words = "<file>",
	 .help = ".json, .json.gz: Chrome trace; .pftrace, .pftrace.gz: Perfetto; .kprof: "
		 "capture; -: Chrome trace to standard output; of samples: .svg: flame graph; "
		 ".folded: collapsed stacks (in microseconds); .speedscope.json: speedscope; "
		 ".pb.gz: pprof; .otlp.pb: OpenTelemetry; %p in the name: one file per process"},
	{.name = "pid", .letter = 'p', .kind = OPTION_PID, OPT(library.pid), .argument = "PID",
	 .help = "only this process"},
	{.name = "level", .kind = OPTION_NUMBER, OPT(library.gzip_level), .least = 1, .most = 9,
	 .argument = "N", .wrong = "level of gzip: 1 (fast) to 9 (small)",
	 .help = "of gzip, 1 (fast) to 9 (small)"},
	{.name = "off-cpu", .kind = OPTION_FLAG, OPT(library.off_cpu),
	 .help = "files of samples: of waits instead, with the time that was waited"},
	{.name = "interpreter", .kind = OPTION_FLAG, OPT(interpreter),
	 .help = "in stacks: CPython's own C frames around Python's, too"},
	RANGE_OPTIONS(struct export_opts, range),
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct export_opts opts = {0};
	struct write_what what;
	struct caller caller;
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code < 0)
		code = options_capture(self, argc, argv, first);
	if (code >= 0)
		return code;
	if (!opts.library.path)
		return message_usage(self->name, "no output is given (-o FILE)");
	caller = caller_get();
	if (kprof_give_up_root(argv[first], opts.library.path, caller.uid, caller.gid, true))
		return message_error();
	what = (struct write_what){
		.interpreter = opts.interpreter, .self = self, .range = &opts.range};
	return write_capture(argv[first], &opts.library, &what);
}

const struct command cmd_export = {
	.name = "export",
	.arguments = "FILE.kprof -o OUTPUT [OPTION…]",
	.summary = "make a trace of a capture; needs no root",
	.options = options,
	.run = run,
};
