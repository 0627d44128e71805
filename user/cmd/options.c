// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SECONDS 315360000.0 /* ten years */
#define LEAST_RING_BYTES 4096    /* one page: absurd, but the accounting must hold */
#define MOST_RING_BYTES (1ull << 40)

/* ---- values --------------------------------------------------------------------------------- */

bool option_duration(const char *text, uint64_t *ns)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = {{"", 1},   {"s", 1},    {"ms", 1e-3}, {"us", 1e-6},
		     {"m", 60}, {"min", 60}, {"h", 3600}};
	size_t digits = strspn(text, "0123456789.");
	double value;
	char *end;

	/* strtod() alone would take "inf", "0x1p3" and leading blanks. */
	value = strtod(text, &end);
	if (!digits || end != text + digits)
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcmp(end, units[i].name))
			continue;
		value *= units[i].seconds;
		if (!(value >= 1e-9 && value <= MOST_SECONDS))
			return false;
		*ns = (uint64_t)(value * 1e9 + 0.5);
		return true;
	}
	return false;
}

bool option_uint(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
	unsigned long long n;
	char *end;

	if (!isdigit((unsigned char)*text)) /* strtoull() takes "-1" and blanks */
		return false;
	errno = 0;
	n = strtoull(text, &end, 10);
	if (*end || errno || n < least || n > most)
		return false;
	*value = n;
	return true;
}

bool option_size(const char *text, uint64_t *bytes)
{
	static const char letters[] = "KMGT";
	size_t digits = strspn(text, "0123456789");
	char number[24];
	const char *unit = text + digits, *letter;
	uint64_t value;
	int shift = 0;

	if (digits >= sizeof(number))
		return false;
	memcpy(number, text, digits);
	number[digits] = '\0';
	if (!option_uint(number, 1, UINT64_MAX, &value))
		return false;
	letter = *unit ? strchr(letters, toupper((unsigned char)*unit)) : NULL;
	if (letter) {
		shift = 10 * (int)(letter - letters + 1);
		unit++;
	}
	if (strcmp(unit, "") && strcmp(unit, "B") && (!letter || strcmp(unit, "iB")))
		return false;
	if (value > UINT64_MAX >> shift)
		return false;
	*bytes = value << shift;
	return true;
}

bool option_pid(const char *text, pid_t *pid)
{
	uint64_t value;

	if (!option_uint(text, 1, INT_MAX, &value))
		return false;
	*pid = (pid_t)value;
	return true;
}

int option_next(const struct command *c, int argc, char **argv, const char *shorts,
		const struct option *longs)
{
	int got;

	opterr = 0;
	got = getopt_long(argc, argv, shorts, longs, NULL);
	if (got == ':') {
		message_usage(c, "%s needs a value", argv[optind - 1]);
		return '?';
	}
	if (got != '?')
		return got;
	if (optopt && !strncmp(argv[optind - 1], "--", 2) && strchr(argv[optind - 1], '='))
		message_usage(c, "%.*s takes no value", (int)strcspn(argv[optind - 1], "="),
			      argv[optind - 1]);
	else if (optopt && isprint(optopt))
		message_usage(c, "there is no option -%c", optopt);
	else
		message_usage(c, "there is no option %s", argv[optind - 1]);
	return '?';
}

int option_capture(const struct command *c, int argc, char **argv)
{
	if (optind >= argc)
		return message_usage(c, "no capture is given");
	if (optind + 1 < argc)
		return message_usage(c, "one capture at a time: '%s' is too many",
				     argv[optind + 1]);
	return -1;
}

/* ---- lists ---------------------------------------------------------------------------------- */

bool option_list_add(struct option_list *list, const char *text, size_t len)
{
	char **more = reallocarray(list->items, list->nr + 1, sizeof(*more));

	if (!more)
		return false;
	list->items = more;
	more[list->nr] = strndup(text, len);
	return more[list->nr] && ++list->nr;
}

/* Splits at commas; an empty item is an error. */
static bool list_split(struct option_list *list, const char *text)
{
	for (;;) {
		size_t len = strcspn(text, ",");

		if (!len || !option_list_add(list, text, len))
			return false;
		if (!text[len])
			return true;
		text += len + 1;
	}
}

static void list_free(struct option_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		free(list->items[i]);
	free(list->items);
}

/* A comma-separated list of process numbers; one given twice counts once. */
static bool add_pids(struct record_opts *opts, const char *text)
{
	struct option_list list = {0};
	bool fine = list_split(&list, text);
	pid_t *more;

	for (size_t i = 0; i < list.nr && fine; i++) {
		bool known = false;
		pid_t pid;

		fine = option_pid(list.items[i], &pid);
		for (size_t k = 0; k < opts->nr_pids && fine; k++)
			known |= opts->pids[k] == pid;
		if (!fine || known)
			continue;
		more = reallocarray(opts->pids, opts->nr_pids + 1, sizeof(*more));
		fine = more;
		if (!more)
			continue;
		opts->pids = more;
		more[opts->nr_pids++] = pid;
	}
	list_free(&list);
	return fine;
}

/* ---- recording ------------------------------------------------------------------------------ */

enum {
	OPT_OPS = 256,
	OPT_EXCLUDE,
	OPT_NO_CHILDREN,
	OPT_CHILDREN,
	OPT_RING,
	OPT_NO_MULTI,
	OPT_MAX_PROBES,
	OPT_STRICT,
	OPT_ACTIVITIES,
	OPT_TYPES,
	OPT_CUDA_SYNC,
	OPT_AGENT,
	OPT_NO_AGENT,
	OPT_CONFIG,
	OPT_STACKS,
	OPT_WITH_STACK,
	OPT_STACK_RATE,
	OPT_GIL,
};

/* What every recording takes. pid comes first: `run` leaves it out. */
#define COMMON_LONGS                                                                       \
	{"pid", required_argument, NULL, 'p'}, {"duration", required_argument, NULL, 'd'}, \
		{"output", required_argument, NULL, 'o'},                                  \
		{"frequency", required_argument, NULL, 'F'},                               \
		{"no-children", no_argument, NULL, OPT_NO_CHILDREN},                       \
		{"children", required_argument, NULL, OPT_CHILDREN},                       \
		{"ring", required_argument, NULL, OPT_RING},                               \
		{"strict", no_argument, NULL, OPT_STRICT},                                 \
		{"config", required_argument, NULL, OPT_CONFIG},                           \
		{"quiet", no_argument, NULL, 'q'}, {"verbose", no_argument, NULL, 'v'},    \
	{                                                                                  \
		"help", no_argument, NULL, 'h'                                             \
	}

static const struct option record_longs[] = {
	COMMON_LONGS,
	{"ops", required_argument, NULL, OPT_OPS},
	{"exclude", required_argument, NULL, OPT_EXCLUDE},
	{"no-multi", no_argument, NULL, OPT_NO_MULTI},
	{"max-probes", required_argument, NULL, OPT_MAX_PROBES},
	{"stacks", no_argument, NULL, OPT_STACKS},
	{"with-stack", no_argument, NULL, OPT_WITH_STACK},
	{"stack-rate", required_argument, NULL, OPT_STACK_RATE},
	{"activities", required_argument, NULL, OPT_ACTIVITIES},
	{"types", required_argument, NULL, OPT_TYPES},
	{"cuda-sync", no_argument, NULL, OPT_CUDA_SYNC},
	{"agent", no_argument, NULL, OPT_AGENT},
	{"no-agent", no_argument, NULL, OPT_NO_AGENT},
	{0},
};

static const struct option sample_longs[] = {
	COMMON_LONGS,
	{"gil", no_argument, NULL, OPT_GIL},
	{0},
};

#define DEFAULT_HZ 99 /* a prime: no program does anything 99 times a second */
#define MOST_HZ 10000
#define DEFAULT_STACK_RATE 1000

static int parse_children(const struct command *c, struct record_opts *opts, const char *text)
{
	if (!strcmp(text, "follow"))
		opts->children = KPROF_CHILDREN_FOLLOW;
	else if (!strcmp(text, "exact"))
		opts->children = KPROF_CHILDREN_EXACT;
	else
		return message_usage(c, "--children is follow or exact, not '%s'", text);
	return -1;
}

static int list_types(void)
{
	const char *name;

	for (size_t i = 0; (name = kprof_activity_name(i)); i++)
		puts(name);
	return EXIT_DONE;
}

/* Both are tried here, for the message; they are put together when the session begins. */
static int parse_activities(struct record_opts *opts, int option, const char *text)
{
	struct kprof_session_opts trial;

	if (option == OPT_TYPES && !strcmp(text, "list"))
		return list_types();
	if (option == OPT_TYPES)
		opts->types = text;
	else
		opts->activities = text;
	return kprof_session_opts_activities(&trial, option == OPT_TYPES ? NULL : text,
					     option == OPT_TYPES ? text : NULL)
		       ? message_error()
		       : -1;
}

/* Options with a value. -1: fine; else the exit code. */
static int parse_value(const struct command *c, struct record_opts *opts, int option,
		       const char *text)
{
	uint64_t value;

	switch (option) {
	case 'p':
		return add_pids(opts, text) ? -1
					    : message_usage(c, "'%s' is no process number", text);
	case 'd':
		return option_duration(text, &opts->duration_ns)
			       ? -1
			       : message_usage(c, "'%s' is no duration (5s, 500ms, 2m)", text);
	case 'o':
		opts->output = text;
		if (!*text)
			return message_usage(c, "the output's name is empty");
		return kprof_export_check_path(text) ? message_error() : -1;
	case 'F':
		if (!option_uint(text, 1, MOST_HZ, &value))
			return message_usage(c, "'%s' is no frequency (1 … %d samples a second)",
					     text, MOST_HZ);
		opts->sample_hz = (uint32_t)value;
		return -1;
	case OPT_STACK_RATE:
		if (!option_uint(text, 0, 1000000, &value))
			return message_usage(c, "'%s' is no number of stacks (0: all)", text);
		opts->stack_rate = (uint32_t)value;
		return -1;
	case OPT_OPS:
		return list_split(&opts->ops, text)
			       ? -1
			       : message_usage(c, "'%s' is no list of operator names", text);
	case OPT_EXCLUDE:
		return list_split(&opts->exclude, text)
			       ? -1
			       : message_usage(c, "'%s' is no list of operator names", text);
	case OPT_CHILDREN:
		return parse_children(c, opts, text);
	case OPT_RING:
		return option_size(text, &opts->ring_bytes) &&
				       opts->ring_bytes >= LEAST_RING_BYTES &&
				       opts->ring_bytes <= MOST_RING_BYTES
			       ? -1
			       : message_usage(c, "'%s' is no size for the ring buffers (4K … 1T)",
					       text);
	case OPT_MAX_PROBES:
		if (!option_uint(text, 1, UINT32_MAX, &value))
			return message_usage(c, "'%s' is no number of probes", text);
		opts->max_probes = (uint32_t)value;
		return -1;
	case OPT_ACTIVITIES:
	case OPT_TYPES:
		return parse_activities(opts, option, text);
	case OPT_CONFIG: /* has been read */
		return -1;
	}
	return EXIT_USAGE; /* not reached: every option that takes a value is above */
}

/* An option without a value. False: it is none of those. */
static bool parse_flag(struct record_opts *opts, int option)
{
	switch (option) {
	case 'q':
		opts->message.quiet = true;
		return true;
	case 'v':
		opts->message.verbose = true;
		return true;
	case OPT_NO_CHILDREN:
		opts->children = KPROF_CHILDREN_NONE;
		return true;
	case OPT_NO_MULTI:
		opts->no_multi = true;
		return true;
	case OPT_GIL:
		opts->gil_only = true;
		return true;
	case OPT_STRICT:
		opts->strict = true;
		return true;
	case OPT_CUDA_SYNC:
		opts->cuda_sync = true;
		return true;
	case OPT_STACKS:
		if (!opts->sample_hz)
			opts->sample_hz = DEFAULT_HZ;
		return true;
	case OPT_WITH_STACK:
		opts->with_stack = true;
		return true;
	case OPT_AGENT:
		opts->agent = KPROF_AGENT_AUTO;
		return true;
	case OPT_NO_AGENT:
		opts->agent = KPROF_AGENT_NONE;
		return true;
	}
	return false;
}

static int parse_all(const struct command *c, int argc, char **argv, const char *shorts,
		     const struct option *longs, struct record_opts *opts)
{
	int option, code;

	while ((option = option_next(c, argc, argv, shorts, longs)) != -1) {
		if (option == 'h')
			return command_help(c);
		if (option == '?')
			return EXIT_USAGE;
		if (parse_flag(opts, option))
			continue;
		code = optarg ? parse_value(c, opts, option, optarg) : EXIT_USAGE;
		if (code >= 0)
			return code;
	}
	return -1;
}

/* The file that --config names; NULL: none. What is wrong with the other options is said later. */
static const char *config_given(int argc, char **argv, const char *shorts,
				const struct option *longs)
{
	const char *path = NULL;
	int option;

	opterr = 0;
	while ((option = getopt_long(argc, argv, shorts, longs, NULL)) != -1)
		if (option == OPT_CONFIG)
			path = optarg;
	optind = 0; /* begin anew */
	return path;
}

/* Letters and long options of each command. "+": what follows the command of `run` is the command's. ":": a missing
 * value is told. */
static const struct {
	const char *shorts;
	const struct option *longs;
} commands[] = {
	[RECORD_ATTACH] = {"+:p:d:o:F:qvh", record_longs},
	[RECORD_RUN] = {"+:d:o:F:qvh", record_longs + 1},
	[RECORD_SAMPLE] = {"+:p:d:o:F:qvh", sample_longs},
};

static bool takes(const struct option *longs, const char *item)
{
	size_t len = strcspn(item + 2, "=");

	for (; longs->name; longs++)
		if (!strncmp(longs->name, item + 2, len) && !longs->name[len])
			return true;
	return false;
}

/* The configuration is for all commands: what this one does not take is not for it. */
static void drop_others(struct option_list *config, const struct option *longs)
{
	size_t kept = 0;

	for (size_t i = 0; i < config->nr; i++) {
		if (takes(longs, config->items[i]))
			config->items[kept++] = config->items[i];
		else
			free(config->items[i]);
	}
	config->nr = kept;
}

int record_opts_parse(const struct command *c, int argc, char **argv, enum record_command which,
		      struct record_opts *opts, int *first)
{
	const char *shorts = commands[which].shorts;
	const struct option *longs = commands[which].longs;
	const char *config = config_given(argc, argv, shorts, longs);
	int code, nr;
	char **all;

	opts->stack_rate = DEFAULT_STACK_RATE;
	if (which == RECORD_SAMPLE) {
		opts->samples_only = true;
		opts->sample_hz = DEFAULT_HZ;
	}
	code = config_read(config ? config : CONFIG_PATH, config,
			   record_longs + (which == RECORD_RUN), &opts->config);
	if (code >= 0)
		return code;
	drop_others(&opts->config, longs);
	/* In front of those given, which count more for standing behind. */
	nr = (int)opts->config.nr;
	all = calloc((size_t)(argc + nr) + 1, sizeof(*all));
	if (!all) {
		message_warn(NULL, "out of memory");
		return EXIT_FAILED;
	}
	all[0] = argv[0];
	for (int i = 0; i < nr; i++)
		all[1 + i] = opts->config.items[i];
	for (int i = 1; i < argc; i++)
		all[nr + i] = argv[i];
	code = parse_all(c, argc + nr, all, shorts, longs, opts);
	/* Said now, not after the recording. */
	if (code < 0 && opts->output && !opts->sample_hz && kprof_export_of_samples(opts->output))
		code = message_usage(c, "'%s' is a file of samples, and none are taken (--stacks)",
				     opts->output);
	if (code > EXIT_DONE && optind <= nr + 1)
		message_note("this stands in %s", config ? config : CONFIG_PATH);
	*first = optind - nr;
	free(all);
	return code;
}

void record_opts_free(struct record_opts *opts)
{
	free(opts->pids);
	list_free(&opts->ops);
	list_free(&opts->exclude);
	list_free(&opts->config);
}
