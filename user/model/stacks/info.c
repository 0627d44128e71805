// SPDX-License-Identifier: BSD-2-Clause
/* What a capture says about its sampling as a whole, and what the flags of a sample mean. */
#include <cjson/cJSON.h>
#include <errno.h>

#include "model/stacks/stacks.h"
#include "util/error.h"

#define STACKS_KEY "stacks" /* key of the metadata: how samples were taken */

enum stack_reach stack_reach_of(uint32_t flags)
{
	uint32_t end = (flags & KPROF_SAMPLE_END) >> KPROF_SAMPLE_END_SHIFT;

	if (flags & KPROF_SAMPLE_CUT)
		return STACK_INCOMPLETE;
	if (end == KPROF_SAMPLE_END_NONE)
		return STACK_NOT_WALKED;
	return end == KPROF_SAMPLE_END_WHOLE ? STACK_WHOLE : STACK_INCOMPLETE;
}

bool stack_off_cpu(uint32_t flags)
{
	return (flags & KPROF_SAMPLE_STATE) == KPROF_SAMPLE_OFF_CPU;
}

struct stack_rate stack_rate_of(const struct kprof_capture *t)
{
	cJSON *stacks = timeline__meta_json(t, STACKS_KEY);
	double hz = cJSON_GetNumberValue(
		/* A value that is no number counts as 0. */
		cJSON_GetObjectItemCaseSensitive(stacks, "frequency_hz"));

	cJSON_Delete(stacks);
	return (struct stack_rate){.hz = hz > 0 && hz < 1e9 ? hz : 0,
				   .lost = timeline__lost_samples(t)};
}

int stack_no_samples(const struct kprof_capture *t, pid_t pid)
{
	static const char *const waits =
		"`kprof sample --off-cpu` and `kprof attach --sched` record them";
	static const char *const hint =
		"`kprof sample` and `kprof attach --stacks` take them, of threads that run: who sleeps has none";

	const char *where = kprof_capture_selection(t) ? " in the selected range" : "";

	if (timeline__shows_waits(t))
		return error_set(-ENODATA, waits, "%s has no waits", timeline__path(t));
	if (pid)
		return error_set(-ENODATA, hint, "%s has no samples of process %d%s",
				 timeline__path(t), pid, where);
	return error_set(-ENODATA, hint, "%s has no samples%s", timeline__path(t), where);
}
