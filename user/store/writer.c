// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes captures. Some chunks are being filled at any time: tables, details, events. They are
 * written in this order, so that a chunk refers only to chunks before it, and the details of a span
 * come before its end. Tables may be written alone, and details with the tables alone.
 * A chunk is in the file completely or not at all: what a failed write leaves is cut off.
 */
#include "store/writer.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"

#define NR_PARTS_MAX 4

static int failed_before(const struct store_writer *w)
{
	return error_set(w->now.err, "what was recorded until then stays readable",
			 "writing %s has stopped after an error: %s", w->now.path,
			 strerror(-w->now.err));
}

/* ---- chunks ---- */

static int write_rows(struct store_writer *w, enum store_chunk_type type, struct rows_out *rows)
{
	int err;

	if (!rows->records)
		return 0;
	err = store_writer_rows(w, &w->now, rows, type, false);
	if (!err)
		rows_out__reset(rows);
	return err;
}

static int write_tables(struct store_writer *w)
{
	return w->rotates ? store_writer_tables(w) : write_rows(w, STORE_CHUNK_TABLES, &w->tables);
}

/* What is about the window, and before it the tables that it refers to. */
static int write_notes(struct store_writer *w)
{
	int err = w->notes.records ? write_tables(w) : 0;

	return err ? err : write_rows(w, STORE_CHUNK_TABLES, &w->notes);
}

/* Writes the details, and before them the tables that they refer to. */
static int write_details(struct store_writer *w)
{
	int err = w->details.records ? write_tables(w) : 0;

	return err ? err : write_rows(w, STORE_CHUNK_DETAILS, &w->details);
}

static int write_events(struct store_writer *w)
{
	const struct columns *c = &w->events;
	struct store_chunk_head h = {.type = STORE_CHUNK_EVENTS,
				     .records = c->records,
				     .begins = c->begins,
				     .first_ns = c->first_ns,
				     .last_ns = c->last_ns};
	struct store_events_head head = {c->base_ns, c->control_bytes, c->low_bytes};
	struct chunk_part parts[NR_PARTS_MAX] = {{(const uint8_t *)&head, sizeof(head)},
						 {c->control, c->control_bytes},
						 {c->low, c->low_bytes},
						 {c->high, c->high_bytes}};
	int err;

	if (!c->records)
		return 0;
	err = sheet__write(w, &w->now, &h, parts, NR_PARTS_MAX, false);
	if (err)
		return err;
	columns__reset(&w->events);
	return 0;
}

int store_writer__flush(struct store_writer *w)
{
	int err;

	if (w->now.err)
		return w->rotates ? 0 : failed_before(w);
	err = write_tables(w);
	if (!err)
		err = write_notes(w);
	if (!err)
		err = write_details(w);
	if (!err)
		err = write_events(w);
	return store_writer_goes_on(w) ? 0 : err;
}

/* ---- records ---- */

static int check_size(const struct store_writer *w, const struct store_record *r, size_t bytes)
{
	if (bytes <= STORE_RECORD_MAX_BYTES)
		return 0;
	return error_set(-E2BIG, "shorten it", "a %s of %zu bytes does not fit into %s",
			 r->type == STORE_META ? "metadata value" : "string", bytes, w->now.path);
}

static int bad_record(const struct store_writer *w, const struct store_record *r)
{
	return error_set(-EINVAL, "this is a bug in the program that records: please report it",
			 "a record of type %d for %s refers to something not defined before it, or "
			 "is out of order",
			 (int)r->type, w->now.path);
}

static int put_table(struct store_writer *w, const struct store_record *r)
{
	bool lasts = !w->rotates || store_writer_lasts(w, r);
	struct rows_out *rows = lasts ? &w->tables : &w->notes;
	size_t most = rows__max_bytes(r);
	int err = check_size(w, r, most);

	if (!err && w->now.err && !lasts) { /* nothing of this window is stored any more */
		w->unstored++;
		return 0;
	}
	if (!err && rows->nr_bytes + most > STORE_CHUNK_TARGET_BYTES)
		err = lasts ? write_tables(w) : write_notes(w);
	if (err && !store_writer_goes_on(w))
		return err;
	if (rows->nr_bytes + most > rows->cap &&
	    store_reserve(&rows->bytes, &rows->cap, (rows->nr_bytes + most) * 2))
		return store_no_memory(w);
	if (!rows_out__put(rows, &w->ids, r))
		return bad_record(w, r);
	if (r->type == STORE_STRING &&
	    strings__add(&w->strings, r->string.bytes, r->string.len, r->string.id))
		return store_no_memory(w);
	return 0;
}

static int put_detail(struct store_writer *w, const struct store_record *r)
{
	struct store_record args;
	int err = 0;

	if (r->type == STORE_ARGS && w->rotates) {
		args = *r;
		if (!store_writer_span_here(w, &args.args.span)) { /* it ended in another file */
			w->late_args++;
			return 0;
		}
		r = &args;
	}
	if (w->now.err) {
		w->unstored++;
		return 0;
	}
	if (!rows_out__put(&w->details, &w->ids, r))
		return bad_record(w, r);
	if (w->details.nr_bytes > STORE_CHUNK_TARGET_BYTES - ROWS_DETAIL_MAX_BYTES)
		err = write_details(w);
	return store_writer_goes_on(w) ? 0 : err;
}

/*
 * Events are the most frequent records: their checks are spelled out here for speed, instead of
 * following the table of records.
 */
static int put_event(struct store_writer *w, const struct store_record *r)
{
	bool begin = r->type == STORE_BEGIN;

	if (!store_ids__known(&w->ids, STORE_REF_THREAD, begin ? r->begin.thread : r->end.thread) ||
	    (begin && !store_ids__known(&w->ids, STORE_REF_DESCRIPTION, r->begin.description)))
		return bad_record(w, r);
	w->ids.known[STORE_REF_SPAN].nr += begin;
	if (w->now.err) {
		w->unstored++;
		return 0;
	}
	columns__put(&w->events, r);
	return columns__full(&w->events) ? store_writer__flush(w) : 0;
}

int store_writer__put(struct store_writer *w, const struct store_record *r)
{
	const struct record_kind *kind = record_kind_of(r->type);

	if (w->now.err && !w->rotates)
		return failed_before(w);
	if (!kind ||
	    /* only store_writer__finish() may write it, as the last record */
	    r->type == STORE_FINISH)
		return bad_record(w, r);
	switch ((enum store_chunk_type)kind->chunk) {
	case STORE_CHUNK_EVENTS:
		return put_event(w, r);
	case STORE_CHUNK_DETAILS:
		return put_detail(w, r);
	case STORE_CHUNK_TABLES:
		break;
	}
	return put_table(w, r);
}

uint32_t store_writer__string(struct store_writer *w, const char *bytes, size_t len)
{
	struct store_record r = {.type = STORE_STRING};
	uint32_t id;

	len = strnlen(bytes, len);
	if (!len)
		return 0;
	id = strings__find(&w->strings, bytes, len);
	if (id)
		return id;
	if (len > STORE_RECORD_MAX_BYTES) /* before the cast to 32 bits */
		len = STORE_RECORD_MAX_BYTES;
	r.string.id = (uint32_t)w->ids.known[STORE_REF_STRING].nr;
	r.string.len = (uint32_t)len;
	r.string.bytes = bytes;
	return store_writer__put(w, &r) ? 0 : r.string.id;
}

uint32_t store_writer__known_string(const struct store_writer *w, const char *text)
{
	return strings__find(&w->strings, text, strlen(text));
}

/* ---- opening and finishing ---- */

static void writer__free(struct store_writer *w)
{
	columns__free(&w->events);
	free(w->tables.bytes);
	free(w->notes.bytes);
	free(w->rest.bytes);
	free(w->details.bytes);
	strings__free(&w->strings);
	map64__free(&w->continued);
	ZSTD_freeCCtx(w->zstd);
	free(w->out);
	sheet__free(&w->now);
	sheet__free(&w->next);
	free(w);
}

static int init_buffers(struct store_writer *w, const char *path)
{
	w->zstd = ZSTD_createCCtx();
	store_ids__init(&w->ids);
	if (!w->zstd || columns__init(&w->events) ||
	    store_reserve(&w->tables.bytes, &w->tables.cap, STORE_CHUNK_TARGET_BYTES) ||
	    store_reserve(&w->notes.bytes, &w->notes.cap, STORE_CHUNK_TARGET_BYTES / 64) ||
	    store_reserve(&w->details.bytes, &w->details.cap, STORE_CHUNK_TARGET_BYTES))
		return error_set(-ENOMEM, NULL, "no memory to write %s", path);
	return 0;
}

int store_writer__open(const char *path, const struct outfile_opts *owner,
		       struct store_writer **out)
{
	struct store_writer *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return error_set(-ENOMEM, NULL, "no memory to write %s", path);
	err = init_buffers(w, path);
	if (err)
		goto out;
	err = sheet__open(&w->now, path, owner);
out:
	if (err)
		store_writer__discard(w);
	else
		*out = w;
	return err;
}

uint64_t store_writer__bytes(const struct store_writer *w)
{
	return w->now.whole;
}

uint64_t store_writer__begins(const struct store_writer *w)
{
	return w->span_base + w->ids.known[STORE_REF_SPAN].nr;
}

const char *store_writer__temp_path(const struct store_writer *w)
{
	return outfile__temp_path(w->now.file);
}

int store_writer__salvage(struct store_writer *w)
{
	int err;

	if (!w->now.err)
		store_writer__flush(w); /* a chunk that fails here is cut off */
	/*
	 * On a full disk this may fail too. The chunks that did reach the disk are kept in any
	 * case.
	 */
	outfile__sync(w->now.file);
	err = outfile__keep(w->now.file);
	writer__free(w);
	return err;
}

int store_writer_end(struct store_writer *w, uint64_t end_mono_ns)
{
	struct store_record r = {.type = STORE_FINISH, .finish.time_ns = end_mono_ns};
	int err = store_writer__flush(w);

	if (!err && w->now.err)
		err = failed_before(w);
	if (err)
		return err;
	rows_out__put(&w->notes, &w->ids, &r); /* cannot fail: it has no references */
	return write_notes(w);
}

static int finish(struct store_writer *w, uint64_t end_mono_ns)
{
	int err = store_writer_end(w, end_mono_ns);

	return err ? err : outfile__sync(w->now.file);
}

int store_writer__finish_whole(struct store_writer *w, uint64_t end_mono_ns)
{
	int err = finish(w, end_mono_ns);

	if (err) {
		store_writer__discard(w);
		return err;
	}
	err = outfile__keep(w->now.file);
	writer__free(w);
	return err;
}

int store_writer__finish(struct store_writer *w, uint64_t end_mono_ns)
{
	int err = finish(w, end_mono_ns), keep_err;

	if (err)
		error_prefix(err, "%s is incomplete", w->now.path);
	/* also after an error: the chunks written so far are kept */
	keep_err = outfile__keep(w->now.file);
	writer__free(w);
	return err ? err : keep_err;
}

void store_writer__discard(struct store_writer *w)
{
	if (!w)
		return;
	outfile__discard(w->now.file);
	outfile__discard(w->next.file);
	writer__free(w);
}
