// SPDX-License-Identifier: BSD-2-Clause
/* What only tables by process, user and step say, and what a selected range says of any table. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/print/text.h"
#include "cmd/report/report.h"

/* How long steps took: of those that were recorded from begin to end. */
struct steps {
	size_t nr;
	uint64_t median_ns, p95_ns;
	const struct kprof_row *slowest;
};

bool report_is_view(enum kprof_by by)
{
	return by == KPROF_BY_PROCESS || by == KPROF_BY_USER || by == KPROF_BY_CONTAINER ||
	       by == KPROF_BY_STEP;
}

static int by_size(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

static int measure(const struct kprof_result *r, struct steps *out)
{
	size_t all = kprof_result_nr_rows(r);
	uint64_t *times = calloc(all + 1, sizeof(*times));

	*out = (struct steps){0};
	if (!times)
		return -ENOMEM;
	for (size_t i = 0; i < all; i++) {
		const struct kprof_row *row = kprof_result_row(r, i);

		if (row->inexact)
			continue;
		times[out->nr++] = row->total_ns;
		if (!out->slowest || row->total_ns > out->slowest->total_ns)
			out->slowest = row;
	}
	if (out->nr) {
		qsort(times, out->nr, sizeof(*times), by_size);
		out->median_ns = times[(out->nr - 1) / 2] / 2 + times[out->nr / 2] / 2 +
				 (times[(out->nr - 1) / 2] & times[out->nr / 2] & 1);
		out->p95_ns = times[(out->nr * 95 + 99) / 100 - 1]; /* nearest rank */
	}
	free(times);
	return 0;
}

static void json_process(struct json *j, const struct kprof_row *row)
{
	json_uint(j, "samples", row->self_samples);
	json_uint(j, "cpu_ns", row->self_ns);
	json_uint(j, "op_ns", row->op_ns);
	json_uint(j, "device_ns", row->device_ns);
}

void report_views_json_row(struct json *j, enum kprof_by by, const struct kprof_row *row)
{
	if (!report_is_view(by))
		return;
	json_process(j, row);
	if (by == KPROF_BY_STEP) {
		json_uint(j, "step", row->step);
		json_uint(j, "start_ns", row->start_ns);
		json_string(j, "top", row->top);
		json_double(j, "top_share", row->top_share);
		return;
	}
	json_uint(j, "gaps", row->gaps);
	json_uint(j, "gap_ns", row->gap_ns);
	if (by == KPROF_BY_CONTAINER) {
		json_string(j, "pod", row->category);
		json_string(j, "cgroup", row->where);
		json_uint(j, "processes", row->processes);
		return;
	}
	if (row->uid == UINT32_MAX)
		json_null(j, "uid");
	else
		json_uint(j, "uid", row->uid);
	json_string(j, "user", row->category);
	json_uint(j, "processes", row->processes);
	if (by == KPROF_BY_PROCESS)
		json_string(j, "command", row->where);
}

static void json_range(struct json *j, const struct kprof_capture *c)
{
	const struct kprof_selection *s = kprof_capture_selection(c);

	if (!s)
		return;
	json_open(j, "range", '{');
	json_uint(j, "from_mono_ns", s->from_mono_ns);
	json_uint(j, "to_mono_ns", s->to_mono_ns);
	json_uint(j, "events", s->events);
	json_uint(j, "events_outside", s->events_outside);
	json_uint(j, "samples", s->samples);
	json_uint(j, "samples_outside", s->samples_outside);
	json_uint(j, "activities", s->activities);
	json_uint(j, "activities_outside", s->activities_outside);
	json_close(j, '}');
}

void report_views_json(struct json *j, enum kprof_by by, const struct kprof_capture *c,
		       const struct kprof_result *r)
{
	struct steps steps;

	json_range(j, c);
	if (by != KPROF_BY_STEP || measure(r, &steps))
		return;
	json_open(j, "steps", '{');
	json_uint(j, "exact", steps.nr);
	json_uint(j, "median_ns", steps.median_ns);
	json_uint(j, "p95_ns", steps.p95_ns);
	json_uint(j, "slowest_ns", steps.slowest ? steps.slowest->total_ns : 0);
	if (steps.slowest)
		json_uint(j, "slowest", steps.slowest->step);
	json_close(j, '}');
}

int report_views_lines(enum kprof_by by, const struct kprof_capture *c,
		       const struct kprof_result *r)
{
	char median[TEXT_NUMBER_BYTES], p95[TEXT_NUMBER_BYTES], most[TEXT_NUMBER_BYTES];
	char selected[RANGE_TEXT_BYTES];
	struct steps steps;

	if (range_text(selected, c))
		printf("%s\n", selected);
	if (by != KPROF_BY_STEP)
		return 0;
	if (measure(r, &steps))
		return -ENOMEM;
	if (!steps.nr)
		return 0;
	printf("%zu step%s from begin to end: median %s, 95th percentile %s, slowest %s (",
	       steps.nr, steps.nr == 1 ? "" : "s", text_time(median, steps.median_ns),
	       text_time(p95, steps.p95_ns), text_time(most, steps.slowest->total_ns));
	text_print(stdout, steps.slowest->name);
	printf(" of process %d)\n", steps.slowest->pid);
	return 0;
}
