// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/export/export.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cmd/options/value.h"
#include "cmd/print/message.h"

struct progress {
	const volatile bool *stop;
	struct message_progress line;
};

struct caller caller_get(void)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	struct caller caller = {.uid = (uid_t)-1, .gid = (gid_t)-1};
	uint64_t u, g;

	if (geteuid() || !uid || !gid || !value_uint(uid, 0, UINT32_MAX - 1, &u) ||
	    !value_uint(gid, 0, UINT32_MAX - 1, &g))
		return caller;
	caller.by_sudo = true;
	caller.uid = (uid_t)u;
	caller.gid = (gid_t)g;
	return caller;
}

static int on_progress(void *ctx, uint64_t done, uint64_t total)
{
	struct progress *p = ctx;

	message_progress(&p->line, "writing", done, total);
	return p->stop && *p->stop;
}

static void on_wrote(void *ctx, const char *path)
{
	message_line("");
	puts(path);
	fflush(stdout);
}

static int given_up(const char *path)
{
	message_note("given up before %s was written", path);
	return EXIT_FAILED;
}

int write_capture(const char *capture, struct kprof_export_opts *opts,
		  const struct write_what *what)
{
	struct progress progress = {.stop = what->stop,
				    .line.shown = !what->quiet && message_line_wanted()};
	struct caller caller = caller_get();
	char selected[RANGE_TEXT_BYTES];
	struct kprof_capture *c;
	int err, code = 0;

	if (what->stop && *what->stop)
		return given_up(opts->path);
	if (kprof_capture_open(capture, &c))
		return message_error();
	kprof_capture_show_interpreter(c, what->interpreter);
	if (what->range)
		code = range_select(what->self, what->range, c);
	if (what->range && code >= 0)
		goto out;
	code = 0;
	opts->sz = sizeof(*opts);
	opts->uid = caller.uid;
	opts->gid = caller.gid;
	opts->set_owner = caller.by_sudo;
	opts->progress = on_progress;
	opts->ctx = &progress;
	opts->wrote = on_wrote;
	err = kprof_capture_export(c, opts);
	if (err)
		code = err == -ECANCELED ? given_up(opts->path) : message_error();
	message_line("");
	if (!err && range_text(selected, c))
		message_note("%s", selected);
	message_cut(capture, kprof_capture_info(c));
out:
	kprof_capture_close(c);
	return code;
}
