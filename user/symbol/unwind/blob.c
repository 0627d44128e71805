// SPDX-License-Identifier: BSD-2-Clause
/*
 * Serialized unwind tables, for the cache: a header, the rules that the table uses, the number of
 * rows of each page, the rows. Rules are numbered in the order in which rows use them, so that a
 * file gives the same bytes in every session.
 *
 * Blobs are written and read on the same machine, and so use its byte order. A blob of another
 * version is ignored.
 */
#include "symbol/unwind/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/pace.h"
#include "util/util.h"

struct blob_header {
	char magic[8];
	uint64_t sum; /* checksum of everything after this field */
	uint64_t stamp;
	uint64_t first_page;
	uint32_t nr_rules, nr_pages, nr_rows, zero;
	struct unwind_counts counts;
};

static const char magic[8] = "kpunw\0\1";

#define SUM_FROM offsetof(struct blob_header, stamp)
#define NO_RULE UINT16_MAX

/*
 * A checksum that is fast enough for tens of megabytes at each start: four sums in parallel, one
 * multiplication per eight bytes. It detects damage, not attacks: no other user can write to the
 * cache.
 */
uint64_t unwind_blob__sum(const char *blob, size_t bytes)
{
	uint64_t sums[4] = {bytes, 1, 2, 3}, words[4] = {0};
	size_t at = SUM_FROM;

	for (; at + sizeof(words) <= bytes; at += sizeof(words)) {
		memcpy(words, blob + at, sizeof(words));
		for (int i = 0; i < 4; i++) {
			sums[i] = (sums[i] ^ words[i]) * 0xd6e8feb86659fd93ull;
			sums[i] ^= sums[i] >> 32;
		}
	}
	memset(words, 0, sizeof(words));
	memcpy(words, blob + at, bytes - at);
	for (int i = 0; i < 4; i++)
		sums[0] = hash64(sums[0] ^ hash64(sums[i] ^ words[i]) ^ (uint64_t)i);
	return sums[0];
}

/* ---- packing ---- */

struct packing {
	struct kprof_unwind_rule all[KPROF_UNWIND_MAX_RULES]; /* the session's rules */
	/* the blob's number of each of the session's rules; NO_RULE: not used */
	uint16_t number[KPROF_UNWIND_MAX_RULES];
	/* the session's number of each of the blob's rules */
	uint16_t used[KPROF_UNWIND_MAX_RULES];
	uint32_t nr;
};

static void number_rules(struct packing *p, const struct unwind_table *t)
{
	memset(p->number, 0xff, sizeof(p->number));
	for (size_t i = 0; i < t->nr_rows; i++) {
		uint16_t rule = t->rows[i].rule;

		if (p->number[rule] != NO_RULE)
			continue;
		p->number[rule] = (uint16_t)p->nr;
		p->used[p->nr++] = rule;
	}
}

static void fill(const struct packing *p, const struct unwind_table *t, char *at)
{
	for (uint32_t i = 0; i < p->nr; i++, at += sizeof(struct kprof_unwind_rule))
		memcpy(at, &p->all[p->used[i]], sizeof(struct kprof_unwind_rule));
	for (size_t i = 0; i < t->nr_pages; i++, at += sizeof(uint32_t))
		memcpy(at, &t->pages[i].nr, sizeof(uint32_t));
	for (size_t i = 0; i < t->nr_rows; i++, at += sizeof(struct kprof_unwind_row)) {
		struct kprof_unwind_row row = {t->rows[i].at, p->number[t->rows[i].rule]};

		memcpy(at, &row, sizeof(row));
	}
}

char *unwind_blob__pack(const struct unwind_table *t, struct unwind_rules *rules, uint64_t stamp,
			size_t *bytes)
{
	struct blob_header h = {
		.stamp = stamp,
		.first_page = t->first_page,
		.nr_pages = (uint32_t)t->nr_pages,
		.nr_rows = (uint32_t)t->nr_rows,
		.counts = t->counts,
	};
	struct packing *p = calloc(1, sizeof(*p));
	char *blob = NULL;

	if (p) {
		unwind_rules__copy(rules, 0, p->all, KPROF_UNWIND_MAX_RULES);
		number_rules(p, t);
		h.nr_rules = p->nr;
		*bytes = sizeof(h) + p->nr * sizeof(*p->all) + t->nr_pages * sizeof(uint32_t) +
			 t->nr_rows * sizeof(*t->rows);
		blob = malloc(*bytes);
	}
	if (blob) {
		memcpy(h.magic, magic, sizeof(magic));
		fill(p, t, blob + sizeof(h));
		memcpy(blob, &h, sizeof(h));
		h.sum = unwind_blob__sum(blob, *bytes);
		memcpy(blob, &h, sizeof(h));
	}
	free(p);
	return blob;
}

/* ---- unpacking ---- */

struct unpacking {
	struct blob_header h;
	const char *rules, *pages;
	struct kprof_unwind_row *rows;
	/* the session's number of each of the blob's rules */
	uint16_t number[KPROF_UNWIND_MAX_RULES];
};

static bool check(struct unpacking *u, char *blob, size_t bytes)
{
	uint64_t most;
	char *rows;

	if (bytes < sizeof(u->h) || bytes > UNWIND_BLOB_MAX)
		return false;
	memcpy(&u->h, blob, sizeof(u->h));
	if (memcmp(u->h.magic, magic, sizeof(magic)) != 0 ||
	    u->h.sum != unwind_blob__sum(blob, bytes) || u->h.nr_rules > KPROF_UNWIND_MAX_RULES ||
	    u->h.nr_rows > UNWIND_MAX_ROWS || u->h.nr_pages > u->h.nr_rows || !u->h.nr_pages)
		return false;
	most = UINT64_MAX >> KPROF_UNWIND_PAGE_BITS;
	if (u->h.first_page > most - u->h.nr_pages)
		return false;
	u->rules = blob + sizeof(u->h);
	u->pages = u->rules + u->h.nr_rules * sizeof(struct kprof_unwind_rule);
	rows = blob + (u->pages - blob) + u->h.nr_pages * sizeof(uint32_t);
	u->rows =
		/* aligned: everything before the rows has whole words */
		(struct kprof_unwind_row *)(void *)rows;
	return (size_t)(rows - blob) + u->h.nr_rows * sizeof(struct kprof_unwind_row) == bytes;
}

/* Whether the rule is one that a walk can use. */
static bool is_rule(const struct kprof_unwind_rule *r)
{
	bool known = r->how <= KPROF_UNWIND_UNKNOWN && r->how != 4;

	return (known ||
		(r->how >= KPROF_UNWIND_REGISTER && r->how < KPROF_UNWIND_REGISTER + 16)) &&
	       r->regs < 16;
}

static int unpack_rules(struct unpacking *u, struct unwind_rules *rules)
{
	for (uint32_t i = 0; i < u->h.nr_rules; i++) {
		struct kprof_unwind_rule rule;
		uint32_t number;

		memcpy(&rule, u->rules + i * sizeof(rule), sizeof(rule));
		if (!is_rule(&rule))
			return -EBADMSG;
		number = unwind_rules__intern(rules, &rule);
		if (number == UNWIND_RULES_FULL)
			return -ENOSPC;
		u->number[i] = (uint16_t)number;
	}
	return 0;
}

/* Checks the rows of one page: the first is at its start, and the others follow in order. */
static bool unpack_page(const struct unpacking *u, struct unwind_table *t, uint32_t nr)
{
	struct kprof_unwind_row *rows = t->rows + t->nr_rows;

	for (uint32_t i = 0; i < nr; i++) {
		if (rows[i].rule >= u->h.nr_rules ||
		    (i ? rows[i].at <= rows[i - 1].at : rows[i].at != 0))
			return false;
		rows[i].rule = u->number[rows[i].rule];
	}
	t->nr_rows += nr;
	return true;
}

static int unpack(struct unpacking *u, struct unwind_rules *rules, struct unwind_table *t)
{
	int err = unpack_rules(u, rules);

	t->first_page = u->h.first_page;
	t->counts = u->h.counts;
	t->pages = calloc(u->h.nr_pages, sizeof(*t->pages));
	t->rows = u->rows;
	if (!t->pages)
		err = -ENOMEM;
	for (; t->nr_pages < u->h.nr_pages && !err; t->nr_pages++) {
		struct unwind_page page = {.first = (uint32_t)t->nr_rows};

		memcpy(&page.nr, u->pages + t->nr_pages * sizeof(page.nr), sizeof(page.nr));
		if (!page.nr || page.nr > u->h.nr_rows - t->nr_rows || !unpack_page(u, t, page.nr))
			err = -EBADMSG;
		t->pages[t->nr_pages] = page;
		pace_rest();
	}
	return !err && t->nr_rows != u->h.nr_rows ? -EBADMSG : err;
}

int unwind_blob__unpack(char *blob, size_t bytes, uint64_t stamp, struct unwind_rules *rules,
			struct unwind_table **out)
{
	struct unpacking *u = calloc(1, sizeof(*u));
	struct unwind_table *t = calloc(1, sizeof(*t));
	int err = u && t ? 0 : -ENOMEM;

	if (t)
		t->blob = blob;
	else
		free(blob);
	if (!err && !check(u, blob, bytes))
		err = -EBADMSG;
	if (!err && u->h.stamp != stamp)
		err = -ESTALE;
	if (!err)
		err = unpack(u, rules, t);
	free(u);
	if (err)
		unwind_table__free(t);
	else
		*out = t;
	return err;
}
