// SPDX-License-Identifier: BSD-2-Clause
#include "capture/overhead/ledger.h"

#include <string.h>

static const struct ledger_reading *back(const struct ledger *l, uint32_t i)
{
	return &l->readings[(l->next + LEDGER_READINGS - 1 - i) % LEDGER_READINGS];
}

void ledger__add(struct ledger *l, const struct ledger_reading *r)
{
	l->readings[l->next] = *r;
	l->next = (l->next + 1) % LEDGER_READINGS;
	if (l->nr < LEDGER_READINGS)
		l->nr++;
}

void ledger__restart(struct ledger *l)
{
	if (l->nr)
		l->nr = 1;
}

/*
 * From the oldest reading of the time before, or the one just before that, among the i-th from the
 * end and older ones.
 */
static bool since(const struct ledger *l, uint32_t i, const struct ledger_reading *to,
		  uint64_t span_ns, struct ledger_reading *out)
{
	const struct ledger_reading *from;

	if (l->nr <= i)
		return false;
	while (i + 1 < l->nr && back(l, i)->time_ns + span_ns > to->time_ns)
		i++;
	from = back(l, i);
	memset(out, 0, sizeof(*out));
	out->time_ns = to->time_ns - from->time_ns;
	out->used_ns = to->used_ns - from->used_ns;
	if (out->used_ns < out->time_ns)
		out->used_ns = out->time_ns;
	for (int part = 0; part < LEDGER_PARTS; part++)
		out->part_ns[part] = to->part_ns[part] - from->part_ns[part];
	for (int cause = 0; cause < LEDGER_CAUSES; cause++)
		out->cause_ns[cause] = to->cause_ns[cause] - from->cause_ns[cause];
	out->paced_ns = to->paced_ns - from->paced_ns;
	out->switches = to->switches - from->switches;
	return out->time_ns;
}

bool ledger__last(const struct ledger *l, struct ledger_reading *out)
{
	return since(l, 1, back(l, 0), LEDGER_SPAN_NS, out);
}

bool ledger__until(const struct ledger *l, const struct ledger_reading *to,
		   struct ledger_reading *out)
{
	return since(l, 0, to, LEDGER_SPAN_NS, out);
}

uint64_t ledger_cost(const struct ledger_reading *r)
{
	uint64_t sum = 0;

	for (int part = 0; part < LEDGER_PARTS; part++)
		sum += r->part_ns[part];
	return sum;
}

uint64_t ledger_cost_of(const struct ledger_reading *r, enum ledger_cause cause)
{
	double all_ns = 0, own_ns = (double)r->part_ns[LEDGER_OWN];

	for (int i = 0; i < LEDGER_CAUSES; i++)
		all_ns += (double)r->cause_ns[i];
	if (all_ns <= 0)
		return 0;
	return r->cause_ns[cause] + (uint64_t)((double)r->cause_ns[cause] / all_ns * own_ns);
}

void ledger_go_on(struct ledger_reading *difference)
{
	struct ledger_reading *d = difference;
	double times = (double)LEDGER_SPAN_NS / (double)d->time_ns;

	if (times <= 1)
		return;
	d->time_ns = LEDGER_SPAN_NS;
	d->used_ns = (uint64_t)((double)d->used_ns * times);
	d->paced_ns = (uint64_t)((double)d->paced_ns * times);
	d->switches = (uint64_t)((double)d->switches * times);
	for (int part = 0; part < LEDGER_PARTS; part++)
		d->part_ns[part] = (uint64_t)((double)d->part_ns[part] * times);
	for (int cause = 0; cause < LEDGER_CAUSES; cause++)
		d->cause_ns[cause] = (uint64_t)((double)d->cause_ns[cause] * times);
}

bool ledger__lately(const struct ledger *l, uint64_t span_ns, struct ledger_reading *second)
{
	if (!since(l, 1, back(l, 0), span_ns, second) || second->time_ns < span_ns)
		return false;
	ledger_go_on(second);
	return true;
}

void ledger__dearer(const struct ledger *l, uint64_t span_ns, struct ledger_reading *second)
{
	struct ledger_reading now;

	if (!ledger__lately(l, span_ns, &now))
		return;
	if (ledger_share(&now, ledger_cost(&now)) > ledger_share(second, ledger_cost(second)))
		*second = now;
}

double ledger_used(const struct ledger_reading *difference)
{
	double used_ns = (double)difference->used_ns;

	if (difference->time_ns && difference->time_ns < LEDGER_SPAN_NS)
		used_ns *= (double)LEDGER_SPAN_NS / (double)difference->time_ns;
	return used_ns;
}

double ledger_share(const struct ledger_reading *difference, uint64_t cost_ns)
{
	double used_ns = ledger_used(difference);

	return used_ns > 0 ? (double)cost_ns / used_ns : 0;
}
