// SPDX-License-Identifier: BSD-2-Clause
/*
 * What devices did, calls that only the device's tool interface saw, instants, counters: one more pass over the
 * details of a capture, whose records are numbered as model/correlate.h numbers them.
 */
#include "sink/perfetto/impl.h"

#include <errno.h>

#include "catalog/activity.h"
#include "util/error.h"

static bool is_drawn(const struct corr_act *act)
{
	return act->row != CORRELATE_NONE && !(act->flags & CORR_ACT_NO_LANE);
}

void pf_early_ends(struct pftrace *p)
{
	const struct corr_annotation *a;
	const struct corr_call *call;
	const struct corr_act *act;

	for (uint32_t i = 0; (act = correlate__act(p->corr, i)) && !p->err; i++)
		if (is_drawn(act))
			pf_slice_end(p, pf_row_track(p, act->row, act->lane), act->start_ns,
				     act->end_ns);
	for (size_t i = 0; (a = correlate__annotation(p->corr, i)) && !p->err; i++)
		if (a->lane < CORRELATE_MAX_LANES)
			pf_slice_end(p, pf_row_track(p, a->row, a->lane), a->start_ns, a->end_ns);
	for (uint32_t i = 0; (call = correlate__call(p->corr, i)) && !p->err; i++)
		if (corr_call_own_slice(call))
			pf_slice_end(p, pf_thread_track(call->thread), call->start_ns,
				     call->start_ns + call->dur_ns);
}

static void put_annotations(struct pftrace *p)
{
	const struct corr_annotation *a;

	for (size_t i = 0; (a = correlate__annotation(p->corr, i)) && !p->err; i++) {
		if (a->lane >= CORRELATE_MAX_LANES)
			continue;
		pf_event(p, PF_BEGIN, 0);
		pf_category(p, "gpu_user_annotation");
		pf_name(p, timeline__what(p->t, a->what - 1)->name);
		pf_arg_u64(p, "External id", a->span);
		pf_slice(p, pf_row_track(p, a->row, a->lane), a->start_ns, a->end_ns);
	}
}

static void put_act(struct pftrace *p, const struct store_record *r, const struct corr_act *act)
{
	const struct corr_call *call = correlate__call(p->corr, act->call);
	const struct trace_key *keys[STORE_MAX_ATTRS];
	struct trace_args more;

	if (!is_drawn(act))
		return;
	for (uint32_t i = 0; i < r->nr_attrs; i++) /* all first: the list of keys may move */
		pf_key(p, r->attrs[i].key);
	for (uint32_t i = 0; i < r->nr_attrs; i++)
		keys[i] = pf_key(p, r->attrs[i].key);
	trace__act_args(&p->tr, r, act, p->at_act, keys, &more);
	pf_event(p, PF_BEGIN, 0);
	pf_category(p, activity_by_id(r->activity.type)->name);
	pf_name_demangled(p, timeline__string(p->t, r->activity.name));
	pf_arg_computed(p, more.list, more.before);
	pf_arg_attrs(p, r->attrs, r->nr_attrs, TRACE_DEVICE);
	pf_arg_computed(p, more.list + more.before, more.nr - more.before);
	if (call && corr_call_drawn(call) && trace__flows_to(&p->tr, act))
		pf_flow_end(p, pf_flow_to(p->at_act));
	pf_slice(p, pf_row_track(p, act->row, act->lane), act->start_ns, act->end_ns);
}

static void put_call(struct pftrace *p, const struct store_record *r, const struct corr_call *call)
{
	if (!corr_call_own_slice(call))
		return;
	pf_event(p, PF_BEGIN, 0);
	pf_category(p, activity_by_id(r->api.type)->name);
	pf_name_api(p, timeline__string(p->t, r->api.name));
	if (call->op)
		pf_arg_u64(p, "External id", call->op);
	if (call->cbid)
		pf_arg_u64(p, "cbid", call->cbid);
	pf_arg_u64(p, "correlation", trace__call_id(&p->tr, call));
	/* What tells a call that no probe saw from the spans, which reports are made of. */
	pf_arg_string(p, "seen by", "agent");
	pf_arg_attrs(p, r->attrs, r->nr_attrs, TRACE_CALL);
	pf_flows_from(p, call);
	pf_slice(p, pf_thread_track(r->api.thread), call->start_ns, call->start_ns + call->dur_ns);
}

static void put_instant(struct pftrace *p, const struct store_record *r)
{
	const struct tl_what *what = timeline__what(p->t, r->instant.what - 1);

	if (p->opts->pid && timeline__thread(p->t, r->instant.thread)->pid != p->opts->pid)
		return;
	pf_event(p, PF_INSTANT, pf_thread_track(r->instant.thread));
	pf_category(p, what->category);
	pf_name(p, what->name);
	pf_arg_attrs(p, r->attrs, r->nr_attrs, TRACE_HOST);
	pf_put(p, r->instant.time_ns);
}

static void put_value(struct pftrace *p, const struct pf_counter *of, uint64_t mono_ns,
		      int64_t value)
{
	uint64_t track = pf_counter_track(p, of);

	pf_event(p, PF_COUNTER, track);
	p->event.has_counter_value = true;
	p->event.counter_value = value;
	pf_put(p, mono_ns);
}

static int put_computed(void *ctx, const struct trace_device *d, int64_t stream, const char *name,
			uint64_t mono_ns, int64_t value)
{
	struct pftrace *p = ctx;

	put_value(p,
		  &(struct pf_counter){.pid = d->pid, .device = d, .stream = stream, .name = name},
		  mono_ns, value);
	return p->err;
}

static void put_counter(struct pftrace *p, const struct store_record *r)
{
	pid_t pid = (pid_t)r->counter.pid;
	struct pf_counter of = {
		.pid = pid,
		.device = trace__device(&p->tr, pid, r->counter.device),
		.stream = -1,
		.name = timeline__string(p->t, r->counter.name),
	};

	if (!p->opts->pid || pid == p->opts->pid)
		put_value(p, &of, r->counter.time_ns, r->counter.value);
}

static int on_detail(void *ctx, const struct store_record *r)
{
	struct pftrace *p = ctx;
	int err = trace__progress(&p->tr);

	if (err)
		return err;
	switch (r->type) {
	case STORE_ACTIVITY:
		if (p->opts->pid && (pid_t)r->activity.pid != p->opts->pid)
			return 0;
		put_act(p, r, correlate__act(p->corr, p->at_act));
		p->at_act++;
		break;
	case STORE_API:
		if (p->opts->pid && timeline__thread(p->t, r->api.thread)->pid != p->opts->pid)
			return 0;
		put_call(p, r, correlate__call(p->corr, p->at_call++));
		break;
	case STORE_INSTANT:
		put_instant(p, r);
		break;
	case STORE_COUNTER:
		put_counter(p, r);
		break;
	default:
		break;
	}
	return p->err;
}

int pf_details(struct pftrace *p)
{
	int err;

	put_annotations(p);
	err = p->err;
	if (!err)
		err = timeline__details(p->t, on_detail, p);
	return err ? err : trace__counters(&p->tr, put_computed, p);
}
