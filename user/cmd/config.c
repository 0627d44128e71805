// SPDX-License-Identifier: BSD-2-Clause
/* The configuration file: defaults for the options of attach, run and sample. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"

/* Those that make no sense as a default. */
static bool may_stand(const char *name)
{
	return strcmp(name, "pid") && strcmp(name, "config") && strcmp(name, "help");
}

static const struct option *find(const struct option *longs, const char *name)
{
	for (; longs->name; longs++)
		if (!strcmp(longs->name, name) && may_stand(name))
			return longs;
	return NULL;
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
static const char *add_line(char *line, const struct option *longs, struct option_list *list)
{
	const struct option *option;
	char *value, *name, *text;
	bool added;

	line[strcspn(line, "#\n")] = '\0';
	value = strchr(line, '=');
	if (value)
		*value++ = '\0';
	name = trim(line);
	if (!*name && !value)
		return NULL;
	option = find(longs, name);
	if (!option)
		return "there is no such option";
	if (value && option->has_arg == no_argument)
		return "it takes no value";
	if (option->has_arg == required_argument && !value)
		return "it needs a value: NAME = VALUE";
	if (asprintf(&text, "--%s%s%s", name, value ? "=" : "", value ? trim(value) : "") < 0)
		return "out of memory";
	added = option_list_add(list, text, strlen(text));
	free(text);
	return added ? NULL : "out of memory";
}

int config_read(const char *path, bool required, const struct option *longs,
		struct option_list *list)
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
		problem = add_line(line, longs, list);
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
