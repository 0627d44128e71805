// SPDX-License-Identifier: BSD-2-Clause
/*
 * A writer that ends its file and goes on in another one. The new file begins with all that later
 * records may refer to, with the same numbers. It is copied by whole chunks, which have nothing
 * else in them: what is about the old window alone is in chunks of its own. Small chunks are put
 * together on the way, so that their number does not grow with that of the files; but one that
 * holds as much as all that follow stays as it is, so that none is put together with others often.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "store/writer.h"
#include "util/error.h"

/* Chunks with less than this are put together with those that follow, if these hold more. */
#define SMALL_BYTES (STORE_CHUNK_TARGET_BYTES / 2)

void store_writer__may_rotate(struct store_writer *w)
{
	w->rotates = true;
}

void store_writer__closing(struct store_writer *w, bool closing)
{
	w->closing = closing;
}

int store_writer__error(const struct store_writer *w)
{
	return w->now.err;
}

uint64_t store_writer__unstored(const struct store_writer *w)
{
	return w->unstored;
}

uint64_t store_writer__table_bytes(const struct store_writer *w)
{
	return w->now.kept_bytes;
}

uint64_t store_writer__late_args(const struct store_writer *w)
{
	return w->late_args;
}

/* ---- spans that go on ---- */

int store_writer__continues(struct store_writer *w, uint64_t span)
{
	uint64_t *at = span <= w->span_base ? map64__at(&w->continued, span) : NULL;

	if (!at)
		return error_set(-ENOMEM, NULL, "no memory to write %s", w->now.path);
	*at = w->ids.known[STORE_REF_SPAN].nr;
	return 0;
}

/* ---- the next file ---- */

static int unreadable(const struct store_writer *w, int err)
{
	return error_set(err, "a recording that is to be rotated must be written to a file",
			 "cannot read %s again: %s", w->now.path, strerror(-err));
}

/* Reads the chunk's payload to behind the room for a head in w->out. */
static int read_chunk(struct store_writer *w, const struct kept_chunk *k)
{
	size_t done = 0;

	if (store_reserve(&w->out, &w->out_cap, STORE_CHUNK_HEAD_BYTES + k->stored_bytes))
		return -ENOMEM;
	while (done < k->stored_bytes) {
		ssize_t n = pread(outfile__fd(w->now.file), w->out + STORE_CHUNK_HEAD_BYTES + done,
				  k->stored_bytes - done,
				  (off_t)(k->at + STORE_CHUNK_HEAD_BYTES + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return unreadable(w, n < 0 ? -errno : -EIO);
		done += (size_t)n;
	}
	return 0;
}

/* Adds the rows of the chunk that was read to those that are still to be written. */
static int unpack(struct store_writer *w, const struct kept_chunk *k)
{
	struct rows_out *to = &w->rest;
	const uint8_t *from = w->out + STORE_CHUNK_HEAD_BYTES;
	size_t n;

	if (k->codec == STORE_CODEC_NONE)
		return store_add_rows(to, from, k->stored_bytes, k->records);
	if (store_reserve(&to->bytes, &to->cap, to->nr_bytes + k->raw_bytes))
		return -ENOMEM;
	n = ZSTD_decompress(to->bytes + to->nr_bytes, k->raw_bytes, from, k->stored_bytes);
	if (ZSTD_isError(n) || n != k->raw_bytes)
		return unreadable(w, -EBADMSG);
	to->nr_bytes += n;
	to->records += k->records;
	return 0;
}

/* behind: bytes of the chunks that follow */
static int copy_chunk(struct store_writer *w, const struct kept_chunk *k, uint64_t behind)
{
	struct store_chunk_head h = {.type = STORE_CHUNK_TABLES,
				     .codec = (uint16_t)k->codec,
				     .raw_bytes = k->raw_bytes,
				     .stored_bytes = k->stored_bytes,
				     .records = k->records};
	int err = read_chunk(w, k);

	if (!err && k->raw_bytes < SMALL_BYTES && (w->rest.records || k->raw_bytes < behind)) {
		err = unpack(w, k);
		return err || w->rest.nr_bytes < STORE_CHUNK_TARGET_BYTES
			       ? err
			       : store_write_lasting(w, &w->next, &w->rest);
	}
	if (!err && w->rest.records) { /* in their order */
		err = store_write_lasting(w, &w->next, &w->rest);
		if (!err)
			err = read_chunk(w, k);
	}
	return err ? err : store_writer_append(w, &w->next, &h, true);
}

int store_writer__rotate_begin(struct store_writer *w, const char *path,
			       const struct outfile_opts *owner)
{
	const struct kept_chunk *kept;
	uint64_t behind = 0;
	int err;

	/* what cannot be stored any more is not; an error shows in w->now.err */
	if (!w->now.err)
		store_writer__flush(w);
	rows_out__reset(&w->rest);
	err = sheet__open(&w->next, path, owner);
	kept = w->now.kept.data;
	for (size_t i = 0; i < w->now.kept.nr; i++)
		behind += kept[i].raw_bytes;
	for (size_t i = 0; i < w->now.kept.nr && !err; i++) {
		behind -= kept[i].raw_bytes;
		err = copy_chunk(w, &kept[i], behind);
	}
	if (err)
		store_writer__rotate_cancel(w);
	return err;
}

void store_writer__rotate_cancel(struct store_writer *w)
{
	outfile__discard(w->next.file);
	sheet__free(&w->next);
	rows_out__reset(&w->rest);
	w->closing = false;
}

/* What was of the old file's window, and is not in it. */
static void forget_window(struct store_writer *w)
{
	w->unstored += w->notes.records + w->details.records + w->events.records;
	rows_out__reset(&w->notes);
	rows_out__reset(&w->details);
	columns__reset(&w->events);
	w->span_base += w->ids.known[STORE_REF_SPAN].nr;
	w->ids.known[STORE_REF_SPAN].nr = 0;
	map64__free(&w->continued);
	w->continued = (struct map64){0};
}

int store_writer__rotate_end(struct store_writer *w, uint64_t end_mono_ns, int *why)
{
	struct rows_out pending;
	int err = store_writer_end(w, end_mono_ns), keep_err;

	*why = err;
	keep_err = outfile__keep_soon(w->now.file);
	if (!*why)
		*why = keep_err;
	sheet__free(&w->now);
	w->now = w->next;
	w->next = (struct sheet){0};
	w->closing = false;
	forget_window(w);
	/* those that the old file had no room for come behind those that it had */
	err = store_add_rows(&w->rest, w->tables.bytes, w->tables.nr_bytes, w->tables.records);
	if (err)
		return error_set(err, NULL, "no memory to write %s", w->now.path);
	pending = w->tables;
	w->tables = w->rest;
	w->rest = pending;
	rows_out__reset(&w->rest);
	return 0;
}
