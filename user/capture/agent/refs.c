// SPDX-License-Identifier: BSD-2-Clause
/* Things that later records of an agent refer to: names, inputs, external ids, events. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/agent/records_priv.h"
#include "catalog/runtime.h"
#include "util/util.h"

/* Bounds that an agent which keeps to the protocol does not come near. */
#define MAX_NAMES (1u << 20)
#define MAX_TEXT_BYTES (64ull << 20)
#define MAX_EVENTS (1u << 20)

struct agent_text *agent_records__text(struct agent_records *r, uint32_t id)
{
	const uint64_t *known = id && id <= MAX_NAMES ? map64__at(&r->texts, id) : NULL;

	return known ? (struct agent_text *)(uintptr_t)*known : NULL;
}

/* The string id of a name, or of what is shown of it as a call's. */
static uint32_t interned(struct agent_records *r, uint32_t id, bool is_call)
{
	struct agent_text *text = agent_records__text(r, id);
	uint32_t *string;

	if (!id)
		return 0;
	if (!text) {
		r->count.unnamed++;
		return store_writer__string(r->store, "(name lost)", strlen("(name lost)"));
	}
	string = is_call ? &text->call : &text->string;
	if (!*string)
		*string = store_writer__string(r->store, text->text,
					       is_call ? catalog_shown_bytes(text->text)
						       : strlen(text->text));
	return *string;
}

uint32_t agent_records__name(struct agent_records *r, uint32_t id)
{
	return interned(r, id, false);
}

uint32_t agent_records__call_name(struct agent_records *r, uint32_t id)
{
	return interned(r, id, true);
}

static uint64_t time_of(const struct agent_records *r, const struct kprof_agent_spans *e,
			uint32_t after)
{
	return e->base_ticks && r->ops.ticks
		       ? agent_ticks__ns(r->ops.ticks, e->start + after, e->base_ns, e->base_ticks)
		       : e->start + after;
}

static void begin(struct agent_records *r, uint32_t what, struct agent_span *out)
{
	const struct agent_text *text = agent_records__text(r, what & KPROF_AGENT_SPAN_NAME);

	out->scope = what >> KPROF_AGENT_SPAN_SCOPE_SHIFT;
	out->name = agent_records__name(r, what & KPROF_AGENT_SPAN_NAME);
	out->text = text ? text->text : "";
	out->sequence = -1;
}

static void end(uint32_t what, struct agent_span *out)
{
	out->kind = what < KPROF_AGENT_SPAN_END ? AGENT_SPAN_CLOSED : AGENT_SPAN_END;
	out->inside = what & KPROF_AGENT_SPAN_NAME;
}

static void give_inputs(struct agent_records *r, uint32_t id, struct agent_span *to)
{
	const struct agent_inputs *inputs = (void *)(uintptr_t)map64__get(&r->inputs, id);

	to->inputs_untold = !inputs;
	if (!inputs)
		return;
	to->inputs = inputs->words;
	to->nr_inputs = inputs->nr;
}

/* More is said of the span that the entry before begins. */
static void more(struct agent_records *r, const struct kprof_agent_span *e, struct agent_span *to)
{
	if (to->kind != AGENT_SPAN_BEGIN)
		return;
	if (e->what >= KPROF_AGENT_SPAN_INPUTS) {
		give_inputs(r, e->what & KPROF_AGENT_SPAN_NAME, to);
		return;
	}
	if (e->what >= KPROF_AGENT_SPAN_SEQUENCE)
		to->sequence = e->after;
	else if (to->sequence >= 0)
		to->sequence = (int64_t)((uint64_t)e->after << 32 | (uint32_t)to->sequence);
	to->thread = e->what & KPROF_AGENT_SPAN_THREAD;
	to->node = e->what & KPROF_AGENT_SPAN_NODE;
}

int agent_records__on_spans(struct agent_records *r, const struct kprof_agent_spans *e)
{
	struct agent_span spans[KPROF_WIRE_BATCH_BYTES / sizeof(e->spans[0])];
	size_t nr = (e->h.size - sizeof(*e)) / sizeof(e->spans[0]), used = 0;

	r->count.received--;
	for (size_t i = 0; i < nr; i++) {
		uint32_t what = e->spans[i].what;
		struct agent_span *span = &spans[used];

		if (what >= KPROF_AGENT_SPAN_SEQUENCE_HIGH && what < KPROF_AGENT_SPAN_CLOSED) {
			if (used)
				more(r, &e->spans[i], span - 1);
			continue;
		}
		*span = (struct agent_span){.time_ns = time_of(r, e, e->spans[i].after)};
		if (what >= KPROF_AGENT_SPAN_CLOSED)
			end(what, span);
		else
			begin(r, what, span);
		used++;
	}
	r->count.spans += used;
	return r->ops.spans ? r->ops.spans(r->ops.ctx, e->tid, e->depth, spans, used) : 0;
}

int agent_records__on_inputs(struct agent_records *r, const struct kprof_agent_inputs *e)
{
	size_t bytes = e->nr * sizeof(e->words[0]);
	struct agent_inputs *inputs;
	uint64_t *known;

	if (!e->h.name || e->h.name > MAX_NAMES || e->nr > KPROF_AGENT_INPUTS_WORDS ||
	    sizeof(*e) + bytes > e->h.size || r->text_bytes + bytes > MAX_TEXT_BYTES)
		return 0;
	known = map64__at(&r->inputs, e->h.name);
	inputs = known ? malloc(sizeof(*inputs) + bytes) : NULL;
	if (!inputs)
		return -ENOMEM;
	inputs->nr = e->nr;
	memcpy(inputs->words, e->words, bytes);
	r->text_bytes += bytes;
	free((struct agent_inputs *)(uintptr_t)*known);
	*known = (uint64_t)(uintptr_t)inputs;
	return 0;
}

int agent_records__on_name(struct agent_records *r, const struct kprof_agent_name *e)
{
	size_t room = e->h.size - offsetof(struct kprof_agent_name, text);
	size_t len = strnlen(e->text, e->bytes < room ? e->bytes : room);
	struct agent_text *text;
	uint64_t *known;

	if (!e->h.name || e->h.name > MAX_NAMES || r->text_bytes + len > MAX_TEXT_BYTES)
		return 0;
	known = map64__at(&r->texts, e->h.name);
	text = known ? malloc(sizeof(*text) + len + 1) : NULL;
	if (!text)
		return -ENOMEM;
	memcpy(text->text, e->text, len);
	text->text[len] = '\0';
	r->text_bytes += len;
	text->string = text->call = 0;
	free((struct agent_text *)(uintptr_t)*known);
	*known = (uint64_t)(uintptr_t)text;
	return 0;
}

/* Correlation ids have 32 bits; beyond, none has an external id. */
static uint64_t external_key(uint64_t correlation, uint32_t kind)
{
	return (correlation & UINT32_MAX) * AGENT_EXTERNAL_KINDS + kind - 1;
}

int agent_records__on_external(struct agent_records *r, const struct kprof_agent_external *e)
{
	uint64_t *at;

	r->count.externals++;
	if (!e->kind || e->kind > AGENT_EXTERNAL_KINDS || e->correlation > UINT32_MAX)
		return 0;
	if (r->nr_externals == AGENT_EXTERNALS) {
		map64__free(&r->externals);
		r->nr_externals = 0;
	}
	at = map64__at(&r->externals, external_key(e->correlation, e->kind));
	if (!at || vec_grow((void **)&r->external_ids, &r->cap_externals, r->nr_externals,
			    sizeof(*r->external_ids)))
		return -ENOMEM;
	if (!*at)
		*at = ++r->nr_externals;
	r->external_ids[*at - 1] = e->external;
	return 0;
}

const uint64_t *agent_records__external(const struct agent_records *r, uint64_t correlation,
					uint32_t kind)
{
	uint64_t at = r->nr_externals && correlation <= UINT32_MAX
			      ? map64__get(&r->externals, external_key(correlation, kind))
			      : 0;

	return at ? &r->external_ids[at - 1] : NULL;
}

/* The key is below UINT64_MAX, as the map requires. */
static uint64_t event_key(uint32_t context, uint32_t event)
{
	return (uint64_t)(context & 0x7fffffff) << 32 | event;
}

const struct agent_event *agent_records__event(struct agent_records *r, uint32_t context,
					       uint32_t event)
{
	const uint64_t *at = map64__at(&r->event_at, event_key(context, event));

	return at && *at ? &r->events[*at - 1] : NULL;
}

/* Keeps the call that recorded a device's event: a wait for the event refers to it. */
int agent_records__on_event(struct agent_records *r, const struct kprof_agent_event *e)
{
	uint64_t *at = map64__at(&r->event_at, event_key(e->context, e->event));
	struct agent_event *known;

	if (!at)
		return -ENOMEM;
	if (!*at) {
		if (r->nr_events == MAX_EVENTS)
			return 0;
		if (vec_grow((void **)&r->events, &r->cap_events, r->nr_events, sizeof(*known)))
			return -ENOMEM;
		r->events[r->nr_events] = (struct agent_event){0};
		*at = ++r->nr_events;
	}
	known = &r->events[*at - 1];
	known->before = known->correlation;
	known->before_stream = known->stream;
	known->correlation = e->correlation;
	known->stream = e->stream;
	return 0;
}
