// SPDX-License-Identifier: BSD-2-Clause
/* Writes what precedes the events of a Chrome trace: Kineto's keys, then kprof's own. */
#include "sink/chrome/impl.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "util/util.h"

static void device_versions(struct chrome *c)
{
	static const char *const names[] = {"cupti_version", "cuda_runtime_version",
					    "cuda_driver_version"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *json = kprof_capture_meta(c->t, names[i]);

		if (!json)
			continue;
		jsonw__text_string(&c->w, "  ", names[i]);
		jsonw__text(&c->w, ": ");
		jsonw__json(&c->w, json);
		jsonw__text(&c->w, ",\n");
	}
}

/* Kineto writes a random id; here, exporting the same capture twice gives the same file. */
static void trace_id(struct chrome *c)
{
	const struct kprof_capture_info *info = kprof_capture_info(c->t);
	const char *json = kprof_capture_meta(c->t, "trace_id"),
		   *host = kprof_capture_meta(c->t, "host");
	uint64_t a = hash64(info->start_real_ns), b;
	char text[40];

	jsonw__text(&c->w, "  \"trace_id\": ");
	if (json) {
		jsonw__json(&c->w, json);
	} else {
		for (; host && *host; host++)
			a = hash64(a ^ (uint8_t)*host);
		b = hash64(a ^ info->start_mono_ns);
		snprintf(text, sizeof(text), "%016" PRIX64 "%016" PRIX64, a, b);
		jsonw__string(&c->w, text);
	}
	jsonw__text(&c->w, ",\n");
}

/* What whoever recorded gave the trace. */
static void given_metadata(struct chrome *c)
{
	const char *key, *json;
	size_t at = 0;

	while ((key = trace__metadata(&c->tr, &at, &json))) {
		jsonw__text_string(&c->w, "  ", key);
		jsonw__text(&c->w, ": ");
		jsonw__text(&c->w, json);
		jsonw__text(&c->w, ",\n");
	}
}

/* Whether any operator's inputs were recorded: they may have been refused. */
static bool has_inputs(struct chrome *c)
{
	cJSON *inputs = timeline__meta_json(c->t, "inputs");
	const cJSON *calls = cJSON_GetObjectItemCaseSensitive(inputs, "calls");
	bool any = cJSON_IsNumber(calls) && calls->valuedouble > 0;

	cJSON_Delete(inputs);
	return any;
}

int chrome_head(struct chrome *c, const char *path)
{
	const char *name = strrchr(path, '/'), *host = kprof_capture_meta(c->t, "host");
	struct jsonw *w = &c->w;
	int err;

	jsonw__text(w, "{\n  \"schemaVersion\": 1,\n");
	jsonw__text(w, "  \"deviceProperties\": ");
	err = trace__device_properties(&c->tr, w);
	if (err)
		return err;
	jsonw__text(w, ",\n  \"distributedInfo\": ");
	err = trace__distributed(&c->tr, w);
	if (err)
		return err;
	jsonw__text(w, ",\n");
	device_versions(c);
	jsonw__text(w, "  \"host_name\": ");
	jsonw__json(w, host ? host : "\"\"");
	jsonw__text(w, ",\n");
	trace_id(c);
	/*
	 * Of Kineto's switches those that kprof has. As there, one that is off is not written.
	 */
	if (has_inputs(c)) {
		jsonw__text(w, "  \"record_shapes\": 1,\n");
		if (kprof_capture_meta(c->t, "with_flops"))
			jsonw__text(w, "  \"with_flops\": 1,\n");
	}
	if (timeline__has_memory(c->t))
		jsonw__text(w, "  \"profile_memory\": 1,\n");
	if (chrome_with_stack(c))
		jsonw__text(w, "  \"with_stack\": 1,\n");
	if (timeline__has_modules(c->t))
		jsonw__text(w, "  \"with_modules\": 1,\n");
	jsonw__text(w, "  \"displayTimeUnit\": \"ms\",\n");
	jsonw__text_u64(w, "  \"baseTimeNanoseconds\": ", c->tr.base_real_ns);
	jsonw__text_string(w, ",\n  \"traceName\": ", name ? name + 1 : path);
	jsonw__text(w, ",\n");
	given_metadata(c);
	jsonw__text(w, "  \"kprof\": ");
	trace__account(&c->tr, w);
	jsonw__text(w, ",\n  \"traceEvents\": [\n");
	return w->err;
}
