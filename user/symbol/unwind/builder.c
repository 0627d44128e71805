// SPDX-License-Identifier: BSD-2-Clause
/*
 * Builds a table: first collects functions and their rows in any order, then makes pages of rows in
 * order of address.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/elf/elf.h"
#include "symbol/unwind/priv.h"
#include "util/error.h"
#include "util/pace.h"
#include "util/util.h"

/* ---- collecting ---- */

int unwind_builder__block(struct unwind_builder *b, uint64_t start, uint64_t end)
{
	if (vec_grow((void **)&b->blocks, &b->cap_blocks, b->nr_blocks, sizeof(*b->blocks)))
		return -ENOMEM;
	b->blocks[b->nr_blocks++] =
		(struct unwind_block){.start = start, .end = end, .first = b->nr_rows};
	return 0;
}

static uint32_t number_of(struct unwind_builder *b, const struct kprof_unwind_rule *rule)
{
	uint64_t words[2];
	size_t slot;

	_Static_assert(sizeof(words) == sizeof(*rule), "of two words");
	memcpy(words, rule, sizeof(words));
	slot = (words[0] * 0x9e3779b97f4a7c15ull ^ words[1] * 0xd6e8feb86659fd93ull) >> 54;
	if (memcmp(&b->last[slot], rule, sizeof(*rule))) {
		b->last[slot] = *rule;
		b->last_number[slot] = unwind_rules__intern(b->rules, rule);
	}
	return b->last_number[slot];
}

int unwind_builder__row(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule)
{
	struct unwind_builder *b = ctx;
	struct unwind_block *block = &b->blocks[b->nr_blocks - 1];
	struct unwind_raw_row *before = block->nr && b->rows ? &b->rows[b->nr_rows - 1] : NULL;
	uint32_t number;

	if (vaddr < block->start || vaddr >= block->end)
		return 0;
	number = number_of(b, rule);
	if (number == UNWIND_RULES_FULL) {
		b->out->rules_full++;
		number = 1;
	}
	if (before && vaddr < before->vaddr)
		return 0; /* damaged: rows must ascend */
	if (before && vaddr == before->vaddr) {
		before->rule = number; /* the later row is valid */
		return 0;
	}
	if (before && before->rule == number)
		return 0;
	if (b->nr_rows == UNWIND_MAX_ROWS)
		return -E2BIG;
	if (vec_grow((void **)&b->rows, &b->cap_rows, b->nr_rows, sizeof(*b->rows)))
		return -ENOMEM;
	b->rows[b->nr_rows++] = (struct unwind_raw_row){.vaddr = vaddr, .rule = number};
	block->nr++;
	return 0;
}

/* ---- pages ---- */

/* Appends to the finished rows, and begins the pages that it reaches. */
struct filler {
	struct unwind_table *t;
	size_t cap;
	uint32_t rule; /* the current rule */
	size_t page;   /* index of the last page begun; SIZE_MAX: none */
};

static void put(struct filler *f, uint16_t at, uint32_t rule)
{
	struct unwind_page *page = &f->t->pages[f->page];

	if (page->nr && f->t->rows[f->t->nr_rows - 1].at == at) {
		f->t->rows[f->t->nr_rows - 1].rule = (uint16_t)rule;
		return;
	}
	if (page->nr && f->t->rows[f->t->nr_rows - 1].rule == rule)
		return;
	f->t->rows[f->t->nr_rows++] = (struct kprof_unwind_row){.at = at, .rule = (uint16_t)rule};
	page->nr++;
}

static void fill_to(struct filler *f, size_t page)
{
	while (f->page == SIZE_MAX || f->page < page) {
		f->page = f->page == SIZE_MAX ? 0 : f->page + 1;
		f->t->pages[f->page].first = (uint32_t)f->t->nr_rows;
		put(f, 0, f->rule); /* the rule at the page's start */
	}
}

static void fill(struct filler *f, uint64_t vaddr, uint32_t rule)
{
	fill_to(f, (size_t)((vaddr >> KPROF_UNWIND_PAGE_BITS) - f->t->first_page));
	put(f, (uint16_t)vaddr, rule);
	f->rule = rule;
}

int unwind_builder__pages(struct unwind_builder *b)
{
	const struct unwind_block *last = b->nr_blocks ? &b->blocks[b->nr_blocks - 1] : NULL;
	struct unwind_table *t = b->out;
	struct filler f = {.t = t, .page = SIZE_MAX};
	uint64_t pages;

	if (!last)
		return error_set(-ENODATA, NULL, "%s describes no stack frames",
				 b->elf ? elffile__path(b->elf) : "the code");
	t->first_page = b->blocks[0].start >> KPROF_UNWIND_PAGE_BITS;
	pages = (last->end >> KPROF_UNWIND_PAGE_BITS) - t->first_page + 1;
	/* At most one more row at each function's end, and one at each page's start. */
	if (pages > UNWIND_MAX_ROWS || b->nr_rows + b->nr_blocks + pages > UNWIND_MAX_ROWS)
		return -E2BIG;
	t->nr_pages = (size_t)pages;
	t->pages = calloc(t->nr_pages, sizeof(*t->pages));
	t->rows = reallocarray(NULL, b->nr_rows + b->nr_blocks + t->nr_pages, sizeof(*t->rows));
	if (!t->pages || !t->rows)
		return -ENOMEM;
	for (size_t i = 0; i < b->nr_blocks; i++) {
		const struct unwind_block *block = &b->blocks[i];

		for (size_t k = 0; k < block->nr; k++) {
			const struct unwind_raw_row *row = &b->rows[block->first + k];

			/* If the first row is after the function's start, the start has no rule. */
			if (!k && row->vaddr > block->start)
				fill(&f, block->start, 0);
			fill(&f, row->vaddr, row->rule);
		}
		t->counts.text_bytes += block->end - block->start;
		if (i + 1 == b->nr_blocks ||
		    b->blocks[i + 1].start - block->end >= UNWIND_PADDING_BYTES)
			fill(&f, block->end, 0);
		pace_rest();
	}
	return 0;
}

/* ---- the table ---- */

void unwind_table__free(struct unwind_table *t)
{
	if (!t)
		return;
	free(t->pages);
	free(t->blob ? t->blob : (void *)t->rows);
	free(t);
}

uint32_t unwind_table__find(const struct unwind_table *t, uint64_t vaddr)
{
	uint64_t page = (vaddr >> KPROF_UNWIND_PAGE_BITS) - t->first_page;
	const struct kprof_unwind_row *rows;
	uint32_t lo = 0, nr;

	if (vaddr >> KPROF_UNWIND_PAGE_BITS < t->first_page || page >= t->nr_pages)
		return 0;
	rows = t->rows + t->pages[page].first;
	for (nr = t->pages[page].nr; nr > 1; nr -= nr / 2)
		if (rows[lo + nr / 2].at <= (uint16_t)vaddr)
			lo += nr / 2;
	return t->pages[page].nr ? rows[lo].rule : 0;
}
