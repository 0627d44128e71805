// SPDX-License-Identifier: BSD-2-Clause
/* Flow arrows from operators to the autograd nodes that they have made. */
#include "sink/trace/trace.h"

#include <errno.h>

#include "util/error.h"
#include "util/order.h"

struct flow_end {
	uint64_t span, number;
};

static int by_span(const void *a, const void *b, void *ctx)
{
	return order_u64(((const struct flow_end *)a)->span, ((const struct flow_end *)b)->span);
}

int trace__flows_open(struct trace *tr)
{
	int err = timeline__flows(tr->t, tr->opts->pid, &tr->flows);

	tr->flow_ends.size = sizeof(struct flow_end);
	if (!err && bulk__resize(&tr->flow_ends, tr->flows.nr))
		err = -ENOMEM;
	for (size_t i = 0; i < tr->flows.nr && !err; i++)
		*(struct flow_end *)bulk__at(&tr->flow_ends, i) = (struct flow_end){
			((const struct tl_flow *)bulk__at(&tr->flows, i))->to, i + 1};
	if (!err && bulk__sort(&tr->flow_ends, 0, tr->flow_ends.nr, by_span, NULL))
		err = -ENOMEM;
	return err == -ENOMEM ? error_set(err, NULL, "no memory for the trace's flows") : err;
}

/*
 * The index of the span, whose id is first in each element of the list; list->nr: it is not there.
 * Spans are asked for nearly in order: the search begins at the place of the last one, and widens.
 */
static size_t find(const struct bulk *list, size_t *last, uint64_t span)
{
	size_t low = 0, high = list->nr, step;

	for (step = 1; *last + step < high; step *= 2)
		if (*(const uint64_t *)bulk__at(list, *last + step) > span)
			high = *last + step;
	for (step = 1; low + step <= *last; step *= 2)
		if (*(const uint64_t *)bulk__at(list, *last - step) <= span)
			low = *last - step;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		uint64_t id = *(const uint64_t *)bulk__at(list, mid);

		if (id == span)
			return *last = mid;
		if (id < span)
			low = mid + 1;
		else
			high = mid;
	}
	*last = low ? low - 1 : 0;
	return list->nr;
}

uint64_t trace__flow_from(struct trace *tr, uint64_t span)
{
	size_t i = find(&tr->flows, &tr->last_flow, span);

	return i < tr->flows.nr ? i + 1 : 0;
}

uint64_t trace__flow_to(struct trace *tr, uint64_t span)
{
	size_t i = find(&tr->flow_ends, &tr->last_flow_end, span);

	return i < tr->flow_ends.nr ? ((const struct flow_end *)bulk__at(&tr->flow_ends, i))->number
				    : 0;
}
