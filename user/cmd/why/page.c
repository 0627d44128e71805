// SPDX-License-Identifier: BSD-2-Clause
/* The page: a table of what steps went to, then each finding with its evidence. */
#include "cmd/why/why.h"

#include <stdio.h>
#include <stdlib.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define COLUMNS 100
#define CELL_BYTES 48
#define LEAST_SHOWN 0.0005 /* of the table: smaller shares have no row */
#define MOST_FINDINGS 4    /* with evidence: the page is one screen */

enum column { COL_NAME, COL_TIME, COL_SHARE, COL_INTERVAL, COL_WIN, NR_COLUMNS };

/* Prints a text, cut to so many columns. */
static void print_cut(const char *text, size_t most)
{
	char *fine = text_printable(text);
	size_t i = 0;

	if (!fine)
		return;
	if (text_columns(fine) <= most) {
		fputs(fine, stdout);
	} else {
		for (size_t n = 0; n + 3 < most && fine[i]; n++)
			i += text_utf8(fine + i) ? text_utf8(fine + i) : 1;
		printf("%.*s...", (int)i, fine);
	}
	free(fine);
}

static void print_head(const struct kprof_why_info *info)
{
	char time[TEXT_NUMBER_BYTES];

	if (info->by_step) {
		printf("%llu steps (", (unsigned long long)info->units);
		print_cut(info->step, 30);
		printf(") of %s on average", text_time(time, (uint64_t)info->unit_ns));
	} else {
		fputs("no steps: by second of the recording", stdout);
	}
	fputs("\nof thread ", stdout);
	print_cut(info->thread, 32);
	printf(" (%d), which %s", info->tid, info->chosen);
	printf("\nof process %d: ", info->pid);
	print_cut(info->process, COLUMNS - 24);
	if (info->peers)
		printf("\nother processes that have steps, too: %zu", info->peers);
	if (info->device)
		printf("\nits devices were busy for %.1f %% of that time",
		       100 * info->device_share);
	fputs("\n\n", stdout);
}

static bool add_row(struct table *t, const struct kprof_why_info *info,
		    const struct kprof_why_row *row)
{
	char time[TEXT_NUMBER_BYTES], share[CELL_BYTES], interval[CELL_BYTES] = "",
							 win[CELL_BYTES] = "";
	const char *cells[NR_COLUMNS] = {
		[COL_NAME] = row->cause == KPROF_WHY_COMPUTE && info->ops
				     ? "computing in operators"
				     : kprof_why_cause_name(row->cause),
		[COL_TIME] = text_time(time, (uint64_t)row->ns),
		[COL_SHARE] = share,
		[COL_INTERVAL] = interval,
		[COL_WIN] = win,
	};
	char without[TEXT_NUMBER_BYTES];

	snprintf(share, sizeof(share), "%.1f %%", 100 * row->share);
	if (row->interval)
		snprintf(interval, sizeof(interval), "%.1f to %.1f", 100 * row->low,
			 100 * row->high);
	if (row->found && info->by_step)
		snprintf(win, sizeof(win), "%.1f %%: steps of %s", 100 * row->win,
			 text_time(without, (uint64_t)(info->unit_ns * (1 - row->win))));
	else if (row->found)
		snprintf(win, sizeof(win), "%.1f %%", 100 * row->win);
	return table__add(t, cells);
}

static bool print_table(const struct kprof_why *w)
{
	static struct table_column columns[NR_COLUMNS] = {
		[COL_NAME] = {"", false, 0},
		[COL_TIME] = {"Per step", true, 0},
		[COL_SHARE] = {"Share", true, 0},
		[COL_INTERVAL] = {"95 %", true, 0},
		[COL_WIN] = {"To be won, at most", false, 0},
	};
	const struct kprof_why_info *info = kprof_why_info(w);
	struct table *t;
	bool fine;

	columns[COL_TIME].title = info->by_step ? "Per step" : "Per second";
	t = table__new(columns, NR_COLUMNS);
	fine = t != NULL;
	for (size_t i = 0; i < kprof_why_nr_rows(w) && fine; i++)
		if (kprof_why_row(w, i)->share >= LEAST_SHOWN)
			fine = add_row(t, info, kprof_why_row(w, i));
	if (fine)
		table__print(t, stdout, true);
	table__free(t);
	return fine;
}

static void print_finding(size_t number, const struct kprof_why_row *row)
{
	static const char *const words[] = {
		[KPROF_WHY_LINE] = "where",         [KPROF_WHY_OPERATOR] = "operator",
		[KPROF_WHY_WHO] = "for thread",     [KPROF_WHY_DOING] = "which was in",
		[KPROF_WHY_PEER] = "other process",
	};

	printf("\n%zu. %s: %.1f %%", number, kprof_why_cause_name(row->cause), 100 * row->share);
	if (row->interval)
		printf(" (%.1f to %.1f)", 100 * row->low, 100 * row->high);
	putchar('\n');
	for (size_t i = 0; i < row->nr_evidence; i++) {
		const struct kprof_why_evidence *e = &row->evidence[i];
		bool again = i && e[-1].kind == e->kind;

		printf("   %-14s", again ? "" : words[e->kind]);
		print_cut(e->text, e->kind == KPROF_WHY_PEER ? COLUMNS - 17 : COLUMNS - 26);
		if (e->kind != KPROF_WHY_PEER)
			printf(", %.0f %%", 100 * e->share);
		putchar('\n');
	}
	printf("   %-14s%s\n", "look at", row->advice);
}

static void print_findings(const struct kprof_why *w)
{
	const struct kprof_why_info *info = kprof_why_info(w);
	size_t found = 0;

	for (size_t i = 0; i < kprof_why_nr_rows(w); i++) {
		const struct kprof_why_row *row = kprof_why_row(w, i);

		if (!row->found)
			continue;
		if (++found <= MOST_FINDINGS)
			print_finding(found, row);
	}
	if (found)
		return;
	puts(info->waits ? "\nnothing here stands out: no wait and no overhead that could be won"
			 : "\nnothing that this capture can show stands out");
	if (info->device && info->device_share > 0.9)
		puts("the device limits: make its work less (kprof report --by kernel)");
}

static void print_missing(const struct kprof_why *w)
{
	const char *what, *how;

	for (size_t i = 0; kprof_why_missing(w, i, &what, &how); i++) {
		if (!i)
			puts("\nnot in this capture:");
		printf("   %s: %s\n", what, how);
	}
}

int why_print_page(const struct kprof_why *w)
{
	print_head(kprof_why_info(w));
	if (!print_table(w))
		return message_no_memory();
	print_findings(w);
	print_missing(w);
	return EXIT_DONE;
}
