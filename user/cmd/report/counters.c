// SPDX-License-Identifier: BSD-2-Clause
/* What calls had of counters, as columns of tables and in the JSON; numbers of operations. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cmd/print/text.h"
#include "cmd/report/report.h"

/* The columns of each counter, in their order. */
enum part { TOTAL, SELF, PER_CALL, NR_PARTS };

const char *report_counter_title(char buf[REPORT_CELL_BYTES], const struct kprof_capture *c,
				 size_t column)
{
	static const char *const formats[] = {"%s", "Self %s", "%s/call"};
	const char *name = kprof_capture_counter(c, column / NR_PARTS);

	if (!name)
		return NULL;
	snprintf(buf, REPORT_CELL_BYTES, formats[column % NR_PARTS], name);
	return buf;
}

const char *report_counter_cell(char buf[REPORT_CELL_BYTES], const struct kprof_capture *c,
				const struct kprof_result *r, size_t row, size_t column)
{
	const char *name = kprof_capture_counter(c, column / NR_PARTS);
	enum part part = (enum part)(column % NR_PARTS);
	struct kprof_count n;
	bool of_time;

	if (!name || !kprof_result_count(r, row, column / NR_PARTS, &n))
		return "";
	of_time = strstr(name, "-clock") != NULL;
	if (part == SELF ? !n.self_calls : !n.calls)
		return ""; /* not known: no zero */
	if (of_time)
		return text_time(buf, part == TOTAL  ? n.total
				      : part == SELF ? n.self
						     : n.total / n.calls);
	if (part == PER_CALL)
		snprintf(buf, REPORT_CELL_BYTES, "%.2f", (double)n.total / (double)n.calls);
	else
		snprintf(buf, REPORT_CELL_BYTES, "%" PRIu64, part == TOTAL ? n.total : n.self);
	return buf;
}

void report_counters_line(const struct kprof_capture *c, const struct kprof_result *r)
{
	struct kprof_count n;

	if (kprof_capture_counter(c, 0) && kprof_result_count(r, 0, 0, &n))
		printf("Counters: of calls whose ends were seen; without a value: not known\n");
}

void report_counters_json_row(struct json *j, const struct kprof_capture *c,
			      const struct kprof_result *r, size_t row)
{
	struct kprof_count n;

	if (!kprof_result_count(r, row, 0, &n))
		return;
	json_open(j, "counters", '{');
	for (size_t i = 0; kprof_result_count(r, row, i, &n); i++) {
		json_open(j, kprof_capture_counter(c, i), '{');
		json_uint(j, "total", n.total);
		json_uint(j, "calls", n.calls);
		json_uint(j, "self", n.self);
		json_uint(j, "self_calls", n.self_calls);
		if (n.calls)
			json_double(j, "per_call", (double)n.total / (double)n.calls);
		json_close(j, '}');
	}
	json_close(j, '}');
}
