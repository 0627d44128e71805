// SPDX-License-Identifier: BSD-2-Clause
/* The processes that have Kineto inside and poll, and the configs that wait for them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dynolog/impl.h"

#define SILENT_NS (60 * NSEC_PER_SEC) /* after which the reference daemon forgets a process */

struct entry *registry__find(const struct registry *r, pid_t pid)
{
	for (size_t i = 0; i < r->nr; i++)
		if (r->all[i]->p.pid == pid)
			return r->all[i];
	return NULL;
}

static bool has_room(const struct registry *r, uid_t uid)
{
	size_t of_user = 0;

	for (size_t i = 0; i < r->nr; i++)
		of_user += r->all[i]->p.uid == uid;
	return r->nr < r->most && (!uid || of_user < r->most_of_user);
}

int registry__add(struct registry *r, const struct entry *e, struct entry **out)
{
	struct entry *copy;

	if (!has_room(r, e->p.uid))
		return -ENOSPC;
	copy = malloc(sizeof(*copy));
	if (!copy || vec_grow((void **)&r->all, &r->cap, r->nr, sizeof(struct entry *))) {
		free(copy);
		return -ENOMEM;
	}
	*copy = *e;
	r->all[r->nr++] = copy;
	*out = copy;
	return 0;
}

static void drop(struct entry *e)
{
	handed_drop(e->waits);
	free(e);
}

void registry__remove(struct registry *r, struct entry *e)
{
	size_t i = 0;

	while (i < r->nr && r->all[i] != e)
		i++;
	if (i == r->nr)
		return;
	memmove(&r->all[i], &r->all[i + 1], (r->nr - i - 1) * sizeof(struct entry *));
	r->nr--;
	drop(e);
}

void registry__free(struct registry *r)
{
	for (size_t i = 0; i < r->nr; i++)
		drop(r->all[i]);
	free(r->all);
}

/* ---- configs that wait ---- */

struct handed *handed_new(const char *text, uint64_t id)
{
	int n = snprintf(NULL, 0, "%s\nREQUEST_TRACE_ID=%llu\n", text, (unsigned long long)id);
	struct handed *h = malloc(sizeof(*h) + (size_t)n + 1);

	if (!h)
		return NULL;
	h->uses = 1;
	h->bytes = (size_t)n;
	snprintf(h->text, (size_t)n + 1, "%s\nREQUEST_TRACE_ID=%llu\n", text,
		 (unsigned long long)id);
	return h;
}

void handed_drop(struct handed *h)
{
	if (h && !--h->uses)
		free(h);
}

int entry__hand(struct entry *e, struct handed *h)
{
	if (e->waits || !(e->takes & TAKES_ACTIVITIES))
		return -EBUSY;
	h->uses++;
	e->waits = h;
	return 0;
}

void entry__taken(struct entry *e)
{
	handed_drop(e->waits);
	e->waits = NULL;
}

const struct kprof_dynolog_process *entry__shown(struct entry *e)
{
	e->p.idle = e->takes & TAKES_ACTIVITIES;
	e->p.waiting = e->waits;
	return &e->p;
}

/* ---- those that are gone ---- */

void forget(struct kprof_dynolog *d, struct entry *e)
{
	if (d->o.seen)
		d->o.seen(d->o.ctx, entry__shown(e), true);
	registry__remove(&d->registry, e);
}

void forget_silent(struct kprof_dynolog *d)
{
	uint64_t now_ns = clock_mono_ns();

	for (size_t i = d->registry.nr; i-- > 0;) {
		struct entry *e = d->registry.all[i];

		if (now_ns > e->p.seen_ns && now_ns - e->p.seen_ns > SILENT_NS)
			forget(d, e);
	}
}
