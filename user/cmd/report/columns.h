/* SPDX-License-Identifier: BSD-2-Clause */
/* The columns of each kind of table. */
#ifndef KPROF_CMD_REPORT_COLUMNS_H
#define KPROF_CMD_REPORT_COLUMNS_H

#include "kprof.h"

#define REPORT_MOST_COLUMNS 14 /* of one table, without its end */

enum column {
	COL_NAME,
	COL_CATEGORY,
	COL_WHERE,
	COL_NODE,
	COL_CALLER,
	COL_COMMAND,
	COL_USER,
	COL_TOP,
	COL_MEMORY_DEVICE,
	COL_DEVICE, /* the last column of text: numbers stand at the right */
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
	COL_SELF_DEVICE_MEMORY,
	COL_DEVICE_MEMORY,
	COL_PEAK,
	COL_PEAK_BLOCKS,
	COL_KEPT,
	COL_KEPT_STEPS,
	COL_FLOPS,
	COL_COUNTER,
	COL_OF_MEDIAN,
	COL_WAITED,
	COL_RANKS, /* this and the following in the order of enum report_collective */
	COL_RANKS_WAITED,
	COL_LONGEST_WAIT,
	COL_LAST_RANK,
	COL_RANKS_BYTES,
	COL_ALGORITHM_SPEED,
	COL_FLOPS_PER_S, /* this and the following in the order of enum report_roofline */
	COL_FLOPS_SHARE,
	COL_BYTES_PER_S,
	COL_BYTES_SHARE,
	COL_INTENSITY,
	COL_LIMIT,
	COL_END,
};

struct shown {
	enum column column;
	const char *title;
};

/* Those of one table, up to COL_END. Some may stand empty: the table is shown without them. */
const struct shown *report_columns(enum kprof_by by, bool of_samples, bool off_cpu);

#endif
