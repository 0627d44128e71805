/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that select a part of a capture's time: --from, --to and --step. */
#ifndef KPROF_CMD_OPTIONS_RANGE_H
#define KPROF_CMD_OPTIONS_RANGE_H

#include "cmd/options/option.h"
#include "kprof.h"

struct range_opts {
	const char *from, *to, *step; /* as given; NULL: not given */
};

int range_check_time(const struct command *c, void *opts, const char *text);
int range_check_steps(const struct command *c, void *opts, const char *text);

/* Rows of a table; FIELD is the struct range_opts in the command's struct TYPE. */
#define RANGE_OPTIONS(TYPE, FIELD)                                                             \
	{.name = "from",                                                                       \
	 .kind = OPTION_TEXT,                                                                  \
	 OPTION_FIELD(TYPE, FIELD.from),                                                       \
	 .check = range_check_time,                                                            \
	 .argument = "TIME",                                                                   \
	 .help = "only what happened from this time of the recording on: 2s, 500ms; -1s: "     \
		 "from a second before its end"},                                              \
		{.name = "to",                                                                 \
		 .kind = OPTION_TEXT,                                                          \
		 OPTION_FIELD(TYPE, FIELD.to),                                                 \
		 .check = range_check_time,                                                    \
		 .argument = "TIME",                                                           \
		 .help = "only until this time"},                                              \
	{                                                                                      \
		.name = "step", .kind = OPTION_TEXT, OPTION_FIELD(TYPE, FIELD.step),           \
		.check = range_check_steps, .argument = "N[..N]",                              \
		.help = "only these steps of a training: 10..20 (report --by step lists them)" \
	}

/*
 * Selects what the options say, if anything, in a capture. Returns -1 to go on, else the exit code,
 * after a message.
 */
int range_select(const struct command *c, const struct range_opts *opts, struct kprof_capture *t);
/*
 * The text that says how much the selected range holds, and how much is outside of it. False:
 * all of the recording is selected.
 */
#define RANGE_TEXT_BYTES 256
bool range_text(char out[RANGE_TEXT_BYTES], const struct kprof_capture *t);

#endif
