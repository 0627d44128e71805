// SPDX-License-Identifier: BSD-2-Clause
/* kprof why: where a step's time went, and what to look at first. */
#include "cmd/why/why.h"

#include "cmd/export/export.h"
#include "cmd/options/range.h"
#include "cmd/print/message.h"

struct why_opts {
	struct kprof_why_opts library;
	struct range_opts range;
	const char *least;
	bool json;
};

static int explain(const struct command *self, const struct why_opts *opts, const char *path)
{
	struct caller caller = caller_get();
	struct kprof_capture *c = NULL;
	struct kprof_why *w = NULL;
	int code;

	if (kprof_give_up_root(path, NULL, caller.uid, caller.gid, true) ||
	    kprof_capture_open(path, &c)) {
		code = message_error();
		goto out;
	}
	code = range_select(self, &opts->range, c);
	if (code >= 0)
		goto out;
	if (kprof_why_new(c, &opts->library, &w)) {
		code = message_error();
		goto out;
	}
	message_cut(path, kprof_capture_info(c));
	code = EXIT_DONE;
	if (opts->json)
		why_print_json(w);
	else
		code = why_print_page(w);
out:
	kprof_why_free(w);
	kprof_capture_close(c);
	return code;
}

#define OPT(FIELD) OPTION_FIELD(struct why_opts, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "thread", .kind = OPTION_NUMBER, OPT(library.tid), .least = 1,
	 .most = INT32_MAX, .argument = "TID", .wrong = "thread number",
	 .help = "of this thread; without this of the one that has the steps, or else does most"},
	RANGE_OPTIONS(struct why_opts, range),
	{.name = "least", .kind = OPTION_TEXT, OPT(least), .argument = "PERCENT",
	 .help = "causes are found if so much of the time could be won without them. Default: 10%"},
	{.name = "json", .kind = OPTION_FLAG, OPT(json), .help = "as JSON, times in nanoseconds"},
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct why_opts opts = {.library = {.sz = sizeof(opts.library)}};
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code < 0)
		code = options_capture(self, argc, argv, first);
	if (code < 0 && opts.least &&
	    (!value_percent(opts.least, &opts.library.least) || opts.library.least <= 0))
		code = message_usage(self->name, "'%s' is no percentage above 0 (--least 5%%)",
				     opts.least);
	if (code < 0)
		code = explain(self, &opts, argv[first]);
	options_free(self, &opts);
	return code;
}

const struct command cmd_why = {
	.name = "why",
	.arguments = "FILE.kprof [OPTION…]",
	.summary = "one page: what a step's time goes to, and what to look at first",
	.options = options,
	.run = run,
};
