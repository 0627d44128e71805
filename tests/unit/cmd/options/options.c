// SPDX-License-Identifier: BSD-2-Clause
/* The options of every command: values, rows, and what a command line makes of them. */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/commands.h"
#include "cmd/ctl/ctl.h"
#include "cmd/export/export.h"
#include "cmd/record/record.h"
#include "cmd/report/report.h"
#include "unit.h"

static uint64_t duration(const char *text)
{
	uint64_t ns = 0;

	return value_duration(text, &ns) ? ns : 0;
}

static void durations(void)
{
	CHECK_EQ(duration("5"), 5000000000);
	CHECK_EQ(duration("5s"), 5000000000);
	CHECK_EQ(duration("500ms"), 500000000);
	CHECK_EQ(duration("250us"), 250000);
	CHECK_EQ(duration("2m"), 120000000000);
	CHECK_EQ(duration("2min"), 120000000000);
	CHECK_EQ(duration("1h"), 3600000000000);
	CHECK_EQ(duration("7d"), 604800000000000); /* as the help of kprof daemon says */
	CHECK_EQ(duration("1.5"), 1500000000);
	CHECK_EQ(duration(".25s"), 250000000);
	CHECK_EQ(duration("5."), 5000000000);
	CHECK_EQ(duration("0.1ms"), 100000);
	CHECK(duration("87600h"));
}

static void no_durations(void)
{
	static const char *const junk[] = {"",
					   ".",
					   "s",
					   "-1",
					   "+1",
					   " 1",
					   "1 s",
					   "1S",
					   "5x",
					   "1e3",
					   "0x10",
					   "inf",
					   "nan",
					   "0",
					   "0s",
					   "1.2.3",
					   "1ss",
					   "999999999h",
					   "99999999999999999999999999"};

	for (size_t i = 0; i < sizeof(junk) / sizeof(junk[0]); i++) {
		if (duration(junk[i]))
			printf("# '%s' was taken\n", junk[i]);
		CHECK(!duration(junk[i]));
	}
}

static uint64_t size(const char *text)
{
	uint64_t bytes = 0;

	return value_size(text, &bytes) ? bytes : 0;
}

static void sizes(void)
{
	CHECK_EQ(size("4096"), 4096);
	CHECK_EQ(size("512K"), 512 << 10);
	CHECK_EQ(size("64M"), 64 << 20);
	CHECK_EQ(size("64m"), 64 << 20);
	CHECK_EQ(size("64MB"), 64 << 20);
	CHECK_EQ(size("64MiB"), 64 << 20);
	CHECK_EQ(size("1G"), 1 << 30);
	CHECK_EQ(size("16B"), 16);
	CHECK(size("16777215T"));
	CHECK(!size("16777216T")); /* 2^64 */
	CHECK(!size("1iB") && !size("1MiBB") && !size("1.5M") && !size("M") && !size("") &&
	      !size("-1") && !size("1 M") && !size("99999999999999999999") &&
	      !size("000000000000000000000000001"));
}

static void numbers(void)
{
	uint64_t n = 7;
	pid_t pid = 0;

	CHECK(value_uint("0", 0, 9, &n) && n == 0);
	CHECK(value_uint("18446744073709551615", 0, UINT64_MAX, &n) && n == UINT64_MAX);
	CHECK(!value_uint("18446744073709551616", 0, UINT64_MAX, &n));
	CHECK(!value_uint("10", 0, 9, &n) && !value_uint("1", 2, 9, &n));
	CHECK(!value_uint("-1", 0, 9, &n) && !value_uint("+1", 0, 9, &n));
	CHECK(value_pid("4242", &pid) && pid == 4242);
	CHECK(!value_pid("0", &pid) && !value_pid("2147483648", &pid) && !value_pid("1x", &pid));
}

/* Parses as the command does; -1 or the exit code. */
static int parse(const struct command *c, struct record_opts *opts, int *first, char **argv)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	memset(opts, 0, sizeof(*opts));
	return record_opts_parse(c, argc, argv, opts, first);
}

#define PARSE(...) parse(&cmd_attach, &opts, &first, (char *[]){"attach", __VA_ARGS__, NULL})

static void options_of_a_recording(void)
{
	struct record_opts opts;
	int first = 0;

	CHECK_EQ(PARSE("-p", "3,1", "--pid=1", "-p", "2", "-qv", "--ops", "a,b*", "--ops=c",
		       "--exclude", "d", "--children", "exact", "--ring", "1M", "--strict", "rest"),
		 -1);
	CHECK_EQ(first, 17);
	CHECK_EQ(opts.pids.nr, 3); /* once each, in order */
	CHECK(opts.pids.items[0] == 3 && opts.pids.items[1] == 1 && opts.pids.items[2] == 2);
	CHECK(opts.message.quiet && opts.message.verbose && opts.strict && !opts.session.no_multi);
	CHECK_EQ(opts.ops.nr, 3);
	CHECK_STR(opts.ops.items[1], "b*");
	CHECK_STR(opts.ops.items[2], "c");
	CHECK_STR(opts.exclude.items[0], "d");
	CHECK_EQ(opts.session.children, KPROF_CHILDREN_EXACT);
	CHECK_EQ(opts.session.ring_bytes, 1 << 20);
	options_free(&cmd_attach, &opts);

	CHECK_EQ(PARSE("--no-children", "--no-multi", "--max-probes", "12", "--", "-q"), -1);
	CHECK_EQ(first, 6);
	CHECK(opts.session.children == KPROF_CHILDREN_NONE && opts.session.no_multi &&
	      opts.session.max_single_probes == 12);
	CHECK(!opts.message.quiet);
	options_free(&cmd_attach, &opts);

	CHECK_EQ(PARSE("--meta", "a=[1, 2]", "--meta=b=\"=\"", "--trace-id", "x"), -1);
	CHECK_EQ(opts.meta.nr, 2); /* whole, commas and all */
	CHECK_STR(opts.meta.items[0], "a=[1, 2]");
	CHECK_STR(opts.meta.items[1], "b=\"=\"");
	CHECK_STR(opts.session.trace_id, "x");
	options_free(&cmd_attach, &opts);
	CHECK_EQ(PARSE("--meta", "a=b"), EXIT_USAGE);
	options_free(&cmd_attach, &opts);

	CHECK_EQ(PARSE("-h"), EXIT_DONE);
	options_free(&cmd_attach, &opts);
	CHECK_EQ(PARSE("--ops", "a,,b"), EXIT_USAGE);
	options_free(&cmd_attach, &opts);
	CHECK_EQ(PARSE("-p", "1,2,x"), EXIT_USAGE);
	options_free(&cmd_attach, &opts);
}

static void configuration(void)
{
	char path[] = "/tmp/kprof-config.XXXXXX";
	int fd = mkstemp(path), first = 0;
	static const char text[] = "ring=64M\n\t# nothing\nno-agent\nops = a*, b\nno-children";
	struct record_opts opts;

	CHECK(fd >= 0 && write(fd, text, sizeof(text) - 1) == sizeof(text) - 1);
	close(fd);
	CHECK_EQ(PARSE("--config", path, "-p", "7", "--ring", "1M", "--ops", "c", "rest"), -1);
	CHECK_EQ(first, 9);
	CHECK_EQ(opts.session.ring_bytes, 1 << 20);
	CHECK(opts.session.agent == KPROF_AGENT_NONE &&
	      opts.session.children == KPROF_CHILDREN_NONE);
	CHECK_EQ(opts.ops.nr, 3);
	CHECK_STR(opts.ops.items[2], "c");
	options_free(&cmd_attach, &opts);
	CHECK_EQ(PARSE("--config", path, "--agent"), -1);
	CHECK_EQ(opts.session.agent, KPROF_AGENT_AUTO);
	options_free(&cmd_attach, &opts);
	unlink(path);
	CHECK_EQ(PARSE("--config", path), EXIT_USAGE);
	options_free(&cmd_attach, &opts);
}

/* ---- the tables ---- */

static const struct command *const commands[] = {
	&cmd_attach, &cmd_run,    &cmd_sample, &cmd_dump,
	&cmd_report, &cmd_export, &cmd_list,   &cmd_check,
};

#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

/* Whether a field of so many bytes can hold what the kind stores. */
static bool fits(const struct option_row *row)
{
	switch (row->kind) {
	case OPTION_FLAG:
		return row->bytes == sizeof(bool);
	case OPTION_SET:
	case OPTION_CHOICE:
	case OPTION_PID:
		return row->bytes == sizeof(int);
	case OPTION_NUMBER:
		return row->bytes == sizeof(uint32_t) || row->bytes == sizeof(uint64_t);
	case OPTION_SIZE:
	case OPTION_DURATION:
		return row->bytes == sizeof(uint64_t);
	case OPTION_PIDS:
		return row->bytes == sizeof(struct value_pids);
	case OPTION_LIST:
	case OPTION_TEXTS:
	case OPTION_CONFIG:
		return row->bytes == sizeof(struct value_list);
	case OPTION_TEXT:
		return row->bytes == sizeof(const char *);
	}
	return false;
}

static void check_row(const struct command *c, const struct option_row *row)
{
	bool takes_value = row->kind != OPTION_FLAG && row->kind != OPTION_SET;
	const struct option_row *other = row + 1;

	CHECK(fits(row));
	CHECK_EQ(row->argument != NULL, takes_value);
	CHECK_EQ(row->choices != NULL, row->kind == OPTION_CHOICE);
	CHECK(row->kind != OPTION_NUMBER || row->least < row->most);
	CHECK(row->kind != OPTION_SIZE || row->least < row->most);
	CHECK(row->help && row->help[0] && !strpbrk(row->help, "\t\n"));
	CHECK(row->letter != 'h' && strcmp(row->name, "help"));
	for (; (other = option_next(c, other)); other++) {
		CHECK(strcmp(other->name, row->name));
		CHECK(!row->letter || other->letter != row->letter);
	}
}

static void rows_are_well_formed(void)
{
	for (size_t i = 0; i < NR_COMMANDS; i++) {
		const struct option_row *row = commands[i]->options;

		for (; (row = option_next(commands[i], row)); row++)
			check_row(commands[i], row);
	}
}

/* A row of each kind, whose field lies between others that must stay as they are. */
struct all_kinds {
	bool before, flag, after;
	int set, choice;
	uint32_t number, untouched;
	uint64_t big, size, duration;
	pid_t pid;
	struct value_pids pids;
	struct value_list list, texts;
	const char *text;
};

static int refuse_none(const struct command *c, void *opts, const char *text)
{
	CHECK_STR(((struct all_kinds *)opts)->text, text); /* it has been stored */
	return strcmp(text, "none") ? -1 : 42;
}

#define OPT(FIELD) OPTION_FIELD(struct all_kinds, FIELD)

static const struct option_choice colours[] = {{"red", 7}, {"green", -3}, {"blue", 9}, {NULL}};
/* clang-format off */
static const struct option_row rows[] = {
	{.name = "flag", .letter = 'f', .kind = OPTION_FLAG, OPT(flag), .help = "flag"},
	{.name = "set", .kind = OPTION_SET, OPT(set), .value = 5, .help = "set"},
	{.name = "choice", .kind = OPTION_CHOICE, OPT(choice), .choices = colours,
	 .argument = "COLOUR", .help = "choice"},
	{.name = "number", .letter = 'n', .kind = OPTION_NUMBER, OPT(number), .least = 2,
	 .most = UINT32_MAX, .argument = "N", .help = "number"},
	{.name = "big", .kind = OPTION_NUMBER, OPT(big), .most = UINT64_MAX, .argument = "N",
	 .help = "big"},
	{.name = "size", .kind = OPTION_SIZE, OPT(size), .least = 1024, .most = 1 << 20,
	 .argument = "SIZE", .help = "size"},
	{.name = "duration", .kind = OPTION_DURATION, OPT(duration), .argument = "TIME",
	 .help = "duration"},
	{.name = "pid", .kind = OPTION_PID, OPT(pid), .argument = "PID", .help = "pid"},
	{.name = "pids", .kind = OPTION_PIDS, OPT(pids), .argument = "PIDS", .help = "pids"},
	{.name = "list", .kind = OPTION_LIST, OPT(list), .argument = "LIST", .help = "list"},
	{.name = "texts", .kind = OPTION_TEXTS, OPT(texts), .argument = "TEXT", .help = "texts"},
	{.name = "text", .kind = OPTION_TEXT, OPT(text), .argument = "TEXT",
	 .check = refuse_none, .help = "text"},
	{.name = "another", .kind = OPTION_FLAG, OPT(after), .on = 2, .help = "another command's"},
	{0},
};
/* clang-format on */

static const struct command command = {.name = "test", .options = rows, .bit = 1};

static int parse_kinds(struct all_kinds *opts, int *first, char **argv)
{
	int argc = 0, code;

	while (argv[argc])
		argc++;
	memset(opts, 0, sizeof(*opts));
	code = options_parse(&command, argc, argv, opts, first);
	options_free(&command, opts);
	return code;
}

#define KINDS(...) parse_kinds(&opts, &first, (char *[]){"test", __VA_ARGS__, NULL})

static void each_kind_fills_its_field(void)
{
	struct all_kinds opts;
	int first = 0;

	CHECK_EQ(KINDS("operand", "-f", "--set", "--choice", "green", "-n", "4294967295", "--big",
		       "18446744073709551615", "--size", "4K", "--duration", "2ms", "--pid", "77",
		       "--text", "words", "another"),
		 -1);
	CHECK_EQ(first, 17); /* operands may stand between options */
	CHECK(opts.flag && !opts.before && !opts.after);
	CHECK(opts.set == 5 && opts.choice == -3);
	CHECK(opts.number == UINT32_MAX && !opts.untouched && opts.big == UINT64_MAX);
	CHECK(opts.size == 4096 && opts.duration == 2000000 && opts.pid == 77);
	CHECK_STR(opts.text, "words");
}

static void wrong_values_are_refused(void)
{
	struct all_kinds opts;
	int first = 0;

	CHECK_EQ(KINDS("--choice", "pink"), EXIT_USAGE);
	CHECK_EQ(KINDS("--number", "1"), EXIT_USAGE);
	CHECK_EQ(KINDS("--number", "4294967296"), EXIT_USAGE);
	CHECK_EQ(KINDS("--size", "1023"), EXIT_USAGE);
	CHECK_EQ(KINDS("--size", "2M"), EXIT_USAGE);
	CHECK_EQ(KINDS("--duration", "never"), EXIT_USAGE);
	CHECK_EQ(KINDS("--pid", "0"), EXIT_USAGE);
	CHECK_EQ(KINDS("--pids", "1,"), EXIT_USAGE);
	CHECK_EQ(KINDS("--list", ""), EXIT_USAGE);
	CHECK_EQ(KINDS("--flag=yes"), EXIT_USAGE);
	CHECK_EQ(KINDS("--text"), EXIT_USAGE);
	CHECK_EQ(KINDS("--text", "none"), 42); /* the check's own code */
	CHECK_EQ(KINDS("--another"), EXIT_USAGE);
	CHECK_EQ(KINDS("--flag", "-x"), EXIT_USAGE);
}

static bool is_flag(void *ctx, const char *name)
{
	return !strcmp(name, "flag");
}

/* Whether a request may use them that may only use --flag. */
static bool only_flags(char **argv)
{
	const char *refused = NULL;
	int argc = 0;

	while (argv[argc])
		argc++;
	return options_used(&command, argc, argv, is_flag, NULL, &refused);
}

static void what_was_looked_at_is_what_is_parsed(void)
{
	struct record_opts record;
	struct all_kinds opts;
	char *without_value[] = {"test", "operand", "--text", NULL};
	char *letter[] = {"test", "operand", "-n", NULL};
	char *unknown[] = {"test", "a", "--none", "b", "--text", "c", NULL};
	char *given[] = {"test", "operand", "-f", "--text", "operand", NULL};
	int first = 0;

	CHECK(!only_flags(given));
	CHECK(only_flags((char *[]){"test", "a", "-f", "b", NULL}));
	/* an operand, which is moved behind the options, does not become a value */
	CHECK(!only_flags(without_value) ||
	      parse_kinds(&opts, &first, without_value) == EXIT_USAGE);
	CHECK(!only_flags(letter) || parse_kinds(&opts, &first, letter) == EXIT_USAGE);
	CHECK(!only_flags(unknown) || parse_kinds(&opts, &first, unknown) == EXIT_USAGE);
	CHECK_EQ(parse(&cmd_ctl, &record, &first, (char *[]){"ctl", "1M", "--ring", NULL}),
		 EXIT_USAGE); /* where a configuration file is looked for first */
	options_free(&cmd_ctl, &record);
}

UNIT_MAIN(TEST(durations), TEST(no_durations), TEST(sizes), TEST(numbers),
	  TEST(options_of_a_recording), TEST(configuration), TEST(rows_are_well_formed),
	  TEST(each_kind_fills_its_field), TEST(wrong_values_are_refused),
	  TEST(what_was_looked_at_is_what_is_parsed))
