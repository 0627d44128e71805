// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes that begin, execute another program, and end: what each part of the recording must do
 * then.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

/* Makes each part forget what it knows of the program that the process ran. */
static void forget_program(struct kprof_session *s, struct target *t)
{
	probe_set__forget_returns(s->probes, t);
	inputs__forget(s->inputs, t);
	namer__forget(s->namer, t);
	calls__forget(s->calls, t);
	collectives__forget(s->collectives, t);
	memory__forget(s->memory, t);
	modules_seen__forget(s->modules, t);
	inside__forget(s->inside, t);
	stacks__forget(s->stacks, t);
	thread_names__forget(s->thread_names, t);
	target__forget_maps(t);
}

int process__record(struct kprof_session *s, struct target *t)
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

	struct store_record how = {
		.type = STORE_PROCESS_EXIT,
		.process_exit = {.pid = t->pid, .start_ns = t->start_ns, .status = t->exit_status},
	};
	int err = 0;

	/* of all processes, those that were sampled */
	if (s->machine && !t->recorded)
		return 0;
	if (t->exit_ns && t->exit_known)
		err = recorder__put(s->recorder, &how);
	if (!err)
		err = recorder__put(s->recorder, &r);
	if (!err)
		err = users__record(s, t);
	return err ? err : programs__record(s, t);
}

static bool env_number(const struct target *t, const char *name, long *out)
{
	char *value = proc_environment((pid_t)t->pid, name), *end;
	bool known = false;

	if (value && *value) {
		*out = strtol(value, &end, 10);
		known = !*end && *out >= 0;
	}
	free(value);
	return known;
}

/*
 * Records the process's rank and the number of ranks, as torchrun and similar launchers put them
 * into the environment of their workers. Readers such as HTA need them.
 */
static int read_rank(struct kprof_session *s, const struct target *t)
{
	char key[64], json[128];
	long rank, world;
	int err;

	if (!env_number(t, "RANK", &rank) || !env_number(t, "WORLD_SIZE", &world))
		return 0;
	snprintf(key, sizeof(key), "distributed.%u", t->pid);
	snprintf(json, sizeof(json), "{\"rank\":%ld,\"world_size\":%ld}", rank, world);
	err = recorder__meta(s->recorder, key, json);
	/* A trace of several processes gets the rank of the first target that has one. */
	if (!err && !s->rank_pid)
		err = recorder__meta(s->recorder, "distributed", json);
	if (!s->rank_pid)
		s->rank_pid = t->pid;
	return err;
}

/* What /proc says of the process, if it lives. */
static void read_identity(struct kprof_session *s, struct target *t)
{
	struct proc_info info;

	if (proc_info_read((pid_t)t->pid, &info) || info.zombie)
		return;
	t->ppid = (uint32_t)info.ppid;
	t->ns_pid = (uint32_t)info.ns_pid;
	t->start_ticks = info.start_ticks;
	t->owned = true;
	t->uid = info.uid;
	if (s->machine) /* choice__make() has the rest */
		return;
	choice__read_cgroup(s, t);
	programs__read(s, t);
	t->comm = recorder__string(s->recorder, info.comm);
	programs__read_cmdline(s, t);
}

/* The kernel's programs know the process already: it may have ended, and they have seen that. */
static struct target *add_known(struct kprof_session *s, uint32_t pid, uint64_t time_ns)
{
	struct target *t = targets__add(s->targets, pid);

	if (!t)
		return NULL;
	t->followed = true;
	t->start_ns = time_ns;
	t->space = pid;
	s->nr_processes++;
	return t;
}

static int add(struct kprof_session *s, uint32_t pid, bool followed, uint64_t time_ns,
	       struct target **out)
{
	struct target *t = add_known(s, pid, time_ns);
	int err;

	if (!t)
		return -ENOMEM;
	t->followed = followed;
	err = attacher__add_target(s->attacher, pid, &t->space);
	if (err && followed) /* the table is full: nothing of it is recorded, which is said */
		err = 0;
	if (err)
		return error_set(err, NULL, "cannot tell the kernel about process %u: %s", pid,
				 strerror(-err));
	*out = t;
	return 0;
}

int process__add(struct kprof_session *s, uint32_t pid, bool followed, uint64_t time_ns)
{
	struct target *t;
	int err = add(s, pid, followed, time_ns, &t);

	if (err)
		return err;
	read_identity(s, t);
	err = process__record(s, t);
	return err ? err : read_rank(s, t);
}

int process__refresh(struct kprof_session *s, struct target *t)
{
	bool samples_only = s->opts.samples_only, dirty = t->maps_dirty;
	const struct record_window *window = recorder__window(s->recorder);
	int err;

	if (window->closed) /* the last records are being read: no probe is placed any more */
		return 0;
	/*
	 * When only stacks are recorded, stacks__look() reads the mappings when it needs them. They
	 * are not read here as well, because that takes a millisecond.
	 */
	err = samples_only && (s->machine || (stacks__looks_at(s->stacks, t) && t->maps))
		      ? 0
		      : target__read_maps(t);
	/*
	 * -ESRCH: the process is exiting, which a record will report. Other errors (no permission)
	 * are ignored for children, and once the recording runs: then only the process's threads
	 * are recorded.
	 */
	if (err)
		return err == -ESRCH || t->followed || window->open || s->prepared ? 0 : err;
	t->maps_dirty = false;
	err = samples_only ? 0 : probe_set__place(s->probes, t);
	if (dirty && !samples_only && target__loses_memory(t))
		t->maps_dirty = true;
	if (!t->maps_dirty) {
		t->dirty_ns = 0;
		t->looked_ns = t->maps_ns;
	}
	if (!err)
		err = stacks__look(s->stacks, t);
	return err || samples_only ? err : agents__look(s->agents, t);
}

int process__survived(struct kprof_session *s, struct target *t)
{
	uint64_t end_ns = recorder__window(s->recorder)->end_ns;
	int err = probe_set__record_lost(s->probes, t, end_ns);

	if (err || !t->maps_dirty || !t->unplaced || t->shares_memory || s->opts.samples_only)
		return err;
	if (target__read_maps(t))
		return recorder__gap(
			s->recorder, t->pid, "libraries mapped shortly before the recording ended",
			"probes could not be placed in them any more", t->dirty_ns, end_ns);
	return probe_set__place(s->probes, t);
}

uint64_t wire_start_ticks(const struct kprof_wire_seen *e)
{
	return e->start_boot_ns / (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* It may have ended already: then what the kernel's programs told is all that is known of it. */
static void take_seen(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e)
{
	const struct record_window *window = recorder__window(s->recorder);
	uint64_t from_ns = window->open ? window->first_ns : window->start_ns;
	bool placed =
		e->h.id & KPROF_WIRE_SEEN_PLACED && probe_set__told_since(s->probes, e->h.time_ns);

	t->start_ns = e->start_ns > from_ns ? e->start_ns : from_ns;
	target__maps_changed(t, placed ? e->h.time_ns : t->start_ns, placed);
	if (t->comm)
		return;
	t->comm = store_writer__string(recorder__store(s->recorder), e->comm,
				       strnlen(e->comm, sizeof(e->comm)));
	t->cmdline = programs__cmdline(s, e->args, e->args_bytes);
	t->ppid = e->ppid;
	t->ns_pid = e->ns_pid;
	t->start_ticks = wire_start_ticks(e);
	t->owned = true;
	t->uid = e->uid;
}

/* Whether the process is one of those that are to be recorded. */
static bool is_chosen(struct kprof_session *s, const struct proc_info *info)
{
	struct target t = {.pid = (uint32_t)info->pid, .uid = info->uid};

	if (proc_is_32bit(info->pid) == 1)
		return false;
	choice__make(s, &t, info->comm);
	return !t.left_out;
}

int process__join(struct kprof_session *s, uint32_t pid, uint64_t time_ns,
		  const struct kprof_wire_seen *e)
{
	struct proc_info info;
	struct target *t;
	int err;

	if (proc_info_read((pid_t)pid, &info) || info.zombie) {
		error_clear();
		if (!e) /* it has ended, and done nothing */
			return 0;
		info = (struct proc_info){.pid = (pid_t)pid, .uid = e->uid};
		memcpy(info.comm, e->comm, sizeof(e->comm));
	}
	if (!is_chosen(s, &info)) {
		attacher__leave_out(s->attacher, pid, e);
		return 0;
	}
	t = e ? add_known(s, pid, time_ns) : NULL;
	err = e ? 0 : add(s, pid, true, time_ns, &t);
	if (err || !t)
		return err ? err : -ENOMEM;
	read_identity(s, t);
	if (e)
		take_seen(s, t, e);
	err = process__record(s, t);
	if (!err)
		err = read_rank(s, t);
	/* the first ones get their probes together, when the recording begins */
	return err || !recorder__window(s->recorder)->open ? err : process__refresh(s, t);
}

/* The process may end before anything of it is read: what the record of its fork, or exec, says. */
static void take_identity(struct kprof_session *s, struct target *t,
			  const struct kprof_wire_task *e, uint32_t cmdline)
{
	t->comm = store_writer__string(recorder__store(s->recorder), e->comm,
				       strnlen(e->comm, sizeof(e->comm)));
	t->cmdline = cmdline;
	t->space = e->space;
}

/* Its parent is not the process that forked it if the fork says so (CLONE_PARENT). */
static void take_parent(struct target *t, const struct target *parent)
{
	struct proc_info info;

	t->ppid = parent->pid;
	if (proc_info_read((pid_t)t->pid, &info))
		return;
	t->ppid = (uint32_t)info.ppid;
	t->start_ticks = info.start_ticks;
}

/* Says once why children lose their first moments. */
static void say_bystander(struct kprof_session *s, uint32_t bystander)
{
	char comm[PROC_COMM_BYTES];

	if (s->bystander_said || proc_thread_comm((pid_t)bystander, (pid_t)bystander, comm))
		return;
	s->bystander_said = true;
	log_warn(
		"--children exact records them from the first instruction, at a cost to that process",
		"process %u (%s) uses the same libraries: children are recorded from when they are seen",
		bystander, comm);
}

int process__on_fork(struct kprof_session *s, struct target *parent,
		     const struct kprof_wire_task *e)
{
	uint32_t bystander;
	struct target *t;
	int err, complete;

	if (s->opts.children == KPROF_CHILDREN_NONE || targets__find(s->targets, e->child_pid))
		return 0;
	t = add_known(s, e->child_pid, e->h.time_ns);
	if (!t)
		return -ENOMEM;
	take_identity(s, t, e, parent->cmdline);
	take_parent(t, parent);
	t->owned = parent->owned;
	t->uid = parent->uid;
	t->cgroup = parent->cgroup;
	t->program = parent->program;
	t->ns_pid = e->child_ns_pid;
	err = process__record(s, t);
	if (!err)
		err = read_rank(s, t);
	if (err)
		return err;
	/*
	 * A vfork's child runs in its parent's memory, which has the parent's probes, until it
	 * executes a program. No probe is placed for the child before that.
	 */
	t->shares_memory = e->h.id == KPROF_WIRE_FORK_SHARES_MEMORY;
	t->forked = !t->shares_memory;
	target__inherit_maps(t, parent);
	complete = probe_set__inherit(s->probes, t, parent, &bystander);
	if (complete < 0 || t->shares_memory)
		return complete < 0 ? complete : 0;
	if (complete && !parent->maps_dirty) {
		t->looked_ns = e->h.time_ns;
		err = stacks__look(s->stacks, t);
		return err ? err : agents__look(s->agents, t);
	}
	if (bystander)
		say_bystander(s, bystander);
	/* its probes may not be placed yet, and it may end before they are */
	target__maps_changed(t, e->h.time_ns, complete && !parent->unplaced);
	return process__refresh(s, t);
}

void process__on_maps(struct kprof_session *s, struct target *t, const struct kprof_wire_hdr *h)
{
	bool placed =
		h->id == KPROF_WIRE_MAPS_PLACED && probe_set__told_since(s->probes, h->time_ns);

	target__maps_changed(t, h->time_ns, placed);
	/* A new program's linker speaks for the first time: it has mapped all that is mapped. */
	if (t->executed)
		t->unplaced = !placed;
	t->executed = false;
}

/* Of all processes, one with another name may be one to leave out. */
static void choose_again(struct kprof_session *s, struct target *t, const struct kprof_wire_task *e)
{
	char comm[KPROF_WIRE_COMM + 1] = "";

	memcpy(comm, e->comm, sizeof(e->comm));
	choice__make(s, t, comm);
}

int process__on_exec(struct kprof_session *s, struct target *t, const struct kprof_wire_exec *exec)
{
	const struct kprof_wire_task *e = &exec->t;
	int err = agents__gone(s->agents, t);

	if (err)
		return err;
	/*
	 * The kernel's probes belong to the process and to a file: where the new program maps a
	 * file that has some, the kernel places them when the file is mapped. Among them is the
	 * hook in the dynamic linker. The exception is an exec by another thread than the first:
	 * probes are tied to the first thread.
	 */
	if (e->h.id != t->pid || t->shares_memory) {
		probe_set__retire(s->probes, t);
		t->shares_memory = false;
	}
	if (s->alive) /* what a process leaves at its exit is kept */
		alive__forget(s->alive);
	forget_program(s, t);
	thread_names__want(s->thread_names, t, e->h.time_ns);
	t->forked = false;
	t->looked_ns = 0;
	take_identity(s, t, e, programs__cmdline(s, exec->args, exec->args_bytes));
	read_identity(s, t);
	if (s->machine)
		choose_again(s, t, e);
	t->dirty_ns = e->h.time_ns;
	err = process__record(s, t);
	/* where not all can be read at once, it is read when the linker has mapped something */
	if (!err && !s->reading.ns_a_second)
		err = process__refresh(s, t);
	/*
	 * processes__tend(), or machine__tend(), reads the mappings again, to find what the dynamic
	 * linker mapped before its hook was placed.
	 */
	t->maps_dirty = false;
	target__maps_changed(t, e->h.time_ns, false);
	t->executed = true;
	t->shift_known = false;
	return err;
}

int process__on_exit(struct kprof_session *s, struct target *t, uint64_t time_ns)
{
	/* first, because the agent's last records refer to calls of its threads */
	int err = agents__gone(s->agents, t);

	if (!err)
		err = threads__end(s, t, time_ns);
	t->exit_ns = time_ns;
	if (!err)
		err = process__record(s, t);
	if (!err)
		err = probe_set__record_lost(s->probes, t, time_ns);
	if (!err && t->maps_dirty && t->unplaced && recorder__window(s->recorder)->open &&
	    !s->opts.samples_only)
		err = recorder__gap(
			s->recorder, t->pid, "libraries mapped shortly before the process ended",
			"it ended before probes could be placed in them", t->dirty_ns, time_ns);
	if (!err)
		err = schedule__gone(s, t);
	forget_program(s, t);
	probe_set__forget(s->probes, t);
	targets__remove(s->targets, t);
	return err;
}

/* How often a process's state and mappings are read though no record asked for it. */
#define SCAN_NS (NSEC_PER_SEC)

/*
 * Finds descendants that no record reported, because they were forked before the recording began or
 * while the rings were full.
 */
int processes__adopt(struct kprof_session *s, uint64_t since_ns)
{
	pid_t *pids, *children = NULL;
	struct target *t;
	size_t nr = 0, nr_children = 0;
	int err = 0;

	pids = calloc(targets__nr(s->targets) + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	for (t = targets__first(s->targets); t; t = t->hh.next)
		pids[nr++] = (pid_t)t->pid;
	if (!proc_descendants(pids, nr, &children, &nr_children))
		for (size_t i = 0; i < nr_children && !err; i++)
			if (!targets__find(s->targets, (uint32_t)children[i]))
				err = process__add(s, (uint32_t)children[i], true, since_ns);
	free(pids);
	free(children);
	return err;
}

/*
 * When records of forks and exits were dropped: searches /proc for what they would have reported.
 */
static int make_up_for_lost_tasks(struct kprof_session *s, uint64_t now_ns)
{
	struct kprof_wire_count count;
	int err = attacher__counts(s->attacher, KPROF_WIRE_SOURCE_TASKS, &count);
	bool dropped = !err && count.dropped != s->tasks_dropped;

	if (dropped || s->threads_gone)
		err = threads__sweep(s, now_ns);
	if (err || !dropped)
		return err;
	s->tasks_dropped = count.dropped;
	if (s->opts.children != KPROF_CHILDREN_NONE && !overhead__gave_up_children(s->overhead))
		err = processes__adopt(s, now_ns - SCAN_NS);
	return err;
}

int processes__tend(struct kprof_session *s, uint64_t now_ns)
{
	bool scan = now_ns >= s->next_scan_ns;
	struct target *t, *next;
	int err = 0;

	if (scan) {
		s->next_scan_ns = now_ns + SCAN_NS;
		err = make_up_for_lost_tasks(s, now_ns);
	}
	TARGETS_EACH (s->targets, t, next) {
		if (err)
			break;
		if (scan && target__has_ended(t)) {
			/*
			 * The process's last records may still be in the rings: it is ended at the
			 * next scan, when they have been read.
			 */
			if (t->ended) {
				attacher__remove_target(s->attacher, t->pid);
				err = process__on_exit(s, t, now_ns);
			} else
				t->ended = true;
		} else if ((t->maps_dirty || scan) && !t->shares_memory && !t->ended)
			err = process__refresh(s, t);
	}
	return err;
}
