// SPDX-License-Identifier: BSD-2-Clause
/* The processes that are recorded: their libraries, and the probes placed in them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/agent.h"
#include "capture/event/marks.h"
#include "capture/session/session.h"
#include "capture/sample/stacks.h"
#include "util/error.h"
#include "util/util.h"

#define MAX_STALE_LINKS 256

struct target *session__target(struct kprof_session *s, uint32_t pid)
{
	struct target *t;

	HASH_FIND(hh, s->targets, &pid, sizeof(pid), t);
	return t;
}

static void free_maps(struct target *t)
{
	proc_maps__free(t->maps);
	free(t->exe);
	t->maps = NULL;
	t->exe = NULL;
}

/* What was known of the program that the process ran. */
static void forget_image(struct kprof_session *s, struct target *t)
{
	sites__forget(s, t);
	names__forget(t);
	calls__forget(t);
	stacks__forget(s, t);
	thread_names__forget(t);
	free_maps(t);
}

void target__free(struct kprof_session *s, struct target *t)
{
	HASH_DEL(s->targets, t);
	agent__free(s, t);
	forget_image(s, t);
	free(t->files);
	free(t);
}

int target__record(struct kprof_session *s, const struct target *t)
{
	struct store_record r = {
		.type = STORE_PROCESS,
		.process =
			{
				.pid = t->pid,
				.ppid = t->ppid,
				.ns_pid = t->ns_pid == t->pid ? 0 : t->ns_pid,
				.comm = t->comm,
				.cmdline = t->cmdline,
				.start_ns = t->start_ns,
				.exit_ns = t->exit_ns,
			},
	};

	return store_writer__put(s->store, &r);
}

/* The value of one variable in an environment block (NUL-separated, NUL-terminated); NULL. */
static const char *env_value(const char *block, size_t bytes, const char *name)
{
	size_t len = strlen(name);

	for (const char *p = block; p < block + bytes; p += strlen(p) + 1)
		if (!strncmp(p, name, len) && p[len] == '=')
			return p + len + 1;
	return NULL;
}

static bool env_number(const char *block, size_t bytes, const char *name, long *out)
{
	const char *value = env_value(block, bytes, name);
	char *end;

	if (!value || !*value)
		return false;
	*out = strtol(value, &end, 10);
	return !*end && *out >= 0;
}

/* Which rank of how many, as torchrun and its like tell their workers: HTA and the like want it. */
static int read_rank(struct kprof_session *s, const struct target *t)
{
	char path[64], key[64], json[128];
	long rank, world;
	char *block;
	size_t bytes;
	bool known;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/environ", t->pid);
	if (read_file(path, 1 << 20, &block, &bytes)) /* another user's, or gone */
		return 0;
	known = env_number(block, bytes, "RANK", &rank) &&
		env_number(block, bytes, "WORLD_SIZE", &world);
	free(block);
	if (!known)
		return 0;
	snprintf(key, sizeof(key), "distributed.%u", t->pid);
	snprintf(json, sizeof(json), "{\"rank\":%ld,\"world_size\":%ld}", rank, world);
	err = session__meta(s, key, json);
	/* A file of several processes is named after the first that was asked for. */
	if (!err && !s->rank_known)
		err = session__meta(s, "distributed", json);
	s->rank_known = true;
	return err;
}

static void read_identity(struct kprof_session *s, struct target *t)
{
	struct proc_info info;
	char *cmdline;

	if (proc_info_read((pid_t)t->pid, &info))
		return;
	t->ppid = (uint32_t)info.ppid;
	t->ns_pid = (uint32_t)info.ns_pid;
	t->start_ticks = info.start_ticks;
	t->comm = store_writer__string(s->store, info.comm, strlen(info.comm));
	if (proc_cmdline((pid_t)t->pid, &cmdline))
		return;
	t->cmdline = store_writer__string(s->store, cmdline, strlen(cmdline));
	free(cmdline);
}

int target__new(struct kprof_session *s, uint32_t pid, uint32_t ppid, bool child, uint64_t time_ns,
		struct target **out)
{
	struct target *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->pid = t->ns_pid = pid;
	t->ppid = ppid;
	t->child = child;
	t->start_ns = time_ns;
	HASH_ADD(hh, s->targets, pid, sizeof(t->pid), t);
	if (!t->hh.tbl) {
		free(t);
		return -ENOMEM;
	}
	err = attacher__add_target(s->attacher, pid);
	if (err &&
	    child) /* too many at once: probes work, its forks and its exit are not heard of */
		err = 0;
	if (err)
		return error_set(err, NULL, "cannot tell the kernel about process %u: %s", pid,
				 strerror(-err));
	read_identity(s, t);
	s->nr_processes++;
	*out = t;
	err = target__record(s, t);
	return err ? err : read_rank(s, t);
}

static int read_maps(struct target *t)
{
	uint64_t now_ns = clock_mono_ns();
	struct proc_maps *maps;
	int err = proc_maps__read((pid_t)t->pid, &maps);

	if (err)
		return err;
	free_maps(t);
	t->maps = maps;
	if (proc_exe((pid_t)t->pid, &t->exe))
		t->exe = NULL;
	t->maps_ns = now_ns;
	return 0;
}

const struct proc_map *target__known_map(struct kprof_session *s, const struct target *t,
					 uint64_t addr)
{
	const struct proc_map *map = t->maps ? proc_maps__find(t->maps, addr) : NULL;
	const struct target *parent;

	if (map || !t->forked)
		return map;
	/* It may have ended before its mappings, or all of them, were read: they began as these. */
	parent = session__target(s, t->ppid);
	return parent && parent->maps ? proc_maps__find(parent->maps, addr) : NULL;
}

const struct proc_map *target__map(struct kprof_session *s, struct target *t, uint64_t addr)
{
	const struct proc_map *map = target__known_map(s, t, addr);

	/* What is not in mappings newer than the record that told of it will not be found. */
	if (map || t->maps_ns > s->record_ns || read_maps(t))
		return map;
	return proc_maps__find(t->maps, addr);
}

/* A leader that has left its threads behind is a zombie too, but they live. */
bool target__has_ended(const struct target *t)
{
	struct proc_info info;
	int err = proc_info_read((pid_t)t->pid, &info);

	if (err)
		return err == -ESRCH;
	return (info.zombie && info.nr_threads <= 1) ||
	       (t->start_ticks && info.start_ticks != t->start_ticks);
}

/* On its way out: it may have been so while its files were looked at, and some were not found for that reason. */
static bool has_lost_its_memory(const struct target *t)
{
	struct proc_info info;
	char *exe = NULL;
	int err = proc_exe((pid_t)t->pid, &exe);

	free(exe);
	if (err != -ESRCH)
		return false;
	/* A leader that has ended before its threads has none either. */
	return proc_info_read((pid_t)t->pid, &info) || !info.zombie || info.nr_threads <= 1;
}

int target__refresh(struct kprof_session *s, struct target *t)
{
	bool dirty = t->maps_dirty;
	int err;

	if (s->stopped) /* the last records are being read: nothing is placed any more */
		return 0;
	/* Where only stacks are wanted, those look at the mappings, and nobody else: reading them takes a millisecond. */
	err = s->opts.samples_only && t->stacks && t->maps ? 0 : read_maps(t);
	if (err) /* exiting: its exit event will come; not ours to read: only its threads are seen */
		return err == -ESRCH || t->child || s->started ? 0 : err;
	t->maps_dirty = false;
	err = s->opts.samples_only ? 0 : target__tend_files(s, t);
	if (dirty && !s->opts.samples_only && has_lost_its_memory(t))
		t->maps_dirty = true;
	if (!t->maps_dirty) {
		t->dirty_ns = 0;
		t->looked_ns = t->maps_ns;
	}
	if (!err)
		err = stacks__look(s, t);
	return err || s->opts.samples_only ? err : agent__look(s, t);
}

int target__survived(struct kprof_session *s, struct target *t)
{
	int err = target__lost(s, t, s->end_ns);

	if (err || !t->maps_dirty || t->shares_memory || s->opts.samples_only)
		return err;
	if (read_maps(t))
		return account__gap(
			s, t->pid, "libraries mapped shortly before the recording ended",
			"probes could not be placed in them any more", t->dirty_ns, s->end_ns);
	return target__tend_files(s, t);
}

int targets__on_fork(struct kprof_session *s, struct target *parent,
		     const struct kprof_wire_task *e)
{
	struct target *t;
	int err;

	if (s->opts.children == KPROF_CHILDREN_NONE || session__target(s, e->child_pid))
		return 0;
	err = target__new(s, e->child_pid, parent->pid, true, e->h.time_ns, &t);
	if (err)
		return err;
	/*
	 * A vfork's child runs in its parent's memory, where the parent's probes stand, until it
	 * executes a program: nothing is placed for it before that.
	 */
	t->shares_memory = e->h.id == KPROF_WIRE_FORK_SHARES_MEMORY;
	t->forked = !t->shares_memory;
	if (t->forked && s->opts.children != KPROF_CHILDREN_EXACT) {
		t->maps_dirty = true; /* until its probes stand; it may end before */
		t->dirty_ns = e->h.time_ns;
	}
	return t->shares_memory ? 0 : target__refresh(s, t);
}

/*
 * Removing probes waits for the kernel, some 50 ms, and nobody waits for those of an image that is gone:
 * they are put aside and go with the others at the end, or when there are many.
 */
static void retire_links(struct kprof_session *s, struct target *t)
{
	struct attach_links *stale = &s->stale;

	attach_links_move(stale, &t->links);
	if (stale->nr > MAX_STALE_LINKS)
		attach_links_close(&stale, 1);
}

int targets__on_exec(struct kprof_session *s, struct target *t, const struct kprof_wire_task *e)
{
	int err = agent__gone(s, t);

	if (err)
		return err;
	/*
	 * Probes belong to the process and the file: where the new image maps a file that has some,
	 * the kernel places them as it is mapped, the linker's hook among them. Unless another
	 * thread than the first called exec: they are tied to that first one.
	 */
	if (e->h.id != t->pid || t->shares_memory) {
		retire_links(s, t);
		t->linker = t->shares_memory = false;
		t->nr_files = 0;
	}
	forget_image(s, t);
	thread_names__want(t, e->h.time_ns);
	t->forked = false;
	t->looked_ns = 0;
	read_identity(s, t);
	t->dirty_ns = e->h.time_ns;
	err = target__record(s, t);
	if (!err)
		err = target__refresh(s, t);
	/* What the linker maps before its hook stands is found by looking again (targets__tend). */
	t->maps_dirty = true;
	t->dirty_ns = e->h.time_ns;
	return err;
}

int targets__on_exit(struct kprof_session *s, struct target *t, uint64_t time_ns)
{
	int err = agent__gone(s, t); /* what it tells of are calls of its threads */

	if (!err)
		err = session__threads_end(s, t, time_ns);
	t->exit_ns = time_ns;
	attacher__remove_target(s->attacher, t->pid);
	retire_links(s, t);
	if (!err)
		err = target__record(s, t);
	if (!err)
		err = target__lost(s, t, time_ns);
	if (!err && t->maps_dirty && s->started && !s->opts.samples_only)
		err = account__gap(s, t->pid, "libraries mapped shortly before the process ended",
				   "it ended before probes could be placed in them", t->dirty_ns,
				   time_ns);
	target__free(s, t);
	return err;
}

/* How often processes are looked at even though nothing was heard of them. */
#define SCAN_NS (NSEC_PER_SEC)

/* Descendants that nobody told of: forked before anybody listened, or when the rings were full. */
int targets__adopt(struct kprof_session *s, uint64_t since_ns)
{
	pid_t *pids, *children = NULL;
	struct target *t;
	size_t nr = 0, nr_children = 0;
	int err = 0;

	pids = calloc(HASH_COUNT(s->targets) + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	for (t = s->targets; t; t = t->hh.next)
		pids[nr++] = (pid_t)t->pid;
	if (!proc_descendants(pids, nr, &children, &nr_children))
		for (size_t i = 0; i < nr_children && !err; i++)
			if (!session__target(s, (uint32_t)children[i]))
				err = target__new(s, (uint32_t)children[i], 0, true, since_ns, &t);
	free(pids);
	free(children);
	return err;
}

/* Records of forks and exits were lost: looks itself for what they would have told. */
static int make_up_for_lost_tasks(struct kprof_session *s, uint64_t now_ns)
{
	struct kprof_wire_count count;
	int err = attacher__counts(s->attacher, KPROF_WIRE_SOURCE_TASKS, &count);

	if (err || count.dropped == s->tasks_dropped)
		return err;
	s->tasks_dropped = count.dropped;
	err = session__sweep_threads(s, now_ns);
	if (!err && s->opts.children != KPROF_CHILDREN_NONE)
		err = targets__adopt(s, now_ns - SCAN_NS);
	return err;
}

int targets__tend(struct kprof_session *s, uint64_t now_ns)
{
	bool scan = now_ns >= s->next_scan_ns;
	struct target *t, *tmp;
	int err = 0;

	if (scan) {
		s->next_scan_ns = now_ns + SCAN_NS;
		err = make_up_for_lost_tasks(s, now_ns);
	}
	HASH_ITER (hh, s->targets, t, tmp) {
		if (err)
			break;
		if (scan && target__has_ended(t)) {
			/* Its last records may still lie in the rings: they have until the next scan. */
			if (t->ended)
				err = targets__on_exit(s, t, now_ns);
			else
				t->ended = true;
		} else if ((t->maps_dirty || scan) && !t->shares_memory && !t->ended)
			err = target__refresh(s, t);
	}
	return err;
}
