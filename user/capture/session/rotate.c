// SPDX-License-Identifier: BSD-2-Clause
/*
 * The recording's file ends, and the recording goes on in another one, without a gap: probes,
 * clocks and the kernel's programs stay as they are. The border is a moment up to which all records
 * have been read, and none after it. What goes on at the border (spans, waits) is in both files,
 * and what is counted is counted in each for its own window.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

/* How long the rings are read at most, if records come as fast as that. */
#define DRAIN_NS (20 * NSEC_PER_MSEC)

static int may_rotate(const struct kprof_session *s)
{
	const struct record_window *window = recorder__window(s->recorder);

	if (!s->opts.rotates)
		return error_set_usage(-EINVAL, "set .rotates",
				       "the session's capture is not one that is rotated");
	if (!window->open || window->closed)
		return error_set_usage(-EINVAL, NULL, "the session is not running");
	return 0;
}

int rotate__drain(struct kprof_session *s, uint64_t *border_ns)
{
	uint64_t until_ns = clock_mono_ns() + DRAIN_NS;
	int n;

	do
		n = dispatch__drain(s, false);
	while (n == DISPATCH_RECORDS && clock_mono_ns() < until_ns);
	*border_ns = rings__reached(s->rings);
	/* a record came later than it should have: the border is not before the window's begin */
	if (*border_ns <= recorder__window(s->recorder)->start_ns)
		*border_ns = recorder__window(s->recorder)->start_ns + 1;
	return n < 0 ? n : 0;
}

/* Processes and threads that live on have the names that they have now. */
static int put_survivors(struct kprof_session *s)
{
	struct target *t;
	int err = 0;

	for (t = targets__first(s->targets); t && !err && !s->machine; t = t->hh.next)
		err = probe_set__record_lost(s->probes, t, recorder__window(s->recorder)->end_ns);
	return err;
}

/* What is about the window that ends. */
static int end_part(struct kprof_session *s)
{
	int err = overhead__end_part(s->overhead);

	if (!err)
		err = waits__end_part(s->waits);
	if (!err)
		err = spans__end_window(s->spans);
	if (!err)
		err = put_survivors(s);
	if (!err)
		err = agents__so_far(s->agents);
	if (!err)
		err = stacks__summary(s->stacks);
	if (!err && s->machine)
		err = machine__finish(s);
	return err ? err : account__end_part(s);
}

/* The processes that live are in the new file, too; of all processes, each once it is met. */
static int put_processes(struct kprof_session *s)
{
	struct target *t;
	int err = 0;

	for (t = targets__first(s->targets); t && !err; t = t->hh.next) {
		t->told_uid = t->told_cgroup = 0;
		t->told_program = 0;
		if (s->machine)
			t->recorded = false;
		else
			err = process__record(s, t);
	}
	return err;
}

/* why: what could not be stored, of the old file's time. */
static int put_unstored(struct kprof_session *s, uint64_t since_ns, int why)
{
	char reason[256];

	if (!why)
		return 0;
	snprintf(reason, sizeof(reason), "it could not be stored: %s", strerror(-why));
	return recorder__gap(s->recorder, 0, "anything", reason, since_ns,
			     recorder__window(s->recorder)->start_ns);
}

static int begin_part(struct kprof_session *s, uint64_t unstored_ns, int why)
{
	int err = account__next_part(s);

	overhead__next_part(s->overhead);
	early__next_part(s);
	if (!err)
		err = waits__next_part(s->waits);
	if (!err)
		err = put_processes(s);
	if (!err)
		err = spans__rotate(s->spans, recorder__window(s->recorder)->start_ns);
	if (!err)
		overhead__come_back(s->overhead);
	return err ? err : put_unstored(s, unstored_ns, why);
}

int kprof_session_rotate(struct kprof_session *s, const char *path)
{
	uint64_t begin_ns = clock_mono_ns(), border_ns = 0, unstored_ns, named_ns;
	int err, why, unstored_err;

	error_clear();
	err = may_rotate(s);
	if (!err)
		err = recorder__rotate_begin(s->recorder, path);
	if (err)
		return err;
	err = stacks__names_so_far(s->stacks);
	named_ns = clock_mono_ns();
	if (!err)
		err = waits__border(s->waits);
	if (!err)
		err = rotate__drain(s, &border_ns);
	if (!err) {
		recorder__close_part(s->recorder, border_ns);
		err = end_part(s);
	}
	if (err) { /* no memory */
		recorder__rotate_cancel(s->recorder);
		waits__same_part(s->waits);
		return err;
	}
	unstored_ns = recorder__unstored_since(s->recorder, &unstored_err);
	err = recorder__rotate_end(s->recorder, &why);
	if (why && !unstored_err) /* else that was said */
		log_warn(kprof_error_hint(), "the end of a capture could not be stored: %s",
			 strerror(-why));
	if (!err)
		err = begin_part(s, unstored_ns, unstored_err ? unstored_err : why);
	if (!err)
		err = recorder__flush(s->recorder);
	log_debug("rotated in %.1f ms: %.1f ms for tables and names, then %.1f ms",
		  (double)(clock_mono_ns() - begin_ns) / 1e6, (double)(named_ns - begin_ns) / 1e6,
		  (double)(clock_mono_ns() - named_ns) / 1e6);
	return err;
}
