// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/busy.h"

#include "model/correlate/correlate.h"

struct busy {
	struct kprof_capture *t;
	struct correlate *corr;
	int (*fn)(void *ctx, pid_t pid, uint64_t start_ns, uint64_t end_ns);
	void *ctx;
};

/* Merges the activities of one device, which are sorted by start time. */
static int each_of(const struct busy *b, pid_t pid, const struct bulk *acts)
{
	uint64_t until_ns = 0;
	int err = 0;

	for (size_t i = 0; i < acts->nr && !err; i++) {
		const struct corr_act *act =
			correlate__act(b->corr, *(const uint32_t *)bulk__at(acts, i));
		uint64_t start_ns = act->start_ns, end_ns = act->end_ns;
		uint32_t beyond;

		if (!timeline__part(b->t, &start_ns, &end_ns, &beyond))
			continue;
		if (start_ns < until_ns)
			start_ns = until_ns;
		if (end_ns <= start_ns)
			continue;
		until_ns = end_ns;
		err = b->fn(b->ctx, pid, start_ns, end_ns);
	}
	return err;
}

int busy__each(struct kprof_capture *t,
	       int (*fn)(void *ctx, pid_t pid, uint64_t start_ns, uint64_t end_ns), void *ctx)
{
	struct busy b = {.t = t, .fn = fn, .ctx = ctx};
	const struct corr_row *row;
	int err = correlate__new(t, 0, &b.corr);

	for (size_t i = 0; !err && (row = correlate__row(b.corr, i)); i++) {
		struct bulk acts;

		if (!correlate__first_of_device(b.corr, i))
			continue;
		err = correlate__of_device(b.corr, row->pid, row->device, &acts);
		if (!err)
			err = each_of(&b, row->pid, &acts);
		bulk__free(&acts);
	}
	correlate__free(b.corr);
	return err;
}
