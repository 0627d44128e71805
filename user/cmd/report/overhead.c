// SPDX-License-Identifier: BSD-2-Clause
/* What the recording itself cost, and what it gave up. */
#include <stdio.h>

#include "cmd/print/text.h"
#include "cmd/report/report.h"
#include "kprof/overhead.h"

/* Parts that are next to nothing are left out of the line. */
#define LEAST_SHARE 0.000005

/* Operators of one step that are listed; the JSON has all of them. */
#define MOST_LISTED 10

/* What bursts say of an operator that was given up; errors are twice the standard error. */
static void burst_line(const struct kprof_overhead_operator *op)
{
	char ns[TEXT_NUMBER_BYTES], error[TEXT_NUMBER_BYTES];

	fputs("    ", stdout);
	text_print(stdout, op->name);
	printf(": about %.4g", op->calls);
	if (op->calls_error > 0)
		printf(" ± %.2g", 2 * op->calls_error);
	printf(" calls from then on, %s", text_time(ns, (uint64_t)op->ns));
	if (op->ns_error > 0)
		printf(" ± %s", text_time(error, (uint64_t)(2 * op->ns_error)));
	printf(", by %u burst%s\n", op->bursts, op->bursts == 1 ? "" : "s");
}

static void burst_lines(const struct kprof_overhead *o, size_t step)
{
	struct kprof_overhead_operator op;

	for (size_t i = 0; i < MOST_LISTED && !kprof_overhead_operator(o, step, i, &op); i++)
		if (op.bursts)
			burst_line(&op);
}

static void step_line(const struct kprof_overhead *o, size_t i)
{
	struct kprof_overhead_step step;
	char at[TEXT_NUMBER_BYTES], back[TEXT_NUMBER_BYTES];

	if (kprof_overhead_step(o, i, &step))
		return;
	printf("  after %s (%.1f %%): ", text_time(at, step.at_ns), step.share * 100);
	if (step.to_hz > 0) {
		printf("%.4g samples a second instead of %.4g\n", step.to_hz, step.from_hz);
	} else if (step.nr_operators) {
		printf("%u operators or calls no longer recorded\n", step.nr_operators);
		burst_lines(o, i);
	} else {
		fputs("no longer recorded: ", stdout);
		text_print(stdout, step.step);
		if (step.back_ns)
			printf(" until %s", text_time(back, step.back_ns));
		putchar('\n');
	}
}

static void bound_lines(const struct kprof_overhead *o)
{
	const struct kprof_overhead_sums *sums = kprof_overhead_sums(o);
	char over[TEXT_NUMBER_BYTES], longest[TEXT_NUMBER_BYTES];

	printf("a bound of %g %% was kept but for %s, at most %s at a time, with %zu step%s\n",
	       sums->bound * 100, text_time(over, sums->over_ns),
	       text_time(longest, sums->longest_over_ns), sums->nr_steps,
	       sums->nr_steps == 1 ? "" : "s");
	for (size_t i = 0; i < sums->nr_steps; i++)
		step_line(o, i);
}

static void sum_line(const struct kprof_overhead_sums *sums)
{
	const char *between = ": ";

	printf("kprof cost %.2g %% of the %s CPU time", sums->share * 100,
	       sums->machine ? "machine's" : "recorded processes'");
	for (int i = 0; i < KPROF_OVERHEAD_PARTS; i++) {
		double share = (double)sums->part_ns[i] / (double)sums->base_ns;

		if (share < LEAST_SHARE)
			continue;
		printf("%s%s %.2g", between, kprof_overhead_part_name((enum kprof_overhead_part)i),
		       share * 100);
		between = ", ";
	}
	printf("\n");
}

void report_overhead_line(const struct kprof_capture *c)
{
	struct kprof_overhead *o;

	if (kprof_overhead_new(c, &o) == 1 && kprof_overhead_sums(o)->base_ns) {
		sum_line(kprof_overhead_sums(o));
		if (kprof_overhead_sums(o)->bound > 0)
			bound_lines(o);
	}
	kprof_overhead_free(o);
}

static void json_bursts(struct json *j, const struct kprof_overhead_operator *op)
{
	json_uint(j, "for_ns", op->for_ns);
	json_uint(j, "bursts", op->bursts);
	if (!op->bursts)
		return;
	json_double(j, "estimated_calls", op->calls);
	json_double(j, "estimated_ns", op->ns);
	if (op->bursts < 2)
		return;
	json_double(j, "estimated_calls_error", op->calls_error);
	json_double(j, "estimated_ns_error", op->ns_error);
}

static void json_operators(struct json *j, const struct kprof_overhead *o, size_t i)
{
	struct kprof_overhead_operator op;

	json_open(j, "operators", '[');
	for (size_t k = 0; !kprof_overhead_operator(o, i, k, &op); k++) {
		json_open(j, NULL, '{');
		json_string(j, "name", op.name);
		json_double(j, "calls_a_second", op.calls_a_second);
		if (op.mean_ns > 0)
			json_double(j, "mean_ns", op.mean_ns);
		json_bursts(j, &op);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_step(struct json *j, const struct kprof_overhead *o, size_t i)
{
	struct kprof_overhead_step step;

	if (kprof_overhead_step(o, i, &step))
		return;
	json_open(j, NULL, '{');
	json_string(j, "step", step.step);
	json_uint(j, "at_ns", step.at_ns);
	json_double(j, "share", step.share);
	if (step.back_ns)
		json_uint(j, "back_ns", step.back_ns);
	if (step.to_hz > 0) {
		json_double(j, "from_hz", step.from_hz);
		json_double(j, "to_hz", step.to_hz);
	}
	if (step.nr_operators)
		json_operators(j, o, i);
	json_close(j, '}');
}

static void json_sums(struct json *j, const struct kprof_overhead_sums *sums)
{
	json_string(j, "of", sums->machine ? "machine" : "processes");
	json_uint(j, "base_ns", sums->base_ns);
	json_uint(j, "cost_ns", sums->cost_ns);
	json_double(j, "share", sums->share);
	json_double(j, "worst_second_share", sums->worst);
	json_open(j, "parts_ns", '{');
	for (int i = 0; i < KPROF_OVERHEAD_PARTS; i++)
		json_uint(j, kprof_overhead_part_name((enum kprof_overhead_part)i),
			  sums->part_ns[i]);
	json_close(j, '}');
	json_uint(j, "resident_bytes", sums->resident_bytes);
	json_uint(j, "most_resident_bytes", sums->most_resident_bytes);
	json_uint(j, "kernel_maps_bytes", sums->kernel_bytes);
	if (sums->bound > 0) {
		json_double(j, "bound", sums->bound);
		json_uint(j, "over_bound_ns", sums->over_ns);
		json_uint(j, "longest_over_bound_ns", sums->longest_over_ns);
	}
}

void report_overhead_json(struct json *j, const struct kprof_capture *c)
{
	struct kprof_overhead *o;

	if (kprof_overhead_new(c, &o) == 1) {
		json_open(j, "overhead", '{');
		json_sums(j, kprof_overhead_sums(o));
		json_open(j, "steps", '[');
		for (size_t i = 0; i < kprof_overhead_sums(o)->nr_steps; i++)
			json_step(j, o, i);
		json_close(j, ']');
		json_close(j, '}');
	}
	kprof_overhead_free(o);
}
