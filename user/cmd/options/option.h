/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A subcommand and its options. An option is one row of a table: parsing, --help, completion, the
 * manual page's list of options and the keys of the configuration file all follow from it.
 */
#ifndef KPROF_CMD_OPTIONS_OPTION_H
#define KPROF_CMD_OPTIONS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/options/value.h"

#define CONFIG_PATH "/etc/kprof.conf"

struct command;

/* What an option's text becomes in the command's struct. All but FLAG and SET take a value. */
enum option_kind {
	OPTION_FLAG,     /* bool: true */
	OPTION_SET,      /* any integer: .value */
	OPTION_CHOICE,   /* any integer: the value of one of .choices */
	OPTION_NUMBER,   /* any unsigned integer, from .least to .most */
	OPTION_SIZE,     /* uint64_t: bytes, from .least to .most */
	OPTION_DURATION, /* uint64_t: nanoseconds */
	OPTION_PID,      /* pid_t */
	OPTION_PIDS,     /* struct value_pids: adds those between the commas */
	OPTION_LIST,     /* struct value_list: adds what stands between the commas */
	OPTION_TEXT,     /* const char *: as given, not copied */
	/*
	 * struct value_list: keeps the texts of the configuration file's values. A command with
	 * such a row reads CONFIG_PATH, or the file that the option names, before its command line.
	 */
	OPTION_CONFIG,
};

struct option_choice {
	const char *name; /* NULL: the end of the list */
	int value;
};

/* The field that gets the value: TYPE is the struct that the command passes to options_parse(). */
#define OPTION_FIELD(TYPE, FIELD) \
	.at = offsetof(TYPE, FIELD), .bytes = sizeof(((TYPE *)NULL)->FIELD)

struct option_row {
	const char *name; /* the long name without its dashes; NULL: the end of the table */
	char letter;      /* the short name; 0: none */
	enum option_kind kind;
	unsigned int on;  /* the commands that have it: their .bit; 0: all that use the table */
	size_t at, bytes; /* OPTION_FIELD() */
	uint64_t value, least, most;
	const struct option_choice *choices;
	const char *argument; /* "TIME", in --help and the manual page; NULL: it takes no value */
	const char *wrong;    /* "'x' is no " what, said of a wrong value; NULL: by the kind */
	const char *help;     /* one paragraph; the manual page may say more */
	/* What completion offers, besides .choices and process numbers. */
	const char *words;             /* separated by spaces; "<file>": paths */
	const char *(*word)(size_t i); /* the i-th value; NULL: there are no more */
	bool only_given;               /* the configuration file may not set it */
	/* Looks at a value that has been stored. -1: fine; else the exit code, after a message. */
	int (*check)(const struct command *c, void *opts, const char *text);
};

struct command {
	const char *name;
	const char *arguments; /* after the name in the usage line */
	const char *summary;   /* one line for the overview */
	const struct option_row *options;
	unsigned int bit;     /* this command's in .on of these rows */
	bool options_first;   /* from the first operand on, nothing is an option of kprof's */
	const char *epilogue; /* after the options in --help; NULL: nothing */
	/* argv[0] is the command's name. Returns the exit code. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* The next row that the command has, from row on; NULL: there is none. */
const struct option_row *option_next(const struct command *c, const struct option_row *row);

/*
 * Fills opts, the command's struct, from the configuration file and argv. *first becomes the index
 * in argv of the first operand. -1: go on; else the exit code to end with, after a message or
 * after --help. options_free() frees what the rows allocated, in either case.
 */
int options_parse(const struct command *c, int argc, char **argv, void *opts, int *first);
void options_free(const struct command *c, void *opts);

/* The one operand, a capture, at argv[first]: -1 when it is there and alone, else an exit code. */
int options_capture(const struct command *c, int argc, char **argv, int first);

/* "Usage: kprof NAME ARGUMENTS", summary and options, to stdout. Returns EXIT_DONE. */
int options_help(const struct command *c);
/*
 * The command's options for completion and for scripts/manual, a line each, to stdout: command,
 * letter, name, argument, values for completion, help; a tab between them. "<pid>" and "<file>"
 * stand for process numbers and paths.
 */
void options_print_rows(const struct command *c);

#endif
