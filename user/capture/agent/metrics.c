// SPDX-License-Identifier: BSD-2-Clause
/* Hardware metrics that agents measure: which are asked for, and what became of that. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "capture/agent/impl.h"
#include "util/error.h"
#include "util/util.h"

#define RANGE_NS (100 * NSEC_PER_MSEC)

static uint64_t range_ns(const struct agents *a)
{
	uint64_t asked_ns = a->opts.session->metrics_range_ns;

	return asked_ns ? asked_ns : RANGE_NS;
}

void agent_metrics__warn(const char *names)
{
	if (strstr(names, "__sass_"))
		log_warn("metrics without __sass_ in their names cost nearly nothing",
			 "SASS metrics have CUPTI change the kernels: each takes many times as "
			 "long");
}

void agent_metrics__ask(const struct agents *a, struct agent_link *link)
{
	if (a->opts.session->metrics)
		agent_memory__metrics(link->memory, a->opts.session->metrics, range_ns(a));
}

/* ---- what became of it ---- */

struct reason {
	const char *name; /* in the capture's metadata */
	const char *hint;
};

static const struct reason *reason_of(uint32_t reason)
{
	static const struct reason reasons[] = {
		[KPROF_AGENT_METRICS_OK] = {"ok", NULL},
		[KPROF_AGENT_METRICS_OLD] = {"old", "CUDA 12.6 and later have it"},
		[KPROF_AGENT_METRICS_UNKNOWN] =
			{"unknown", "names are CUPTI's, with what is made of each unit's value: "
				    "sm__inst_executed.sum; 'ncu --query-metrics' prints them"},
		[KPROF_AGENT_METRICS_PASSES] = {"passes", "ask for fewer, or for each by itself"},
		[KPROF_AGENT_METRICS_PERMISSION] =
			{"no_permission", "it needs CAP_SYS_ADMIN, or the driver's option "
					  "NVreg_RestrictProfilingToAdminUsers=0"},
		[KPROF_AGENT_METRICS_BUSY] =
			{"busy", "one process at a time can have them: end the other (Nsight, "
				 "DCGM, another process that is recorded)"},
		[KPROF_AGENT_METRICS_LIBRARY] = {"no_library",
						 "it comes with CUPTI: install all of it, or name "
						 "its folder in the process's LD_LIBRARY_PATH"},
		[KPROF_AGENT_METRICS_CONTEXT] = {"context", NULL},
		[KPROF_AGENT_METRICS_OTHER] = {"other", NULL},
	};

	return &reasons[reason < ARRAY_SIZE(reasons) ? reason : KPROF_AGENT_METRICS_OTHER];
}

/* The head is of the session that was asked for. */
static bool ours(const struct agents *a, const struct agent_link *link)
{
	return a->opts.session->metrics && link->session && link->head.recording == link->session;
}

void agent_metrics__tend(const struct agents *a, struct agent_link *link)
{
	const struct kprof_agent_shm *head = &link->head;
	char detail[sizeof(head->metrics_detail)];

	if (link->metrics_said || !ours(a, link) || head->metrics_state != KPROF_AGENT_METRICS_FAIL)
		return;
	link->metrics_said = true;
	agent_plain_text(detail, sizeof(detail), head->metrics_detail);
	log_warn(reason_of(head->metrics_reason)->hint, "no metrics of process %u%s: %s",
		 link->target->pid, head->metrics_ranges ? " from now on" : "", detail);
}

/* An agent that has begun with CUDA says at least that it waits. */
static void say_none(const struct agent_link *link)
{
	if (!link->head.cupti_version || link->reason[0])
		return;
	if (link->head.metrics_state == KPROF_AGENT_METRICS_NONE)
		log_warn("end the process, or attach when it has been started again",
			 "no metrics of process %u: its agent is an older kprof's",
			 link->target->pid);
	if (link->head.metrics_state == KPROF_AGENT_METRICS_WAIT)
		log_warn("those that a program makes by cuCtxCreate are not measured",
			 "no metrics of process %u: it had no primary context for 100 ms",
			 link->target->pid);
}

static const char *state_of(const struct kprof_agent_shm *head)
{
	if (head->metrics_ranges)
		return "measured";
	return head->metrics_state == KPROF_AGENT_METRICS_FAIL ? "failed" : "idle";
}

static cJSON *names_of(const char *names)
{
	cJSON *list = cJSON_CreateArray();
	char name[KPROF_AGENT_METRICS_BYTES];

	for (size_t len; *names; names += len + (names[len] == ',')) {
		len = strcspn(names, ",");
		snprintf(name, sizeof(name), "%.*s", (int)len, names);
		cJSON_AddItemToArray(list, cJSON_CreateString(name));
	}
	return list;
}

int agent_metrics__account(struct agents *a, struct agent_link *link)
{
	const struct kprof_agent_shm *head = &link->head;
	char key[32], detail[sizeof(head->metrics_detail)];
	cJSON *o;

	a->metrics_told |= link->reason[0] || link->head.cupti_version;
	if (!ours(a, link))
		return 0;
	agent_metrics__tend(a, link);
	say_none(link);
	o = cJSON_CreateObject();
	cJSON_AddItemToObject(o, "names", names_of(a->opts.session->metrics));
	cJSON_AddNumberToObject(o, "range_ns", (double)range_ns(a));
	cJSON_AddStringToObject(o, "state", state_of(head));
	cJSON_AddNumberToObject(o, "ranges", (double)head->metrics_ranges);
	cJSON_AddNumberToObject(o, "ranges_lost", (double)head->metrics_lost);
	cJSON_AddNumberToObject(o, "longest_start_ns", (double)head->metrics_longest_ns);
	if (head->metrics_reason) {
		agent_plain_text(detail, sizeof(detail), head->metrics_detail);
		cJSON_AddStringToObject(o, "reason", reason_of(head->metrics_reason)->name);
		cJSON_AddStringToObject(o, "detail", detail);
	}
	snprintf(key, sizeof(key), "metrics.%u", link->target->pid);
	return recorder__meta_value(a->opts.recorder, key, o);
}

void agent_metrics__end(const struct agents *a)
{
	if (a->opts.session->metrics && !a->metrics_told)
		log_warn(NULL, "no metrics: none of the recorded processes has used CUDA");
}
