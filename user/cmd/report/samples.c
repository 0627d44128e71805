// SPDX-License-Identifier: BSD-2-Clause
/*
 * How reliable the samples are: how many there are, how many were lost, and how many native stacks
 * are complete.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* ---- by what ran the processes ---- */

/* Of one runtime: the pairs of it come one after the other. */
struct walks {
	struct json *json; /* NULL: as a line of text */
	char runtime[64];
	uint64_t all, whole;
	size_t nr, nr_ends;
	char ends[256]; /* of the text: those that are not whole */
};

static void print_runtime(struct walks *w)
{
	if (!w->all)
		return;
	fputs(w->nr++ ? "; " : "by what ran: ", stdout);
	text_print(stdout, w->runtime);
	if (w->whole == w->all) {
		printf(" %" PRIu64, w->all);
		return;
	}
	printf(" %.2f%% of %" PRIu64 " (", (double)w->whole / (double)w->all * 100, w->all);
	text_print(stdout, w->ends);
	printf(")");
}

static bool is_other(const struct walks *w, const char *runtime)
{
	return strncmp(w->runtime, runtime, sizeof(w->runtime) - 1);
}

static int text_walk(void *ctx, const char *runtime, const char *end, uint64_t nr)
{
	struct walks *w = ctx;
	size_t at;

	if (is_other(w, runtime)) {
		print_runtime(w);
		snprintf(w->runtime, sizeof(w->runtime), "%s", runtime);
		w->ends[0] = '\0';
		w->all = w->whole = 0;
	}
	w->all += nr;
	at = strlen(w->ends);
	if (!strcmp(end, "whole"))
		w->whole += nr;
	else
		snprintf(w->ends + at, sizeof(w->ends) - at, "%s%" PRIu64 " %s", at ? ", " : "", nr,
			 end);
	return 0;
}

void report_samples_runtimes(const struct kprof_capture *c)
{
	struct walks w = {0};

	/* what is known of the whole recording is not known of a part of it */
	if (kprof_capture_selection(c))
		return;
	kprof_capture_walks(c, text_walk, &w);
	print_runtime(&w);
	if (w.nr)
		printf("\n");
}

static int json_walk(void *ctx, const char *runtime, const char *end, uint64_t nr)
{
	struct walks *w = ctx;

	if (!w->nr || is_other(w, runtime)) {
		if (w->nr++)
			json_close(w->json, '}');
		snprintf(w->runtime, sizeof(w->runtime), "%s", runtime);
		json_open(w->json, w->runtime, '{');
	}
	json_uint(w->json, end, nr);
	return 0;
}

static void json_runtimes(struct json *j, const struct kprof_capture *c)
{
	struct walks w = {.json = j};

	json_open(j, "runtimes", '{');
	kprof_capture_walks(c, json_walk, &w);
	if (w.nr)
		json_close(j, '}');
	json_close(j, '}');
}

void report_samples_json(struct json *j, const struct kprof_capture *c,
			 const struct kprof_sample_stats *s)
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
	json_runtimes(j, c);
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
