// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/layout.h"

#include <errno.h>
#include <string.h>

#include "symbol/x86/x86.h"
#include "util/util.h"

/*
 * sizeof(PyASCIIObject), where the characters of an ASCII str begin. CPython's
 * Include/cpython/unicodeobject.h: 3.12 dropped the wstr pointer.
 */
#define PYASCII_BYTES_BEFORE_312 48
#define PYASCII_BYTES_SINCE_312 40

struct field_search {
	const char *globs;
	struct elffile_symbol found;
	bool any;
};

static int match_symbol(void *ctx, const struct elffile_symbol *s)
{
	struct field_search *search = ctx;

	if (!s->function || s->size < 8 || !catalog_match(search->globs, s->name))
		return 0;
	search->found = *s;
	search->any = true;
	return 1;
}

static bool in_library(const struct layout_env *env, size_t i, const struct catalog_row *row)
{
	return !row->layout_library || catalog_match(row->layout_library, env->names[i]);
}

/*
 * Learns the offset of the field that an accessor reads. The accessor returns an object by value:
 * its first argument is the hidden pointer to the result, its second is `this`. Offset 0 is the
 * vtable pointer, and no field.
 */
static int field_of(struct layout_env *env, const struct catalog_row *row, int32_t *value)
{
	for (size_t i = 0; i < env->nr; i++) {
		struct field_search search = {.globs = row->layout_symbol};
		const uint8_t *code;
		size_t avail;

		if (!in_library(env, i, row))
			continue;
		elffile__symbols(env->files[i], match_symbol, &search);
		if (!search.any)
			continue;
		code = elffile__bytes(env->files[i],
				      elffile__offset(env->files[i], search.found.vaddr),
				      search.found.size, &avail);
		return code ? insn_first_field(code, avail, 2, 1, value) : -ENOENT;
	}
	return -ENOENT;
}

static int learn_field(struct layout_env *env, const struct catalog_row *row, int32_t *value)
{
	struct layout_field *f;

	for (size_t i = 0; i < env->nr_fields; i++) {
		if (!strcmp(env->fields[i].globs, row->layout_symbol)) {
			*value = env->fields[i].value;
			return env->fields[i].err;
		}
	}
	if (env->nr_fields == ARRAY_SIZE(env->fields))
		return -ENOSPC;
	f = &env->fields[env->nr_fields++];
	f->globs = row->layout_symbol;
	f->err = field_of(env, row, &f->value);
	*value = f->value;
	return f->err;
}

/* Py_Version is a constant in CPython's read-only data since 3.11. */
static uint32_t python_hex(struct layout_env *env)
{
	if (env->python_hex)
		return env->python_hex;
	env->python_hex = 1;
	for (size_t i = 0; i < env->nr; i++) {
		struct elffile_symbol s;
		const uint8_t *bytes;
		uint32_t hex;
		size_t avail;

		if (!catalog_match("libpython* python*", env->names[i]) ||
		    elffile__symbol(env->files[i], "Py_Version", &s))
			continue;
		bytes = elffile__bytes(env->files[i], elffile__offset(env->files[i], s.vaddr),
				       sizeof(hex), &avail);
		if (!bytes || avail < sizeof(hex))
			continue;
		memcpy(&hex, bytes, sizeof(hex));
		env->python_hex = hex;
		break;
	}
	return env->python_hex;
}

static int vtable_low12(struct layout_env *env, const struct catalog_row *row, uint16_t *low12)
{
	for (size_t i = 0; i < env->nr; i++) {
		struct elffile_symbol s;

		if (!in_library(env, i, row) ||
		    elffile__symbol(env->files[i], row->text_for_vtable, &s))
			continue;
		/*
		 * An object's vtable pointer skips the vtable's first two words, offset-to-top and
		 * typeinfo.
		 */
		*low12 = (s.vaddr + 16) & 0xfff;
		return 0;
	}
	return -ENOENT;
}

const char *layout_fill(struct layout_env *env, const struct catalog_row *row,
			struct kprof_wire_probe *out)
{
	int32_t value = 0;

	out->value = row->value;
	out->text = row->text;
	if (row->layout == CATALOG_LAYOUT_FIELD) {
		if (learn_field(env, row, &value)) {
			out->text.reg = KPROF_REG_NONE;
			return "names of Python-defined objects: their offset could not be learnt";
		}
	} else if (row->layout == CATALOG_LAYOUT_PYUNICODE) {
		value = python_hex(env) >= 0x030c0000 ? PYASCII_BYTES_SINCE_312
						      : PYASCII_BYTES_BEFORE_312;
	}
	if (row->layout != CATALOG_LAYOUT_NONE) {
		if (row->layout_at < 0)
			out->text.add = value;
		else
			out->text.off[row->layout_at] = value;
	}
	if (row->text_for_vtable) {
		if (vtable_low12(env, row, &out->text_if_value_low12)) {
			out->text.reg = KPROF_REG_NONE;
			return "names of Python-defined objects: their class was not found";
		}
		out->text_conditional = 1;
	}
	if (row->value_is) {
		memcpy(&out->text_if_value_low12, row->value_is, 2);
		out->text_if_value_low12 &= 0xfff;
		out->text_conditional = 1;
	}
	return NULL;
}
