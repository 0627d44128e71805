// SPDX-License-Identifier: BSD-2-Clause
/* What a capture that was merged of others says of their machines. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "model/timeline/impl.h"

/* There are PIDs for no more. */
#define MOST_MACHINES 256

struct tl_merged {
	cJSON *json;
	struct {
		const char *host;
		pid_t first_pid;
		double error_ns;   /* negative: not known */
	} machines[MOST_MACHINES]; /* by their first PID */
	size_t nr;
};

static void read_machine(struct tl_merged *m, const cJSON *item)
{
	const cJSON *host = cJSON_GetObjectItemCaseSensitive(item, "host");
	const cJSON *first = cJSON_GetObjectItemCaseSensitive(item, "first_pid");
	const cJSON *error = cJSON_GetObjectItemCaseSensitive(item, "error_ns");
	pid_t before = m->nr ? m->machines[m->nr - 1].first_pid : -1;

	if (m->nr == MOST_MACHINES || !cJSON_IsString(host) || !cJSON_IsNumber(first) ||
	    !(first->valuedouble > before && first->valuedouble <= INT32_MAX))
		return;
	m->machines[m->nr].host = host->valuestring;
	m->machines[m->nr].first_pid = (pid_t)first->valuedouble;
	m->machines[m->nr].error_ns = cJSON_IsNumber(error) ? error->valuedouble : -1;
	m->nr++;
}

/* Which machine's process it is, and what its PID is there. */
static void settle_process(const struct tl_merged *m, struct tl_process *p)
{
	for (size_t i = 0; i < m->nr && m->machines[i].first_pid < p->pid; i++) {
		p->host = m->machines[i].host;
		p->host_pid = p->pid - m->machines[i].first_pid;
	}
}

int tl_merged__read(struct kprof_capture *t)
{
	const char *text = kprof_capture_meta(t, "merged");
	const struct tl_process *p;
	const cJSON *item;

	if (!text)
		return 0;
	t->merged = calloc(1, sizeof(*t->merged));
	if (!t->merged)
		return -ENOMEM;
	t->merged->json = cJSON_Parse(text);
	cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(t->merged->json, "machines"))
		read_machine(t->merged, item);
	for (size_t i = 0; t->merged->nr > 1 && (p = timeline__process(t, i)); i++)
		settle_process(t->merged, (struct tl_process *)(uintptr_t)p);
	return 0;
}

void tl_merged__free(struct kprof_capture *t)
{
	if (t->merged)
		cJSON_Delete(t->merged->json);
	free(t->merged);
}

size_t timeline__machines(const struct kprof_capture *t)
{
	return t->merged && t->merged->nr ? t->merged->nr : 1;
}

/* Two machines may be wrong in different directions. */
uint64_t timeline__clock_error_ns(const struct kprof_capture *t)
{
	double most = 0, second = 0;

	for (size_t i = 0; t->merged && i < t->merged->nr; i++) {
		double error_ns = t->merged->machines[i].error_ns;

		if (!(error_ns >= 0 && error_ns < 1e18))
			return UINT64_MAX;
		if (error_ns > most) {
			second = most;
			most = error_ns;
		} else if (error_ns > second) {
			second = error_ns;
		}
	}
	return (uint64_t)(most + second);
}
