// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads the columns of a chunk of events. This is the hot path of every command that reads a
 * capture.
 */
#include "store/format.h"

#include <errno.h>

#include "store/varint.h"

/*
 * The next time difference: its first byte is in the column `low`, any further bytes are in `high`.
 */
static inline bool get_time(struct store_events *e, uint64_t *delta_ns)
{
	uint64_t high;
	uint8_t low;

	if (e->low == e->low_end)
		return false;
	low = *e->low++;
	*delta_ns = low & 0x7f;
	if (low < 0x80)
		return true;
	if (!varint_get(&e->high, e->high_end, &high) || high > UINT64_MAX >> 7)
		return false;
	*delta_ns |= high << 7;
	return true;
}

/*
 * Operations other than the three common ones. Each gives its length, so that a reader can skip
 * operations of a newer minor version.
 */
static bool other(struct store_events *e, uint64_t description)
{
	const uint8_t *end;
	uint64_t bytes, back_ns;

	if (!varint_get(&e->control, e->control_end, &bytes) ||
	    bytes > (size_t)(e->control_end - e->control))
		return false;
	end = e->control + bytes;
	if (description == STORE_OTHER_BACK) {
		if (!varint_get(&e->control, end, &back_ns) || back_ns > e->time_ns)
			return false;
		e->time_ns -= back_ns;
	}
	e->control = end;
	return true;
}

/*
 * Adds the next time difference to the time. False: the sum would overflow, or would lie outside of
 * the times that the chunk's head promises.
 */
static inline bool advance(struct store_events *e, uint64_t *time_ns)
{
	uint64_t delta_ns;

	if (!e->have_thread || !get_time(e, &delta_ns) || delta_ns > e->last_ns)
		return false;
	if (e->time_ns > e->last_ns - delta_ns || e->time_ns + delta_ns < e->first_ns)
		return false;
	e->time_ns += delta_ns;
	*time_ns = e->time_ns;
	e->records++;
	return true;
}

int store_events__next(struct store_events *e, const struct store_ids *ids,
		       struct store_record *out)
{
	while (e->control < e->control_end) {
		uint64_t op, value;

		if (!varint_get(&e->control, e->control_end, &op))
			return -EBADMSG;
		value = op >> 2;
		switch ((enum store_op)(op & 3)) {
		case STORE_OP_BEGIN:
			if (!store_ids__known(ids, STORE_REF_DESCRIPTION, value) ||
			    !advance(e, &out->begin.time_ns))
				return -EBADMSG;
			out->type = STORE_BEGIN;
			out->begin.thread = e->thread;
			out->begin.description = (uint32_t)value;
			e->begins++;
			return 1;
		case STORE_OP_END:
			if (value > UINT32_MAX || !advance(e, &out->end.time_ns))
				return -EBADMSG;
			out->type = STORE_END;
			out->end.thread = e->thread;
			out->end.flags = (uint32_t)value;
			return 1;
		case STORE_OP_THREAD:
			if (!store_ids__known(ids, STORE_REF_THREAD, value))
				return -EBADMSG;
			e->thread = (uint32_t)value;
			e->have_thread = true;
			break;
		case STORE_OP_OTHER:
			if (!other(e, value))
				return -EBADMSG;
			break;
		}
	}
	return e->low == e->low_end && e->high == e->high_end ? 0 : -EBADMSG;
}
