// SPDX-License-Identifier: BSD-2-Clause
#include "store/details.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "store/varint.h"
#include "util/util.h"

#define FIELDS_MAX 10

enum how {
	PLAIN,      /* as it is */
	SIGNED,     /* zigzag */
	SINCE_LAST, /* zigzag of the difference from the cursor */
	SINCE_PREV, /* zigzag of the difference from the field in front of it */
	UNTIL_PREV, /* the same, + 1; 0 is 0: not known */
};

struct field {
	uint8_t offset, bytes; /* in struct store_record */
	uint8_t how;           /* enum how */
	uint8_t cursor;        /* set to this field's value: enum details_cursor */
};
#define F(member, how) REMEMBERED(member, how, CURSOR_NONE)
#define REMEMBERED(member, how, cursor)                                                            \
	{                                                                                          \
		offsetof(struct store_record, member), sizeof(((struct store_record *)0)->member), \
			how, cursor                                                                \
	}

/*
 * In the order of the file: what differs from row to row first and what repeats last, beside the attributes, so that
 * zstd finds it as one. An activity starts soon after the one before it ended, hence the cursor at its end.
 */
static const struct layout {
	uint8_t nr;
	struct field fields[FIELDS_MAX];
} layouts[] = {
	[STORE_ARGS] = {1, {REMEMBERED(args.span, SINCE_LAST, CURSOR_SPAN)}},
	[STORE_ACTIVITY] = {10,
			    {REMEMBERED(activity.start_ns, SINCE_LAST, CURSOR_ACTIVITY_NS),
			     F(activity.queued_ns, UNTIL_PREV),
			     REMEMBERED(activity.end_ns, SINCE_LAST, CURSOR_ACTIVITY_NS),
			     REMEMBERED(activity.correlation, SINCE_LAST,
					CURSOR_ACTIVITY_CORRELATION),
			     F(activity.name, PLAIN), F(activity.type, PLAIN),
			     F(activity.stream, PLAIN), F(activity.context, PLAIN),
			     F(activity.device, PLAIN), F(activity.pid, PLAIN)}},
	[STORE_API] = {6,
		       {REMEMBERED(api.start_ns, SINCE_LAST, CURSOR_API_NS),
			F(api.end_ns, SINCE_PREV),
			REMEMBERED(api.correlation, SINCE_LAST, CURSOR_API_CORRELATION),
			F(api.name, PLAIN), F(api.type, PLAIN), F(api.thread, PLAIN)}},
	[STORE_INSTANT] = {3,
			   {REMEMBERED(instant.time_ns, SINCE_LAST, CURSOR_INSTANT_NS),
			    F(instant.thread, PLAIN), F(instant.what, PLAIN)}},
	[STORE_COUNTER] = {5,
			   {REMEMBERED(counter.time_ns, SINCE_LAST, CURSOR_COUNTER_NS),
			    F(counter.value, SIGNED), F(counter.name, PLAIN), F(counter.pid, PLAIN),
			    F(counter.device, PLAIN)}},
	[STORE_SAMPLE] = {5,
			  {REMEMBERED(sample.time_ns, SINCE_LAST, CURSOR_SAMPLE_NS),
			   F(sample.thread, PLAIN),
			   REMEMBERED(sample.stack, SINCE_LAST, CURSOR_SAMPLE_STACK),
			   F(sample.weight_ns, PLAIN), F(sample.flags, PLAIN)}},
};

static const struct layout *layout_of(uint64_t type)
{
	return type < ARRAY_SIZE(layouts) && layouts[type].nr ? &layouts[type] : NULL;
}

static uint64_t zigzag(uint64_t v)
{
	return v << 1 ^ -(v >> 63);
}

static uint64_t unzigzag(uint64_t v)
{
	return v >> 1 ^ -(v & 1);
}

/* ---- fields --------------------------------------------------------------------------------- */

static uint64_t load(const struct store_record *r, const struct field *f)
{
	const uint8_t *at = (const uint8_t *)r + f->offset;
	uint64_t v64;
	uint32_t v32;

	if (f->bytes == sizeof(v32)) {
		memcpy(&v32, at, sizeof(v32));
		return v32;
	}
	memcpy(&v64, at, sizeof(v64));
	return v64;
}

static bool save(struct store_record *r, const struct field *f, uint64_t v)
{
	uint8_t *to = (uint8_t *)r + f->offset;
	uint32_t v32 = (uint32_t)v;

	if (f->bytes == sizeof(v)) {
		memcpy(to, &v, sizeof(v));
		return true;
	}
	memcpy(to, &v32, sizeof(v32));
	return v == v32;
}

static uint64_t coded(const struct details_state *s, const struct field *f, uint64_t v,
		      uint64_t prev)
{
	switch ((enum how)f->how) {
	case SIGNED:
		return zigzag(v);
	case SINCE_LAST:
		return zigzag(v - s->cursors[f->cursor]);
	case SINCE_PREV:
		return zigzag(v - prev);
	case UNTIL_PREV: /* times are below 2^63: the sum does not wrap */
		return v ? zigzag(prev - v) + 1 : 0;
	case PLAIN:
		break;
	}
	return v;
}

static uint64_t decoded(const struct details_state *s, const struct field *f, uint64_t c,
			uint64_t prev)
{
	switch ((enum how)f->how) {
	case SIGNED:
		return unzigzag(c);
	case SINCE_LAST:
		return unzigzag(c) + s->cursors[f->cursor];
	case SINCE_PREV:
		return unzigzag(c) + prev;
	case UNTIL_PREV:
		return c ? prev - unzigzag(c - 1) : 0;
	case PLAIN:
		break;
	}
	return c;
}

static uint8_t *put_fields(struct details_state *s, uint8_t *to, const struct store_record *r,
			   const struct layout *layout)
{
	uint64_t prev = 0;

	for (const struct field *f = layout->fields; f < layout->fields + layout->nr; f++) {
		uint64_t v = load(r, f);

		to = varint_put(to, coded(s, f, v, prev));
		s->cursors[f->cursor] = v;
		prev = v;
	}
	return to;
}

static bool get_fields(struct details_state *s, const uint8_t **at, const uint8_t *end,
		       const struct layout *layout, struct store_record *out)
{
	uint64_t prev = 0;

	for (const struct field *f = layout->fields; f < layout->fields + layout->nr; f++) {
		uint64_t c;

		if (!varint_get(at, end, &c))
			return false;
		prev = decoded(s, f, c, prev);
		s->cursors[f->cursor] = prev;
		if (!save(out, f, prev))
			return false;
	}
	return true;
}

/* ---- attributes ----------------------------------------------------------------------------- */

/* How the list of keys is told. */
enum { LIST_NONE = 0, LIST_NEW = 1, LIST_KNOWN = 2 /* and on: number of the list */ };

static uint32_t hash_keys(const struct store_record *r)
{
	uint32_t h = r->nr_attrs;

	for (uint32_t i = 0; i < r->nr_attrs; i++)
		h = (h ^ r->attrs[i].key << 3 ^ r->attrs[i].type) * 0x9e3779b1u;
	return h ^ h >> 15;
}

static bool same_keys(const struct details_list *l, const struct store_record *r, uint32_t hash)
{
	if (l->hash != hash || l->nr != r->nr_attrs)
		return false;
	for (uint32_t i = 0; i < l->nr; i++)
		if (l->at[i].key != r->attrs[i].key || l->at[i].type != r->attrs[i].type)
			return false;
	return true;
}

/* The list's number, or LIST_NEW; a new one is remembered while there is room. */
static uint32_t number_of_list(struct details_out *d, const struct store_record *r)
{
	uint32_t hash = hash_keys(r), slot = hash % ARRAY_SIZE(d->slots);
	struct details_list *l;

	for (; d->slots[slot]; slot = (slot + 1) % ARRAY_SIZE(d->slots))
		if (same_keys(&d->state.lists[d->slots[slot] - 1], r, hash))
			return LIST_KNOWN + d->slots[slot] - 1;
	if (d->state.nr_lists == DETAILS_MAX_LISTS)
		return LIST_NEW;
	l = &d->state.lists[d->state.nr_lists++];
	l->nr = r->nr_attrs;
	l->hash = hash;
	for (uint32_t i = 0; i < l->nr; i++)
		l->at[i] = (struct details_key){r->attrs[i].key, r->attrs[i].type};
	d->slots[slot] = (uint8_t)d->state.nr_lists;
	return LIST_NEW;
}

static uint8_t *put_value(uint8_t *to, const struct store_attr *a)
{
	switch (a->type) {
	case STORE_ATTR_I64:
		return varint_put(to, zigzag(a->value));
	case STORE_ATTR_DOUBLE: /* the low bits of round numbers are zero: first byte first */
		return varint_put(to, __builtin_bswap64(a->value));
	case STORE_ATTR_DIM3:
		to = varint_put(to, a->value & UINT32_MAX);
		to = varint_put(to, a->value >> 32 & UINT16_MAX);
		return varint_put(to, a->value >> 48);
	default:
		return varint_put(to, a->value);
	}
}

static bool get_value(const uint8_t **at, const uint8_t *end, struct store_attr *a)
{
	uint64_t x, y, z;

	if (!varint_get(at, end, &x))
		return false;
	switch (a->type) {
	case STORE_ATTR_I64:
		a->value = unzigzag(x);
		return true;
	case STORE_ATTR_DOUBLE:
		a->value = __builtin_bswap64(x);
		return true;
	case STORE_ATTR_DIM3:
		if (!varint_get(at, end, &y) || !varint_get(at, end, &z) || x > UINT32_MAX ||
		    y > UINT16_MAX || z > UINT16_MAX)
			return false;
		a->value = x | y << 32 | z << 48;
		return true;
	default:
		a->value = x;
		return true;
	}
}

static uint8_t *put_attrs(struct details_out *d, uint8_t *to, const struct store_record *r)
{
	uint32_t list = r->nr_attrs ? number_of_list(d, r) : LIST_NONE;

	to = varint_put(to, list);
	if (list == LIST_NEW) {
		to = varint_put(to, r->nr_attrs);
		for (uint32_t i = 0; i < r->nr_attrs; i++) {
			to = varint_put(to, r->attrs[i].key);
			to = varint_put(to, r->attrs[i].type);
		}
	}
	for (uint32_t i = 0; i < r->nr_attrs; i++)
		to = put_value(to, &r->attrs[i]);
	return to;
}

static bool get_list(const uint8_t **at, const uint8_t *end, struct details_list *l)
{
	uint64_t nr, key, type;

	if (!varint_get(at, end, &nr) || !nr || nr > STORE_MAX_ATTRS)
		return false;
	l->nr = (uint32_t)nr;
	for (uint32_t i = 0; i < l->nr; i++) {
		if (!varint_get(at, end, &key) || !varint_get(at, end, &type) || key > UINT32_MAX ||
		    type > UINT32_MAX)
			return false;
		l->at[i] = (struct details_key){(uint32_t)key, (uint32_t)type};
	}
	return true;
}

static bool known_type(uint32_t type)
{
	return type >= STORE_ATTR_U64 && type <= STORE_ATTR_STACK;
}

static bool get_values(struct details_in *d, const uint8_t **at, const uint8_t *end,
		       const struct details_list *l, struct store_record *out)
{
	for (uint32_t i = 0; i < l->nr; i++) {
		struct store_attr a = {l->at[i].key, l->at[i].type, 0};

		if (!get_value(at, end, &a))
			return false;
		if (known_type(a.type)) /* else a newer minor version's */
			d->attrs[out->nr_attrs++] = a;
	}
	return true;
}

static bool get_attrs(struct details_in *d, const uint8_t **at, const uint8_t *end,
		      struct store_record *out)
{
	struct details_state *s = &d->state;
	struct details_list own, *l = &own;
	uint64_t number;

	out->attrs = d->attrs;
	out->nr_attrs = 0;
	if (!varint_get(at, end, &number))
		return false;
	if (number == LIST_NONE)
		return true;
	if (number == LIST_NEW) {
		if (s->nr_lists < DETAILS_MAX_LISTS)
			l = &s->lists[s->nr_lists++];
		if (!get_list(at, end, l))
			return false;
	} else {
		if (number - LIST_KNOWN >= s->nr_lists)
			return false;
		l = &s->lists[number - LIST_KNOWN];
	}
	return get_values(d, at, end, l, out);
}

/* ---- records -------------------------------------------------------------------------------- */

int details_out__init(struct details_out *d)
{
	d->bytes = malloc(STORE_CHUNK_TARGET_BYTES);
	return d->bytes ? 0 : -ENOMEM;
}

void details_out__free(struct details_out *d)
{
	free(d->bytes);
}

void details_out__reset(struct details_out *d)
{
	d->nr_bytes = d->records = d->samples = 0;
	d->state.nr_lists = 0;
	memset(d->state.cursors, 0, sizeof(d->state.cursors));
	memset(d->slots, 0, sizeof(d->slots));
}

void details_out__put(struct details_out *d, const struct store_record *r)
{
	uint8_t payload[DETAILS_RECORD_MAX_BYTES], *to = d->bytes + d->nr_bytes, *end;
	size_t bytes;

	end = put_fields(&d->state, payload, r, layout_of(r->type));
	end = put_attrs(d, end, r);
	bytes = (size_t)(end - payload);
	to = varint_put(varint_put(to, r->type), bytes);
	memcpy(to, payload, bytes);
	d->nr_bytes = (uint32_t)(to + bytes - d->bytes);
	d->records++;
	d->samples += r->type == STORE_SAMPLE;
}

void details_in__start(struct details_in *d, const uint8_t *raw, uint32_t raw_bytes)
{
	memset(d->state.cursors, 0, sizeof(d->state.cursors));
	d->state.nr_lists = 0;
	d->at = raw;
	d->end = raw + raw_bytes;
	d->records = d->samples = 0;
}

int details_in__next(struct details_in *d, struct store_record *out)
{
	while (d->at < d->end) {
		const struct layout *layout;
		const uint8_t *payload;
		uint64_t type, bytes;

		if (!varint_get(&d->at, d->end, &type) || !varint_get(&d->at, d->end, &bytes) ||
		    bytes > (size_t)(d->end - d->at))
			return -EBADMSG;
		payload = d->at;
		d->at += bytes;
		d->records++;
		layout = layout_of(type);
		if (!layout)
			continue;
		out->type = (enum store_type)type;
		d->samples += type == STORE_SAMPLE;
		return get_fields(&d->state, &payload, d->at, layout, out) &&
				       get_attrs(d, &payload, d->at, out)
			       ? 1
			       : -EBADMSG;
	}
	return 0;
}

_Static_assert(2 * VARINT_MAX_BYTES + (FIELDS_MAX + 2) * VARINT_MAX_BYTES +
			       STORE_MAX_ATTRS * 5 * VARINT_MAX_BYTES <=
		       DETAILS_RECORD_MAX_BYTES,
	       "details: room for a record");
