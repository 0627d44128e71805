// SPDX-License-Identifier: BSD-2-Clause
/* Counters: which ones a capture has, and what a span has of each. */
#include "model/timeline/impl.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/counters.h"
#include "store/store.h"

#define MAX_NAME_BYTES 64

static bool is_name(const struct kprof_capture *t, const char *text)
{
	if (!text || !*text || strlen(text) >= MAX_NAME_BYTES)
		return false;
	for (uint32_t i = 0; i < t->nr_counters; i++)
		if (!strcmp(t->counters[i], text))
			return false;
	return true;
}

void tl_counters__read(struct kprof_capture *t)
{
	const char *json = kprof_capture_meta(t, "counters");
	cJSON *names = json ? cJSON_Parse(json) : NULL;
	const cJSON *item = names && cJSON_IsArray(names) ? names->child : NULL;

	for (; item && t->nr_counters < TL_MAX_COUNTERS; item = item->next) {
		const char *text = cJSON_GetStringValue(item);

		if (!is_name(t, text))
			continue;
		t->counters[t->nr_counters] = strdup(text);
		if (!t->counters[t->nr_counters])
			break; /* no memory: it is as if they were not recorded */
		t->nr_counters++;
	}
	cJSON_Delete(names);
}

void tl_counters__free(struct kprof_capture *t)
{
	for (uint32_t i = 0; i < t->nr_counters; i++)
		free(t->counters[i]);
}

const char *kprof_capture_counter(const struct kprof_capture *c, size_t i)
{
	return i < c->nr_counters ? c->counters[i] : NULL;
}

/* The number of the counter with this name; nr_counters: there is none. */
static uint32_t counter_of(const struct kprof_capture *t, const char *name)
{
	uint32_t i = 0;

	while (i < t->nr_counters && (!name || strcmp(t->counters[i], name) != 0))
		i++;
	return i;
}

uint32_t timeline__counts(const struct kprof_capture *t, const struct tl_span *s,
			  uint64_t values[TL_MAX_COUNTERS])
{
	uint32_t known = 0;

	/* an end that was not seen, or a part of a span, has no number */
	if (s->beyond || s->flags & (KPROF_EVENT_CLOSED | KPROF_EVENT_OPEN_AT_END))
		return 0;
	for (uint32_t k = 0; k < s->nr_attrs && t->nr_counters; k++) {
		const struct store_attr *a = &s->attrs[k];
		uint32_t i;

		if (a->type != STORE_ATTR_COUNT)
			continue;
		i = counter_of(t, tl_string(t, a->key));
		if (i == t->nr_counters)
			continue;
		values[i] = a->value;
		known |= 1u << i;
	}
	return known;
}
