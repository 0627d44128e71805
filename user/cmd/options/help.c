// SPDX-License-Identifier: BSD-2-Clause
/* Prints --help, and the option rows for completion and scripts/manual. */
#include <stdio.h>
#include <string.h>

#include "cmd/options/option.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define HELP_COLUMN 24
#define LAST_COLUMN 100

static const struct option_row help_row = {.name = "help", .letter = 'h', .help = "this text"};

const struct option_row *option_next(const struct command *c, const struct option_row *row)
{
	for (; row->name; row++)
		if (!row->on || row->on & c->bit)
			return row;
	return NULL;
}

/* Prints text, broken between words. The cursor is at the column in which all lines begin. */
static void print_paragraph(const char *text, size_t column)
{
	size_t at = column;
	char word[128];

	while (*text) {
		size_t bytes = strcspn(text, " ");

		snprintf(word, sizeof(word), "%.*s", (int)bytes, text);
		if (at > column && at + 1 + text_columns(word) > LAST_COLUMN) {
			printf("\n%*s", (int)column, "");
			at = column;
		}
		if (at > column) {
			putchar(' ');
			at++;
		}
		fputs(word, stdout);
		at += text_columns(word);
		text += bytes + strspn(text + bytes, " ");
	}
	putchar('\n');
}

static void print_row(const struct option_row *row)
{
	char head[80];
	size_t columns;

	snprintf(head, sizeof(head), "  %c%c%c --%s%s%s", row->letter ? '-' : ' ',
		 row->letter ? row->letter : ' ', row->letter ? ',' : ' ', row->name,
		 row->argument ? " " : "", row->argument ? row->argument : "");
	fputs(head, stdout);
	columns = text_columns(head);
	if (columns >= HELP_COLUMN) {
		putchar('\n');
		columns = 0;
	}
	printf("%*s", (int)(HELP_COLUMN - columns), "");
	print_paragraph(row->help, HELP_COLUMN);
}

int options_help(const struct command *c)
{
	const struct option_row *row = c->options;

	printf("Usage: kprof %s %s\n\nIn short: %s.\n\n", c->name, c->arguments, c->summary);
	for (; (row = option_next(c, row)); row++)
		print_row(row);
	print_row(&help_row);
	if (c->epilogue)
		printf("\n%s", c->epilogue);
	return EXIT_DONE;
}

/* ---- for programs ---- */

static void print_values(const struct option_row *row)
{
	const char *word;

	if (row->kind == OPTION_PID || row->kind == OPTION_PIDS)
		fputs("<pid>", stdout);
	if (row->kind == OPTION_CHOICE)
		for (const struct option_choice *o = row->choices; o->name; o++)
			printf("%s%s", o == row->choices ? "" : " ", o->name);
	if (row->words)
		fputs(row->words, stdout);
	for (size_t i = 0; row->word && (word = row->word(i)); i++)
		printf("%s%s", i ? " " : "", word);
}

static void print_line(const struct command *c, const struct option_row *row)
{
	char letter[] = {'-', row->letter, '\0'};

	printf("%s\t%s\t--%s\t%s\t", c->name, row->letter ? letter : "", row->name,
	       row->argument ? row->argument : "");
	print_values(row);
	printf("\t%s\n", row->help);
}

void options_print_rows(const struct command *c)
{
	const struct option_row *row = c->options;

	for (; (row = option_next(c, row)); row++)
		print_line(c, row);
	print_line(c, &help_row);
}
