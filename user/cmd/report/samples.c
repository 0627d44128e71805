// SPDX-License-Identifier: BSD-2-Clause
/*
 * How reliable the samples are: how many there are, how many were lost, and how many native stacks
 * are complete.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cmd/report/report.h"
#include "cmd/print/text.h"

/* Prints why walks ended before the thread's first function, such as "80 no table, 12 odd rule". */
static void print_ends(const struct kprof_sample_stats *s)
{
	/* Walks that reached the first function, but of which frames were cut. */
	uint64_t cut = s->ends[KPROF_SAMPLE_END_WHOLE] - s->whole;
	const char *between = "; ended otherwise: ";

	for (uint32_t end = 0; end < KPROF_SAMPLE_NR_ENDS; end++) {
		if (!s->ends[end] || end == KPROF_SAMPLE_END_NONE || end == KPROF_SAMPLE_END_WHOLE)
			continue;
		printf("%s%" PRIu64 " %s", between, s->ends[end], kprof_sample_end(end));
		between = ", ";
	}
	if (cut)
		printf("%s%" PRIu64 " cut", between, cut);
}

void report_samples_head(const struct kprof_sample_stats *s)
{
	char time[TEXT_NUMBER_BYTES];
	uint64_t due = s->samples + s->lost;

	printf("%" PRIu64 " samples that stand for %s, %" PRIu64 " lost (%.2f%%)\n", s->samples,
	       text_time(time, s->weight_ns), s->lost,
	       due ? (double)s->lost / (double)due * 100 : 0);
	if (!s->walked)
		return;
	printf("%.2f%% of %" PRIu64 " native stacks reach the thread's first function",
	       (double)s->whole / (double)s->walked * 100, s->walked);
	print_ends(s);
	printf("\n");
}

void report_samples_json(struct json *j, const struct kprof_sample_stats *s)
{
	json_open(j, "samples", '{');
	json_uint(j, "samples", s->samples);
	json_uint(j, "weight_ns", s->weight_ns);
	json_uint(j, "lost", s->lost);
	json_uint(j, "walked", s->walked);
	json_uint(j, "whole", s->whole);
	json_uint(j, "cut", s->cut);
	json_open(j, "ends", '{');
	for (uint32_t end = 0; end < KPROF_SAMPLE_NR_ENDS; end++)
		if (s->ends[end])
			json_uint(j, kprof_sample_end(end), s->ends[end]);
	json_close(j, '}');
	json_close(j, '}');
}

void report_samples_json_row(struct json *j, const struct kprof_row *row)
{
	json_string(j, "where", row->where);
	json_uint(j, "samples", row->calls);
	json_uint(j, "self_samples", row->self_samples);
	json_double(j, "self_low", row->self_low);
	json_double(j, "self_high", row->self_high);
	json_double(j, "total_low", row->total_low);
	json_double(j, "total_high", row->total_high);
	json_string(j, "caller", row->caller ? row->caller : "");
	json_double(j, "caller_share", row->caller_share);
	json_string(j, "node", row->node ? row->node : "");
	json_double(j, "node_share", row->node_share);
	json_uint(j, "gil_ns", row->gil_ns);
	json_uint(j, "gil_wait_ns", row->gil_wait_ns);
}
