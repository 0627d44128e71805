// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/report/columns.h"

static const struct shown by_op[] = {
	{COL_NAME, "Name"},
	{COL_SELF_SHARE, "Self %"},
	{COL_SELF, "Self"},
	{COL_TOTAL_SHARE, "Total %"},
	{COL_TOTAL, "Total"},
	{COL_AVG, "Average"},
	{COL_SELF_MEMORY, "Self CPU Mem"},
	{COL_MEMORY, "CPU Mem"},
	{COL_SELF_DEVICE_MEMORY, "Self Device Mem"},
	{COL_DEVICE_MEMORY, "Device Mem"},
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
	{COL_NAME, "Operator"}, {COL_PID, "Process"},        {COL_MEMORY_DEVICE, "Device"},
	{COL_PEAK, "At peak"},  {COL_PEAK_BLOCKS, "Blocks"}, {COL_MEMORY, "Allocated"},
	{COL_CALLS, "Times"},   {COL_KEPT, "Kept"},          {COL_KEPT_STEPS, "In steps"},
	{COL_END, ""},
};
static const struct shown by_module[] = {
	{COL_NAME, "Module"},
	{COL_CATEGORY, "Instance"},
	{COL_WHERE, "Of"},
	{COL_PID, "Process"},
	{COL_SELF, "Self"},
	{COL_TOTAL, "Total"},
	{COL_AVG, "Average"},
	{COL_OP_TIME, "Operators"},
	{COL_BUSY, "Device"},
	{COL_MEMORY, "CPU Mem"},
	{COL_DEVICE_MEMORY, "Device Mem"},
	{COL_CALLS, "Calls"},
	{COL_FLOPS, "FLOPs"},
	{COL_END, ""},
};
static const struct shown by_collective[] = {
	{COL_NAME, "Collective"},
	{COL_CATEGORY, "Group"},
	{COL_RANKS, "Ranks"},
	{COL_CALLS, "Times"},
	{COL_RANKS_WAITED, "Waited"},
	{COL_LONGEST_WAIT, "Longest"},
	{COL_LAST_RANK, "Last"},
	{COL_AVG, "Together"},
	{COL_RANKS_BYTES, "Bytes"},
	{COL_ALGORITHM_SPEED, "GB/s"},
	{COL_END, ""},
};
static const struct shown by_flops[] = {
	{COL_NAME, "Operator"},      {COL_CATEGORY, "Type"},       {COL_WHERE, "On"},
	{COL_CALLS, "Calls"},        {COL_TOTAL, "Time"},          {COL_FLOPS, "FLOPs"},
	{COL_FLOPS_PER_S, "FLOP/s"}, {COL_FLOPS_SHARE, "Of peak"}, {COL_BYTES, "Bytes"},
	{COL_BYTES_PER_S, "B/s"},    {COL_BYTES_SHARE, "Of peak"}, {COL_INTENSITY, "FLOP/B"},
	{COL_LIMIT, "Limit"},        {COL_INEXACT, "Left out"},    {COL_END, ""},
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
	[KPROF_BY_COLLECTIVE] = by_collective,
	[KPROF_BY_FLOPS] = by_flops,
};

const struct shown *report_columns(enum kprof_by by, bool of_samples, bool off_cpu)
{
	if (off_cpu)
		return tables_of_waits[by];
	return of_samples ? tables_of_samples[by] : tables[by];
}
