// SPDX-License-Identifier: BSD-2-Clause
/*
 * Spans of the host, streamed. The text that all spans of one description or one thread have is
 * kept, so that writing an event means copying a few texts and formatting five integers. Each event
 * is one line.
 */
#include "sink/chrome/impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

static int make_what(struct fragment *f, const struct tl_description *description)
{
	const char *overload = description->overload;
	size_t cat_len, name_len, overload_len;
	char *cat = jsonw_quote(description->category, strlen(description->category), &cat_len);
	char *name = jsonw_quote(description->name, strlen(description->name), &name_len);
	char *ovl = jsonw_quote(overload, strlen(overload), &overload_len);

	if (cat && name && ovl) {
		f->text = xasprintf("{\"ph\":\"X\",\"cat\":%s,\"name\":%s%s%s", cat, name,
				    *overload ? ",\"Overload\":" : "", *overload ? ovl : "");
		f->head = strlen("{\"ph\":\"X\",\"cat\":,\"name\":") + cat_len + name_len;
		f->tail = f->text ? strlen(f->text) - f->head : 0;
	}
	free(cat);
	free(name);
	free(ovl);
	return f->text ? 0 : error_set(-ENOMEM, NULL, "no memory for the trace's names");
}

#define PUT(p, literal) (memcpy((p), (literal), sizeof(literal) - 1), (p) + sizeof(literal) - 1)

static char *put_bytes(char *p, const char *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

static char *put_flags(char *p, uint32_t flags)
{
	if (flags & KPROF_EVENT_CLOSED)
		p = PUT(p, ",\"end\":\"closed\"");
	if (flags & KPROF_EVENT_OPEN_AT_END)
		p = PUT(p, ",\"finished\":false");
	if (flags & KPROF_EVENT_OPEN_AT_START)
		p = PUT(p, ",\"started\":false");
	if (flags & KPROF_EVENT_UNNAMED)
		p = PUT(p, ",\"unnamed\":true");
	return p;
}

/* Bytes for an event's fixed texts and numbers, without its names. */
#define EVENT_BYTES 320

/* Writes an event whose names do not fit into the buffer at once. */
static void put_huge_span(struct jsonw *w, const struct fragment *description,
			  const struct fragment *thread, const char *numbers, size_t numbers_len,
			  const char *end, size_t end_len)
{
	jsonw__text(w, ",\n");
	jsonw__raw(w, description->text, description->head);
	jsonw__raw(w, thread->text, thread->head);
	jsonw__raw(w, numbers, numbers_len);
	jsonw__raw(w, description->text + description->head, description->tail);
	jsonw__raw(w, end, end_len);
}

static char *put_times(char *p, const struct tl_span *s, int64_t start_ns)
{
	p = jsonw_put_us(p, start_ns);
	p = PUT(p, ",\"dur\":");
	p = jsonw_put_us(p, (int64_t)(s->end_ns - s->start_ns));
	return PUT(p, ",\"args\":{");
}

static char *put_numbers(char *p, const struct tl_span *s, int64_t start_ns)
{
	p = put_times(p, s, start_ns);
	p = PUT(p, "\"External id\":");
	p = jsonw_put_u64(p, s->id);
	p = PUT(p, ",\"Ev Idx\":");
	return jsonw_put_u64(p, s->id - 1);
}

/* Writes the event except for its closing `}}`: attributes may follow. */
static void put_span(struct chrome *c, const struct tl_span *s, const struct fragment *description,
		     const struct fragment *thread)
{
	int64_t start_ns = chrome_time(c, s->start_ns);
	struct jsonw *w = &c->w;
	size_t names = description->head + description->tail + thread->head;
	char numbers[EVENT_BYTES], end[EVENT_BYTES], *p;

	if (names > JSONW_BUFFER_BYTES - EVENT_BYTES) {
		put_huge_span(w, description, thread, numbers,
			      (size_t)(put_numbers(numbers, s, start_ns) - numbers), end,
			      (size_t)(put_flags(end, s->flags) - end));
		return;
	}
	p = PUT(jsonw__reserve(w, names + EVENT_BYTES), ",\n");
	p = put_bytes(p, description->text, description->head);
	p = put_bytes(p, thread->text, thread->head);
	p = put_numbers(p, s, start_ns);
	p = put_bytes(p, description->text + description->head, description->tail);
	w->pos = s->flags ? put_flags(p, s->flags) : p;
}

/* ---- calls of a device's runtime ---- */

#define UNKNOWN_RESULT ",\"result\":\"unknown\""

static const struct corr_call *primary_of(const struct chrome *c, const uint32_t *calls, size_t nr)
{
	for (size_t i = 0; i < nr; i++) {
		const struct corr_call *call = correlate__call(c->corr, calls[i]);

		if (call->flags & CORR_CALL_PRIMARY)
			return call;
	}
	return NULL;
}

/* Writes what the span's attributes do not say of its result. */
static void put_result(struct chrome *c, struct args *args, const struct tl_span *s,
		       const uint32_t *calls, size_t nr)
{
	const struct corr_call *record;

	switch (correlate__result(c->corr, s, calls, nr, &record)) {
	case CORR_RESULT_UNKNOWN:
		args_raw(args, UNKNOWN_RESULT, strlen(UNKNOWN_RESULT));
		break;
	case CORR_RESULT_OF_SPAN:
		break;
	case CORR_RESULT_OF_RECORD:
		if (record->flags & CORR_CALL_FAILED)
			args_string(args, ",\"error\":", correlate__error(c->corr, record));
		break;
	}
}

/* Writes a span that is a call. op: id of the operator or annotation around it; 0: none. */
static int put_call(struct chrome *c, const struct tl_span *s, uint64_t op,
		    const struct fragment *description, const struct fragment *thread)
{
	struct jsonw *w = &c->w;
	struct args args = {.w = w};
	size_t nr;
	const uint32_t *calls = correlate__of_span(c->corr, s, &nr);
	const struct corr_call *primary = primary_of(c, calls, nr);
	char text[EVENT_BYTES], *p;
	int err;

	jsonw__text(w, ",\n");
	jsonw__raw(w, description->text, description->head);
	jsonw__raw(w, thread->text, thread->head);
	p = put_times(text, s, chrome_time(c, s->start_ns));
	jsonw__raw(w, text, (size_t)(p - text));
	if (op)
		args_u64(&args, ",\"External id\":", op);
	if (primary && primary->cbid)
		args_u64(&args, ",\"cbid\":", primary->cbid);
	if (primary && primary->correlation)
		args_u64(&args, ",\"correlation\":", trace__call_id(&c->tr, primary));
	if (description->tail)
		args_raw(&args, description->text + description->head, description->tail);
	p = put_flags(text, s->flags);
	if (p != text)
		args_raw(&args, text, (size_t)(p - text));
	put_result(c, &args, s, calls, nr);
	err = args_attrs(c, &args, s->attrs, s->nr_attrs, TRACE_CALL);
	jsonw__text(w, "}}");
	for (size_t i = 0; i < nr; i++)
		chrome_flow_start(c, correlate__call(c->corr, calls[i]), thread,
				  chrome_time(c, s->start_ns));
	return err;
}

/* ---- calls of modules ---- */

static void put_module(struct chrome *c, const struct tl_span *s,
		       const struct fragment *description, const struct fragment *thread)
{
	const struct tl_nn *nn = s->description->nn;
	struct args args = {.w = &c->w};
	char text[EVENT_BYTES], *p;

	jsonw__text(&c->w, ",\n");
	jsonw__raw(&c->w, description->text, description->head);
	jsonw__raw(&c->w, thread->text, thread->head);
	p = put_times(text, s, chrome_time(c, s->start_ns));
	jsonw__raw(&c->w, text, (size_t)(p - text));
	args_u64(&args, ",\"Python id\":", s->id);
	if (s->module_id)
		args_u64(&args, ",\"Python parent id\":", s->module_id);
	args_u64(&args, ",\"Python module id\":", nn->number);
	if (*nn->path) {
		args_string(&args, ",\"Module path\":", nn->path);
		args_string(&args, ",\"Outermost module\":", nn->outermost);
	}
	p = put_flags(text, s->flags);
	if (p != text)
		args_raw(&args, text, (size_t)(p - text));
	jsonw__text(&c->w, "}}");
}

/* ---- Python functions ---- */

static int put_function(struct chrome *c, const struct tl_function *f)
{
	const struct tl_span times = {.start_ns = f->start_ns, .end_ns = f->end_ns};
	const char *name = trace__function_name(&c->tr, f->frame);
	struct args args = {.w = &c->w};
	struct fragment *thread;
	char text[EVENT_BYTES], *p;
	int err = name ? chrome_thread(c, f->thread, &thread) : -ENOMEM;

	if (err)
		return err;
	chrome_cover(c, chrome_time(c, f->start_ns), chrome_time(c, f->end_ns));
	jsonw__text(&c->w, ",\n{\"ph\":\"X\",\"cat\":\"" TRACE_FUNCTION "\",\"name\":");
	jsonw__string(&c->w, name);
	jsonw__raw(&c->w, thread->text, thread->head);
	p = put_times(text, &times, chrome_time(c, f->start_ns));
	jsonw__raw(&c->w, text, (size_t)(p - text));
	args_u64(&args, ",\"Python id\":", f->id);
	if (f->parent_id)
		args_u64(&args, ",\"Python parent id\":", f->parent_id);
	p = put_flags(text, f->flags);
	jsonw__raw(&c->w, text, (size_t)(p - text));
	jsonw__text(&c->w, "}}");
	return c->w.err;
}

static int enter_function(void *ctx, const struct tl_function *f)
{
	return 0;
}

/*
 * Functions are left from the innermost outwards. Where two have the same times, readers take the
 * first one in the file to be around the other: so they are written the other way round.
 */
static int leave_function(void *ctx, const struct tl_function *f)
{
	struct chrome *c = ctx;

	if (vec_grow((void **)&c->left, &c->cap_left, c->nr_left, sizeof(*c->left)))
		return error_set(-ENOMEM, NULL, "no memory for Python functions");
	c->left[c->nr_left++] = *f;
	return 0;
}

static int put_left(struct chrome *c)
{
	int err = 0;

	while (c->nr_left && !err)
		err = put_function(c, &c->left[--c->nr_left]);
	return err;
}

/* ---- streaming ---- */

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct chrome *c = ctx;

	*data = !s->description->nn && correlate__is_op(c->corr, s->description)
			? (void *)(uintptr_t)s->id
			: parent_data;
	return put_left(c);
}

static void put_flow(struct chrome *c, const struct tl_span *s, const char *ph, uint64_t number,
		     const struct fragment *thread)
{
	if (!number)
		return;
	jsonw__text(&c->w, ",\n{\"ph\":\"");
	jsonw__text_u64(&c->w, ph, TRACE_FLOW_IDS + number);
	jsonw__text(&c->w, ",\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\"");
	jsonw__raw(&c->w, thread->text, thread->head);
	jsonw__us(&c->w, chrome_time(c, s->start_ns));
	jsonw__text(&c->w, "}");
}

/* The arrow between an operator and the autograd node that it has made. */
static void put_flows(struct chrome *c, const struct tl_span *s, const struct fragment *thread)
{
	put_flow(c, s, "s\",\"id\":", trace__flow_from(&c->tr, s->id), thread);
	put_flow(c, s, "f\",\"bp\":\"e\",\"id\":", trace__flow_to(&c->tr, s->id), thread);
}

/* Data: id of the innermost operator or annotation, which calls of a runtime refer to. */
static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct chrome *c = ctx;
	struct args args = {.w = &c->w, .any = true};
	struct fragment *description, *thread;
	char modules[TRACE_MODULES_BYTES];
	int err = put_left(c);

	if (!err)
		err = chrome_thread(c, s->thread, &thread);
	if (!err)
		err = fragment_at(&c->descriptions, s->description->id, &description);
	if (!err && !description->text)
		err = make_what(description, s->description);
	if (err)
		return err;
	chrome_cover(c, chrome_time(c, s->start_ns), chrome_time(c, s->end_ns));
	if (correlate__is_call(c->corr, s->description))
		return put_call(c, s, (uintptr_t)data, description, thread);
	if (s->description->nn) {
		put_module(c, s, description, thread);
		return c->w.err;
	}
	put_span(c, s, description, thread);
	if (trace__modules(s, modules))
		args_string(&args, ",\"Module Hierarchy\":", modules);
	if (s->nr_attrs)
		err = args_attrs(c, &args, s->attrs, s->nr_attrs, TRACE_HOST);
	jsonw__raw(&c->w, "}}", 2);
	if (s->nr_attrs)
		put_flows(c, s, thread);
	return err ? err : c->w.err;
}

static bool any_calls(const struct chrome *c)
{
	const struct tl_description *description;

	for (size_t i = 0; (description = timeline__description(c->t, i)); i++)
		if (correlate__is_call(c->corr, description))
			return true;
	return false;
}

int chrome_spans(struct chrome *c)
{
	struct tl_walker walker = {.pid = c->opts->pid,
				   .modules = true,
				   .end = end_span,
				   .enter = enter_function,
				   .leave = leave_function};
	int err;

	if (any_calls(c) || timeline__has_functions(c->t))
		walker.begin = begin_span;
	correlate__rewind(c->corr);
	err = timeline__walk(c->t, &walker, c);
	if (!err)
		err = put_left(c);
	free(c->left);
	return err;
}
