/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of attach, run and sample, and of requests for recordings (ctl). */
#ifndef KPROF_CMD_RECORD_OPTIONS_H
#define KPROF_CMD_RECORD_OPTIONS_H

#include "cmd/options/chosen.h"
#include "cmd/print/message.h"
#include "kprof.h"

/* Bits of the commands, for the rows' .on. */
enum { RECORD_ATTACH = 1, RECORD_RUN = 2, RECORD_SAMPLE = 4, RECORD_CTL = 8 };

struct record_opts {
	/* Options for the library. record() adds the path, the owner and the command. */
	struct kprof_session_opts session;
	struct kprof_schedule schedule; /* .steps 0: the recording is not by steps */
	const char *warm_up, *wait;     /* as given: see record_steps_or_time() */
	uint64_t repeat;                /* rounds; 0: not given */
	struct value_pids pids, tids;
	char **argv;          /* command to start; NULL: attach to processes. Not owned */
	uint64_t duration_ns; /* 0: until Ctrl-C or the end of the targets */
	const char *output;   /* NULL: the default name */
	struct value_list ops, exclude;
	struct chosen chosen;           /* of all processes */
	struct value_list meta;         /* of KEY=JSON */
	const char *activities, *types; /* as given on the command line; NULL: not given */
	bool stacks;
	bool strict;
	bool observer;
	const char *scopes;              /* as given; NULL: not */
	struct value_list config;        /* texts of values from the configuration file */
	const char *max_overhead, *only; /* as given; NULL: not */
	struct message_opts message;
	/* ctl */
	const char *socket, *start_at; /* as given; NULL: not */
	uint64_t last_ns, round;       /* 0: not given */
	bool as_json;
};

/* The option rows of all these commands. */
extern const struct option_row record_options[];

/* The key, malloc'ed (NULL: no memory), and the value of KEY=JSON. *json NULL: there is no '='. */
char *record_meta_key(const char *text, const char **json);

/* "100steps", "1step": so many; else a duration, "5s". False: it is neither. */
bool record_steps_or_time(const char *text, uint64_t *steps, uint64_t *ns);

/* options_parse(), and then checks of several options together. */
int record_opts_parse(const struct command *c, int argc, char **argv, struct record_opts *opts,
		      int *first);

#endif
