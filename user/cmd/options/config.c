// SPDX-License-Identifier: BSD-2-Clause
/* The configuration file: defaults for the options of commands. */
#include "cmd/options/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print/message.h"

/* The row of that name that the command has; else any; NULL: there is none that may stand here. */
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

/* NULL: fine; else what is wrong with the line. */
static const char *add_line(const struct command *c, char *line, struct value_list *list)
{
	const struct option_row *row;
	char *value, *name, *text;
	bool added;

	line[strcspn(line, "#\n")] = '\0';
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	name = trim(line);
	if (!*name && !value)
		return NULL;
	row = find(c, name);
	if (!row)
		return "there is no such option";
	if (value && !row->argument)
		return "it takes no value";
	if (row->argument && !value)
		return "it needs a value: NAME = VALUE";
	if (option_next(c, row) != row)
		return NULL; /* the file is for all commands: this one does not take it */
	if (asprintf(&text, "--%s%s%s", name, value ? "=" : "", value ? trim(value) : "") < 0)
		return "out of memory";
	added = value_list_add(list, text, strlen(text));
	free(text);
	return added ? NULL : "out of memory";
}

int config_read(const struct command *c, const char *path, bool required, struct value_list *list)
{
	FILE *file = fopen(path, "re");
	const char *problem = NULL;
	size_t room = 0, number = 0;
	char *line = NULL;
	int failed;

	if (!file && errno == ENOENT && !required)
		return -1;
	if (!file) {
		message_warn("--config FILE names another one", "cannot read %s: %s", path,
			     strerror(errno));
		return EXIT_USAGE;
	}
	errno = 0;
	while (!problem && getline(&line, &room, file) >= 0) {
		number++;
		problem = add_line(c, line, list);
	}
	failed = problem ? 0 : errno;
	free(line);
	fclose(file);
	if (problem)
		message_warn("an option a line, as in --help without the dashes: ring = 64M",
			     "%s, line %zu: %s", path, number, problem);
	else if (failed) /* a directory, say */
		message_warn("--config FILE names another one", "cannot read %s: %s", path,
			     strerror(failed));
	return problem || failed ? EXIT_USAGE : -1;
}
