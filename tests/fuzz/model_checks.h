/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What must hold for whatever a capture says: spans nest, lie in the window and are as many as the
 * begins; self times add up to the outermost spans, and to the same in every table and the tree.
 */
#ifndef KPROF_TESTS_MODEL_CHECKS_H
#define KPROF_TESTS_MODEL_CHECKS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <math.h>

#include "kprof.h"
#include "kprof/diff.h"
#include "kprof/why.h"
#include "model/timeline/timeline.h"
#include "store/store.h"

struct sums {
	uint64_t spans, self_ns, outermost_ns;
	uint64_t floor_ns, ceil_ns;
};

static inline void must(int holds, const char *description)
{
	if (holds)
		return;
	fprintf(stderr, "broken: %s\n", description);
	abort();
}

static inline int check_span(void *ctx, const struct tl_span *s)
{
	struct sums *sums = ctx;

	must(s->start_ns <= s->end_ns, "a span ends before it starts");
	must(s->start_ns >= sums->floor_ns && s->end_ns <= sums->ceil_ns, "out of the window");
	must(s->self_ns <= s->end_ns - s->start_ns, "more self time than duration");
	must(!s->depth == !s->parent_id && !s->depth == !s->parent_what, "depth and parent differ");
	sums->spans++;
	sums->self_ns += s->self_ns;
	if (!s->depth)
		sums->outermost_ns += s->end_ns - s->start_ns;
	return 0;
}

static inline int check_sample(void *ctx, const struct store_record *r)
{
	const struct kprof_capture *t = ctx;
	struct tl_call calls[64];
	uint32_t stack = r->sample.stack;
	size_t nr = timeline__calls(t, stack, calls, sizeof(calls) / sizeof(calls[0]));

	must(timeline__thread(t, r->sample.thread) != NULL, "a sample of no thread");
	must(!stack || timeline__stack(t, stack), "a sample of no stack");
	must(!stack == !nr, "a stack without frames");
	for (size_t i = 0; i < nr; i++)
		must(*calls[i].line->function && *calls[i].line->full && calls[i].line->file,
		     "a function without a name");
	return 0;
}

static inline void check_stacks(struct kprof_capture *t)
{
	for (uint32_t id = 1; id <= timeline__nr_stacks(t); id++)
		must(timeline__stack(t, id)->parent < id, "a stack within itself");
	timeline__samples(t, 0, check_sample, t);
}

static inline void check_timeline(const char *path)
{
	struct kprof_capture *t;
	struct sums sums = {0};

	if (kprof_capture_open(path, &t))
		return;
	sums.floor_ns = kprof_capture_info(t)->start_mono_ns;
	sums.ceil_ns = kprof_capture_info(t)->end_mono_ns;
	if (!timeline__spans(t, check_span, &sums)) {
		must(sums.spans == kprof_capture_info(t)->events, "spans are not the begins");
		must(sums.self_ns == sums.outermost_ns, "self times do not add up");
	}
	check_stacks(t);
	timeline__real_ns(t, sums.ceil_ns);
	kprof_capture_close(t);
}

/* Busy and idle make up the window, of each stream and of each device. */
static inline void check_streams(struct kprof_capture *c, const struct kprof_result *r)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *row = kprof_result_row(r, i);

		must(row->total_ns + row->idle_ns == info->end_mono_ns - info->start_mono_ns,
		     "busy and idle are not the window");
	}
}

/* Each sample is in one row by self time; shares are shares. */
static inline void check_rows_of_samples(struct kprof_capture *c)
{
	struct kprof_result_opts opts = {.sz = sizeof(opts)};
	struct kprof_result *r;

	for (int i = 0; i < 6; i++) {
		uint64_t samples = 0;

		opts.by = i < 3 ? KPROF_BY_FUNCTION : KPROF_BY_LINE;
		opts.frames = (enum kprof_frames)(i % 3);
		if (kprof_result_new_opts(c, &opts, &r))
			continue;
		for (size_t n = 0; n < kprof_result_nr_rows(r); n++) {
			const struct kprof_row *row = kprof_result_row(r, n);

			samples += row->self_samples;
			must(row->self_samples <= row->calls, "more innermost than anywhere");
			must(row->self_ns <= row->total_ns, "more innermost than anywhere");
			must(row->total_low >= 0 && row->total_low <= row->total_high &&
				     row->total_high <= 1,
			     "no share");
		}
		must(samples == kprof_capture_info(c)->nr_samples, "samples are in no row");
		kprof_result_free(r);
	}
}

static inline int check_public_sample(void *ctx, const struct kprof_sample *s)
{
	for (size_t i = 0; i < s->nr_frames; i++)
		must(s->frames[i].module && s->frames[i].op && s->frames[i].build_id, "no text");
	return 0;
}

static inline void check_samples(const char *path)
{
	struct kprof_sample_stats stats;
	struct kprof_capture *c;

	if (kprof_capture_open(path, &c))
		return;
	check_rows_of_samples(c);
	kprof_capture_samples(c, check_public_sample, NULL);
	if (!kprof_capture_sample_stats(c, &stats))
		must(stats.whole <= stats.walked && stats.walked <= stats.samples, "worth more");
	kprof_capture_close(c);
}

static inline void check_results(const char *path)
{
	struct kprof_capture *c;
	struct kprof_result *r;
	struct kprof_tree *t;
	uint64_t self_ns = 0;

	if (kprof_capture_open(path, &c))
		return;
	if (!kprof_tree_new(c, &t)) {
		/* In preorder, without a stack. */
		for (const struct kprof_node *n = kprof_tree_root(t); n;) {
			self_ns += n->self_ns;
			if (n->first_child) {
				n = n->first_child;
				continue;
			}
			while (n && !n->next_sibling)
				n = n->parent;
			n = n ? n->next_sibling : NULL;
		}
		kprof_tree_free(t);
		for (int by = KPROF_BY_OP; by <= KPROF_BY_THREAD; by++) {
			if (kprof_result_new(c, (enum kprof_by)by, KPROF_SORT_AVG, &r))
				continue;
			must(kprof_result_of_samples(r) || kprof_result_self_total_ns(r) == self_ns,
			     "table and tree differ");
			kprof_result_free(r);
		}
	}
	for (int by = KPROF_BY_KERNEL; by <= KPROF_BY_IDLE; by++) {
		if (kprof_result_new(c, (enum kprof_by)by, KPROF_SORT_TOTAL, &r))
			continue;
		self_ns = 0;
		for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
			self_ns += kprof_result_row(r, i)->self_ns;
		must(kprof_result_self_total_ns(r) == self_ns, "rows do not add up");
		if (by == KPROF_BY_STREAM)
			check_streams(c, r);
		kprof_result_free(r);
	}
	kprof_capture_close(c);
}

/* What a table says in all. */
struct in_all {
	uint64_t calls, self_ns, total_ns, samples;
};

static inline int add_in_all(struct kprof_capture *c, enum kprof_by by, struct in_all *all)
{
	struct kprof_result *r;

	if (kprof_result_new(c, by, KPROF_SORT_SELF, &r))
		return -1;
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *row = kprof_result_row(r, i);

		/* They are known of the whole recording only. */
		if (by == KPROF_BY_WAIT && !strcmp(row->name, "[shorter waits]"))
			continue;
		all->calls += row->calls;
		all->self_ns += row->self_ns;
		all->total_ns += row->total_ns;
		all->samples += row->self_samples;
	}
	kprof_result_free(r);
	return 0;
}

static inline int count_one(void *ctx, const struct tl_span *s)
{
	uint64_t *nr = ctx;

	++*nr;
	return 0;
}

static inline int check_part(struct kprof_capture *c, int64_t from_ns, int64_t to_ns, int last)
{
	struct kprof_range range = {.sz = sizeof(range),
				    .has_from = true,
				    .from_ns = from_ns,
				    .has_to = !last,
				    .to_ns = to_ns};
	const struct kprof_selection *s;
	uint64_t nr = 0;

	if (kprof_capture_select(c, &range))
		return -1;
	s = kprof_capture_selection(c);
	if (timeline__spans(c, count_one, &nr))
		return -1;
	must(nr == s->events, "other events are selected than counted");
	must(s->events + s->events_outside == kprof_capture_info(c)->events, "events are lost");
	must(s->samples + s->samples_outside == kprof_capture_info(c)->nr_samples,
	     "samples are lost");
	return 0;
}

static inline void must_add_up(enum kprof_by by, const struct in_all *whole,
			       const struct in_all *parts)
{
	bool times = by < KPROF_BY_FUNCTION || by == KPROF_BY_WAIT;

	must(whole->calls == parts->calls || by == KPROF_BY_FUNCTION,
	     "calls of parts do not add up");
	must(whole->samples == parts->samples, "samples of parts do not add up");
	must(whole->self_ns == parts->self_ns || !times, "self times of parts do not add up");
	must(whole->total_ns == parts->total_ns || !times, "times of parts do not add up");
}

/* Three parts of the time are all of it: each moment, each call and each sample is in one. */
static inline void check_parts(const char *path)
{
	static const enum kprof_by tables[] = {KPROF_BY_OP, KPROF_BY_KERNEL, KPROF_BY_FUNCTION,
					       KPROF_BY_PROCESS, KPROF_BY_WAIT};
	struct kprof_export_opts opts = {
		.sz = sizeof(opts), .path = "/dev/null", .format = "chrome"};
	struct in_all whole[5] = {{0}}, parts[5] = {{0}}, none = {0};
	struct kprof_capture *c;
	uint64_t window_ns;
	int fine, nr;

	if (kprof_capture_open(path, &c))
		return;
	nr = kprof_capture_meta(c, "waits") ? 5 : 4;
	window_ns = kprof_capture_info(c)->end_mono_ns - kprof_capture_info(c)->start_mono_ns;
	/* After a pass, the counts are those of the records, not what heads of chunks say. */
	fine = !check_part(c, 0, 0, 1) && !kprof_capture_select(c, NULL);
	for (int i = 0; i < nr && fine; i++)
		fine = !add_in_all(c, tables[i], &whole[i]);
	for (int n = 0; n < 3 && fine; n++) {
		fine = !check_part(c, (int64_t)(window_ns / 3 * (uint64_t)n),
				   (int64_t)(window_ns / 3 * (uint64_t)(n + 1)), n == 2);
		for (int i = 0; i < nr && fine; i++)
			fine = !add_in_all(c, tables[i], &parts[i]);
		if (fine && n == 1)
			kprof_capture_export(c, &opts);
		for (int by = KPROF_BY_API; by <= KPROF_BY_STEP && fine; by++)
			add_in_all(c, (enum kprof_by)by, &none);
		if (fine)
			add_in_all(c, KPROF_BY_MEMORY, &none);
	}
	for (int i = 0; i < nr && fine; i++)
		must_add_up(tables[i], &whole[i], &parts[i]);
	kprof_capture_close(c);
}

/* Whether two sums of the same numbers are the same, but for rounding. */
static inline int same_sum(double a, double b)
{
	return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}

/* Nothing differs from itself, however much of it there is; rows add up to the whole. */
static inline void check_same(const struct kprof_diff *d)
{
	const struct kprof_diff_info *info = kprof_diff_info(d);
	double self = 0;

	for (size_t i = 0; i < kprof_diff_nr_rows(d); i++) {
		const struct kprof_diff_row *row = kprof_diff_row(d, i);

		must(row->time.change == 0, "it differs from itself");
		must(row->time.verdict == KPROF_DIFF_NONE ||
			     row->time.verdict == KPROF_DIFF_UNTESTED,
		     "a difference from itself");
		must(row->self_before == row->self_after && row->calls_before == row->calls_after,
		     "sides that differ");
		self += row->self_before;
	}
	if (info->per == KPROF_DIFF_PER_SECOND || info->per == KPROF_DIFF_PER_RUN)
		must(same_sum(self, info->whole.before), "rows do not add up to the whole");
	must(!kprof_diff_above(d, 0), "above itself");
}

/* A capture compared with itself, in one of the ways that there are. */
static inline void check_diff(const char *path, size_t way)
{
	const struct kprof_diff_set set = {&path, 1};
	const struct kprof_diff_opts opts = {
		.sz = sizeof(opts),
		.by = (enum kprof_diff_by)(way % (KPROF_DIFF_BY_WAIT + 1)),
		.per = (enum kprof_diff_per)(way / 7 % (KPROF_DIFF_PER_CALL + 1)),
		.total = way / 42 % 2,
	};
	const struct kprof_diff_flame_opts flame = {
		.sz = sizeof(flame), .path = "/dev/null", .per = opts.per};
	struct kprof_diff *d;

	if (!kprof_diff_new(&set, &set, &opts, &d)) {
		check_same(d);
		kprof_diff_free(d);
	}
	kprof_diff_flame(&set, &set, &flame);
}

/* Each moment of a step has one cause, so that shares add up. */
static inline void check_why(const char *path)
{
	const struct kprof_why_opts opts = {.sz = sizeof(opts)};
	struct kprof_capture *c;
	struct kprof_why *w;
	double sum = 0;

	if (kprof_capture_open(path, &c))
		return;
	if (!kprof_why_new(c, &opts, &w)) {
		for (size_t i = 0; i < kprof_why_nr_rows(w); i++) {
			const struct kprof_why_row *row = kprof_why_row(w, i);

			must(row->share >= 0 && row->share <= 1 + 1e-6, "no share");
			must(row->win >= 0 && row->win <= row->share, "more is won than there is");
			must(row->nr_evidence == 0 || *kprof_why_cause_name(row->cause), "no name");
			sum += row->share;
		}
		must(fabs(sum - 1) < 1e-6, "shares do not add up");
		kprof_why_free(w);
	}
	kprof_capture_close(c);
}

/* Waits: in a table of their own, and in place of samples. */
static inline void check_waits(const char *path)
{
	struct kprof_export_opts opts = {
		.sz = sizeof(opts), .path = "/dev/null", .format = "folded", .off_cpu = true};
	struct kprof_result_opts table = {.sz = sizeof(table), .off_cpu = true};
	struct kprof_thread_time time;
	struct kprof_capture *c;
	struct kprof_result *r;
	uint64_t self_ns = 0;

	if (kprof_capture_open(path, &c))
		return;
	for (size_t i = 0; kprof_capture_thread_time(c, i, &time) >= 0; i++)
		;
	if (!kprof_result_new(c, KPROF_BY_WAIT, KPROF_SORT_TOTAL, &r)) {
		for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
			const struct kprof_row *row = kprof_result_row(r, i);

			must(*row->name && *row->category, "a wait of nobody, or for nothing");
			must(row->caller_share >= 0 && row->caller_share <= 1, "no share");
			self_ns += row->self_ns;
		}
		must(kprof_result_self_total_ns(r) == self_ns, "rows do not add up");
		kprof_result_free(r);
	}
	for (table.by = KPROF_BY_OP; table.by <= KPROF_BY_THREAD; table.by++)
		if (!kprof_result_new_opts(c, &table, &r))
			kprof_result_free(r);
	kprof_capture_export(c, &opts);
	/* A request has both. */
	opts.format = "otlp";
	opts.off_cpu = false;
	kprof_capture_export(c, &opts);
	opts.off_cpu = true;
	/* A trace of Perfetto has what each CPU ran of them. */
	opts.format = "perfetto";
	if (kprof_capture_meta(c, "waits"))
		kprof_capture_export(c, &opts);
	kprof_capture_close(c);
}

/* As a trace: nothing of it may go wrong that did not when it was read. */
static inline void check_export(const char *path)
{
	struct kprof_export_opts opts = {
		.sz = sizeof(opts), .path = "/dev/null", .format = "chrome"};
	struct kprof_capture *c;

	if (kprof_capture_open(path, &c))
		return;
	kprof_capture_export(c, &opts);
	kprof_capture_close(c);
}

#endif
