// SPDX-License-Identifier: BSD-2-Clause
/* The public calls of a recording: configure, start, poll, stop. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/features/features.h"
#include "capture/session/session.h"
#include "util/error.h"
#include "util/foreign.h"
#include "util/haste.h"
#include "util/mounts.h"
#include "util/util.h"

#define IN_FLIGHT_US 10000
#define FIRST_SLEEP_MS 1
#define LOOKED_NS NSEC_PER_MSEC /* what is younger than a last look is not worth another one */

/* ---- the parts ---- */

static int open_window(struct kprof_session *s, uint64_t start_ns)
{
	int err;

	recorder__open_window(s->recorder, start_ns);
	err = account__begin(s);
	if (!err)
		err = overhead__open(s->overhead);
	if (err)
		return err;
	spans__open_window(s->spans, start_ns);
	s->within_unknown = attacher__within_unknown(s->attacher);
	if (s->machine)
		attacher__count_ended(s->attacher, start_ns);
	agents__opened(s->agents);
	return 0;
}

int kprof_session_new(const struct kprof_session_opts *opts, struct kprof_session **out)
{
	struct kprof_session *s;
	int err;

	error_clear();
	if (opts->sz != sizeof(*opts) || !opts->capture_path)
		return error_set_usage(-EINVAL, "set .sz and .capture_path",
				       "the session's options are not filled in");
	err = kprof_session_opts_check(opts);
	if (err)
		return err;
	if (opts->trust_files)
		mounts_trust_all();
	foreign_prepare();
	err = features_require(true);
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, NULL, "no memory for a session");
	s->opts = *opts;
	s->open_window = open_window;
	if (opts->schedule) {
		s->schedule = *opts->schedule;
		s->step_symbol = opts__step_symbol(opts->schedule);
		if (s->step_symbol)
			s->schedule.annotation = s->step_symbol;
	}
	s->opts.shapes |= opts->flops;
	s->within_asked = opts->within;
	s->opts.within = opts__within(opts, &s->within_of);
	session_alive__set_opts(&s->opts);
	s->machine = opts->all_processes && opts->samples_only;
	s->joining = opts->all_processes && !opts->samples_only;
	if (s->machine)
		s->opts.children = KPROF_CHILDREN_NONE; /* they are among all */
	if (s->joining)
		s->opts.children = KPROF_CHILDREN_EXACT;
	s->single = opts->no_multi || !features_get()->uprobe_multi;
	s->filter = (struct plan_filter){
		.ops_matched = &s->ops_matched,
		.ops = opts->ops,
		.nr_ops = opts->nr_ops,
		.exclude = opts->exclude,
		.nr_exclude = opts->nr_exclude,
		.inputs = s->opts.shapes,
		.flow = s->opts.flow,
		.mark_common = s->single,
		.types = s->opts.types,
		.scopes = opts->scopes,
		.only = opts->only,
		.memory = s->opts.memory,
		.observed = opts->observe,
		.within =
			opts->within && !opts->observe && s->within_of == KPROF_WITHIN_ANNOTATIONS,
		.symbol = s->within_of == KPROF_WITHIN_SYMBOL ? s->opts.within : s->step_symbol,
	};
	if (opts->only || opts->choice.nr_tids)
		s->opts.agent = KPROF_AGENT_NONE; /* which reports of all threads */
	if (opts->choice.nr_tids)
		s->opts.children = KPROF_CHILDREN_NONE;
	raise_descriptor_limit();
	err = parts__new(s);
	if (err) {
		kprof_session_free(s);
		if (!kprof_error_cause()[0])
			error_set(err, NULL, "cannot begin a recording: %s", strerror(-err));
		return err;
	}
	*out = s;
	return 0;
}

void kprof_session_free(struct kprof_session *s)
{
	if (!s)
		return;
	spawn__abandon(&s->spawned);
	if (s->single && s->probes && recorder__window(s->recorder)->closed &&
	    probe_set__nr(s->probes))
		log_warn(NULL, "removing %zu single probes: this takes a while",
			 probe_set__nr(s->probes));
	parts__free(s);
	map64__free(&s->users);
	free(s);
}

/* ---- processes ---- */

static int add_target(struct kprof_session *s, pid_t pid, bool child)
{
	if (targets__find(s->targets, (uint32_t)pid))
		return 0;
	if (recorder__window(s->recorder)->open || s->prepared)
		return process__join(s, (uint32_t)pid, clock_mono_ns(), NULL);
	return process__add(s, (uint32_t)pid, child, clock_mono_ns());
}

int kprof_session_add_pid(struct kprof_session *s, pid_t pid)
{
	struct proc_info info;
	pid_t *children;
	size_t nr = 0;
	int err;

	error_clear();
	err = proc_info_read(pid, &info);
	if (err)
		return err;
	if (info.kernel_thread)
		return error_set(-EINVAL, "`kprof list` shows the processes that can be profiled",
				 "process %d is a kernel thread", pid);
	if (info.zombie)
		return error_set(-ESRCH, NULL, "process %d has exited already", pid);
	if (proc_is_32bit(pid) == 1)
		return error_set(-ENOEXEC, "kprof profiles 64-bit programs",
				 "process %d runs a 32-bit program", pid);
	err = add_target(s, pid, false);
	if (err || s->opts.children == KPROF_CHILDREN_NONE)
		return err;
	if (proc_descendants(&pid, 1, &children, &nr))
		return 0;
	for (size_t i = 0; i < nr && !err; i++)
		err = add_target(s, children[i], true);
	free(children);
	return err;
}

int kprof_session_spawn(struct kprof_session *s, char *const argv[], uid_t uid, gid_t gid,
			pid_t *pid)
{
	struct spawn_opts opts = {
		.argv = argv,
		.uid = uid,
		.gid = gid,
		.ignores = s->opts.spawn_ignores,
		.prepare = agents__set_environment,
		.arg = s->agents,
	};
	int err;

	error_clear();
	if (s->spawned.pid)
		return error_set_usage(-EINVAL, NULL, "a session starts one program");
	agents__warn_environment(s->agents);
	err = spawn__start(&s->spawned, &opts);
	if (err)
		return err;
	*pid = s->spawned.pid;
	return kprof_session_add_pid(s, *pid);
}

/* Records the threads that a target has already, and places its first probes. */
static int first_look(struct kprof_session *s, struct target *t)
{
	pid_t *tids;
	size_t nr = 0;
	int err = process__refresh(s, t);

	if (err || proc_threads((pid_t)t->pid, &tids, &nr))
		return err;
	for (size_t i = 0; i < nr && !err; i++)
		if (session_wants(s, (uint64_t)t->pid << 32 | (uint32_t)tids[i]) &&
		    !thread__of(s, t, (uint64_t)t->pid << 32 | (uint32_t)tids[i],
				recorder__window(s->recorder)->start_ns))
			err = -ENOMEM;
	free(tids);
	return err;
}

/*
 * Called before probes are placed: building unwind tables takes up to a second, in which events
 * would pile up in the rings.
 */
static int start_stacks(struct kprof_session *s)
{
	struct target *t;
	int err = s->machine ? machine__prepare(s) : 0;

	for (t = targets__first(s->targets); t && !err && !s->machine; t = t->hh.next)
		err = stacks__look(s->stacks, t);
	return err ? err : stacks__start(s->stacks);
}

/*
 * Places the first probes. While they are placed, the targets already pay for those that stand, and
 * nothing is recorded yet.
 */
static int look_at_all(struct kprof_session *s)
{
	struct target *t, *next;
	int nice = haste__begin(), err = 0;

	TARGETS_EACH (s->targets, t, next) {
		if (!err)
			err = first_look(s, t);
	}
	haste__end(nice);
	return err;
}

/* Of the threads that were chosen, each must be there. */
static int check_tids(const struct kprof_session *s)
{
	for (size_t i = 0; i < s->opts.choice.nr_tids; i++) {
		pid_t tid = s->opts.choice.tids[i];
		const struct target *t;
		char comm[PROC_COMM_BYTES];

		for (t = targets__first(s->targets); t; t = t->hh.next)
			if (!proc_thread_comm((pid_t)t->pid, tid, comm))
				break;
		if (!t)
			return error_set_usage(
				-ESRCH, "`kprof dump -p PID` shows its threads, with their numbers",
				"no process that is to be recorded has a thread %d", (int)tid);
	}
	return 0;
}

/* Is there something to start, which has not been started yet? */
static int check_start(const struct kprof_session *s)
{
	if (!recorder__window(s->recorder)->open && !s->steps_seen_ns &&
	    (targets__first(s->targets) || s->opts.all_processes || s->prepared))
		return check_tids(s);
	return error_set_usage(-EINVAL, "add a process first, and start once",
			       "the session has nothing to start");
}

/* All but the window. */
static int place_all(struct kprof_session *s)
{
	uint64_t begin_ns = clock_mono_ns();
	int err = s->opts.confine ? session__confine(s->single) : 0;

	if (err)
		return err;
	recorder__prepare(s->recorder, begin_ns);
	overhead__calibrate(s->overhead, s->spawned.pid);
	err = attacher__start_tasks(s->attacher);
	if (!err && s->joining)
		err = joins__prepare(s);
	if (!err && s->opts.children != KPROF_CHILDREN_NONE)
		err = processes__adopt(s, begin_ns);
	if (!err)
		err = start_stacks(s);
	if (!err && !s->machine)
		err = look_at_all(s);
	if (!err) /* where return sites are learnt of what is inside, too */
		err = inside__tend(s->inside, clock_mono_ns());
	if (!err && !s->opts.samples_only)
		err = agents__start(s->agents);
	/* a spawned program has not begun yet */
	if (!err && !s->spawned.pid && !s->opts.samples_only)
		err = loop__warm_up(s);
	if (!err) /* where calls of modules can be seen, from the first event on */
		err = modules_seen__tend(s->modules, clock_mono_ns());
	s->attach_ns = clock_mono_ns() - begin_ns;
	s->next_scan_ns = begin_ns + s->attach_ns + NSEC_PER_SEC;
	s->idle_ms = FIRST_SLEEP_MS;
	return err;
}

int kprof_session_prepare(struct kprof_session *s)
{
	int err;

	error_clear();
	if (s->prepared)
		return error_set_usage(-EINVAL, "prepare once", "the session is prepared already");
	err = check_start(s);
	if (!err)
		err = place_all(s);
	s->prepared = !err;
	return err;
}

int kprof_session_start(struct kprof_session *s)
{
	uint64_t start_ns;
	int err;

	error_clear();
	err = check_start(s);
	if (!err && !s->prepared)
		err = place_all(s);
	if (err)
		return err;
	start_ns = s->waits ? waits__open(s->waits) : clock_mono_ns();
	if (s->prepared) { /* what has come until now is passed over, and does not count */
		err = rotate__drain(s, &start_ns);
		if (!err)
			err = account__forget(s);
	}
	if (s->steps)
		schedule__start(s);
	else if (!err)
		err = open_window(s, start_ns);
	if (err)
		return err;
	hints__without_probes(s);
	return spawn__release(&s->spawned);
}

int kprof_session_poll(struct kprof_session *s, int timeout_ms)
{
	uint64_t now_ns = clock_mono_ns();
	uint64_t until_ns = now_ns + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NSEC_PER_MSEC;
	/* the call before ended with a look: another one right after it would only cost */
	bool looked = timeout_ms > 0 && now_ns < s->looked_ns + LOOKED_NS;

	error_clear();
	for (;; looked = false) {
		int64_t left_ns;
		int n = looked ? 0 : loop__look(s);

		if (n < 0)
			return n;
		/* the steps are recorded; or all targets have exited */
		if (schedule__is_over(s))
			return 1;
		if (!targets__first(s->targets) && !s->opts.all_processes)
			return 1;
		now_ns = clock_mono_ns();
		left_ns = (int64_t)until_ns - (int64_t)now_ns;
		if (left_ns <= 0) {
			s->looked_ns = now_ns;
			return 0;
		}
		/* a part of a ms, too: who polls until a time comes would do nothing else then */
		loop__pause(s, (left_ns - 1) / (int64_t)NSEC_PER_MSEC + 1);
	}
}

int kprof_session_checkpoint(struct kprof_session *s)
{
	int err;

	error_clear();
	err = stacks__names_so_far(s->stacks);
	return err ? err : recorder__flush(s->recorder);
}

static void detach(struct kprof_session *s)
{
	uint64_t begin_ns = clock_mono_ns();

	probe_set__detach(s->probes);
	attacher__stop_tasks(s->attacher);
	s->detach_ns = clock_mono_ns() - begin_ns;
	probe_set__remember(s->probes);
}

/*
 * Records the processes and threads that still live, by the names that they have now. Those that
 * exited were recorded at their exit.
 */
static int record_survivors(struct kprof_session *s)
{
	struct target *t;
	struct thread *th;
	int err = 0;

	for (t = targets__first(s->targets); t && !err; t = t->hh.next)
		err = process__survived(s, t);

	for (th = threads__first(s->threads); th && !err; th = th->hh.next) {
		char comm[PROC_COMM_BYTES];

		if (!proc_thread_comm((pid_t)th->target->pid, (pid_t)(uint32_t)th->pid_tgid, comm))
			th->comm = recorder__string(s->recorder, comm);
		err = thread__record(s, th, 0);
	}
	return err;
}

int kprof_session_stop(struct kprof_session *s)
{
	const struct record_window *window = recorder__window(s->recorder);
	int err, n, agents_err, overhead_err;
	uint64_t now_ns;

	error_clear();
	if ((!window->open && !s->steps_seen_ns) || window->closed)
		return error_set_usage(-EINVAL, NULL, "the session is not running");
	err = schedule__stop(s);
	if (err)
		return err;
	now_ns = s->waits ? waits__close(s->waits) : clock_mono_ns();
	recorder__close_window(s->recorder, window->end_ns ? window->end_ns : now_ns);
	stacks__stop(s->stacks);
	if (s->alive) /* what comes is the end */
		recorder__only_tables(s->recorder, UINT64_MAX);
	attacher__stop(s->attacher);
	overhead_err = overhead__close(s->overhead);
	agents_err = agents__stop(s->agents);
	attacher__stop_batches(s->attacher);
	/*
	 * Removing a single uprobe waits for the kernel, for a tenth of a second or more. So the
	 * capture is finished first, and only the records that are being written are waited for;
	 * kprof_session_free() removes the probes.
	 */
	if (s->single)
		usleep(IN_FLIGHT_US);
	else
		detach(s);
	n = loop__drain_rest(s);
	err = n < 0 ? n : agents_err ? agents_err : overhead_err;
	if (!err)
		err = agents__account(s->agents);
	if (!err && s->observed)
		err = observed__finish(s);
	if (!err)
		err = waits__finish(s->waits);
	if (!err)
		err = spans__finish(s->spans);
	if (!err)
		err = renames__tend(s, UINT64_MAX);
	if (!err && s->machine)
		err = machine__close(s);
	if (!err)
		err = record_survivors(s);
	if (!err)
		err = thread_names__last(s->thread_names);
	if (!err && s->alive)
		err = alive__prepare(s->alive);
	if (!err && s->alive)
		err = session_alive__put(s);
	if (!err)
		err = stacks__finish(s->stacks);
	if (!err && s->machine)
		err = machine__finish(s);
	if (!err)
		err = account__end(s);
	if (err) {
		recorder__salvage(s->recorder);
		return err;
	}
	return recorder__finish(s->recorder, window->end_ns);
}
