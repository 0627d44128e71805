// SPDX-License-Identifier: BSD-2-Clause
/*
 * Writes captures. Three chunks are being filled at any time: tables, details, events. They are
 * written in this order, so that a chunk refers only to chunks before it, and the details of a span
 * come before its end. Tables may be written alone, and details with the tables alone.
 * A chunk is in the file completely or not at all: what a failed write leaves is cut off.
 */
#include "store/store.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "store/columns.h"
#include "store/format.h"
#include "store/rows.h"
#include "store/strings.h"
#include "util/error.h"
#include "util/outfile.h"

#define NR_PARTS_MAX 4
/*
 * ZSTD_LEVEL is zstd's own default. Times are noise, which no level compresses, and in details they
 * are most of what remains: there a higher level takes half as long again and saves 3 %. See
 * docs/capture-format.md for sizes.
 */
#define ZSTD_LEVEL 3
#define ZSTD_LEVEL_DETAILS 1

struct part {
	const uint8_t *bytes;
	size_t nr;
};

struct store_writer {
	char *path;
	struct outfile *file;
	uint64_t whole; /* file offset after the last whole chunk */
	uint32_t seq;
	int err; /* why a chunk could not be written, after which nothing is; 0 */
	struct store_ids ids;
	struct strings strings;
	struct columns events;
	struct rows_out tables, details;
	ZSTD_CCtx *zstd;
	uint8_t *out; /* a chunk's head and payload, for one write */
	size_t out_cap;
};

static int no_memory(const struct store_writer *w)
{
	return error_set(-ENOMEM, NULL, "no memory to write %s", w->path);
}

static int failed_before(const struct store_writer *w)
{
	return error_set(w->err, "what was recorded until then stays readable",
			 "writing %s has stopped after an error: %s", w->path, strerror(-w->err));
}

/* ---- chunks ---- */

/*
 * A reader accepts only so many bytes for each that is stored. What shrinks by more (counters that
 * hardly ever count, in a loop) is followed by a frame that zstd passes over. Returns the bytes
 * used with it.
 */
static size_t stretch(uint8_t *to, size_t room, size_t used, size_t raw_bytes)
{
	const size_t head_bytes = 2 * sizeof(uint32_t);
	size_t least = (raw_bytes + STORE_MAX_RATIO - 1) / STORE_MAX_RATIO;
	uint32_t head[2] = {htole32(ZSTD_MAGIC_SKIPPABLE_START)};

	if (used >= least || least + head_bytes > room)
		return used;
	if (least < used + head_bytes)
		least = used + head_bytes;
	head[1] = htole32((uint32_t)(least - used - head_bytes));
	memset(to + used, 0, least - used);
	memcpy(to + used, head, sizeof(head));
	return least;
}

/*
 * Compresses each part as a zstd frame of its own, which gets its own statistics. Returns the bytes
 * used; 0: compression failed or is not worth it.
 */
static size_t compress(struct store_writer *w, int level, const struct part *parts, int nr_parts,
		       size_t raw_bytes)
{
	uint8_t *to = w->out + STORE_CHUNK_HEAD_BYTES;
	size_t room = w->out_cap - STORE_CHUNK_HEAD_BYTES, used = 0;

	for (int i = 0; i < nr_parts; i++) {
		size_t n;

		if (!parts[i].nr)
			continue;
		n = ZSTD_compressCCtx(w->zstd, to + used, room - used, parts[i].bytes, parts[i].nr,
				      level);
		if (ZSTD_isError(n))
			return 0;
		used += n;
	}
	used = stretch(to, room, used, raw_bytes);
	return used < raw_bytes && used * STORE_MAX_RATIO >= raw_bytes ? used : 0;
}

static void copy(struct store_writer *w, const struct part *parts, int nr_parts)
{
	uint8_t *to = w->out + STORE_CHUNK_HEAD_BYTES;

	for (int i = 0; i < nr_parts; i++) {
		if (parts[i].nr)
			memcpy(to, parts[i].bytes, parts[i].nr);
		to += parts[i].nr;
	}
}

/*
 * Cuts off the part of a chunk that a failed write has left. On a pipe this is not possible; its
 * reader sees a cut chunk at the end.
 */
static void cut(struct store_writer *w)
{
	int fd = outfile__fd(w->file);

	if (ftruncate(fd, (off_t)w->whole) == 0)
		lseek(fd, (off_t)w->whole, SEEK_SET);
}

/*
 * Puts the chunk's head and payload into w->out; the payload is compressed if that makes it
 * smaller.
 */
static int build_chunk(struct store_writer *w, struct store_chunk_head *h, const struct part *parts,
		       int nr_parts)
{
	int level = h->type == STORE_CHUNK_DETAILS ? ZSTD_LEVEL_DETAILS : ZSTD_LEVEL;
	size_t raw_bytes = 0, stored_bytes;

	for (int i = 0; i < nr_parts; i++)
		raw_bytes += parts[i].nr;
	/*
	 * The bound is at least raw_bytes, and so there is room for an uncompressed payload, too.
	 */
	if (store_reserve(&w->out, &w->out_cap,
			  STORE_CHUNK_HEAD_BYTES + ZSTD_compressBound(raw_bytes)))
		return no_memory(w);
	stored_bytes = compress(w, level, parts, nr_parts, raw_bytes);
	h->codec = stored_bytes ? STORE_CODEC_ZSTD : STORE_CODEC_NONE;
	h->raw_bytes = (uint32_t)raw_bytes;
	h->stored_bytes = (uint32_t)(stored_bytes ? stored_bytes : raw_bytes);
	h->seq = w->seq;
	if (!stored_bytes)
		copy(w, parts, nr_parts);
	store_chunk_head__seal(h, w->out + STORE_CHUNK_HEAD_BYTES, w->out);
	return 0;
}

static int write_chunk(struct store_writer *w, struct store_chunk_head *h, const struct part *parts,
		       int nr_parts)
{
	int err = build_chunk(w, h, parts, nr_parts);

	if (!err)
		err = outfile__write(w->file, w->out, STORE_CHUNK_HEAD_BYTES + h->stored_bytes);
	if (err) {
		w->err = err;
		cut(w);
		return err;
	}
	w->whole += STORE_CHUNK_HEAD_BYTES + h->stored_bytes;
	w->seq++;
	return 0;
}

static int write_rows(struct store_writer *w, enum store_chunk_type type, struct rows_out *rows)
{
	struct store_chunk_head h = {
		.type = type, .records = rows->records, .begins = rows->samples};
	struct part part = {rows->bytes, rows->nr_bytes};
	int err;

	if (!rows->records)
		return 0;
	err = write_chunk(w, &h, &part, 1);
	if (!err)
		rows_out__reset(rows);
	return err;
}

static int write_tables(struct store_writer *w)
{
	return write_rows(w, STORE_CHUNK_TABLES, &w->tables);
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
	struct part parts[NR_PARTS_MAX] = {{(const uint8_t *)&head, sizeof(head)},
					   {c->control, c->control_bytes},
					   {c->low, c->low_bytes},
					   {c->high, c->high_bytes}};
	int err;

	if (!c->records)
		return 0;
	err = write_chunk(w, &h, parts, NR_PARTS_MAX);
	if (err)
		return err;
	columns__reset(&w->events);
	return 0;
}

int store_writer__flush(struct store_writer *w)
{
	int err;

	if (w->err)
		return failed_before(w);
	err = write_tables(w);
	if (!err)
		err = write_details(w);
	return err ? err : write_events(w);
}

/* ---- records ---- */

static int check_size(const struct store_writer *w, const struct store_record *r, size_t bytes)
{
	if (bytes <= STORE_RECORD_MAX_BYTES)
		return 0;
	return error_set(-E2BIG, "shorten it", "a %s of %zu bytes does not fit into %s",
			 r->type == STORE_META ? "metadata value" : "string", bytes, w->path);
}

static int bad_record(const struct store_writer *w, const struct store_record *r)
{
	return error_set(-EINVAL, "this is a bug in the program that records: please report it",
			 "a record of type %d for %s refers to something not defined before it, or "
			 "is out of order",
			 (int)r->type, w->path);
}

static int put_table(struct store_writer *w, const struct store_record *r)
{
	size_t most = rows__max_bytes(r);
	int err = check_size(w, r, most);

	if (!err && w->tables.nr_bytes + most > STORE_CHUNK_TARGET_BYTES)
		err = write_tables(w);
	if (err)
		return err;
	if (store_reserve(&w->tables.bytes, &w->tables.cap, most))
		return no_memory(w);
	if (!rows_out__put(&w->tables, &w->ids, r))
		return bad_record(w, r);
	if (r->type == STORE_STRING &&
	    strings__add(&w->strings, r->string.bytes, r->string.len, r->string.id))
		return no_memory(w);
	return 0;
}

static int put_detail(struct store_writer *w, const struct store_record *r)
{
	if (!rows_out__put(&w->details, &w->ids, r))
		return bad_record(w, r);
	return w->details.nr_bytes > STORE_CHUNK_TARGET_BYTES - ROWS_DETAIL_MAX_BYTES
		       ? write_details(w)
		       : 0;
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
	columns__put(&w->events, r);
	w->ids.known[STORE_REF_SPAN].nr += begin;
	return columns__full(&w->events) ? store_writer__flush(w) : 0;
}

int store_writer__put(struct store_writer *w, const struct store_record *r)
{
	const struct record_kind *kind = record_kind_of(r->type);

	if (w->err)
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

/* ---- opening and finishing ---- */

static void writer__free(struct store_writer *w)
{
	columns__free(&w->events);
	free(w->tables.bytes);
	free(w->details.bytes);
	strings__free(&w->strings);
	ZSTD_freeCCtx(w->zstd);
	free(w->out);
	free(w->path);
	free(w);
}

static int init_buffers(struct store_writer *w, const char *path)
{
	w->path = strdup(path);
	w->zstd = ZSTD_createCCtx();
	store_ids__init(&w->ids);
	if (!w->path || !w->zstd || columns__init(&w->events) ||
	    store_reserve(&w->tables.bytes, &w->tables.cap, STORE_CHUNK_TARGET_BYTES) ||
	    store_reserve(&w->details.bytes, &w->details.cap, STORE_CHUNK_TARGET_BYTES))
		return error_set(-ENOMEM, NULL, "no memory to write %s", path);
	return 0;
}

static int write_file_head(struct store_writer *w)
{
	uint8_t bytes[STORE_FILE_HEAD_BYTES];
	int err;

	store_file_head__pack(STORE_FORMAT_MAJOR, STORE_FORMAT_MINOR, bytes);
	err = outfile__write(w->file, bytes, sizeof(bytes));
	if (!err)
		w->whole = sizeof(bytes);
	return err;
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
	err = outfile__open(path, owner, &w->file);
	if (err)
		goto out;
	err = write_file_head(w);
out:
	if (err)
		store_writer__discard(w);
	else
		*out = w;
	return err;
}

uint64_t store_writer__bytes(const struct store_writer *w)
{
	return w->whole;
}

uint64_t store_writer__begins(const struct store_writer *w)
{
	return w->ids.known[STORE_REF_SPAN].nr;
}

const char *store_writer__temp_path(const struct store_writer *w)
{
	return outfile__temp_path(w->file);
}

int store_writer__salvage(struct store_writer *w)
{
	int err;

	if (!w->err)
		store_writer__flush(w); /* a chunk that fails here is cut off */
	/*
	 * On a full disk this may fail too. The chunks that did reach the disk are kept in any
	 * case.
	 */
	outfile__sync(w->file);
	err = outfile__keep(w->file);
	writer__free(w);
	return err;
}

static int write_finish(struct store_writer *w, uint64_t end_mono_ns)
{
	struct store_record r = {.type = STORE_FINISH, .finish.time_ns = end_mono_ns};
	int err = store_writer__flush(w);

	if (err)
		return err;
	rows_out__put(&w->tables, &w->ids, &r); /* cannot fail: it has no references */
	return write_tables(w);
}

static int finish(struct store_writer *w, uint64_t end_mono_ns)
{
	int err = write_finish(w, end_mono_ns);

	return err ? err : outfile__sync(w->file);
}

int store_writer__finish_whole(struct store_writer *w, uint64_t end_mono_ns)
{
	int err = finish(w, end_mono_ns);

	if (err) {
		store_writer__discard(w);
		return err;
	}
	err = outfile__keep(w->file);
	writer__free(w);
	return err;
}

int store_writer__finish(struct store_writer *w, uint64_t end_mono_ns)
{
	int err = finish(w, end_mono_ns), keep_err;

	if (err)
		error_prefix(err, "%s is incomplete", w->path);
	/* also after an error: the chunks written so far are kept */
	keep_err = outfile__keep(w->file);
	writer__free(w);
	return err ? err : keep_err;
}

void store_writer__discard(struct store_writer *w)
{
	if (!w)
		return;
	outfile__discard(w->file);
	writer__free(w);
}
