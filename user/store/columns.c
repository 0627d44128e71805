// SPDX-License-Identifier: BSD-2-Clause
#include "store/columns.h"

#include <errno.h>
#include <stdlib.h>

#include "store/varint.h"

int columns__init(struct columns *c)
{
	c->control = malloc(STORE_CHUNK_TARGET_BYTES);
	c->low = malloc(STORE_CHUNK_TARGET_BYTES);
	c->high = malloc(STORE_CHUNK_TARGET_BYTES);
	return c->control && c->low && c->high ? 0 : -ENOMEM;
}

void columns__free(struct columns *c)
{
	free(c->control);
	free(c->low);
	free(c->high);
}

void columns__reset(struct columns *c)
{
	c->control_bytes = c->low_bytes = c->high_bytes = 0;
	c->records = c->begins = 0;
}

static inline void put_control(struct columns *c, uint64_t value, enum store_op op)
{
	uint8_t *at = c->control + c->control_bytes;

	c->control_bytes = (uint32_t)(varint_put(at, value << 2 | op) - c->control);
}

/*
 * The rings of all CPUs are merged by time, but the clocks of two CPUs may differ a little, so an
 * event may be earlier than the one before it: by back_ns.
 */
static void put_back(struct columns *c, uint64_t back_ns)
{
	uint8_t number[VARINT_MAX_BYTES];
	uint8_t bytes = (uint8_t)(varint_put(number, back_ns) - number);

	put_control(c, STORE_OTHER_BACK, STORE_OP_OTHER);
	c->control[c->control_bytes++] = bytes;
	for (uint8_t i = 0; i < bytes; i++)
		c->control[c->control_bytes++] = number[i];
}

static inline void put_time(struct columns *c, uint64_t delta_ns)
{
	if (delta_ns < 0x80) {
		c->low[c->low_bytes++] = (uint8_t)delta_ns;
		return;
	}
	c->low[c->low_bytes++] = (uint8_t)(delta_ns | 0x80);
	c->high_bytes = (uint32_t)(varint_put(c->high + c->high_bytes, delta_ns >> 7) - c->high);
}

static void start(struct columns *c, uint64_t time_ns, uint32_t thread)
{
	c->base_ns = c->time_ns = c->first_ns = c->last_ns = time_ns;
	c->thread = thread;
	put_control(c, thread, STORE_OP_THREAD);
}

void columns__put(struct columns *c, const struct store_record *r)
{
	bool begin = r->type == STORE_BEGIN;
	uint64_t time_ns = begin ? r->begin.time_ns : r->end.time_ns;
	uint32_t thread = begin ? r->begin.thread : r->end.thread;

	if (!c->records)
		start(c, time_ns, thread);
	if (thread != c->thread) {
		put_control(c, thread, STORE_OP_THREAD);
		c->thread = thread;
	}
	if (time_ns < c->time_ns) {
		put_back(c, c->time_ns - time_ns);
		c->time_ns = time_ns;
		if (time_ns < c->first_ns)
			c->first_ns = time_ns;
	}
	put_time(c, time_ns - c->time_ns);
	c->time_ns = time_ns;
	if (time_ns > c->last_ns)
		c->last_ns = time_ns;
	if (begin)
		put_control(c, r->begin.description, STORE_OP_BEGIN);
	else
		put_control(c, r->end.flags, STORE_OP_END);
	c->records++;
	c->begins += begin;
}
