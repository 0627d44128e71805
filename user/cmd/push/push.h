/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that say where profiles are pushed to, for all commands that do so. */
#ifndef KPROF_CMD_PUSH_PUSH_H
#define KPROF_CMD_PUSH_PUSH_H

#include "cmd/options/option.h"
#include "kprof/push.h"

extern const struct command cmd_push;

struct push_opts {
	struct kprof_push_opts library; /* .url, .service and the files; the rest by push_fill() */
	struct value_list headers, labels;
};

/* Checks of rows. */
int push_check_url(const struct command *c, void *opts, const char *text);

/*
 * Fills in what .library lacks of what was given. It points into *opts, which must not move or be
 * freed as long as it is used.
 */
void push_fill(struct push_opts *opts);

/* Rows of a table; FIELD is the struct push_opts in the command's struct TYPE. */
#define PUSH_OPTIONS(TYPE, FIELD)                                                          \
	{.name = "to",                                                                     \
	 .kind = OPTION_TEXT,                                                              \
	 OPTION_FIELD(TYPE, FIELD.library.url),                                            \
	 .check = push_check_url,                                                          \
	 .argument = "URL",                                                                \
	 .words = "otlp+http:// otlp+https:// pyroscope+http:// pyroscope+https:// "       \
		  "parca+http:// parca+https://",                                          \
	 .help = "where to: otlp+http://HOST[:PORT] (an OpenTelemetry collector), "        \
		 "pyroscope+http://HOST, parca+http://HOST, or with https"},               \
		{.name = "service",                                                        \
		 .kind = OPTION_TEXT,                                                      \
		 OPTION_FIELD(TYPE, FIELD.library.service),                                \
		 .argument = "NAME",                                                       \
		 .help = "the service's name for all processes. Default: each one's own"}, \
		{.name = "label",                                                          \
		 .kind = OPTION_TEXTS,                                                     \
		 OPTION_FIELD(TYPE, FIELD.labels),                                         \
		 .argument = "KEY=VALUE",                                                  \
		 .help = "is said of all processes; may be given several times"},          \
		{.name = "queue-bytes",                                                    \
		 .kind = OPTION_SIZE,                                                      \
		 OPTION_FIELD(TYPE, FIELD.library.queue_bytes),                            \
		 .least = 4096,                                                            \
		 .most = UINT64_MAX,                                                       \
		 .argument = "SIZE",                                                       \
		 .wrong = "size (4K …)",                                                   \
		 .help = "what waits to be sent takes so much: beyond, the oldest is "     \
			 "dropped (256M)"},                                                \
		{.name = "queue-age",                                                      \
		 .kind = OPTION_DURATION,                                                  \
		 OPTION_FIELD(TYPE, FIELD.library.queue_age_ns),                           \
		 .argument = "TIME",                                                       \
		 .help = "… and what is older is dropped, too (24h)"},                     \
		{.name = "token-file",                                                     \
		 .kind = OPTION_TEXT,                                                      \
		 OPTION_FIELD(TYPE, FIELD.library.token_file),                             \
		 .argument = "FILE",                                                       \
		 .words = "<file>",                                                        \
		 .help = "has the bearer token; only with https, or to this machine"},     \
		{.name = "basic-file",                                                     \
		 .kind = OPTION_TEXT,                                                      \
		 OPTION_FIELD(TYPE, FIELD.library.basic_file),                             \
		 .argument = "FILE",                                                       \
		 .words = "<file>",                                                        \
		 .help = "has USER:PASSWORD; only with https, or to this machine"},        \
		{.name = "header",                                                         \
		 .kind = OPTION_TEXTS,                                                     \
		 OPTION_FIELD(TYPE, FIELD.headers),                                        \
		 .argument = "HEADER",                                                     \
		 .help = "is sent, too, such as 'X-Scope-OrgID: 7'; may be given several " \
			 "times; no secrets, which others would see"},                     \
		{.name = "ca",                                                             \
		 .kind = OPTION_TEXT,                                                      \
		 OPTION_FIELD(TYPE, FIELD.library.ca),                                     \
		 .argument = "FILE",                                                       \
		 .words = "<file>",                                                        \
		 .help = "the authorities (PEM) to trust instead of the system's"},        \
		{.name = "cert",                                                           \
		 .kind = OPTION_TEXT,                                                      \
		 OPTION_FIELD(TYPE, FIELD.library.certificate),                            \
		 .argument = "FILE",                                                       \
		 .words = "<file>",                                                        \
		 .help = "this client's certificate (PEM)"},                               \
	{                                                                                  \
		.name = "key", .kind = OPTION_TEXT, OPTION_FIELD(TYPE, FIELD.library.key), \
		.argument = "FILE", .words = "<file>",                                     \
		.help = "the certificate's key. Default: it is in the same file"           \
	}

#endif
