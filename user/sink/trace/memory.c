// SPDX-License-Identifier: BSD-2-Clause
/*
 * Counters for each process of how much memory it has allocated, from its allocations and frees: of
 * the CPU's since the recording began, of another device's what its allocator has given out, and
 * what it has reserved. Of several within one step only the last value is reported: a program may
 * allocate a million times a second.
 */
#include "sink/trace/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/error.h"
#include "util/util.h"

struct memory_counter {
	pid_t pid;
	uint32_t device;
	uint64_t at_ns;
	int64_t bytes, reserved;
	/* Sinks may tell counters apart by their names' addresses. "": there is no such counter */
	char name[64], reserved_name[64];
};

static struct memory_counter *counter_new(pid_t pid, uint32_t device, uint64_t ns)
{
	struct memory_counter *c = calloc(1, sizeof(*c));
	char text[TL_MEMORY_DEVICE_BYTES];

	if (!c)
		return NULL;
	c->pid = pid;
	c->device = device;
	c->at_ns = ns;
	if (device == TL_MEMORY_CPU) {
		snprintf(c->name, sizeof(c->name), "CPU memory allocated since the start");
		return c;
	}
	timeline__memory_device(text, device);
	snprintf(c->name, sizeof(c->name), "%s memory allocated", text);
	snprintf(c->reserved_name, sizeof(c->reserved_name), "%s memory reserved", text);
	return c;
}

static int report(const struct memory_counter *c, const struct trace_details *to, void *ctx)
{
	int err = to->memory(ctx, c->pid, c->name, c->at_ns, c->bytes);

	if (err || !*c->reserved_name)
		return err;
	return to->memory(ctx, c->pid, c->reserved_name, c->at_ns, c->reserved);
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
	number = map64__at(&m->numbers, (uint64_t)what.device << 32 | (uint32_t)pid);
	if (!number || (!*number && vec_grow((void **)&m->counters, &m->cap, m->nr, sizeof(c))))
		return error_set(-ENOMEM, NULL, "no memory for the trace's counters");
	if (!*number) {
		c = counter_new(pid, what.device, ns);
		if (!c)
			return error_set(-ENOMEM, NULL, "no memory for the trace's counters");
		m->counters[m->nr++] = c;
		*number = m->nr;
	}
	c = m->counters[*number - 1];
	if (ns / m->step_ns != c->at_ns / m->step_ns)
		err = report(c, to, ctx);
	c->at_ns = ns;
	c->bytes = what.allocated;
	c->reserved = what.reserved;
	return err;
}

int trace__memory_end(struct trace_memory *m, const struct trace_details *to, void *ctx, int err)
{
	for (size_t i = 0; i < m->nr && !err; i++)
		err = report(m->counters[i], to, ctx);
	for (size_t i = 0; i < m->nr; i++)
		free(m->counters[i]);
	map64__free(&m->numbers);
	free(m->counters);
	return err;
}
