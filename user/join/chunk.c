// SPDX-License-Identifier: BSD-2-Clause
/* Copies one capture behind those that the output has already. */
#include "join/impl.h"

#include <errno.h>
#include <string.h>

#include "store/store.h"

#define BEGUN_BEFORE "begun_before_ns" /* as session/dispatch.c names it */

/* ---- sources ---- */

static struct store_record *source_at(struct vec *sources, size_t i)
{
	while (sources->nr <= i)
		if (!vec_push(sources, sizeof(struct store_record)))
			return NULL;
	return (struct store_record *)sources->data + i;
}

/* Its counts are added up at the end, since a later record replaces an earlier one. */
static int source(struct join *j, const struct store_record *r)
{
	uint64_t name = kprof_copy__number(j->now->copy, STORE_REF_STRING, r->source.name);
	struct store_record *own = source_at(&j->now->sources, r->source.index), *sum;
	uint64_t *at = map64__at(&j->source_by_name, name), index;
	int err = 0;

	if (!own || !at)
		return join_no_memory();
	*own = *r;
	if (!*at) {
		*at = j->sources.nr + 1;
		sum = source_at(&j->sources, j->sources.nr);
		if (!sum)
			return join_no_memory();
		*sum = (struct store_record){
			.type = STORE_SOURCE,
			.source = {.index = (uint32_t)*at - 1, .name = (uint32_t)name}};
		err = store_writer__put(j->out, sum);
	}
	index = *at - 1;
	return err ? err : kprof_copy__map(j->now->copy, STORE_REF_SOURCE, r->source.index, index);
}

static void add_counts(struct join *j)
{
	const struct store_record *own = j->now->sources.data;
	const struct kprof_source *counted = j->now->counts.data;

	for (size_t i = 0; i < j->now->sources.nr; i++) {
		uint64_t index = kprof_copy__number(j->now->copy, STORE_REF_SOURCE, i);
		struct store_record *sum = index < j->sources.nr
						   ? (struct store_record *)j->sources.data + index
						   : NULL;
		bool cut = i < j->now->counts.nr; /* the capture says less than it has */

		if (!sum)
			continue;
		sum->source.fired += own[i].source.fired;
		sum->source.captured += own[i].source.captured;
		sum->source.dropped += own[i].source.dropped;
		sum->source.missed += own[i].source.missed;
		sum->source.begins += cut ? counted[i].begins : own[i].source.begins;
		sum->source.ends_exact += cut ? counted[i].ends_exact : own[i].source.ends_exact;
		sum->source.ends_closed += cut ? counted[i].ends_closed : own[i].source.ends_closed;
		sum->source.orphan_ends += own[i].source.orphan_ends;
	}
}

/* ---- records ---- */

static int metadata(struct join *j, const struct store_record *r)
{
	cJSON *value = cJSON_Parse(r->meta.json);

	if (!value) /* nothing checks that it is JSON */
		return 0;
	cJSON_DeleteItemFromObjectCaseSensitive(j->now->metadata, r->meta.key);
	return cJSON_AddItemToObject(j->now->metadata, r->meta.key, value) ? 0 : join_no_memory();
}

static int on_record(void *ctx, const struct store_record *r)
{
	struct join *j = ctx;

	switch (r->type) {
	case STORE_META:
		return metadata(j, r);
	case STORE_SOURCE:
		return source(j, r);
	case STORE_MODULE:
	case STORE_FRAME:
	case STORE_STACK:
	case STORE_DESCRIPTION:
	case STORE_THREAD:
		return join_define(j, r);
	default:
		return 1;
	}
}

/* When it was; UINT64_MAX: it is of no moment. */
static uint64_t time_of(const struct store_record *r)
{
	switch (r->type) {
	case STORE_SAMPLE:
		return r->sample.time_ns;
	case STORE_ACTIVITY:
		return r->activity.start_ns;
	case STORE_API:
		return r->api.start_ns;
	case STORE_INSTANT:
		return r->instant.time_ns;
	case STORE_COUNTER:
		return r->counter.time_ns;
	case STORE_CLOCK:
		return r->clock.mono_ns;
	default:
		return 0;
	}
}

/* Of a span that goes on, one file is to have it once, without what splits it. */
static int args(struct join *j, struct store_record *r)
{
	struct store_attr attrs[STORE_MAX_ATTRS];
	uint32_t nr = 0;

	for (uint32_t i = 0; i < r->nr_attrs; i++)
		if (r->attrs[i].key != j->before_key)
			attrs[nr++] = r->attrs[i];
	r->attrs = attrs;
	r->nr_attrs = nr;
	return nr ? store_writer__put(j->out, r) : 0;
}

static int put(void *ctx, struct store_record *r)
{
	struct join *j = ctx;
	int repeats;

	/* the next capture is of another recording, and has what comes from there on */
	if (j->now->until_ns < j->now->end_ns && time_of(r) >= j->now->until_ns)
		return 0;
	switch (r->type) {
	case STORE_ARGS:
		return args(j, r);
	case STORE_WAIT:
		return join_wait(j, r);
	case STORE_THREAD_TIME:
		return join_time(j, r);
	case STORE_GAP:
		return join_gap(j, r);
	default:
		repeats = join_repeats(j, r);
		return repeats < 0 ? repeats : repeats ? 0 : store_writer__put(j->out, r);
	}
}

static const struct kprof_copy_ops ops = {.record = on_record, .event = join_event, .put = put};

int join_open(struct join *j, struct chunk *c)
{
	return kprof_copy__new(c->path, j->out, &j->numbers, &ops, j, &c->copy);
}

int join_copy(struct join *j, struct chunk *c)
{
	uint64_t ns;
	int err;

	j->now = c;
	if (!j->before_key)
		j->before_key = store_writer__string(j->out, BEGUN_BEFORE, strlen(BEGUN_BEFORE));
	c->metadata = cJSON_CreateObject();
	if (!c->metadata || !j->before_key)
		return join_no_memory();
	join_border(j);
	kprof_copy__start(c->copy, KPROF_COPY_ALL);
	while ((err = kprof_copy__next(c->copy, &ns)) > 0) {
		err = kprof_copy__event(c->copy);
		if (err)
			break;
	}
	if (!err)
		err = join_end_border(j);
	if (!err)
		err = join_end_times(j);
	if (!err)
		add_counts(j);
	kprof_copy__free(c->copy);
	c->copy = NULL;
	return err;
}
