// SPDX-License-Identifier: BSD-2-Clause
/*
 * The pid and tid of each device row. Readers expect a device's pid to be its ordinal and a
 * stream's tid to be its number. Devices of further processes get other pids, and lanes and waits
 * get tids above those of all streams.
 */
#include "sink/trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/util.h"

/* The distance between two processes' pids for devices: above every PID of Linux (2^22). */
#define PROCESS_STEP (1ull << 23)
/*
 * In captures merged of several machines', whose PIDs are that of the machine and a number of
 * millions: above every PID of the machine, and below those of the next one.
 */
#define MERGED_DEVICES 5000000u
#define MERGED_STEP 100u
/* Correlations given to work that has none: above any that a device gives. */
#define NO_CORRELATION (1ull << 51)

/* The number of a process, from 0, among the processes with device work. */
static uint64_t process_number(struct trace *tr, pid_t pid)
{
	uint64_t *slot = map64__at(&tr->processes, (uint32_t)pid);

	if (!slot)
		return 0; /* out of memory: two processes get the same numbers */
	if (!*slot)
		*slot = ++tr->nr_processes;
	return *slot - 1;
}

uint64_t trace__device_pid(struct trace *tr, pid_t pid, uint32_t ordinal)
{
	uint64_t number = process_number(tr, pid);
	const struct tl_process *p = timeline__process_of(tr->t, pid);

	if (!number || !p || !p->host_pid)
		return number * PROCESS_STEP + ordinal;
	return (uint64_t)(pid - p->host_pid) + MERGED_DEVICES + number * MERGED_STEP + ordinal;
}

static struct trace_device *find_device(struct trace *tr, struct map64 *numbers,
					const struct corr_row *row)
{
	uint64_t *slot = map64__at(numbers, (uint64_t)(row->pid & INT32_MAX) << 32 | row->device);
	struct trace_device *d;

	if (!slot)
		return NULL;
	if (*slot)
		return &tr->devices[*slot - 1];
	if (vec_grow((void **)&tr->devices, &tr->cap_devices, tr->nr_devices, sizeof(*tr->devices)))
		return NULL;
	d = &tr->devices[tr->nr_devices++];
	*slot = tr->nr_devices;
	*d = (struct trace_device){.pid = row->pid, .ordinal = row->device, .tid_step = 1000};
	if (row->device == UINT32_MAX) {
		d->row_pid = (uint32_t)row->pid;
		return d;
	}
	d->process = (uint32_t)process_number(tr, row->pid);
	d->row_pid = trace__device_pid(tr, row->pid, row->device);
	device_props__read(tr->t, row->pid, row->device, &d->props);
	return d;
}

static int find_devices(struct trace *tr)
{
	struct map64 numbers = {0};
	const struct corr_row *row;
	struct trace_device *d = NULL;
	size_t nr = 0;
	int err = 0;

	while (correlate__row(tr->corr, nr))
		nr++;
	tr->device_of_row = calloc(nr + 1, sizeof(*tr->device_of_row));
	for (size_t i = 0; tr->device_of_row && (row = correlate__row(tr->corr, i)); i++) {
		d = find_device(tr, &numbers, row);
		if (!d)
			break;
		tr->device_of_row[i] = (uint32_t)(d - tr->devices);
		if (row->stream == UINT32_MAX || row->of_thread)
			continue;
		d->shift |= row->stream == 0 && row->device != UINT32_MAX;
		d->streams += !row->waits;
		while (d->tid_step <= (uint64_t)row->stream + 1)
			d->tid_step *= 10;
	}
	if (!tr->device_of_row || (nr && !d))
		err = error_set(-ENOMEM, NULL, "no memory for the trace's devices");
	map64__free(&numbers);
	return err;
}

const struct trace_device *trace__device_of_row(const struct trace *tr, uint32_t row)
{
	return &tr->devices[tr->device_of_row[row]];
}

int64_t trace__stream(const struct trace *tr, uint32_t row)
{
	uint32_t stream = correlate__row(tr->corr, row)->stream;

	return stream == UINT32_MAX ? -1 : (int64_t)stream + trace__device_of_row(tr, row)->shift;
}

const struct trace_device *trace__device(const struct trace *tr, pid_t pid, uint32_t ordinal)
{
	for (size_t i = 0; i < tr->nr_devices; i++)
		if (tr->devices[i].pid == pid && tr->devices[i].ordinal == ordinal)
			return &tr->devices[i];
	return NULL;
}

uint64_t trace__correlation(struct trace *tr, pid_t pid, uint64_t correlation, uint32_t again)
{
	uint64_t process = process_number(tr, pid);

	if (!process && !again)
		return correlation;
	return correlation + ((process + again * tr->nr_processes) << 32);
}

uint64_t trace__call_id(struct trace *tr, const struct corr_call *call)
{
	const struct tl_thread *thread = timeline__thread(tr->t, call->thread);

	if (!call->correlation)
		return NO_CORRELATION;
	return trace__correlation(tr, thread->pid, call->correlation, call->again);
}

/* ---- names ---- */

/* The thread that reported the activities of a row; 0: the capture does not know it. */
static int thread_of_row(const struct trace *tr, const struct corr_row *row)
{
	const struct tl_thread *th = timeline__thread(tr->t, row->stream);

	return th ? th->tid : 0;
}

/* Kineto's name is "stream 7 " with the blank; kprof appends what kind of row it is. */
void trace__row_name(const struct trace *tr, uint32_t row_number, uint32_t lane, char *name,
		     size_t size)
{
	const struct corr_row *row = correlate__row(tr->corr, row_number);
	int64_t stream = trace__stream(tr, row_number);
	char more[32] = "";

	if (lane)
		snprintf(more, sizeof(more), "lane %u ", lane + 1);
	if (row->of_thread)
		snprintf(name, size, "backend events of thread %d %s", thread_of_row(tr, row),
			 more);
	else if (row->device == UINT32_MAX)
		snprintf(name, size, "profiler overhead %s", more);
	else if (stream < 0)
		snprintf(name, size, "%s %s",
			 row->ranges  ? "metrics"
			 : row->waits ? "waits"
				      : "no stream",
			 more);
	else
		snprintf(name, size, "stream %lld %s%s", (long long)stream,
			 row->waits ? "waits " : "", more);
}

/* A stream's lanes and waits come below it, activities that a thread reported below the thread. */
uint64_t trace__row_order(const struct trace *tr, uint32_t row_number, uint32_t lane)
{
	const struct corr_row *row = correlate__row(tr->corr, row_number);
	int64_t stream = trace__stream(tr, row_number);

	if (row->of_thread)
		return (uint64_t)thread_of_row(tr, row);
	return (uint64_t)(stream < 0 ? 0 : stream) * 2 * CORRELATE_MAX_LANES +
	       (row->waits ? TRACE_FIRST_WAIT_LANE : 0) + lane;
}

bool trace__flows_to(const struct trace *tr, const struct corr_act *act)
{
	const struct corr_row *row = correlate__row(tr->corr, act->row);

	return row && corr_row_is_work(row) && !(act->flags & CORR_ACT_NO_LANE);
}

/* ---- the whole ---- */

int trace__open(struct trace *tr)
{
	int err = correlate__new(tr->t, tr->opts->pid, &tr->corr);

	if (err)
		return err;
	tr->keys = calloc(timeline__nr_strings(tr->t), sizeof(*tr->keys));
	if (!tr->keys)
		return error_set(-ENOMEM, NULL, "no memory for the trace's names");
	err = trace__flows_open(tr);
	return err ? err : find_devices(tr);
}

void trace__close(struct trace *tr)
{
	correlate__free(tr->corr);
	map64__free(&tr->processes);
	free(tr->keys);
	free(tr->devices);
	free(tr->device_of_row);
	bulk__free(&tr->flows);
	bulk__free(&tr->flow_ends);
	trace__functions_close(tr);
}
