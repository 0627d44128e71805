// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/marks.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof/mark.h"
#include "util/error.h"
#include "util/util.h"

_Static_assert(KPROF_MARK_TEXTS == KPROF_WIRE_MARK_TEXTS, "mark: texts");
_Static_assert(KPROF_MARK_VALUES == KPROF_WIRE_MARK_VALUES, "mark: values");

#define CATEGORY_RANGE "user_annotation"
#define CATEGORY_INSTANT "cpu_instant_event"
#define MAX_NAMES 131072
/* More microseconds since boot than 30 years: since 1970. */
#define MIN_REAL_US 1000000000000000ull

struct hit {
	struct kprof_session *s;
	struct thread *th;
	const struct kprof_wire_mark *m;
	char text[KPROF_MARK_TEXTS][KPROF_MARK_TEXT_MAX + 1]; /* "": none, or unreadable */
};

/* ---- texts, names --------------------------------------------------------------------------- */

/* The page was not resident when the mark ran: it may be by now. */
static void read_late(struct hit *h, int i)
{
	if (target__read_string(h->th->target, h->m->text_addr[i], h->text[i],
				sizeof(h->text[i]))) {
		h->text[i][0] = '\0';
		h->s->marks.unreadable++;
	}
}

static void read_texts(struct hit *h)
{
	const struct kprof_wire_mark *m = h->m;

	for (uint32_t i = 0; i < KPROF_MARK_TEXTS; i++) {
		size_t bytes = m->text_bytes[i];

		h->text[i][0] = '\0';
		if (!m->text_addr[i])
			continue;
		if (!bytes) {
			read_late(h, (int)i);
			continue;
		}
		if (bytes > m->room || sizeof(*m) + (uint64_t)(i + 1) * m->room > m->h.size)
			continue;
		memcpy(h->text[i], m->text + (size_t)i * m->room, bytes);
		h->text[i][bytes - 1] = '\0';
		h->s->marks.cut += bytes == m->room && m->room > KPROF_WIRE_TEXT_SHORT;
	}
}

static uint32_t string(struct kprof_session *s, const char *text)
{
	return store_writer__string(s->store, text, strlen(text));
}

static int new_what(struct kprof_session *s, uint32_t name, const char *category, bool unnamed,
		    uint32_t *out)
{
	struct store_record r = {.type = STORE_WHAT};
	int err;

	r.what.id = s->nr_whats + 1;
	r.what.name = name;
	r.what.category = string(s, category);
	r.what.source = s->marks.source;
	r.what.flags = unnamed ? KPROF_EVENT_UNNAMED : 0;
	err = store_writer__put(s->store, &r);
	if (!err)
		*out = ++s->nr_whats;
	return err;
}

/* 0 in *out: not wanted. Remembered by the name's string and the category: what + 1. */
static int what_of(struct kprof_session *s, const char *name, const char *category, uint32_t *out)
{
	bool unnamed = !name[0];
	const char *shown = unnamed ? "(unnamed annotation)" : name;
	uint32_t id = string(s, shown);
	uint64_t *known;
	int err = 0;

	if (s->marks.whats.used >
	    MAX_NAMES) /* names made anew for ever: they get a second number */
		map64__free(&s->marks.whats);
	known = map64__at(&s->marks.whats, (uint64_t)id << 1 | !strcmp(category, CATEGORY_RANGE));
	if (!known)
		return -ENOMEM;
	*out = 0;
	if (*known) {
		*out = (uint32_t)(*known - 1);
		return 0;
	}
	if (plan_filter_accepts(&s->filter, category, shown))
		err = new_what(s, id, category, unnamed, out);
	if (!err)
		*known = (uint64_t)*out + 1;
	return err;
}

static struct store_attr attr(struct kprof_session *s, const char *key, enum store_attr_type type,
			      uint64_t value)
{
	return (struct store_attr){string(s, key), type, value};
}

static struct store_attr text_attr(struct kprof_session *s, const char *key, const char *text)
{
	return attr(s, key, STORE_ATTR_STRING, string(s, text));
}

/* ---- what they become ----------------------------------------------------------------------- */

static bool of_type(const struct kprof_session *s, enum kprof_activity type)
{
	return !s->opts.types || s->opts.types & 1ull << type;
}

static bool in_window(const struct hit *h)
{
	return h->s->started && h->m->h.time_ns >= h->s->start_ns;
}

static int put_args(struct kprof_session *s, uint64_t span, const struct store_attr *attrs,
		    uint32_t nr)
{
	struct store_record r = {
		.type = STORE_ARGS, .args.span = span, .attrs = attrs, .nr_attrs = nr};

	return store_writer__put(s->store, &r);
}

static int range_begin(struct hit *h, const char *name)
{
	struct kprof_session *s = h->s;
	uint32_t what = 0;
	int err = of_type(s, KPROF_ACTIVITY_USER_ANNOTATION)
			  ? what_of(s, name, CATEGORY_RANGE, &what)
			  : 0;

	return err ? err
		   : spans__range_begin(s->spans, h->th->spans, h->m->h.time_ns, h->m->h.sp, what,
					s->marks.source);
}

static int range_end(struct hit *h)
{
	h->s->sources[h->s->marks.source].range_ends++;
	return spans__range_end(h->s->spans, h->th->spans, h->m->h.time_ns, h->m->h.sp,
				h->s->marks.source);
}

static int instant(struct hit *h, const char *name, const struct store_attr *attrs, uint32_t nr)
{
	struct store_record r = {.type = STORE_INSTANT, .attrs = attrs, .nr_attrs = nr};
	int err;

	if (!in_window(h) || !of_type(h->s, KPROF_ACTIVITY_CPU_INSTANT_EVENT))
		return 0;
	err = what_of(h->s, name, CATEGORY_INSTANT, &r.instant.what);
	if (err || !r.instant.what)
		return err;
	r.instant.time_ns = h->m->h.time_ns;
	r.instant.thread = h->th->index;
	h->s->events++;
	return store_writer__put(h->s->store, &r);
}

/* The one before it on this thread ends, if it was seen to begin. */
static int step_end(struct hit *h)
{
	uint64_t *open = map64__at(&h->s->marks.steps, h->th->pid_tgid);

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

	if (err)
		return err;
	snprintf(name, sizeof(name), "ProfilerStep#%" PRIu64, h->m->value[0]);
	*map64__at(&h->s->marks.steps, h->th->pid_tgid) = 1; /* it is there: step_end() has asked */
	return range_begin(h, name);
}

static uint64_t mono_ns(uint64_t us)
{
	uint64_t mono, real;

	if (us < MIN_REAL_US)
		return us * 1000;
	clock_pair(&mono, &real);
	return us * 1000 - (real - mono);
}

/* On the thread that told of it: an activity that no device did, whose stream is the thread's index. */
static int backend_event(struct hit *h)
{
	struct kprof_session *s = h->s;
	const struct store_attr attrs[] = {
		text_attr(s, "Backend", h->text[1]),
		attr(s, "Debug handle", STORE_ATTR_I64, h->m->value[2]),
	};
	struct store_record r = {
		.type = STORE_ACTIVITY,
		.activity = {.pid = h->th->target->pid,
			     .type = KPROF_ACTIVITY_CPU_OP,
			     .name = string(s, h->text[0]),
			     .device = UINT32_MAX,
			     .stream = h->th->index},
		.attrs = attrs,
		.nr_attrs = ARRAY_SIZE(attrs),
	};

	/* Nothing in a trace can be before 1970, or last for centuries: numbers of the program's. */
	if (h->m->value[0] > h->m->value[1] || h->m->value[1] > INT64_MAX / 1000) {
		s->marks.senseless++;
		return 0;
	}
	r.activity.start_ns = mono_ns(h->m->value[0]);
	r.activity.end_ns = mono_ns(h->m->value[1]);
	if (!in_window(h) || !of_type(s, KPROF_ACTIVITY_CPU_OP) || r.activity.end_ns > INT64_MAX ||
	    r.activity.start_ns > r.activity.end_ns || r.activity.end_ns < s->start_ns)
		return 0;
	s->events++;
	return store_writer__put(s->store, &r);
}

static int backend_memory(struct hit *h)
{
	const uint64_t *v = h->m->value;
	const struct store_attr attrs[] = {
		attr(h->s, "Device Type", STORE_ATTR_I64, v[4]),
		attr(h->s, "Device Id", STORE_ATTR_I64, v[5]),
		attr(h->s, "Addr", STORE_ATTR_U64, v[0]),
		attr(h->s, "Bytes", STORE_ATTR_I64, v[1]),
		attr(h->s, "Total Allocated", STORE_ATTR_U64, v[2]),
		attr(h->s, "Total Reserved", STORE_ATTR_U64, v[3]),
	};

	return instant(h, "[memory]", attrs, ARRAY_SIZE(attrs));
}

/* A range, so that what a device does for it hangs below it. */
static int correlation_push(struct hit *h)
{
	bool user = h->m->value[1] == 1;
	const struct store_attr a =
		attr(h->s, user ? "User correlation id" : "Operator correlation id", STORE_ATTR_U64,
		     h->m->value[0]);
	uint64_t span;
	int err = range_begin(h, user ? "user correlation" : "correlation");

	if (err)
		return err;
	span = spans__number(h->th->spans);
	return span ? put_args(h->s, span, &a, 1) : 0;
}

/* What claims to be JSON and is not is kept as a text. NULL: no memory; freed by the caller. */
static char *json_of(struct hit *h, const char *value)
{
	cJSON *json;
	char *text;

	if (h->m->mark == KPROF_MARK_METADATA_JSON) {
		json = cJSON_ParseWithOpts(value, NULL, 1);
		cJSON_Delete(json);
		if (json) /* as it was written: numbers in it may be longer than a double */
			return strdup(value);
		if (!h->s->marks.bad_json++)
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
	int err = key && json ? session__meta(h->s, key, json) : -ENOMEM;

	free(key);
	free(json);
	return err;
}

static int activity_metadata(struct hit *h)
{
	uint64_t span = spans__number(h->th->spans);
	struct store_attr a;

	if (h->m->mark == KPROF_MARK_METADATA_JSON) {
		char *json = json_of(h, h->text[1]);

		if (!json)
			return -ENOMEM;
		a = attr(h->s, h->text[0], STORE_ATTR_JSON, string(h->s, json));
		free(json);
	} else {
		a = text_attr(h->s, h->text[0], h->text[1]);
	}
	/* Nothing is open that it could be of: it stands by itself. */
	return span ? put_args(h->s, span, &a, 1) : instant(h, "metadata", &a, 1);
}

static int metadata(struct hit *h)
{
	if (!h->text[0][0]) { /* no key */
		h->s->marks.senseless++;
		return 0;
	}
	return h->m->value[0] == 1 ? activity_metadata(h) : trace_metadata(h);
}

static int invariant(struct hit *h)
{
	static const char *const keys[] = {"assertion", "error", "profile id", "group id"};
	struct store_attr attrs[ARRAY_SIZE(keys)];
	uint32_t nr = 0;

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (h->text[i][0])
			attrs[nr++] = text_attr(h->s, keys[i], h->text[i]);
	return instant(h, "invariant violation", attrs, nr);
}

static int thread_info(struct hit *h)
{
	h->th->told_name = string(h->s, h->text[0]);
	return session__thread_record(h->s, h->th, 0);
}

int marks__event(struct kprof_session *s, struct thread *th, const struct kprof_wire_mark *m)
{
	struct hit h; /* its texts are filled in, where there are some */

	if (m->version != KPROF_MARK_VERSION) {
		s->marks.senseless++;
		return 0;
	}
	h.s = s;
	h.th = th;
	h.m = m;
	read_texts(&h);
	switch ((enum kprof_mark_kind)m->mark) {
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
	s->marks.senseless++; /* of a newer mark.h */
	return 0;
}

int marks__account(struct kprof_session *s)
{
	const struct session_marks *m = &s->marks;
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
	return session__meta(s, "annotations", json);
}

void marks__free(struct kprof_session *s)
{
	map64__free(&s->marks.whats);
	map64__free(&s->marks.steps);
}
