// SPDX-License-Identifier: BSD-2-Clause
#include "sink/profile/sums.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/store.h"
#include "util/error.h"
#include "util/util.h"

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "no memory for sums of samples");
}

static unsigned int variant_of(const struct store_record *r)
{
	uint32_t flags = r->sample.flags;
	unsigned int variant = stack_reach_of(flags) == STACK_INCOMPLETE ? SUM_INCOMPLETE : 0;

	variant |= stack_off_cpu(flags) ? SUM_OFF_CPU : 0;
	if (r->sample.reason && !strcmp(r->sample.reason, "run queue"))
		variant |= SUM_RUN_QUEUE;
	if (flags & KPROF_SAMPLE_GIL)
		variant |= SUM_GIL;
	else if (flags & KPROF_SAMPLE_GIL_WAIT)
		variant |= SUM_GIL_WAIT;
	return variant;
}

static int is_wanted(struct sums *s, uint32_t thread, bool *wanted)
{
	uint64_t *known;

	*wanted = true;
	if (!s->pids.used)
		return 0;
	known = map64__at(&s->by_thread, thread);
	if (!known)
		return no_memory();
	if (!*known)
		*known =
			map64__get(&s->pids, (uint64_t)timeline__thread(s->t, thread)->pid) ? 1 : 2;
	*wanted = *known == 1;
	return 0;
}

static int add_sample(void *ctx, const struct store_record *r)
{
	struct sums *s = ctx;
	unsigned int variant = variant_of(r);
	struct sum *sum;
	uint64_t *slot;
	bool wanted;
	int err = is_wanted(s, r->sample.thread, &wanted);

	if (err || !wanted)
		return err;
	slot = map64__at(&s->by_stack[variant], (uint64_t)r->sample.thread << 32 | r->sample.stack);
	if (!slot || vec_grow((void **)&s->list, &s->cap, s->nr, sizeof(*s->list)))
		return no_memory();
	if (!*slot) {
		s->list[s->nr] = (struct sum){.thread = r->sample.thread,
					      .stack = r->sample.stack,
					      .variant = variant,
					      .reason = r->sample.reason};
		*slot = ++s->nr;
	}
	sum = &s->list[*slot - 1];
	if (sum->reason != r->sample.reason)
		sum->reason = NULL;
	sum->samples++;
	add_capped(&sum->weight_ns, r->sample.weight_ns);
	return 0;
}

int sums__add(struct sums *s, const struct kprof_export_opts *opts)
{
	for (size_t i = 0; i < opts->nr_pids; i++) {
		uint64_t *pid = map64__at(&s->pids, (uint64_t)opts->pids[i]);

		if (!pid)
			return no_memory();
		*pid = 1;
	}
	return timeline__samples(s->t, opts->pid, add_sample, s);
}

const char *sum_note(const struct sum *sum, char note[SUM_NOTE_BYTES])
{
	snprintf(note, SUM_NOTE_BYTES, "[%s]", sum->reason ? sum->reason : "off CPU");
	return note;
}

void sums__free(struct sums *s)
{
	for (size_t i = 0; i < SUM_VARIANTS; i++)
		map64__free(&s->by_stack[i]);
	map64__free(&s->pids);
	map64__free(&s->by_thread);
	free(s->list);
}
