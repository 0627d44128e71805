// SPDX-License-Identifier: BSD-2-Clause
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "cmd/top/top.h"

#define MOST_USERS 64

const struct option_choice top_sorts[] = {
	{"cpu", TOP_SORT_CPU}, {"wait", TOP_SORT_WAIT},
	{"gpu", TOP_SORT_GPU}, {"step", TOP_SORT_STEPS},
	{"rss", TOP_SORT_RSS}, {"threads", TOP_SORT_THREADS},
	{"pid", TOP_SORT_PID}, {0},
};

/* ---- cells ---- */

const char *top_percent(char *buf, double share)
{
	if (share < 0)
		return "-";
	snprintf(buf, TOP_CELL_BYTES, "%.1f", share * 100);
	return buf;
}

static const char *dash(const char *text)
{
	return text[0] ? text : "-";
}

static const char *pid_text(char *buf, const struct top_row *row)
{
	snprintf(buf, TOP_CELL_BYTES, "%d", (int)row->p->pid);
	return buf;
}

/*
 * Looking a user up may ask a server, so each is looked up once. Beyond a limit, users are numbers.
 */
static const char *user_text(char *buf, const struct top_row *row)
{
	static struct {
		uid_t uid;
		char name[TOP_CELL_BYTES];
	} known[MOST_USERS];
	static size_t nr;
	const struct passwd *pw;
	size_t i = 0;

	if (!row->p->known)
		return "-";
	while (i < nr && known[i].uid != row->p->uid)
		i++;
	if (i < nr)
		return known[i].name;
	snprintf(buf, TOP_CELL_BYTES, "%u", (unsigned int)row->p->uid);
	if (nr == MOST_USERS)
		return buf;
	pw = getpwuid(row->p->uid);
	known[nr].uid = row->p->uid;
	snprintf(known[nr].name, TOP_CELL_BYTES, "%s", pw ? pw->pw_name : buf);
	return known[nr++].name;
}

static const char *cpu_text(char *buf, const struct top_row *row)
{
	return top_percent(buf, row->p->cpu);
}

static const char *runnable_text(char *buf, const struct top_row *row)
{
	return top_percent(buf, row->p->runnable);
}

static const char *blocked_text(char *buf, const struct top_row *row)
{
	return top_percent(buf, row->p->blocked);
}

static const char *gpu_text(char *buf, const struct top_row *row)
{
	return top_percent(buf, row->p->gpu);
}

static const char *steps_text(char *buf, const struct top_row *row)
{
	if (row->steps < 0)
		return "-";
	snprintf(buf, TOP_CELL_BYTES, "%.2f", row->steps);
	return buf;
}

static const char *rss_text(char *buf, const struct top_row *row)
{
	return text_bytes(buf, row->p->rss_bytes);
}

static const char *threads_text(char *buf, const struct top_row *row)
{
	snprintf(buf, TOP_CELL_BYTES, "%u", row->p->nr_threads);
	return buf;
}

static const char *python_text(char *buf, const struct top_row *row)
{
	return dash(row->p->python);
}

static const char *framework_text(char *buf, const struct top_row *row)
{
	return dash(row->p->frameworks[0] ? row->p->frameworks : row->p->runtimes);
}

static const char *command_text(char *buf, const struct top_row *row)
{
	return row->p->cmdline;
}

static const struct top_column columns[] = {
	{"PID", 7, true, TOP_ALWAYS, TOP_SORT_PID, pid_text},
	{"USER", 8, false, TOP_ALWAYS, TOP_NR_SORTS, user_text},
	{"CPU%", 6, true, TOP_ALWAYS, TOP_SORT_CPU, cpu_text},
	{"RUNQ%", 5, true, TOP_ALWAYS, TOP_NR_SORTS, runnable_text},
	{"WAIT%", 5, true, TOP_ALWAYS, TOP_SORT_WAIT, blocked_text},
	{"GPU%", 5, true, TOP_WITH_GPU, TOP_SORT_GPU, gpu_text},
	{"STEPS/s", 7, true, TOP_WITH_STEPS, TOP_SORT_STEPS, steps_text},
	{"RSS", 10, true, TOP_ALWAYS, TOP_SORT_RSS, rss_text},
	{"THREADS", 7, true, TOP_ALWAYS, TOP_SORT_THREADS, threads_text},
	{"PYTHON", 6, false, TOP_ALWAYS, TOP_NR_SORTS, python_text},
	{"FRAMEWORK", 14, false, TOP_ALWAYS, TOP_NR_SORTS, framework_text},
	{"COMMAND", 0, false, TOP_ALWAYS, TOP_NR_SORTS, command_text},
};

const struct top_column *top_column_at(size_t i, bool gpu, bool steps)
{
	for (size_t k = 0; k < sizeof(columns) / sizeof(columns[0]); k++) {
		if ((columns[k].when == TOP_WITH_GPU && !gpu) ||
		    (columns[k].when == TOP_WITH_STEPS && !steps))
			continue;
		if (!i--)
			return &columns[k];
	}
	return NULL;
}

void top_headline(char *buf, size_t bytes, const struct kprof_top *top)
{
	const struct kprof_top_info *info = kprof_top_info(top);
	time_t seconds = (time_t)(info->time_real_ns / 1000000000);
	char when[16] = "?";
	struct tm tm;

	if (localtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%H:%M:%S", &tm);
	snprintf(buf, bytes, "kprof top  %s  %zu processes use %.2f of %u CPUs, kprof itself %.3f",
		 when, kprof_top_nr(top), info->cpu, info->nr_cpus, info->own_cpu);
}

/* ---- order ---- */

static double key_of(const struct top_row *row, enum top_sort sort)
{
	switch (sort) {
	case TOP_SORT_WAIT:
		return row->p->blocked;
	case TOP_SORT_GPU:
		return row->p->gpu;
	case TOP_SORT_STEPS:
		return row->steps;
	case TOP_SORT_RSS:
		return (double)row->p->rss_bytes;
	case TOP_SORT_THREADS:
		return row->p->nr_threads;
	case TOP_SORT_PID:
		return -(double)row->p->pid;
	default:
		return row->p->cpu;
	}
}

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct top_row *a = pa, *b = pb;
	const enum top_sort *sort = ctx;
	double ka = key_of(a, *sort), kb = key_of(b, *sort);

	if (ka != kb)
		return ka > kb ? -1 : 1;
	if (a->p->cpu_ns != b->p->cpu_ns)
		return a->p->cpu_ns > b->p->cpu_ns ? -1 : 1;
	return a->p->pid < b->p->pid ? -1 : a->p->pid > b->p->pid;
}

static bool matches(const struct top_row *row, const char *filter)
{
	char buf[TOP_CELL_BYTES];

	return strstr(row->p->cmdline, filter) || strstr(row->p->comm, filter) ||
	       strstr(row->p->frameworks, filter) || strstr(row->p->runtimes, filter) ||
	       !strcmp(user_text(buf, row), filter) || !strcmp(pid_text(buf, row), filter);
}

bool top_rows_make(struct top_rows *rows, const struct kprof_top *top,
		   const struct top_steps *steps, enum top_sort sort, const char *filter)
{
	size_t nr = kprof_top_nr(top);

	rows->nr = 0;
	if (nr > rows->cap) {
		struct top_row *more = reallocarray(rows->all, nr, sizeof(*more));

		if (!more)
			return false;
		rows->all = more;
		rows->cap = nr;
	}
	for (size_t i = 0; i < nr; i++) {
		struct top_row *row = &rows->all[rows->nr];

		row->p = kprof_top_process(top, i);
		row->steps = steps ? top_steps_rate(steps, row->p->pid) : -1;
		rows->nr += !filter || !filter[0] || matches(row, filter);
	}
	if (rows->nr)
		qsort_r(rows->all, rows->nr, sizeof(*rows->all), compare, &sort);
	return true;
}

void top_rows_free(struct top_rows *rows)
{
	free(rows->all);
	*rows = (struct top_rows){0};
}
