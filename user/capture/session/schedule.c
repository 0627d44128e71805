// SPDX-License-Identifier: BSD-2-Clause
/* The window of a recording of some steps: opened and closed by what capture/event/steps.h says. */
#include <cjson/cJSON.h>
#include <errno.h>

#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

#define QUIET_NS (10 * NSEC_PER_SEC) /* without a step, before that is said */

static const char *hint(const struct kprof_session *s)
{
	if (!s->step_symbol)
		return "a step is an annotation such as ProfilerStep#7, train_step or "
		       "Optimizer.step#SGD.step; --step-at NAME names another one; Ctrl-C stops";
	return probe_set__stats(s->probes)->functions
		       ? "calls that were compiled into others can't be seen; Ctrl-C stops"
		       : "no file of the process has such a function; `nm -DC` shows names; "
			 "Ctrl-C stops";
}

int schedule__new(struct kprof_session *s)
{
	const struct steps_opts opts = {
		.nr = s->schedule.steps,
		.warm_up = s->schedule.warm_up_steps,
		.warm_up_ns = s->schedule.warm_up_ns,
		.annotation = s->schedule.annotation,
		.multiple_of = s->schedule.multiple_of,
	};
	int err = s->schedule.steps ? steps__new(&opts, &s->steps) : 0;

	if (!err && s->steps) {
		namer__tell(s->namer, s->steps);
		marks__tell(s->marks, s->steps);
	}
	return err;
}

void schedule__start(struct kprof_session *s)
{
	s->steps_seen_ns = clock_mono_ns();
	steps__start(s->steps, s->steps_seen_ns);
}

/* Prepared, and not started: no step counts yet. */
static bool is_early(const struct kprof_session *s)
{
	return s->prepared && !s->steps_seen_ns;
}

/* What readers of the capture need to know: what was taken as steps, and whose began the window. */
static int put_meta(struct kprof_session *s)
{
	struct steps_state state;
	cJSON *o = cJSON_CreateObject();

	steps__state(s->steps, &state);
	cJSON_AddNumberToObject(o, "steps", (double)s->schedule.steps);
	cJSON_AddNumberToObject(o, "warm_up_steps", (double)s->schedule.warm_up_steps);
	cJSON_AddNumberToObject(o, "warm_up_ns", (double)s->schedule.warm_up_ns);
	cJSON_AddNumberToObject(o, "pid", (double)state.pid);
	if (s->schedule.annotation)
		cJSON_AddStringToObject(o, "at", s->schedule.annotation);
	return recorder__meta_value(s->recorder, "steps", o);
}

static int act(struct kprof_session *s, enum steps_act what, uint64_t time_ns)
{
	struct steps_state state;
	int err;

	if (what == STEPS_NOTHING)
		return 0;
	steps__state(s->steps, &state);
	if (what == STEPS_CLOSE) {
		recorder__end_at(s->recorder, time_ns);
		log_debug("the last step has ended: %u process%s with steps", state.processes,
			  state.processes == 1 ? "" : "es");
		return 0;
	}
	log_debug("it begins with a step of process %u, and is to have %llu", state.pid,
		  (unsigned long long)s->schedule.steps);
	if (state.unnumbered)
		log_warn("--step-at NAME names annotations that have numbers",
			 "steps of process %u have no numbers to choose by: it begins with the "
			 "next one",
			 state.pid);
	s->steps_said = false;
	err = s->open_window(s, time_ns);
	return err ? err : put_meta(s);
}

int schedule__range_begins(void *ctx, uint32_t pid, uint32_t thread, uint64_t time_ns,
			   uint32_t description)
{
	struct kprof_session *s = ctx;
	const struct steps_range range = {pid, thread, time_ns, description};
	enum steps_act what = STEPS_NOTHING;
	int err = is_early(s) ? 0 : steps__begin(s->steps, &range, &what);

	/* What begins with the window is taken to have begun before. */
	return err ? err : act(s, what, time_ns - (what == STEPS_OPEN));
}

int schedule__range_ended(void *ctx, uint32_t pid, uint32_t thread, uint64_t time_ns,
			  uint32_t description)
{
	struct kprof_session *s = ctx;
	const struct steps_range range = {pid, thread, time_ns, description};
	enum steps_act what = STEPS_NOTHING;
	int err = is_early(s) ? 0 : steps__end(s->steps, &range, &what);

	return err ? err : act(s, what, time_ns);
}

int schedule__gone(struct kprof_session *s, const struct target *t)
{
	return s->steps ? act(s, steps__gone(s->steps, t->pid), t->exit_ns) : 0;
}

bool schedule__is_over(const struct kprof_session *s)
{
	return s->steps && recorder__window(s->recorder)->end_ns;
}

void schedule__tend(struct kprof_session *s, uint64_t now_ns)
{
	struct steps_state state;

	if (!s->steps || s->steps_said || !s->steps_seen_ns)
		return;
	steps__state(s->steps, &state);
	if (state.seen != s->steps_known) {
		s->steps_known = state.seen;
		s->steps_seen_ns = now_ns;
	}
	if (now_ns < s->steps_seen_ns + QUIET_NS)
		return;
	s->steps_said = true;
	if (!state.seen)
		log_warn(hint(s), "no step has begun for %llu seconds: waiting for the first",
			 QUIET_NS / NSEC_PER_SEC);
	else if (!state.open)
		log_warn("Ctrl-C stops", "no step has begun for %llu seconds, after %llu",
			 QUIET_NS / NSEC_PER_SEC, (unsigned long long)state.seen);
	else
		log_warn("Ctrl-C stops, and keeps what was recorded",
			 "no step has begun for %llu seconds: %llu of %llu are recorded%s",
			 QUIET_NS / NSEC_PER_SEC, (unsigned long long)state.least_done,
			 (unsigned long long)s->schedule.steps,
			 state.processes > 1 ? " of the process that has had fewest" : "");
}

int schedule__stop(struct kprof_session *s)
{
	struct steps_state state;

	if (!s->steps || schedule__is_over(s))
		return 0;
	steps__state(s->steps, &state);
	if (state.open) {
		log_warn("the recording has them, the last one as far as it went",
			 "only %llu of %llu steps ended before the recording did",
			 (unsigned long long)state.least_done,
			 (unsigned long long)s->schedule.steps);
		return 0;
	}
	log_warn(hint(s),
		 state.seen ? "nothing was recorded: %llu steps began, all in the warm-up"
			    : "nothing was recorded: no step began (%llu)",
		 (unsigned long long)state.seen);
	return s->open_window(s, clock_mono_ns());
}
