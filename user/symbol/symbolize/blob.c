// SPDX-License-Identifier: BSD-2-Clause
/*
 * Serialized answers: the content of the cache's files, and what the process that reads DWARF sends
 * to its parent. The order is: a header, the addresses in order, the lines of all of them, the
 * strings.
 *
 * Blobs are written and read on the same machine, and so use its byte order. A blob of another
 * version is ignored.
 */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "util/map64.h"

struct blob_header {
	char magic[8];
	uint32_t crc; /* of everything after this field */
	uint32_t nr_entries, nr_lines, strings_bytes;
	uint64_t stamp;
};

struct blob_entry {
	uint64_t vaddr;
	uint64_t nr_lines;
};

struct blob_line {
	uint32_t function, file; /* offsets in the strings */
	uint32_t line;
};

static const char magic[8] = "kpsym\0\1";

#define CRC_FROM offsetof(struct blob_header, nr_entries)

/* ---- packing ---- */

struct packing {
	char *strings;
	size_t used, cap;
	/*
	 * offsets of strings in .strings, by their address in memory, so that each is stored once
	 */
	struct map64 places;
};

/* The offset of the string in the blob's strings. UINT32_MAX: no memory, or too many strings. */
static uint32_t place(struct packing *p, const char *text)
{
	size_t bytes = strlen(text) + 1;
	uint64_t *slot;

	if (bytes == 1)
		return 0;
	slot = map64__at(&p->places, (uint64_t)(uintptr_t)text);
	if (!slot)
		return UINT32_MAX;
	if (*slot)
		return (uint32_t)*slot;
	if (bytes > SYMBOL_BLOB_MAX - p->used)
		return UINT32_MAX;
	if (p->used + bytes > p->cap) {
		size_t cap = 2 * (p->used + bytes);
		char *more = realloc(p->strings, cap);

		if (!more)
			return UINT32_MAX;
		p->strings = more;
		p->cap = cap;
	}
	memcpy(p->strings + p->used, text, bytes);
	*slot = p->used;
	p->used += bytes;
	return (uint32_t)*slot;
}

static bool pack_lines(struct packing *p, const struct symbol_known *k, struct blob_line *to)
{
	for (uint32_t i = 0; i < k->nr_lines; i++) {
		to[i].function = place(p, k->lines[i].function);
		to[i].file = place(p, k->lines[i].file);
		to[i].line = k->lines[i].line;
		if (to[i].function == UINT32_MAX || to[i].file == UINT32_MAX)
			return false;
	}
	return true;
}

static char *assemble(const struct symbol_knowns *k, const struct blob_line *lines,
		      const struct packing *p, struct blob_header *h, size_t *bytes)
{
	size_t lines_bytes = h->nr_lines * sizeof(*lines);
	size_t entries_bytes = k->nr * sizeof(struct blob_entry);
	char *blob, *at;

	*bytes = sizeof(*h) + entries_bytes + lines_bytes + p->used;
	blob = *bytes <= SYMBOL_BLOB_MAX ? malloc(*bytes) : NULL;
	if (!blob)
		return NULL;
	at = blob + sizeof(*h);
	for (size_t i = 0; i < k->nr; i++) {
		struct blob_entry e = {k->all[i].vaddr, k->all[i].nr_lines};

		memcpy(at, &e, sizeof(e));
		at += sizeof(e);
	}
	memcpy(at, lines, lines_bytes);
	memcpy(at + lines_bytes, p->strings, p->used);
	memcpy(blob, h, sizeof(*h));
	h->crc = (uint32_t)crc32(0, (const Bytef *)blob + CRC_FROM, (uInt)(*bytes - CRC_FROM));
	memcpy(blob, h, sizeof(*h));
	return blob;
}

char *symbol_blob__pack(const struct symbol_knowns *k, uint64_t stamp, size_t *bytes)
{
	struct packing p = {.used = 1, .cap = 4096};
	struct blob_header h = {.nr_entries = (uint32_t)k->nr, .stamp = stamp};
	struct blob_line *lines;
	char *blob = NULL;
	size_t nr = 0, at = 0;
	bool fits = k->nr <= SYMBOL_BLOB_MAX / sizeof(struct blob_entry);

	memcpy(h.magic, magic, sizeof(magic));
	for (size_t i = 0; i < k->nr; i++)
		nr += k->all[i].nr_lines;
	fits = fits && nr <= SYMBOL_BLOB_MAX / sizeof(*lines);
	lines = fits ? calloc(nr + 1, sizeof(*lines)) : NULL;
	p.strings = calloc(1, p.cap);
	for (size_t i = 0; lines && p.strings && i < k->nr && fits; i++) {
		fits = pack_lines(&p, &k->all[i], lines + at);
		at += k->all[i].nr_lines;
	}
	h.nr_lines = (uint32_t)nr;
	h.strings_bytes = (uint32_t)p.used;
	if (lines && p.strings && fits)
		blob = assemble(k, lines, &p, &h, bytes);
	map64__free(&p.places);
	free(p.strings);
	free(lines);
	return blob;
}

/* ---- unpacking ---- */

struct unpacking {
	const char *entries, *lines, *texts; /* texts end in a NUL */
	struct blob_header h;
	struct symbol_strings *strings;
	size_t next_line;
};

static bool check(struct unpacking *u, const char *blob, size_t bytes)
{
	size_t left;

	if (bytes < sizeof(u->h) || bytes > SYMBOL_BLOB_MAX)
		return false;
	memcpy(&u->h, blob, sizeof(u->h));
	if (memcmp(u->h.magic, magic, sizeof(magic)) != 0 ||
	    u->h.crc != crc32(0, (const Bytef *)blob + CRC_FROM, (uInt)(bytes - CRC_FROM)))
		return false;
	left = bytes - sizeof(u->h);
	u->entries = blob + sizeof(u->h);
	if (u->h.nr_entries > left / sizeof(struct blob_entry))
		return false;
	left -= u->h.nr_entries * sizeof(struct blob_entry);
	u->lines = u->entries + u->h.nr_entries * sizeof(struct blob_entry);
	if (u->h.nr_lines > left / sizeof(struct blob_line))
		return false;
	left -= u->h.nr_lines * sizeof(struct blob_line);
	u->texts = u->lines + u->h.nr_lines * sizeof(struct blob_line);
	return left && u->h.strings_bytes == left && !u->texts[left - 1];
}

static const char *text_at(const struct unpacking *u, uint32_t at)
{
	if (at >= u->h.strings_bytes)
		return NULL;
	return symbol_strings__add(u->strings, u->texts + at, strlen(u->texts + at));
}

static int unpack_entry(struct unpacking *u, uint32_t number, struct symbol_known *to)
{
	struct blob_entry e;
	struct symbol_line *lines;

	memcpy(&e, u->entries + number * sizeof(e), sizeof(e));
	if (!e.nr_lines || e.nr_lines > SYMBOL_MAX_INLINES ||
	    e.nr_lines > u->h.nr_lines - u->next_line)
		return -EBADMSG;
	lines = symbol_strings__room(u->strings, e.nr_lines * sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	for (uint64_t i = 0; i < e.nr_lines; i++) {
		struct blob_line l;

		memcpy(&l, u->lines + u->next_line++ * sizeof(l), sizeof(l));
		lines[i] = (struct symbol_line){text_at(u, l.function), text_at(u, l.file), l.line};
		if (!lines[i].function || !lines[i].file)
			return -EBADMSG;
	}
	*to = (struct symbol_known){
		.vaddr = e.vaddr, .lines = lines, .nr_lines = (uint32_t)e.nr_lines};
	return 0;
}

int symbol_blob__unpack(const char *blob, size_t bytes, uint64_t stamp,
			struct symbol_strings *strings, struct symbol_knowns *out)
{
	struct unpacking u = {.strings = strings};
	int err = 0;

	*out = (struct symbol_knowns){0};
	if (!check(&u, blob, bytes))
		return -EBADMSG;
	if (u.h.stamp != stamp)
		return -ESTALE;
	out->all = calloc((size_t)u.h.nr_entries + 1, sizeof(*out->all));
	if (!out->all)
		return -ENOMEM;
	for (uint32_t i = 0; i < u.h.nr_entries && !err; i++) {
		err = unpack_entry(&u, i, &out->all[i]);
		if (!err && i && out->all[i].vaddr <= out->all[i - 1].vaddr)
			err = -EBADMSG;
		out->nr = i + 1;
	}
	if (err) {
		free(out->all);
		*out = (struct symbol_knowns){0};
	}
	return err;
}
