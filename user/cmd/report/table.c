// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables like that of torch.profiler's key_averages(). Each kind has the columns that are useful
 * for it.
 */
#include "cmd/report/columns.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "cmd/report/report.h"

#define NAME_COLUMNS 60 /* width of names on a terminal */
#define MAX_COLUMNS (REPORT_MOST_COLUMNS + REPORT_COUNTER_COLUMNS)
#define CELL_BYTES REPORT_CELL_BYTES

double report_gb_per_s(const struct kprof_row *row)
{
	return row->total_ns ? (double)row->bytes / (double)row->total_ns : 0;
}

static void error(char buf[CELL_BYTES], double low, double high)
{
	snprintf(buf, CELL_BYTES, "%.2f", (high - low) / 2 * 100);
}

static void percent(char buf[CELL_BYTES], uint64_t part, uint64_t whole)
{
	snprintf(buf, CELL_BYTES, "%.2f%%", whole ? (double)part / (double)whole * 100 : 0);
}

/* A cell with the name to which most of the time belongs, and its share. */
static const char *most(char buf[CELL_BYTES], const char *name, double share)
{
	if (!name || !*name)
		return "";
	snprintf(buf, CELL_BYTES, "%3.0f%% %s", share * 100, name);
	return buf;
}

/* A zero says that no call failed: it needs the results of all. */
static const char *errors(char buf[CELL_BYTES], const struct kprof_row *row)
{
	if (row->unknown_results >= row->calls)
		return "?";
	if (row->unknown_results)
		snprintf(buf, CELL_BYTES, "%" PRIu64 " (%" PRIu64 " unknown)", row->errors,
			 row->unknown_results);
	else
		snprintf(buf, CELL_BYTES, "%" PRIu64, row->errors);
	return buf;
}

/* The text of a cell of memory, or of operations; NULL: it is none. */
static const char *memory_cell(char buf[CELL_BYTES], enum column column,
			       const struct kprof_row *row)
{
	switch (column) {
	case COL_SELF_MEMORY:
		return report_memory_bytes(buf, row->self_memory_bytes);
	case COL_MEMORY:
		return report_memory_bytes(buf, row->memory_bytes);
	case COL_SELF_DEVICE_MEMORY:
		return report_memory_bytes(buf, row->self_device_memory_bytes);
	case COL_DEVICE_MEMORY:
		return report_memory_bytes(buf, row->device_memory_bytes);
	case COL_MEMORY_DEVICE:
		return row->memory_device;
	case COL_PEAK:
		return report_memory_bytes(buf, row->peak_bytes);
	case COL_KEPT:
		return report_memory_bytes(buf, row->kept_bytes);
	case COL_PEAK_BLOCKS:
		snprintf(buf, CELL_BYTES, "%" PRIu64, row->peak_blocks);
		return buf;
	case COL_FLOPS:
		return report_flops_text(buf, row->flops);
	case COL_KEPT_STEPS:
		snprintf(buf, CELL_BYTES, "%" PRIu64, row->kept_steps);
		return buf;
	default:
		return NULL;
	}
}

/* The text of a cell of processes, users and steps, or of memory; NULL: it is none of theirs. */
static const char *view_cell(char buf[CELL_BYTES], enum column column, const struct kprof_row *row)
{
	uint64_t number;

	switch (column) {
	case COL_COMMAND:
		return row->where;
	case COL_USER:
		return row->category;
	case COL_TOP:
		return most(buf, row->top, row->top_share);
	case COL_START:
		return text_time(buf, row->start_ns);
	case COL_OP_TIME:
		return text_time(buf, row->op_ns);
	case COL_BUSY:
		return text_time(buf, row->device_ns);
	case COL_GAP_TIME:
		return text_time(buf, row->gap_ns);
	case COL_UID:
		if (row->uid == UINT32_MAX)
			return "";
		number = row->uid;
		break;
	case COL_PID:
		number = (uint64_t)row->pid;
		break;
	case COL_PROCESSES:
		number = row->processes;
		break;
	case COL_SAMPLES:
		number = row->self_samples;
		break;
	case COL_GAPS:
		number = row->gaps;
		break;
	case COL_OF_MEDIAN:
	case COL_WAITED:
		return report_steps_cell(buf, CELL_BYTES, row, column == COL_WAITED);
	case COL_RANKS:
	case COL_RANKS_WAITED:
	case COL_LONGEST_WAIT:
	case COL_LAST_RANK:
	case COL_RANKS_BYTES:
	case COL_ALGORITHM_SPEED:
		return report_collectives_cell(buf, (enum report_collective)(column - COL_RANKS),
					       row);
	case COL_FLOPS_PER_S:
	case COL_FLOPS_SHARE:
	case COL_BYTES_PER_S:
	case COL_BYTES_SHARE:
	case COL_INTENSITY:
	case COL_LIMIT:
		return report_roofline_cell(buf, (enum report_roofline)(column - COL_FLOPS_PER_S),
					    row);
	default:
		return memory_cell(buf, column, row);
	}
	snprintf(buf, CELL_BYTES, "%" PRIu64, number);
	return buf;
}

/* The text of a cell, in buf or in the row itself. */
static const char *cell(char buf[CELL_BYTES], enum column column, const struct kprof_row *row,
			uint64_t window_ns)
{
	uint64_t number = 0;

	switch (column) {
	case COL_NAME:
		return row->name;
	case COL_CATEGORY:
		return row->category;
	case COL_WHERE:
		return text_base(row->where);
	case COL_SELF_ERROR:
		error(buf, row->self_low, row->self_high);
		return buf;
	case COL_TOTAL_ERROR:
		error(buf, row->total_low, row->total_high);
		return buf;
	case COL_NODE:
		return most(buf, row->node, row->node_share);
	case COL_CALLER:
		return most(buf, row->caller, row->caller_share);
	case COL_GIL:
		percent(buf, row->gil_ns, row->self_ns);
		return buf;
	case COL_GIL_WAIT:
		percent(buf, row->gil_wait_ns, row->self_ns);
		return buf;
	case COL_DEVICE:
		snprintf(buf, CELL_BYTES, "%d GPU %u", row->pid, row->device);
		return buf;
	case COL_SELF_SHARE:
		snprintf(buf, CELL_BYTES, "%.2f%%", row->self_share * 100);
		return buf;
	case COL_TOTAL_SHARE:
		snprintf(buf, CELL_BYTES, "%.2f%%", row->total_share * 100);
		return buf;
	case COL_WINDOW_SHARE:
		percent(buf, row->total_ns, window_ns);
		return buf;
	case COL_SELF:
		return text_time(buf, row->self_ns);
	case COL_TOTAL:
		return text_time(buf, row->total_ns);
	case COL_RUNNABLE:
		return text_time(buf, row->runnable_ns);
	case COL_IDLE:
		return text_time(buf, row->idle_ns);
	case COL_AVG:
		return text_time(buf, row->timed ? row->total_ns / row->timed : 0);
	case COL_MIN:
		return text_time(buf, row->min_ns);
	case COL_MAX:
		return text_time(buf, row->max_ns);
	case COL_BYTES: /* 0 by flops: not known */
		return row->bytes || !row->device_ns ? text_bytes(buf, row->bytes) : "";
	case COL_GB_PER_S:
		snprintf(buf, CELL_BYTES, "%.3f", report_gb_per_s(row));
		return buf;
	case COL_CALLS:
		number = row->calls;
		break;
	case COL_INEXACT:
		number = row->inexact;
		break;
	case COL_ERRORS:
		return errors(buf, row);
	default:
		return view_cell(buf, column, row);
	}
	snprintf(buf, CELL_BYTES, "%" PRIu64, number);
	return buf;
}

static bool add_row(struct table *t, const struct shown *shown, size_t nr,
		    const struct kprof_capture *c, const struct kprof_result *r, size_t number)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	uint64_t window_ns = info->end_mono_ns - info->start_mono_ns;
	const struct kprof_row *row = kprof_result_row(r, number);
	size_t counted = 0; /* columns of counters so far */
	char buffers[MAX_COLUMNS][CELL_BYTES];
	const char *cells[MAX_COLUMNS];

	for (size_t i = 0; i < nr; i++)
		cells[i] = shown[i].column == COL_COUNTER
				   ? report_counter_cell(buffers[i], c, r, number, counted++)
				   : cell(buffers[i], shown[i].column, row, window_ns);
	return table__add(t, cells);
}

/* Prints the line below the table. */
static void print_sum(enum kprof_by by, const struct kprof_capture_info *info,
		      uint64_t self_total_ns)
{
	static const char *const sums[] = {
		[KPROF_BY_OP] = "Self time in all",     [KPROF_BY_THREAD] = "Self time in all",
		[KPROF_BY_KERNEL] = "Device time",      [KPROF_BY_API] = "Self time in all",
		[KPROF_BY_MEMCPY] = "Device time",      [KPROF_BY_IDLE] = "Idle in all",
		[KPROF_BY_FUNCTION] = "Time in all",    [KPROF_BY_LINE] = "Time in all",
		[KPROF_BY_PROCESS] = "CPU time",        [KPROF_BY_USER] = "CPU time",
		[KPROF_BY_STEP] = "CPU time",           [KPROF_BY_CONTAINER] = "CPU time",
		[KPROF_BY_WAIT] = "Off the CPU in all", [KPROF_BY_MEMORY] = "",
		[KPROF_BY_MODULE] = "Time in all",      [KPROF_BY_COLLECTIVE] = "",
		[KPROF_BY_FLOPS] = "Time in all",
	};
	/* A device's row repeats the time of its streams' rows. Without samples, no CPU time. */
	bool with_sum = by != KPROF_BY_STREAM && by != KPROF_BY_MEMORY &&
			by != KPROF_BY_COLLECTIVE && (!report_is_view(by) || info->nr_samples);
	char sum[TEXT_NUMBER_BYTES], window[TEXT_NUMBER_BYTES];

	if (with_sum)
		printf("%s: %s; ", sums[by], text_time(sum, self_total_ns));
	printf("%s: %s, %zu thread%s\n", with_sum ? "recorded" : "Recorded",
	       text_time(window, info->end_mono_ns - info->start_mono_ns), info->nr_threads,
	       info->nr_threads == 1 ? "" : "s");
}

static bool any_unknown(const struct kprof_result *r)
{
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (kprof_result_row(r, i)->unknown_results)
			return true;
	return false;
}

static bool any_kept(const struct kprof_result *r)
{
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (kprof_result_row(r, i)->kept_blocks)
			return true;
	return false;
}

static bool any_on_device(const struct kprof_result *r)
{
	for (size_t i = 0; i < kprof_result_nr_rows(r); i++)
		if (kprof_result_row(r, i)->device_memory_bytes ||
		    kprof_result_row(r, i)->self_device_memory_bytes)
			return true;
	return false;
}

/* Does any row say something in these columns of operations? In others each does. */
static bool any_of_flops(enum column column, const struct kprof_result *r)
{
	bool any = column != COL_FLOPS_SHARE && column != COL_BYTES_SHARE && column != COL_LIMIT &&
		   column != COL_INEXACT;

	for (size_t i = 0; i < kprof_result_nr_rows(r); i++) {
		const struct kprof_row *row = kprof_result_row(r, i);

		any |= column == COL_INEXACT       ? row->inexact > 0
		       : column == COL_FLOPS_SHARE ? row->flops_peak > 0
						   : row->bytes_peak > 0;
	}
	return any;
}

/*
 * Whether a column of memory, or of processes, users or steps, would stand empty: nothing of it was
 * recorded.
 */
static bool is_empty(enum column column, enum kprof_by by, const struct kprof_capture *c,
		     const struct kprof_result *r)
{
	if (column == COL_SELF_MEMORY || column == COL_MEMORY)
		return !kprof_capture_has_memory(c);
	if (column == COL_SELF_DEVICE_MEMORY || column == COL_DEVICE_MEMORY)
		return !any_on_device(r);
	for (size_t i = 0; column == COL_FLOPS && i < kprof_result_nr_rows(r); i++)
		if (kprof_result_row(r, i)->flops)
			return false;
	if (column == COL_FLOPS)
		return true;
	if (column == COL_KEPT || column == COL_KEPT_STEPS)
		return !any_kept(r);
	if (by == KPROF_BY_FLOPS)
		return !any_of_flops(column, r);
	if (!report_is_view(by))
		return false;
	if (column == COL_WAITED)
		return !report_steps_waited(r);
	if (column == COL_SELF_SHARE || column == COL_SELF || column == COL_SAMPLES)
		return !kprof_capture_info(c)->nr_samples;
	for (size_t i = 0; column == COL_BUSY && i < kprof_result_nr_rows(r); i++)
		if (kprof_result_row(r, i)->device_ns)
			return false;
	return column == COL_BUSY;
}

/* Copies the columns that are shown; returns their number. */
static size_t choose(struct shown to[MAX_COLUMNS], char titles[][CELL_BYTES], enum kprof_by by,
		     const struct kprof_capture *c, const struct kprof_result *r, bool off_cpu)
{
	struct kprof_count count;
	bool counted = kprof_result_count(r, 0, 0, &count);
	const struct shown *from = report_columns(by, kprof_result_of_samples(r), off_cpu);
	size_t nr = 0;

	for (; from->column != COL_END; from++)
		if (!is_empty(from->column, by, c, r))
			to[nr++] = *from;
	for (size_t i = 0; counted && i < REPORT_COUNTER_COLUMNS; i++)
		if (report_counter_title(titles[i], c, i))
			to[nr++] = (struct shown){COL_COUNTER, titles[i]};
	return nr;
}

int report_table(enum kprof_by by, const struct kprof_capture *c, const struct kprof_result *r,
		 size_t nr_rows, bool off_cpu)
{
	const struct kprof_capture_info *info = kprof_capture_info(c);
	bool of_samples = kprof_result_of_samples(r);
	char titles[REPORT_COUNTER_COLUMNS][CELL_BYTES];
	struct shown shown[MAX_COLUMNS];
	struct table_column columns[MAX_COLUMNS];
	size_t all = kprof_result_nr_rows(r), nr = choose(shown, titles, by, c, r, off_cpu);
	struct table *t;
	bool fine;

	for (size_t i = 0; i < nr; i++)
		columns[i] = (struct table_column){
			.title = shown[i].title,
			.right = shown[i].column > COL_DEVICE,
			.most = (shown[i].column == COL_NAME || shown[i].column == COL_COMMAND) &&
						isatty(STDOUT_FILENO)
					? NAME_COLUMNS
					: 0,
		};
	t = table__new(columns, nr);
	fine = t;
	for (size_t i = 0; i < nr_rows && fine; i++)
		fine = add_row(t, shown, nr, c, r, i);
	if (!fine) {
		table__free(t);
		return message_no_memory();
	}
	table__print(t, stdout, true);
	table__free(t);
	if (nr_rows < all)
		printf("%zu more rows: --limit 0 shows all\n", all - nr_rows);
	print_sum(by, info, kprof_result_self_total_ns(r));
	report_counters_line(c, r);
	if (by == KPROF_BY_API && any_unknown(r))
		printf("?, unknown: kprof did not see these calls' results\n");
	if (report_views_lines(by, c, r))
		return message_no_memory();
	if (by == KPROF_BY_MEMORY)
		report_memory_lines(r);
	if (by == KPROF_BY_COLLECTIVE)
		report_collectives_lines(r);
	if (by == KPROF_BY_FLOPS)
		report_roofline_lines(c, r);
	if (by == KPROF_BY_WAIT)
		report_waits_sum(c);
	if (off_cpu)
		printf("Of threads off the CPU, in waits that were recorded: the time waited\n");
	else if (of_samples)
		printf("±: percentage points, 95 %% confidence (Wilson's interval)\n");
	return EXIT_DONE;
}
