// SPDX-License-Identifier: BSD-2-Clause
/*
 * Calls that have returned without their end being seen, as the kernel's programs found it from the
 * stack before the thread's next event (bpf/frames.h): they are closed before that event, which
 * would otherwise seem to lie inside them.
 */
#include <errno.h>

#include "capture/session/session.h"

#define MOST_SLOTS 512

static bool is_slot(void *ctx, uint64_t ret_slot)
{
	return ret_slot == *(const uint64_t *)ctx;
}

int returned__gone(struct kprof_session *s, struct thread *th, const struct kprof_wire_gone *e)
{
	uint64_t slot = e->slot;

	return spans__returned(s->spans, th->spans, e->h.time_ns, e->h.sp, is_slot, &slot);
}

struct place {
	struct kprof_session *session;
	struct target *target;
};

static int code_at(void *ctx, uint64_t ip, struct copied_code *out)
{
	const struct place *p = ctx;
	const struct proc_map *map = targets__map(p->session->targets, p->target, ip);
	uint64_t vaddr;

	if (!map || !(map->flags & PROC_MAP_FILE))
		return -ENOENT;
	out->elf = probe_set__elf(p->session->probes, p->target, map);
	if (!out->elf)
		return -ENOENT;
	vaddr = elffile__code_vaddr(out->elf, map->offset);
	if (vaddr == UINT64_MAX)
		return -ENOENT;
	out->start = map->start;
	out->end = map->end;
	out->bias = map->start - vaddr;
	return 0;
}

/* The calls that go on, as a walk of the stack has found them. */
struct going_on {
	uint64_t slots[MOST_SLOTS]; /* in order of address */
	size_t nr;
	uint64_t from, reached; /* the part of the stack that the walk has covered */
};

static bool is_over(void *ctx, uint64_t ret_slot)
{
	const struct going_on *g = ctx;

	if (ret_slot < g->from || ret_slot >= g->reached)
		return false;
	for (size_t i = 0; i < g->nr; i++)
		if (g->slots[i] == ret_slot)
			return false;
	return true;
}

int returned__walk(struct kprof_session *s, struct thread *th, const struct kprof_wire_copy *e)
{
	struct place place = {.session = s, .target = th->target};
	struct copied_stack stack = {
		.sp = e->h.sp,
		.bp = e->bp,
		.bx = e->bx,
		.bytes = e->data,
		.nr_bytes = e->bytes,
		.ctx = &place,
		.code = code_at,
	};
	struct going_on g = {.from = e->h.sp};

	if (!s->walker && copied_walker__new(&s->walker))
		return -ENOMEM;
	g.nr = copied_walker__slots(s->walker, &stack, g.slots, MOST_SLOTS, &g.reached);
	return spans__returned(s->spans, th->spans, e->h.time_ns, e->h.sp, is_over, &g);
}
