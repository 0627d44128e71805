// SPDX-License-Identifier: BSD-2-Clause
#include "store/rows.h"

#include <errno.h>

#include "store/varint.h"

/* A record's type and length. */
#define PREFIX_MAX_BYTES (2 * VARINT_MAX_BYTES)
#define LINE_MAX_BYTES (4 * VARINT_MAX_BYTES)

/* ---- writing ---- */

size_t rows__max_bytes(const struct store_record *r)
{
	const struct record_kind *kind = record_kind_of(r->type);
	size_t bytes = PREFIX_MAX_BYTES + RECORD_FIELDS_MAX * VARINT_MAX_BYTES;

	for (const struct record_field *f = kind ? kind->fields : NULL; f && f->coding; f++) {
		if (f->coding == FIELD_TEXT || f->coding == FIELD_NAME)
			bytes += strlen(record_text(r, f)) + 1;
		if (f->coding == FIELD_BYTES)
			bytes += r->string.len;
		if (f->coding == FIELD_LINES)
			bytes += r->frame.nr_lines * LINE_MAX_BYTES;
	}
	return bytes;
}

static uint8_t *put_bytes(uint8_t *to, const void *bytes, size_t nr)
{
	if (nr)
		memcpy(to, bytes, nr);
	return to + nr;
}

/* Encodes a field that is not a number. */
static uint8_t *put_text(uint8_t *to, const struct store_record *r, const struct record_field *f)
{
	const char *text;

	switch ((enum field_coding)f->coding) {
	case FIELD_BYTES:
		return put_bytes(to, r->string.bytes, r->string.len);
	case FIELD_LINES:
		for (uint32_t i = 0; i < r->frame.nr_lines; i++)
			for (f = record_line_fields; f->coding; f++)
				to = varint_put(to, record_load(&r->frame.lines[i], f));
		return to;
	default:
		text = record_text(r, f);
		return put_bytes(to, text, strlen(text) + 1);
	}
}

/* Encodes the record's numbers. NULL: one of them refers to something undefined. */
static uint8_t *put_numbers(uint64_t *cursors, const struct store_ids *ids, uint8_t *to,
			    const struct store_record *r, const struct record_field *f)
{
	uint64_t prev = 0, v, c;

	for (; f->coding && f->coding <= FIELD_NUMBERS; f++, prev = v) {
		c = v = record_load(r, f);
		if (f->of && !store_ids__known(ids, f->of, v))
			return NULL;
		switch ((enum field_coding)f->coding) {
		case FIELD_SIGNED:
			c = zigzag(v);
			break;
		case FIELD_SINCE_LAST:
			c = zigzag(v - cursors[f->cursor]);
			cursors[f->cursor] = v;
			break;
		case FIELD_SINCE_PREV:
			c = zigzag(v - prev);
			break;
		case FIELD_UNTIL_PREV: /* times are below 2^63: the code does not wrap */
			c = v ? zigzag(prev - v) + 1 : 0;
			break;
		default:
			break;
		}
		to = varint_put(to, c);
	}
	return to;
}

static uint8_t *put_texts(uint8_t *to, const struct store_record *r, const struct record_field *f)
{
	for (; f->coding; f++)
		if (f->coding > FIELD_NUMBERS)
			to = put_text(to, r, f);
	return to;
}

void rows_out__reset(struct rows_out *o)
{
	o->nr_bytes = 0;
	o->records = o->samples = 0;
	o->state.nr_lists = 0;
	memset(o->state.cursors, 0, sizeof(o->state.cursors));
	memset(o->slots, 0, sizeof(o->slots));
}

/*
 * The length of a record comes before its fields, but is known only after they are encoded: they
 * are moved when it takes more than the one byte that was left for it.
 */
static uint8_t *put_length(uint8_t *to, uint8_t *end)
{
	uint8_t length[VARINT_MAX_BYTES];
	size_t bytes = (size_t)(end - to - 1), nr = (size_t)(varint_put(length, bytes) - length);

	if (nr > 1)
		memmove(to + nr, to + 1, bytes);
	memcpy(to, length, nr);
	return to + nr + bytes;
}

bool rows_out__put(struct rows_out *o, struct store_ids *ids, const struct store_record *r)
{
	const struct record_kind *kind = &record_kinds[r->type];
	uint8_t *length = varint_put(o->bytes + o->nr_bytes, r->type), *end;
	uint64_t *cursors = o->state.cursors[r->type], before[RECORD_CURSORS];

	memcpy(before, cursors, sizeof(before));
	end = put_numbers(cursors, ids, length + 1, r, kind->fields);
	if (!end || !store_ids__accept(ids, r, kind)) {
		memcpy(cursors, before, sizeof(before));
		return false;
	}
	end = kind->chunk == STORE_CHUNK_DETAILS ? rows_out__put_attrs(o, end, r)
						 : put_texts(end, r, kind->fields);
	o->nr_bytes = (size_t)(put_length(length, end) - o->bytes);
	o->records++;
	o->samples += r->type == STORE_SAMPLE;
	return true;
}

/* ---- reading ---- */

static bool get_number(const uint8_t **at, const uint8_t *end, void *record,
		       const struct record_field *f)
{
	uint64_t v;

	return varint_get(at, end, &v) && record_save(record, f, v);
}

static bool get_lines(struct rows_in *in, const uint8_t **at, const uint8_t *end,
		      struct store_record *out)
{
	if (out->frame.nr_lines > STORE_MAX_LINES)
		return false;
	for (uint32_t i = 0; i < out->frame.nr_lines; i++)
		for (const struct record_field *f = record_line_fields; f->coding; f++)
			if (!get_number(at, end, &in->lines[i], f))
				return false;
	out->frame.lines = in->lines;
	return true;
}

/* Decodes a field that is not a number. Texts are not copied: `out` points into the payload. */
static bool get_text(struct rows_in *in, const uint8_t **at, const uint8_t *end,
		     const struct record_field *f, struct store_record *out)
{
	const uint8_t *nul;

	switch ((enum field_coding)f->coding) {
	case FIELD_BYTES:
		out->string.len = (uint32_t)(end - *at);
		out->string.bytes = (const char *)*at;
		*at = end;
		return true;
	case FIELD_LINES:
		return get_lines(in, at, end, out);
	default:
		nul = memchr(*at, '\0', (size_t)(end - *at));
		if (!nul)
			return false;
		memcpy((uint8_t *)out + f->offset, at, sizeof(*at));
		*at = nul + 1;
		return true;
	}
}

static bool get_fields(struct rows_in *in, const struct store_ids *ids, const uint8_t **at,
		       const uint8_t *end, const struct record_field *f, struct store_record *out)
{
	uint64_t *cursors = in->state.cursors[out->type], prev = 0, v;

	for (; f->coding && f->coding <= FIELD_NUMBERS; f++, prev = v) {
		if (!varint_get(at, end, &v))
			return false;
		switch ((enum field_coding)f->coding) {
		case FIELD_SIGNED:
			v = unzigzag(v);
			break;
		case FIELD_SINCE_LAST:
			v = cursors[f->cursor] += unzigzag(v);
			break;
		case FIELD_SINCE_PREV:
			v = unzigzag(v) + prev;
			break;
		case FIELD_UNTIL_PREV:
			v = v ? prev - unzigzag(v - 1) : 0;
			break;
		default:
			break;
		}
		if (!record_save(out, f, v) || (f->of && !store_ids__known(ids, f->of, v)))
			return false;
	}
	for (; f->coding; f++)
		if (!get_text(in, at, end, f, out))
			return false;
	return true; /* any bytes left are fields of a newer minor version */
}

void rows_in__start(struct rows_in *in, enum store_chunk_type chunk, const uint8_t *raw,
		    uint32_t raw_bytes)
{
	memset(in->state.cursors, 0, sizeof(in->state.cursors));
	in->state.nr_lists = 0;
	in->chunk = (uint8_t)chunk;
	in->at = raw;
	in->end = raw + raw_bytes;
	in->records = in->samples = 0;
}

int rows_in__next(struct rows_in *in, struct store_ids *ids, struct store_record *out)
{
	while (in->at < in->end) {
		const struct record_kind *kind;
		const uint8_t *payload;
		uint64_t type, bytes;

		if (!varint_get(&in->at, in->end, &type) || !varint_get(&in->at, in->end, &bytes) ||
		    bytes > STORE_RECORD_MAX_BYTES || bytes > (size_t)(in->end - in->at))
			return -EBADMSG;
		payload = in->at;
		in->at += bytes;
		in->records++;
		kind = record_kind_of(type);
		if (!kind || kind->chunk != in->chunk)
			continue;
		out->type = (enum store_type)type;
		in->samples += type == STORE_SAMPLE;
		if (!get_fields(in, ids, &payload, in->at, kind->fields, out))
			return -EBADMSG;
		if (kind->chunk == STORE_CHUNK_DETAILS &&
		    !rows_in__get_attrs(in, &payload, in->at, out))
			return -EBADMSG;
		return store_ids__accept(ids, out, kind) ? 1 : -EBADMSG;
	}
	return 0;
}

_Static_assert(PREFIX_MAX_BYTES + (RECORD_FIELDS_MAX + 2) * VARINT_MAX_BYTES +
			       STORE_MAX_ATTRS * 5 * VARINT_MAX_BYTES <=
		       ROWS_DETAIL_MAX_BYTES,
	       "rows: room for a record of details");
