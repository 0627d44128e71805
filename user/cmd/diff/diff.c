// SPDX-License-Identifier: BSD-2-Clause
/* kprof diff: what takes longer in some captures than in others, and is it more than chance? */
#include "cmd/diff/diff.h"

#include <string.h>

#include "cmd/export/export.h"
#include "cmd/options/value.h"
#include "cmd/print/message.h"

#define DEFAULT_ROWS 30 /* rows of a table; --json prints all */

enum side { BEFORE, AFTER, SIDES };

struct diff_opts {
	struct kprof_diff_opts library;
	struct kprof_diff_flame_opts flame;
	struct value_list given[SIDES]; /* what --before and --after name */
	struct value_list files[SIDES];
	const char *fail_above, *min_share, *run_spread;
	double limit; /* fail_above as a share */
	uint64_t top; /* number of rows; 0: all */
	bool json, native, python;
};

/* ---- options ---- */

static bool is_svg(const char *path)
{
	size_t len = strlen(path);

	return len > strlen(".svg") && !strcmp(path + len - strlen(".svg"), ".svg");
}

static int check_output(const struct command *c, void *opts, const char *text)
{
	int code = export_check_output(c, opts, text);

	if (code < 0 && !is_svg(text))
		code = message_usage(c->name, "'%s' is no .svg: a comparison is drawn as one",
				     text);
	return code;
}

/* Reads a percentage; 0 becomes -1, since 0 means the default to the library. */
static int take_share(const struct command *c, const char *option, const char *text, double *to)
{
	if (!text)
		return -1;
	if (!value_percent(text, to))
		return message_usage(c->name, "'%s' is no percentage (--%s 5%%)", text, option);
	if (*to <= 0)
		*to = -1;
	return -1;
}

static int take_shares(const struct command *c, struct diff_opts *o)
{
	int code = take_share(c, "fail-above", o->fail_above, &o->limit);

	if (o->limit < 0)
		o->limit = 0;
	if (code < 0)
		code = take_share(c, "min-share", o->min_share, &o->library.min_share);
	return code < 0 ? take_share(c, "run-spread", o->run_spread, &o->library.run_spread) : code;
}

/* Both operands, or none of them if the options name captures of both sides. */
static int take_captures(const struct command *c, struct diff_opts *o, int argc, char **argv)
{
	int code = -1;

	if (argc > SIDES)
		return message_usage(c->name,
				     "'%s' is too many: two captures or folders of them, others "
				     "with --before and --after",
				     argv[SIDES]);
	if (argc != SIDES && (argc || !o->given[BEFORE].nr || !o->given[AFTER].nr))
		return message_usage(c->name, "captures of two sides are needed");
	for (int side = BEFORE; side < SIDES; side++) {
		if (argc && code < 0)
			code = options_add_captures(&o->files[side], argv[side]);
		for (size_t i = 0; i < o->given[side].nr && code < 0; i++)
			code = options_add_captures(&o->files[side], o->given[side].items[i]);
	}
	return code;
}

static int check(const struct command *c, const struct diff_opts *o)
{
	enum kprof_diff_by by = o->library.by;

	if (o->native && o->python)
		return message_usage(c->name, "either --native or --python, not both");
	if ((o->native || o->python) && (by == KPROF_DIFF_BY_OP || by == KPROF_DIFF_BY_THREAD ||
					 by == KPROF_DIFF_BY_KERNEL || by == KPROF_DIFF_BY_WAIT))
		return message_usage(c->name, "only rows of functions, lines and modules can be of "
					      "native or Python frames alone");
	return -1;
}

/* ---- command ---- */

static void say_notes(const struct kprof_diff *d)
{
	const char *note;

	for (size_t i = 0; (note = kprof_diff_note(d, i)); i++)
		message_note("%s", note);
}

static int draw(struct diff_opts *o, const struct kprof_diff_set *sets, const struct kprof_diff *d,
		const struct caller *caller)
{
	struct kprof_diff_flame_opts *flame = &o->flame;
	flame->sz = sizeof(*flame);
	flame->per = kprof_diff_info(d)->per;
	if (flame->per == KPROF_DIFF_PER_CALL)
		flame->per = KPROF_DIFF_PER_SECOND;
	flame->step = o->library.step;
	flame->interpreter = o->library.interpreter;
	flame->uid = caller->uid;
	flame->gid = caller->gid;
	flame->set_owner = caller->by_sudo;
	if (kprof_diff_flame(&sets[BEFORE], &sets[AFTER], flame))
		return message_error();
	message_note("the flame graph is in %s", flame->path);
	return EXIT_DONE;
}

static int print(const struct diff_opts *o, const struct kprof_diff *d)
{
	if (!o->json)
		return diff_print_table(d, (size_t)o->top);
	diff_print_json(d, (size_t)o->top);
	return EXIT_DONE;
}

static int compare(struct diff_opts *o)
{
	const struct kprof_diff_set sets[SIDES] = {
		{(const char *const *)o->files[BEFORE].items, o->files[BEFORE].nr},
		{(const char *const *)o->files[AFTER].items, o->files[AFTER].nr}};
	struct caller caller = caller_get();
	struct kprof_diff *d = NULL;
	int code;

	if (kprof_give_up_root_of(&sets[BEFORE], &sets[AFTER], o->flame.path, caller.uid,
				  caller.gid, true) ||
	    kprof_diff_new(&sets[BEFORE], &sets[AFTER], &o->library, &d))
		return message_error();
	say_notes(d);
	code = print(o, d);
	if (code == EXIT_DONE && o->flame.path)
		code = draw(o, sets, d, &caller);
	if (code == EXIT_DONE && o->fail_above && kprof_diff_above(d, o->limit)) {
		message_note("more than %s above what it was before", o->fail_above);
		code = EXIT_ABOVE;
	}
	kprof_diff_free(d);
	return code;
}

#define OPT(FIELD) OPTION_FIELD(struct diff_opts, FIELD)

/* clang-format off */
static const struct option_row options[] = {
	{.name = "by", .kind = OPTION_CHOICE, OPT(library.by), .choices = diff_bys, .argument = "WHAT",
	 .help = "operator (op), function, line, module, thread (of samples), kernel (of devices) or wait; "
		 "without this operators, where all captures have some, else functions"},
	{.name = "per", .kind = OPTION_CHOICE, OPT(library.per), .choices = diff_pers, .argument = "UNIT",
	 .help = "time per step, second of the recording, run (of programs that did the same "
		 "work) or call, or share of all time counted; without this steps, where all "
		 "captures have some, else shares of samples, seconds of others"},
	{.name = "step", .kind = OPTION_TEXT, OPT(library.step), .argument = "NAME",
	 .help = "a step begins with each annotation of this name (a pattern); without this "
		 "ProfilerStep#N, else each step of PyTorch's optimizer"},
	{.name = "total", .kind = OPTION_FLAG, OPT(library.total),
	 .help = "compare times with what was called, not self times"},
	{.name = "native", .kind = OPTION_FLAG, OPT(native),
	 .help = "of samples: native functions only, as if no Python were there"},
	{.name = "python", .kind = OPTION_FLAG, OPT(python),
	 .help = "of samples: Python functions only, with what they called"},
	{.name = "interpreter", .kind = OPTION_FLAG, OPT(library.interpreter),
	 .help = "of samples: CPython's own C frames around Python's, too"},
	{.name = "before", .kind = OPTION_LIST, OPT(given[BEFORE]), .argument = "FILE[,FILE...]",
	 .words = "<file>",
	 .help = "further captures, or folders of them, from before the change; may be repeated"},
	{.name = "after", .kind = OPTION_LIST, OPT(given[AFTER]), .argument = "FILE[,FILE...]",
	 .words = "<file>",
	 .help = "further captures, or folders of them, from after it"},
	{.name = "min-share", .kind = OPTION_TEXT, OPT(min_share), .argument = "PERCENT",
	 .help = "rows below this share of the time are not tested. Default: 0.5%"},
	{.name = "run-spread", .kind = OPTION_TEXT, OPT(run_spread), .argument = "PERCENT",
	 .help = "how much one run differs from the next anyway (standard deviation), where each "
		 "side has one capture. Default: as much as most rows differ, at least 0.5%"},
	{.name = "fail-above", .kind = OPTION_TEXT, OPT(fail_above), .argument = "PERCENT",
	 .help = "exit with 5 if the whole, a step or a row takes longer beyond chance, by more "
		 "than this"},
	{.name = "top", .kind = OPTION_NUMBER, OPT(top), .most = UINT32_MAX, .argument = "N",
	 .wrong = "number of rows",
	 .help = "rows; 0: all. Default: 30, with --json all"},
	{.name = "json", .kind = OPTION_FLAG, OPT(json), .help = "as JSON, times in nanoseconds"},
	{.name = "output", .letter = 'o', .kind = OPTION_TEXT, OPT(flame.path),
	 .check = check_output, .argument = "FILE.svg", .words = "<file>",
	 .help = "draw the samples of both as a flame graph: red is more time, blue is less"},
	{.name = "relative", .kind = OPTION_FLAG, OPT(flame.relative),
	 .help = "of the flame graph: colours by the share of its own time that a frame changed"},
	{.name = "width-before", .kind = OPTION_FLAG, OPT(flame.width_before),
	 .help = "of the flame graph: widths are times before, which shows what is gone"},
	{0},
};
/* clang-format on */

static int run(const struct command *self, int argc, char **argv)
{
	struct diff_opts opts = {.library = {.sz = sizeof(opts.library)}, .top = UINT64_MAX};
	int first, code = options_parse(self, argc, argv, &opts, &first);

	if (code < 0)
		code = check(self, &opts);
	if (code < 0)
		code = take_shares(self, &opts);
	if (code < 0)
		code = take_captures(self, &opts, argc - first, argv + first);
	opts.library.frames = opts.native   ? KPROF_FRAMES_NATIVE
			      : opts.python ? KPROF_FRAMES_PYTHON
					    : KPROF_FRAMES_ALL;
	if (opts.library.frames != KPROF_FRAMES_ALL && opts.library.by == KPROF_DIFF_BY_AUTO)
		opts.library.by = KPROF_DIFF_BY_FUNCTION;
	if (opts.top == UINT64_MAX)
		opts.top = opts.json ? 0 : DEFAULT_ROWS;
	if (code < 0)
		code = compare(&opts);
	for (int side = BEFORE; side < SIDES; side++)
		value_list_free(&opts.files[side]);
	options_free(self, &opts);
	return code;
}

const struct command cmd_diff = {
	.name = "diff",
	.arguments = "BEFORE.kprof AFTER.kprof [OPTION…]",
	.summary = "what takes longer in one capture than in another, and is it more than chance",
	.options = options,
	.run = run,
};
