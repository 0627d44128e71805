// SPDX-License-Identifier: BSD-2-Clause
/*
 * A counter for each process of how much memory it has allocated since the recording began, from
 * its allocations and frees. Of several within one step only the last value is reported: a program
 * may allocate a million times a second.
 */
#include "sink/trace/trace.h"

#include <errno.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/util.h"

static const char name[] = "CPU memory allocated since the start";

struct memory_counter {
	pid_t pid;
	uint64_t at_ns;
	int64_t bytes;
};

static int report(const struct memory_counter *c, const struct trace_details *to, void *ctx)
{
	return to->memory(ctx, c->pid, name, c->at_ns, c->bytes);
}

int trace__memory(struct trace *tr, struct trace_memory *m, const struct store_record *r,
		  const struct trace_details *to, void *ctx)
{
	pid_t pid = timeline__thread(tr->t, r->instant.thread)->pid;
	uint64_t ns = r->instant.time_ns, *number;
	struct memory_counter *c;
	struct tl_memory what;
	int err = 0;

	if (!timeline__memory(tr->t, r, &what))
		return 0;
	if (!m->step_ns)
		m->step_ns = trace__counter_step_ns(tr);
	number = map64__at(&m->numbers, (uint32_t)pid);
	if (!number || (!*number && vec_grow((void **)&m->counters, &m->cap, m->nr, sizeof(*c))))
		return error_set(-ENOMEM, NULL, "no memory for the trace's counters");
	if (!*number) {
		*number = ++m->nr;
		m->counters[m->nr - 1] = (struct memory_counter){.pid = pid, .at_ns = ns};
	}
	c = &m->counters[*number - 1];
	if (ns / m->step_ns != c->at_ns / m->step_ns)
		err = report(c, to, ctx);
	c->at_ns = ns;
	c->bytes = what.allocated;
	return err;
}

int trace__memory_end(struct trace_memory *m, const struct trace_details *to, void *ctx, int err)
{
	for (size_t i = 0; i < m->nr && !err; i++)
		err = report(&m->counters[i], to, ctx);
	map64__free(&m->numbers);
	free(m->counters);
	return err;
}
