// SPDX-License-Identifier: BSD-2-Clause
/*
 * In a recording of all processes: waits of those that no record has told of yet. The record of a
 * wait comes when that ends, and the kernel's programs tell of a process when one of its threads
 * leaves a CPU, or ends, thus a little later. Until then it is kept here.
 */
#include <errno.h>
#include <string.h>

#include "capture/session/session.h"
#include "util/util.h"

/* More than there are of processes that have a CPU at a time; those of others end here. */
#define EARLY_MOST 256

static void remove_at(struct vec *all, size_t i)
{
	struct kprof_wire_wait *waits = all->data;

	all->nr--;
	memmove(&waits[i], &waits[i + 1], (all->nr - i) * sizeof(*waits));
}

/* The thread has ended, or has another number: nobody will tell of it. */
static void forget_thread(struct kprof_session *s, uint64_t pid_tgid)
{
	const struct kprof_wire_wait *waits = s->early_waits.data;

	for (size_t i = s->early_waits.nr; i-- > 0;) {
		if (waits[i].h.pid_tgid != pid_tgid)
			continue;
		remove_at(&s->early_waits, i);
		s->unknown_pids++;
	}
}

int early__hold(struct kprof_session *s, const struct kprof_wire_hdr *h)
{
	const struct kprof_wire_wait *e = (const struct kprof_wire_wait *)h;
	struct kprof_wire_wait *own;

	/* it has just begun, did not wait for long, and ends: its process was not told of */
	if (s->machine && h->kind == KPROF_WIRE_WAIT && !e->w.told && !e->w.blocked_ns)
		return 0;
	if (!s->machine || h->kind != KPROF_WIRE_WAIT || e->w.flags & KPROF_WAIT_LAST) {
		s->unknown_pids++;
		if (h->kind == KPROF_WIRE_WAIT)
			forget_thread(s, h->pid_tgid);
		return 0;
	}
	if (s->early_waits.nr == EARLY_MOST) {
		remove_at(&s->early_waits, 0);
		s->unknown_pids++;
	}
	own = vec_push(&s->early_waits, sizeof(*own));
	if (!own)
		return -ENOMEM;
	*own = *e;
	return 0;
}

bool early__take(struct kprof_session *s, uint32_t pid, struct kprof_wire_wait *out)
{
	const struct kprof_wire_wait *waits = s->early_waits.data;

	for (size_t i = 0; i < s->early_waits.nr; i++) {
		if (waits[i].h.pid_tgid >> 32 != pid)
			continue;
		*out = waits[i];
		remove_at(&s->early_waits, i);
		return true;
	}
	return false;
}

void early__next_part(struct kprof_session *s)
{
	const struct kprof_wire_wait *waits = s->early_waits.data;

	for (size_t i = s->early_waits.nr; i-- > 0;) {
		if (!waits__is_before(s->waits, &waits[i]))
			continue;
		remove_at(&s->early_waits, i);
		s->unknown_pids++;
	}
}
