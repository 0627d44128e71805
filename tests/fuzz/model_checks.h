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

#include "kprof.h"
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
