// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes that take another name while all processes are recorded, as servers do that show what
 * they are for (setproctitle). It is looked after them once a second, whatever they do: one that
 * takes names without end costs no more than another.
 */
#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

#define LOOK_NS NSEC_PER_SEC
#define MOST 256 /* at a look; the others come at the next one */

/* Takes over the name that it has now. choose: also whether it is left out. False: it has ended. */
static bool take_name(struct kprof_session *s, struct target *t, bool choose)
{
	struct proc_info info;

	if (proc_info_read((pid_t)t->pid, &info) || info.start_ticks != t->start_ticks) {
		error_clear();
		return false;
	}
	if (choose)
		choice__make(s, t, info.comm);
	else
		t->comm = recorder__string(s->recorder, info.comm);
	if (!t->left_out)
		programs__read_cmdline(s, t);
	return true;
}

/* Of the process, and of its first thread, which has the same one. */
static int record_name(struct kprof_session *s, struct target *t)
{
	struct thread *th = threads__find(s->threads, (uint64_t)t->pid << 32 | t->pid);
	int err = process__record(s, t);

	if (err || !th || th->comm == t->comm)
		return err;
	th->comm = t->comm;
	return thread__record(s, th, 0);
}

/* What is recorded of it already stays, also if it is left out from now on. */
static int of_machine(struct kprof_session *s, struct target *t)
{
	bool was_left_out = t && t->left_out;

	if (!t || t->ended || t->kernel_thread || !take_name(s, t, true) || t->left_out)
		return 0;
	if (was_left_out) { /* nobody has looked at its mappings */
		t->looked_ns = 0;
		s->unlooked = true;
	}
	return t->recorded ? record_name(s, t) : 0;
}

/* One that was left out may join, while the recording goes on; one that has probes keeps them. */
static int of_joining(struct kprof_session *s, struct target *t, uint32_t pid, uint64_t now_ns)
{
	if (t)
		return take_name(s, t, false) ? process__record(s, t) : 0;
	if (recorder__window(s->recorder)->closed)
		return 0;
	return attacher__let_in(s->attacher, pid) ? process__join(s, pid, now_ns, NULL) : 0;
}

static int look(struct kprof_session *s, uint64_t now_ns)
{
	uint32_t pids[MOST];
	size_t nr = attacher__take_renamed(s->attacher, pids, MOST);
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++) {
		struct target *t = targets__find(s->targets, pids[i]);

		err = s->machine ? of_machine(s, t) : of_joining(s, t, pids[i], now_ns);
	}
	return err;
}

int renames__tend(struct kprof_session *s, uint64_t now_ns)
{
	if ((!s->machine && !s->joining) || now_ns < s->next_renames_ns)
		return 0;
	s->next_renames_ns = now_ns + LOOK_NS;
	return look(s, now_ns);
}
