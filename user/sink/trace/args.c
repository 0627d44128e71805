// SPDX-License-Identifier: BSD-2-Clause
/*
 * Computes what is known of an event beside its attributes, and finds which attributes an event has
 * a field of its own for.
 */
#include "sink/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/sequence.h"
#include "util/util.h"

/* Correlations given to work that has none, or that shares one: above those that devices give. */
#define OWN_CORRELATION (1ull << 52)
/* External ids given to events of framework backends: above those of spans. */
#define BACKEND_IDS (1ull << 50)

/* Keys that events have fields for: an attribute of such a name would be written twice. */
static const struct {
	const char *key;
	uint16_t hidden;
} taken[] = {
	{"External id", TRACE_HOST | TRACE_CALL | TRACE_DEVICE},
	{"Ev Idx", TRACE_HOST},
	{"Overload", TRACE_HOST | TRACE_CALL},
	{"end", TRACE_HOST | TRACE_CALL},
	{"finished", TRACE_HOST | TRACE_CALL},
	{"started", TRACE_HOST | TRACE_CALL},
	{"unnamed", TRACE_HOST | TRACE_CALL},
	{"correlation", TRACE_CALL | TRACE_DEVICE},
	{"cbid", TRACE_CALL},
	{"device", TRACE_DEVICE},
	{"context", TRACE_DEVICE},
	{"stream", TRACE_DEVICE},
	{"memory bandwidth (GB/s)", TRACE_DEVICE},
	{"wait_on_stream", TRACE_DEVICE},
	{"wait_on_cuda_event_record_corr_id", TRACE_DEVICE},
	{"queued", TRACE_DEVICE},
	{"occupancy", TRACE_DEVICE},
};

static const struct {
	const char *key;
	enum trace_role role;
} roles[] = {
	{"grid", ROLE_GRID},
	{"block", ROLE_BLOCK},
	{"registers per thread", ROLE_REGISTERS},
	{"shared memory", ROLE_SHARED},
	{"wait_on_stream", ROLE_WAIT_STREAM},
	{"wait_on_cuda_event_record_corr_id", ROLE_WAIT_CORRELATION},
};

static void find_key(const char *name, struct trace_key *out)
{
	*out = (struct trace_key){.known = true, .name = name};
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		if (!strcmp(taken[i].key, name))
			out->hidden = taken[i].hidden;
	for (size_t i = 0; i < ARRAY_SIZE(roles); i++)
		if (!strcmp(roles[i].key, name))
			out->role = roles[i].role;
	/* Kineto: an operator is not the work of a forward's thread */
	if (!strcmp(name, SEQUENCE_THREAD_KEY)) {
		out->name = SEQUENCE_FORWARD_KEY;
		out->zero = true;
	}
	/* HTA takes a host event with an integer of this name for a device's event. */
	if (!strcmp(name, "stream"))
		out->name = "stream handle";
}

const struct trace_key *trace__key(struct trace *tr, uint32_t string)
{
	static const struct trace_key none = {.known = true, .name = ""};
	struct trace_key *key;

	if (string >= timeline__nr_strings(tr->t))
		return &none; /* the string was added to the file after the tables were read */
	key = &tr->keys[string];
	if (!key->known)
		find_key(timeline__string(tr->t, string), key);
	return key;
}

static void add(struct trace_args *args, const char *key, enum trace_arg_type type, uint64_t value)
{
	if (args->nr < TRACE_MAX_ARGS)
		args->list[args->nr++] = (struct trace_arg){key, type, value};
}

static uint64_t correlation_of(struct trace *tr, const struct store_record *r,
			       const struct corr_act *act, uint32_t number)
{
	const struct corr_call *call = correlate__call(tr->corr, act->call);

	if (call)
		return trace__call_id(tr, call);
	if (!r->activity.correlation || act->flags & CORR_ACT_REUSED)
		return OWN_CORRELATION + number;
	return trace__correlation(tr, (pid_t)r->activity.pid, r->activity.correlation, 0);
}

static uint64_t product(uint64_t dim3)
{
	return (dim3 & UINT32_MAX) * (dim3 >> 32 & UINT16_MAX) * (dim3 >> 48);
}

static struct launch_shape shape_of(struct trace *tr, const struct store_record *r)
{
	struct launch_shape shape = {0};

	for (uint32_t i = 0; i < r->nr_attrs; i++) {
		enum trace_role role = trace__key(tr, r->attrs[i].key)->role;
		uint64_t v = r->attrs[i].value;

		if (role == ROLE_GRID && r->attrs[i].type == STORE_ATTR_DIM3)
			shape.blocks = product(v);
		else if (role == ROLE_BLOCK && r->attrs[i].type == STORE_ATTR_DIM3)
			shape.threads = product(v) > UINT32_MAX ? 0 : (uint32_t)product(v);
		else if (role == ROLE_REGISTERS && v <= UINT16_MAX)
			shape.registers = (uint32_t)v;
		else if (role == ROLE_SHARED)
			shape.shared_bytes = v;
	}
	return shape;
}

static void add_occupancy(struct trace *tr, struct trace_args *args, const struct store_record *r,
			  const struct trace_device *d)
{
	struct launch_shape shape = shape_of(tr, r);
	struct occupancy o;

	if (!device_occupancy(&d->props, &shape, &o))
		return;
	add(args, "blocks per SM", TRACE_MILLIONTHS, o.blocks_millionths);
	add(args, "warps per SM", TRACE_MILLIONTHS, o.warps_millionths);
	add(args, "est. achieved occupancy %", TRACE_U64, o.percent);
	if (o.is_whole)
		add(args, "occupancy", TRACE_JSON, (uintptr_t)occupancy__json(&o, args->occupancy));
}

/* Adds the bandwidth in GB/s, which is the same number as bytes per nanosecond. */
static void add_bandwidth(struct trace_args *args, const struct corr_act *act)
{
	uint64_t dur_ns = act->end_ns - act->start_ns;
	unsigned __int128 millionths;

	if (!act->bytes || !dur_ns)
		return;
	millionths = (unsigned __int128)act->bytes * 1000000 / dur_ns;
	add(args, "memory bandwidth (GB/s)", TRACE_MILLIONTHS,
	    millionths > UINT64_MAX ? UINT64_MAX : (uint64_t)millionths);
}

/* Adds what a synchronization waited for, by the trace's numbers. */
static void add_wait(struct trace *tr, struct trace_args *args, const struct store_record *r,
		     const struct trace_device *d)
{
	for (uint32_t i = 0; i < r->nr_attrs; i++) {
		enum trace_role role = trace__key(tr, r->attrs[i].key)->role;
		uint64_t v = r->attrs[i].value;

		if (role == ROLE_WAIT_STREAM)
			add(args, "wait_on_stream", TRACE_U64, v + d->shift);
		else if (role == ROLE_WAIT_CORRELATION)
			add(args, "wait_on_cuda_event_record_corr_id", TRACE_U64,
			    trace__correlation(tr, d->pid, v, 0));
	}
}

void trace__act_args(struct trace *tr, const struct store_record *r, const struct corr_act *act,
		     uint32_t number, struct trace_args *out)
{
	const struct corr_call *call = correlate__call(tr->corr, act->call);
	const struct trace_device *d = trace__device_of_row(tr, act->row);

	out->nr = 0;
	if (call && call->op)
		add(out, "External id", TRACE_U64, call->op);
	/* Each has an external id of its own, as operators do. */
	if (correlate__row(tr->corr, act->row)->of_thread)
		add(out, "External id", TRACE_U64, BACKEND_IDS + ++tr->nr_backend);
	if (d->ordinal != UINT32_MAX) {
		add(out, "device", TRACE_U64, r->activity.device);
		add(out, "context", TRACE_U64, r->activity.context);
		add(out, "stream", TRACE_I64, (uint64_t)trace__stream(tr, act->row));
		if (act->type != KPROF_ACTIVITY_CUDA_PROFILER_RANGE)
			add(out, "correlation", TRACE_U64, correlation_of(tr, r, act, number));
		if (act->type == KPROF_ACTIVITY_KERNEL)
			add(out, "queued", TRACE_TIME, r->activity.queued_ns);
	}
	out->before = out->nr;
	if (act->type == KPROF_ACTIVITY_KERNEL)
		add_occupancy(tr, out, r, d);
	if (act->type == KPROF_ACTIVITY_CUDA_SYNC)
		add_wait(tr, out, r, d);
	add_bandwidth(out, act);
	out->nr_collective =
		correlate__collective(tr->corr, act, out->collective, ARRAY_SIZE(out->collective));
}

static void put_call(FILE *to, const struct tl_line *line)
{
	if (*line->file && line->line)
		fprintf(to, "%s(%u): ", line->file, line->line);
	else if (*line->file)
		fprintf(to, "%s: ", line->file);
	for (const char *at = line->function; *at; at++)
		putc(*at == ';' ? ':' : *at, to);
}

char *trace__stack_text(const struct kprof_capture *t, uint32_t stack)
{
	struct tl_call *calls = calloc(TRACE_MAX_CALLS, sizeof(*calls));
	char *text = NULL;
	size_t bytes, nr;
	bool failed = true;
	FILE *to = calls ? open_memstream(&text, &bytes) : NULL;

	if (!to)
		goto out;
	for (nr = timeline__calls(t, stack, calls, TRACE_MAX_CALLS); nr; nr--) {
		put_call(to, calls[nr - 1].line);
		if (nr > 1)
			putc(';', to);
	}
	failed = ferror(to);
	failed = fclose(to) || failed;
out:
	free(calls);
	if (failed) {
		free(text);
		return NULL;
	}
	return text;
}
