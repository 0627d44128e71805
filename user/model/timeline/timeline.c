// SPDX-License-Identifier: BSD-2-Clause
/* Opens a timeline, answers queries of its tables, and converts between its two clocks. */
#include "model/timeline/impl.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/names/names.h"
#include "util/error.h"
#include "util/order.h"
#include "util/pace.h"

/* Whether the events must be read for facts that this capture's tables lack. */
static bool needs_count(const struct kprof_capture *t)
{
	const struct kprof_source *sources = t->sources.data;
	uint64_t begins = 0;

	if (!t->info.complete)
		return true;
	for (size_t i = 0; i < t->sources.nr; i++)
		begins |= sources[i].begins;
	return t->info.events && !begins;
}

/*
 * The window opens with the first pair of clock readings, which a recording takes before it places
 * probes, and closes at FINISH. Where either is missing, the earliest or latest time in the file
 * replaces it.
 */
static void set_window(struct kprof_capture *t)
{
	const struct clock_reading *clocks = t->clocks.data;
	const struct kprof_capture_info *info = &t->info;

	t->start_ns = t->clocks.nr ? clocks[0].mono_ns : t->first_ns;
	t->end_ns = info->complete ? t->finish_ns : t->last_ns;
	if (t->end_ns < t->start_ns)
		t->end_ns = t->start_ns;
	tl_set_window(t);
}

void tl_set_window(struct kprof_capture *t)
{
	const struct tl_range *r = &t->range;
	struct kprof_capture_info *info = &t->info;

	info->start_mono_ns = r->set ? r->selection.from_mono_ns : t->start_ns;
	info->end_mono_ns = r->set ? r->selection.to_mono_ns : t->end_ns;
	info->start_real_ns = timeline__real_ns(t, info->start_mono_ns);
}

static int fill_info(struct kprof_capture *t)
{
	struct store_reader_info file;
	int err = 0;

	store_reader__info(t->reader, &file);
	t->info = (struct kprof_capture_info){
		.format_major = file.major,
		.format_minor = file.minor,
		.complete = file.complete,
		.lost_bytes = file.lost_bytes,
		.size_bytes = file.size_bytes,
		.events = file.begins,
		.nr_samples = file.samples,
		.nr_processes = t->processes.nr,
		.nr_threads = t->threads.nr,
		.nr_sources = t->sources.nr,
		.nr_gaps = t->gaps.nr,
	};
	if (needs_count(t))
		err = timeline__walk(t, NULL, NULL);
	if (!err)
		set_window(t);
	return err;
}

/* It rests first: that the process began has cost something, too. */
#define READ_AT_ONCE_NS (-3 * (int64_t)NSEC_PER_MSEC)

void kprof_read_at_pace(uint64_t ns_a_second)
{
	static _Thread_local struct pace pace = {.at_once_ns = READ_AT_ONCE_NS};

	atomic_store(&pace.ns_a_second, ns_a_second);
	pace_begin(ns_a_second ? &pace : NULL);
}

int kprof_capture_open(const char *path, struct kprof_capture **out)
{
	struct kprof_capture *t = calloc(1, sizeof(*t));
	int err;

	error_clear();
	demangle_apart();
	if (t)
		t->path = strdup(path);
	if (!t || !t->path) {
		err = error_set(-ENOMEM, NULL, "%s: out of memory", path);
		goto out;
	}
	err = store_reader__open(path, &t->reader);
	if (err)
		goto out;
	err = tl_tables__read(t);
	if (err)
		goto out;
	tl_counters__read(t);
	err = tl_merged__read(t);
	if (err)
		error_set(err, NULL, "%s: out of memory", path);
	else
		err = fill_info(t);
out:
	if (err) {
		kprof_capture_close(t);
		t = NULL;
	}
	*out = t;
	return err;
}

void kprof_capture_close(struct kprof_capture *t)
{
	if (!t)
		return;
	tl_merged__free(t);
	tl_tables__free(t);
	tl_waits__free(t);
	tl_counters__free(t);
	bulk__free(&t->fitted);
	if (t->reader)
		store_reader__close(t->reader);
	free(t->path);
	free(t);
}

const char *timeline__path(const struct kprof_capture *t)
{
	return t->path;
}

const struct kprof_capture_info *kprof_capture_info(const struct kprof_capture *t)
{
	return &t->info;
}

cJSON *timeline__meta_json(const struct kprof_capture *t, const char *key)
{
	const char *json = kprof_capture_meta(t, key);

	return json ? cJSON_Parse(json) : NULL;
}

char *timeline__meta_text(const struct kprof_capture *t, const char *key)
{
	cJSON *value = timeline__meta_json(t, key);
	const char *string = cJSON_GetStringValue(value);
	char *text = string && *string ? strdup(string) : NULL;

	cJSON_Delete(value);
	return text;
}

uint64_t timeline__waits_number(const struct kprof_capture *t, const char *key)
{
	cJSON *waits = timeline__meta_json(t, "waits");
	double ns = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(waits, key));

	cJSON_Delete(waits);
	return ns > 0 && ns < 1e18 ? (uint64_t)ns : 0;
}

const struct tl_thread *timeline__thread(const struct kprof_capture *t, size_t index)
{
	return index < t->threads.nr ? (const struct tl_thread *)t->threads.data + index : NULL;
}

const struct tl_description *timeline__description(const struct kprof_capture *t, size_t i)
{
	return i < t->descriptions.nr ? (const struct tl_description *)t->descriptions.data + i
				      : NULL;
}

const struct kprof_source *kprof_capture_source(const struct kprof_capture *t, size_t i)
{
	return i < t->sources.nr ? (const struct kprof_source *)t->sources.data + i : NULL;
}

const struct kprof_gap *kprof_capture_gap(const struct kprof_capture *t, size_t i)
{
	return i < t->gaps.nr ? (const struct kprof_gap *)t->gaps.data + i : NULL;
}

const char *timeline__string(const struct kprof_capture *t, uint32_t id)
{
	const char *text = tl_string(t, id);

	return text ? text : "";
}

const struct store_attr *timeline__attr(const struct kprof_capture *t,
					const struct store_attr *attrs, uint32_t nr,
					const char *key)
{
	for (uint32_t i = 0; i < nr; i++)
		if (!strcmp(timeline__string(t, attrs[i].key), key))
			return &attrs[i];
	return NULL;
}

size_t timeline__nr_strings(const struct kprof_capture *t)
{
	return t->strings.nr;
}

uint64_t timeline__lost_attrs(const struct kprof_capture *t)
{
	return t->lost_attrs;
}

/*
 * Converts a monotonic time to real time. Between two readings the real-time clock is assumed to
 * run evenly (NTP slews it, and it may be set, even backwards); before the first and after the last
 * reading, at the speed of the monotonic clock. Sums may wrap around, since the readings are
 * numbers from a file.
 */
uint64_t timeline__real_ns(const struct kprof_capture *t, uint64_t mono_ns)
{
	const struct clock_reading *clocks = t->clocks.data, *a, *b;
	/* How many readings were taken at or before mono_ns. */
	size_t until = ORDER_UPTO(clocks, t->clocks.nr, mono_ns, mono_ns);
	unsigned __int128 passed;
	uint64_t span_ns;

	if (!t->clocks.nr)
		return mono_ns;
	a = &clocks[until ? until - 1 : 0];
	if (!until || until == t->clocks.nr)
		return a->real_ns + (mono_ns - a->mono_ns);
	b = a + 1;
	passed = mono_ns - a->mono_ns;
	span_ns = b->mono_ns - a->mono_ns; /* not zero: a's is not after mono_ns, b's is */
	if (b->real_ns >= a->real_ns)
		return a->real_ns + (uint64_t)(passed * (b->real_ns - a->real_ns) / span_ns);
	return a->real_ns - (uint64_t)(passed * (a->real_ns - b->real_ns) / span_ns);
}

bool timeline__is_passing(const struct kprof_capture *t, const struct tl_process *p)
{
	return p->exit_ns && p->start_ns > t->start_ns && kprof_capture_meta(t, "all_processes");
}
