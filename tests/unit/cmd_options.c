// SPDX-License-Identifier: BSD-2-Clause
/* Values of options. The command line's sources are no part of the library, so they are taken in. */
#include "cmd/config.c"
#include "cmd/message.c"
#include "cmd/options.c"
#include "cmd/text.c"

#include "unit.h"

int command_help(const struct command *c) /* main.c's */
{
	return EXIT_DONE;
}

static uint64_t duration(const char *text)
{
	uint64_t ns = 0;

	return option_duration(text, &ns) ? ns : 0;
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

	return option_size(text, &bytes) ? bytes : 0;
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

	CHECK(option_uint("0", 0, 9, &n) && n == 0);
	CHECK(option_uint("18446744073709551615", 0, UINT64_MAX, &n) && n == UINT64_MAX);
	CHECK(!option_uint("18446744073709551616", 0, UINT64_MAX, &n));
	CHECK(!option_uint("10", 0, 9, &n) && !option_uint("1", 2, 9, &n));
	CHECK(!option_uint("-1", 0, 9, &n) && !option_uint("+1", 0, 9, &n));
	CHECK(option_pid("4242", &pid) && pid == 4242);
	CHECK(!option_pid("0", &pid) && !option_pid("2147483648", &pid) && !option_pid("1x", &pid));
}

/* Parses as attach does; -1 or the exit code. */
static int parse(struct record_opts *opts, int *first, char **argv)
{
	static const struct command c = {.name = "attach"};
	int argc = 0;

	while (argv[argc])
		argc++;
	memset(opts, 0, sizeof(*opts));
	optind = 0; /* getopt_long() begins anew */
	return record_opts_parse(&c, argc, argv, RECORD_ATTACH, opts, first);
}

#define PARSE(...) parse(&opts, &first, (char *[]){"attach", __VA_ARGS__, NULL})

static void options_of_a_recording(void)
{
	struct record_opts opts;
	int first = 0;

	CHECK_EQ(PARSE("-p", "3,1", "--pid=1", "-p", "2", "-qv", "--ops", "a,b*", "--ops=c",
		       "--exclude", "d", "--children", "exact", "--ring", "1M", "--strict", "rest"),
		 -1);
	CHECK_EQ(first, 17);
	CHECK_EQ(opts.nr_pids, 3); /* once each, in order */
	CHECK(opts.pids[0] == 3 && opts.pids[1] == 1 && opts.pids[2] == 2);
	CHECK(opts.message.quiet && opts.message.verbose && opts.strict && !opts.no_multi);
	CHECK_EQ(opts.ops.nr, 3);
	CHECK_STR(opts.ops.items[1], "b*");
	CHECK_STR(opts.ops.items[2], "c");
	CHECK_STR(opts.exclude.items[0], "d");
	CHECK_EQ(opts.children, KPROF_CHILDREN_EXACT);
	CHECK_EQ(opts.ring_bytes, 1 << 20);
	record_opts_free(&opts);

	CHECK_EQ(PARSE("--no-children", "--no-multi", "--max-probes", "12", "--", "-q"), -1);
	CHECK_EQ(first, 6);
	CHECK(opts.children == KPROF_CHILDREN_NONE && opts.no_multi && opts.max_probes == 12);
	CHECK(!opts.message.quiet);
	record_opts_free(&opts);

	CHECK_EQ(PARSE("-h"), EXIT_DONE);
	record_opts_free(&opts);
	CHECK_EQ(PARSE("--ops", "a,,b"), EXIT_USAGE);
	record_opts_free(&opts);
	CHECK_EQ(PARSE("-p", "1,2,x"), EXIT_USAGE);
	record_opts_free(&opts);
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
	CHECK_EQ(opts.ring_bytes, 1 << 20);
	CHECK(opts.agent == KPROF_AGENT_NONE && opts.children == KPROF_CHILDREN_NONE);
	CHECK_EQ(opts.ops.nr, 3);
	CHECK_STR(opts.ops.items[2], "c");
	record_opts_free(&opts);
	CHECK_EQ(PARSE("--config", path, "--agent"), -1);
	CHECK_EQ(opts.agent, KPROF_AGENT_AUTO);
	record_opts_free(&opts);
	unlink(path);
	CHECK_EQ(PARSE("--config", path), EXIT_USAGE);
	record_opts_free(&opts);
}

UNIT_MAIN(TEST(durations), TEST(no_durations), TEST(sizes), TEST(numbers),
	  TEST(options_of_a_recording), TEST(configuration))
