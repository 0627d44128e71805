// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as the configuration file of a recording. Either the file is refused with a message, or
 * what it has set is within the limits of the options' rows. The first byte chooses the command.
 */
#include "cmd/options/config.h"
#include "cmd/record/options.h"
#include "fuzz.h"

static uint64_t value_of(const struct option_row *row, const void *opts)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)opts + row->at, row->bytes < 8 ? row->bytes : 8);
	return value;
}

/* Or the value of another option for the same field. */
static bool is_choice(const struct option_row *row, uint64_t value)
{
	for (const struct option_row *other = record_options; other->name; other++)
		if (other->kind == OPTION_SET && other->at == row->at && other->value == value)
			return true;
	for (const struct option_choice *o = row->choices; o->name; o++)
		if ((uint64_t)(unsigned int)o->value == value)
			return true;
	return false;
}

static void check_list(const struct value_list *list)
{
	for (size_t i = 0; i < list->nr; i++)
		REQUIRE(list->items[i] && strlen(list->items[i]));
}

static void check_row(const struct option_row *row, const void *opts, const void *before)
{
	const void *field = (const char *)opts + row->at;
	uint64_t value;

	if (!memcmp(field, (const char *)before + row->at, row->bytes))
		return;
	REQUIRE(!row->only_given);
	value = value_of(row, opts);
	switch (row->kind) {
	case OPTION_NUMBER:
	case OPTION_SIZE:
		REQUIRE(value >= row->least && value <= row->most);
		break;
	case OPTION_CHOICE:
		REQUIRE(is_choice(row, value));
		break;
	case OPTION_FLAG:
		REQUIRE(value == 1);
		break;
	case OPTION_DURATION:
		REQUIRE(value && value <= 10ull * 366 * 24 * 3600 * 1000000000);
		break;
	case OPTION_TEXT:
		REQUIRE(strlen(*(const char *const *)field) < 4096);
		break;
	case OPTION_LIST:
		check_list(field);
		break;
	default:
		break;
	}
}

static void free_lists(struct record_opts *opts)
{
	for (const struct option_row *row = record_options; row->name; row++) {
		void *field = (char *)opts + row->at;

		if (row->kind == OPTION_LIST || row->kind == OPTION_TEXTS)
			value_list_free(field);
		if (row->kind == OPTION_PIDS)
			free(((struct value_pids *)field)->items);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static FILE *nowhere;
	FILE *file, *err = stderr;
	struct fuzz_input in = {data, bytes < 4000 ? bytes : 4000};
	const struct command command = {
		.name = "attach",
		.options = record_options,
		.bit = 1u << fuzz_number(&in, 1) % 3,
	};
	struct record_opts opts = {0}, before = {0};
	struct value_list values = {0};
	int code;

	if (!in.left)
		return 0;
	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	file = fmemopen((void *)in.at, in.left, "r");
	REQUIRE(nowhere && file);
	stderr = nowhere; /* messages */
	code = config_take(&command, file, "kprof.conf", bytes % 2, &opts, &values);
	stderr = err;
	fclose(file);
	REQUIRE(code == -1 || (code > EXIT_DONE && code <= EXIT_LOST));
	for (const struct option_row *row = record_options; row->name && code == -1; row++)
		check_row(row, &opts, &before);
	free_lists(&opts);
	value_list_free(&values);
	return 0;
}
