// SPDX-License-Identifier: BSD-2-Clause
/* Changes a record's references to the numbers of another capture, and its times to its clock. */
#include "store/records.h"

static bool renumber(void *record, const struct record_field *f, struct store_renumber *to)
{
	enum store_ref ref = (enum store_ref)(f->defines ? f->defines : f->of);
	uint64_t number = to->number(to->ctx, ref, record_load(record, f), f->defines != 0);

	return number != STORE_LEFT_OUT && record_save(record, f, number);
}

static bool renumber_lines(struct store_record *r, struct store_renumber *to)
{
	for (uint32_t i = 0; i < r->frame.nr_lines; i++) {
		to->lines[i] = r->frame.lines[i];
		for (const struct record_field *f = record_line_fields; f->coding; f++)
			if (f->of && !renumber(&to->lines[i], f, to))
				return false;
	}
	r->frame.lines = to->lines;
	return true;
}

static bool renumber_attrs(struct store_record *r, struct store_renumber *to)
{
	for (uint32_t i = 0; i < r->nr_attrs; i++) {
		struct store_attr *a = &to->attrs[i];
		enum store_ref ref;
		uint64_t key;

		*a = r->attrs[i];
		key = to->number(to->ctx, STORE_REF_STRING, a->key, false);
		if (key == STORE_LEFT_OUT)
			return false;
		a->key = (uint32_t)key;
		ref = (enum store_ref)record_attrs[a->type].of;
		if (ref)
			a->value = to->number(to->ctx, ref, a->value, false);
		if (ref && a->value == STORE_LEFT_OUT)
			return false;
	}
	r->attrs = to->attrs;
	return true;
}

static void retime(struct store_record *r, const struct record_field *f, struct store_renumber *to)
{
	uint64_t ns = record_load(r, f);

	if (ns)
		record_save(r, f, to->time(to->ctx, ns));
}

bool store_record__renumber(struct store_record *r, struct store_renumber *to)
{
	const struct record_kind *kind = record_kind_of(r->type);
	const struct record_field *defines = NULL;

	if (!kind)
		return false;
	for (const struct record_field *f = kind->fields; f->coding; f++) {
		if (f->coding == FIELD_LINES && !renumber_lines(r, to))
			return false;
		if (f->time && to->time)
			retime(r, f, to);
		if (f->defines)
			defines = f;
		else if (f->of && f->of < STORE_REFS && !renumber(r, f, to))
			return false;
	}
	if (kind->chunk == STORE_CHUNK_DETAILS && !renumber_attrs(r, to))
		return false;
	return !defines || renumber(r, defines, to);
}
