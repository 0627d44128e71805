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

struct rate {
	pid_t pid;
	uint64_t steps, first_ns, last_ns, last_step_ns;
};

struct top_steps {
	struct kprof_watch *watch;
	size_t nr;
	struct rate rates[MOST_PROCESSES];
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

struct top_steps *top_steps_new(const struct kprof_top *top, int *err)
{
	struct top_steps *s = calloc(1, sizeof(*s));
	pid_t pids[MOST_PROCESSES];
	uint64_t starts[MOST_PROCESSES];
	struct kprof_watch_opts opts = {
		.sz = sizeof(opts),
		.what = KPROF_WATCH_STEPS,
		.pids = pids,
		.start_ticks = starts,
	};
	const struct kprof_top_process *p;

	*err = s ? 0 : -ENOMEM;
	if (!s)
		return NULL;
	for (size_t i = 0; (p = kprof_top_process(top, i)) && opts.nr < MOST_PROCESSES; i++) {
		if (!p->frameworks[0])
			continue;
		pids[opts.nr] = p->pid;
		starts[opts.nr++] = p->start_ticks;
	}
	if (opts.nr)
		*err = kprof_watch_new(&opts, &s->watch);
	if (*err || !opts.nr) {
		free(s);
		return NULL;
	}
	return s;
}

bool top_steps_poll(struct top_steps *s, int timeout_ms)
{
	return kprof_watch_poll(s->watch, timeout_ms) == 0;
}

static struct rate *rate_of(struct top_steps *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->rates[i].pid == pid)
			return &s->rates[i];
	if (s->nr == MOST_PROCESSES)
		return NULL;
	s->rates[s->nr] = (struct rate){.pid = pid, .first_ns = UINT64_MAX};
	return &s->rates[s->nr++];
}

int top_steps_look(struct top_steps *s)
{
	struct kprof_result *steps = NULL;
	struct kprof_capture *c;
	uint64_t window_ns;
	int err;

	s->nr = 0;
	err = top_open_last(s->watch, &c, &window_ns);
	if (err <= 0)
		return err;
	err = kprof_result_new(c, KPROF_BY_STEP, KPROF_SORT_NAME, &steps);
	for (size_t i = 0; !err && i < kprof_result_nr_rows(steps); i++) {
		const struct kprof_row *row = kprof_result_row(steps, i);
		struct rate *rate = rate_of(s, row->pid);

		if (!rate)
			continue;
		rate->steps++;
		if (row->start_ns < rate->first_ns)
			rate->first_ns = row->start_ns;
		if (row->start_ns >= rate->last_ns) {
			rate->last_ns = row->start_ns;
			rate->last_step_ns = row->total_ns;
		}
	}
	kprof_result_free(steps);
	kprof_capture_close(c);
	return err == -ENOMEM ? err : 0; /* else there are no steps (yet) */
}

double top_steps_rate(const struct top_steps *s, pid_t pid)
{
	for (size_t i = 0; i < s->nr; i++) {
		const struct rate *r = &s->rates[i];

		if (r->pid != pid)
			continue;
		if (r->last_ns >
		    r->first_ns) /* between begins: of the last step the end may not be there */
			return (double)(r->steps - 1) * 1e9 / (double)(r->last_ns - r->first_ns);
		return r->last_step_ns ? 1e9 / (double)r->last_step_ns : -1;
	}
	return -1;
}

void top_steps_free(struct top_steps *s)
{
	if (!s)
		return;
	kprof_watch_free(s->watch);
	free(s);
}
