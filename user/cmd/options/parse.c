// SPDX-License-Identifier: BSD-2-Clause
/* Parses the command line with getopt_long(), by a table of rows. */
#include <ctype.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options/config.h"
#include "cmd/options/option.h"
#include "cmd/options/take.h"
#include "cmd/print/message.h"

#define HELP 'h'
/* getopt_long() returns this for the table's first row: above all characters. */
#define FIRST_ROW 256

/* The table, converted for getopt_long(). */
struct parser {
	const struct command *command;
	char *shorts;
	struct option *longs;
};

static bool parser_init(struct parser *p, const struct command *c)
{
	static const struct option help = {"help", no_argument, NULL, HELP};
	size_t nr = 0, used = 0;
	char *at;

	while (c->options[nr].name)
		nr++;
	p->command = c;
	p->longs = calloc(nr + 2, sizeof(*p->longs)); /* + 2: --help, and the end of the list */
	p->shorts = at = malloc(nr * 2 + sizeof("+:h"));
	if (!p->longs || !p->shorts)
		return false;
	/* ":" makes getopt_long() distinguish a missing value from an unknown option. */
	at = stpcpy(at, c->options_first ? "+:" : ":");
	for (const struct option_row *row = c->options; (row = option_next(c, row)); row++) {
		p->longs[used++] =
			(struct option){.name = row->name,
					.has_arg = row->argument ? required_argument : no_argument,
					.val = FIRST_ROW + (int)(row - c->options)};
		if (!row->letter)
			continue;
		*at++ = row->letter;
		if (row->argument)
			*at++ = ':';
	}
	strcpy(at, "h");
	p->longs[used] = help;
	return true;
}

static void parser_free(struct parser *p)
{
	free(p->shorts);
	free(p->longs);
}

static const struct option_row *row_of(const struct parser *p, int got)
{
	const struct option_row *row = p->command->options;

	if (got >= FIRST_ROW)
		return row + (got - FIRST_ROW);
	for (; (row = option_next(p->command, row)); row++)
		if (row->letter == got)
			break;
	return row;
}

/* getopt_long() with messages: it prints what is wrong with an option, and then returns '?'. */
static int next(const struct parser *p, int argc, char **argv)
{
	const char *name = p->command->name;
	int got;

	opterr = 0;
	got = getopt_long(argc, argv, p->shorts, p->longs, NULL);
	if (got == ':') {
		message_usage(name, "%s needs a value", argv[optind - 1]);
		return '?';
	}
	if (got != '?')
		return got;
	if (optopt && !strncmp(argv[optind - 1], "--", 2) && strchr(argv[optind - 1], '='))
		message_usage(name, "%.*s takes no value", (int)strcspn(argv[optind - 1], "="),
			      argv[optind - 1]);
	else if (optopt && isprint(optopt))
		message_usage(name, "there is no option -%c", optopt);
	else
		message_usage(name, "there is no option %s", argv[optind - 1]);
	return '?';
}

static int parse_all(const struct parser *p, int argc, char **argv, void *opts)
{
	int got, code;

	optind = 0; /* makes getopt_long() start over */
	while ((got = next(p, argc, argv)) != -1) {
		if (got == HELP)
			return options_help(p->command);
		if (got == '?')
			return EXIT_USAGE;
		code = option_take(p->command, row_of(p, got), opts, optarg);
		if (code >= 0)
			return code;
	}
	return -1;
}

/*
 * getopt_long() for a look ahead. It ends at what next() refuses, as that does: getopt_long() moves
 * operands behind the options, and so a word behind an error would be the value of another option
 * at the second time.
 */
static int look_ahead(const struct parser *p, int argc, char **argv)
{
	int got = getopt_long(argc, argv, p->shorts, p->longs, NULL);

	return got == ':' || got == '?' ? -1 : got;
}

/*
 * The configuration file that the command line names; NULL: none. Errors in other options are
 * reported later.
 */
static const char *config_given(const struct parser *p, const struct option_row *config, int argc,
				char **argv)
{
	const char *path = NULL;
	int got;

	optind = opterr = 0;
	while ((got = look_ahead(p, argc, argv)) != -1)
		if (got == FIRST_ROW + (int)(config - p->command->options))
			path = optarg;
	return path;
}

bool options_used(const struct command *c, int argc, char **argv,
		  bool (*may)(void *ctx, const char *name), void *ctx, const char **refused)
{
	struct parser p = {0};
	bool fine = true;
	int got;

	*refused = "";
	if (!parser_init(&p, c)) {
		parser_free(&p);
		return false;
	}
	optind = opterr = 0;
	while (fine && (got = look_ahead(&p, argc, argv)) != -1) {
		const struct option_row *row = got == HELP ? NULL : row_of(&p, got);

		fine = !row || may(ctx, row->name);
		if (!fine)
			*refused = row->name;
	}
	parser_free(&p);
	return fine;
}

/* Reads the configuration file before the command line, whose values thus override the file's. */
static int parse_config(const struct parser *p, int argc, char **argv, void *opts)
{
	const struct option_row *row = p->command->options;
	const char *given;

	while ((row = option_next(p->command, row)) && row->kind != OPTION_CONFIG)
		row++;
	if (!row)
		return -1;
	given = config_given(p, row, argc, argv);
	return config_read(p->command, given ? given : CONFIG_PATH, given, row->value, opts,
			   (void *)((char *)opts + row->at));
}

int options_parse(const struct command *c, int argc, char **argv, void *opts, int *first)
{
	struct parser p = {0};
	int code;

	if (parser_init(&p, c))
		code = parse_config(&p, argc, argv, opts);
	else
		code = message_no_memory();
	if (code < 0)
		code = parse_all(&p, argc, argv, opts);
	*first = optind;
	parser_free(&p);
	return code;
}

void options_free(const struct command *c, void *opts)
{
	const struct option_row *row = c->options;

	for (; (row = option_next(c, row)); row++) {
		void *field = (char *)opts + row->at;

		if (row->kind == OPTION_LIST || row->kind == OPTION_TEXTS ||
		    row->kind == OPTION_CONFIG)
			value_list_free(field);
		else if (row->kind == OPTION_PIDS)
			free(((struct value_pids *)field)->items);
	}
}

int options_capture(const struct command *c, int argc, char **argv, int first)
{
	if (first >= argc)
		return message_usage(c->name, "no capture is given");
	if (first + 1 < argc)
		return message_usage(c->name, "one capture at a time: '%s' is too many",
				     argv[first + 1]);
	return -1;
}
