// SPDX-License-Identifier: BSD-2-Clause
#include "store/ids.h"

/* Kinds of numbers whose definition a later record with the same number may replace. */
static bool replaceable(unsigned int of)
{
	return of == STORE_REF_THREAD || of == STORE_REF_SOURCE || of == STORE_REF_FRAME;
}

void store_ids__init(struct store_ids *ids)
{
	*ids = (struct store_ids){0};
	ids->known[STORE_REF_STRING].nr = ids->known[STORE_REF_MODULE].nr = 1;
	ids->known[STORE_REF_STACK].nr = 1;
	ids->known[STORE_REF_DESCRIPTION].first = ids->known[STORE_REF_FRAME].first = 1;
	ids->known[STORE_REF_SPAN].first = 1;
	/* PIDs are not defined by any record: every 32-bit number is valid. */
	ids->known[STORE_REF_PID].nr = ids->known[STORE_REF_PID_OR_ALL].nr = 1ull << 32;
	ids->known[STORE_REF_TASK].nr = 1ull << 32;
	/*
	 * Later times cannot be encoded with FIELD_UNTIL_PREV, whose zigzag needs a bit for the
	 * sign.
	 */
	ids->known[RECORD_OF_TIME63].nr = 1ull << 63;
}

/* Defines the number if it is the next one of its kind. False: it is out of order. */
static bool define(struct store_ids *ids, unsigned int of, uint64_t number)
{
	if (number == UINT32_MAX)
		return false;
	if (store_ids__known(ids, of, number))
		return replaceable(of);
	if (number - ids->known[of].first != ids->known[of].nr)
		return false;
	ids->known[of].nr++;
	return true;
}

static bool attrs_ok(const struct store_ids *ids, const struct store_record *r)
{
	if (r->nr_attrs > STORE_MAX_ATTRS)
		return false;
	for (const struct store_attr *a = r->attrs; a < r->attrs + r->nr_attrs; a++) {
		if (!a->key || a->key >= ids->known[STORE_REF_STRING].nr ||
		    !record_attr_known(a->type))
			return false;
		if (record_attrs[a->type].of && a->value >= ids->known[record_attrs[a->type].of].nr)
			return false;
	}
	return true;
}

static bool lines_ok(const struct store_ids *ids, const struct store_record *r)
{
	if (r->frame.nr_lines > STORE_MAX_LINES)
		return false;
	for (uint32_t i = 0; i < r->frame.nr_lines; i++)
		for (const struct record_field *f = record_line_fields; f->coding; f++)
			if (f->of &&
			    !store_ids__known(ids, f->of, record_load(&r->frame.lines[i], f)))
				return false;
	return true;
}

/* Checks a field that is not a number. */
static bool text_ok(const struct store_ids *ids, const struct store_record *r,
		    const struct record_field *f)
{
	switch ((enum field_coding)f->coding) {
	case FIELD_NAME:
		return *record_text(r, f) != '\0';
	case FIELD_BYTES:
		return !r->string.len || !memchr(r->string.bytes, '\0', r->string.len);
	case FIELD_LINES:
		return lines_ok(ids, r);
	default:
		return true;
	}
}

bool store_ids__accept(struct store_ids *ids, const struct store_record *r,
		       const struct record_kind *kind)
{
	const struct record_field *defines = NULL;

	if (kind->chunk == STORE_CHUNK_DETAILS) /* details define nothing */
		return !r->nr_attrs || attrs_ok(ids, r);
	for (const struct record_field *f = kind->fields; f->coding; f++) {
		if (f->defines)
			defines = f;
		if (f->of == RECORD_OF_TEXT && !text_ok(ids, r, f))
			return false;
	}
	/*
	 * This comes last, so that a refused record defines nothing and no record can refer to
	 * itself.
	 */
	return !defines || define(ids, defines->defines, record_load(r, defines));
}
