// SPDX-License-Identifier: BSD-2-Clause
/*
 * Encodes and decodes the attributes of a row of details: first their keys and types, mostly as the
 * number of a list that the chunk has already used, then their values.
 */
#include "store/rows.h"

#include "store/varint.h"
#include "util/util.h"

/* How the list of keys is written. */
enum { LIST_NONE = 0, LIST_NEW = 1, LIST_KNOWN = 2 /* LIST_KNOWN + i: list i of this chunk */ };

static uint32_t hash_keys(const struct store_record *r)
{
	uint32_t h = r->nr_attrs;

	for (uint32_t i = 0; i < r->nr_attrs; i++)
		h = (h ^ r->attrs[i].key << 3 ^ r->attrs[i].type) * 0x9e3779b1u;
	return h ^ h >> 15;
}

static bool same_keys(const struct attr_list *l, const struct store_record *r, uint32_t hash)
{
	if (l->hash != hash || l->nr != r->nr_attrs)
		return false;
	for (uint32_t i = 0; i < l->nr; i++)
		if (l->at[i].key != r->attrs[i].key || l->at[i].type != r->attrs[i].type)
			return false;
	return true;
}

/*
 * LIST_KNOWN + the index of the record's list of keys, or LIST_NEW if the chunk has not used that
 * list yet. A new list is remembered while there is room.
 */
static uint32_t number_of_list(struct rows_out *o, const struct store_record *r)
{
	uint32_t hash = hash_keys(r), slot = hash % ARRAY_SIZE(o->slots);
	struct attr_list *l;

	for (; o->slots[slot]; slot = (slot + 1) % ARRAY_SIZE(o->slots))
		if (same_keys(&o->state.lists[o->slots[slot] - 1], r, hash))
			return LIST_KNOWN + o->slots[slot] - 1;
	if (o->state.nr_lists == ROWS_MAX_LISTS)
		return LIST_NEW;
	l = &o->state.lists[o->state.nr_lists++];
	l->nr = r->nr_attrs;
	l->hash = hash;
	for (uint32_t i = 0; i < l->nr; i++)
		l->at[i] = (struct attr_key){r->attrs[i].key, r->attrs[i].type};
	o->slots[slot] = (uint8_t)o->state.nr_lists;
	return LIST_NEW;
}

static uint8_t *put_value(uint8_t *to, const struct store_attr *a)
{
	switch ((enum store_attr_type)a->type) {
	case STORE_ATTR_I64:
		return varint_put(to, zigzag(a->value));
	/* round numbers end in zero bits: with bytes swapped they are short varints */
	case STORE_ATTR_DOUBLE:
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
	switch ((enum store_attr_type)a->type) {
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
	default: /* types that a newer minor version adds are one varint */
		a->value = x;
		return true;
	}
}

uint8_t *rows_out__put_attrs(struct rows_out *o, uint8_t *to, const struct store_record *r)
{
	uint32_t list = r->nr_attrs ? number_of_list(o, r) : LIST_NONE;

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

static bool get_list(const uint8_t **at, const uint8_t *end, struct attr_list *l)
{
	uint64_t nr, key, type;

	if (!varint_get(at, end, &nr) || !nr || nr > STORE_MAX_ATTRS)
		return false;
	l->nr = (uint32_t)nr;
	for (uint32_t i = 0; i < l->nr; i++) {
		if (!varint_get(at, end, &key) || !varint_get(at, end, &type) || key > UINT32_MAX ||
		    type > UINT32_MAX)
			return false;
		l->at[i] = (struct attr_key){(uint32_t)key, (uint32_t)type};
	}
	return true;
}

static bool get_values(struct rows_in *in, const uint8_t **at, const uint8_t *end,
		       const struct attr_list *l, struct store_record *out)
{
	for (uint32_t i = 0; i < l->nr; i++) {
		struct store_attr *a = &in->attrs[out->nr_attrs];

		a->key = l->at[i].key;
		a->type = l->at[i].type;
		if (!get_value(at, end, a))
			return false;
		/* types of a newer minor version are skipped */
		out->nr_attrs += record_attr_known(a->type);
	}
	return true;
}

bool rows_in__get_attrs(struct rows_in *in, const uint8_t **at, const uint8_t *end,
			struct store_record *out)
{
	struct rows_state *s = &in->state;
	struct attr_list own, *l = &own;
	uint64_t number;

	out->attrs = in->attrs;
	out->nr_attrs = 0;
	if (!varint_get(at, end, &number))
		return false;
	if (number == LIST_NONE)
		return true;
	if (number == LIST_NEW) {
		if (s->nr_lists < ROWS_MAX_LISTS)
			l = &s->lists[s->nr_lists++];
		if (!get_list(at, end, l))
			return false;
	} else {
		if (number - LIST_KNOWN >= s->nr_lists)
			return false;
		l = &s->lists[number - LIST_KNOWN];
	}
	return get_values(in, at, end, l, out);
}
