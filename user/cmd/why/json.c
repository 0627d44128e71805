// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/why/why.h"

#include <stdio.h>

#include "cmd/print/json.h"

static const char *const kinds[] = {
	[KPROF_WHY_LINE] = "line",   [KPROF_WHY_OPERATOR] = "operator", [KPROF_WHY_WHO] = "who",
	[KPROF_WHY_DOING] = "doing", [KPROF_WHY_PEER] = "peer",
};

static void put_info(struct json *j, const struct kprof_why_info *info)
{
	json_string(j, "per", info->by_step ? "step" : "second");
	json_string(j, "step", info->step);
	json_uint(j, "steps", info->units);
	json_double(j, "unit_ns", info->unit_ns);
	json_uint(j, "pid", (uint64_t)info->pid);
	json_uint(j, "tid", (uint64_t)info->tid);
	json_string(j, "thread", info->thread);
	json_string(j, "process", info->process);
	json_string(j, "chosen", info->chosen);
	json_uint(j, "other_processes_with_steps", info->peers);
	json_bool(j, "operators", info->ops);
	json_bool(j, "waits", info->waits);
	json_bool(j, "samples", info->samples);
	if (info->device)
		json_double(j, "device_share", info->device_share);
	else
		json_null(j, "device_share");
}

static void put_row(struct json *j, const struct kprof_why_row *row)
{
	json_open(j, NULL, '{');
	json_string(j, "cause", kprof_why_cause_key(row->cause));
	json_bool(j, "found", row->found);
	json_double(j, "ns", row->ns);
	json_double(j, "share", row->share);
	if (row->interval) {
		json_double(j, "low", row->low);
		json_double(j, "high", row->high);
	}
	json_double(j, "win", row->win);
	json_string(j, "advice", row->advice);
	json_open(j, "evidence", '[');
	for (size_t i = 0; i < row->nr_evidence; i++) {
		json_open(j, NULL, '{');
		json_string(j, "kind", kinds[row->evidence[i].kind]);
		json_string(j, "text", row->evidence[i].text);
		json_double(j, "share", row->evidence[i].share);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

void why_print_json(const struct kprof_why *w)
{
	struct json j = {.to = stdout};
	const char *what, *how;

	json_open(&j, NULL, '{');
	put_info(&j, kprof_why_info(w));
	json_open(&j, "causes", '[');
	for (size_t i = 0; i < kprof_why_nr_rows(w); i++)
		put_row(&j, kprof_why_row(w, i));
	json_close(&j, ']');
	json_open(&j, "not_seen", '[');
	for (size_t i = 0; kprof_why_missing(w, i, &what, &how); i++) {
		json_open(&j, NULL, '{');
		json_string(&j, "what", what);
		json_string(&j, "how", how);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}
