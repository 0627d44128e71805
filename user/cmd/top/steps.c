// SPDX-License-Identifier: BSD-2-Clause
/*
 * Steps of trainings: a recording of annotations alone. What a step is, the table by step decides.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/print/message.h"
#include "cmd/top/top.h"

#define MOST_PROCESSES 256 /* whose steps are counted, at most */

/* A process whose steps are counted. */
struct counted {
	pid_t pid;
	uint64_t start_ticks;
	bool there; /* at this look */
	uint64_t steps, first_ns, last_ns, last_step_ns;
};

struct top_steps {
	struct kprof_watch *watch; /* NULL: there was no process yet, or all have ended */
	size_t nr;
	struct counted all[MOST_PROCESSES];
};

int top_open_last(struct kprof_watch *w, struct kprof_capture **out, uint64_t *window_ns)
{
	struct kprof_range range = {.sz = sizeof(range), .has_from = true};
	const struct kprof_capture_info *info;
	struct kprof_capture *c;
	uint64_t now = now_ns(CLOCK_MONOTONIC), from;
	const char *path;
	int err = kprof_watch_read(w, &path);

	*out = NULL;
	if (!err)
		err = kprof_capture_open(path, &c);
	if (err)
		return err;
	info = kprof_capture_info(c);
	*window_ns = now - info->start_mono_ns;
	if (*window_ns > TOP_WINDOW_NS)
		*window_ns = TOP_WINDOW_NS;
	from = now - *window_ns;
	if (now < info->start_mono_ns || info->end_mono_ns <= from) {
		kprof_capture_close(c);
		return 0;
	}
	range.from_ns = (int64_t)(from - info->start_mono_ns);
	err = range.from_ns ? kprof_capture_select(c, &range) : 0;
	if (err) {
		kprof_capture_close(c);
		return err == -EINVAL ? 0 : err;
	}
	*out = c;
	return 1;
}

/* Its index; s->nr: it is none of them. */
static size_t find(const struct top_steps *s, pid_t pid)
{
	size_t i = 0;

	while (i < s->nr && s->all[i].pid != pid)
		i++;
	return i;
}

/* Forgets those that have ended, or run another program. */
static void forget_gone(struct top_steps *s, const struct kprof_top *top)
{
	const struct kprof_top_process *p;
	size_t at, nr = 0;

	for (size_t i = 0; i < s->nr; i++)
		s->all[i].there = false;
	for (size_t i = 0; (p = kprof_top_process(top, i)); i++) {
		at = p->frameworks[0] ? find(s, p->pid) : s->nr;
		if (at < s->nr)
			s->all[at].there = s->all[at].start_ticks == p->start_ticks;
	}
	for (size_t i = 0; i < s->nr; i++)
		if (s->all[i].there)
			s->all[nr++] = s->all[i];
	s->nr = nr;
}

/* Adds those that have a framework now, at the end. Returns how many are new. */
static size_t add_new(struct top_steps *s, const struct kprof_top *top)
{
	const struct kprof_top_process *p;
	size_t known = s->nr;

	for (size_t i = 0; (p = kprof_top_process(top, i)) && s->nr < MOST_PROCESSES; i++)
		if (p->frameworks[0] && find(s, p->pid) == s->nr)
			s->all[s->nr++] =
				(struct counted){.pid = p->pid, .start_ticks = p->start_ticks};
	return s->nr - known;
}

/* Records the last ones, too. */
static int watch_last(struct top_steps *s, size_t nr)
{
	const struct counted *from = &s->all[s->nr - nr];
	pid_t pids[MOST_PROCESSES];
	uint64_t starts[MOST_PROCESSES];
	struct kprof_watch_opts opts = {
		.sz = sizeof(opts),
		.what = KPROF_WATCH_STEPS,
		.pids = pids,
		.start_ticks = starts,
		.nr = nr,
	};
	int err = 0;

	for (size_t i = 0; i < nr && s->watch && !err; i++)
		err = kprof_watch_add(s->watch, from[i].pid, from[i].start_ticks);
	if (!nr || s->watch)
		return err;
	for (size_t i = 0; i < nr; i++) { /* together, which is cheaper */
		pids[i] = from[i].pid;
		starts[i] = from[i].start_ticks;
	}
	err = kprof_watch_new(&opts, &s->watch);
	return err == -ESRCH || err == -ENOEXEC ? 0 : err; /* none of them can be recorded */
}

static int take_processes(struct top_steps *s, const struct kprof_top *top)
{
	forget_gone(s, top);
	return watch_last(s, add_new(s, top));
}

int top_steps_new(const struct kprof_top *top, struct top_steps **out)
{
	struct top_steps *s = calloc(1, sizeof(*s));
	int err = s ? take_processes(s, top) : -ENOMEM;

	if (err)
		top_steps_free(s);
	else
		*out = s;
	return err;
}

size_t top_steps_nr(const struct top_steps *s)
{
	return s->nr;
}

int top_steps_poll(struct top_steps *s, int timeout_ms)
{
	int n;

	if (!s->watch)
		return 1;
	n = kprof_watch_poll(s->watch, timeout_ms);
	if (n) { /* the next look finds those that there are */
		kprof_watch_free(s->watch);
		s->watch = NULL;
		s->nr = 0;
	}
	return n;
}

static void count(struct top_steps *s, const struct kprof_row *row)
{
	size_t at = find(s, row->pid);
	struct counted *c = &s->all[at];

	if (at == s->nr)
		return;
	c->steps++;
	if (row->start_ns < c->first_ns)
		c->first_ns = row->start_ns;
	if (row->start_ns >= c->last_ns) {
		c->last_ns = row->start_ns;
		c->last_step_ns = row->total_ns;
	}
}

int top_steps_look(struct top_steps *s, const struct kprof_top *top)
{
	struct kprof_result *steps = NULL;
	struct kprof_capture *c;
	uint64_t window_ns;
	int err = take_processes(s, top);

	for (size_t i = 0; i < s->nr; i++) {
		s->all[i].steps = s->all[i].last_ns = 0;
		s->all[i].first_ns = UINT64_MAX;
	}
	if (err || !s->watch)
		return err;
	err = top_open_last(s->watch, &c, &window_ns);
	if (err <= 0)
		return err == -ESRCH ? 0 : err; /* all have ended, and it is no longer kept */
	err = kprof_result_new(c, KPROF_BY_STEP, KPROF_SORT_NAME, &steps);
	for (size_t i = 0; !err && i < kprof_result_nr_rows(steps); i++)
		count(s, kprof_result_row(steps, i));
	kprof_result_free(steps);
	kprof_capture_close(c);
	return err == -ENOMEM ? err : 0; /* else there are no steps (yet) */
}

double top_steps_rate(const struct top_steps *s, pid_t pid)
{
	size_t at = find(s, pid);
	const struct counted *c = &s->all[at];

	if (at == s->nr || !c->steps)
		return -1;
	if (c->last_ns >
	    c->first_ns) /* between begins: of the last step the end may not be there */
		return (double)(c->steps - 1) * 1e9 / (double)(c->last_ns - c->first_ns);
	return c->last_step_ns ? 1e9 / (double)c->last_step_ns : -1;
}

void top_steps_free(struct top_steps *s)
{
	if (!s)
		return;
	kprof_watch_free(s->watch);
	free(s);
}
