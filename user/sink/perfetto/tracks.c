// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tracks. A thread's track is below its process's. A device that works for a process is below that
 * too, its streams below the device, and each lane is a track of its own.
 */
#include "sink/perfetto/impl.h"

#include <stdio.h>
#include <string.h>

#include "util/util.h"

#define CHILDREN_BY_RANK 3
#define NEVER_MERGED 2 /* Perfetto's number: not merged with siblings of the same name */

/* Sorts devices after a process's threads and counters, which have no rank. */
#define DEVICE_RANK 1000

static void put_track(struct pftrace *p, Pf__TrackDescriptor *track, uint64_t uuid)
{
	Pf__Packet packet = PF__PACKET__INIT;

	track->uuid = uuid;
	packet.track_descriptor = track;
	pf_packet(p, &packet);
}

static void put_named(struct pftrace *p, uint64_t uuid, uint64_t parent, char *name, uint64_t rank)
{
	Pf__TrackDescriptor track = PF__TRACK_DESCRIPTOR__INIT;

	track.name = name;
	track.has_parent = parent != 0;
	track.parent = parent;
	track.has_child_order = track.has_rank = track.has_merge = true;
	track.child_order = CHILDREN_BY_RANK;
	track.rank = (int32_t)(rank < INT32_MAX ? rank : INT32_MAX);
	track.merge = NEVER_MERGED;
	put_track(p, &track, uuid);
}

/* ---- processes and threads ---- */

static void put_process(struct pftrace *p, pid_t pid, const struct tl_process *of)
{
	Pf__TrackDescriptor track = PF__TRACK_DESCRIPTOR__INIT;
	Pf__TrackDescriptor__Process process = PF__TRACK_DESCRIPTOR__PROCESS__INIT;
	char label[48], machine[160], name[32], *labels[2], *cmdline;

	process.pid = pid;
	process.name = name;
	process.labels = labels;
	snprintf(name, sizeof(name), "process %d", pid);
	if (of) {
		process.name = pf_text(p, of->comm);
		cmdline = pf_text(p, of->cmdline);
		process.n_cmdline = *cmdline != 0;
		process.cmdline = &cmdline;
	}
	if (of && of->ns_pid) { /* the PID within the process's container */
		snprintf(label, sizeof(label), "container pid %d", of->ns_pid);
		labels[process.n_labels++] = label;
	}
	if (of && *of->host) {
		snprintf(machine, sizeof(machine), "PID %d on %.128s", of->host_pid, of->host);
		labels[process.n_labels++] = pf_text(p, machine);
	}
	track.process = &process;
	put_track(p, &track, (uint64_t)(uint32_t)pid << 2 | PF_PROCESS);
}

uint64_t pf_process_track(struct pftrace *p, pid_t pid)
{
	uint64_t *described = map64__at(&p->processes, (uint32_t)pid);

	if (!described) {
		pf_no_memory(p);
	} else if (!*described) { /* device work for a process that is not in the tables */
		*described = 1;
		put_process(p, pid, NULL);
	}
	return (uint64_t)(uint32_t)pid << 2 | PF_PROCESS;
}

static void put_processes(struct pftrace *p)
{
	const struct tl_process *of;
	uint64_t *described;

	for (size_t i = 0; (of = timeline__process(p->t, i)) && !p->err; i++) {
		/* Processes that had the same PID share one track, as in the other formats. */
		if ((p->opts->pid && of->pid != p->opts->pid) ||
		    of != timeline__process_of(p->t, of->pid))
			continue;
		described = map64__at(&p->processes, (uint32_t)of->pid);
		if (!described) {
			pf_no_memory(p);
			break;
		}
		*described = 1;
		put_process(p, of->pid, of);
	}
}

static void put_threads(struct pftrace *p)
{
	const struct tl_thread *of;

	for (size_t i = 0; (of = timeline__thread(p->t, i)) && !p->err; i++) {
		Pf__TrackDescriptor track = PF__TRACK_DESCRIPTOR__INIT;
		Pf__TrackDescriptor__Thread thread = PF__TRACK_DESCRIPTOR__THREAD__INIT;

		if (p->opts->pid && of->pid != p->opts->pid)
			continue;
		track.has_parent = true;
		track.parent = pf_process_track(p, of->pid);
		thread.pid = of->pid;
		thread.tid = of->tid;
		thread.name = pf_text(p, of->title);
		track.thread = &thread;
		put_track(p, &track, pf_thread_track(of->index));
	}
}

/* ---- devices ---- */

static uint64_t device_track(const struct pftrace *p, const struct trace_device *d)
{
	return (uint64_t)(d - p->tr.devices + 1) << 2 | PF_OTHER;
}

uint64_t pf_row_track(const struct pftrace *p, uint32_t row, uint32_t lane)
{
	return ((uint64_t)row * CORRELATE_MAX_LANES + lane) << 2 | PF_ROW;
}

static void put_device(struct pftrace *p, const struct trace_device *d)
{
	char name[32];

	snprintf(name, sizeof(name), "GPU %u", d->ordinal);
	put_named(p, device_track(p, d), pf_process_track(p, d->pid), name,
		  DEVICE_RANK + (uint64_t)d->ordinal);
}

static void put_row(struct pftrace *p, uint32_t number, const struct corr_row *row)
{
	const struct trace_device *d = trace__device_of_row(&p->tr, number);
	char name[TRACE_ROW_NAME_BYTES];
	uint64_t parent;
	size_t len;

	if (row->of_thread)
		parent = pf_thread_track(row->stream);
	else if (d->ordinal != UINT32_MAX)
		parent = device_track(p, d);
	else
		parent = pf_process_track(p, d->pid);
	for (uint32_t lane = 0; lane < row->nr_lanes; lane++) {
		trace__row_name(&p->tr, number, lane, name, sizeof(name));
		for (len = strlen(name); len && name[len - 1] == ' ';)
			name[--len] = 0;
		put_named(p, pf_row_track(p, number, lane), parent, name,
			  trace__row_order(&p->tr, number, lane));
	}
}

void pf_tracks(struct pftrace *p)
{
	const struct corr_row *row;

	put_processes(p);
	put_threads(p);
	for (size_t i = 0; i < p->tr.nr_devices; i++)
		if (p->tr.devices[i].ordinal != UINT32_MAX)
			put_device(p, &p->tr.devices[i]);
	for (uint32_t i = 0; (row = correlate__row(p->corr, i)) && !p->err; i++)
		put_row(p, i, row);
	p->nr_others = p->tr.nr_devices;
}

uint64_t pf_other_track(struct pftrace *p, const char *name)
{
	uint64_t uuid = (++p->nr_others) << 2 | PF_OTHER;

	put_named(p, uuid, 0, (char *)name, 0);
	return uuid;
}

/* ---- counters ---- */

static bool same_counter(const struct pf_counter *a, const struct pf_counter *b)
{
	return a->pid == b->pid && a->device == b->device && a->stream == b->stream &&
	       a->name == b->name;
}

static uint64_t put_counter_track(struct pftrace *p, const struct pf_counter *of)
{
	Pf__TrackDescriptor track = PF__TRACK_DESCRIPTOR__INIT;
	Pf__TrackDescriptor__Counter counter = PF__TRACK_DESCRIPTOR__COUNTER__INIT;
	uint64_t uuid = (++p->nr_others) << 2 | PF_OTHER;
	char *name = pf_text(p, of->name);

	if (of->stream >= 0)
		name = pf_own(p, xasprintf("%s, stream %lld", name, (long long)of->stream));
	track.name = name;
	track.has_parent = true;
	track.parent = of->device && of->device->ordinal != UINT32_MAX
			       ? device_track(p, of->device)
			       : pf_process_track(p, of->pid);
	track.counter = &counter;
	put_track(p, &track, uuid);
	return uuid;
}

uint64_t pf_counter_track(struct pftrace *p, const struct pf_counter *of)
{
	uint64_t hash = hash64(hash64(hash64(hash64((uintptr_t)of->name) ^ (uint64_t)of->stream) ^
				      (uintptr_t)of->device) ^
			       (uint64_t)of->pid);
	uint64_t *slot = map64__at(&p->counter_of, hash >> 1);
	struct pf_counter *c;

	if (!slot || vec_grow((void **)&p->counters, &p->cap_counters, p->nr_counters,
			      sizeof(*p->counters))) {
		pf_no_memory(p);
		return 0;
	}
	for (size_t i = *slot - 1; i != SIZE_MAX; i = p->counters[i].next)
		if (same_counter(&p->counters[i], of))
			return p->counters[i].track;
	c = &p->counters[p->nr_counters++];
	*c = *of;
	c->next = *slot - 1;
	c->track = put_counter_track(p, of);
	*slot = p->nr_counters;
	return c->track;
}
