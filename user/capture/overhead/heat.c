// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/overhead/impl.h"

/* Pairs of a probe and a return site that are kept. */
#define MOST_USES 65536

int heat__new(struct heat *h)
{
	h->probes = calloc(KPROF_WIRE_MAX_PROBES, sizeof(*h->probes));
	return h->probes ? 0 : -ENOMEM;
}

void heat__free(struct heat *h)
{
	free(h->probes);
	map64__free(&h->uses);
	memset(h, 0, sizeof(*h));
}

void heat__forget(struct heat *h, uint64_t now_ns)
{
	if (!h->probes)
		return;
	memset(h->probes, 0, KPROF_WIRE_MAX_PROBES * sizeof(*h->probes));
	h->hits = 0;
	h->since_ns = now_ns;
}

void overhead__hit(struct overhead *o, uint32_t probe, bool may_go, bool call)
{
	struct dropped *dropped = bursts__of(o, probe);
	struct heat *h = &o->heat;

	if (dropped)
		dropped->calls += may_go && call;
	if (dropped || !h->probes || probe >= KPROF_WIRE_MAX_PROBES)
		return;
	h->hits++;
	h->probes[probe].hits += may_go;
	h->probes[probe].calls += may_go && call;
}

static void note_use(struct heat *h, uint32_t probe, uint32_t site)
{
	uint64_t key = (uint64_t)site << 32 | probe, *use;

	if (h->uses_full || map64__get(&h->uses, key))
		return;
	use = h->uses.used < MOST_USES ? map64__at(&h->uses, key) : NULL;
	if (use)
		*use = 1;
	else
		h->uses_full = true;
}

void overhead__ended(struct overhead *o, uint32_t probe, uint32_t site, uint64_t lasted_ns)
{
	struct dropped *dropped = bursts__of(o, probe);

	if (dropped) {
		dropped->timed++;
		dropped->timed_ns += lasted_ns;
	}
	if (dropped || !o->heat.probes || probe >= KPROF_WIRE_MAX_PROBES)
		return;
	if (site)
		note_use(&o->heat, probe, site);
	o->heat.probes[probe].timed++;
	o->heat.probes[probe].timed_ns += lasted_ns;
	o->heat.probes[probe].nr_short += lasted_ns < o->heat.short_ns;
}

int heat__probes(const struct heat *h, struct choose_probe **out, size_t *nr)
{
	struct choose_probe *all;

	*nr = 0;
	for (uint32_t i = 0; i < KPROF_WIRE_MAX_PROBES; i++)
		*nr += h->probes[i].hits > 0;
	all = *out = calloc(*nr + 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < KPROF_WIRE_MAX_PROBES; i++) {
		const struct heat_probe *p = &h->probes[i];

		if (p->hits)
			*all++ = (struct choose_probe){.probe = i,
						       .hits = p->hits,
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

/* The sites of dropped probes, or of those that are not: sets their bits, or clears them. */
static void mark_sites(const struct heat *h, const uint64_t *dropped, bool of_dropped,
		       uint64_t *sites)
{
	for (size_t i = 0; i < h->uses.cap; i++) {
		uint64_t key = h->uses.slots[i].tag - 1;
		uint32_t site = (uint32_t)(key >> 32);

		if (!h->uses.slots[i].value || has_bit(dropped, (uint32_t)key) != of_dropped)
			continue;
		if (of_dropped)
			sites[site / 64] |= 1ull << (site & 63);
		else
			sites[site / 64] &= ~(1ull << (site & 63));
	}
}

void heat__idle_sites(const struct heat *h, const uint64_t *dropped, uint64_t *sites)
{
	if (h->uses_full)
		return;
	mark_sites(h, dropped, true, sites);
	mark_sites(h, dropped, false, sites);
}
