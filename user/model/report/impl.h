/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of tables. result.c chooses the kind of table and makes those of spans, device.c those
 * of devices, idle.c that of idle gaps, samples.c those of samples, processes.c those by process
 * and user, steps.c that by step (step_parts.c: its outliers), waits.c that of waits, alive.c that
 * of memory, collectives.c that by collective, roofline.c that of operations. rows.c has the rows
 * that all of them count into.
 */
#ifndef KPROF_REPORT_IMPL_H
#define KPROF_REPORT_IMPL_H

#include "kprof.h"
#include "kprof/collectives.h"
#include "kprof/counters.h"
#include "kprof/memory.h"
#include "kprof/steps.h"
#include "model/report/groups.h"
#include "model/timeline/timeline.h"

struct entry {
	struct kprof_row row; /* first: a row is part of its entry */
	uint64_t whole;       /* calls that min_ns and max_ns are of: none that the range cuts */
	struct kprof_count *counts; /* by counter; NULL: there are none */
	size_t order; /* order of creation: decides between rows that are otherwise equal */
};

struct kprof_result {
	struct entry *entries;
	size_t nr, cap;
	uint64_t self_total_ns;
	/* The whole of which shares are: the time in spans of any row; 0: self_total_ns. */
	uint64_t spans_ns;
	bool of_samples;
	bool keep_all; /* rows stay that nothing was counted in */
	bool in_order; /* rows stay in the order of their creation, unless another is asked for */
	struct groups groups; /* for tables by operator: owns the rows' names */
	/* By memory: one for each process. */
	struct kprof_memory_peak *peaks;
	size_t nr_peaks, cap_peaks;
	/* By collective: kprof/collectives.h. */
	struct kprof_collective_rank *collective_ranks;
	size_t nr_collective_ranks, cap_collective_ranks;
	struct kprof_collective *collectives;
	size_t nr_collectives, cap_collectives;
	uint64_t unmatched, clock_error_ns;
	struct kprof_count *counts; /* of all rows */
	uint32_t nr_counters;
	/* By step: one for each; what all outliers have. */
	struct kprof_step_info *step_infos;
	struct kprof_step_difference *step_differences;
	char **names; /* for other tables: the rows' names */
	size_t nr_names, cap_names;
};

/*
 * Adds a row and takes ownership of its name (NULL: the caller ran out of memory). The row is valid
 * until the next one is added. NULL with the error set.
 */
struct kprof_row *result__row(struct kprof_result *r, char *name);
/* A copy of a text that lives as long as the result. NULL with the error set. */
const char *result__keep(struct kprof_result *r, const char *text);
/*
 * Counts what took this time, all of it self time: the part in the selected range, as a call if it
 * begins there. Returns whether it does.
 */
bool result__count_part(struct kprof_row *row, const struct kprof_capture *t, uint64_t start_ns,
			uint64_t end_ns);
/* Counts an event of this duration, all of it self time. */
void result__count(struct kprof_row *row, uint64_t duration_ns);
/* Counts a span. total_ns: what it adds to the row's total, from nested__end(). */
void result__count_span(struct kprof_row *row, const struct tl_span *s, uint64_t total_ns);

/* Adds a row for every thread, in order of their indexes. */
int result__thread_rows(struct kprof_result *r, struct kprof_capture *t);

/* Whether there are spans for tables by operator and by thread. */
bool result__has_op_spans(const struct kprof_capture *t);
int result__by_samples(struct kprof_result *r, struct kprof_capture *t,
		       const struct kprof_result_opts *opts);
int result__by_kernel(struct kprof_result *r, struct kprof_capture *t);
/* The same of those activities that are wanted, by their numbers for correlate__act(). */
int result__by_work(struct kprof_result *r, struct kprof_capture *t,
		    bool (*wanted)(const void *ctx, uint32_t number), const void *ctx);
int result__by_api(struct kprof_result *r, struct kprof_capture *t);
int result__by_stream(struct kprof_result *r, struct kprof_capture *t);
int result__by_memcpy(struct kprof_result *r, struct kprof_capture *t);
int result__by_idle(struct kprof_result *r, struct kprof_capture *t);
int result__by_process(struct kprof_result *r, struct kprof_capture *t);
int result__by_user(struct kprof_result *r, struct kprof_capture *t);
int result__by_container(struct kprof_result *r, struct kprof_capture *t);
int result__by_step(struct kprof_result *r, struct kprof_capture *t);
int result__by_memory(struct kprof_result *r, struct kprof_capture *t);
int result__by_module(struct kprof_result *r, struct kprof_capture *t);
int result__by_collective(struct kprof_result *r, struct kprof_capture *t);
int result__by_flops(struct kprof_result *r, struct kprof_capture *t);
void result__free_collectives(struct kprof_result *r);
/* ---- idle_waits.c ---- */

struct idle_waits;
/* *out: NULL if the capture has no waits. */
int idle_waits__new(struct kprof_capture *t, struct idle_waits **out);
void idle_waits__free(struct idle_waits *w); /* NULL is fine */
/* A number for what a thread waited for most of this time; 0: it did not wait. w may be NULL. */
uint32_t idle_waits__of(struct idle_waits *w, uint32_t thread, uint64_t from_ns, uint64_t to_ns);
/* "waiting: pipe read, for loader, waiting: disk" */
const char *idle_waits__text(const struct idle_waits *w, uint32_t number);

int result__by_wait(struct kprof_result *r, struct kprof_capture *t);

#endif
