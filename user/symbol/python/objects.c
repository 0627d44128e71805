// SPDX-License-Identifier: BSD-2-Clause
/*
 * Dicts: Objects/dictobject.c, Include/internal/pycore_dict.h; where an object has its attributes:
 * Objects/object.c, Include/internal/pycore_object.h of CPython.
 */
#include "symbol/python/objects.h"

#include <errno.h>
#include <string.h>

#include "util/util.h"

#define MAX_ENTRIES 65536 /* most entries of a dict that are read */
#define MAX_HEAD_BYTES 128

/* bits of tp_flags */
#define INLINE_VALUES (1ull << 2) /* from 3.13 */
#define MANAGED_DICT (1ull << 4)

/* The page at this address; NULL: it cannot be read as a whole. */
static const struct python_page *page_at(const struct python_reader *r, uint64_t address)
{
	struct python_page *page = &r->pages[hash64(address) % PYTHON_NR_PAGES];

	if (page->address == address)
		return page;
	page->address = 0;
	if (r->m->read(r->m->ctx, page->bytes, PYTHON_PAGE_BYTES, address))
		return NULL;
	page->address = address;
	return page;
}

int python_get(const struct python_reader *r, void *to, size_t bytes, uint64_t address)
{
	uint64_t at = address % PYTHON_PAGE_BYTES;
	const struct python_page *page = NULL;

	if (r->pages && bytes <= PYTHON_PAGE_BYTES - at && *r->left) {
		--*r->left;
		page = page_at(r, address - at);
	}
	if (page) {
		memcpy(to, page->bytes + at, bytes);
		return 0;
	}
	if (!*r->left)
		return -E2BIG;
	--*r->left;
	return r->m->read(r->m->ctx, to, bytes, address) ? -EFAULT : 0;
}

int python_get64(const struct python_reader *r, uint64_t address, uint64_t *out)
{
	return python_get(r, out, sizeof(*out), address);
}

/* ---- dicts ---- */

/*
 * Keys up to 3.10: refcount, size of the index, a function, usable, number of entries; then the
 * index and the entries.
 */
static int open_old_keys(const struct python_reader *r, uint64_t keys, struct python_dict *d)
{
	uint64_t head[5], width;

	if (python_get(r, head, sizeof(head), keys))
		return -EFAULT;
	if (!head[1] || head[1] & (head[1] - 1) || head[1] > 1ull << 40)
		return -ESTALE;
	width = head[1] <= 0xff ? 1 : head[1] <= 0xffff ? 2 : head[1] <= 0xffffffff ? 4 : 8;
	d->nr = head[4];
	d->entries = keys + sizeof(head) + head[1] * width;
	d->entry_bytes = 24;
	return 0;
}

/*
 * Keys from 3.11 on: refcount; a byte each for the log2 of the index's size, the log2 of its bytes,
 * and the kind; usable, number of entries; then the index and the entries.
 */
static int open_keys(const struct python_reader *r, uint64_t keys, struct python_dict *d)
{
	enum { GENERAL, UNICODE, SPLIT };
	struct {
		uint64_t refs;
		uint8_t log2_size, log2_bytes, kind, pad;
		uint32_t version;
		uint64_t usable, nr;
	} head;

	if (python_minor(r->p->version) <= 10)
		return open_old_keys(r, keys, d);
	if (python_get(r, &head, sizeof(head), keys))
		return -EFAULT;
	if (head.log2_bytes > 40 || head.kind > SPLIT)
		return -ESTALE;
	d->nr = head.nr;
	d->entries = keys + sizeof(head) + (1ull << head.log2_bytes);
	d->entry_bytes = head.kind == GENERAL ? 24 : 16;
	return 0;
}

/* Opens a split dict: the class has the keys, the object has the values. */
static int open_split(const struct python_reader *r, uint64_t keys, uint64_t values,
		      struct python_dict *d)
{
	/* From 3.13 on, four bytes precede the values: capacity, size, embedded, valid. */
	bool headed = values && python_minor(r->p->version) >= 13;
	int err = open_keys(r, keys, d);
	uint8_t capacity = 0;

	if (!err && headed) {
		err = python_get(r, &capacity, sizeof(capacity), values);
		d->nr = d->nr < capacity ? d->nr : capacity;
	}
	d->values = headed ? values + 8 : values;
	d->first = d->filled = 0;
	return err;
}

int python_dict__open(const struct python_reader *r, uint64_t address, struct python_dict *d)
{
	uint64_t keys = 0, values = 0;

	if (!address || python_get64(r, address + r->p->dict_keys, &keys) ||
	    python_get64(r, address + r->p->dict_values, &values) || !keys)
		return -ESTALE;
	return open_split(r, keys, values, d);
}

static int fill(const struct python_reader *r, struct python_dict *d, uint64_t i)
{
	uint64_t nr = d->nr - i < PYTHON_BATCH_ENTRIES ? d->nr - i : PYTHON_BATCH_ENTRIES;

	if (python_get(r, d->words, nr * d->entry_bytes, d->entries + i * d->entry_bytes) ||
	    (d->values && python_get(r, d->apart, nr * 8, d->values + i * 8)))
		return -EFAULT;
	d->first = i;
	d->filled = nr;
	return 0;
}

/* Reads entry i. 0: there are no more; 1: an entry, whose value is NULL if it was deleted. */
int python_dict__at(const struct python_reader *r, struct python_dict *d, uint64_t i,
		    struct python_entry *out)
{
	const uint64_t *at;

	if (i >= d->nr || i >= MAX_ENTRIES)
		return 0;
	if (i - d->first >= d->filled && fill(r, d, i))
		return -EFAULT;
	at = d->words + (i - d->first) * (d->entry_bytes / 8);
	*out = (struct python_entry){0};
	if (d->entry_bytes == 24)
		out->hash = *at++;
	out->key = at[0];
	out->value = d->values ? d->apart[i - d->first] : at[1];
	return 1;
}

/*
 * Whether this str equals the text. It may lie at the very end of readable memory: a str that
 * cannot be read in the text's length does not match.
 */
static bool is_text(const struct python_reader *r, uint64_t str, const char *text, size_t length)
{
	const struct kprof_python *p = r->p;
	uint8_t head[MAX_HEAD_BYTES];
	uint64_t nr;
	uint32_t state;

	if (p->str_ascii + length > sizeof(head) || p->str_length + 8 > p->str_ascii ||
	    p->str_state + 4 > p->str_ascii || python_get(r, head, p->str_ascii + length, str))
		return false;
	memcpy(&nr, head + p->str_length, sizeof(nr));
	memcpy(&state, head + p->str_state, sizeof(state));
	/* The expected kind: one byte per character, compact, ASCII. */
	return nr == length && (state >> p->str_kind & 31) == (1 | 1 << 3 | 1 << 4) &&
	       !memcmp(head + p->str_ascii, text, length);
}

static bool is_entry(const struct python_reader *r, const struct python_entry *e, const char *key)
{
	return e->key && e->value && is_text(r, e->key, key, strlen(key));
}

/*
 * The value of a key; 0: the dict does not have it. *place: the entry that is looked at first, and
 * then that of the key; NULL: the first one.
 */
uint64_t python_dict__find(const struct python_reader *r, struct python_dict *d, const char *key,
			   uint32_t *place)
{
	struct python_entry e;

	if (place && python_dict__at(r, d, *place, &e) > 0 && is_entry(r, &e, key))
		return e.value;
	for (uint64_t i = 0; python_dict__at(r, d, i, &e) > 0; i++) {
		if (!is_entry(r, &e, key))
			continue;
		if (place)
			*place = (uint32_t)i;
		return e.value;
	}
	return 0;
}

/* ---- attributes ---- */

/* Opens the dict that an object of this type has at a fixed offset (tp_dictoffset). */
static int open_plain(const struct python_reader *r, uint64_t object, uint64_t type,
		      struct python_dict *d)
{
	uint64_t offset = 0, dict = 0;

	if (python_get64(r, type + r->p->type_dictoffset, &offset) || !offset || offset > 65536 ||
	    python_get64(r, object + offset, &dict))
		return -ESTALE;
	return python_dict__open(r, dict, d);
}

/*
 * 3.11: values are four words before the object, or its dict is three words before it. 3.12: a bit
 * says which of the two.
 */
static int managed_11_12(const struct python_reader *r, uint64_t object, uint64_t *dict,
			 uint64_t *values)
{
	uint64_t at = object - r->p->managed_dict, word = 0;

	*dict = *values = 0;
	if (python_minor(r->p->version) == 11)
		return python_get64(r, at - 8, values) || (!*values && python_get64(r, at, dict))
			       ? -EFAULT
			       : 0;
	if (python_get64(r, at, &word))
		return -EFAULT;
	if (word & 1)
		*values = word + 1;
	else
		*dict = word;
	return 0;
}

/* From 3.13: a dict before the object, or values at its end. */
static int managed_13(const struct python_reader *r, uint64_t object, uint64_t type, uint64_t flags,
		      uint64_t *dict, uint64_t *values)
{
	enum { VALID = 3 };
	uint64_t size = 0;
	uint8_t head[4];

	*values = 0;
	if (python_get64(r, object - r->p->managed_dict, dict))
		return -EFAULT;
	if (*dict)
		return 0;
	if (!(flags & INLINE_VALUES) || python_get64(r, type + r->p->type_basicsize, &size) ||
	    size > 65536 || python_get(r, head, sizeof(head), object + size) || !head[VALID])
		return -ESTALE;
	*values = object + size;
	return 0;
}

int python_attributes__open(const struct python_reader *r, uint64_t object, struct python_dict *d)
{
	uint64_t type = 0, flags = 0, dict = 0, values = 0, keys = 0;
	int err;

	if (python_get64(r, object + r->p->object_type, &type) || !type ||
	    python_get64(r, type + r->p->type_flags, &flags))
		return -ESTALE;
	if (r->p->managed_dict == KPROF_PYTHON_NONE || !(flags & MANAGED_DICT))
		return open_plain(r, object, type, d);
	err = python_minor(r->p->version) <= 12
		      ? managed_11_12(r, object, &dict, &values)
		      : managed_13(r, object, type, flags, &dict, &values);
	if (err || !values)
		return err ? err : python_dict__open(r, dict, d);
	if (python_get64(r, type + r->p->type_keys, &keys) || !keys)
		return -ESTALE;
	return open_split(r, keys, values, d);
}
