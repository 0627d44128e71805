// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/print/message.h"
#include "cmd/push/push.h"

int push_check_url(const struct command *c, void *opts, const char *text)
{
	struct kprof_push_url url;

	return kprof_push_parse_url(text, &url) ? message_error() : -1;
}

void push_fill(struct push_opts *opts)
{
	opts->library.sz = sizeof(opts->library);
	opts->library.headers = (const char *const *)opts->headers.items;
	opts->library.nr_headers = opts->headers.nr;
	opts->library.labels = (const char *const *)opts->labels.items;
	opts->library.nr_labels = opts->labels.nr;
}
