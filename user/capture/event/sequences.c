// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/sequences.h"

#include <cjson/cJSON.h>

#include "catalog/sequence.h"

#define ANY (KPROF_WIRE_F_SEQUENCE | KPROF_WIRE_F_MAYBE | KPROF_WIRE_F_NODE)

static void name_keys(struct sequences *s, struct recorder *r)
{
	if (s->number)
		return;
	s->number = recorder__string(r, SEQUENCE_KEY);
	s->forward = recorder__string(r, SEQUENCE_FORWARD_KEY);
	s->thread = recorder__string(r, SEQUENCE_THREAD_KEY);
	s->maybe = recorder__string(r, SEQUENCE_MAYBE_KEY);
}

static int record(struct sequences *s, struct recorder *r, const struct kprof_wire_begin *b,
		  uint64_t span)
{
	struct store_attr attrs[2] = {{0, STORE_ATTR_U64, b->sequence},
				      {0, STORE_ATTR_U64, b->thread}};

	name_keys(s, r);
	s->unsure += (b->flags & KPROF_WIRE_F_MAYBE) != 0;
	s->nodes += (b->flags & KPROF_WIRE_F_NODE) != 0;
	s->operators += (b->flags & KPROF_WIRE_F_SEQUENCE) != 0;
	attrs[0].key = b->flags & KPROF_WIRE_F_MAYBE ? s->maybe : s->number;
	attrs[1].key = b->flags & KPROF_WIRE_F_NODE ? s->forward : s->thread;
	return recorder__attrs(r, span, attrs, b->flags & KPROF_WIRE_F_MAYBE ? 1 : 2);
}

int sequences__begun(struct sequences *s, struct recorder *r, const struct kprof_wire_begin *b,
		     uint64_t *around, uint64_t span)
{
	uint64_t outer = *around;
	int err = 0;

	*around = 0;
	if (!(b->flags & ANY) || b->sequence > INT64_MAX || !span)
		return 0;
	if (b->flags & KPROF_WIRE_F_AROUND) {
		*around = span;
		return 0;
	}
	if (outer && b->flags & KPROF_WIRE_F_NODE)
		err = record(s, r, b, outer);
	return err ? err : record(s, r, b, span);
}

int sequences__account(const struct sequences *s, struct recorder *r)
{
	cJSON *meta = cJSON_CreateObject();

	cJSON_AddNumberToObject(meta, "operators", (double)s->operators);
	cJSON_AddNumberToObject(meta, "operators_unsure", (double)s->unsure);
	cJSON_AddNumberToObject(meta, "nodes", (double)s->nodes);
	return recorder__meta_value(r, "flow", meta);
}
