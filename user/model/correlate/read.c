// SPDX-License-Identifier: BSD-2-Clause
/* First pass: reads activities and API records, then has the other files link them. */
#include "model/correlate/impl.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>

#include "catalog/activity.h"
#include "store/store.h"
#include "util/error.h"

static int find_types(struct correlate *c)
{
	const struct tl_description *description;
	size_t nr = 0;

	while (timeline__description(c->t, nr))
		nr++;
	c->types = calloc(nr + 1, sizeof(*c->types));
	if (!c->types)
		return error_set(-ENOMEM, NULL, "out of memory for %zu names", nr);
	for (size_t i = 0; (description = timeline__description(c->t, i)); i++) {
		const struct activity_type *type = activity_by_name(description->category);

		/* A category that is no activity type (wait, trace) is no operator either. */
		c->types[i] = type ? (uint8_t)type->id : KPROF_ACTIVITY_NONE;
		if (type && type->is_call && correlate_is_sync(description->name))
			c->types[i] |= CALL_WAITS;
	}
	return 0;
}

/* ---- reading ---- */

/* The index of the row like *like, for a further activity; adds the row with the first one. */
static int find_row(struct correlate *c, const struct corr_row *like, uint32_t *index)
{
	uint64_t *device, *row;
	struct corr_row *added;

	device = map64__at(&c->devices, (uint64_t)(like->pid & INT32_MAX) << 32 | like->device);
	if (!device)
		goto no_memory;
	if (!*device)
		*device = ++c->nr_devices;
	/*
	 * The number of (pid, device) takes the upper 30 bits, which are enough; the stream the
	 * lower half.
	 */
	row = map64__at(&c->row_by_key, (*device & INT32_MAX) << 34 | (uint64_t)like->ranges << 33 |
						(uint64_t)(like->waits | like->of_thread) << 32 |
						like->stream);
	if (!row)
		goto no_memory;
	if (!*row && c->rows.nr == CORRELATE_MAX_ROWS) {
		*row = (uint64_t)CORRELATE_NONE + 1;
	} else if (!*row) {
		added = vec_push(&c->rows, sizeof(*added));
		if (!added)
			goto no_memory;
		*added = *like;
		*row = c->rows.nr;
	}
	*index = (uint32_t)(*row - 1);
	if (*index != CORRELATE_NONE)
		((struct corr_row *)c->rows.data)[*index].nr++;
	return 0;
no_memory:
	return error_set(-ENOMEM, NULL, "out of memory for %zu streams", c->rows.nr);
}

static int add_act(struct correlate *c, const struct store_record *r)
{
	const struct activity_type *type = activity_by_id(r->activity.type);
	struct corr_act *act = correlate__push(&c->acts);
	const struct store_attr *bytes = NULL;
	struct corr_row like = {.pid = (pid_t)r->activity.pid, .device = UINT32_MAX};

	if (!act)
		return -ENOMEM;
	if (r->activity.type == KPROF_ACTIVITY_GPU_MEMCPY ||
	    r->activity.type == KPROF_ACTIVITY_GPU_MEMSET)
		bytes = timeline__attr(c->t, r->attrs, r->nr_attrs, "bytes");
	*act = (struct corr_act){
		.start_ns = r->activity.start_ns,
		.end_ns = r->activity.end_ns,
		.correlation = r->activity.correlation,
		.bytes = bytes ? bytes->value : 0,
		.type = r->activity.type < KPROF_ACTIVITY_NR ? (uint8_t)r->activity.type : 0,
	};
	if (r->activity.type ==
	    KPROF_ACTIVITY_CPU_OP) { /* a framework backend's own event, which no call launched */
		like.of_thread = true;
		like.stream = r->activity.stream;
		return find_row(c, &like, &act->row);
	}
	c->counts.activities += r->activity.type != KPROF_ACTIVITY_CUDA_PROFILER_RANGE;
	if (type->on_device) {
		like.device = r->activity.device;
		like.stream = r->activity.stream;
		like.waits = activity_is_wait(r->activity.type);
		like.ranges = r->activity.type == KPROF_ACTIVITY_CUDA_PROFILER_RANGE;
	}
	return find_row(c, &like, &act->row);
}

static int add_call(struct correlate *c, const struct store_record *r)
{
	const struct store_attr *cbid = timeline__attr(c->t, r->attrs, r->nr_attrs, "cbid");
	const struct store_attr *error = timeline__attr(c->t, r->attrs, r->nr_attrs, "error");
	struct corr_call *call = correlate__push(&c->calls);
	uint64_t dur_ns = r->api.end_ns - r->api.start_ns;

	if (!call)
		return -ENOMEM;
	*call = (struct corr_call){
		.start_ns = r->api.start_ns,
		.dur_ns = dur_ns < UINT32_MAX ? (uint32_t)dur_ns : UINT32_MAX,
		.correlation = r->api.correlation,
		.thread = r->api.thread,
		.name = r->api.name,
		.cbid = cbid && cbid->value < UINT32_MAX ? (uint32_t)cbid->value : 0,
		.first = CORRELATE_NONE,
		.type = r->api.type < KPROF_ACTIVITY_NR ? (uint8_t)r->api.type : 0,
	};
	if (error)
		call->flags |= CORR_CALL_FAILED;
	if (error && error->type == STORE_ATTR_STRING && error->value <= UINT32_MAX)
		call->error = (uint32_t)error->value;
	c->threads[call->thread].nr++;
	c->counts.calls++;
	return 0;
}

static int on_detail(void *ctx, const struct store_record *r)
{
	struct correlate *c = ctx;

	if (r->type == STORE_ACTIVITY)
		return add_act(c, r);
	return r->type == STORE_API ? add_call(c, r) : 0;
}

/* ---- the whole ---- */

static int make(struct correlate *c, pid_t pid)
{
	int err = find_types(c);

	c->threads = calloc(kprof_capture_info(c->t)->nr_threads + 1, sizeof(*c->threads));
	if (!err && !c->threads)
		err = error_set(-ENOMEM, NULL, "out of memory for the threads");
	if (!err)
		err = timeline__details(c->t, pid, on_detail, c);
	if (err || !correlate__any(c))
		return err;
	err = correlate__link(c);
	if (!err)
		err = correlate__walk_spans(c);
	if (!err)
		err = correlate__lay_out(c);
	return err;
}

/* Which processes were recorded within annotations. Returns whether any was. */
static bool read_within(const struct kprof_capture *t, bool *all, struct map64 *pids)
{
	cJSON *within = timeline__meta_json(t, "within"), *one, *pid;
	const char *name = cJSON_GetStringValue(within);

	*all = name && *name;
	cJSON_ArrayForEach(one, within)
	{
		cJSON_ArrayForEach(pid, cJSON_GetObjectItemCaseSensitive(one, "pids"))
		{
			double value = cJSON_GetNumberValue(pid);
			bool is_pid = value > 0 && value <= INT32_MAX;
			uint64_t *at = is_pid ? map64__at(pids, (uint64_t)value) : NULL;

			if (at) /* no memory: the process counts as recorded as a whole */
				*at = 1;
		}
	}
	cJSON_Delete(within);
	return *all || pids->cap;
}

int correlate__new(struct kprof_capture *t, pid_t pid, struct correlate **out)
{
	struct correlate *c = calloc(1, sizeof(*c));
	int err;

	*out = NULL;
	if (!c)
		return error_set(-ENOMEM, NULL, "out of memory for the device's activities");
	c->t = t;
	read_within(t, &c->within, &c->within_pids);
	c->calls.size = sizeof(struct corr_call);
	c->acts.size = sizeof(struct corr_act);
	c->by_thread.size = c->by_row.size = c->matches.size = sizeof(uint32_t);
	c->annotations.size = sizeof(struct corr_annotation);
	c->collectives.size = sizeof(struct corr_collective);
	c->collective_attrs.size = sizeof(struct store_attr);
	err = make(c, pid);
	if (err)
		correlate__free(c);
	else
		*out = c;
	return err;
}

void correlate__free(struct correlate *c)
{
	if (!c)
		return;
	free(c->types);
	bulk__free(&c->calls);
	bulk__free(&c->acts);
	bulk__free(&c->by_thread);
	bulk__free(&c->by_row);
	bulk__free(&c->matches);
	bulk__free(&c->annotations);
	bulk__free(&c->collectives);
	bulk__free(&c->collective_attrs);
	free(c->rows.data);
	map64__free(&c->row_by_key);
	map64__free(&c->devices);
	map64__free(&c->within_pids);
	free(c->threads);
	free(c);
}

struct stream {
	struct correlate *c; /* NULL: all are shown */
	uint32_t number;
	int (*fn)(void *ctx, const struct store_record *r);
	void *ctx;
};

static int on_activity(void *ctx, const struct store_record *r)
{
	struct stream *s = ctx;
	const struct corr_act *act;

	if (r->type != STORE_ACTIVITY)
		return 0;
	act = s->c ? correlate__act(s->c, s->number++) : NULL;
	return act && act->row == CORRELATE_NONE ? 0 : s->fn(s->ctx, r);
}

int correlate__activities(struct kprof_capture *t,
			  int (*fn)(void *ctx, const struct store_record *r), void *ctx)
{
	struct stream s = {.fn = fn, .ctx = ctx};
	struct map64 pids = {0};
	bool all;
	int err = read_within(t, &all, &pids) ? correlate__new(t, 0, &s.c) : 0;

	map64__free(&pids);
	if (!err)
		err = timeline__details(t, 0, on_activity, &s);
	correlate__free(s.c);
	return err;
}
