// SPDX-License-Identifier: BSD-2-Clause
/* A recording that keeps only what is allocated, and captures of that. */
#include <errno.h>
#include <inttypes.h>

#include "capture/session/session.h"
#include "kprof/activity.h"
#include "util/error.h"
#include "util/util.h"

#define DRAIN_NS (500 * NSEC_PER_MSEC)

void session_alive__set_opts(struct kprof_session_opts *opts)
{
	if (!opts->alive)
		return;
	opts->memory = opts->with_stack = true;
	opts->children = KPROF_CHILDREN_NONE;
	opts->agent = KPROF_AGENT_NONE;
	opts->types = 1ull << KPROF_ACTIVITY_CPU_OP;
}

/* Blocks are on a thread, as all instants: the process's first one stands for all. */
static int put_thread(struct kprof_session *s)
{
	const struct target *t = targets__first(s->targets);
	struct store_record r = {.type = STORE_THREAD};
	int err;

	r.thread.start_ns = recorder__window(s->recorder)->start_ns;
	r.thread.pid = r.thread.tid = s->alive_pid;
	r.thread.name = t ? t->comm : s->alive_comm;
	err = t ? process__record(s, (struct target *)t) : 0;
	return err ? err : recorder__put_anyway(s->recorder, &r);
}

int session_alive__look(struct kprof_session *s)
{
	const struct target *t = targets__first(s->targets);

	if (!s->alive)
		return 0;
	if (t) {
		s->alive_pid = t->pid;
		s->alive_comm = t->comm;
	}
	if (overhead__gave_up_all(s->overhead))
		return error_set(-EDQUOT, "allow more, or take fewer stacks (--stack-rate)",
				 "to follow each allocation and free costs more than is allowed "
				 "(--max-overhead)");
	return 0;
}

bool session_alive__sees(struct kprof_session *s)
{
	const struct target *t = targets__first(s->targets);

	s->alive_seen |= t && probe_set__has_allocator(s->probes, t);
	return s->alive_seen;
}

int session_alive__put(struct kprof_session *s)
{
	int err = put_thread(s);

	return err ? err : alive__put(s->alive, session_alive__sees(s));
}

/* Reads what has come until now, if that takes no longer than it should. 0 or a negative errno. */
static int drain_all(struct kprof_session *s)
{
	uint64_t until_ns = clock_mono_ns() + DRAIN_NS;
	int n;

	do
		n = dispatch__drain(s, false);
	while (n == DISPATCH_RECORDS && clock_mono_ns() < until_ns);
	return n < 0 ? n : 0;
}

int kprof_session_snapshot(struct kprof_session *s, const char *path)
{
	int err;

	error_clear();
	if (!s->alive || !recorder__window(s->recorder)->open)
		return error_set_usage(-EINVAL, NULL,
				       "the session keeps no books of what is allocated");
	err = stacks__names_so_far(s->stacks);
	if (!err)
		err = drain_all(s);
	if (!err)
		err = alive__prepare(s->alive);
	if (!err)
		err = recorder__begin_copy(s->recorder, path);
	if (err)
		return err;
	err = session_alive__put(s);
	if (!err)
		err = account__so_far(s);
	return recorder__end_copy(s->recorder, clock_mono_ns(), err);
}
