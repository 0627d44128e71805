// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes to the capture how many records the agents handed over and lost; and the end of all
 * agents.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "capture/agent/impl.h"
#include "catalog/activity.h"
#include "util/error.h"
#include "util/util.h"

#define LEAVE_NS (NSEC_PER_SEC / 2)

static uint64_t lost_records(const struct agent_link *link)
{
	uint64_t received, lost;

	/* the numbers are those of another session */
	if (!link->records || link->head.recording != link->session)
		return 0;
	received = agent_records__count(link->records)->received;
	lost = link->head.device_dropped + link->head.agent_dropped;
	/*
	 * Records that the agent wrote and kprof has not received were in batches for which the
	 * ring had no room.
	 */
	return lost + (link->head.records > received ? link->head.records - received : 0);
}

/* Annotations of the name that is asked for (--within) that the agent had to pass over. */
static uint32_t not_entered(const struct agent_link *link)
{
	return link->head.recording == link->session ? link->head.not_entered : 0;
}

static const char *step_name(const struct agent_link *link)
{
	const struct kprof_agent_shm *head = &link->head;

	/* The process may have ended before kprof saw its agent record. */
	if (link->recording_ns ||
	    (link->session && head->recording == link->session && head->reason == KPROF_AGENT_OK &&
	     (head->state == KPROF_AGENT_RECORDING || head->state == KPROF_AGENT_RESTING)))
		return "recorded";
	return link->reason[0] ? "failed" : "idle";
}

static void add_words(cJSON *o, const struct agent_link *link)
{
	char detail[sizeof(link->reason)];
	uint32_t code = link->reason[0] ? link->reason_code : link->head.reason;

	agent_plain_text(detail, sizeof(detail),
			 link->reason[0] ? link->reason : link->head.detail);
	cJSON_AddStringToObject(o, "state", step_name(link));
	cJSON_AddStringToObject(o, "reason", agent__reason(code)->name);
	if (detail[0])
		cJSON_AddStringToObject(o, "detail", detail);
	cJSON_AddBoolToObject(o, "injected", link->injected);
	if (link->memory)
		cJSON_AddStringToObject(o, "clock",
					link->head.clock == KPROF_AGENT_CLOCK_CONVERTED
						? "converted"
						: "monotonic");
}

static cJSON *describe(const struct agent_link *link)
{
	static const struct agent_records_count none;
	const struct agent_records_count *count =
		link->records ? agent_records__count(link->records) : &none;
	const struct {
		const char *key;
		uint64_t value;
	} numbers[] = {
		{"held_ns", link->held_ns},
		{"cupti_version", link->head.cupti_version},
		{"cuda_driver_version", link->head.driver_version},
		{"cuda_runtime_version", link->head.runtime_version},
		{"records", link->head.records},
		{"records_received", count->received},
		{"records_salvaged", link->salvaged},
		{"device_dropped", link->head.device_dropped},
		{"agent_dropped", link->head.agent_dropped},
		{"annotations_not_entered", not_entered(link)},
		{"records_not_asked_for", link->head.unknown_records},
		{"records_of_unknown_kind", count->unknown},
		{"malformed_batches", count->malformed},
		{"batches_of_others", link->strange},
		{"names_lost", count->unnamed},
		{"without_times", count->timeless},
		{"outside_window", count->outside},
		{"calls_of_no_thread", count->threadless},
		{"external_correlations", count->externals},
		{"max_buffers", link->head.max_buffers},
	};
	cJSON *o = cJSON_CreateObject();

	add_words(o, link);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		if (numbers[i].value)
			cJSON_AddNumberToObject(o, numbers[i].key, (double)numbers[i].value);
	return o;
}

/* Traces have a single version of each kind: those of the first process. */
static int put_versions(struct agents *a, const struct kprof_agent_shm *head)
{
	const struct {
		const char *key;
		uint32_t value;
	} versions[] = {
		{"cupti_version", head->cupti_version},
		{"cuda_driver_version", head->driver_version},
		{"cuda_runtime_version", head->runtime_version},
	};
	char number[16];
	int err = 0;

	if (a->versions_recorded || !head->cupti_version)
		return 0;
	a->versions_recorded = true;
	for (size_t i = 0; i < ARRAY_SIZE(versions) && !err; i++) {
		snprintf(number, sizeof(number), "%u", versions[i].value);
		err = recorder__meta(a->opts.recorder, versions[i].key, number);
	}
	return err;
}

#define CUPTI_13 130000

/* At the end, since a short process has come and gone before kprof sees its agent record. */
static void say_what_is_not_told(const struct agents *a, const struct agent_link *link)
{
	uint32_t version = link->head.cupti_version;

	if (a->types & ACTIVITY_BIT(KPROF_ACTIVITY_CUDA_EVENT) && version && version < CUPTI_13)
		log_warn("CUDA 13 does",
			 "the CUPTI of process %u does not tell when events were reached: there "
			 "are no rows of the type cuda_event",
			 link->target->pid);
	if (not_entered(link))
		log_warn(NULL,
			 "process %u: what was inside of %" PRIu32 " annotations is missing, as "
			 "PyTorch had its list of observers locked for too long",
			 link->target->pid, not_entered(link));
}

/* What has been received since the last time. */
static void count_received(struct agents *a, struct agent_link *link)
{
	const struct agent_records_count *count = agent_records__count(link->records);
	struct record_source *source = recorder__source_at(a->opts.recorder, a->record_source);
	/* with operators, they may all be names of these */
	uint64_t captured = count->received - (a->observe ? count->names : 0);
	uint64_t spans = count->spans - link->spans_threadless;

	source->captured += captured - link->told_captured;
	link->told_captured = captured;
	if (!a->observe)
		return;
	source = recorder__source_at(a->opts.recorder, a->span_source);
	source->captured += spans - link->told_spans;
	source->dropped += link->spans_threadless - link->told_threadless;
	link->told_spans = spans;
	link->told_threadless = link->spans_threadless;
}

/* Begins and ends of operators in batches for which the ring had no room were dropped. */
static void count_lost_spans(struct agents *a, const struct agent_link *link)
{
	struct record_source *source = recorder__source_at(a->opts.recorder, a->span_source);
	uint64_t received = agent_records__count(link->records)->spans;

	if (link->head.recording == link->session && link->head.spans > received)
		source->dropped += link->head.spans - received;
}

static int put_description(struct agents *a, const struct agent_link *link)
{
	char key[32];

	snprintf(key, sizeof(key), "agent.%u", link->target->pid);
	return recorder__meta_value(a->opts.recorder, key, describe(link));
}

int agent__account(struct agents *a, struct agent_link *link)
{
	struct record_source *source = recorder__source_at(a->opts.recorder, a->record_source);
	int err;

	if (link->step == LINK_NONE &&
	    !link->tries) /* a forked child that merely has the driver of its parent mapped */
		return 0;
	say_what_is_not_told(a, link);
	err = put_description(a, link);
	if (!err)
		err = agent_metrics__account(a, link);
	if (!err)
		err = put_versions(a, &link->head);
	if (!err && link->records)
		err = agent_records__finish(link->records);
	if (link->records)
		count_received(a, link);
	source->dropped += lost_records(link);
	if (a->observe && link->records)
		count_lost_spans(a, link);
	return err;
}

int agents__so_far(struct agents *a)
{
	struct agent_link *link;
	int err = 0;

	if (!agents__any(a))
		return 0;
	LINKS_EACH (a, link) {
		if (err || (link->step == LINK_NONE && !link->tries))
			continue;
		err = put_description(a, link);
		if (link->records)
			count_received(a, link);
	}
	return err;
}

static bool has_let_go(const struct agent_link *link, uint32_t state)
{
	return state == KPROF_AGENT_LEFT ||
	       (state == KPROF_AGENT_LOADED && agent__end_command(link) == KPROF_AGENT_STAND_BY);
}

/*
 * Waits until agents have left, or stand by, so that the next tool finds CUPTI free. Slow processes
 * are not waited for.
 */
static void wait_until_left(struct agents *a)
{
	uint64_t until_ns = clock_mono_ns() + LEAVE_NS;
	struct agent_link *link;

	LINKS_EACH (a, link) {
		uint32_t state = KPROF_AGENT_RESTING;

		while (link->memory && !has_let_go(link, state) && clock_mono_ns() < until_ns &&
		       proc_alive((pid_t)link->target->pid, link->target->start_ticks)) {
			state = agent_memory__state(link->memory);
			if (!has_let_go(link, state))
				agent_memory__wait(link->memory, state, 20);
		}
	}
}

int agents__account(struct agents *a)
{
	struct agent_link *link;
	int err = 0;

	if (!agents__any(a))
		return 0;
	LINKS_EACH (a, link) {
		if (err)
			break;
		if (agent__connected(link)) /* the agent has not answered */
			agent__dismiss(link);
		err = agent__salvage(link);
		if (!err)
			err = agent__account(a, link);
	}
	agent_metrics__end(a);
	wait_until_left(a);
	return err;
}
