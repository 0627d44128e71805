// SPDX-License-Identifier: BSD-2-Clause
#include "gpu/pytorch/open_spans.h"

#include <string.h>

#include "gpu/base/util.h"

void open_spans__reset(struct open_spans *o, uint32_t session, uint32_t tid, bool ticks)
{
	memset(o->names, 0, sizeof(o->names));
	if (o->inputs)
		memset(o->inputs->known, 0, sizeof(o->inputs->known));
	o->depth = o->thread = o->wanted = 0;
	o->stream = (struct batch_stream){.tid = tid, .session = session, .ticks = ticks};
	o->session = session;
}

/* 64 bits tell a process's names apart: a program that makes two of them meet misleads itself. */
static uint64_t hash_of(const char *text, size_t bytes)
{
	uint64_t h = bytes * UINT64_C(0x9e3779b97f4a7c15), word;

	for (; bytes >= sizeof(word); text += sizeof(word), bytes -= sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		h = (h ^ word) * UINT64_C(0xff51afd7ed558ccd);
		h ^= h >> 32;
	}
	word = 0;
	memcpy(&word, text, bytes);
	h = (h ^ word) * UINT64_C(0xc4ceb9fe1a85ec53);
	return h ^ h >> 29;
}

uint32_t open_spans__name(struct open_spans *o, const char *text, size_t bytes)
{
	uint64_t hash = hash_of(text, bytes);
	uint32_t at = (uint32_t)hash % OPEN_SPANS_NAMES;

	if (!o->names[at].id || o->names[at].hash != hash) {
		o->names[at].id = batch__name(text, bytes);
		o->names[at].hash = hash;
	}
	return o->names[at].id;
}

uint64_t *open_spans__words(struct open_spans *o)
{
	if (!o->inputs)
		o->inputs = gpu_pages(sizeof(*o->inputs));
	return o->inputs ? o->inputs->words : NULL;
}

uint32_t open_spans__inputs(struct open_spans *o, size_t nr)
{
	const uint64_t *words = o->inputs->words;
	uint64_t hash = hash_of((const char *)words, nr * sizeof(*words));
	uint32_t at = (uint32_t)hash % OPEN_SPANS_INPUTS;

	if (!o->inputs->known[at].id || o->inputs->known[at].hash != hash) {
		o->inputs->known[at].id = batch__inputs(words, nr);
		o->inputs->known[at].hash = hash;
	}
	return o->inputs->known[at].id;
}

void open_spans__free(struct open_spans *o)
{
	if (o->inputs)
		gpu_pages_free(o->inputs, sizeof(*o->inputs));
	gpu_pages_free(o, sizeof(*o));
}

/* The latest that ended on threads that did not know them, by address. */
#define ELSEWHERE 256
static const void *elsewhere[ELSEWHERE];

static const void **elsewhere_at(const void *object)
{
	return &elsewhere[(uintptr_t)object / 16 % ELSEWHERE];
}

void open_spans__elsewhere(const void *object)
{
	__atomic_store_n(elsewhere_at(object), object, __ATOMIC_RELEASE);
}

/* Has it ended on another thread? */
static bool ended_elsewhere(const void *object)
{
	const void *expected = object;

	return __atomic_load_n(elsewhere_at(object), __ATOMIC_RELAXED) == object &&
	       __atomic_compare_exchange_n(elsewhere_at(object), &expected, NULL, false,
					   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

bool open_spans__is_top(const struct open_spans *o, const void *object)
{
	const struct open_span *top;

	if (!o->depth || o->depth > OPEN_SPANS_DEPTH)
		return false;
	top = &o->spans[o->depth - 1];
	return top->object == object && !top->over &&
	       __atomic_load_n(elsewhere_at(object), __ATOMIC_RELAXED) != object;
}

static bool is_over(const struct open_span *s)
{
	return s->over || ended_elsewhere(s->object);
}

uint32_t open_spans__settle(struct open_spans *o)
{
	uint32_t closed = 0;

	if (o->depth > OPEN_SPANS_DEPTH)
		return 0;
	for (; o->depth; o->depth--, closed++) {
		const struct open_span *s = &o->spans[o->depth - 1];

		if (!s->annotation || !is_over(s))
			break;
		o->wanted -= s->wanted;
	}
	return closed;
}

bool open_spans__push(struct open_spans *o, const void *object, bool annotation, bool wanted)
{
	/* What ended there was another object, which lay at this address before. */
	bool reused = ended_elsewhere(object);

	for (uint32_t i = 0; reused && i < o->depth && i < OPEN_SPANS_DEPTH; i++)
		o->spans[i].over |= o->spans[i].object == object;
	if (o->depth++ >= OPEN_SPANS_DEPTH)
		return false;
	o->spans[o->depth - 1] =
		(struct open_span){.object = object, .annotation = annotation, .wanted = wanted};
	o->wanted += wanted;
	return true;
}

struct open_spans_end open_spans__pop(struct open_spans *o, const void *object)
{
	struct open_spans_end end = {0};
	uint32_t at = o->depth;

	if (o->depth > OPEN_SPANS_DEPTH) {
		o->depth--;
		return end;
	}
	while (at && (o->spans[at - 1].over || o->spans[at - 1].object != object))
		at--;
	if (!at) {
		open_spans__elsewhere(object);
		return end;
	}
	end.found = true;
	/* An operator ends when its function returns: nothing goes on inside of it. */
	while (o->depth > at &&
	       (!o->spans[at - 1].annotation || is_over(&o->spans[o->depth - 1]))) {
		o->wanted -= o->spans[--o->depth].wanted;
		end.closed++;
	}
	end.inside = o->depth - at;
	o->wanted -= o->spans[at - 1].wanted;
	memmove(&o->spans[at - 1], &o->spans[at], end.inside * sizeof(o->spans[0]));
	o->depth--;
	return end;
}
