// SPDX-License-Identifier: BSD-2-Clause
/*
 * The pid and tid of each device row. Readers expect a device's pid to be its ordinal and a
 * stream's tid to be its number. Devices of further processes get other pids (trace/rows.c), and
 * lanes and waits get tids above those of all streams. No row has tid 0, which Perfetto takes for
 * the process's main thread.
 */
#include "sink/chrome/impl.h"

#include <stdio.h>

/* Kineto's value: sorts devices after processes. */
#define DEVICE_SORT_INDEX 5000000
/*
 * A tid above every real one, for events of framework backends that threads report: they need not
 * nest with the thread's spans.
 */
#define THREAD_ROWS (1ull << 23)
/* Merged captures have TIDs up to 2^31: above those. */
#define MERGED_THREAD_ROWS (1ull << 32)
/* Above those, and in 32 signed bits, for activities that belong to no stream. */
#define STREAMLESS_ROWS (1ull << 30)

uint64_t chrome_tid(const struct chrome *c, uint32_t row, uint32_t lane)
{
	const struct trace_device *d = trace__device_of_row(&c->tr, row);
	int64_t stream = trace__stream(&c->tr, row);

	if (correlate__row(c->corr, row)->of_thread)
		return (timeline__machines(c->t) > 1 ? MERGED_THREAD_ROWS : THREAD_ROWS) +
		       (uint64_t)stream * CORRELATE_MAX_LANES + lane;
	if (correlate__row(c->corr, row)->ranges)
		lane += TRACE_FIRST_RANGE_LANE;
	else if (correlate__row(c->corr, row)->waits)
		lane += TRACE_FIRST_WAIT_LANE;
	if (stream < 0 || d->ordinal == UINT32_MAX)
		return STREAMLESS_ROWS + lane;
	return lane * d->tid_step + (uint64_t)stream;
}

void chrome_metadata(struct chrome *c, const char *name, uint64_t pid, uint64_t tid,
		     const char *arg)
{
	struct jsonw *w = &c->w;

	jsonw__text_string(w, ",\n{\"ph\":\"M\",\"name\":", name);
	jsonw__text_us(w, ",\"ts\":", c->first_ns);
	jsonw__text_u64(w, ",\"pid\":", pid);
	jsonw__text_u64(w, ",\"tid\":", tid);
	jsonw__text_string(w, ",\"args\":{", arg);
	jsonw__text(w, ":");
}

static void describe_device(struct chrome *c, const struct trace_device *d)
{
	const struct tl_process *p = timeline__process_of(c->t, d->pid);
	struct jsonw *w = &c->w;
	char label[64], name[32];

	if (d->process)
		snprintf(label, sizeof(label), "GPU %u of process %d", d->ordinal, d->pid);
	else
		snprintf(label, sizeof(label), "GPU %u", d->ordinal);
	snprintf(name, sizeof(name), "process %d", d->pid);
	chrome_metadata(c, "process_name", d->row_pid, 0, "name");
	jsonw__string(w, p ? p->comm : name);
	jsonw__text(w, "}}");
	chrome_metadata(c, "process_labels", d->row_pid, 0, "labels");
	jsonw__string(w, label);
	jsonw__text(w, "}}");
	chrome_metadata(c, "process_sort_index", d->row_pid, 0, "sort_index");
	jsonw__u64(w, DEVICE_SORT_INDEX + (uint64_t)d->process * 1000 + d->ordinal);
	jsonw__text(w, "}}");
}

static void describe_row(struct chrome *c, uint32_t index, uint32_t lane)
{
	uint64_t pid = trace__device_of_row(&c->tr, index)->row_pid,
		 tid = chrome_tid(c, index, lane);
	char name[TRACE_ROW_NAME_BYTES];

	trace__row_name(&c->tr, index, lane, name, sizeof(name));
	chrome_metadata(c, "thread_name", pid, tid, "name");
	jsonw__string(&c->w, name);
	jsonw__text(&c->w, "}}");
	chrome_metadata(c, "thread_sort_index", pid, tid, "sort_index");
	jsonw__u64(&c->w, trace__row_order(&c->tr, index, lane));
	jsonw__text(&c->w, "}}");
}

int chrome_rows_describe(struct chrome *c)
{
	const struct corr_row *row;

	for (size_t i = 0; i < c->tr.nr_devices; i++)
		if (c->tr.devices[i].ordinal != UINT32_MAX)
			describe_device(c, &c->tr.devices[i]);
	for (uint32_t i = 0; (row = correlate__row(c->corr, i)); i++)
		for (uint32_t lane = 0; lane < row->nr_lanes; lane++)
			describe_row(c, i, lane);
	return c->w.err;
}
