// SPDX-License-Identifier: BSD-2-Clause
/*
 * Builds the table of an ELF file from the sources that describe its functions, in order of
 * preference, and from the instructions of functions that nothing describes.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/elf/elf.h"
#include "symbol/unwind/priv.h"
#include "util/error.h"
#include "util/pace.h"
#include "util/util.h"

/*
 * Only functions up to this size are checked for the special cases below: glibc's __start_context
 * (also with shadow stacks) and all code that returns from signals are smaller.
 */
#define ODD_BYTES 192
/*
 * After so many functions the pages of the file that were read are released: of a file of some
 * hundred megabytes nearly all are.
 */
#define FORGET_EVERY 16384

/* ---- descriptions ---- */

/*
 * Whether the code takes its stack pointer from rbx: glibc's __start_context, to which the first
 * function of makecontext() returns. Its description claims a caller, but it has none.
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
 * The rule for a whole function whose description claims a caller that it does not have; NULL: the
 * description is right. Go's code that returns from signals is such a function, too, because Go's
 * linker describes all functions alike.
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

/*
 * Adds a function with one rule, from the byte before its start, because for return addresses the
 * preceding byte is looked up. 1: its description is not to be used.
 */
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
	pace_rest();
	if (b->nr_blocks % FORGET_EVERY == FORGET_EVERY - 1)
		elffile__forget_pages(b->elf);
	/* The linker may have left descriptions, at address 0, of functions that it has removed. */
	if (!range->start || !left || range->end <= range->start ||
	    !elffile__executable(b->elf, offset))
		return 1;
	own = own_rule(b->elf, offset, range);
	if (own)
		return add_own(b, range, own);
	/*
	 * Addresses beyond the end of the file are cut off, since pages are allocated up to the
	 * last address.
	 */
	return unwind_builder__block(b, range->start,
				     range->end - range->start < left ? range->end
								      : range->start + left);
}

/* ---- the linker's stubs ---- */

static const struct stub {
	const char *section;
	struct kprof_unwind_rule rule;
} stubs[] = {
	{".plt", {.how = KPROF_UNWIND_PLT}},
	{".plt.sec", {.how = KPROF_UNWIND_SP, .cfa = 8}},
	{".plt.got", {.how = KPROF_UNWIND_SP, .cfa = 8}},
	{".iplt", {.how = KPROF_UNWIND_SP, .cfa = 8}},
};

static bool stub_range(const struct elffile *e, const struct stub *stub, struct cfi_range *out)
{
	uint64_t vaddr;
	size_t bytes;

	if (!elffile__section_at(e, stub->section, &bytes, &vaddr) || !bytes)
		return false;
	*out = (struct cfi_range){.start = vaddr, .end = vaddr + bytes};
	return true;
}

const struct kprof_unwind_rule *unwind_stub__rule(const struct elffile *e, uint64_t vaddr)
{
	struct cfi_range range;

	for (size_t i = 0; i < ARRAY_SIZE(stubs); i++)
		if (stub_range(e, &stubs[i], &range) && vaddr >= range.start && vaddr < range.end)
			return &stubs[i].rule;
	return NULL;
}

/*
 * Adds PLT stubs, which some linkers do not describe. Where blocks overlap, earlier ones
 * (descriptions) are preferred.
 */
static int add_stubs(struct unwind_builder *b)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(stubs) && !err; i++) {
		struct cfi_range range;

		if (!stub_range(b->elf, &stubs[i], &range))
			continue;
		err = on_range(b, &range);
		if (!err)
			err = unwind_builder__row(b, range.start, &stubs[i].rule);
		if (err > 0)
			err = 0;
	}
	return err;
}

/* ---- sorting blocks ---- */

#define REST_EVERY 1024 /* comparisons, which take some microseconds */

static int by_start(const void *a, const void *b)
{
	static _Thread_local uint32_t compared;
	const struct unwind_block *x = a, *y = b;

	if (!(++compared % REST_EVERY))
		pace_rest_now();
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

/*
 * A block that begins one byte early (add_own()) takes that byte from the function that ends there.
 */
static bool give_last_byte(struct unwind_block *before, const struct unwind_block *block)
{
	if (block->start + 1 != before->end || block->start == before->start ||
	    block->end <= before->end)
		return false;
	before->end = block->start;
	return true;
}

/*
 * Drops, from blocks in order of address, those that lie in an earlier one: a function that is
 * described twice, a stub that has a description.
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

/* ---- functions that nothing describes ---- */

/*
 * Finds the gaps between the blocks, which are in order. Padding between functions is not a gap,
 * and most files have no other gaps.
 */
static int find_gaps(const struct unwind_builder *b, struct unwind_gap **out, size_t *nr)
{
	uint64_t from = 0;

	*nr = 0;
	*out = reallocarray(NULL, b->nr_blocks + 1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (size_t i = 0; i <= b->nr_blocks; i++) {
		uint64_t to = i == b->nr_blocks ? UINT64_MAX : b->blocks[i].start;

		if (to - from >= UNWIND_PADDING_BYTES)
			(*out)[(*nr)++] = (struct unwind_gap){.start = from, .end = to};
		from = i == b->nr_blocks ? 0 : b->blocks[i].end;
	}
	return 0;
}

/* Merges the blocks from number `first` on with those before; both parts are in order. */
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

/* Adds the code with which a process begins where nothing describes it. The blocks are in order. */
static int add_entry(struct unwind_builder *b)
{
	static const struct kprof_unwind_rule bottom = {.how = KPROF_UNWIND_BOTTOM};
	size_t first = b->nr_blocks;
	struct unwind_gap entry;
	int err;

	if (!unwind_code__entry(b->elf, &entry))
		return 0;
	for (size_t i = 0; i < first; i++) {
		const struct unwind_block *block = &b->blocks[i];

		if (block->start <= entry.start && block->end > entry.start)
			return 0;
		if (block->start > entry.start && block->start < entry.end)
			entry.end = block->start;
	}
	err = unwind_builder__block(b, entry.start, entry.end);
	if (!err)
		err = unwind_builder__row(b, entry.start, &bottom);
	return err ? err : merge_blocks(b, first);
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
		b->out->counts.decoded_bytes += b->blocks[i].end - b->blocks[i].start;
		b->out->counts.decoded++;
	}
	if (!err && b->nr_blocks > described)
		err = merge_blocks(b, described);
	if (!err)
		drop_overlaps(b);
	return err;
}

/* ---- the whole table ---- */

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
	b->out->counts.ranges += stats.ranges;
	b->out->counts.malformed += stats.malformed;
	b->out->counts.inexpressible += stats.inexpressible;
	return err;
}

int unwind_table__build(const struct elffile *e, struct unwind_rules *rules,
			const atomic_bool *stop, struct unwind_table **out)
{
	struct unwind_builder b = {.elf = e, .rules = rules, .stop = stop};
	int err;

	b.out = calloc(1, sizeof(*b.out));
	err = b.out ? read_section(&b, ".eh_frame", false) : -ENOMEM;
	/*
	 * Programs without exceptions describe their functions in .debug_frame; their .eh_frame has
	 * only functions linked to them, or nothing (Go).
	 */
	if (!err)
		err = read_section(&b, ".debug_frame", true);
	if (!err)
		err = add_stubs(&b);
	if (!err) {
		if (b.nr_blocks)
			qsort(b.blocks, b.nr_blocks, sizeof(*b.blocks), by_start);
		pace_rest_now();
		drop_overlaps(&b);
		err = add_entry(&b);
		if (!err)
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

/* ---- functions only ---- */

struct functions {
	void (*fn)(void *ctx, uint64_t start, uint64_t end);
	void *ctx;
};

static int on_function(void *ctx, const struct cfi_range *range)
{
	const struct functions *f = ctx;

	f->fn(f->ctx, range->start, range->end);
	return 1; /* skip its rows */
}

void unwind_functions(const struct elffile *e, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		      void *ctx)
{
	struct functions f = {.fn = fn, .ctx = ctx};
	struct cfi_ops ops = {.ctx = &f, .range = on_function};
	struct cfi_section section = {0};
	struct cfi_stats stats;

	section.bytes = elffile__section_at(e, ".eh_frame", &section.size, &section.vaddr);
	if (section.bytes)
		cfi_read(&section, &ops, &stats);
}
