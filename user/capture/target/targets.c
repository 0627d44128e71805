// SPDX-License-Identifier: BSD-2-Clause
/* The processes of a recording: who they are, and what they map. */
#include "capture/target/target.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

#define LOOK_COST 16 /* reading mappings takes as long as reading memory that often, at least */

#define TURN_NS (NSEC_PER_MSEC / 10)

struct targets {
	struct target *list;
	uint32_t nr_slots;
	uint64_t nr_ever;
	uint64_t record_ns; /* time of the record that is being handled */
};

int targets__new(struct targets **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void targets__free(struct targets *ts)
{
	struct target *t, *next;

	if (!ts)
		return;
	TARGETS_EACH (ts, t, next)
		targets__remove(ts, t);
	free(ts);
}

uint32_t targets__slot(struct targets *ts)
{
	assert(ts->nr_slots < TARGET_SLOTS);
	return ts->nr_slots++;
}

struct target *targets__find(const struct targets *ts, uint32_t pid)
{
	struct target *t;

	HASH_FIND(hh, ts->list, &pid, sizeof(pid), t);
	return t;
}

struct target *targets__add(struct targets *ts, uint32_t pid)
{
	struct target *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->pid = t->ns_pid = pid;
	HASH_ADD(hh, ts->list, pid, sizeof(t->pid), t);
	if (!t->hh.tbl) {
		free(t);
		return NULL;
	}
	t->number = ts->nr_ever++;
	return t;
}

void targets__remove(struct targets *ts, struct target *t)
{
	HASH_DEL(ts->list, t);
	target__forget_maps(t);
	free(t);
}

struct target *targets__first(const struct targets *ts)
{
	return ts->list;
}

struct target *targets__from(const struct targets *ts, uint64_t number)
{
	struct target *t = ts->list;

	while (t && t->number < number)
		t = t->hh.next;
	return t ? t : ts->list;
}

struct target *targets__round(const struct targets *ts, const struct target *t,
			      const struct target *first)
{
	struct target *next = t->hh.next ? t->hh.next : ts->list;

	return next == first ? NULL : next;
}

bool targets__turn(const struct targets *ts, uint64_t *next_ns, uint64_t now_ns)
{
	if (now_ns < *next_ns)
		return false;
	*next_ns = now_ns + targets__nr(ts) * TURN_NS;
	return true;
}

size_t targets__nr(const struct targets *ts)
{
	return HASH_COUNT(ts->list);
}

/* ---- mappings ---- */

void target__forget_maps(struct target *t)
{
	proc_maps__free(t->maps);
	free(t->exe);
	t->maps = NULL;
	t->exe = NULL;
}

void target__inherit_maps(struct target *child, const struct target *parent)
{
	target__forget_maps(child);
	child->maps = proc_maps__share(parent->maps);
	child->exe = parent->exe ? strdup(parent->exe) : NULL;
	child->maps_ns = parent->maps_ns;
}

void target__maps_changed(struct target *t, uint64_t time_ns, bool placed)
{
	if (!t->maps_dirty) {
		t->maps_dirty = true;
		t->dirty_ns = time_ns;
		t->unplaced = false;
	}
	t->unplaced |= !placed;
	t->changes++;
}

int target__read_maps(struct target *t)
{
	uint64_t now_ns = clock_mono_ns();
	struct proc_maps *maps;
	int err = proc_maps__read((pid_t)t->pid, &maps);

	if (err)
		return err;
	target__forget_maps(t);
	t->maps = maps;
	if (proc_exe((pid_t)t->pid, &t->exe))
		t->exe = NULL;
	t->maps_ns = now_ns;
	return 0;
}

const struct proc_map *target__known_map(const struct target *t, uint64_t addr)
{
	return proc_maps__find(t->maps, addr);
}

void targets__at(struct targets *ts, uint64_t record_ns)
{
	ts->record_ns = record_ns;
}

const struct proc_map *targets__map(struct targets *ts, struct target *t, uint64_t addr)
{
	const struct proc_map *map = target__known_map(t, addr);

	/* Mappings newer than the record will not show more when read again. */
	if (map || t->maps_ns > ts->record_ns || !budget_left(&t->looks) || target__read_maps(t))
		return map;
	map = proc_maps__find(t->maps, addr);
	budget_note(&t->looks, map, LOOK_COST);
	return map;
}

int target__read(void *target, void *to, size_t bytes, uint64_t address)
{
	struct target *t = target;
	int err =
		budget_left(&t->reads) ? process_read((pid_t)t->pid, address, to, bytes) : -EFAULT;

	budget_note(&t->reads, !err, 1);
	return err;
}

int target__read_string(struct target *t, uint64_t address, char *to, size_t bytes)
{
	int err = budget_left(&t->reads) ? process_read_string((pid_t)t->pid, address, to, bytes)
					 : -EFAULT;

	budget_note(&t->reads, !err, 1);
	return err;
}

/* ---- whether it lives ---- */

/* A thread group's leader that exited before its other threads is a zombie too, but they live. */
bool target__has_ended(const struct target *t)
{
	struct proc_info info;
	int err = proc_info_read((pid_t)t->pid, &info);

	if (err)
		return err == -ESRCH;
	return (info.zombie && info.nr_threads <= 1) ||
	       (t->start_ticks && info.start_ticks != t->start_ticks);
}

bool target__leader_ended(const struct target *t)
{
	struct proc_info info;

	return proc_info_read((pid_t)t->pid, &info) || info.zombie;
}

bool target__loses_memory(const struct target *t)
{
	struct proc_info info;
	char *exe = NULL;
	int err = proc_exe((pid_t)t->pid, &exe);

	free(exe);
	if (err != -ESRCH)
		return false;
	/*
	 * A leader that exited before its other threads has no exe link either, but the memory is
	 * still there.
	 */
	return proc_info_read((pid_t)t->pid, &info) || !info.zombie || info.nr_threads <= 1;
}
