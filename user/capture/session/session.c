// SPDX-License-Identifier: BSD-2-Clause
/* The public calls of a recording: configure, start, poll, stop. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "capture/agent/agent.h"
#include "capture/probe/features.h"
#include "capture/event/marks.h"
#include "capture/sample/stacks.h"
#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

/* Without uprobe_multi each probe costs a descriptor, and milliseconds to remove. */
#define DEFAULT_MAX_SINGLE_PROBES 160
#define IN_FLIGHT_US 10000
#define FLUSH_NS NSEC_PER_SEC
#define DRAIN_NS (100 * NSEC_PER_MSEC) /* then it is looked whether there is something else to do */
#define WARM_UP_NS (100 * NSEC_PER_MSEC)
#define WARM_UP_QUIET_NS (20 * NSEC_PER_MSEC)
#define MIN_SLEEP_MS 1
#define MAX_SLEEP_MS 20
#define SAMPLES_SLEEP_MS 20

static void raise_descriptor_limit(void)
{
	struct rlimit r;

	if (!getrlimit(RLIMIT_NOFILE, &r)) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static int load(struct kprof_session *s)
{
	struct attacher_opts attach = {
		.single = s->single,
		.check_target = s->opts.children == KPROF_CHILDREN_EXACT,
		.follow_children = s->opts.children != KPROF_CHILDREN_NONE,
		.max_probes = KPROF_WIRE_MAX_PROBES,
		.no_probes = s->opts.samples_only,
		.stacks = s->opts.sample_hz || s->opts.with_stack,
		.entry_stacks = s->opts.with_stack,
		.stack_rate = s->opts.stack_rate,
	};
	uint64_t each;
	int err;

	rings_layout((int)sysconf(_SC_NPROCESSORS_CONF), s->opts.ring_bytes, &attach.nr_rings,
		     &each);
	s->ring_bytes = each;
	err = attacher__new(&attach, &s->attacher);
	if (!err)
		err = rings__new(attacher__rings_fd(s->attacher), attach.nr_rings, each, &s->rings);
	return err;
}

static int open_store(struct kprof_session *s)
{
	struct outfile_opts owner = {
		.set_owner = s->opts.set_owner,
		.uid = s->opts.capture_uid,
		.gid = s->opts.capture_gid,
	};
	int err = store_writer__open(s->opts.capture_path, &owner, &s->store);
	uint32_t index;

	if (!err) /* KPROF_WIRE_SOURCE_SITES, _TASKS */
		err = session__source(s, "return_sites", &index);
	if (!err)
		err = session__source(s, "tasks", &index);
	return err ? err : session__spans_new(s);
}

int kprof_session_new(const struct kprof_session_opts *opts, struct kprof_session **out)
{
	struct kprof_session *s;
	int err;

	error_clear();
	if (opts->sz != sizeof(*opts) || !opts->capture_path)
		return error_set_usage(-EINVAL, "set .sz and .capture_path",
				       "the session's options are not filled in");
	err = features_require_attach();
	if (err)
		return err;
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_set(-ENOMEM, NULL, "no memory for a session");
	s->opts = *opts;
	s->spawn_pipe = s->spawn_error = -1;
	s->single = opts->no_multi || !features_get()->uprobe_multi;
	s->filter = (struct plan_filter){
		.ops_matched = &s->ops_matched,
		.ops = opts->ops,
		.nr_ops = opts->nr_ops,
		.exclude = opts->exclude,
		.nr_exclude = opts->nr_exclude,
		.mark_common = s->single,
		.types = opts->types,
	};
	s->single_left =
		opts->max_single_probes ? opts->max_single_probes : DEFAULT_MAX_SINGLE_PROBES;
	raise_descriptor_limit();
	err = open_store(s);
	if (!err)
		err = agents__new(s);
	if (!err)
		err = load(s);
	if (!err)
		err = stacks__new(s);
	if (err) {
		kprof_session_free(s);
		return err;
	}
	*out = s;
	return 0;
}

static int add_target(struct kprof_session *s, pid_t pid, bool child)
{
	struct target *t;

	if (session__target(s, (uint32_t)pid))
		return 0;
	return target__new(s, (uint32_t)pid, 0, child, clock_mono_ns(), &t);
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

/* Threads and frameworks of the targets that are there before anything is recorded. */
static int first_look(struct kprof_session *s, struct target *t)
{
	struct proc_thread *threads;
	size_t nr = 0;
	int err = target__refresh(s, t);

	if (err || proc_threads((pid_t)t->pid, &threads, &nr))
		return err;
	for (size_t i = 0; i < nr && !err; i++)
		if (!session__thread(s, t, (uint64_t)t->pid << 32 | (uint32_t)threads[i].tid,
				     s->start_ns))
			err = -ENOMEM;
	free(threads);
	return err;
}

/* Before probes are placed: tables take up to a second, in which events would pile up. */
static int start_stacks(struct kprof_session *s)
{
	struct target *t;
	int err = 0;

	for (t = s->targets; t && !err; t = t->hh.next)
		err = stacks__look(s, t);
	return err ? err : stacks__start(s);
}

static bool has_probes(const struct target *t)
{
	for (size_t i = 0; i < t->nr_files; i++)
		if (t->files[i].marked || file__nr_begins(t->files[i].file))
			return true;
	return false;
}

static bool has_framework(const struct target *t)
{
	for (size_t i = 0; i < t->nr_files; i++)
		if (t->files[i].file->by_name | t->files[i].file->embedded)
			return true;
	return false;
}

static void warn_without_probes(const struct target *t)
{
	char names[256];

	plan_library_names(names, sizeof(names));
	if (has_framework(t))
		log_warn(
			"--ops, --exclude, --types and --activities choose; without them all there is is recorded",
			"process %u has nothing of what was asked for: only its threads are recorded",
			t->pid);
	else
		log_warn(
			"`kprof list` shows the processes that have one; a library that is loaded later is seen",
			"process %u maps no known framework (looked for %s): only its threads are recorded",
			t->pid, names);
}

static void warn_without_framework(struct kprof_session *s)
{
	struct target *t, *tmp;

	HASH_ITER (hh, s->targets, t, tmp)
		if (!s->opts.samples_only && !t->child && !has_probes(t) &&
		    (pid_t)t->pid != s->spawned)
			warn_without_probes(t);
	if (s->single && s->single_cut)
		log_warn(
			"choose which with --ops, or allow more with --max-probes: each takes time to remove",
			"%s: %zu of %zu probes are placed",
			s->opts.no_multi ? "single uprobes"
					 : "this kernel has no uprobe_multi (6.6 and later have)",
			s->nr_probes, s->nr_probes + s->single_cut);
}

/*
 * Drains what is there, learning on the way: a return address that is met often should not wait for the
 * end of a long drain. Returns records read.
 */
static int drain(struct kprof_session *s)
{
	uint64_t until_ns = clock_mono_ns() + DRAIN_NS;
	int n, all = 0;

	do {
		n = events_drain(s, false);
		if (n < 0)
			return n;
		all += n;
		if (s->nr_pending) {
			int err = sites__learn(s);

			if (err)
				return err;
			s->idle_ms = MIN_SLEEP_MS;
		}
	} while (n == EVENTS_DRAIN_RECORDS && clock_mono_ns() < until_ns);
	return all;
}

/*
 * Where calls return to is learnt from calls: a running loop shows most of it in its first moments, and those
 * come before the window. For as long as new ones keep coming, but not for long.
 */
static int warm_up(struct kprof_session *s)
{
	uint64_t now_ns = clock_mono_ns();
	uint64_t until_ns = now_ns + WARM_UP_NS, quiet_ns = now_ns + WARM_UP_QUIET_NS;
	int n = 0;

	while (n >= 0 && now_ns < until_ns && now_ns < quiet_ns) {
		size_t known = s->nr_returns;

		rings__wait(s->rings, MIN_SLEEP_MS);
		n = drain(s);
		now_ns = clock_mono_ns();
		if (s->nr_returns > known)
			quiet_ns = now_ns + WARM_UP_QUIET_NS;
	}
	return n < 0 ? n : 0;
}

int kprof_session_start(struct kprof_session *s)
{
	uint64_t begin_ns = clock_mono_ns();
	struct target *t, *tmp;
	int err;

	error_clear();
	if (s->started || !s->targets)
		return error_set_usage(-EINVAL, "add a process first, and start once",
				       "the session has nothing to start");
	s->start_ns = begin_ns;
	err = attacher__start_tasks(s->attacher);
	if (!err && s->opts.children != KPROF_CHILDREN_NONE)
		err = targets__adopt(s, begin_ns);
	if (!err)
		err = start_stacks(s);
	HASH_ITER (hh, s->targets, t, tmp) {
		if (!err)
			err = first_look(s, t);
	}
	if (!err && !s->opts.samples_only)
		err = agents__start(s);
	if (!err && !s->spawned && !s->opts.samples_only) /* that one has not begun */
		err = warm_up(s);
	if (err)
		return err;
	s->start_ns = clock_mono_ns(); /* from here on everything is seen */
	s->attach_ns = s->start_ns - begin_ns;
	err = account__begin(s);
	if (err)
		return err;
	spans__open_window(s->spans, s->start_ns);
	agents__opened(s);
	s->started = true;
	s->next_scan_ns = s->start_ns + NSEC_PER_SEC;
	s->idle_ms = MIN_SLEEP_MS;
	warn_without_framework(s);
	return spawn__release(s);
}

static int look(struct kprof_session *s)
{
	int n = drain(s);
	uint64_t now_ns = clock_mono_ns();
	int err = n < 0 ? n : targets__tend(s, now_ns);

	if (!err)
		err = agents__tend(s, now_ns);
	if (!err)
		err = stacks__tend(s, now_ns);
	if (!err)
		err = thread_names__tend(s, now_ns);
	if (!err && now_ns >= s->next_flush_ns) {
		err = store_writer__flush(s->store);
		s->next_flush_ns = now_ns + FLUSH_NS;
	}
	return err ? err : n;
}

/*
 * Sleeps as long as the rings can take it: briefly while there is something to learn, longer while events
 * flow and the rings stay nearly empty, until the next event when there are none.
 */
static void pause_between(struct kprof_session *s, uint64_t bytes, int64_t left_ms)
{
	/* One by one they would wake us a hundred times a second and CPU, for nothing. Processes that come and go do. */
	if (s->opts.samples_only) {
		attacher__wake_me(s->attacher);
		rings__wait(s->rings, left_ms < SAMPLES_SLEEP_MS ? (int)left_ms : SAMPLES_SLEEP_MS);
		return;
	}
	if (!bytes) {
		s->idle_ms = MIN_SLEEP_MS;
		if (agents__pending(s) && left_ms > MIN_SLEEP_MS)
			left_ms = MIN_SLEEP_MS;
		attacher__wake_me(s->attacher);
		/* A record that is being written holds the others back: it needs its CPU. */
		rings__wait(s->rings, rings__empty(s->rings) ? (int)left_ms : 1);
		return;
	}
	if (bytes > s->ring_bytes / 8) /* a batch of an agent's is as long as a hundred events */
		s->idle_ms /= 2;
	else if (s->idle_ms < MAX_SLEEP_MS)
		s->idle_ms *= 2;
	if (s->idle_ms < 1)
		s->idle_ms = 1;
	rings__wait(s->rings, left_ms < s->idle_ms ? (int)left_ms : s->idle_ms);
}

int kprof_session_poll(struct kprof_session *s, int timeout_ms)
{
	uint64_t until_ns =
		clock_mono_ns() + (uint64_t)(timeout_ms > 0 ? timeout_ms : 0) * NSEC_PER_MSEC;

	error_clear();
	for (;;) {
		uint64_t before = rings__read_bytes(s->rings);
		int64_t left_ms;
		int n = look(s);

		if (n < 0)
			return n;
		if (!s->targets) /* all have exited */
			return 1;
		left_ms = ((int64_t)until_ns - (int64_t)clock_mono_ns()) / (int64_t)NSEC_PER_MSEC;
		if (left_ms <= 0)
			return 0;
		pause_between(s, rings__read_bytes(s->rings) - before, left_ms);
	}
}

void kprof_session_stats(const struct kprof_session *s, struct kprof_session_stats *out)
{
	*out = (struct kprof_session_stats){
		.elapsed_ns = s->started ? clock_mono_ns() - s->start_ns : 0,
		.events = s->events,
		.dropped = s->dropped,
		.missed = s->missed,
		.written_bytes = s->store ? store_writer__bytes(s->store) : 0,
		.processes = s->nr_processes,
		.threads = s->nr_threads,
		.sites = (uint32_t)s->nr_sites,
		.attach_ns = s->attach_ns,
		.detach_ns = s->detach_ns,
	};
	stacks__stats(s, out);
	for (uint32_t i = 0; i < s->nr_sources && !s->stopped; i++) {
		struct kprof_wire_count count;

		if (i == 0)
			out->dropped = 0;
		if (!attacher__counts(s->attacher, i, &count))
			out->dropped += count.dropped;
	}
}

static void add_links(struct attach_links **sets, size_t *nr, struct attach_links *links)
{
	if (sets)
		sets[(*nr)++] = links;
	else
		attach_links_close(&links, 1);
}

static void detach(struct kprof_session *s)
{
	uint64_t begin_ns = clock_mono_ns();
	struct attach_links **sets;
	struct target *t;
	struct file *f;
	size_t nr = 0;

	/* Without memory for the list they go one by one, which takes longer. */
	sets = calloc(HASH_COUNT(s->targets) + HASH_COUNT(s->files) + 1, sizeof(*sets));
	add_links(sets, &nr, &s->stale);
	for (t = s->targets; t; t = t->hh.next)
		add_links(sets, &nr, &t->links);
	for (f = s->files; f; f = f->hh.next)
		add_links(sets, &nr, &f->links);
	if (sets)
		attach_links_close(sets, nr);
	free(sets);
	if (s->attacher)
		attacher__stop_tasks(s->attacher);
	s->detach_ns = clock_mono_ns() - begin_ns;
}

/* Names of threads and processes as they are now; who has exited was recorded then. */
static int record_survivors(struct kprof_session *s)
{
	struct target *t;
	struct thread *th;
	int err = 0;

	for (t = s->targets; t && !err; t = t->hh.next)
		err = target__survived(s, t);

	for (th = s->threads; th && !err; th = th->hh.next) {
		char comm[PROC_COMM_BYTES];

		if (!proc_thread_comm((pid_t)th->target->pid, (pid_t)(uint32_t)th->pid_tgid, comm))
			th->name = store_writer__string(s->store, comm, strlen(comm));
		err = session__thread_record(s, th, 0);
	}
	return err;
}

/* A program that was interrupted in the middle of a record may still have to finish it. */
#define MAX_LAST_LOOKS 200

static int drain_rest(struct kprof_session *s)
{
	int n, looks = 0;

	do {
		n = events_drain(s, true);
		if (n == 0 && !rings__empty(s->rings))
			rings__wait(s->rings, 1);
	} while (n > 0 || (n == 0 && !rings__empty(s->rings) && looks++ < MAX_LAST_LOOKS));
	return n;
}

int kprof_session_stop(struct kprof_session *s)
{
	int err, n, agents_err;

	error_clear();
	if (!s->started || s->stopped)
		return error_set_usage(-EINVAL, NULL, "the session is not running");
	s->stopped = true;
	s->end_ns = clock_mono_ns();
	stacks__stop(s);
	attacher__stop(s->attacher);
	agents_err = agents__stop(s);
	attacher__stop_batches(s->attacher);
	/*
	 * One by one each removal waits for the kernel, a tenth of a second and more: the capture is
	 * finished before, when what the programs had begun is in the rings.
	 */
	if (s->single)
		usleep(IN_FLIGHT_US);
	else
		detach(s);
	n = drain_rest(s);
	err = n < 0 ? n : agents_err;
	if (!err)
		err = agents__account(s);
	if (!err)
		err = spans__finish(s->spans);
	if (!err)
		err = record_survivors(s);
	if (!err)
		err = thread_names__last(s);
	if (!err)
		err = stacks__finish(s);
	if (!err)
		err = account__end(s);
	if (err) {
		store_writer__salvage(s->store);
		s->store = NULL;
		return err;
	}
	err = store_writer__finish(s->store, s->end_ns);
	s->store = NULL;
	return err;
}

void kprof_session_free(struct kprof_session *s)
{
	struct target *t, *tmp_t;
	struct thread *th, *tmp_th;
	struct file *f, *tmp_f;

	if (!s)
		return;
	spawn__abandon(s);
	if (s->single && s->stopped && s->nr_probes)
		log_warn(NULL, "removing %zu single probes: this takes a while", s->nr_probes);
	agents__free(s);
	detach(s);
	store_writer__discard(s->store);
	HASH_ITER (hh, s->threads, th, tmp_th) {
		HASH_DEL(s->threads, th);
		free(th);
	}
	HASH_ITER (hh, s->targets, t, tmp_t)
		target__free(s, t);
	HASH_ITER (hh, s->files, f, tmp_f) {
		HASH_DEL(s->files, f);
		file__free(f);
	}
	for (size_t i = 0; i < s->nr_probes; i++) {
		free(s->probes[i].name);
		free(s->probes[i].overload);
	}
	free(s->probes);
	free(s->pending);
	map64__free(&s->names);
	marks__free(s);
	spans__free(s->spans);
	stacks__free(s);
	rings__free(s->rings);
	attacher__free(s->attacher);
	free(s);
}
