// SPDX-License-Identifier: BSD-2-Clause
/*
 * The host's spans. A begin has what is known of the span by then, and the end has the rest;
 * readers merge both.
 */
#include "sink/perfetto/impl.h"

#include <errno.h>

#include "util/order.h"
#include "util/util.h"

static int by_span(const void *a, const void *b, void *ctx)
{
	const struct correlate *corr = ctx;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;

	if (correlate__call(corr, i)->span != correlate__call(corr, j)->span)
		return order_u64(correlate__call(corr, i)->span, correlate__call(corr, j)->span);
	return order_u64(i, j);
}

/*
 * Finds the calls of spans beforehand: flow arrows start at a call's begin, when
 * correlate__of_span() can not be used yet.
 */
static int find_span_calls(struct pftrace *p)
{
	const struct corr_call *call;
	uint32_t *added;

	p->span_calls.size = sizeof(*added);
	for (uint32_t i = 0; (call = correlate__call(p->corr, i)); i++) {
		if (!call->span)
			continue;
		added = bulk__push(&p->span_calls);
		if (!added)
			return pf_no_memory(p);
		*added = i;
	}
	if (bulk__sort(&p->span_calls, 0, p->span_calls.nr, by_span, p->corr))
		return pf_no_memory(p);
	return 0;
}

void pf_flows_from(struct pftrace *p, const struct corr_call *call)
{
	const struct corr_act *act;

	for (uint32_t i = call->first; (act = correlate__act(p->corr, i)); i = act->next)
		if (trace__flows_to(&p->tr, act))
			pf_flow(p, pf_flow_to(i));
}

/* Adds what is known of a call. op: id of the operator or annotation around it; 0: none. */
static void add_call(struct pftrace *p, const struct tl_span *s, uint64_t op)
{
	const struct corr_call *call, *primary = NULL;

	while (p->at_span_call < p->span_calls.nr) {
		call = correlate__call(
			p->corr, *(const uint32_t *)bulk__at(&p->span_calls, p->at_span_call));
		if (call->span > s->id)
			break;
		p->at_span_call++;
		if (call->span < s->id)
			continue;
		if (call->flags & CORR_CALL_PRIMARY && !primary)
			primary = call;
		pf_flows_from(p, call);
	}
	if (op)
		pf_arg_u64(p, "External id", op);
	if (primary && primary->cbid)
		pf_arg_u64(p, "cbid", primary->cbid);
	if (primary && primary->correlation)
		pf_arg_u64(p, "correlation", trace__call_id(&p->tr, primary));
}

static void add_module(struct pftrace *p, const struct tl_span *s)
{
	const struct tl_nn *nn = s->description->nn;

	pf_arg_u64(p, "Python id", s->id);
	if (s->module_id)
		pf_arg_u64(p, "Python parent id", s->module_id);
	pf_arg_u64(p, "Python module id", nn->number);
	if (*nn->path) {
		pf_arg_string(p, "Module path", nn->path);
		pf_arg_string(p, "Outermost module", nn->outermost);
	}
}

/* The arrow between an operator and the autograd node that it has made. */
static void add_flows(struct pftrace *p, const struct tl_span *s)
{
	uint64_t from = trace__flow_from(&p->tr, s->id), to = trace__flow_to(&p->tr, s->id);

	if (from)
		pf_flow(p, PF_FLOW_NODES | from);
	if (to)
		pf_flow_end(p, PF_FLOW_NODES | to);
}

static int begin_span(void *ctx, const struct tl_span *s, void *parent_data, void **data)
{
	struct pftrace *p = ctx;
	char modules[TRACE_MODULES_BYTES];

	*data = !s->description->nn && correlate__is_op(p->corr, s->description)
			? (void *)(uintptr_t)s->id
			: parent_data;
	pf_event(p, PF_BEGIN, pf_thread_track(s->thread));
	pf_name(p, s->description->name);
	pf_category(p, s->description->category);
	if (correlate__is_call(p->corr, s->description))
		add_call(p, s, (uintptr_t)*data);
	else if (s->description->nn)
		add_module(p, s);
	else
		pf_arg_u64(p, "External id", s->id);
	if (!s->description->nn && trace__modules(s, modules))
		pf_arg_text(p, "Module Hierarchy", modules);
	add_flows(p, s);
	if (*s->description->overload)
		pf_arg_string(p, "Overload", s->description->overload);
	pf_put(p, s->start_ns);
	return p->err;
}

/* Adds what the span's attributes do not say of a call's result. */
static void add_result(struct pftrace *p, const struct tl_span *s)
{
	const struct corr_call *record;
	size_t nr;
	const uint32_t *calls = correlate__of_span(p->corr, s, &nr);

	switch (correlate__result(p->corr, s, calls, nr, &record)) {
	case CORR_RESULT_UNKNOWN:
		pf_arg_string(p, "result", "unknown");
		break;
	case CORR_RESULT_OF_SPAN:
		break;
	case CORR_RESULT_OF_RECORD:
		if (record->flags & CORR_CALL_FAILED)
			pf_arg_string(p, "error", correlate__error(p->corr, record));
		break;
	}
}

static int end_span(void *ctx, const struct tl_span *s, void *data)
{
	struct pftrace *p = ctx;
	bool is_call = correlate__is_call(p->corr, s->description);

	pf_event(p, PF_END, pf_thread_track(s->thread));
	if (p->named_ends)
		pf_name(p, s->description->name);
	if (s->flags & KPROF_EVENT_CLOSED)
		pf_arg_string(p, "end", "closed");
	if (s->flags & KPROF_EVENT_OPEN_AT_END)
		pf_arg_bool(p, "finished", false);
	if (s->flags & KPROF_EVENT_OPEN_AT_START)
		pf_arg_bool(p, "started", false);
	if (s->flags & KPROF_EVENT_UNNAMED)
		pf_arg_bool(p, "unnamed", true);
	if (is_call)
		add_result(p, s);
	pf_arg_attrs(p, s->attrs, s->nr_attrs, is_call ? TRACE_CALL : TRACE_HOST);
	pf_cover(p, s->start_ns, s->end_ns);
	pf_put(p, s->end_ns);
	return p->err;
}

/* ---- Python functions ---- */

static int enter_function(void *ctx, const struct tl_function *f)
{
	struct pftrace *p = ctx;
	const char *name = trace__function_name(&p->tr, f->frame);

	if (!name)
		return p->err = -ENOMEM;
	pf_event(p, PF_BEGIN, pf_thread_track(f->thread));
	pf_name(p, name);
	pf_category(p, TRACE_FUNCTION);
	pf_arg_u64(p, "Python id", f->id);
	if (f->parent_id)
		pf_arg_u64(p, "Python parent id", f->parent_id);
	pf_put(p, f->start_ns);
	return p->err;
}

static int leave_function(void *ctx, const struct tl_function *f)
{
	struct pftrace *p = ctx;
	const char *name = p->named_ends ? trace__function_name(&p->tr, f->frame) : NULL;

	pf_event(p, PF_END, pf_thread_track(f->thread));
	if (name)
		pf_name(p, name);
	if (f->flags & KPROF_EVENT_CLOSED)
		pf_arg_string(p, "end", "closed");
	if (f->flags & KPROF_EVENT_OPEN_AT_END)
		pf_arg_bool(p, "finished", false);
	pf_cover(p, f->start_ns, f->end_ns);
	pf_put(p, f->end_ns);
	return p->err;
}

int pf_spans(struct pftrace *p)
{
	const struct tl_walker walker = {.pid = p->opts->pid,
					 .modules = true,
					 .begin = begin_span,
					 .end = end_span,
					 .enter = enter_function,
					 .leave = leave_function};
	int err = find_span_calls(p);

	p->in_order = true;
	correlate__rewind(p->corr);
	if (!err)
		err = timeline__walk(p->t, &walker, p);
	p->in_order = false;
	return err;
}
