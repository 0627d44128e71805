// SPDX-License-Identifier: BSD-2-Clause
#include "util/ration.h"

#include "util/foreign.h"
#include "util/util.h"

/* Of what was not used, so much is left for later, in seconds. */
#define SPARE 1
/* What is more than that at first is there for so long. */
#define AT_ONCE_NS (2 * NSEC_PER_SEC)
/* A use that was refused for longer than that has been given up. */
#define WAITS_NS NSEC_PER_SEC
/* What is due each second or more seldom is done at the latest so long after that. */
#define LATER_NS NSEC_PER_SEC

void ration__begin(struct ration *r, uint64_t ns_a_second, uint64_t at_once_ns)
{
	*r = (struct ration){
		.ns_a_second = ns_a_second,
		.part = 1,
		.left_ns = (int64_t)at_once_ns,
		.until_ns = clock_mono_ns(),
	};
	r->first_ns = r->until_ns;
}

/* Whole ns: of a time that is too short for one, all counts the next time. */
static void pay_in(struct ration *r, uint64_t now_ns)
{
	double rate = (double)r->ns_a_second / (double)NSEC_PER_SEC * r->part;
	int64_t most_ns = (int64_t)(SPARE * rate * (double)NSEC_PER_SEC);
	int64_t ns = now_ns > r->until_ns ? (int64_t)((double)(now_ns - r->until_ns) * rate) : 0;

	if (r->left_ns >= most_ns || r->left_ns + ns >= most_ns) {
		if (r->left_ns < most_ns || now_ns >= r->first_ns + AT_ONCE_NS)
			r->left_ns = most_ns;
		r->until_ns = now_ns;
	} else if (ns) {
		r->left_ns += ns;
		r->until_ns += (uint64_t)((double)ns / rate);
	}
}

void ration__set(struct ration *r, uint64_t ns_a_second, double part)
{
	if (!r || !r->ns_a_second)
		return;
	pay_in(r, clock_mono_ns());
	r->ns_a_second = ns_a_second ? ns_a_second : 1;
	r->part = part;
}

static uint64_t used_ns(void)
{
	return clock_thread_ns() + foreign_used_ns();
}

void ration__rest_after(struct ration *r, uint64_t ns)
{
	if (!r || !r->ns_a_second)
		return;
	r->rests_ns = used_ns() + ns;
	r->resting = false;
}

bool ration__rests_within(const struct ration *r, uint64_t ns)
{
	return r && r->rests_ns && used_ns() + ns >= r->rests_ns;
}

bool ration__rests(const struct ration *r)
{
	return ration__rests_within(r, 0);
}

bool ration__is_due(const struct ration *r, uint64_t now_ns, uint64_t due_ns)
{
	return now_ns >= due_ns + (ration__rests(r) ? LATER_NS : 0);
}

/* Is another use waiting that was served before this one? */
static bool is_anothers_turn(const struct ration *r, enum ration_use use, uint64_t now_ns)
{
	for (int i = 0; i < RATION_USES; i++)
		if (r->refused_ns[i] && now_ns < r->refused_ns[i] + WAITS_NS &&
		    r->served_ns[i] < r->served_ns[use])
			return true;
	return false;
}

bool ration__lasts_at(struct ration *r, enum ration_use use, uint64_t now_ns)
{
	r->nr_asked++;
	pay_in(r, now_ns);
	if (!r->resting)
		r->resting = ration__rests(r);
	if (r->left_ns <= 0 || r->resting || is_anothers_turn(r, use, now_ns)) {
		r->refused_ns[use] = now_ns;
		return false;
	}
	r->nr_served++;
	r->refused_ns[use] = 0;
	r->served_ns[use] = now_ns;
	return true;
}

bool ration__lasts(struct ration *r, enum ration_use use)
{
	return !r || !r->ns_a_second || ration__lasts_at(r, use, clock_mono_ns());
}

void ration__open(struct ration *r)
{
	if (!r || !r->ns_a_second)
		return;
	r->begun_ns = clock_thread_ns();
	r->reader_ns = foreign_used_ns();
}

void ration__close(struct ration *r)
{
	uint64_t reader_ns;
	int64_t least_ns;

	if (!r || !r->ns_a_second)
		return;
	r->left_ns -= (int64_t)(clock_thread_ns() - r->begun_ns);
	reader_ns = foreign_used_ns();
	if (reader_ns > r->reader_ns) /* else there is another one, or none */
		r->left_ns -= (int64_t)(reader_ns - r->reader_ns);
	least_ns = -(int64_t)(RATION_DEBT * r->ns_a_second);
	if (r->left_ns < least_ns)
		r->left_ns = least_ns;
}
