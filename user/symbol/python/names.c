// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of threads in Python: sys.modules["threading"]._active is a dict of Thread objects by their
 * identifier, which is pthread_self(); the attribute _name of each is the name. The target keeps
 * running, so nothing that is read is trusted: pointers are followed for a bounded number of steps.
 *
 * Dicts: Objects/dictobject.c, Include/internal/pycore_dict.h; where an object has its attributes:
 * Objects/object.c, Include/internal/pycore_object.h of CPython.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/python/priv.h"
#include "util/util.h"

#define MAX_ENTRIES 65536 /* most entries of a dict that are read */
#define MAX_NAME_CHARS 256
#define BATCH_ENTRIES 64
#define MAX_READS 100000 /* per call of python_thread_names(): a tenth of a second */
#define MAX_HEAD_BYTES 128
/*
 * Each read costs as much as that of a page, and what is looked at lies near each other: memory is
 * read in pages, and the last ones are kept during a call.
 */
#define NR_PAGES 64
#define PAGE_BYTES 4096

/* bits of tp_flags */
#define INLINE_VALUES (1ull << 2) /* from 3.13 */
#define MANAGED_DICT (1ull << 4)

struct page {
	uint64_t address; /* 0: free */
	uint8_t bytes[PAGE_BYTES];
};

struct reader {
	const struct kprof_python *p;
	const struct python_memory *m;
	uint32_t *left;     /* reads that are left of MAX_READS */
	struct page *pages; /* NULL: none are kept */
};

/* The page at this address; NULL: it cannot be read as a whole. */
static const struct page *page_at(const struct reader *r, uint64_t address)
{
	struct page *page = &r->pages[hash64(address) % NR_PAGES];

	if (page->address == address)
		return page;
	page->address = 0;
	if (r->m->read(r->m->ctx, page->bytes, PAGE_BYTES, address))
		return NULL;
	page->address = address;
	return page;
}

static int get(const struct reader *r, void *to, size_t bytes, uint64_t address)
{
	uint64_t at = address % PAGE_BYTES;
	const struct page *page = NULL;

	if (r->pages && bytes <= PAGE_BYTES - at && *r->left) {
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

static int get64(const struct reader *r, uint64_t address, uint64_t *out)
{
	return get(r, out, sizeof(*out), address);
}

/* ---- dicts ---- */

struct entry {
	uint64_t hash; /* 0: this dict stores no hashes */
	uint64_t key, value;
};

struct dict {
	uint64_t entries, nr;
	uint32_t entry_bytes; /* 24: hash, key, value; 16: key, value */
	/*
	 * address of a separate array of values, in the order of the entries; 0: the entries have
	 * them
	 */
	uint64_t values;
	/* Entries are read in batches. */
	uint64_t words[BATCH_ENTRIES * 3], apart[BATCH_ENTRIES];
	uint64_t first, filled;
};

/*
 * Keys up to 3.10: refcount, size of the index, a function, usable, number of entries; then the
 * index and the entries.
 */
static int open_old_keys(const struct reader *r, uint64_t keys, struct dict *d)
{
	uint64_t head[5], width;

	if (get(r, head, sizeof(head), keys))
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
static int open_keys(const struct reader *r, uint64_t keys, struct dict *d)
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
	if (get(r, &head, sizeof(head), keys))
		return -EFAULT;
	if (head.log2_bytes > 40 || head.kind > SPLIT)
		return -ESTALE;
	d->nr = head.nr;
	d->entries = keys + sizeof(head) + (1ull << head.log2_bytes);
	d->entry_bytes = head.kind == GENERAL ? 24 : 16;
	return 0;
}

/* Opens a split dict: the class has the keys, the object has the values. */
static int open_split(const struct reader *r, uint64_t keys, uint64_t values, struct dict *d)
{
	/* From 3.13 on, four bytes precede the values: capacity, size, embedded, valid. */
	bool headed = values && python_minor(r->p->version) >= 13;
	int err = open_keys(r, keys, d);
	uint8_t capacity = 0;

	if (!err && headed) {
		err = get(r, &capacity, sizeof(capacity), values);
		d->nr = d->nr < capacity ? d->nr : capacity;
	}
	d->values = headed ? values + 8 : values;
	d->first = d->filled = 0;
	return err;
}

static int open_dict(const struct reader *r, uint64_t address, struct dict *d)
{
	uint64_t keys = 0, values = 0;

	if (!address || get64(r, address + r->p->dict_keys, &keys) ||
	    get64(r, address + r->p->dict_values, &values) || !keys)
		return -ESTALE;
	return open_split(r, keys, values, d);
}

static int fill(const struct reader *r, struct dict *d, uint64_t i)
{
	uint64_t nr = d->nr - i < BATCH_ENTRIES ? d->nr - i : BATCH_ENTRIES;

	if (get(r, d->words, nr * d->entry_bytes, d->entries + i * d->entry_bytes) ||
	    (d->values && get(r, d->apart, nr * 8, d->values + i * 8)))
		return -EFAULT;
	d->first = i;
	d->filled = nr;
	return 0;
}

/* Reads entry i. 0: there are no more; 1: an entry, whose value is NULL if it was deleted. */
static int entry_at(const struct reader *r, struct dict *d, uint64_t i, struct entry *out)
{
	const uint64_t *at;

	if (i >= d->nr || i >= MAX_ENTRIES)
		return 0;
	if (i - d->first >= d->filled && fill(r, d, i))
		return -EFAULT;
	at = d->words + (i - d->first) * (d->entry_bytes / 8);
	*out = (struct entry){0};
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
static bool is_text(const struct reader *r, uint64_t str, const char *text, size_t length)
{
	const struct kprof_python *p = r->p;
	uint8_t head[MAX_HEAD_BYTES];
	uint64_t nr;
	uint32_t state;

	if (p->str_ascii + length > sizeof(head) || p->str_length + 8 > p->str_ascii ||
	    p->str_state + 4 > p->str_ascii || get(r, head, p->str_ascii + length, str))
		return false;
	memcpy(&nr, head + p->str_length, sizeof(nr));
	memcpy(&state, head + p->str_state, sizeof(state));
	/* The expected kind: one byte per character, compact, ASCII. */
	return nr == length && (state >> p->str_kind & 31) == (1 | 1 << 3 | 1 << 4) &&
	       !memcmp(head + p->str_ascii, text, length);
}

static bool is_entry(const struct reader *r, const struct entry *e, const char *key)
{
	return e->key && e->value && is_text(r, e->key, key, strlen(key));
}

/*
 * The value of a key; 0: the dict does not have it. *place: the entry that is looked at first, and
 * then that of the key; NULL: the first one.
 */
static uint64_t find(const struct reader *r, struct dict *d, const char *key, uint32_t *place)
{
	struct entry e;

	if (place && entry_at(r, d, *place, &e) > 0 && is_entry(r, &e, key))
		return e.value;
	for (uint64_t i = 0; entry_at(r, d, i, &e) > 0; i++) {
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
static int open_plain(const struct reader *r, uint64_t object, uint64_t type, struct dict *d)
{
	uint64_t offset = 0, dict = 0;

	if (get64(r, type + r->p->type_dictoffset, &offset) || !offset || offset > 65536 ||
	    get64(r, object + offset, &dict))
		return -ESTALE;
	return open_dict(r, dict, d);
}

/*
 * 3.11: values are four words before the object, or its dict is three words before it. 3.12: a bit
 * says which of the two.
 */
static int managed_11_12(const struct reader *r, uint64_t object, uint64_t *dict, uint64_t *values)
{
	uint64_t at = object - r->p->managed_dict, word = 0;

	*dict = *values = 0;
	if (python_minor(r->p->version) == 11)
		return get64(r, at - 8, values) || (!*values && get64(r, at, dict)) ? -EFAULT : 0;
	if (get64(r, at, &word))
		return -EFAULT;
	if (word & 1)
		*values = word + 1;
	else
		*dict = word;
	return 0;
}

/* From 3.13: a dict before the object, or values at its end. */
static int managed_13(const struct reader *r, uint64_t object, uint64_t type, uint64_t flags,
		      uint64_t *dict, uint64_t *values)
{
	enum { VALID = 3 };
	uint64_t size = 0;
	uint8_t head[4];

	*values = 0;
	if (get64(r, object - r->p->managed_dict, dict))
		return -EFAULT;
	if (*dict)
		return 0;
	if (!(flags & INLINE_VALUES) || get64(r, type + r->p->type_basicsize, &size) ||
	    size > 65536 || get(r, head, sizeof(head), object + size) || !head[VALID])
		return -ESTALE;
	*values = object + size;
	return 0;
}

static int open_attributes(const struct reader *r, uint64_t object, struct dict *d)
{
	uint64_t type = 0, flags = 0, dict = 0, values = 0, keys = 0;
	int err;

	if (get64(r, object + r->p->object_type, &type) || !type ||
	    get64(r, type + r->p->type_flags, &flags))
		return -ESTALE;
	if (r->p->managed_dict == KPROF_PYTHON_NONE || !(flags & MANAGED_DICT))
		return open_plain(r, object, type, d);
	err = python_minor(r->p->version) <= 12
		      ? managed_11_12(r, object, &dict, &values)
		      : managed_13(r, object, type, flags, &dict, &values);
	if (err || !values)
		return err ? err : open_dict(r, dict, d);
	if (get64(r, type + r->p->type_keys, &keys) || !keys)
		return -ESTALE;
	return open_split(r, keys, values, d);
}

/* ---- threads ---- */

/* Opens threading._active of an interpreter. 0: `threading` was not imported. */
static uint64_t active_threads(const struct reader *r, uint64_t interp, struct dict *d)
{
	uint64_t modules = 0, module, dict = 0;

	if (get64(r, interp + r->p->interp_modules, &modules) || open_dict(r, modules, d))
		return 0;
	module = find(r, d, "threading", r->m->threading);
	if (!module || get64(r, module + r->p->module_dict, &dict) || open_dict(r, dict, d))
		return 0;
	return find(r, d, "_active", NULL);
}

/* The name of a Thread object, malloc'ed; NULL: it has none. */
static char *name_of(const struct reader *r, uint64_t thread, struct dict *d)
{
	uint64_t name = open_attributes(r, thread, d) ? 0 : find(r, d, "_name", NULL);
	char *text = NULL;

	if (!name || python_str__read(r->p, r->m, name, MAX_NAME_CHARS, &text))
		return NULL;
	return text;
}

/* Lists the names of one interpreter's threads. The hash of an identifier is the number itself. */
static size_t interpreter_names(const struct reader *r, uint64_t interp,
				struct python_thread_name *out, size_t room)
{
	struct dict *active = calloc(2, sizeof(*active)), *d = active ? active + 1 : NULL;
	uint64_t address = active ? active_threads(r, interp, active) : 0;
	struct entry e;
	size_t nr = 0;

	if (address && !open_dict(r, address, active)) {
		for (uint64_t i = 0; nr < room && entry_at(r, active, i, &e) > 0; i++) {
			out[nr].thread = e.hash;
			out[nr].name = e.hash && e.value ? name_of(r, e.value, d) : NULL;
			nr += out[nr].name != NULL;
		}
	}
	free(active);
	return nr;
}

size_t python_thread_names(const struct kprof_python *p, const struct python_memory *m,
			   struct python_thread_name *out, size_t room)
{
	uint32_t left = MAX_READS;
	struct page *pages = calloc(NR_PAGES, sizeof(*pages));
	const struct reader r = {p, m, &left, pages};
	uint64_t interp = 0;
	size_t nr = 0;

	if (room > KPROF_PYTHON_MAX_THREADS)
		room = KPROF_PYTHON_MAX_THREADS;
	if (get64(&r, p->runtime + p->runtime_interpreters, &interp))
		interp = 0;
	for (int i = 0; interp && nr < room && i < KPROF_PYTHON_MAX_INTERPRETERS; i++) {
		nr += interpreter_names(&r, interp, out + nr, room - nr);
		if (get64(&r, interp + p->interp_next, &interp))
			break;
	}
	free(pages);
	return nr;
}

const char *python_thread_name(const struct python_thread_name *names, size_t nr, uint64_t thread)
{
	/*
	 * Interpreters are listed newest first; the name that counts is the one in the thread's
	 * oldest interpreter.
	 */
	for (size_t i = nr; i-- > 0;)
		if (names[i].thread == thread)
			return names[i].name;
	return NULL;
}

void python_thread_names__free(struct python_thread_name *names, size_t nr)
{
	for (size_t i = 0; names && i < nr; i++)
		free(names[i].name);
	free(names);
}
