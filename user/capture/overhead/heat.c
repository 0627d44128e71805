// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/overhead/impl.h"

/* As many as there can be return sites (capture/probe/return_sites.c). */
#define MOST_SITES (65536 + 1)
/* Pairs of a probe and a return site that are told apart. */
#define MOST_USES 65536

int heat__new(struct heat *h)
{
	h->probes = calloc(KPROF_WIRE_MAX_PROBES, sizeof(*h->probes));
	h->returns = calloc(MOST_SITES, sizeof(*h->returns));
	if (!h->probes || !h->returns)
		return -ENOMEM;
	h->nr_sites = MOST_SITES;
	return 0;
}

void heat__free(struct heat *h)
{
	free(h->probes);
	free(h->returns);
	map64__free(&h->uses);
	memset(h, 0, sizeof(*h));
}

void heat__forget(struct heat *h, uint64_t now_ns)
{
	if (!h->probes)
		return;
	memset(h->probes, 0, KPROF_WIRE_MAX_PROBES * sizeof(*h->probes));
	memset(h->returns, 0, h->nr_sites * sizeof(*h->returns));
	map64__free(&h->uses);
	h->since_ns = now_ns;
}

void overhead__hit(struct overhead *o, uint32_t probe, uint32_t site)
{
	struct heat *h = &o->heat;
	uint64_t *uses;

	if (!h->probes || probe >= KPROF_WIRE_MAX_PROBES)
		return;
	h->probes[probe].calls++;
	if (!site || h->uses.used >= MOST_USES)
		return;
	uses = map64__at(&h->uses, (uint64_t)site << 32 | probe);
	if (uses)
		++*uses;
}

void overhead__returned(struct overhead *o, uint32_t site)
{
	if (o->heat.probes && site < o->heat.nr_sites)
		o->heat.returns[site]++;
}

void overhead__ended(struct overhead *o, uint32_t probe, uint64_t lasted_ns)
{
	if (!o->heat.probes || probe >= KPROF_WIRE_MAX_PROBES)
		return;
	o->heat.probes[probe].timed++;
	o->heat.probes[probe].timed_ns += lasted_ns;
	o->heat.probes[probe].nr_short += lasted_ns < o->heat.short_ns;
}

int heat__probes(const struct heat *h, struct choose_probe **out, size_t *nr)
{
	struct choose_probe *all;

	*nr = 0;
	for (uint32_t i = 0; i < KPROF_WIRE_MAX_PROBES; i++)
		*nr += h->probes[i].calls > 0;
	all = *out = calloc(*nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < KPROF_WIRE_MAX_PROBES; i++) {
		const struct heat_probe *p = &h->probes[i];

		if (p->calls)
			*all++ = (struct choose_probe){.probe = i,
						       .calls = p->calls,
						       .timed = p->timed,
						       .timed_ns = p->timed_ns,
						       .nr_short = p->nr_short};
	}
	return 0;
}

static bool has_bit(const uint64_t *bits, uint32_t i)
{
	return bits[i / 64] >> (i & 63) & 1;
}

void heat__idle_sites(const struct heat *h, const uint64_t *dropped, uint64_t *sites)
{
	for (uint32_t i = 0; i < h->nr_sites; i++)
		if (h->returns[i])
			sites[i / 64] |= 1ull << (i & 63);
	for (size_t i = 0; i < h->uses.cap; i++) {
		uint64_t key = h->uses.slots[i].tag - 1;
		uint32_t site = (uint32_t)(key >> 32);

		if (h->uses.slots[i].value && site < h->nr_sites &&
		    !has_bit(dropped, (uint32_t)key))
			sites[site / 64] &= ~(1ull << (site & 63));
	}
}
