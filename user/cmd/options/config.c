// SPDX-License-Identifier: BSD-2-Clause
/* The configuration file: defaults for the options of commands. */
#include "cmd/options/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options/take.h"
#include "cmd/print/message.h"

/*
 * The row of this name that the command has; otherwise another command's; NULL: no option of this
 * name may be set in the file.
 */
static const struct option_row *find(const struct command *c, const char *name)
{
	const struct option_row *found = NULL;

	for (const struct option_row *row = c->options; row->name; row++)
		if (!strcmp(row->name, name) && !row->only_given &&
		    (!found || option_next(c, row) == row))
			found = row;
	return found;
}

static char *trim(char *text)
{
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	end = text + strlen(text);
	while (end > text && isspace((unsigned char)end[-1]))
		end--;
	*end = '\0';
	return text;
}

/*
 * Takes in one line. *problem: what is wrong with it. Returns -1 to go on, even with a problem,
 * else the exit code.
 */
static int take_line(const struct command *c, char *line, void *opts, struct value_list *values,
		     const char **problem)
{
	const struct option_row *row;
	char *value, *name;

	line[strcspn(line, "#\n")] = '\0';
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	name = trim(line);
	if (!*name && !value)
		return -1;
	row = find(c, name);
	if (!row)
		*problem = "there is no such option";
	else if (value && !row->argument)
		*problem = "it takes no value";
	else if (row->argument && !value)
		*problem = "it needs a value: NAME = VALUE";
	if (*problem || option_next(c, row) != row)
		return -1;
	if (!value)
		return option_take(c, row, opts, NULL);
	value = trim(value);
	if (row->word && !strcmp(value, "list")) {
		*problem = "what prints a list and ends is for the command line";
		return -1;
	}
	if (value_list_add(values, value, strlen(value)))
		return option_take(c, row, opts, values->items[values->nr - 1]);
	*problem = "out of memory";
	return -1;
}

/* Whether the line begins the part of a command: "[daemon]". mine: whether it is this one's. */
static bool begins_part(const struct command *c, const char *line, bool *mine)
{
	const char *name = line + strspn(line, " \t");
	size_t len = name[0] == '[' ? strcspn(name + 1, "]\n") : 0;

	if (name[0] != '[' || name[len + 1] != ']')
		return false;
	*mine = len == strlen(c->name) && !memcmp(name + 1, c->name, len);
	return true;
}

static int cannot_read(const char *path, int err)
{
	message_warn("--config FILE names another one", "cannot read %s: %s", path, strerror(err));
	return EXIT_USAGE;
}

int config_take(const struct command *c, FILE *file, const char *path, bool own, void *opts,
		struct value_list *values)
{
	const char *problem = NULL;
	bool reads = !own, mine;
	size_t room = 0, number = 0;
	char *line = NULL;
	int err, code = -1;

	errno = 0;
	while (code < 0 && !problem && getline(&line, &room, file) >= 0) {
		number++;
		if (begins_part(c, line, &mine))
			reads = own && mine;
		else if (reads)
			code = take_line(c, line, opts, values, &problem);
	}
	err = ferror(file) ? errno : 0; /* the path may be a directory, for instance */
	free(line);
	if (code > EXIT_DONE)
		message_note("this stands in %s", path);
	if (code >= 0)
		return code;
	if (problem)
		message_warn("an option a line, as in --help without the dashes: ring = 64M",
			     "%s, line %zu: %s", path, number, problem);
	else if (err)
		return cannot_read(path, err);
	return problem ? EXIT_USAGE : -1;
}

int config_read(const struct command *c, const char *path, bool required, bool own, void *opts,
		struct value_list *values)
{
	FILE *file = fopen(path, "re");
	int code;

	if (!file)
		return errno == ENOENT && !required ? -1 : cannot_read(path, errno);
	code = config_take(c, file, path, own, opts, values);
	fclose(file);
	return code;
}
