// SPDX-License-Identifier: BSD-2-Clause
/* The threads of a recording's processes. */
#include <errno.h>
#include <stdlib.h>

#include "capture/target/target.h"
#include "util/util.h"

#define NR_CACHE 256

struct threads {
	struct thread *list;
	/* by hash of pid_tgid, because every event looks its thread up */
	struct thread *cache[NR_CACHE];
	uint32_t nr_ever;
};

int threads__new(struct threads **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void threads__free(struct threads *ths)
{
	struct thread *th, *next;

	if (!ths)
		return;
	THREADS_EACH (ths, th, next)
		threads__remove(ths, th);
	free(ths);
}

static struct thread **cached(struct threads *ths, uint64_t pid_tgid)
{
	return &ths->cache[hash64(pid_tgid) % NR_CACHE];
}

struct thread *threads__find(struct threads *ths, uint64_t pid_tgid)
{
	struct thread **recent = cached(ths, pid_tgid);
	struct thread *th;

	if (*recent && (*recent)->pid_tgid == pid_tgid)
		return *recent;
	HASH_FIND(hh, ths->list, &pid_tgid, sizeof(pid_tgid), th);
	if (th)
		*recent = th;
	return th;
}

struct thread *threads__add(struct threads *ths, struct target *t, uint64_t pid_tgid)
{
	struct thread *th = calloc(1, sizeof(*th));

	if (!th)
		return NULL;
	th->pid_tgid = pid_tgid;
	th->target = t;
	th->index = ths->nr_ever;
	HASH_ADD(hh, ths->list, pid_tgid, sizeof(th->pid_tgid), th);
	if (!th->hh.tbl) {
		free(th);
		return NULL;
	}
	ths->nr_ever++;
	return th;
}

void threads__remove(struct threads *ths, struct thread *th)
{
	struct thread **recent = cached(ths, th->pid_tgid);

	if (*recent == th)
		*recent = NULL;
	HASH_DEL(ths->list, th);
	free(th);
}

struct thread *threads__first(const struct threads *ths)
{
	return ths->list;
}

size_t threads__nr(const struct threads *ths)
{
	return HASH_COUNT(ths->list);
}

uint32_t threads__nr_ever(const struct threads *ths)
{
	return ths->nr_ever;
}
