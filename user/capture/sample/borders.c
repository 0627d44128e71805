// SPDX-License-Identifier: BSD-2-Clause
#include "capture/sample/impl.h"

#include "util/util.h"

/*
 * Where a capture ends and the next one begins, that alone takes a good part of what a second may
 * cost: what can wait is not done in the second before, nor in the one after. Where captures are
 * short, too much of the time would be left out.
 */
#define BORDER_LEAST_NS (8 * NSEC_PER_SEC)
#define BORDER_BEFORE_NS (1250 * NSEC_PER_MSEC) /* the pace is set four times a second */
#define BORDER_AFTER_NS (1100 * NSEC_PER_MSEC)

bool stacks__border_is_near(const struct stacks *s, uint64_t now_ns)
{
	uint64_t last_ns = s ? s->all_named_ns : 0, every_ns = s ? s->names_every_ns : 0;
	uint64_t next_ns = last_ns + every_ns;

	if (!last_ns || (every_ns && every_ns < BORDER_LEAST_NS))
		return false;
	/* one that does not come may be far off: somebody had asked for the one before */
	return now_ns < last_ns + BORDER_AFTER_NS ||
	       (every_ns && now_ns + BORDER_BEFORE_NS > next_ns &&
		now_ns < next_ns + BORDER_AFTER_NS);
}
