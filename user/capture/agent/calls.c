// SPDX-License-Identifier: BSD-2-Clause
/* Passes calls that probes saw on to approximate.c, for targets without a working agent. */
#include <stdlib.h>
#include <string.h>

#include "capture/agent/impl.h"
#include "util/util.h"

struct wait { /* a call that waits for the device, and has not returned yet */
	uint64_t handle;
	uint32_t pid;
	enum device_role role;
};

/* The role of the function at this probe. Kept by probe, since it is needed at every call. */
static enum device_role role_of(struct agents *a, uint32_t probe)
{
	uint64_t *known = map64__at(&a->roles, probe);
	const char *name = probe_set__probe(a->opts.probes, probe)->name;

	if (!known)
		return DEVICE_ROLE_NONE;
	if (!*known)
		*known = 1 + (uint64_t)(name ? device_role_of(name) : DEVICE_ROLE_NONE);
	return (enum device_role)(*known - 1);
}

/* The argument with this key; 0: the call has none, or it could not be read. */
static uint64_t argument(const struct catalog_row *row, const struct kprof_wire_begin_args *e,
			 const char *key)
{
	for (uint32_t i = 0; e && i < e->nr && i < KPROF_WIRE_MAX_ARGS && row->args[i].name; i++)
		if (!strcmp(row->args[i].name, key))
			return e->faults >> i & 1 ? 0 : e->args[i];
	return 0;
}

static void keep_wait(struct agents *a, uint64_t span, const struct wait *w)
{
	uint64_t *at = span ? map64__at(&a->waits, span) : NULL;
	struct wait *copy = at ? malloc(sizeof(*copy)) : NULL;

	if (!copy)
		return;
	*copy = *w;
	free((struct wait *)(uintptr_t)*at);
	*at = (uint64_t)(uintptr_t)copy;
	a->nr_waits++;
}

int agents__call_begun(struct agents *a, struct thread *th, uint32_t probe,
		       const struct kprof_wire_begin_args *e, uint64_t time_ns)
{
	const struct catalog_row *row = probe_set__probe(a->opts.probes, probe)->row;
	struct agent_link *link = agents__link(a, th->target);
	struct wait w = {.pid = th->target->pid};
	uint64_t stream, event;
	int err = 0;

	/* the agent may have answered by now */
	if (link && link->step == LINK_ASKED)
		err = agent__tend(a, link, clock_mono_ns());
	if (err || !link || link->step != LINK_WITHOUT ||
	    !(a->types >> KPROF_ACTIVITY_GPU_APPROXIMATE & 1))
		return err;
	w.role = role_of(a, probe);
	if (w.role == DEVICE_ROLE_NONE || w.role == DEVICE_ROLE_ALLOCATE)
		return 0;
	stream = argument(row, e, "stream handle");
	event = w.role == DEVICE_ROLE_RECORD || w.role == DEVICE_ROLE_WAIT_EVENT
			? argument(row, e, "event handle")
			: 0;
	if (!link->approximate)
		err = approximate__new(recorder__store(a->opts.recorder), w.pid,
				       &link->approximate);
	if (err)
		return err;
	if (w.role == DEVICE_ROLE_RECORD)
		return approximate__record(link->approximate, event, stream, time_ns);
	if (!device_role_waits(w.role) || w.role == DEVICE_ROLE_COPY_AND_WAIT)
		approximate__work(link->approximate, w.role, stream, time_ns);
	w.handle = w.role == DEVICE_ROLE_WAIT_EVENT ? event : stream;
	if (device_role_waits(w.role))
		keep_wait(a, spans__number(th->spans), &w);
	return 0;
}

int agents__call_ended(struct agents *a, uint64_t span, uint64_t time_ns)
{
	struct agent_link *link;
	struct target *t;
	struct wait *w;
	uint64_t *at;
	int err = 0;

	if (!a->nr_waits || !span)
		return 0;
	at = map64__at(&a->waits, span);
	w = at ? (struct wait *)(uintptr_t)*at : NULL;
	if (!w)
		return 0;
	*at = 0;
	a->nr_waits--;
	t = targets__find(a->opts.targets, w->pid);
	link = t ? agents__link(a, t) : NULL;
	if (link && link->approximate)
		err = approximate__waited(link->approximate, w->role, w->handle, time_ns,
					  link->reason);
	free(w);
	return err;
}

void agents__calls_free(struct agents *a)
{
	struct map64 *waits = &a->waits;

	for (size_t i = 0; i < waits->cap; i++)
		free((struct wait *)(uintptr_t)waits->slots[i].value);
	map64__free(waits);
	map64__free(&a->roles);
}
