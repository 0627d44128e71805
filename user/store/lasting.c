// SPDX-License-Identifier: BSD-2-Clause
/*
 * Of a writer that may rotate: the records that the next file begins with, too. They are in chunks
 * that have nothing else in them.
 */
#include <errno.h>
#include <string.h>

#include "store/varint.h"
#include "store/writer.h"

/* While nothing can be stored, tables are kept in memory, as the next file needs them. */
#define PENDING_MOST_BYTES (32ull << 20)

bool store_writer_lasts(const struct store_writer *w, const struct store_record *r)
{
	switch (r->type) {
	case STORE_META:
		return !w->closing;
	case STORE_SOURCE: /* the first one, to which descriptions refer; later ones are counts */
		return !store_ids__known(&w->ids, STORE_REF_SOURCE, r->source.index);
	case STORE_PROCESS: /* said anew of those that live */
	case STORE_OWNER:
	case STORE_EXECUTABLE:
	case STORE_PROCESS_EXIT:
	case STORE_GAP:
	case STORE_CLOCK:
	case STORE_THREAD_TIME:
	case STORE_FINISH:
		return false;
	default:
		return true;
	}
}

bool store_writer_goes_on(const struct store_writer *w)
{
	return w->rotates && w->now.err && w->tables.nr_bytes < PENDING_MOST_BYTES;
}

bool store_writer_span_here(const struct store_writer *w, uint64_t *span)
{
	uint64_t here = map64__get(&w->continued, *span);

	if (!here && *span > w->span_base)
		here = *span - w->span_base;
	*span = here;
	return here != 0;
}

int store_add_rows(struct rows_out *to, const uint8_t *bytes, size_t nr_bytes, uint32_t records)
{
	if (store_reserve(&to->bytes, &to->cap, to->nr_bytes + nr_bytes))
		return -ENOMEM;
	if (nr_bytes)
		memcpy(to->bytes + to->nr_bytes, bytes, nr_bytes);
	to->nr_bytes += nr_bytes;
	to->records += records;
	return 0;
}

/* The rows' first records, at most a chunk of them, but at least one. */
static struct rows_out first_rows(const struct rows_out *rows)
{
	struct rows_out part = {.bytes = rows->bytes};
	const uint8_t *at = rows->bytes, *end = at + rows->nr_bytes;
	uint64_t type, bytes;

	while (at < end && varint_get(&at, end, &type) && varint_get(&at, end, &bytes)) {
		at += bytes;
		if (part.records && (size_t)(at - rows->bytes) > STORE_CHUNK_TARGET_BYTES)
			break;
		part.nr_bytes = (size_t)(at - rows->bytes);
		part.records++;
	}
	return part;
}

static void drop_rows(struct rows_out *rows, const struct rows_out *first)
{
	rows->nr_bytes -= first->nr_bytes;
	rows->records -= first->records;
	memmove(rows->bytes, rows->bytes + first->nr_bytes, rows->nr_bytes);
}

/* Those that cannot be written stay. */
int store_write_lasting(struct store_writer *w, struct sheet *to, struct rows_out *rows)
{
	while (rows->records) {
		struct rows_out first = first_rows(rows);
		int err = store_writer_rows(w, to, &first, STORE_CHUNK_TABLES, true);

		if (err)
			return err;
		drop_rows(rows, &first);
	}
	return 0;
}

int store_writer_tables(struct store_writer *w)
{
	int err = 0;

	if (w->now.err)
		return w->now.err;
	if (w->next.file)
		err = store_add_rows(&w->rest, w->tables.bytes, w->tables.nr_bytes,
				     w->tables.records);
	if (err)
		return store_no_memory(w);
	err = store_write_lasting(w, &w->now, &w->tables);
	if (w->next.file) { /* those that stay are taken when the next file begins, and not twice */
		w->rest.nr_bytes -= w->tables.nr_bytes;
		w->rest.records -= w->tables.records;
	}
	return err;
}
