// SPDX-License-Identifier: BSD-2-Clause
/* What tables by step say beside the rows: how long steps took, outliers, what differed there. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cmd/print/text.h"
#include "cmd/report/report.h"
#include "kprof/steps.h"

#define MOST_OUTLIERS 10 /* those that took longest; --json has all */

/* How long steps took: of those that were recorded from begin to end. */
struct steps {
	size_t nr;
	uint64_t median_ns, p95_ns;
	const struct kprof_row *slowest;
	size_t outliers;
};

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

		out->outliers += row->in_step->outlier;
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

/* ---- JSON ---- */

void report_steps_json_row(struct json *j, const struct kprof_row *row)
{
	const struct kprof_step_info *info = row->in_step;

	json_uint(j, "step", row->step);
	json_uint(j, "start_ns", row->start_ns);
	json_string(j, "top", row->top);
	json_double(j, "top_share", row->top_share);
	json_double(j, "of_median", info->of_median);
	json_uint(j, "median_ns", info->median_ns);
	json_uint(j, "mad_ns", info->mad_ns);
	if (info->waits_recorded)
		json_uint(j, "wait_ns", info->wait_ns);
	else
		json_null(j, "wait_ns");
	json_bool(j, "outlier", info->outlier);
	json_open(j, "differences", '[');
	for (size_t i = 0; i < info->nr_differences; i++) {
		const struct kprof_step_difference *d = &info->differences[i];

		json_open(j, NULL, '{');
		json_string(j, "what", kprof_step_what_name(d->what));
		json_string(j, "name", d->name);
		json_uint(j, "ns", d->ns);
		json_uint(j, "median_ns", d->median_ns);
		json_close(j, '}');
	}
	json_close(j, ']');
}

void report_steps_json(struct json *j, const struct kprof_result *r)
{
	struct steps steps;

	if (measure(r, &steps))
		return;
	json_open(j, "steps", '{');
	json_uint(j, "exact", steps.nr);
	json_uint(j, "median_ns", steps.median_ns);
	json_uint(j, "p95_ns", steps.p95_ns);
	json_uint(j, "slowest_ns", steps.slowest ? steps.slowest->total_ns : 0);
	if (steps.slowest)
		json_uint(j, "slowest", steps.slowest->step);
	json_uint(j, "outliers", steps.outliers);
	json_close(j, '}');
}

/* ---- text ---- */

const char *report_steps_cell(char *buf, size_t bytes, const struct kprof_row *row, bool waited)
{
	if (waited)
		return text_time(buf, row->in_step->wait_ns);
	snprintf(buf, bytes, "%.2f%s", row->in_step->of_median,
		 row->in_step->outlier ? " !" : "  ");
	return buf;
}

bool report_steps_waited(const struct kprof_result *r)
{
	const struct kprof_row *first = kprof_result_row(r, 0);

	return first && first->in_step->waits_recorded;
}

static void print_difference(const struct kprof_step_difference *d)
{
	char more[TEXT_NUMBER_BYTES], ns[TEXT_NUMBER_BYTES], median[TEXT_NUMBER_BYTES];

	printf("    +%s %s", text_time(more, d->ns - d->median_ns), kprof_step_what_name(d->what));
	if (*d->name) {
		printf(" ");
		text_print(stdout, d->name);
	}
	printf(": %s instead of %s\n", text_time(ns, d->ns), text_time(median, d->median_ns));
}

static void print_outlier(const struct kprof_row *row)
{
	const struct kprof_step_info *info = row->in_step;
	char ns[TEXT_NUMBER_BYTES], median[TEXT_NUMBER_BYTES], mad[TEXT_NUMBER_BYTES];

	printf("  ");
	text_print(stdout, row->name);
	printf(" of process %d: %s, %.2f times the median of %s (MAD %s)%s\n", row->pid,
	       text_time(ns, row->total_ns), info->of_median, text_time(median, info->median_ns),
	       text_time(mad, info->mad_ns),
	       info->nr_differences ? "; what took longer in it than in the median step:" : "");
	for (size_t i = 0; i < info->nr_differences; i++)
		print_difference(&info->differences[i]);
}

static int by_duration(const void *pa, const void *pb)
{
	const struct kprof_row *a = *(const struct kprof_row *const *)pa,
			       *b = *(const struct kprof_row *const *)pb;

	return (a->total_ns < b->total_ns) - (a->total_ns > b->total_ns);
}

static int print_outliers(const struct kprof_result *r, size_t outliers)
{
	const struct kprof_row **all = calloc(outliers, sizeof(struct kprof_row *));
	size_t nr = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (kprof_result_row(r, i)->in_step->outlier)
			all[nr++] = kprof_result_row(r, i);
	qsort(all, nr, sizeof(struct kprof_row *), by_duration);
	printf("%zu outlier%s (!): longer than the median of its process by more than %.0f %%, and "
	       "than %d times 1.4826 MAD\n",
	       nr, nr == 1 ? "" : "s", KPROF_STEP_OUTLIER_LEAST * 100, KPROF_STEP_OUTLIER_MADS);
	for (size_t i = 0; i < nr && i < MOST_OUTLIERS; i++)
		print_outlier(all[i]);
	if (nr > MOST_OUTLIERS)
		printf("  … and %zu shorter ones: --json has all\n", nr - MOST_OUTLIERS);
	free(all);
	return 0;
}

int report_steps_lines(const struct kprof_result *r)
{
	char median[TEXT_NUMBER_BYTES], p95[TEXT_NUMBER_BYTES], most[TEXT_NUMBER_BYTES];
	struct steps steps;

	if (measure(r, &steps))
		return -ENOMEM;
	if (!steps.nr)
		return 0;
	printf("%zu step%s from begin to end: median %s, 95th percentile %s, slowest %s (",
	       steps.nr, steps.nr == 1 ? "" : "s", text_time(median, steps.median_ns),
	       text_time(p95, steps.p95_ns), text_time(most, steps.slowest->total_ns));
	text_print(stdout, steps.slowest->name);
	printf(" of process %d)\n", steps.slowest->pid);
	return steps.outliers ? print_outliers(r, steps.outliers) : 0;
}
