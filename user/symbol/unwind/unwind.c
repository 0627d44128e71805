// SPDX-License-Identifier: BSD-2-Clause
#include "symbol/unwind/unwind.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/unwind/cfi.h"
#include "symbol/unwind/priv.h"
#include "util/error.h"
#include "util/util.h"

/*
 * Between two functions lie a few bytes of padding that nobody executes: the rule before goes on over them, which
 * spares two rows a function.
 */
#define PADDING_BYTES 16

/* glibc's __start_context is shorter, with shadow stacks too, and every way back from a signal. */
#define ODD_BYTES 192

/* ---- collecting ------------------------------------------------------------------------------ */

int unwind_builder__block(struct unwind_builder *b, uint64_t start, uint64_t end)
{
	if (b->nr_blocks == b->cap_blocks) {
		size_t cap = b->cap_blocks ? b->cap_blocks * 2 : 256;
		struct unwind_block *more = reallocarray(b->blocks, cap, sizeof(*more));

		if (!more)
			return -ENOMEM;
		b->blocks = more;
		b->cap_blocks = cap;
	}
	b->blocks[b->nr_blocks++] =
		(struct unwind_block){.start = start, .end = end, .first = b->nr_rows};
	return 0;
}

/*
 * Takes its stack pointer from rbx: glibc's __start_context, where the first function of makecontext() returns to and which
 * nobody calls. It is described as if somebody did.
 */
static bool starts_context(const uint8_t *code, size_t bytes)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa}, from_rbx[] = {0x48, 0x89, 0xdc};

	if (bytes > sizeof(endbr) && !memcmp(code, endbr, sizeof(endbr))) {
		code += sizeof(endbr);
		bytes -= sizeof(endbr);
	}
	return bytes >= sizeof(from_rbx) && !memcmp(code, from_rbx, sizeof(from_rbx));
}

/*
 * What is described as if somebody called it, and nobody does: the rule that holds in all of it; NULL: it is as described. Go's
 * way back from a signal is such a one, too: its linker describes all functions alike.
 */
static const struct kprof_unwind_rule *own_rule(const struct elffile *e, uint64_t offset,
						const struct cfi_range *range)
{
	static const struct kprof_unwind_rule bottom = {.how = KPROF_UNWIND_BOTTOM},
					      signal = {.how = KPROF_UNWIND_SIGNAL};
	const uint8_t *code;
	size_t bytes;

	if (range->end - range->start > ODD_BYTES)
		return NULL;
	code = elffile__bytes(e, offset, ODD_BYTES, &bytes);
	if (code && starts_context(code, bytes))
		return &bottom;
	return code && unwind_code__returns_from_signal(code, bytes) ? &signal : NULL;
}

/* What returns to a function's first byte looks the one in front of that up. 1: the description counts no more. */
static int add_own(struct unwind_builder *b, const struct cfi_range *range,
		   const struct kprof_unwind_rule *rule)
{
	int err = unwind_builder__block(b, range->start - 1, range->end);

	if (!err)
		err = unwind_builder__row(b, range->start - 1, rule);
	return err ?: 1;
}

static int on_range(void *ctx, const struct cfi_range *range)
{
	struct unwind_builder *b = ctx;
	uint64_t offset = elffile__offset(b->elf, range->start);
	uint64_t left = elffile__left(b->elf, range->start);
	const struct kprof_unwind_rule *own;

	if (b->stop && atomic_load_explicit(b->stop, memory_order_relaxed))
		return -ECANCELED;
	/* Of what the linker threw away the description may have stayed, at address 0. */
	if (!range->start || !left || range->end <= range->start ||
	    !elffile__executable(b->elf, offset))
		return 1;
	own = own_rule(b->elf, offset, range);
	if (own)
		return add_own(b, range, own);
	/* What it says of addresses that the file does not have is not taken: pages are made up to the last one's. */
	return unwind_builder__block(b, range->start,
				     range->end - range->start < left ? range->end
								      : range->start + left);
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

static int add_row(struct unwind_builder *b, uint64_t vaddr, uint32_t rule)
{
	if (!b->rows || b->nr_rows == b->cap_rows) {
		size_t cap = b->cap_rows ? b->cap_rows * 2 : 1 << 16;
		struct unwind_raw_row *more;

		if (cap > UNWIND_MAX_ROWS)
			return -E2BIG;
		more = reallocarray(b->rows, cap, sizeof(*more));
		if (!more)
			return -ENOMEM;
		b->rows = more;
		b->cap_rows = cap;
	}
	b->rows[b->nr_rows++] = (struct unwind_raw_row){.vaddr = vaddr, .rule = rule};
	return 0;
}

int unwind_builder__row(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule)
{
	struct unwind_builder *b = ctx;
	struct unwind_block *block = &b->blocks[b->nr_blocks - 1];
	struct unwind_raw_row *before = block->nr && b->rows ? &b->rows[b->nr_rows - 1] : NULL;
	uint32_t number;
	int err;

	if (vaddr < block->start || vaddr >= block->end)
		return 0;
	number = number_of(b, rule);
	if (number == UNWIND_RULES_FULL) {
		b->out->rules_full++;
		number = 1;
	}
	if (before && vaddr < before->vaddr)
		return 0; /* damaged: rows go one way */
	if (before && vaddr == before->vaddr) {
		before->rule = number; /* the later one is what holds */
		return 0;
	}
	if (before && before->rule == number)
		return 0;
	err = add_row(b, vaddr, number);
	block->nr += !err;
	return err;
}

/* ---- the linker's stubs -------------------------------------------------------------------------- */

/* Stubs that some linkers leave undescribed. Later blocks give way to earlier ones where they overlap. */
static int add_stubs(struct unwind_builder *b)
{
	static const struct {
		const char *section;
		struct kprof_unwind_rule rule;
	} stubs[] = {
		{".plt", {.how = KPROF_UNWIND_PLT}},
		{".plt.sec", {.how = KPROF_UNWIND_SP, .cfa = 8}},
		{".plt.got", {.how = KPROF_UNWIND_SP, .cfa = 8}},
		{".iplt", {.how = KPROF_UNWIND_SP, .cfa = 8}},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(stubs) && !err; i++) {
		struct cfi_range range;
		uint64_t vaddr;
		size_t bytes;

		if (!elffile__section_at(b->elf, stubs[i].section, &bytes, &vaddr) || !bytes)
			continue;
		range = (struct cfi_range){.start = vaddr, .end = vaddr + bytes};
		err = on_range(b, &range);
		if (!err)
			err = unwind_builder__row(b, vaddr, &stubs[i].rule);
		if (err > 0)
			err = 0;
	}
	return err;
}

/* ---- in order ---------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	const struct unwind_block *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/* What begins one byte early (add_own()) takes that byte from a function that ends there. */
static bool give_last_byte(struct unwind_block *before, const struct unwind_block *block)
{
	if (block->start + 1 != before->end || block->start == before->start ||
	    block->end <= before->end)
		return false;
	before->end = block->start;
	return true;
}

/*
 * Of blocks in order of address, those that do not lie in an earlier one (a function described twice, a stub that has a
 * description after all).
 */
static void drop_overlaps(struct unwind_builder *b)
{
	size_t kept = 0;

	for (size_t i = 0; i < b->nr_blocks; i++) {
		struct unwind_block *block = &b->blocks[i];

		if (kept && block->start < b->blocks[kept - 1].end &&
		    !give_last_byte(&b->blocks[kept - 1], block))
			continue;
		if (block->nr)
			b->blocks[kept++] = *block;
	}
	b->nr_blocks = kept;
}

static void sort_blocks(struct unwind_builder *b)
{
	if (b->nr_blocks)
		qsort(b->blocks, b->nr_blocks, sizeof(*b->blocks), by_start);
	drop_overlaps(b);
}

/* ---- what nothing describes ------------------------------------------------------------------------ */

/*
 * Between the blocks, which are in order. Padding between functions is no gap, and most of a file has no other.
 */
static int find_gaps(const struct unwind_builder *b, struct unwind_gap **out, size_t *nr)
{
	uint64_t from = 0;

	*nr = 0;
	for (size_t i = 0; i <= b->nr_blocks; i++) {
		*nr += (i == b->nr_blocks ? UINT64_MAX : b->blocks[i].start) - from >=
		       PADDING_BYTES;
		from = i == b->nr_blocks ? 0 : b->blocks[i].end;
	}
	*out = reallocarray(NULL, *nr + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	*nr = 0;
	for (size_t i = 0; i <= b->nr_blocks; i++) {
		uint64_t to = i == b->nr_blocks ? UINT64_MAX : b->blocks[i].start;

		if (to - from >= PADDING_BYTES)
			(*out)[(*nr)++] = (struct unwind_gap){.start = from, .end = to};
		from = i == b->nr_blocks ? 0 : b->blocks[i].end;
	}
	return 0;
}

/* The blocks from number `first` on among those before: both are in order. */
static int merge_blocks(struct unwind_builder *b, size_t first)
{
	size_t left = first, added = b->nr_blocks - first;
	struct unwind_block *copy = reallocarray(NULL, added + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	memcpy(copy, b->blocks + first, added * sizeof(*copy));
	for (size_t to = b->nr_blocks; added; to--) {
		if (left && b->blocks[left - 1].start > copy[added - 1].start)
			b->blocks[to - 1] = b->blocks[--left];
		else
			b->blocks[to - 1] = copy[--added];
	}
	free(copy);
	return 0;
}

static int read_code(struct unwind_builder *b)
{
	struct cfi_ops ops = {.ctx = b, .range = on_range, .row = unwind_builder__row};
	size_t described = b->nr_blocks, nr;
	struct unwind_gap *gaps;
	int err = find_gaps(b, &gaps, &nr);

	if (!err)
		err = unwind_code__read(b->elf, gaps, nr, b->stop, &ops);
	free(gaps);
	for (size_t i = described; i < b->nr_blocks; i++) {
		b->out->decoded_bytes += b->blocks[i].end - b->blocks[i].start;
		b->out->decoded++;
	}
	if (!err && b->nr_blocks > described)
		err = merge_blocks(b, described);
	if (!err)
		drop_overlaps(b);
	return err;
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Appends to the finished rows; opens the pages on the way there. */
struct filler {
	struct unwind_table *t;
	size_t cap;
	uint32_t rule; /* in force */
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
		put(f, 0, f->rule); /* what holds at the page's start */
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
	/* A row at each function's end at most, and one at each page's start. */
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

			/* A first row behind the function's start leaves the start undescribed. */
			if (!k && row->vaddr > block->start)
				fill(&f, block->start, 0);
			fill(&f, row->vaddr, row->rule);
		}
		t->text_bytes += block->end - block->start;
		if (i + 1 == b->nr_blocks || b->blocks[i + 1].start - block->end >= PADDING_BYTES)
			fill(&f, block->end, 0);
	}
	return 0;
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int read_section(struct unwind_builder *b, const char *name, bool debug_frame)
{
	struct cfi_ops ops = {.ctx = b, .range = on_range, .row = unwind_builder__row};
	struct cfi_section section = {.debug_frame = debug_frame};
	struct cfi_stats stats;
	int err;

	section.bytes = elffile__section_at(b->elf, name, &section.size, &section.vaddr);
	if (!section.bytes)
		return 0;
	err = cfi_read(&section, &ops, &stats);
	b->out->ranges += stats.ranges;
	b->out->malformed += stats.malformed;
	b->out->inexpressible += stats.inexpressible;
	return err;
}

int unwind_table__build(const struct elffile *e, struct unwind_rules *rules,
			struct unwind_table **out)
{
	return unwind_table__build_until(e, rules, NULL, out);
}

int unwind_table__build_until(const struct elffile *e, struct unwind_rules *rules,
			      const atomic_bool *stop, struct unwind_table **out)
{
	struct unwind_builder b = {.elf = e, .rules = rules, .stop = stop};
	int err;

	b.out = calloc(1, sizeof(*b.out));
	err = b.out ? read_section(&b, ".eh_frame", false) : -ENOMEM;
	/*
	 * Programs without exceptions have their functions in the other section, and in the first one no more than what
	 * was linked to them, or nothing (Go).
	 */
	if (!err)
		err = read_section(&b, ".debug_frame", true);
	if (!err)
		err = add_stubs(&b);
	if (!err) {
		sort_blocks(&b);
		err = read_code(&b);
	}
	if (!err)
		err = unwind_builder__pages(&b);
	free(b.rows);
	free(b.blocks);
	if (err != -ENOMEM && err != -ECANCELED && elffile__cut(e))
		err = error_set(-ESTALE, NULL, "%s was cut short while it was read",
				elffile__path(e));
	if (!err) {
		*out = b.out;
		return 0;
	}
	unwind_table__free(b.out);
	if (err == -ENOMEM)
		return error_set(err, NULL, "no memory for the unwind table of %s",
				 elffile__path(e));
	if (err == -E2BIG)
		return error_set(err, NULL, "the unwind table of %s would be too big",
				 elffile__path(e));
	return err;
}

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
