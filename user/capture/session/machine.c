// SPDX-License-Identifier: BSD-2-Clause
/*
 * A recording of all processes of the machine. A process becomes a target when the kernel's
 * programs meet it on a CPU, and stays one until it ends, or until its memory is needed for others.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

#define TEND_NS NSEC_PER_SEC
/* Samples of what a process does while it exits come after the record of its exit. */
#define LINGER_NS NSEC_PER_SEC
/* How often it is looked whether a process lives that is not met; the first time it is soon. */
#define CHECK_NS (30 * NSEC_PER_SEC)
#define CHECK_FIRST_NS (2 * NSEC_PER_SEC)
/* For each thread, how long it is until it is looked whether it is there. */
#define SWEEP_NS (2 * NSEC_PER_MSEC)
/* Processes that are prepared for before the recording: those that have used most CPU time. */
#define PREPARE_MOST 512
/* Processes that are remembered at a time: fewer than the kernel's tables hold. */
#define TARGETS_MOST 3072
/* Looks for processes each TEND_NS, at most: so many that all have had one after CHECK_NS. */
#define CHECK_MOST (TARGETS_MOST / (CHECK_NS / TEND_NS) + 1)
/* Names of processes that have ended, in the capture: those that took most CPU time. */
#define ENDED_NAMES 256

/* ---- processes that come and go ---- */

static int add(struct kprof_session *s, uint32_t pid, uint64_t time_ns, struct target **out)
{
	struct target *t = targets__add(s->targets, pid);

	if (!t)
		return -ENOMEM;
	t->start_ns = time_ns;
	t->next_check_ns = time_ns + CHECK_FIRST_NS;
	/* without room for it in the kernel's table, it is told anew at each of its samples */
	attacher__add_target(s->attacher, pid, &t->space);
	*out = t;
	return 0;
}

/* Removes the process from the recording. exit_ns: 0 if it lives. */
static int drop(struct kprof_session *s, struct target *t, uint64_t exit_ns)
{
	if (!exit_ns)
		attacher__remove_target(s->attacher, t->pid);
	return process__on_exit(s, t, exit_ns);
}

/* As a sample has met it. */
static void take_program(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e)
{
	char comm[KPROF_WIRE_COMM + 1] = "";

	memcpy(comm, e->comm, sizeof(e->comm));
	t->uid = e->uid;
	choice__make(s, t, comm);
	t->cmdline = t->left_out ? 0 : programs__cmdline(s, e->args, e->args_bytes);
}

/*
 * A process that is no target yet may have executed another program since it was met, of which no
 * record tells; of all later ones there is one.
 */
static void take_new_program(struct kprof_session *s, struct target *t,
			     const struct kprof_wire_seen *e)
{
	char comm[PROC_COMM_BYTES];
	struct proc_info info;
	bool there;

	if (t->kernel_thread)
		return;
	there = !proc_thread_comm((pid_t)t->pid, (pid_t)t->pid, comm);
	if (there && !strncmp(comm, e->comm, sizeof(e->comm)))
		return;
	if (there && !proc_info_read((pid_t)t->pid, &info) && info.start_ticks == t->start_ticks) {
		choice__make(s, t, comm);
		if (!t->left_out)
			programs__read_cmdline(s, t);
	} else {
		memcpy(t->met_as, e->comm, sizeof(t->met_as));
	}
	error_clear(); /* of one that has ended meanwhile */
}

static void take_identity(struct kprof_session *s, struct target *t,
			  const struct kprof_wire_seen *e)
{
	const struct record_window *window = recorder__window(s->recorder);
	uint64_t start_ns = window->open ? window->first_ns : window->start_ns;

	t->kernel_thread = e->h.id & KPROF_WIRE_SEEN_KERNEL;
	t->start_ticks = wire_start_ticks(e);
	/* the same each time that the process is met after it was forgotten */
	t->start_ns = e->start_ns > start_ns ? e->start_ns : start_ns;
	t->ppid = e->ppid;
	t->ns_pid = e->ns_pid;
	t->owned = true;
	take_program(s, t, e);
	take_new_program(s, t, e);
}

/*
 * It had ended when its first record was read. Each of its samples has met it then, and one may
 * have met it as another program.
 */
static int meet_again(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e)
{
	if (!*t->met_as || !strncmp(t->met_as, e->comm, sizeof(e->comm)))
		return 0;
	memcpy(t->met_as, e->comm, sizeof(t->met_as));
	take_program(s, t, e);
	return t->recorded && !t->left_out ? process__record(s, t) : 0;
}

int machine__seen(struct kprof_session *s, struct target *t, const struct kprof_wire_seen *e)
{
	int err = 0;

	/* the record of its exit was lost, or its last threads are running still */
	if (t && t->start_ticks == wire_start_ticks(e))
		return meet_again(s, t, e);
	if (t)
		err = drop(s, t, t->ended ? t->exit_ns : e->h.time_ns);
	if (!err)
		err = add(s, (uint32_t)(e->h.pid_tgid >> 32), e->h.time_ns, &t);
	if (err)
		return err;
	take_identity(s, t, e);
	s->unlooked = true;
	return 0;
}

void machine__on_exit(struct target *t, uint64_t time_ns)
{
	t->ended = true;
	t->exit_ns = time_ns;
}

int machine__sampled(struct kprof_session *s, struct target *t, uint64_t time_ns)
{
	uint64_t start_ns = recorder__window(s->recorder)->first_ns;
	int err = 0;

	t->sampled_ns = time_ns;
	if (t->left_out) {
		s->left_out++;
		return 1;
	}
	if (!t->recorded) {
		if (t->start_ns < start_ns)
			t->start_ns = start_ns;
		t->recorded = true;
		s->nr_processes += !t->ever_recorded;
		t->ever_recorded = true;
		err = process__record(s, t);
	}
	return err;
}

/* ---- before the recording ---- */

/*
 * Looks at a process that was met since. Mostly its first sample has had its mappings read, which
 * says, too, that it lived when it was a target already. The exit of one that did not is not
 * reported.
 */
static int look_first(struct kprof_session *s, struct target *t)
{
	int err = 0;

	if (!t->left_out && !stacks__looks_at(s->stacks, t))
		err = stacks__look_by(s->stacks, t, RATION_NEW);
	if (err > 0) {
		s->unlooked = true;
		return 0;
	}
	t->looked_ns = clock_mono_ns();
	if (err || stacks__looks_at(s->stacks, t) || proc_alive((pid_t)t->pid, t->start_ticks))
		return err;
	attacher__remove_target(s->attacher, t->pid);
	machine__on_exit(t, t->sampled_ns ? t->sampled_ns : t->start_ns);
	return 0;
}

/* Hands over the mappings of processes that were met since, as far as there is time for it. */
static int look_at_new(struct kprof_session *s)
{
	struct target *t, *next;
	int err = 0;

	s->unlooked = false;
	TARGETS_EACH (s->targets, t, next) {
		if (!err && !t->looked_ns && !t->ended)
			err = look_first(s, t);
	}
	return err;
}

static int by_cpu_time(const void *a, const void *b)
{
	uint64_t x = ((const struct proc_info *)a)->cpu_ticks;
	uint64_t y = ((const struct proc_info *)b)->cpu_ticks;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The processes that have used a CPU, those that have most first; *out is malloc'ed. */
static int busy_processes(struct proc_info **out, size_t *nr)
{
	pid_t *pids = NULL;
	size_t nr_pids = 0;
	int err = proc_pids(&pids, &nr_pids);

	*nr = 0;
	*out = err ? NULL : calloc(nr_pids + 1, sizeof(**out));
	for (size_t i = 0; i < nr_pids && *out; i++) {
		struct proc_info *info = &(*out)[*nr];

		if (!proc_info_read(pids[i], info) && !info->zombie && !info->kernel_thread)
			*nr += info->cpu_ticks != 0;
	}
	free(pids);
	error_clear(); /* of processes that have ended meanwhile */
	if (*out)
		qsort(*out, *nr, sizeof(**out), by_cpu_time);
	return *out ? 0 : err ? err : -ENOMEM;
}

/* What is known of a process before its first sample. */
static int prepare_one(struct kprof_session *s, const struct proc_info *info)
{
	struct target *t;
	int err = add(s, (uint32_t)info->pid, clock_mono_ns(), &t);

	if (err)
		return err;
	t->ppid = (uint32_t)info->ppid;
	t->ns_pid = (uint32_t)info->ns_pid;
	t->owned = true;
	t->uid = info->uid;
	t->start_ticks = info->start_ticks;
	choice__make(s, t, info->comm);
	if (!t->left_out)
		programs__read_cmdline(s, t);
	return 0;
}

int machine__prepare(struct kprof_session *s)
{
	struct proc_info *all;
	size_t nr;
	int err = busy_processes(&all, &nr);

	for (size_t i = 0; i < nr && i < PREPARE_MOST && !err; i++)
		err = prepare_one(s, &all[i]);
	free(all);
	return err ? err : look_at_new(s);
}

/* ---- periodic work ---- */

static int drop_ended(struct kprof_session *s, uint64_t now_ns)
{
	struct target *t, *next;
	int err = 0;

	TARGETS_EACH (s->targets, t, next) {
		if (!err && t->ended && now_ns >= t->exit_ns + LINGER_NS)
			err = drop(s, t, t->exit_ns);
	}
	return err;
}

/*
 * Looks in /proc for those that were not met for long. No record may have told of their end: they
 * were ending already when the kernel's programs were told to report it. At most so many.
 */
static void find_ended(struct kprof_session *s, uint64_t now_ns, uint64_t long_ns, size_t most)
{
	struct target *t, *next;

	TARGETS_EACH (s->targets, t, next) {
		if (!most)
			return;
		if (t->ended || now_ns < t->next_check_ns || now_ns < t->sampled_ns + long_ns)
			continue;
		t->next_check_ns = now_ns + CHECK_NS;
		most--;
		if (proc_alive((pid_t)t->pid, t->start_ticks))
			continue;
		attacher__remove_target(s->attacher, t->pid);
		machine__on_exit(t, now_ns);
	}
}

/* Memory of this process that is not a copy of files, in bytes. */
static uint64_t own_bytes(void)
{
	unsigned long long resident, of_files;
	uint64_t bytes = 0;
	char *text;

	if (read_file("/proc/self/statm", 4096, &text, NULL))
		return 0;
	if (sscanf(text, "%*u %llu %llu", &resident, &of_files) == 2 && resident > of_files)
		bytes = (resident - of_files) * (uint64_t)sysconf(_SC_PAGESIZE);
	free(text);
	return bytes;
}

static int by_last_sample(const void *a, const void *b)
{
	uint64_t x = (*(struct target *const *)a)->sampled_ns;
	uint64_t y = (*(struct target *const *)b)->sampled_ns;

	return x < y ? -1 : x > y ? 1 : 0;
}

/* Forgets the half of all processes that were not met for longest. */
static int forget_half(struct kprof_session *s)
{
	size_t nr = 0, all = targets__nr(s->targets);
	struct target **targets = calloc(all + 1, sizeof(struct target *)), *t, *next;
	int err = targets ? 0 : -ENOMEM;

	TARGETS_EACH (s->targets, t, next) {
		if (targets && !t->ended)
			targets[nr++] = t;
	}
	if (targets)
		qsort(targets, nr, sizeof(struct target *), by_last_sample);
	for (size_t i = 0; i < nr / 2 && !err; i++)
		err = drop(s, targets[i], 0);
	s->nr_forgotten += nr / 2;
	free(targets);
	return err;
}

/*
 * Keeps memory within its limits. What is forgotten of a process is read again when it is met
 * again.
 */
static int bound_memory(struct kprof_session *s)
{
	bool too_much = s->opts.own_bytes && own_bytes() > s->opts.own_bytes;
	int err = 0;

	if (too_much || targets__nr(s->targets) > TARGETS_MOST)
		err = forget_half(s);
	if (!too_much || err)
		return err;
	stacks__shrink(s->stacks);
	malloc_trim(0);
	return 0;
}

/*
 * Looks at those that have executed another program, whose linker maps libraries meanwhile. The one
 * for which there is no time comes first the next time: some may execute programs all the time.
 */
static int look_at_changed(struct kprof_session *s)
{
	struct target *first = targets__from(s->targets, s->first_changed), *t;
	int n = 0;

	for (t = first; t && !n; t = targets__round(s->targets, t, first)) {
		if (!t->maps_dirty || t->ended || t->left_out)
			continue;
		n = stacks__look_by(s->stacks, t, RATION_CHANGED);
		t->maps_dirty = n > 0;
		s->first_changed = t->number + !n;
	}
	return n < 0 ? n : 0;
}

static int look_at_some(struct kprof_session *s)
{
	int err = s->unlooked ? look_at_new(s) : 0;

	return err ? err : look_at_changed(s);
}

/* The kernel tells of most ends; with thousands of threads, to ask for each one takes long. */
static int sweep(struct kprof_session *s, uint64_t now_ns)
{
	if (now_ns < s->next_sweep_ns)
		return 0;
	s->next_sweep_ns = now_ns + threads__nr(s->threads) * SWEEP_NS;
	return threads__sweep(s, now_ns);
}

int machine__tend(struct kprof_session *s, uint64_t now_ns)
{
	int err = 0;

	if (targets__turn(s->targets, &s->next_look_ns, now_ns))
		err = look_at_some(s);
	if (err || !ration__is_due(&s->reading, now_ns, s->next_scan_ns))
		return err;
	s->next_scan_ns = now_ns + TEND_NS;
	find_ended(s, now_ns, TEND_NS, CHECK_MOST);
	err = sweep(s, now_ns);
	if (!err)
		err = drop_ended(s, now_ns);
	return err ? err : bound_memory(s);
}

/* ---- the end ---- */

struct ended_name {
	struct kprof_wire_name name;
	struct kprof_wire_ended count;
};

static int by_ended_time(const void *a, const void *b)
{
	uint64_t x = ((const struct ended_name *)a)->count.cpu_ns;
	uint64_t y = ((const struct ended_name *)b)->count.cpu_ns;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* The map changes no more: its program has stopped. */
static size_t read_ended(const struct kprof_session *s, struct ended_name *all)
{
	size_t nr = 0;
	int err = attacher__next_ended(s->attacher, NULL, &all[0].name, &all[0].count);

	while (!err && ++nr <= KPROF_WIRE_MAX_ENDED)
		err = attacher__next_ended(s->attacher, &all[nr - 1].name, &all[nr].name,
					   &all[nr].count);
	return nr;
}

static void add_ended(cJSON *to, const char *name, const struct kprof_wire_ended *count)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddNumberToObject(o, "processes", (double)count->processes);
	cJSON_AddNumberToObject(o, "cpu_ns", (double)count->cpu_ns);
	if (count->summed < count->processes)
		cJSON_AddNumberToObject(o, "cpu_unknown",
					(double)(count->processes - count->summed));
	cJSON_AddItemToArray(to, o);
}

/* Processes that began and ended meanwhile, by name; the name of the last ones is "". */
static cJSON *ended(const struct kprof_session *s)
{
	struct ended_name *all = calloc(KPROF_WIRE_MAX_ENDED + 2, sizeof(*all));
	size_t nr = all ? read_ended(s, all) : 0, named = 0;
	struct kprof_wire_ended others = {0};
	cJSON *list = cJSON_CreateArray();

	if (all)
		qsort(all, nr, sizeof(*all), by_ended_time);
	for (size_t i = 0; i < nr; i++) {
		const char *comm = all[i].name.comm;
		char *name = proc_cmdline_of(comm, strnlen(comm, KPROF_WIRE_COMM));

		if (name && *name && named < ENDED_NAMES) {
			named++;
			add_ended(list, name, &all[i].count);
		} else {
			others.processes += all[i].count.processes;
			others.summed += all[i].count.summed;
			others.cpu_ns += all[i].count.cpu_ns;
		}
		free(name);
	}
	if (others.processes)
		add_ended(list, "", &others);
	free(all);
	return list;
}

int machine__close(struct kprof_session *s)
{
	struct target *t, *next;

	TARGETS_EACH (s->targets, t, next)
		t->next_check_ns = 0;
	find_ended(s, recorder__window(s->recorder)->end_ns, 0, SIZE_MAX);
	return drop_ended(s, UINT64_MAX);
}

int machine__finish(struct kprof_session *s)
{
	cJSON *o = cJSON_CreateObject();

	cJSON_AddNumberToObject(o, "samples_left_out", (double)s->left_out);
	cJSON_AddNumberToObject(o, "processes_forgotten", (double)s->nr_forgotten);
	cJSON_AddItemToObject(o, "ended", ended(s));
	return recorder__meta_value(s->recorder, "all_processes", o);
}
