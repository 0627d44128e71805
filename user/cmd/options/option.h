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

/* What an option's text is stored as in the command's struct. All but FLAG and SET take a value. */
enum option_kind {
	OPTION_FLAG,     /* stores true in a bool */
	OPTION_SET,      /* stores .value in any integer */
	OPTION_CHOICE,   /* stores the value of one of .choices in any integer */
	OPTION_NUMBER,   /* any unsigned integer, from .least to .most */
	OPTION_SIZE,     /* uint64_t: bytes, from .least to .most */
	OPTION_DURATION, /* uint64_t: nanoseconds, from .least */
	OPTION_PID,      /* pid_t */
	OPTION_PIDS,     /* struct value_pids: adds the PIDs between the commas */
	OPTION_LIST,     /* struct value_list: adds the texts between the commas */
	OPTION_TEXT,     /* const char *: the text, not copied */
	OPTION_TEXTS,    /* struct value_list: adds the text, commas and all */
	/*
	 * struct value_list: holds the texts of values from the configuration file. A command with
	 * such a row reads CONFIG_PATH, or the file that this option names, before its command
	 * line. .value 1: only the part that begins with a line [NAME], the command's name; else
	 * only what stands before any such line.
	 */
	OPTION_CONFIG,
};

struct option_choice {
	const char *name; /* NULL: the end of the list */
	int value;
};

/*
 * Initializes .at and .bytes with the field that gets the value. TYPE is the struct that the
 * command passes to options_parse().
 */
#define OPTION_FIELD(TYPE, FIELD) \
	.at = offsetof(TYPE, FIELD), .bytes = sizeof(((TYPE *)NULL)->FIELD)

struct option_row {
	const char *name; /* the long name without its dashes; NULL: the end of the table */
	char letter;      /* the short name; 0: none */
	enum option_kind kind;
	unsigned int on;  /* .bit of the commands that have the option; 0: all that use the table */
	size_t at, bytes; /* OPTION_FIELD() */
	uint64_t value, least, most;
	const struct option_choice *choices;
	/* Name of the value in --help and the manual page, such as "TIME"; NULL: none is taken. */
	const char *argument;
	/* Completes the message "'x' is no …" for a wrong value; NULL: a text by the kind. */
	const char *wrong;
	const char *help; /* one paragraph; the manual page may say more */
	/* What completion offers besides .choices and PIDs. */
	const char *words;             /* words separated by spaces; "<file>": paths */
	const char *(*word)(size_t i); /* the i-th value; NULL: there are no more */
	bool only_given;               /* the configuration file may not set it */
	/*
	 * Checks a value after it is stored. Returns -1 if it is fine, else the exit code, after a
	 * message.
	 */
	int (*check)(const struct command *c, void *opts, const char *text);
};

struct command {
	const char *name;
	const char *arguments; /* what follows the name in the usage line */
	const char *summary;   /* one line for the overview */
	const struct option_row *options;
	unsigned int bit;     /* this command's bit in .on of the rows */
	bool options_first;   /* true: the first operand ends kprof's own options */
	const char *epilogue; /* printed after the options in --help; NULL: nothing */
	/* argv[0] is the command's name. Returns the exit code. */
	int (*run)(const struct command *self, int argc, char **argv);
};

/* The command's next option, from row on; NULL: there are no more. */
const struct option_row *option_next(const struct command *c, const struct option_row *row);

/*
 * Fills opts, the command's struct, from the configuration file and argv. *first becomes the index
 * in argv of the first operand. Returns -1 to go on, else the exit code to end with, after a
 * message or --help. In either case, options_free() frees what was allocated.
 */
int options_parse(const struct command *c, int argc, char **argv, void *opts, int *first);
void options_free(const struct command *c, void *opts);
/*
 * Whether `may` is true for the name of every option in argv, also where it is abbreviated or given
 * as a letter. *refused: the first for which it is not. What is wrong with them, and all behind it,
 * is for options_parse(), which refuses that.
 */
bool options_used(const struct command *c, int argc, char **argv,
		  bool (*may)(void *ctx, const char *name), void *ctx, const char **refused);

/* Checks that there is one operand, a capture, at argv[first]: -1 if so, else an exit code. */
int options_capture(const struct command *c, int argc, char **argv, int first);

/*
 * Adds what an operand or option names: a capture, or all captures of a folder. Returns -1, or an
 * exit code after a message.
 */
int options_add_captures(struct value_list *list, const char *name);

/* Prints "Usage: kprof NAME ARGUMENTS", summary and options to stdout. Returns EXIT_DONE. */
int options_help(const struct command *c);
/*
 * Prints the command's options to stdout for completion and scripts/manual, one on each line:
 * command, letter, name, argument, values for completion, help, separated by tabs. "<pid>" and
 * "<file>" mean PIDs and paths.
 */
void options_print_rows(const struct command *c);

#endif
