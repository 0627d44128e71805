// SPDX-License-Identifier: BSD-2-Clause
/* What only tables by process and user say, and what a selected range says of any table. */
#include <stdio.h>
#include <sys/wait.h>

#include "cmd/report/report.h"

bool report_is_view(enum kprof_by by)
{
	return by == KPROF_BY_PROCESS || by == KPROF_BY_USER || by == KPROF_BY_CONTAINER ||
	       by == KPROF_BY_STEP;
}

static void json_process(struct json *j, const struct kprof_row *row)
{
	json_uint(j, "samples", row->self_samples);
	json_uint(j, "cpu_ns", row->self_ns);
	json_uint(j, "op_ns", row->op_ns);
	json_uint(j, "device_ns", row->device_ns);
}

/* How the process has ended, where that is known: of several with its number, the last. */
static void json_end(struct json *j, const struct kprof_capture *c, pid_t pid)
{
	struct kprof_capture_process p, found = {.exit_status = -1};

	for (size_t i = 0; !kprof_capture_process(c, i, &p); i++)
		if (p.pid == pid)
			found = p;
	if (found.exit_status < 0)
		return;
	if (WIFSIGNALED(found.exit_status))
		json_int(j, "exit_signal", WTERMSIG(found.exit_status));
	else
		json_int(j, "exit_code", WEXITSTATUS(found.exit_status));
}

void report_views_json_row(struct json *j, enum kprof_by by, const struct kprof_capture *c,
			   const struct kprof_row *row)
{
	if (!report_is_view(by))
		return;
	json_process(j, row);
	if (by == KPROF_BY_STEP) {
		report_steps_json_row(j, row);
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
	if (by == KPROF_BY_PROCESS) {
		json_string(j, "command", row->where);
		json_end(j, c, row->pid);
	}
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
	json_range(j, c);
	if (by == KPROF_BY_STEP)
		report_steps_json(j, r);
}

int report_views_lines(enum kprof_by by, const struct kprof_capture *c,
		       const struct kprof_result *r)
{
	char selected[RANGE_TEXT_BYTES];

	if (range_text(selected, c))
		printf("%s\n", selected);
	return by == KPROF_BY_STEP ? report_steps_lines(r) : 0;
}
