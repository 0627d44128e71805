/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_REPORT_REPORT_H
#define KPROF_CMD_REPORT_REPORT_H

#include <stddef.h>

#include "cmd/options/option.h"
#include "cmd/options/range.h"
#include "cmd/print/json.h"
#include "kprof.h"
#include "kprof/collectives.h"
#include "kprof/counters.h"
#include "kprof/memory.h"

extern const struct command cmd_report;

/*
 * Prints the first rows as a table, and a line below it on what they are shares of. Returns an exit
 * code.
 */
int report_table(enum kprof_by by, const struct kprof_capture *c, const struct kprof_result *r,
		 size_t nr_rows, bool off_cpu);
/* Prints the samples' accounting: as two lines in front of a table, or as a member of the JSON. */
void report_samples_head(const struct kprof_sample_stats *s);
void report_samples_json(struct json *j, const struct kprof_capture *c,
			 const struct kprof_sample_stats *s);
/* Prints, as a line, how walks ended by what ran the processes. */
void report_samples_runtimes(const struct kprof_capture *c);
/* Writes the fields that only rows of samples have. */
void report_samples_json_row(struct json *j, const struct kprof_row *row);
/* Whether it is a table by process, user or step. */
bool report_is_view(enum kprof_by by);
/* Writes the fields that only rows by process, user and step have. */
void report_views_json_row(struct json *j, enum kprof_by by, const struct kprof_capture *c,
			   const struct kprof_row *row);
/* Writes what steps took in all, and the selected range. */
void report_views_json(struct json *j, enum kprof_by by, const struct kprof_capture *c,
		       const struct kprof_result *r);
/* Prints the same as lines below a table. -ENOMEM. */
int report_views_lines(enum kprof_by by, const struct kprof_capture *c,
		       const struct kprof_result *r);
/* By step: the fields of a row, and what steps took in all, with the outliers. */
void report_steps_json_row(struct json *j, const struct kprof_row *row);
void report_steps_json(struct json *j, const struct kprof_result *r);
/* The same as lines below a table. -ENOMEM. */
int report_steps_lines(const struct kprof_result *r);
/* A cell, in buf: how long the step's thread waited, or the step's share of the median. */
const char *report_steps_cell(char *buf, size_t bytes, const struct kprof_row *row, bool waited);
/* Whether waits were recorded. */
bool report_steps_waited(const struct kprof_result *r);
/* Prints how long threads ran and waited in all, as a line, or thread by thread in the JSON. */
void report_waits_sum(const struct kprof_capture *c);
void report_waits_json(struct json *j, const struct kprof_capture *c);
/* Writes the fields that only rows of waits have. */
void report_waits_json_row(struct json *j, const struct kprof_row *row);
/* A number of bytes that may be negative; in buf, of TEXT_NUMBER_BYTES. */
const char *report_memory_bytes(char *buf, int64_t bytes);
/* Writes the fields of rows that only recorded memory gives. */
void report_memory_json_row(struct json *j, enum kprof_by by, const struct kprof_row *row);
/* By memory: writes when most was in use, process by process. */
void report_memory_json(struct json *j, const struct kprof_result *r);
void report_memory_lines(const struct kprof_result *r);
/* The columns of counters, each of which has three: the i-th column's title; NULL: no more. */
#define REPORT_CELL_BYTES 80
#define REPORT_COUNTER_COLUMNS (3 * 8)
const char *report_counter_title(char buf[REPORT_CELL_BYTES], const struct kprof_capture *c,
				 size_t column);
const char *report_counter_cell(char buf[REPORT_CELL_BYTES], const struct kprof_capture *c,
				const struct kprof_result *r, size_t row, size_t column);
/* What the columns say, as a line below the table. */
void report_counters_line(const struct kprof_capture *c, const struct kprof_result *r);
void report_counters_json_row(struct json *j, const struct kprof_capture *c,
			      const struct kprof_result *r, size_t row);
/* By flops: cells, in buf; the rest of a row; the time that all of it takes at least. */
enum report_roofline {
	REPORT_FLOPS_PER_S,
	REPORT_FLOPS_SHARE,
	REPORT_BYTES_PER_S,
	REPORT_BYTES_SHARE,
	REPORT_INTENSITY,
	REPORT_LIMIT
};
const char *report_roofline_cell(char buf[REPORT_CELL_BYTES], enum report_roofline what,
				 const struct kprof_row *row);
void report_roofline_json_row(struct json *j, const struct kprof_row *row);
void report_roofline_json(struct json *j, const struct kprof_result *r);
void report_roofline_lines(const struct kprof_capture *c, const struct kprof_result *r);
/* "15.55 M"; "": none */
const char *report_flops_text(char buf[REPORT_CELL_BYTES], uint64_t flops);
/* Prints what the recording cost: a line, with a bound one a step, or a member of the JSON. */
void report_overhead_line(const struct kprof_capture *c);
void report_overhead_json(struct json *j, const struct kprof_capture *c);
/* By collective: cells, in buf; the rest of a row; ranks, and the longest waits. */
enum report_collective {
	REPORT_RANKS,
	REPORT_WAITED,
	REPORT_LONGEST,
	REPORT_LAST,
	REPORT_BYTES,
	REPORT_SPEED
};
const char *report_collectives_cell(char buf[REPORT_CELL_BYTES], enum report_collective what,
				    const struct kprof_row *row);
void report_collectives_json_row(struct json *j, const struct kprof_row *row);
void report_collectives_json(struct json *j, const struct kprof_result *r);
void report_collectives_lines(const struct kprof_result *r);
/* Says why there are no rows. */
void report_collectives_empty(const char *path, const struct kprof_result *r);
/* Bandwidth of the copies in GB/s; 0: they took no time. */
double report_gb_per_s(const struct kprof_row *row);

#endif
