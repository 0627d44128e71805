// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/diff/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define NAME_COLUMNS 60 /* width of names on a terminal */
#define CELL_BYTES 64

enum column {
	COL_BEFORE,
	COL_AFTER,
	COL_CHANGE,
	COL_SHARE,
	COL_INTERVAL,
	COL_VERDICT,
	COL_LEAST,
	COL_NAME,
	COL_WHERE,
	NR_COLUMNS,
};

struct cells {
	char text[NR_COLUMNS][CELL_BYTES];
};

/* A time in nanoseconds that may be negative, beyond any clock, or nothing at all. */
static void put_time(char out[CELL_BYTES], double ns, bool sign)
{
	char time[TEXT_NUMBER_BYTES];
	double size = fabs(ns) < 1e19 ? fabs(ns) : 1e19;

	snprintf(out, CELL_BYTES, "%s%s",
		 ns < 0 ? "-"
		 : sign ? "+"
			: "",
		 text_time(time, (uint64_t)(size + 0.5)));
}

/* As a percentage of what it was before; there may have been nothing. */
static void put_share(char out[CELL_BYTES], const char *format, double change, double before,
		      const char *otherwise)
{
	if (before > 0 && isfinite(change / before))
		snprintf(out, CELL_BYTES, format, fmax(-1e9, fmin(1e9, 100 * change / before)));
	else
		snprintf(out, CELL_BYTES, "%s", otherwise);
}

static void fill(struct cells *c, const struct kprof_diff_change *t)
{
	char low[CELL_BYTES], high[CELL_BYTES];
	bool tested = t->verdict != KPROF_DIFF_UNTESTED;

	put_time(c->text[COL_BEFORE], t->before, false);
	put_time(c->text[COL_AFTER], t->after, false);
	put_time(c->text[COL_CHANGE], t->change, true);
	put_share(c->text[COL_SHARE], "%+.1f%%", t->change, t->before, "new");
	snprintf(c->text[COL_VERDICT], CELL_BYTES, "%s", diff_verdict_name(t->verdict));
	if (!tested)
		return;
	put_share(low, "%+.1f", t->low, t->before, "");
	put_share(high, "%+.1f%%", t->high, t->before, "");
	if (t->before > 0)
		snprintf(c->text[COL_INTERVAL], CELL_BYTES, "%.24s to %.24s", low, high);
	put_share(c->text[COL_LEAST], "%.1f%%", t->least, t->before, "");
}

static const struct table_column *columns_of(const struct kprof_diff_info *info, bool terminal)
{
	static struct table_column columns[NR_COLUMNS] = {
		[COL_BEFORE] = {"Before", true, 0},    [COL_AFTER] = {"After", true, 0},
		[COL_CHANGE] = {"Change", true, 0},    [COL_SHARE] = {"%", true, 0},
		[COL_INTERVAL] = {"95 %", true, 0},    [COL_VERDICT] = {"Verdict", false, 0},
		[COL_LEAST] = {"Shown from", true, 0}, [COL_NAME] = {"", false, 0},
		[COL_WHERE] = {"Where", false, 0},
	};
	static const char *const titles[] = {
		[KPROF_DIFF_BY_OP] = "Operator",     [KPROF_DIFF_BY_FUNCTION] = "Function",
		[KPROF_DIFF_BY_LINE] = "Line",       [KPROF_DIFF_BY_MODULE] = "Module",
		[KPROF_DIFF_BY_THREAD] = "Thread",   [KPROF_DIFF_BY_KERNEL] = "Kernel",
		[KPROF_DIFF_BY_WAIT] = "Waited for",
	};

	columns[COL_NAME].title = titles[info->by];
	columns[COL_NAME].most = terminal ? NAME_COLUMNS : 0;
	return columns;
}

static bool add(struct table *t, const struct kprof_diff_change *change, const char *name,
		const char *where)
{
	const char *texts[NR_COLUMNS];
	struct cells c = {0};

	fill(&c, change);
	for (int i = 0; i < NR_COLUMNS; i++)
		texts[i] = c.text[i];
	texts[COL_NAME] = name;
	texts[COL_WHERE] = text_base(where);
	return table__add(t, texts);
}

static bool fill_table(struct table *t, const struct kprof_diff *d, size_t most)
{
	const struct kprof_diff_info *info = kprof_diff_info(d);
	size_t nr = kprof_diff_nr_rows(d);
	bool fine = true;

	if (info->per == KPROF_DIFF_PER_STEP)
		fine = add(t, &info->step, "[step, by the clock]", "");
	if (fine && info->per != KPROF_DIFF_PER_CALL && info->per != KPROF_DIFF_PER_SHARE)
		fine = add(t, &info->whole, "[all]", "");
	for (size_t i = 0; i < nr && (!most || i < most) && fine; i++) {
		const struct kprof_diff_row *row = kprof_diff_row(d, i);

		fine = add(t, &row->time, row->name, row->where);
	}
	return fine;
}

/* How much there is of each side. */
static void print_amounts(const struct kprof_diff_info *info)
{
	printf("recorded: %.4g s before, %.4g s after", info->recorded_before,
	       info->recorded_after);
	if (info->per == KPROF_DIFF_PER_STEP)
		printf("; %.0f and %.0f steps", info->units_before, info->units_after);
	else if (info->per == KPROF_DIFF_PER_SHARE)
		printf("; all time counted: %.4g and %.4g s", info->units_before,
		       info->units_after);
	putchar('\n');
}

/* What is compared, and on what basis. */
static void print_head(const struct kprof_diff_info *info)
{
	const char *what = info->by == KPROF_DIFF_BY_KERNEL ? "device"
			   : info->by == KPROF_DIFF_BY_WAIT ? "waited"
			   : info->of_samples               ? "sampled"
							    : "operators'";

	static const char *const units[] = {
		[KPROF_DIFF_PER_STEP] = "step",
		[KPROF_DIFF_PER_SECOND] = "second of the recording",
		[KPROF_DIFF_PER_RUN] = "run",
		[KPROF_DIFF_PER_SHARE] = "second of all time counted",
		[KPROF_DIFF_PER_CALL] = "call",
	};

	printf("%s %s time per %s: %zu capture%s before, %zu after", info->total ? "total" : "self",
	       what, units[info->per], info->nr_before, info->nr_before == 1 ? "" : "s",
	       info->nr_after);
	putchar('\n');
	print_amounts(info);
	if (info->between_runs)
		puts("intervals: from the spread among captures");
	else
		printf("intervals: from the spread within each capture, and %.2g %% among runs "
		       "(--run-spread; several captures of each side show it)\n",
		       100 * info->run_spread);
}

static bool is_found(const struct kprof_diff_change *c)
{
	return c->verdict == KPROF_DIFF_MORE || c->verdict == KPROF_DIFF_LESS;
}

/* The first row is one with a difference, if any is. */
static void print_answer(const struct kprof_diff *d)
{
	const struct kprof_diff_info *info = kprof_diff_info(d);
	const struct kprof_diff_row *first = kprof_diff_row(d, 0);
	char from[CELL_BYTES];

	if (is_found(&info->whole) || is_found(&info->step) || (first && is_found(&first->time)))
		return;
	printf("no difference that the data can show");
	put_share(from, "%.1f%%", info->whole.least, info->whole.before, "");
	if (*from && info->whole.least > 0)
		printf("; one of %s of the whole would have been found in four of five such "
		       "comparisons",
		       from);
	putchar('\n');
}

static void print_foot(const struct kprof_diff *d, size_t most)
{
	const struct kprof_diff_info *info = kprof_diff_info(d);
	size_t nr = kprof_diff_nr_rows(d);

	print_answer(d);
	if (info->per == KPROF_DIFF_PER_SHARE)
		puts("shares do not show whether all takes longer: --per step, and --per run where "
		     "the work was the same, do");
	if (most && nr > most)
		printf("%zu further rows are not shown (--top 0)\n", nr - most);
	if (info->small)
		printf("%zu rows were too small to be tested (--min-share): together at most "
		       "%.1f %% of the time\n",
		       info->small, 100 * info->small_share);
	printf("%zu rows were tested together: of comparisons without any difference, at most %g %% "
	       "show one (Holm)\n",
	       info->tested, 100 * KPROF_DIFF_LEVEL);
}

int diff_print_table(const struct kprof_diff *d, size_t most)
{
	bool terminal = isatty(STDOUT_FILENO);
	struct table *t = table__new(columns_of(kprof_diff_info(d), terminal), NR_COLUMNS);
	bool fine = t && fill_table(t, d, most);

	if (fine) {
		print_head(kprof_diff_info(d));
		table__print(t, stdout, true);
		print_foot(d, most);
	}
	table__free(t);
	return fine ? EXIT_DONE : message_no_memory();
}
