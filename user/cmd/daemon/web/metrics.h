/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What /metrics shows: a registry of numbers, and its texts. The families (a name with its type,
 * unit, help and labels) are the table in families.c; what they mean is in docs/metrics.md. Whoever
 * has a number sets or adds to it here, and the text is made when somebody asks.
 *
 * Memory is bounded: a family has room for so many series (sets of labels). One that is not there
 * yet takes the place of one that nothing was heard of for METRICS_IDLE_S; where there is none, it
 * counts as the series whose labels are all "other". So a number never becomes smaller but by
 * beginning anew, which is what rate() expects.
 */
#ifndef KPROF_CMD_DAEMON_WEB_METRICS_H
#define KPROF_CMD_DAEMON_WEB_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define METRICS_IDLE_S 600
#define METRICS_LABEL_BYTES 64 /* of a label's value, at most; what is longer is cut */

enum metrics_id {
	METRICS_BUILD,
	METRICS_UPTIME,
	METRICS_COST_CPU,
	METRICS_OVERHEAD,
	METRICS_OVERHEAD_MAX,
	METRICS_SHED_LEVEL,
	METRICS_MEMORY,
	METRICS_MEMORY_MAX,
	METRICS_DROPPED,
	METRICS_PROCESSES,
	METRICS_SAMPLES,
	METRICS_OPERATORS,
	METRICS_GPU_ACTIVITIES,
	METRICS_GPU_RATE,
	METRICS_STEP_TIME,
	METRICS_GPU_BUSY,
	METRICS_RUNQUEUE,
	METRICS_WAIT,
	METRICS_RECORDINGS_ACTIVE,
	METRICS_RECORDINGS,
	METRICS_REQUESTS,
	METRICS_DUMPS,
	METRICS_CHUNKS,
	METRICS_CHUNK_BYTES,
	METRICS_CHUNKS_DROPPED,
	METRICS_LOOKS,
	METRICS_STORED,
	METRICS_PUSHES,
	METRICS_PUSHED_BYTES,
	METRICS_PUSH_QUEUE,
	METRICS_NR,
};

enum metrics_type { METRICS_COUNTER, METRICS_GAUGE, METRICS_HISTOGRAM, METRICS_INFO };
enum metrics_format { METRICS_OPENMETRICS, METRICS_TEXT }; /* 1.0; Prometheus' text 0.0.4 */

#define METRICS_LABELS 3
struct metrics_family {
	const char *name; /* without "_total" and the like, with its unit */
	enum metrics_type type;
	const char *unit; /* "seconds", "bytes", "ratio"; NULL: a number of things */
	const char *help;
	const char *labels[METRICS_LABELS]; /* their names */
	size_t series;                      /* how many there may be, besides "other" */
	const double *bounds;               /* of a histogram's buckets, ascending, the last is 0 */
};
extern const struct metrics_family metrics_families[METRICS_NR];

struct metrics;
/* The values of a family's labels, in its order; those that are left out are "". */
#define METRICS_OF(...) ((const char *const[METRICS_LABELS]){__VA_ARGS__})
#define METRICS_PLAIN ((const char *const[METRICS_LABELS]){NULL})

struct metrics *metrics__new(void); /* NULL: no memory */
void metrics__free(struct metrics *m);
/* What time it is, in seconds of CLOCK_MONOTONIC: for what has been idle. Once in a while. */
void metrics__at(struct metrics *m, uint64_t now_s);

/*
 * A gauge's value, or a counter's that is counted elsewhere (it never becomes smaller but by
 * beginning anew); of METRICS_BUILD the value is 1. A value that is no number is not set.
 */
void metrics__set(struct metrics *m, enum metrics_id id, const char *const labels[METRICS_LABELS],
		  double value);
void metrics__add(struct metrics *m, enum metrics_id id, const char *const labels[METRICS_LABELS],
		  double more);
/* One more observation of a histogram. */
void metrics__observe(struct metrics *m, enum metrics_id id,
		      const char *const labels[METRICS_LABELS], double value);
/* Forgets all series of a family: for gauges that are set anew as a whole, such as shares. */
void metrics__clear(struct metrics *m, enum metrics_id id);
/* The same of those whose first label has this value. */
void metrics__clear_of(struct metrics *m, enum metrics_id id, const char *label);

/* Writes all of it. */
void metrics__write(const struct metrics *m, enum metrics_format format, FILE *to);
/* The same into a new string, which the caller frees; NULL: no memory. */
char *metrics__text(const struct metrics *m, enum metrics_format format, size_t *bytes);
const char *metrics_content_type(enum metrics_format format);

#endif
