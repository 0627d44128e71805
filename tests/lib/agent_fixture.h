/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the tests of kprof's side of the agent share: batches made by hand, and a capture read back
 * as lines of text.
 */
#ifndef KPROF_TESTS_AGENT_FIXTURE_H
#define KPROF_TESTS_AGENT_FIXTURE_H

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>

#include "capture/agent/records.h"
#include "kprof/activity.h"
#include "kprof/agent.h"
#include "store_fixture.h"

#define FIXTURE_PID 4242

struct batch {
	size_t bytes;
	_Alignas(8) uint8_t data[KPROF_WIRE_BATCH_BYTES];
};

static inline void batch_add(struct batch *b, const void *record, size_t size)
{
	if (b->bytes + size > sizeof(b->data))
		abort();
	memcpy(b->data + b->bytes, record, size);
	b->bytes += size;
}

/* head(KPROF_AGENT_KERNEL, struct kprof_agent_kernel, name id) */
#define HEAD(kind_, type, name_)                                        \
	{                                                               \
		.kind = (kind_), .size = sizeof(type), .name = (name_), \
	}

static inline void batch_name(struct batch *b, uint32_t id, const char *text)
{
	_Alignas(8) uint8_t room[1024] = {0};
	struct kprof_agent_name *name = (struct kprof_agent_name *)room;
	size_t at = offsetof(struct kprof_agent_name, text), len = strlen(text);

	name->h = (struct kprof_agent_head){
		.kind = KPROF_AGENT_NAME, .size = (uint16_t)((at + len + 7) & ~7ul), .name = id};
	name->bytes = (uint32_t)len;
	memcpy(room + at, text, len);
	batch_add(b, room, name->h.size);
}

/* ---- a capture as lines ---- */

struct lines {
	char text[65536];
	size_t used;
	char *strings[1024];
};

static inline void line(struct lines *l, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	l->used += (size_t)vsnprintf(l->text + l->used, sizeof(l->text) - l->used, fmt, ap);
	va_end(ap);
	if (l->used >= sizeof(l->text))
		abort();
}

static inline const char *string_at(const struct lines *l, uint64_t id)
{
	return id && id < 1024 && l->strings[id] ? l->strings[id] : "";
}

static inline void line_attrs(struct lines *l, const struct store_record *r)
{
	for (uint32_t i = 0; i < r->nr_attrs; i++) {
		const struct store_attr *a = &r->attrs[i];
		double number;

		line(l, " %s=", string_at(l, a->key));
		memcpy(&number, &a->value, sizeof(number));
		if (a->type == STORE_ATTR_STRING || a->type == STORE_ATTR_JSON)
			line(l, "%s", string_at(l, a->value));
		else if (a->type == STORE_ATTR_DOUBLE)
			line(l, "%g", number);
		else if (a->type == STORE_ATTR_DIM3)
			line(l, "%u,%u,%u", (unsigned int)a->value,
			     (unsigned int)(a->value >> 32 & 0xffff),
			     (unsigned int)(a->value >> 48));
		else
			line(l, "%" PRId64, (int64_t)a->value);
	}
	line(l, "\n");
}

static inline void line_of(struct lines *l, const struct store_record *r)
{
	switch (r->type) {
	case STORE_STRING:
		if (r->string.id < 1024)
			l->strings[r->string.id] = strndup(r->string.bytes, r->string.len);
		break;
	case STORE_META:
		line(l, "%s %s\n", r->meta.key, r->meta.json);
		break;
	case STORE_GAP:
		line(l, "gap %u %s: %s\n", r->gap.pid, string_at(l, r->gap.what),
		     string_at(l, r->gap.reason));
		break;
	case STORE_COUNTER:
		line(l, "%u %s of %u at %" PRIu64 ": %" PRId64 "\n", r->counter.pid,
		     string_at(l, r->counter.name), r->counter.device, r->counter.time_ns,
		     r->counter.value);
		break;
	case STORE_ACTIVITY:
		line(l, "%u %u [%s] %u/%u/%u %" PRIu64 "-%" PRIu64 " q%" PRIu64 " c%" PRIu64,
		     r->activity.pid, r->activity.type, string_at(l, r->activity.name),
		     r->activity.device, r->activity.context, r->activity.stream,
		     r->activity.start_ns, r->activity.end_ns, r->activity.queued_ns,
		     r->activity.correlation);
		line_attrs(l, r);
		break;
	case STORE_API:
		line(l, "call %u %u [%s] %" PRIu64 "-%" PRIu64 " c%" PRIu64, r->api.thread,
		     r->api.type, string_at(l, r->api.name), r->api.start_ns, r->api.end_ns,
		     r->api.correlation);
		line_attrs(l, r);
		break;
	default:
		break;
	}
}

/* Everything that was written, in its order; the lines are freed with lines_free(). */
static inline struct lines *lines_read(const char *path)
{
	struct lines *l = calloc(1, sizeof(*l));
	struct store_reader *reader;
	struct store_record r;

	if (!l || store_reader__open(path, &reader))
		abort();
	while (store_reader__next(reader, &r) == 1)
		line_of(l, &r);
	store_reader__close(reader);
	return l;
}

static inline void lines_free(struct lines *l)
{
	for (size_t i = 0; i < 1024; i++)
		free(l->strings[i]);
	free(l);
}

#endif
