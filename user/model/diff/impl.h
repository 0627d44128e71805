/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of comparisons. facts.c: what captures are and whether they can be compared; blocks.c:
 * the recorded time in blocks; table.c: rows and what is counted into them; samples.c, waits.c and
 * spans.c read captures into it; tests.c: the differences. stats.h has the statistics.
 */
#ifndef KPROF_DIFF_IMPL_H
#define KPROF_DIFF_IMPL_H

#include "model/diff/diff.h"
#include "model/diff/stats.h"
#include "util/map64.h"
#include "util/util.h"

/* ---- blocks.c ---- */

/* Of at least 40 equal parts, the last one shorter than two; fewer where there are fewer steps. */
#define DIFF_BLOCKS 40
#define DIFF_MAX_BLOCKS (2 * DIFF_BLOCKS - 1)
/* Fewer steps than this are no basis for a comparison by step that nobody asked for. */
#define DIFF_MIN_STEPS 8

struct diff_blocks {
	uint32_t nr;
	uint64_t edge_ns[DIFF_MAX_BLOCKS + 1]; /* block i ends where i + 1 begins */
	double units;                          /* steps, seconds or runs in each block */
};

/* Annotations of single steps: torch.profiler's, and those by kprof/mark.h; a number follows. */
#define DIFF_STEP_NAME "ProfilerStep#"

/* How many steps the capture has: the time from the first mark to the last one is in steps. */
int diff_count_steps(struct kprof_capture *t, const char *step, uint64_t *nr);
/* per: not AUTO. -ENODATA with the error set if there is not enough of it. */
int diff_blocks__make(struct kprof_capture *t, enum kprof_diff_per per, const char *step,
		      struct diff_blocks *out);
/* The block of a moment; DIFF_MAX_BLOCKS: none. */
uint32_t diff_blocks__of(const struct diff_blocks *b, uint64_t ns);

/* ---- facts.c ---- */

struct diff_facts {
	const char *path;
	bool ops; /* spans of operators */
	uint64_t samples, steps;
	bool waits;
	uint64_t min_wait_ns;
	double hz, lost_share;
	char *program, *host; /* NULL: unknown */
};

/* What a capture says of itself. steps: whether they are to be counted. */
int diff_facts__read(struct kprof_capture *t, const char *path, bool steps, const char *step,
		     struct diff_facts *out);
void diff_facts__free(struct diff_facts *f);

/* Texts for people, malloc'ed. */
struct diff_notes {
	struct vec texts; /* char * */
};
int diff_notes__add(struct diff_notes *n, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void diff_notes__free(struct diff_notes *n);
/* Notes what makes a comparison of these doubtful; those of the first side come first. */
int diff_facts__compare(const struct diff_facts *facts, size_t nr_before, size_t nr,
			struct diff_notes *notes);

/* ---- table.c ---- */

/* Names beyond this are one row, "[others]". */
#define DIFF_MAX_ROWS 65536u
/* Rows that no name makes. */
enum { DIFF_ROW_WHOLE, DIFF_ROW_STEP, DIFF_ROW_OTHERS, DIFF_OWN_ROWS };

struct diff_count { /* of a row, of all captures of a side */
	double self, total, calls;
	/* The measure per unit, of each capture: sum, squares and number. */
	double sum, squares;
	uint32_t nr;
	/* Of the side's latest capture, with blocks of each length. */
	struct stats_mean blocks[STATS_LEVELS];
};

struct diff_entry {
	char *name, *category, *where;
	struct diff_count side[DIFF_SIDES];
};

struct diff_table {
	struct kprof_diff_info info; /* by, per, total and of_samples are given */
	/* Of all captures so far; seconds by the clock. */
	double units[DIFF_SIDES], seconds[DIFF_SIDES];
	struct vec entries;   /* struct diff_entry */
	struct map64 by_hash; /* index + 1, by hash; equal hashes take the following keys */
	/* While a capture is read. */
	enum diff_side side;
	struct diff_blocks blocks;
	double *time, *calls; /* by row and block: the measure; calls only if times are per call */
	size_t room;          /* rows that both have room for */
	/* Of the sum of all time in this capture, from sampling: the sum of weights squared. */
	double whole_var;
};

/*
 * Rows are the same if these are, of `where` the base name: folders differ from machine to machine.
 */
struct diff_key {
	const char *category, *name;
	const char *where; /* path of the module or source file; "" none */
};

int diff_table__init(struct diff_table *t);
void diff_table__free(struct diff_table *t);
struct diff_entry *diff_table__entry(const struct diff_table *t, uint32_t row);
/* Finds or adds a row. */
int diff_table__row(struct diff_table *t, const struct diff_key *key, uint32_t *row);
/* Begins a capture, whose blocks are made. */
int diff_table__begin(struct diff_table *t, enum diff_side side);
/* Counts into a row, in nanoseconds. */
void diff_table__add(struct diff_table *t, uint32_t row, uint32_t block, double self, double total,
		     double calls);
/* Ends a capture: what remains of it are the sums. */
void diff_table__end(struct diff_table *t);

/* ---- samples.c, waits.c, spans.c ---- */

int diff_read_samples(struct diff_table *table, struct kprof_capture *t, enum kprof_frames frames);
int diff_read_spans(struct diff_table *table, struct kprof_capture *t);
int diff_read_waits(struct diff_table *table, struct kprof_capture *t);
int diff_read_device(struct diff_table *table, struct kprof_capture *t);

/* ---- tests.c ---- */

struct kprof_diff {
	struct diff_table table;
	struct diff_notes notes;
	struct kprof_diff_row *rows;
	size_t nr_rows;
};

/* Makes the sorted rows of what was counted. */
int diff_test(struct kprof_diff *d, const struct kprof_diff_opts *opts);

#endif
