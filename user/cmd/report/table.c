// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables like that of torch.profiler's key_averages(). Each kind has the columns that are useful
 * for it.
 */
#include "cmd/report/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"

#define NAME_COLUMNS 60 /* width of names on a terminal */
#define MAX_COLUMNS (12 + REPORT_COUNTER_COLUMNS)
#define CELL_BYTES REPORT_CELL_BYTES

enum column {
	COL_NAME,
	COL_CATEGORY,
	COL_WHERE,
	COL_NODE,
	COL_CALLER,
	COL_COMMAND,
	COL_USER,
	COL_TOP,
	COL_DEVICE,
	COL_PID,
	COL_UID,
	COL_PROCESSES,
	COL_START,
	COL_SELF_SHARE,
	COL_SELF_ERROR, /* half of the confidence interval, in percentage points */
	COL_TOTAL_ERROR,
	COL_SELF,
	COL_TOTAL_SHARE,
	COL_WINDOW_SHARE,
	COL_TOTAL,
	COL_IDLE,
	COL_AVG,
	COL_MIN,
	COL_MAX,
	COL_BYTES,
	COL_GB_PER_S,
	COL_CALLS,
	COL_INEXACT,
	COL_ERRORS,
	COL_GIL,
	COL_GIL_WAIT,
	COL_SAMPLES,
	COL_OP_TIME,
	COL_BUSY,
	COL_GAPS,
	COL_GAP_TIME,
	COL_RUNNABLE,
	COL_SELF_MEMORY,
	COL_MEMORY,
	COL_PEAK,
	COL_PEAK_BLOCKS,
	COL_KEPT,
	COL_KEPT_STEPS,
	COL_FLOPS,
	COL_COUNTER,
	COL_OF_MEDIAN,
	COL_WAITED,
	COL_END,
};

struct shown {
	enum column column;
	const char *title;
};

static const struct shown by_op[] = {
	{COL_NAME, "Name"},
	{COL_SELF_SHARE, "Self %"},
	{COL_SELF, "Self"},
	{COL_TOTAL_SHARE, "Total %"},
	{COL_TOTAL, "Total"},
	{COL_AVG, "Average"},
	{COL_SELF_MEMORY, "Self CPU Mem"},
	{COL_MEMORY, "CPU Mem"},
	{COL_CALLS, "Calls"},
	{COL_FLOPS, "FLOPs"},
	{COL_INEXACT, "Inexact"},
	{COL_END, ""},
};
static const struct shown by_thread[] = {
	{COL_NAME, "Thread"},         {COL_SELF_SHARE, "Self %"}, {COL_SELF, "Self"},
	{COL_TOTAL_SHARE, "Total %"}, {COL_TOTAL, "Total"},       {COL_AVG, "Average"},
	{COL_CALLS, "Calls"},         {COL_INEXACT, "Inexact"},   {COL_END, ""},
};
static const struct shown by_kernel[] = {
	{COL_NAME, "Name"},   {COL_CATEGORY, "Type"}, {COL_SELF_SHARE, "Device %"},
	{COL_TOTAL, "Total"}, {COL_AVG, "Average"},   {COL_MIN, "Shortest"},
	{COL_MAX, "Longest"}, {COL_CALLS, "Calls"},   {COL_END, ""},
};
static const struct shown by_api[] = {
	{COL_NAME, "Name"},   {COL_SELF_SHARE, "Self %"}, {COL_SELF, "Self"},
	{COL_TOTAL, "Total"}, {COL_AVG, "Average"},       {COL_MAX, "Longest"},
	{COL_CALLS, "Calls"}, {COL_ERRORS, "Errors"},     {COL_END, ""},
};
static const struct shown by_stream[] = {
	{COL_NAME, "Stream"}, {COL_WINDOW_SHARE, "Busy %"}, {COL_TOTAL, "Busy"}, {COL_IDLE, "Idle"},
	{COL_MAX, "Longest"}, {COL_CALLS, "Activities"},    {COL_END, ""},
};
static const struct shown by_memcpy[] = {
	{COL_NAME, "Kind"},   {COL_BYTES, "Bytes"}, {COL_GB_PER_S, "GB/s"}, {COL_TOTAL, "Total"},
	{COL_AVG, "Average"}, {COL_MAX, "Longest"}, {COL_CALLS, "Calls"},   {COL_END, ""},
};
static const struct shown by_idle[] = {
	{COL_NAME, "What the host did"},
	{COL_CATEGORY, "Why"},
	{COL_DEVICE, "Device"},
	{COL_WINDOW_SHARE, "Window %"},
	{COL_TOTAL, "Idle"},
	{COL_AVG, "Average"},
	{COL_MAX, "Longest"},
	{COL_CALLS, "Gaps"},
	{COL_END, ""},
};
/* clang-format off */
/* What processes did, and what was not recorded of it. */
#define COLUMNS_OF_WORK \
	{COL_SELF_SHARE, "CPU %"}, {COL_SELF, "CPU"}, {COL_SAMPLES, "Samples"}, \
	{COL_CALLS, "Operators"}, {COL_OP_TIME, "In them"}, {COL_BUSY, "Device busy"}, \
	{COL_INEXACT, "Inexact"}, {COL_GAPS, "Gaps"}, {COL_GAP_TIME, "Missed"}
/* clang-format on */
static const struct shown by_process[] = {
	{COL_NAME, "Process"},    {COL_USER, "User"}, COLUMNS_OF_WORK,
	{COL_COMMAND, "Command"}, {COL_END, ""},
};
static const struct shown by_user[] = {
	{COL_NAME, "User"}, {COL_UID, "UID"}, {COL_PROCESSES, "Processes"},
	COLUMNS_OF_WORK,    {COL_END, ""},
};
static const struct shown by_container[] = {
	{COL_NAME, "Container"}, {COL_USER, "Pod"},       {COL_PROCESSES, "Processes"},
	COLUMNS_OF_WORK,         {COL_COMMAND, "Cgroup"}, {COL_END, ""},
};
static const struct shown by_step[] = {
	{COL_NAME, "Step"},
	{COL_PID, "Process"},
	{COL_START, "Begin"},
	{COL_TOTAL, "Duration"},
	{COL_OF_MEDIAN, "Of median"},
	{COL_SELF, "CPU"},
	{COL_WAITED, "Waited"},
	{COL_CALLS, "Operators"},
	{COL_OP_TIME, "In them"},
	{COL_BUSY, "Device busy"},
	{COL_INEXACT, "Inexact"},
	{COL_TOP, "Top operator"},
	{COL_END, ""},
};
static const struct shown by_wait[] = {
	{COL_NAME, "Waited for"}, {COL_CATEGORY, "Threads"},
	{COL_CALLER, "Woken by"}, {COL_SELF_SHARE, "Share"},
	{COL_TOTAL, "Total"},     {COL_AVG, "Average"},
	{COL_MAX, "Longest"},     {COL_RUNNABLE, "Run queue"},
	{COL_CALLS, "Waits"},     {COL_END, ""},
};
static const struct shown by_memory[] = {
	{COL_NAME, "Operator"},      {COL_PID, "Process"},         {COL_PEAK, "At peak"},
	{COL_PEAK_BLOCKS, "Blocks"}, {COL_MEMORY, "Allocated"},    {COL_CALLS, "Times"},
	{COL_KEPT, "Kept"},          {COL_KEPT_STEPS, "In steps"}, {COL_END, ""},
};
static const struct shown by_module[] = {
	{COL_NAME, "Module"},    {COL_CATEGORY, "Instance"}, {COL_WHERE, "Of"},
	{COL_PID, "Process"},    {COL_SELF, "Self"},         {COL_TOTAL, "Total"},
	{COL_AVG, "Average"},    {COL_OP_TIME, "Operators"}, {COL_BUSY, "Device"},
	{COL_MEMORY, "CPU Mem"}, {COL_CALLS, "Calls"},       {COL_FLOPS, "FLOPs"},
	{COL_END, ""},
};
/* Columns for samples: shares with their errors. */
static const struct shown samples_by_function[] = {
	{COL_NAME, "Function"},       {COL_CATEGORY, "Kind"}, {COL_WHERE, "Where"},
	{COL_SELF_SHARE, "Self %"},   {COL_SELF_ERROR, "±"},  {COL_SELF, "Self"},
	{COL_TOTAL_SHARE, "Total %"}, {COL_TOTAL_ERROR, "±"}, {COL_TOTAL, "Total"},
	{COL_CALLS, "Samples"},       {COL_END, ""},
};
static const struct shown samples_by_line[] = {
	{COL_NAME, "Line"},     {COL_CATEGORY, "Kind"}, {COL_SELF_SHARE, "Self %"},
	{COL_SELF_ERROR, "±"},  {COL_SELF, "Self"},     {COL_TOTAL_SHARE, "Total %"},
	{COL_TOTAL_ERROR, "±"}, {COL_TOTAL, "Total"},   {COL_CALLS, "Samples"},
	{COL_END, ""},
};
static const struct shown samples_by_op[] = {
	{COL_NAME, "Operator"},
	{COL_SELF_SHARE, "Self %"},
	{COL_SELF_ERROR, "±"},
	{COL_SELF, "Self"},
	{COL_TOTAL_SHARE, "Total %"},
	{COL_TOTAL_ERROR, "±"},
	{COL_TOTAL, "Total"},
	{COL_CALLS, "Samples"},
	{COL_NODE, "Autograd node"},
	{COL_CALLER, "Called from"},
	{COL_END, ""},
};
static const struct shown samples_by_thread[] = {
	{COL_NAME, "Thread"},   {COL_SELF_SHARE, "Share"},
	{COL_SELF_ERROR, "±"},  {COL_SELF, "Time"},
	{COL_GIL, "With GIL"},  {COL_GIL_WAIT, "Waits for GIL"},
	{COL_CALLS, "Samples"}, {COL_END, ""},
};
/* The same of waits: they are no estimate, and have no errors. */
static const struct shown waits_by_function[] = {
	{COL_NAME, "Function"},       {COL_CATEGORY, "Kind"},
	{COL_WHERE, "Where"},         {COL_SELF, "Self"},
	{COL_TOTAL_SHARE, "Total %"}, {COL_TOTAL, "Total"},
	{COL_CALLS, "Waits"},         {COL_END, ""},
};
static const struct shown waits_by_line[] = {
	{COL_NAME, "Line"},   {COL_CATEGORY, "Kind"},
	{COL_SELF, "Self"},   {COL_TOTAL_SHARE, "Total %"},
	{COL_TOTAL, "Total"}, {COL_CALLS, "Waits"},
	{COL_END, ""},
};
static const struct shown waits_by_op[] = {
	{COL_NAME, "Operator"},      {COL_SELF, "Self"},   {COL_TOTAL_SHARE, "Total %"},
	{COL_TOTAL, "Total"},        {COL_CALLS, "Waits"}, {COL_NODE, "Autograd node"},
	{COL_CALLER, "Called from"}, {COL_END, ""},
};
static const struct shown waits_by_thread[] = {
	{COL_NAME, "Thread"}, {COL_SELF_SHARE, "Share"},
	{COL_SELF, "Time"},   {COL_GIL_WAIT, "Waits for GIL"},
	{COL_CALLS, "Waits"}, {COL_END, ""},
};
static const struct shown *const tables_of_waits[] = {
	[KPROF_BY_OP] = waits_by_op,
	[KPROF_BY_THREAD] = waits_by_thread,
	[KPROF_BY_FUNCTION] = waits_by_function,
	[KPROF_BY_LINE] = waits_by_line,
};
static const struct shown *const tables_of_samples[] = {
	[KPROF_BY_OP] = samples_by_op,
	[KPROF_BY_THREAD] = samples_by_thread,
	[KPROF_BY_FUNCTION] = samples_by_function,
	[KPROF_BY_LINE] = samples_by_line,
};
static const struct shown *const tables[] = {
	[KPROF_BY_OP] = by_op,
	[KPROF_BY_THREAD] = by_thread,
	[KPROF_BY_KERNEL] = by_kernel,
	[KPROF_BY_API] = by_api,
	[KPROF_BY_STREAM] = by_stream,
	[KPROF_BY_MEMCPY] = by_memcpy,
	[KPROF_BY_IDLE] = by_idle,
	[KPROF_BY_PROCESS] = by_process,
	[KPROF_BY_USER] = by_user,
	[KPROF_BY_STEP] = by_step,
	[KPROF_BY_CONTAINER] = by_container,
	[KPROF_BY_WAIT] = by_wait,
	[KPROF_BY_MEMORY] = by_memory,
	[KPROF_BY_MODULE] = by_module,
};

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
	case COL_BYTES:
		return text_bytes(buf, row->bytes);
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
		[KPROF_BY_MODULE] = "Time in all",
	};
	/* A device's row repeats the time of its streams' rows. Without samples, no CPU time. */
	bool with_sum = by != KPROF_BY_STREAM && by != KPROF_BY_MEMORY &&
			(!report_is_view(by) || info->nr_samples);
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

/*
 * Whether a column of memory, or of processes, users or steps, would stand empty: nothing of it was
 * recorded.
 */
static bool is_empty(enum column column, enum kprof_by by, const struct kprof_capture *c,
		     const struct kprof_result *r)
{
	if (column == COL_SELF_MEMORY || column == COL_MEMORY)
		return !kprof_capture_has_memory(c);
	for (size_t i = 0; column == COL_FLOPS && i < kprof_result_nr_rows(r); i++)
		if (kprof_result_row(r, i)->flops)
			return false;
	if (column == COL_FLOPS)
		return true;
	if (column == COL_KEPT || column == COL_KEPT_STEPS)
		return !any_kept(r);
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
	const struct shown *from = off_cpu                      ? tables_of_waits[by]
				   : kprof_result_of_samples(r) ? tables_of_samples[by]
								: tables[by];
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
	if (by == KPROF_BY_WAIT)
		report_waits_sum(c);
	if (off_cpu)
		printf("Of threads off the CPU, in waits that were recorded: the time waited\n");
	else if (of_samples)
		printf("±: percentage points, 95 %% confidence (Wilson's interval)\n");
	return EXIT_DONE;
}
