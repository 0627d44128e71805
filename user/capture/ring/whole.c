// SPDX-License-Identifier: BSD-2-Clause
/* Whether a record is what its kind says. Checked once, where records leave the rings. */
#include "capture/ring/ring.h"
#include "capture/ring/ring_priv.h"

#include "kprof/mark.h"
#include "kprof/modules.h"
#include "kprof/python.h"
#include "kprof/wait.h"

static bool text_is_whole(const char *text, size_t used, size_t room)
{
	return used <= room && (!used || !text[used - 1]);
}

static bool mark_is_whole(const struct kprof_wire_mark *m)
{
	size_t texts = m->room ? (m->h.size - sizeof(*m)) / m->room : 0;

	if (m->room > KPROF_MARK_TEXT_MAX + 1)
		return false;
	for (size_t i = 0; i < KPROF_WIRE_MARK_TEXTS; i++)
		if (m->text_bytes[i] && (i >= texts || !text_is_whole(m->text + i * m->room,
								      m->text_bytes[i], m->room)))
			return false;
	return true;
}

static bool stack_is_whole(const struct kprof_wire_stack *s)
{
	size_t words = (s->h.size - sizeof(*s)) / 8;
	size_t python = s->nr_python * (sizeof(struct kprof_python_frame) / 8);

	if (s->flags & KPROF_WIRE_STACK_COPIED && s->nr_user < KPROF_WIRE_STACK_REGISTERS)
		return false;
	return words <= KPROF_WIRE_STACK_WORDS && s->nr_kernel + s->nr_user + python <= words;
}

bool ring_record_whole(const struct kprof_wire_hdr *h, size_t bytes)
{
	if (bytes < sizeof(*h) || h->size > bytes)
		return false;
	switch ((enum kprof_wire_kind)h->kind) {
	case KPROF_WIRE_BEGIN:
		return h->size >= sizeof(struct kprof_wire_begin);
	case KPROF_WIRE_BEGIN_TEXT: {
		const struct kprof_wire_begin_text *t = (const struct kprof_wire_begin_text *)h;

		size_t args;

		if (h->size < sizeof(*t) || t->nr_args > KPROF_WIRE_TEXT_ARGS)
			return false;
		args = t->nr_args * sizeof(uint64_t);
		return h->size >= sizeof(*t) + args &&
		       text_is_whole(t->text, t->text_bytes, h->size - sizeof(*t) - args);
	}
	case KPROF_WIRE_SITE:
	case KPROF_WIRE_MAPS:
		return h->size >= sizeof(*h);
	case KPROF_WIRE_FORK:
	case KPROF_WIRE_EXIT:
		return h->size >= sizeof(struct kprof_wire_task);
	case KPROF_WIRE_EXEC: {
		const struct kprof_wire_exec *e = (const struct kprof_wire_exec *)h;

		return h->size >= sizeof(*e) && e->args_bytes <= sizeof(e->args);
	}
	case KPROF_WIRE_SEEN: {
		const struct kprof_wire_seen *e = (const struct kprof_wire_seen *)h;

		return h->size >= sizeof(*e) && e->args_bytes <= sizeof(e->args);
	}
	case KPROF_WIRE_GONE:
		return h->size >= sizeof(struct kprof_wire_gone);
	case KPROF_WIRE_COPY: {
		const struct kprof_wire_copy *c = (const struct kprof_wire_copy *)h;

		return h->size >= sizeof(*c) && c->bytes <= h->size - sizeof(*c);
	}
	case KPROF_WIRE_BEGIN_ARGS:
		return h->size >= sizeof(struct kprof_wire_begin_args);
	case KPROF_WIRE_BEGIN_INPUTS: {
		const struct kprof_wire_begin_inputs *b = (const struct kprof_wire_begin_inputs *)h;

		return h->size >= sizeof(*b) && b->nr <= (h->size - sizeof(*b)) / 8;
	}
	case KPROF_WIRE_SITE_RESULT:
		return h->size >= sizeof(struct kprof_wire_site_result);
	case KPROF_WIRE_BATCH: {
		const struct kprof_wire_batch *b = (const struct kprof_wire_batch *)h;
		const size_t head = offsetof(struct kprof_wire_batch, data);

		return h->size >= head && b->bytes <= h->size - head;
	}
	case KPROF_WIRE_MARK:
		return h->size >= sizeof(struct kprof_wire_mark) &&
		       mark_is_whole((const struct kprof_wire_mark *)h);
	case KPROF_WIRE_SAMPLE:
	case KPROF_WIRE_STACK:
		return h->size >= sizeof(struct kprof_wire_stack) &&
		       stack_is_whole((const struct kprof_wire_stack *)h);
	case KPROF_WIRE_MODULES: {
		const struct kprof_wire_modules *m = (const struct kprof_wire_modules *)h;

		return h->size >= sizeof(*m) && m->nr <= KPROF_MODULES_MAX_CALLS &&
		       m->nr <= (h->size - sizeof(*m)) / sizeof(struct kprof_module_call);
	}
	case KPROF_WIRE_WAIT:
		return h->size >= sizeof(struct kprof_wire_wait);
	}
	return false;
}

const struct kprof_wire_counters *ring_counters(const struct kprof_wire_hdr *h)
{
	switch ((enum kprof_wire_kind)h->kind) {
	case KPROF_WIRE_BEGIN:
	case KPROF_WIRE_BEGIN_TEXT:
	case KPROF_WIRE_BEGIN_ARGS:
	case KPROF_WIRE_BEGIN_INPUTS:
	case KPROF_WIRE_SITE:
	case KPROF_WIRE_SITE_RESULT:
	case KPROF_WIRE_MARK:
		return (const struct kprof_wire_counters *)((const char *)h + h->size);
	default:
		return NULL;
	}
}

bool ring_counted_whole(const struct kprof_wire_hdr *h, size_t bytes, size_t counters_bytes)
{
	if (!ring_record_whole(h, bytes))
		return false;
	return !counters_bytes || !ring_counters(h) ||
	       (h->size % sizeof(uint64_t) == 0 && bytes - h->size >= counters_bytes);
}
