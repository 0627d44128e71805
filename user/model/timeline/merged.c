// SPDX-License-Identifier: BSD-2-Clause
/* What a capture that was merged of others says of their machines. */
#include <cjson/cJSON.h>

#include "model/timeline/impl.h"

static const cJSON *machines_of(const struct kprof_capture *t)
{
	return cJSON_GetObjectItemCaseSensitive(t->merged, "machines");
}

/* Which machine's process has this PID, and what it is there. */
static void settle_process(const cJSON *machines, struct tl_process *p)
{
	const cJSON *item;

	cJSON_ArrayForEach(item, machines)
	{
		const char *host =
			cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "host"));
		double first =
			cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(item, "first_pid"));

		if (!host || !(first >= 0 && first < p->pid)) /* they ascend */
			return;
		p->host = host;
		p->host_pid = p->pid - (pid_t)first;
	}
}

void tl_merged__read(struct kprof_capture *t)
{
	const char *json = kprof_capture_meta(t, "merged");
	const cJSON *machines;
	const struct tl_process *p;

	t->merged = json ? cJSON_Parse(json) : NULL;
	machines = machines_of(t);
	for (size_t i = 0; cJSON_GetArraySize(machines) > 1 && (p = timeline__process(t, i)); i++)
		settle_process(machines, (struct tl_process *)(uintptr_t)p);
}

void tl_merged__free(struct kprof_capture *t)
{
	cJSON_Delete(t->merged);
}

uint64_t timeline__clock_error_ns(const struct kprof_capture *t)
{
	const cJSON *item;
	double most = 0;

	cJSON_ArrayForEach(item, machines_of(t))
	{
		const cJSON *error = cJSON_GetObjectItemCaseSensitive(item, "error_ns");

		if (!cJSON_IsNumber(error) || !(error->valuedouble < 1e18))
			return UINT64_MAX;
		if (error->valuedouble > most)
			most = error->valuedouble;
	}
	return (uint64_t)most;
}
