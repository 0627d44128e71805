// SPDX-License-Identifier: BSD-2-Clause
#include "capture/record/record.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/record/priv.h"
#include "kprof/wire.h"
#include "util/error.h"
#include "util/util.h"

struct recorder {
	struct store_writer *store; /* NULL: finished */
	struct record_window window;
	struct record_source sources[KPROF_WIRE_MAX_SOURCES];
	uint32_t nr_sources;
	uint32_t nr_descriptions;
	uint64_t events;
	uint64_t most_bytes;        /* 0: events are written, too */
	struct store_writer *first; /* while a copy is written; else NULL */
	struct outfile_opts owner;
	uint32_t *names; /* string ids, by event description - 1 */
	size_t cap_names;
	cJSON *told;           /* by key: numbers that earlier files have, see window_counts.c */
	bool rotates, closing; /* closing: from recorder__close_part() to recorder__rotate_end() */
	uint32_t rotations;
	uint64_t unstored;    /* of a recording that has ended */
	uint64_t flushed_ns;  /* what was put before that is stored */
	uint64_t unstored_ns; /* see recorder__unstored_since() */
};

int recorder__new(const char *path, const struct outfile_opts *owner, struct recorder **out)
{
	struct recorder *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return error_set(-ENOMEM, NULL, "no memory for a recording");
	err = store_writer__open(path, owner, &r->store);
	if (err) {
		free(r);
		return err;
	}
	if (owner)
		r->owner = *owner;
	*out = r;
	return 0;
}

void recorder__free(struct recorder *r)
{
	if (!r)
		return;
	store_writer__discard(r->store);
	store_writer__discard(r->first);
	cJSON_Delete(r->told);
	free(r->names);
	free(r);
}

int recorder__finish(struct recorder *r, uint64_t end_ns)
{
	struct store_writer *store = r->store;

	r->unstored = recorder__unstored(r);
	r->store = NULL;
	/* half of the tables are of no use, and a whole state of before may be there */
	return r->most_bytes ? store_writer__finish_whole(store, end_ns)
			     : store_writer__finish(store, end_ns);
}

void recorder__salvage(struct recorder *r)
{
	r->unstored = recorder__unstored(r);
	store_writer__salvage(r->store);
	r->store = NULL;
}

/* With only tables: are there too many? Strings come without a record that would be refused. */
static int check_bytes(const struct recorder *r)
{
	if (!r->most_bytes || r->first || store_writer__bytes(r->store) <= r->most_bytes)
		return 0;
	return error_set(-EFBIG, "begin anew",
			 "the names and stacks that the process has used take more than %u MiB",
			 (unsigned int)(r->most_bytes >> 20));
}

/* Says once that nothing is stored any more. */
static void look_for_error(struct recorder *r)
{
	int err = r->rotates ? store_writer__error(r->store) : 0;

	if (!err || r->unstored_ns)
		return;
	r->unstored_ns = r->flushed_ns > r->window.start_ns ? r->flushed_ns : r->window.start_ns;
	log_warn(kprof_error_hint(), "nothing is stored from now on: %s", strerror(-err));
}

int recorder__flush(struct recorder *r)
{
	int err = store_writer__flush(r->store);

	look_for_error(r);
	if (!r->unstored_ns)
		r->flushed_ns = clock_mono_ns();
	return err ? err : check_bytes(r);
}

uint64_t recorder__bytes(const struct recorder *r)
{
	return r->store ? store_writer__bytes(r->store) : 0;
}

struct store_writer *recorder__store(const struct recorder *r)
{
	return r->store;
}

/* ---- records ---- */

int recorder__put_anyway(struct recorder *r, const struct store_record *record)
{
	return store_writer__put(r->store, record);
}

/* With only tables: those of which there is no end, though each is small, are left out as well. */
static bool is_left_out(const struct store_record *record)
{
	switch (record->type) {
	case STORE_BEGIN:
	case STORE_END:
	case STORE_ARGS:
	case STORE_ACTIVITY:
	case STORE_API:
	case STORE_INSTANT:
	case STORE_COUNTER:
	case STORE_SAMPLE:
	case STORE_WAIT:
	case STORE_THREAD:
	case STORE_THREAD_NAME:
	case STORE_THREAD_TIME:
		return true;
	default:
		return false;
	}
}

int recorder__put(struct recorder *r, const struct store_record *record)
{
	int err;

	if (!r->most_bytes)
		return store_writer__put(r->store, record);
	if (is_left_out(record))
		return 0;
	err = check_bytes(r);
	return err ? err : store_writer__put(r->store, record);
}

void recorder__only_tables(struct recorder *r, uint64_t most_bytes)
{
	r->most_bytes = most_bytes;
}

static int copy_records(struct store_reader *from, struct store_writer *to)
{
	struct store_record record;
	int n, err = 0;

	/* numbers are dense, so that they stay the same */
	while ((n = store_reader__next(from, &record)) > 0 && !err)
		err = store_writer__put(to, &record);
	return err ? err : n;
}

int recorder__begin_copy(struct recorder *r, const char *path)
{
	struct store_writer *to = NULL;
	struct store_reader *from;
	int err = store_writer__flush(r->store);

	if (!err)
		err = store_reader__open(store_writer__temp_path(r->store), &from);
	if (err)
		return err;
	err = store_writer__open(path, &r->owner, &to);
	if (!err)
		err = copy_records(from, to);
	store_reader__close(from);
	if (err) {
		store_writer__discard(to);
		return err;
	}
	r->first = r->store;
	r->store = to;
	return 0;
}

int recorder__end_copy(struct recorder *r, uint64_t end_ns, int err)
{
	struct store_writer *copy = r->store;

	r->store = r->first;
	r->first = NULL;
	if (!err)
		return store_writer__finish_whole(copy, end_ns);
	store_writer__discard(copy);
	return err;
}

/* ---- another file ---- */

void recorder__may_rotate(struct recorder *r)
{
	r->rotates = true;
	store_writer__may_rotate(r->store);
}

int recorder__rotate_begin(struct recorder *r, const char *path)
{
	return store_writer__rotate_begin(r->store, path, &r->owner);
}

void recorder__rotate_cancel(struct recorder *r)
{
	store_writer__rotate_cancel(r->store);
	r->window.end_ns = 0;
	r->closing = false;
}

void recorder__close_part(struct recorder *r, uint64_t end_ns)
{
	store_writer__closing(r->store, true);
	r->closing = true;
	r->window.end_ns = end_ns;
}

int recorder__rotate_end(struct recorder *r, int *why)
{
	uint64_t end_ns = r->window.end_ns;
	int err;

	r->window.start_ns = end_ns;
	r->window.end_ns = 0;
	r->closing = false;
	r->rotations++;
	err = store_writer__rotate_end(r->store, end_ns, why);
	r->unstored_ns = 0;
	r->flushed_ns = end_ns;
	return err;
}

int recorder__continues(struct recorder *r, uint64_t span)
{
	return store_writer__continues(r->store, span);
}

uint64_t recorder__rotations(const struct recorder *r)
{
	return r->rotations;
}

uint64_t recorder__unstored_since(const struct recorder *r, int *err)
{
	*err = r->rotates && r->store ? store_writer__error(r->store) : 0;
	return *err && r->unstored_ns ? r->unstored_ns : r->flushed_ns;
}

uint64_t recorder__table_bytes(const struct recorder *r)
{
	return r->store && r->rotates ? store_writer__table_bytes(r->store) : 0;
}

uint64_t recorder__unstored(const struct recorder *r)
{
	return r->store && r->rotates ? store_writer__unstored(r->store) : r->unstored;
}

bool recorder__is_closing(const struct recorder *r)
{
	return r->closing;
}

uint32_t recorder__string(struct recorder *r, const char *text)
{
	return store_writer__string(r->store, text, strlen(text));
}

int recorder__meta(struct recorder *r, const char *key, const char *json)
{
	struct store_record record = {.type = STORE_META, .meta = {.key = key, .json = json}};

	return recorder__put(r, &record);
}

int recorder__meta_here(struct recorder *r, const char *key, const char *json)
{
	int err;

	store_writer__closing(r->store, true);
	err = recorder__meta(r, key, json);
	store_writer__closing(r->store, r->closing);
	return err;
}

int recorder__meta_value(struct recorder *r, const char *key, cJSON *value)
{
	char *text = NULL;
	int err;

	if (value && r->rotates && (r->closing || r->window.closed) &&
	    window_counts(&r->told, key, value)) {
		cJSON_Delete(value);
		return -ENOMEM;
	}
	text = value ? cJSON_PrintUnformatted(value) : NULL;
	err = text ? recorder__meta(r, key, text) : -ENOMEM;

	cJSON_free(text);
	cJSON_Delete(value);
	return err;
}

int recorder__gap(struct recorder *r, uint32_t pid, const char *what, const char *reason,
		  uint64_t start_ns, uint64_t end_ns)
{
	struct store_record record = {
		.type = STORE_GAP,
		.gap =
			{
				.pid = pid,
				.what = recorder__string(r, what),
				.reason = recorder__string(r, reason),
				.start_ns = start_ns,
				.end_ns = end_ns,
			},
	};

	return recorder__put(r, &record);
}

int recorder__clock(struct recorder *r, uint64_t mono_ns, uint64_t real_ns)
{
	struct store_record record = {.type = STORE_CLOCK,
				      .clock = {.mono_ns = mono_ns, .real_ns = real_ns}};

	return recorder__put(r, &record);
}

int recorder__attrs(struct recorder *r, uint64_t span, const struct store_attr *attrs, uint32_t nr)
{
	struct store_record record = {
		.type = STORE_ARGS, .args = {.span = span}, .attrs = attrs, .nr_attrs = nr};

	return nr ? recorder__put(r, &record) : 0;
}

int recorder__describe(struct recorder *r, struct store_record *description, uint32_t *id)
{
	int err;

	if (vec_grow((void **)&r->names, &r->cap_names, r->nr_descriptions, sizeof(*r->names)))
		return -ENOMEM;
	description->description.id = r->nr_descriptions + 1;
	err = recorder__put(r, description);
	if (err)
		return err;
	r->names[r->nr_descriptions] = description->description.name;
	*id = ++r->nr_descriptions;
	return 0;
}

uint32_t recorder__name_of(const struct recorder *r, uint32_t description)
{
	return description - 1 < r->nr_descriptions ? r->names[description - 1] : 0;
}

int recorder__event(struct recorder *r, const struct store_record *record)
{
	r->events++;
	return recorder__put(r, record);
}

uint64_t recorder__nr_events(const struct recorder *r)
{
	return r->events;
}

uint64_t recorder__last_begin(const struct recorder *r)
{
	return store_writer__begins(r->store);
}

/* ---- the window ---- */

const struct record_window *recorder__window(const struct recorder *r)
{
	return &r->window;
}

void recorder__prepare(struct recorder *r, uint64_t now_ns)
{
	r->window.start_ns = now_ns;
}

void recorder__open_window(struct recorder *r, uint64_t start_ns)
{
	r->window.start_ns = r->window.first_ns = start_ns;
	r->window.open = true;
}

void recorder__end_at(struct recorder *r, uint64_t end_ns)
{
	r->window.end_ns = end_ns;
}

bool recorder__is_over(const struct recorder *r, uint64_t time_ns)
{
	return r->window.end_ns && time_ns >= r->window.end_ns;
}

void recorder__close_window(struct recorder *r, uint64_t end_ns)
{
	r->window.end_ns = end_ns;
	r->window.closed = true;
}

bool recorder__in_window(const struct recorder *r, uint64_t time_ns)
{
	return r->window.open && time_ns >= r->window.first_ns;
}

/* ---- sources of events ---- */

int recorder__source(struct recorder *r, const char *name, uint32_t *index)
{
	struct store_record record = {.type = STORE_SOURCE};

	for (uint32_t i = 0; i < r->nr_sources; i++)
		if (!strcmp(r->sources[i].name, name)) {
			*index = i;
			return 0;
		}
	if (r->nr_sources == KPROF_WIRE_MAX_SOURCES)
		return error_set(-ENOSPC, NULL, "the catalog has too many sources of events");
	*index = r->nr_sources++;
	record.source.index = *index;
	record.source.name = recorder__string(r, name);
	r->sources[*index] = (struct record_source){.name = name, .string = record.source.name};
	return recorder__put(r, &record);
}

struct record_source *recorder__source_at(struct recorder *r, uint32_t index)
{
	return &r->sources[index];
}

uint32_t recorder__nr_sources(const struct recorder *r)
{
	return r->nr_sources;
}
