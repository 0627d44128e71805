// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes what devices did, calls that only the device's tool interface saw, instants, and counters.
 */
#include "sink/chrome/impl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/activity.h"
#include "catalog/runtime.h"
#include "symbol/names/names.h"
#include "util/error.h"

/* ---- activities ---- */

/* The activity's name, demangled and quoted. */
static int name_of(struct chrome *c, const struct store_record *r, struct fragment **out)
{
	const char *name = timeline__string(c->t, r->activity.name);
	char *plain;
	int err = fragment_at(&c->names, r->activity.name, out);

	if (err || (*out)->text)
		return err;
	plain = strncmp(name, "_Z", 2) ? strdup(name) : demangle(name);
	if (plain)
		(*out)->text = jsonw_quote(plain, strlen(plain), &(*out)->head);
	free(plain);
	return (*out)->text ? 0 : error_set(-ENOMEM, NULL, "no memory for the trace's names");
}

static int put_act_args(struct chrome *c, const struct store_record *r, const struct corr_act *act,
			uint32_t number)
{
	struct args args = {.w = &c->w};
	struct trace_args more;
	int err;

	trace__act_args(&c->tr, r, act, number, &more);
	args_computed(c, &args, more.list, more.before);
	err = args_attrs(c, &args, r->attrs, r->nr_attrs, TRACE_DEVICE);
	args_computed(c, &args, more.list + more.before, more.nr - more.before);
	return err ? err : args_attrs(c, &args, more.collective, more.nr_collective, TRACE_DEVICE);
}

/* Writes `,"pid":…,"tid":…,"ts":`. */
static void put_row(struct chrome *c, uint32_t row, uint32_t lane)
{
	struct jsonw *w = &c->w;

	jsonw__text_u64(w, ",\"pid\":", trace__device_of_row(&c->tr, row)->row_pid);
	jsonw__text_u64(w, ",\"tid\":", chrome_tid(c, row, lane));
	jsonw__text(w, ",\"ts\":");
}

static void put_times(struct chrome *c, uint64_t start_ns, uint64_t end_ns)
{
	jsonw__us(&c->w, chrome_time(c, start_ns));
	jsonw__text_us(&c->w, ",\"dur\":", (int64_t)(end_ns - start_ns));
	jsonw__text(&c->w, ",\"args\":{");
	chrome_cover(c, chrome_time(c, start_ns), chrome_time(c, end_ns));
}

static void put_flow_end(struct chrome *c, const struct corr_act *act)
{
	const struct corr_call *call = correlate__call(c->corr, act->call);
	struct jsonw *w = &c->w;

	if (!call || !corr_call_drawn(call) || !trace__flows_to(&c->tr, act))
		return;
	jsonw__text_u64(w, ",\n{\"ph\":\"f\",\"bp\":\"e\",\"id\":", trace__call_id(&c->tr, call));
	jsonw__text(w, ",\"cat\":\"ac2g\",\"name\":\"ac2g\"");
	put_row(c, act->row, act->lane);
	jsonw__us(w, chrome_time(c, act->start_ns));
	jsonw__text(w, "}");
}

static int put_act(void *ctx, const struct store_record *r, const struct corr_act *act,
		   uint32_t number)
{
	struct chrome *c = ctx;
	struct jsonw *w = &c->w;
	struct fragment *name;
	int err = name_of(c, r, &name);

	if (err)
		return err;
	jsonw__text_string(w, ",\n{\"ph\":\"X\",\"cat\":", activity_by_id(r->activity.type)->name);
	jsonw__text(w, ",\"name\":");
	jsonw__raw(w, name->text, name->head);
	put_row(c, act->row, act->lane);
	put_times(c, act->start_ns, act->end_ns);
	err = put_act_args(c, r, act, number);
	jsonw__text(w, "}}");
	put_flow_end(c, act);
	return err ? err : w->err;
}

static void put_annotation(struct chrome *c, const struct corr_annotation *a)
{
	const struct tl_description *description = timeline__description(c->t, a->description - 1);
	struct jsonw *w = &c->w;
	struct args args = {.w = w};

	jsonw__text_string(
		w, ",\n{\"ph\":\"X\",\"cat\":\"gpu_user_annotation\",\"name\":", description->name);
	put_row(c, a->row, a->lane);
	put_times(c, a->start_ns, a->end_ns);
	args_u64(&args, ",\"External id\":", a->span);
	jsonw__text(w, "}}");
}

/* Marks a call that no probe saw. Reports are made of spans, which such a call is not. */
#define SEEN_BY ",\"seen by\":\"agent\""

/* ---- the rest ---- */

static int put_call(void *ctx, const struct store_record *r, const struct corr_call *call)
{
	struct chrome *c = ctx;
	const char *name = timeline__string(c->t, r->api.name);
	struct jsonw *w = &c->w;
	struct args args = {.w = w};
	struct fragment *thread;
	char *plain;
	int err;

	plain = strndup(name, catalog_call_stem(name));
	err = plain ? chrome_thread(c, r->api.thread, &thread) : -ENOMEM;
	if (err)
		goto out;
	jsonw__text_string(w, ",\n{\"ph\":\"X\",\"cat\":", activity_by_id(r->api.type)->name);
	jsonw__text_string(w, ",\"name\":", plain);
	jsonw__raw(w, thread->text, thread->head);
	put_times(c, call->start_ns, corr_call_end_ns(call));
	if (call->op)
		args_u64(&args, ",\"External id\":", call->op);
	if (call->cbid)
		args_u64(&args, ",\"cbid\":", call->cbid);
	args_u64(&args, ",\"correlation\":", trace__call_id(&c->tr, call));
	args_raw(&args, SEEN_BY, strlen(SEEN_BY));
	err = args_attrs(c, &args, r->attrs, r->nr_attrs, TRACE_CALL);
	jsonw__text(w, "}}");
	chrome_flow_start(c, call, thread, chrome_time(c, call->start_ns));
out:
	free(plain);
	if (err == -ENOMEM)
		return error_set(err, NULL, "no memory for the trace's names");
	return err ? err : w->err;
}

static int put_instant(void *ctx, const struct store_record *r,
		       const struct tl_description *description)
{
	struct chrome *c = ctx;
	struct jsonw *w = &c->w;
	struct args args = {.w = w};
	struct fragment *thread;
	int err = chrome_thread(c, r->instant.thread, &thread);

	if (err)
		return err;
	jsonw__text_string(w, ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":", description->category);
	jsonw__text_string(w, ",\"name\":", description->name);
	jsonw__raw(w, thread->text, thread->head);
	jsonw__us(w, chrome_time(c, r->instant.time_ns));
	jsonw__text(w, ",\"args\":{");
	err = args_attrs(c, &args, r->attrs, r->nr_attrs, TRACE_HOST);
	jsonw__text(w, "}}");
	return err ? err : w->err;
}

static void put_value(struct chrome *c, const char *name, uint64_t pid, uint64_t mono_ns,
		      int64_t value)
{
	struct jsonw *w = &c->w;

	jsonw__text_string(w, ",\n{\"ph\":\"C\",\"name\":", name);
	jsonw__text_u64(w, ",\"pid\":", pid);
	jsonw__text_us(w, ",\"tid\":0,\"ts\":", chrome_time(c, mono_ns));
	jsonw__text_i64(w, ",\"args\":{\"value\":", value);
	jsonw__text(w, "}}");
}

static int put_counter(void *ctx, const struct store_record *r, const struct trace_device *d)
{
	struct chrome *c = ctx;

	/* In the process's own row if the capture has nothing else of the device. */
	put_value(c, timeline__string(c->t, r->counter.name), d ? d->row_pid : r->counter.pid,
		  r->counter.time_ns, r->counter.value);
	return c->w.err;
}

static int put_memory(void *ctx, pid_t pid, const char *name, uint64_t mono_ns, int64_t bytes)
{
	struct chrome *c = ctx;

	put_value(c, name, (uint64_t)pid, mono_ns, bytes);
	return c->w.err;
}

/* Writes a value of a counter that was computed from activities (trace/counters.c). */
static int put_computed(void *ctx, const struct trace_device *d, int64_t stream, const char *name,
			uint64_t mono_ns, int64_t value)
{
	struct chrome *c = ctx;
	char text[64];

	if (stream < 0)
		snprintf(text, sizeof(text), "%s", name);
	else
		snprintf(text, sizeof(text), "%s, stream %lld", name, (long long)stream);
	put_value(c, text, d->row_pid, mono_ns, value);
	return c->w.err;
}

int chrome_details(struct chrome *c)
{
	static const struct trace_details details = {put_act, put_call, put_instant, put_counter,
						     put_memory};
	const struct corr_annotation *a;
	int err = trace__details(&c->tr, &details, c);

	for (size_t i = 0; !err && (a = correlate__annotation(c->corr, i)); i++)
		if (a->lane < CORRELATE_MAX_LANES)
			put_annotation(c, a);
	if (!err)
		err = trace__counters(&c->tr, put_computed, c);
	return err ? err : c->w.err;
}
