// SPDX-License-Identifier: BSD-2-Clause
/*
 * The pass over what a capture has beside spans and samples. Activities and API records are
 * numbered in the order of the file, as in model/correlate: those of the chosen process, if there
 * is one.
 */
#include "sink/trace/trace.h"

struct pass {
	struct trace *tr;
	const struct trace_details *to;
	void *ctx;
	uint32_t nr_acts, nr_calls; /* passed so far */
	struct trace_memory memory;
};

static int on_act(struct pass *p, const struct store_record *r)
{
	uint32_t number = p->nr_acts++;
	const struct corr_act *act = correlate__act(p->tr->corr, number);

	return trace__drawn(act) ? p->to->act(p->ctx, r, act, number) : 0;
}

static int on_call(struct pass *p, const struct store_record *r)
{
	const struct corr_call *call = correlate__call(p->tr->corr, p->nr_calls++);

	return corr_call_own_slice(call) ? p->to->call(p->ctx, r, call) : 0;
}

static int on_counter(struct pass *p, const struct store_record *r)
{
	pid_t pid = (pid_t)r->counter.pid;

	return p->to->counter(p->ctx, r, trace__device(p->tr, pid, r->counter.device));
}

static int on_instant(struct pass *p, const struct store_record *r)
{
	int err = p->to->instant(p->ctx, r,
				 timeline__description(p->tr->t, r->instant.description - 1));

	return err ? err : trace__memory(p->tr, &p->memory, r, p->to, p->ctx);
}

static int on_detail(void *ctx, const struct store_record *r)
{
	struct pass *p = ctx;

	switch (r->type) {
	case STORE_ACTIVITY:
		return on_act(p, r);
	case STORE_API:
		return on_call(p, r);
	case STORE_INSTANT:
		return on_instant(p, r);
	case STORE_COUNTER:
		return on_counter(p, r);
	default:
		return 0;
	}
}

int trace__details(struct trace *tr, const struct trace_details *to, void *ctx)
{
	struct pass p = {.tr = tr, .to = to, .ctx = ctx};
	int err = timeline__details(tr->t, tr->opts->pid, on_detail, &p);

	return trace__memory_end(&p.memory, to, ctx, err);
}
