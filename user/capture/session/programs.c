// SPDX-License-Identifier: BSD-2-Clause
/* What each process runs: the path of its executable, and its command line. */
#include <stdlib.h>
#include <string.h>

#include "capture/session/session.h"
#include "util/error.h"

/*
 * Of all processes, so many texts are recorded: each may be another one, for days, and all are kept
 * in memory.
 */
#define TEXTS_MOST 65536

/* The string id of a text; 0: so many were recorded already. */
static uint32_t put_text(struct kprof_session *s, const char *text)
{
	uint32_t id = store_writer__known_string(recorder__store(s->recorder), text);

	if (id)
		return id;
	if (s->opts.all_processes && s->nr_texts == TEXTS_MOST)
		return 0;
	s->nr_texts++;
	return recorder__string(s->recorder, text);
}

/* ---- executables ---- */

void programs__read(struct kprof_session *s, struct target *t)
{
	char *path;

	t->program = 0;
	if (t->kernel_thread)
		return;
	if (proc_exe((pid_t)t->pid, &path)) {
		error_clear();
		return;
	}
	t->program = put_text(s, path);
	free(path);
}

int programs__record(struct kprof_session *s, struct target *t)
{
	struct store_record r = {
		.type = STORE_EXECUTABLE,
		.executable = {.pid = t->pid, .start_ns = t->start_ns, .path = t->program},
	};

	if (t->program == t->told_program)
		return 0;
	t->told_program = t->program;
	return recorder__put(s->recorder, &r);
}

/* ---- command lines ---- */

void programs__read_cmdline(struct kprof_session *s, struct target *t)
{
	char *cmdline;

	if (s->opts.no_cmdlines || proc_cmdline((pid_t)t->pid, &cmdline))
		return;
	t->cmdline = put_text(s, cmdline);
	free(cmdline);
}

uint32_t programs__cmdline(struct kprof_session *s, const char *args, size_t bytes)
{
	char *text;
	uint32_t id;

	if (!bytes || s->opts.no_cmdlines)
		return 0;
	text = proc_cmdline_of(args, bytes);
	id = text ? put_text(s, text) : 0;
	free(text);
	return id;
}
