// SPDX-License-Identifier: BSD-2-Clause
/* Tables one after the other, or a line of JSON for each look. */
#include <errno.h>
#include <stdio.h>
#include <time.h>

#include "cmd/print/json.h"
#include "cmd/print/message.h"
#include "cmd/print/text.h"
#include "cmd/record/signals.h"
#include "cmd/top/top.h"

#define MOST_COLUMNS 16
#define COMMAND_COLUMNS 100
#define POLL_MS 100

/* Until the time, or a signal; counts steps meanwhile. 0 or -errno. */
static int wait_until(uint64_t until, struct top_steps *steps)
{
	for (;;) {
		int n = 1;
		uint64_t now = now_ns(CLOCK_MONOTONIC);
		struct timespec left;

		if (signals_count() || now >= until)
			return 0;
		if (steps)
			n = top_steps_poll(steps, POLL_MS);
		if (n < 0)
			return n;
		if (!n)
			continue;
		left = (struct timespec){(time_t)((until - now) / 1000000000),
					 (long)((until - now) % 1000000000)};
		if (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, NULL) == EINTR)
			return 0;
	}
}

/* ---- for people ---- */

static bool print_table(const struct top_opts *o, const struct kprof_top *top,
			const struct top_rows *rows, const struct top_steps *steps)
{
	bool gpu = kprof_top_info(top)->has_gpu;
	struct table_column columns[MOST_COLUMNS];
	const struct top_column *column;
	char line[160];
	struct table *t;
	size_t nr;

	for (nr = 0; (column = top_column_at(nr, gpu, steps)); nr++)
		columns[nr] = (struct table_column){column->title, column->right,
						    column->width ? 0 : COMMAND_COLUMNS};
	t = table__new(columns, nr);
	for (size_t i = 0; t && i < rows->nr && (!o->most || i < o->most); i++) {
		char cells[MOST_COLUMNS][TOP_CELL_BYTES];
		const char *texts[MOST_COLUMNS];

		for (size_t k = 0; k < nr; k++)
			texts[k] = top_column_at(k, gpu, steps)->text(cells[k], &rows->all[i]);
		if (!table__add(t, texts)) {
			table__free(t);
			return false;
		}
	}
	if (!t)
		return false;
	top_headline(line, sizeof(line), top);
	puts(line);
	table__print(t, stdout, false);
	table__free(t);
	return true;
}

/* ---- for programs ---- */

static void put_share(struct json *j, const char *key, double share)
{
	if (share < 0)
		json_null(j, key);
	else
		json_double(j, key, share);
}

static void put_process(struct json *j, const struct top_row *row)
{
	const struct kprof_top_process *p = row->p;
	const char state[] = {p->state, '\0'};

	json_open(j, NULL, '{');
	json_uint(j, "pid", (uint64_t)p->pid);
	json_uint(j, "start_ticks", p->start_ticks);
	if (p->known)
		json_uint(j, "uid", p->uid);
	else
		json_null(j, "uid");
	json_string(j, "comm", p->comm);
	json_string(j, "command", p->cmdline);
	json_string(j, "state", state);
	json_uint(j, "threads", p->nr_threads);
	json_uint(j, "rss_bytes", p->rss_bytes);
	json_uint(j, "cpu_ns", p->cpu_ns);
	json_double(j, "cpu", p->cpu);
	put_share(j, "runnable", p->runnable);
	put_share(j, "blocked", p->blocked);
	put_share(j, "gpu", p->gpu);
	put_share(j, "steps_per_s", row->steps);
	json_string(j, "python", p->python);
	json_string(j, "frameworks", p->frameworks);
	json_string(j, "runtimes", p->runtimes);
	json_close(j, '}');
}

static void print_json(const struct top_opts *o, const struct kprof_top *top,
		       const struct top_rows *rows)
{
	const struct kprof_top_info *info = kprof_top_info(top);
	struct json j = {.to = stdout, .one_line = true};

	json_open(&j, NULL, '{');
	json_uint(&j, "time_ns", info->time_real_ns);
	json_uint(&j, "interval_ns", info->interval_ns);
	json_uint(&j, "look_ns", info->look_ns);
	json_uint(&j, "cpus", info->nr_cpus);
	json_double(&j, "cpu", info->cpu);
	json_double(&j, "own_cpu", info->own_cpu);
	json_uint(&j, "nr_processes", kprof_top_nr(top));
	json_uint(&j, "unreadable", info->nr_unreadable);
	json_open(&j, "processes", '[');
	for (size_t i = 0; i < rows->nr && (!o->most || i < o->most); i++)
		put_process(&j, &rows->all[i]);
	json_close(&j, ']');
	json_close(&j, '}');
}

/* ---- the whole ---- */

/* Counts steps from now on. -1, or an exit code. */
static int begin_steps(const struct top_opts *o, const struct kprof_top *top,
		       struct top_steps **steps)
{
	if (!o->steps)
		return -1;
	if (top_steps_new(top, steps))
		return message_error();
	if (!top_steps_nr(*steps))
		message_note(
			"no process has a known framework yet: steps of those that will are counted");
	return -1;
}

static int print_one(const struct top_opts *o, const struct kprof_top *top, struct top_steps *steps,
		     struct top_rows *rows)
{
	if (steps && top_steps_look(steps, top) < 0)
		return message_error();
	if (!top_rows_make(rows, top, steps, o->sort, o->filter))
		return message_no_memory();
	if (o->json)
		print_json(o, top, rows);
	else if (!print_table(o, top, rows, steps))
		return message_no_memory();
	return -1;
}

int top_plain(const struct top_opts *o, struct kprof_top *top)
{
	uint64_t looks = o->once ? 1 : o->looks, next;
	struct top_steps *steps = NULL;
	struct top_rows rows = {0};
	int code = kprof_top_look(top) ? message_error() : -1;

	if (code < 0)
		code = begin_steps(o, top, &steps);
	next = now_ns(CLOCK_MONOTONIC);
	for (uint64_t i = 0; code < 0 && (!looks || i < looks); i++) {
		next += o->interval_ns;
		if (wait_until(next, steps)) {
			code = message_error();
			break;
		}
		if (signals_count())
			break;
		if (kprof_top_look(top)) {
			code = message_error();
			break;
		}
		if (i && !o->json)
			putchar('\n');
		code = print_one(o, top, steps, &rows);
		if (fflush(stdout)) /* whoever read it has gone away */
			break;
	}
	top_rows_free(&rows);
	top_steps_free(steps);
	return code < 0 ? EXIT_DONE : code;
}
