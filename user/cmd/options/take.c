// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/options/take.h"

#include <stdio.h>
#include <string.h>

#include "cmd/print/message.h"

static const char *const wrongs[] = {
	[OPTION_NUMBER] = "number",
	[OPTION_SIZE] = "size",
	[OPTION_PID] = "process number",
	[OPTION_PIDS] = "process number",
	[OPTION_DURATION] = "duration (5s, 500ms, 2m)",
	[OPTION_LIST] = "list",
	[OPTION_TEXTS] = "text",
};

static void *field(const struct option_row *row, void *opts)
{
	return (char *)opts + row->at;
}

/* Stores a value in a field that is an integer, an enum or a bool. */
static void store(const struct option_row *row, void *opts, uint64_t value)
{
	uint8_t byte = (uint8_t)value;
	uint32_t word = (uint32_t)value;

	if (row->bytes == sizeof(byte))
		memcpy(field(row, opts), &byte, sizeof(byte));
	else if (row->bytes == sizeof(word))
		memcpy(field(row, opts), &word, sizeof(word));
	else
		memcpy(field(row, opts), &value, sizeof(value));
}

static int wrong_choice(const struct command *c, const struct option_row *row, const char *text)
{
	char names[160] = "";
	size_t len = 0;

	for (const struct option_choice *o = row->choices; o->name && len < sizeof(names); o++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					o == row->choices ? ""
					: o[1].name       ? ", "
							  : " or ",
					o->name);
	return message_usage(c->name, "--%s is %s, not '%s'", row->name, names, text);
}

/* Parses and stores the text. False: it is no valid value of the row's kind. */
static bool parse(const struct option_row *row, void *opts, const char *text)
{
	uint64_t value = row->kind == OPTION_FLAG ? 1 : row->value;
	bool fine = true;

	switch (row->kind) {
	case OPTION_FLAG:
	case OPTION_SET:
		break;
	case OPTION_CHOICE:
		fine = false;
		for (const struct option_choice *o = row->choices; o->name && !fine; o++) {
			fine = !strcmp(o->name, text);
			value = (uint64_t)o->value;
		}
		break;
	case OPTION_NUMBER:
		fine = value_uint(text, row->least, row->most, &value);
		break;
	case OPTION_SIZE:
		fine = value_size(text, &value) && value >= row->least && value <= row->most;
		break;
	case OPTION_DURATION:
		fine = value_duration(text, &value) && value >= row->least;
		break;
	case OPTION_PID:
		return value_pid(text, field(row, opts));
	case OPTION_PIDS:
		return value_pids_split(field(row, opts), text);
	case OPTION_LIST:
		return value_list_split(field(row, opts), text);
	case OPTION_TEXTS:
		return value_list_add(field(row, opts), text, strlen(text));
	case OPTION_TEXT:
		memcpy(field(row, opts), &text, sizeof(text));
		return true;
	case OPTION_CONFIG: /* parse_config() has read it */
		return true;
	}
	if (fine)
		store(row, opts, value);
	return fine;
}

int option_take(const struct command *c, const struct option_row *row, void *opts, const char *text)
{
	if (!parse(row, opts, text))
		return row->kind == OPTION_CHOICE
			       ? wrong_choice(c, row, text)
			       : message_usage(c->name, "'%s' is no %s", text,
					       row->wrong ? row->wrong : wrongs[row->kind]);
	return row->check ? row->check(c, opts, text) : -1;
}
