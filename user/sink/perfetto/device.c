// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes what devices did, calls that only the device's tool interface saw, instants, and counters.
 */
#include "sink/perfetto/impl.h"

#include "catalog/activity.h"

void pf_early_ends(struct pftrace *p)
{
	const struct corr_annotation *a;
	const struct corr_call *call;
	const struct corr_act *act;

	for (uint32_t i = 0; (act = correlate__act(p->corr, i)) && !p->err; i++)
		if (trace__drawn(act))
			pf_slice_end(p, pf_row_track(p, act->row, act->lane), act->start_ns,
				     act->end_ns);
	for (size_t i = 0; (a = correlate__annotation(p->corr, i)) && !p->err; i++)
		if (a->lane < CORRELATE_MAX_LANES)
			pf_slice_end(p, pf_row_track(p, a->row, a->lane), a->start_ns, a->end_ns);
	for (uint32_t i = 0; (call = correlate__call(p->corr, i)) && !p->err; i++)
		if (corr_call_own_slice(call))
			pf_slice_end(p, pf_thread_track(call->thread), call->start_ns,
				     corr_call_end_ns(call));
}

static void put_annotations(struct pftrace *p)
{
	const struct corr_annotation *a;

	for (size_t i = 0; (a = correlate__annotation(p->corr, i)) && !p->err; i++) {
		if (a->lane >= CORRELATE_MAX_LANES)
			continue;
		pf_event(p, PF_BEGIN, 0);
		pf_category(p, "gpu_user_annotation");
		pf_name(p, timeline__description(p->t, a->description - 1)->name);
		pf_arg_u64(p, "External id", a->span);
		pf_slice(p, pf_row_track(p, a->row, a->lane), a->start_ns, a->end_ns);
	}
}

static int put_act(void *ctx, const struct store_record *r, const struct corr_act *act,
		   uint32_t number)
{
	struct pftrace *p = ctx;
	const struct corr_call *call = correlate__call(p->corr, act->call);
	struct trace_args more;

	trace__act_args(&p->tr, r, act, number, &more);
	pf_event(p, PF_BEGIN, 0);
	pf_category(p, activity_by_id(r->activity.type)->name);
	pf_name_demangled(p, timeline__string(p->t, r->activity.name));
	pf_arg_computed(p, more.list, more.before);
	pf_arg_attrs(p, r->attrs, r->nr_attrs, TRACE_DEVICE);
	pf_arg_computed(p, more.list + more.before, more.nr - more.before);
	pf_arg_attrs(p, more.collective, more.nr_collective, TRACE_DEVICE);
	if (call && corr_call_drawn(call) && trace__flows_to(&p->tr, act))
		pf_flow_end(p, pf_flow_to(number));
	pf_slice(p, pf_row_track(p, act->row, act->lane), act->start_ns, act->end_ns);
	return p->err;
}

static int put_call(void *ctx, const struct store_record *r, const struct corr_call *call)
{
	struct pftrace *p = ctx;

	pf_event(p, PF_BEGIN, 0);
	pf_category(p, activity_by_id(r->api.type)->name);
	pf_name_api(p, timeline__string(p->t, r->api.name));
	if (call->op)
		pf_arg_u64(p, "External id", call->op);
	if (call->cbid)
		pf_arg_u64(p, "cbid", call->cbid);
	pf_arg_u64(p, "correlation", trace__call_id(&p->tr, call));
	/* Marks a call that no probe saw. Reports are made of spans, which such a call is not. */
	pf_arg_string(p, "seen by", "agent");
	pf_arg_attrs(p, r->attrs, r->nr_attrs, TRACE_CALL);
	pf_flows_from(p, call);
	pf_slice(p, pf_thread_track(r->api.thread), call->start_ns, corr_call_end_ns(call));
	return p->err;
}

static int put_instant(void *ctx, const struct store_record *r,
		       const struct tl_description *description)
{
	struct pftrace *p = ctx;

	pf_event(p, PF_INSTANT, pf_thread_track(r->instant.thread));
	pf_category(p, description->category);
	pf_name(p, description->name);
	pf_arg_attrs(p, r->attrs, r->nr_attrs, TRACE_HOST);
	pf_put(p, r->instant.time_ns);
	return p->err;
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

static int put_counter(void *ctx, const struct store_record *r, const struct trace_device *d)
{
	struct pftrace *p = ctx;
	struct pf_counter of = {
		.pid = (pid_t)r->counter.pid,
		.device = d,
		.stream = -1,
		.name = timeline__string(p->t, r->counter.name),
	};

	put_value(p, &of, r->counter.time_ns, r->counter.value);
	return p->err;
}

static int put_memory(void *ctx, pid_t pid, const char *name, uint64_t mono_ns, int64_t bytes)
{
	struct pftrace *p = ctx;

	put_value(p, &(struct pf_counter){.pid = pid, .stream = -1, .name = name}, mono_ns, bytes);
	return p->err;
}

int pf_details(struct pftrace *p)
{
	static const struct trace_details details = {put_act, put_call, put_instant, put_counter,
						     put_memory};
	int err;

	put_annotations(p);
	err = p->err;
	if (!err)
		err = trace__details(&p->tr, &details, p);
	return err ? err : trace__counters(&p->tr, put_computed, p);
}
