// SPDX-License-Identifier: BSD-2-Clause
/* How long threads ran, were runnable and waited. */
#include <stdio.h>

#include "cmd/print/text.h"
#include "cmd/report/report.h"

void report_waits_sum(const struct kprof_capture *c)
{
	struct kprof_thread_time t, sum = {0};
	char life[TEXT_NUMBER_BYTES];
	size_t nr = 0;
	int known;

	for (size_t i = 0; (known = kprof_capture_thread_time(c, i, &t)) >= 0; i++) {
		nr += known;
		sum.life_ns += known ? t.life_ns : 0;
		sum.on_ns += known ? t.on_ns : 0;
		sum.runnable_ns += known ? t.runnable_ns : 0;
		sum.blocked_ns += known ? t.blocked_ns : 0;
	}
	if (!nr || !sum.life_ns)
		return;
	if (kprof_capture_selection(c))
		printf("in the whole recording: ");
	printf("%zu thread%s that lived %s: %.2f%% on a CPU, %.2f%% waiting for one, %.2f%% "
	       "blocked\n",
	       nr, nr == 1 ? "" : "s", text_time(life, sum.life_ns),
	       (double)sum.on_ns / (double)sum.life_ns * 100,
	       (double)sum.runnable_ns / (double)sum.life_ns * 100,
	       (double)sum.blocked_ns / (double)sum.life_ns * 100);
}

void report_waits_json(struct json *j, const struct kprof_capture *c)
{
	struct kprof_thread_time t;
	int known;

	json_open(j, "threads", '[');
	for (size_t i = 0; (known = kprof_capture_thread_time(c, i, &t)) >= 0; i++) {
		if (!known)
			continue;
		json_open(j, NULL, '{');
		json_uint(j, "pid", (uint64_t)t.pid);
		json_uint(j, "tid", (uint64_t)t.tid);
		json_string(j, "name", t.name);
		json_uint(j, "life_ns", t.life_ns);
		json_uint(j, "on_cpu_ns", t.on_ns);
		json_uint(j, "runnable_ns", t.runnable_ns);
		json_uint(j, "blocked_ns", t.blocked_ns);
		json_uint(j, "switches", t.switches);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void report_waits_json_row(struct json *j, const struct kprof_row *row)
{
	json_uint(j, "runnable_ns", row->runnable_ns);
	json_string(j, "woken_by", row->caller ? row->caller : "");
	json_double(j, "woken_by_share", row->caller_share);
}
