// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/diff/diff.h"

#include <stdio.h>

#include "cmd/print/json.h"

static void put_change(struct json *j, const char *key, const struct kprof_diff_change *c)
{
	bool tested = c->verdict != KPROF_DIFF_UNTESTED;

	json_open(j, key, '{');
	json_string(j, "verdict", diff_verdict_name(c->verdict));
	json_double(j, "before_ns", c->before);
	json_double(j, "after_ns", c->after);
	json_double(j, "change_ns", c->change);
	if (tested) {
		json_double(j, "low_ns", c->low);
		json_double(j, "high_ns", c->high);
		json_double(j, "p", c->p);
		json_double(j, "shown_from_ns", c->least);
	}
	json_close(j, '}');
}

static void put_row(struct json *j, const struct kprof_diff_row *row)
{
	json_open(j, NULL, '{');
	json_string(j, "name", row->name);
	json_string(j, "category", row->category);
	json_string(j, "where", row->where);
	put_change(j, "time", &row->time);
	json_double(j, "self_before_ns", row->self_before);
	json_double(j, "self_after_ns", row->self_after);
	json_double(j, "total_before_ns", row->total_before);
	json_double(j, "total_after_ns", row->total_after);
	json_double(j, "calls_before", row->calls_before);
	json_double(j, "calls_after", row->calls_after);
	json_close(j, '}');
}

static void put_notes(struct json *j, const struct kprof_diff *d)
{
	const char *note;

	json_open(j, "notes", '[');
	for (size_t i = 0; (note = kprof_diff_note(d, i)); i++)
		json_string(j, NULL, note);
	json_close(j, ']');
}

void diff_print_json(const struct kprof_diff *d, size_t most)
{
	const struct kprof_diff_info *info = kprof_diff_info(d);
	size_t nr = kprof_diff_nr_rows(d);
	struct json j = {.to = stdout};

	json_open(&j, NULL, '{');
	json_string(&j, "by", diff_by_name(info->by));
	json_string(&j, "per", diff_per_name(info->per));
	json_bool(&j, "of_samples", info->of_samples);
	json_bool(&j, "total", info->total);
	json_bool(&j, "between_runs", info->between_runs);
	json_uint(&j, "captures_before", info->nr_before);
	json_uint(&j, "captures_after", info->nr_after);
	json_double(&j, "units_before", info->units_before);
	json_double(&j, "units_after", info->units_after);
	json_double(&j, "recorded_before_s", info->recorded_before);
	json_double(&j, "recorded_after_s", info->recorded_after);
	json_double(&j, "confidence", 1 - KPROF_DIFF_LEVEL);
	json_double(&j, "run_spread", info->run_spread);
	json_uint(&j, "tested", info->tested);
	json_uint(&j, "small", info->small);
	json_double(&j, "small_share", info->small_share);
	put_change(&j, "whole", &info->whole);
	if (info->per == KPROF_DIFF_PER_STEP)
		put_change(&j, "step", &info->step);
	json_open(&j, "rows", '[');
	for (size_t i = 0; i < nr && (!most || i < most); i++)
		put_row(&j, kprof_diff_row(d, i));
	json_close(&j, ']');
	put_notes(&j, d);
	json_close(&j, '}');
}
