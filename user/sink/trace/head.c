// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes as JSON what a trace states of the recording as a whole: Kineto's objects, then kprof's
 * own.
 */
#include "sink/trace/trace.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "util/error.h"
#include "util/json_valid.h"
#include "util/trace_meta.h"
#include "util/util.h"

/* Metadata that is written elsewhere, and not repeated among kprof's. */
static const char *const placed[] = {"host",
				     "distributed",
				     "trace_id",
				     "trace_name",
				     "version",
				     "kernel",
				     "command",
				     "overhead",
				     "profile_memory",
				     "cupti_version",
				     "cuda_runtime_version",
				     "cuda_driver_version"};

static void key(struct jsonw *w, const char *name)
{
	jsonw__string(w, name);
	jsonw__text(w, ": ");
}

static void number(struct jsonw *w, const char *name, uint64_t v)
{
	key(w, name);
	jsonw__u64(w, v);
}

/* The metadata with the rank: the process's own if the capture has it, else the recording's. */
static const char *distributed_meta(const struct trace *tr)
{
	char name[32];
	const char *json = NULL;

	if (tr->opts->pid) {
		snprintf(name, sizeof(name), "distributed.%d", tr->opts->pid);
		json = kprof_capture_meta(tr->t, name);
	}
	if (!json)
		json = kprof_capture_meta(tr->t, "distributed");
	return json && json_valid(json) ? json : NULL;
}

static uint64_t whole_number(const cJSON *object, const char *name, uint64_t otherwise)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble > INT_MAX)
		return otherwise;
	return (uint64_t)item->valuedouble;
}

/*
 * HTA takes a file's rank from the first line that matches `"rank":\s+(\d+)`. So it is always
 * written, before anything that the user controls, and with a blank.
 */
int trace__distributed(struct trace *tr, struct jsonw *w)
{
	const char *json = distributed_meta(tr);
	cJSON *d = json ? cJSON_Parse(json) : NULL;
	const cJSON *backend = cJSON_GetObjectItemCaseSensitive(d, "backend"), *item;
	int err = 0;

	jsonw__text_string(w,
			   "{\"backend\": ", cJSON_IsString(backend) ? backend->valuestring : "");
	jsonw__text(w, ", ");
	number(w, "rank", whole_number(d, "rank", 0));
	jsonw__text(w, ", ");
	number(w, "world_size", whole_number(d, "world_size", 1));
	for (item = cJSON_IsObject(d) ? d->child : NULL; item; item = item->next) {
		char *text;

		if (!strcmp(item->string, "backend") || !strcmp(item->string, "rank") ||
		    !strcmp(item->string, "world_size"))
			continue;
		text = cJSON_PrintUnformatted(item);
		if (!text) {
			err = error_set(-ENOMEM, NULL, "no memory for the trace's metadata");
			break;
		}
		jsonw__text(w, ", ");
		key(w, item->string);
		jsonw__json(w, text);
		cJSON_free(text);
	}
	jsonw__text(w, "}");
	cJSON_Delete(d);
	return err;
}

/*
 * Writes one object for each device, with the pid of its rows as its id. Devices that did nothing
 * are included for processes that are in the trace.
 */
static int device_property(struct trace *tr, struct jsonw *w, const char *name, uint64_t id,
			   const char *between)
{
	cJSON *o = timeline__meta_json(tr->t, name);
	char *text = NULL;
	int err = 0;

	if (!cJSON_IsObject(o))
		goto out;
	cJSON_DeleteItemFromObjectCaseSensitive(o, "id");
	text = cJSON_PrintUnformatted(o);
	if (!text) {
		err = error_set(-ENOMEM, NULL, "no memory for the trace's metadata");
		goto out;
	}
	jsonw__text(w, between);
	jsonw__text_u64(w, "{\"id\": ", id);
	if (o->child)
		jsonw__text(w, ", ");
	jsonw__text(w, text + 1); /* without its opening brace */
out:
	cJSON_free(text);
	cJSON_Delete(o);
	return err;
}

int trace__device_properties(struct trace *tr, struct jsonw *w)
{
	const char *name, *between = "\n    ";
	unsigned int pid, ordinal;
	int err = 0, end;

	jsonw__text(w, "[");
	for (size_t i = 0; !err && (name = timeline__meta_key(tr->t, i)); i++) {
		end = 0;
		if (sscanf(name, "device.%u.%u%n", &pid, &ordinal, &end) != 2 || name[end] ||
		    !end || (tr->opts->pid && (pid_t)pid != tr->opts->pid))
			continue;
		err = device_property(tr, w, name, trace__device_pid(tr, (pid_t)pid, ordinal),
				      between);
		between = ",\n    ";
	}
	jsonw__text(w, "]");
	return err;
}

static void meta(struct trace *tr, struct jsonw *w, const char *name, const char *after)
{
	const char *json = kprof_capture_meta(tr->t, name);

	if (!json)
		return;
	key(w, name);
	jsonw__json(w, json);
	jsonw__text(w, after);
}

static void sources(struct trace *tr, struct jsonw *w, uint64_t *exact, uint64_t *ended)
{
	const struct kprof_source *s;
	const char *between = "\n    ";

	*exact = *ended = 0;
	jsonw__text(w, "\"sources\": {");
	for (size_t i = 0; (s = kprof_capture_source(tr->t, i)); i++) {
		if (!*s->name)
			continue;
		const struct {
			const char *name;
			uint64_t value;
		} counts[] = {
			{"fired", s->fired},
			{"captured", s->captured},
			{"dropped", s->dropped},
			{"missed", s->missed},
			{"begins", s->begins},
			{"ends_exact", s->ends_exact},
			{"ends_closed", s->ends_closed},
			{"ends_window", s->ends_window},
			{"orphan_ends", s->orphan_ends},
		};

		jsonw__text(w, between);
		between = ",\n    ";
		key(w, s->name);
		for (size_t n = 0; n < ARRAY_SIZE(counts); n++) {
			jsonw__text(w, n ? ", " : "{");
			number(w, counts[n].name, counts[n].value);
		}
		jsonw__text(w, "}");
		*exact += s->ends_exact;
		*ended += s->ends_exact + s->ends_closed;
	}
	jsonw__text(w, "},\n    ");
}

/*
 * Writes the share of exact ends with six decimals, in integer arithmetic; null if no span has
 * ended.
 */
static void exact_end_share(struct jsonw *w, uint64_t exact, uint64_t ended)
{
	char text[32];
	uint64_t millionths;

	key(w, "exact_end_share");
	if (ended) {
		millionths = (uint64_t)((unsigned __int128)exact * 1000000 / ended);
		snprintf(text, sizeof(text), "%" PRIu64 ".%06" PRIu64, millionths / 1000000,
			 millionths % 1000000);
		jsonw__text(w, text);
	} else {
		jsonw__text(w, "null");
	}
	jsonw__text(w, ",\n    ");
}

static void gaps(struct trace *tr, struct jsonw *w)
{
	const struct kprof_gap *gap;
	const char *between = "\n    ";

	jsonw__text(w, "\"gaps\": [");
	for (size_t i = 0; (gap = kprof_capture_gap(tr->t, i)); i++) {
		if (tr->opts->pid && gap->pid && gap->pid != tr->opts->pid)
			continue;
		jsonw__text(w, between);
		between = ",\n    ";
		jsonw__text_i64(w, "{\"pid\": ", gap->pid);
		jsonw__text_us(w, ", \"ts\": ", trace__time(tr, gap->start_mono_ns));
		jsonw__text_us(w, ", \"dur\": ", (int64_t)(gap->end_mono_ns - gap->start_mono_ns));
		jsonw__text_string(w, ", \"what\": ", gap->what);
		jsonw__text_string(w, ", \"reason\": ", gap->reason);
		jsonw__text(w, "}");
	}
	jsonw__text(w, "],\n    ");
}

static void clock_info(struct trace *tr, struct jsonw *w)
{
	uint64_t start_ns, end_ns;
	int64_t step_ns;

	timeline__extent(tr->t, &start_ns, &end_ns);
	/* Sums may wrap around, since the readings are numbers from a file. */
	step_ns = (int64_t)(timeline__real_ns(tr->t, end_ns) - timeline__real_ns(tr->t, start_ns) -
			    (end_ns - start_ns));
	jsonw__text(w, "\"clock\": {\"source\": \"CLOCK_MONOTONIC\", ");
	number(w, "start_mono_ns", start_ns);
	jsonw__text(w, ", ");
	number(w, "start_real_ns", (uint64_t)trace__time(tr, start_ns) + tr->base_real_ns);
	jsonw__text(w, ", ");
	number(w, "end_mono_ns", end_ns);
	/*
	 * By how much the real-time clock was set during the recording; the trace's times ignore
	 * that.
	 */
	jsonw__text_i64(w, ", \"real_step_ns\": ", step_ns);
	jsonw__text(w, "}");
}

/* Writes which part of the recording was selected, and how much is outside of it. */
static void range(struct trace *tr, struct jsonw *w)
{
	const struct kprof_selection *s = kprof_capture_selection(tr->t);

	if (!s)
		return;
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"events", s->events},         {"events_outside", s->events_outside},
		{"samples", s->samples},       {"samples_outside", s->samples_outside},
		{"activities", s->activities}, {"activities_outside", s->activities_outside},
	};

	jsonw__text_us(w, ",\n    \"range\": {\"ts\": ", trace__time(tr, s->from_mono_ns));
	jsonw__text_us(w, ", \"dur\": ", (int64_t)(s->to_mono_ns - s->from_mono_ns));
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		jsonw__text(w, ", ");
		number(w, counts[i].name, counts[i].value);
	}
	jsonw__text(w, "}");
}

static bool is_placed(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(placed); i++)
		if (!strcmp(placed[i], name))
			return true;
	return false;
}

/* A capture may have anything: what would spoil the trace's head is left to other_meta(). */
static bool is_on_top(const char *name, const char *json)
{
	const size_t prefix = strlen(TRACE_META_PREFIX);

	return !strncmp(name, TRACE_META_PREFIX, prefix) &&
	       !trace_meta_key_problem(name + prefix) && json_valid(json);
}

const char *trace__metadata(const struct trace *tr, size_t *at, const char **json)
{
	const char *name;

	while ((name = timeline__meta_key(tr->t, (*at)++))) {
		*json = kprof_capture_meta(tr->t, name);
		if (is_on_top(name, *json))
			return name + strlen(TRACE_META_PREFIX);
	}
	return NULL;
}

/* Writes the rest of the capture's metadata, including the programs' own keys. */
static void other_meta(struct trace *tr, struct jsonw *w)
{
	const char *name, *between = "\n    ";

	jsonw__text(w, ",\n    \"meta\": {");
	for (size_t i = 0; (name = timeline__meta_key(tr->t, i)); i++) {
		const char *json = kprof_capture_meta(tr->t, name);

		if (is_placed(name) || !strncmp(name, "device.", 7) || is_on_top(name, json))
			continue;
		jsonw__text(w, between);
		between = ",\n    ";
		key(w, name);
		jsonw__json(w, json);
	}
	jsonw__text(w, "}");
}

/* Writes how the devices' activities were linked to calls, if there are any. */
static void correlation(struct trace *tr, struct jsonw *w)
{
	const struct corr_counts *n = correlate__counts(tr->corr);
	const struct {
		const char *name;
		uint64_t value;
	} counts[] = {
		{"activities", n->activities},
		{"linked", n->linked},
		{"without_call", n->without_call},
		{"without_op", n->without_op},
		{"before_launch", n->before_launch},
		{"before_launch_max_ns", n->before_launch_max_ns},
		{"no_lane", n->no_lane},
		{"calls", n->calls},
		{"calls_matched", n->calls_matched},
		{"calls_drawn", n->calls_drawn},
		{"calls_crossing", n->calls_crossing},
		{"lost_attributes", timeline__lost_attrs(tr->t)},
	};

	if (!correlate__any(tr->corr))
		return;
	jsonw__text(w, ",\n    \"correlation\": {");
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		jsonw__text(w, i ? ", " : "");
		number(w, counts[i].name, counts[i].value);
	}
	jsonw__text(w, "}");
}

void trace__account(struct trace *tr, struct jsonw *w)
{
	const struct kprof_capture_info *info = kprof_capture_info(tr->t);
	uint64_t exact, ended;

	jsonw__text(w, "{");
	meta(tr, w, "version", ", ");
	meta(tr, w, "kernel", ", ");
	meta(tr, w, "command", ", ");
	jsonw__text(w, info->complete ? "\"complete\": true, " : "\"complete\": false, ");
	number(w, "lost_bytes", info->lost_bytes);
	jsonw__text(w, ",\n    ");
	sources(tr, w, &exact, &ended);
	exact_end_share(w, exact, ended);
	gaps(tr, w);
	meta(tr, w, "overhead", ",\n    ");
	clock_info(tr, w);
	range(tr, w);
	correlation(tr, w);
	other_meta(tr, w);
	jsonw__text(w, "}");
}
