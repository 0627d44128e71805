// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/marks.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/steps.h"
#include "capture/process/process.h"
#include "kprof/activity.h"
#include "kprof/mark.h"
#include "util/error.h"
#include "util/map64.h"
#include "util/util.h"

_Static_assert(KPROF_MARK_TEXTS == KPROF_WIRE_MARK_TEXTS, "mark: texts");
_Static_assert(KPROF_MARK_VALUES == KPROF_WIRE_MARK_VALUES, "mark: values");

#define CATEGORY_RANGE "user_annotation"
#define CATEGORY_INSTANT "cpu_instant_event"
#define MAX_NAMES 131072
/* A time of at least this many microseconds (31 years) is since 1970, a smaller one since boot. */
#define MIN_REAL_US 1000000000000000ull

struct marks {
	struct recorder *recorder;
	struct spans *spans;
	const struct plan_filter *filter;
	/* string id of the name and category → event description + 1; 1: filtered out */
	struct map64 names;
	struct map64 steps; /* PID << 32 | TID → 1 while a step is open on this thread */
	uint64_t unreadable, cut, bad_json, senseless;
	struct steps *steps_told; /* NULL: nobody asks which events are steps */
};

struct hit {
	struct marks *m;
	struct thread *th;
	const struct kprof_wire_mark *e;
	uint32_t source;
	char text[KPROF_MARK_TEXTS][KPROF_MARK_TEXT_MAX + 1]; /* "": none, or unreadable */
};

int marks__new(struct recorder *recorder, struct spans *spans, const struct plan_filter *filter,
	       struct marks **out)
{
	struct marks *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->recorder = recorder;
	m->spans = spans;
	m->filter = filter;
	*out = m;
	return 0;
}

void marks__free(struct marks *m)
{
	if (!m)
		return;
	map64__free(&m->names);
	map64__free(&m->steps);
	free(m);
}

void marks__tell(struct marks *m, struct steps *steps)
{
	m->steps_told = steps;
}

/* ---- texts, names ---- */

/* The text's page was not resident when the mark ran, so BPF could not read it: tries again now. */
static void read_late(struct hit *h, int i)
{
	if (target__read_string(h->th->target, h->e->text_addr[i], h->text[i],
				sizeof(h->text[i]))) {
		h->text[i][0] = '\0';
		h->m->unreadable++;
	}
}

static void read_texts(struct hit *h)
{
	const struct kprof_wire_mark *m = h->e;

	for (uint32_t i = 0; i < KPROF_MARK_TEXTS; i++) {
		size_t bytes = m->text_bytes[i];

		h->text[i][0] = '\0';
		if (!m->text_addr[i])
			continue;
		if (!bytes) {
			read_late(h, (int)i);
			continue;
		}
		memcpy(h->text[i], m->text + (size_t)i * m->room, bytes);
		h->m->cut += bytes == m->room && m->room > KPROF_WIRE_TEXT_SHORT;
	}
}

/*
 * *out: the event description, or 0 when the filter rejects the name. Remembered by the string id
 * of the name and the category.
 */
static int describe(struct hit *h, const char *name, const char *category, uint32_t *out)
{
	struct marks *m = h->m;
	bool unnamed = !name[0];
	const char *shown = unnamed ? "(unnamed annotation)" : name;
	struct store_record r = {
		.type = STORE_DESCRIPTION,
		.description = {.name = recorder__string(m->recorder, shown),
				.source = h->source,
				.flags = unnamed ? KPROF_EVENT_UNNAMED : 0},
	};
	uint64_t *known;
	int err = 0;

	/* the program invents new names without end: forgotten names get a second description */
	if (m->names.used > MAX_NAMES)
		map64__free(&m->names);
	known = map64__at(&m->names,
			  (uint64_t)r.description.name << 1 | !strcmp(category, CATEGORY_RANGE));
	if (!known)
		return -ENOMEM;
	*out = 0;
	if (*known) {
		*out = (uint32_t)(*known - 1);
		return 0;
	}
	if (plan_filter_accepts(m->filter, category, shown)) {
		r.description.category = recorder__string(m->recorder, category);
		err = recorder__describe(m->recorder, &r, out);
		if (!err && m->steps_told)
			err = steps__described(m->steps_told, *out, category, shown);
	}
	if (!err)
		*known = (uint64_t)*out + 1;
	return err;
}

static struct store_attr attr(struct hit *h, const char *key, enum store_attr_type type,
			      uint64_t value)
{
	return (struct store_attr){recorder__string(h->m->recorder, key), type, value};
}

static struct store_attr text_attr(struct hit *h, const char *key, const char *text)
{
	return attr(h, key, STORE_ATTR_STRING, recorder__string(h->m->recorder, text));
}

/* ---- from marks to records ---- */

static bool of_type(const struct hit *h, enum kprof_activity type)
{
	return !h->m->filter->types || h->m->filter->types & 1ull << type;
}

static bool in_window(const struct hit *h)
{
	return recorder__in_window(h->m->recorder, h->e->h.time_ns);
}

static int range_begin(struct hit *h, const char *name)
{
	uint32_t description = 0;
	int err = of_type(h, KPROF_ACTIVITY_USER_ANNOTATION)
			  ? describe(h, name, CATEGORY_RANGE, &description)
			  : 0;

	return err ? err
		   : spans__range_begin(h->m->spans, h->th->spans, h->e->h.time_ns, h->e->h.sp,
					description, h->source);
}

static int range_end(struct hit *h)
{
	recorder__source_at(h->m->recorder, h->source)->range_ends++;
	return spans__range_end(h->m->spans, h->th->spans, h->e->h.time_ns, h->e->h.sp, h->source);
}

static int instant(struct hit *h, const char *name, const struct store_attr *attrs, uint32_t nr)
{
	struct store_record r = {.type = STORE_INSTANT, .attrs = attrs, .nr_attrs = nr};
	int err;

	if (!in_window(h) || !of_type(h, KPROF_ACTIVITY_CPU_INSTANT_EVENT))
		return 0;
	err = describe(h, name, CATEGORY_INSTANT, &r.instant.description);
	if (err || !r.instant.description)
		return err;
	r.instant.time_ns = h->e->h.time_ns;
	r.instant.thread = h->th->index;
	return recorder__event(h->m->recorder, &r);
}

/* Ends the thread's open step, if its begin was seen. */
static int step_end(struct hit *h)
{
	uint64_t *open = map64__at(&h->m->steps, h->th->pid_tgid);

	if (!open)
		return -ENOMEM;
	if (!*open)
		return 0;
	*open = 0;
	return range_end(h);
}

static int step(struct hit *h)
{
	char name[48];
	int err = step_end(h);

	if (err || recorder__is_over(h->m->recorder, h->e->h.time_ns))
		return err; /* that was the last step to be recorded */
	snprintf(name, sizeof(name), "ProfilerStep#%" PRIu64, h->e->value[0]);
	*map64__at(&h->m->steps, h->th->pid_tgid) = 1; /* not NULL: step_end() created the entry */
	return range_begin(h, name);
}

static uint64_t mono_ns(struct target *t, uint64_t us)
{
	uint64_t mono, real;

	if (us < MIN_REAL_US) {
		if (!t->shift_known)
			t->clock_shift_ns = proc_clock_shift((pid_t)t->pid);
		t->shift_known = true;
		return us * 1000 - (uint64_t)t->clock_shift_ns;
	}
	clock_pair(&mono, &real);
	return us * 1000 - (real - mono);
}

/*
 * Recorded as an activity without a device, whose stream is the index of the thread that reported
 * it.
 */
static int backend_event(struct hit *h)
{
	const struct record_window *window = recorder__window(h->m->recorder);
	const struct store_attr attrs[] = {
		text_attr(h, "Backend", h->text[1]),
		attr(h, "Debug handle", STORE_ATTR_I64, h->e->value[2]),
	};
	struct store_record r = {
		.type = STORE_ACTIVITY,
		.activity = {.pid = h->th->target->pid,
			     .type = KPROF_ACTIVITY_CPU_OP,
			     .name = recorder__string(h->m->recorder, h->text[0]),
			     .device = UINT32_MAX,
			     .stream = h->th->index},
		.attrs = attrs,
		.nr_attrs = ARRAY_SIZE(attrs),
	};

	/*
	 * Such times come from a mistake in the program: no event ends before it starts or lasts
	 * for centuries.
	 */
	if (h->e->value[0] > h->e->value[1] || h->e->value[1] > INT64_MAX / 1000) {
		h->m->senseless++;
		return 0;
	}
	r.activity.start_ns = mono_ns(h->th->target, h->e->value[0]);
	r.activity.end_ns = mono_ns(h->th->target, h->e->value[1]);
	if (!in_window(h) || !of_type(h, KPROF_ACTIVITY_CPU_OP) || r.activity.end_ns > INT64_MAX ||
	    r.activity.start_ns > r.activity.end_ns || r.activity.end_ns < window->start_ns)
		return 0;
	return recorder__event(h->m->recorder, &r);
}

static int backend_memory(struct hit *h)
{
	const uint64_t *v = h->e->value;
	const struct store_attr attrs[] = {
		attr(h, "Device Type", STORE_ATTR_I64, v[4]),
		attr(h, "Device Id", STORE_ATTR_I64, v[5]),
		attr(h, "Addr", STORE_ATTR_U64, v[0]),
		attr(h, "Bytes", STORE_ATTR_I64, v[1]),
		attr(h, "Total Allocated", STORE_ATTR_U64, v[2]),
		attr(h, "Total Reserved", STORE_ATTR_U64, v[3]),
	};

	return instant(h, "[memory]", attrs, ARRAY_SIZE(attrs));
}

/* Begun as a range, so that device activities correlated with it are shown below it. */
static int correlation_push(struct hit *h)
{
	bool user = h->e->value[1] == 1;
	const struct store_attr a =
		attr(h, user ? "User correlation id" : "Operator correlation id", STORE_ATTR_U64,
		     h->e->value[0]);
	uint64_t span;
	int err = range_begin(h, user ? "user correlation" : "correlation");

	if (err)
		return err;
	span = spans__number(h->th->spans);
	return span ? recorder__attrs(h->m->recorder, span, &a, 1) : 0;
}

/*
 * The value as JSON, malloc'ed. What is passed as JSON but is not valid becomes a JSON string.
 * NULL: no memory.
 */
static char *json_of(struct hit *h, const char *value)
{
	cJSON *json;
	char *text;

	if (h->e->mark == KPROF_MARK_METADATA_JSON) {
		json = cJSON_ParseWithOpts(value, NULL, 1);
		cJSON_Delete(json);
		/* the original text: its numbers may have more digits than a double holds */
		if (json)
			return strdup(value);
		if (!h->m->bad_json++)
			log_warn(
				"see KPROF_METADATA_JSON in kprof/mark.h",
				"metadata of process %u is not valid JSON and is kept as a text: %.64s",
				h->th->target->pid, value);
	}
	json = cJSON_CreateString(value);
	text = json ? cJSON_PrintUnformatted(json) : NULL;
	cJSON_Delete(json);
	return text;
}

static int trace_metadata(struct hit *h)
{
	char *key = xasprintf("user.%s", h->text[0]), *json = json_of(h, h->text[1]);
	int err = key && json ? recorder__meta(h->m->recorder, key, json) : -ENOMEM;

	free(key);
	free(json);
	return err;
}

static int activity_metadata(struct hit *h)
{
	uint64_t span = spans__number(h->th->spans);
	struct store_attr a;

	if (h->e->mark == KPROF_MARK_METADATA_JSON) {
		char *json = json_of(h, h->text[1]);

		if (!json)
			return -ENOMEM;
		a = attr(h, h->text[0], STORE_ATTR_JSON, recorder__string(h->m->recorder, json));
		free(json);
	} else {
		a = text_attr(h, h->text[0], h->text[1]);
	}
	/* When no span is open that it could belong to, it is recorded as an instant of its own. */
	return span ? recorder__attrs(h->m->recorder, span, &a, 1) : instant(h, "metadata", &a, 1);
}

static int metadata(struct hit *h)
{
	if (!h->text[0][0]) { /* no key */
		h->m->senseless++;
		return 0;
	}
	return h->e->value[0] == 1 ? activity_metadata(h) : trace_metadata(h);
}

static int invariant(struct hit *h)
{
	static const char *const keys[] = {"assertion", "error", "profile id", "group id"};
	struct store_attr attrs[ARRAY_SIZE(keys)];
	uint32_t nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (h->text[i][0])
			attrs[nr++] = text_attr(h, keys[i], h->text[i]);
	return instant(h, "invariant violation", attrs, nr);
}

static int thread_info(struct hit *h)
{
	h->th->given_name = recorder__string(h->m->recorder, h->text[0]);
	return 1;
}

int marks__event(struct marks *m, struct thread *th, const struct kprof_wire_mark *e,
		 uint32_t source)
{
	struct hit h; /* the texts are large: read_texts() fills in only those that exist */

	if (e->version != KPROF_MARK_VERSION) {
		m->senseless++;
		return 0;
	}
	h.m = m;
	h.th = th;
	h.e = e;
	h.source = source;
	read_texts(&h);
	switch ((enum kprof_mark_kind)e->mark) {
	case KPROF_MARK_RANGE_PUSH:
		return range_begin(&h, h.text[0]);
	case KPROF_MARK_RANGE_POP:
	case KPROF_MARK_CORRELATION_POP:
		return range_end(&h);
	case KPROF_MARK_MARK:
		return instant(&h, h.text[0], NULL, 0);
	case KPROF_MARK_STEP:
		return step(&h);
	case KPROF_MARK_STEP_END:
		return step_end(&h);
	case KPROF_MARK_THREAD_INFO:
		return thread_info(&h);
	case KPROF_MARK_BACKEND_EVENT:
		return backend_event(&h);
	case KPROF_MARK_BACKEND_MEMORY:
		return backend_memory(&h);
	case KPROF_MARK_CORRELATION_PUSH:
		return correlation_push(&h);
	case KPROF_MARK_METADATA:
	case KPROF_MARK_METADATA_JSON:
		return metadata(&h);
	case KPROF_MARK_INVARIANT:
		return invariant(&h);
	}
	m->senseless++; /* a kind from a newer mark.h */
	return 0;
}

int marks__account(struct marks *m)
{
	char json[256];

	if (!(m->unreadable | m->cut | m->bad_json | m->senseless))
		return 0;
	if (m->unreadable)
		log_warn(NULL, "%" PRIu64 " text%s of annotations could not be read any more",
			 m->unreadable, m->unreadable == 1 ? "" : "s");
	snprintf(json, sizeof(json),
		 "{\"unreadable texts\":%" PRIu64 ",\"texts cut\":%" PRIu64
		 ",\"invalid JSON\":%" PRIu64 ",\"not understood\":%" PRIu64 "}",
		 m->unreadable, m->cut, m->bad_json, m->senseless);
	return recorder__meta(m->recorder, "annotations", json);
}
