// SPDX-License-Identifier: BSD-2-Clause
/* Finds the rule for one address, through the linker's index of .eh_frame. */
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "symbol/unwind/priv.h"

/* .eh_frame_hdr (LSB, "Exception Frames") in the one form that linkers write for x86-64. */
struct index_header {
	uint8_t version;
	uint8_t frame_encoding, count_encoding, table_encoding;
	int32_t frame; /* .eh_frame */
	uint32_t count;
};

/* Both are relative to the section's address. */
struct index_row {
	int32_t function, description;
};

static struct index_row row_at(const uint8_t *rows, size_t i)
{
	struct index_row row;

	memcpy(&row, rows + i * sizeof(row), sizeof(row));
	return row;
}

/* The address of the description of the last function that begins at or before the vaddr. */
static int find_description(const struct elffile *e, uint64_t vaddr, uint64_t *description)
{
	struct index_header h;
	size_t bytes, low = 0, high;
	uint64_t at;
	const uint8_t *section = elffile__section_at(e, ".eh_frame_hdr", &bytes, &at);

	if (!section || bytes < sizeof(h))
		return -ENOENT;
	memcpy(&h, section, sizeof(h));
	if (h.version != 1 || h.count_encoding != DW_EH_PE_udata4 ||
	    h.table_encoding != (DW_EH_PE_datarel | DW_EH_PE_sdata4))
		return -ENOENT;
	section += sizeof(h);
	high = (bytes - sizeof(h)) / sizeof(struct index_row);
	if (high > h.count)
		high = h.count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (at + (uint64_t)(int64_t)row_at(section, middle).function <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return -ENOENT;
	*description = at + (uint64_t)(int64_t)row_at(section, low - 1).description;
	return 0;
}

struct search {
	uint64_t vaddr;
	struct kprof_unwind_rule *out;
	bool found;
};

static int on_range(void *ctx, const struct cfi_range *range)
{
	const struct search *s = ctx;

	return s->vaddr < range->start || s->vaddr >= range->end;
}

static int on_row(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule)
{
	struct search *s = ctx;

	if (vaddr > s->vaddr)
		return 0;
	*s->out = *rule;
	s->found = true;
	return 0;
}

/* Reads the description of the last function that begins at or before the vaddr. */
static int read_description(const struct elffile *e, uint64_t vaddr, const struct cfi_ops *ops)
{
	struct cfi_section frames = {0};
	uint64_t description;
	int err = find_description(e, vaddr, &description);

	if (err)
		return err;
	frames.bytes = elffile__section_at(e, ".eh_frame", &frames.size, &frames.vaddr);
	if (!frames.bytes || description < frames.vaddr)
		return -ENOENT;
	return cfi_read_at(&frames, (size_t)(description - frames.vaddr), ops);
}

int unwind_rule__find(const struct elffile *e, uint64_t vaddr, struct kprof_unwind_rule *out)
{
	static const struct kprof_unwind_rule bottom = {.how = KPROF_UNWIND_BOTTOM};
	struct search s = {.vaddr = vaddr, .out = out};
	const struct cfi_ops ops = {.ctx = &s, .range = on_range, .row = on_row};
	int err = read_description(e, vaddr, &ops);
	const struct kprof_unwind_rule *rule = NULL;
	struct unwind_gap entry;

	if (s.found)
		return 0;
	if (unwind_code__entry(e, &entry) && vaddr >= entry.start && vaddr < entry.end)
		rule = &bottom;
	else
		rule = unwind_stub__rule(e, vaddr);
	if (!rule)
		return err ? err : -ENOENT;
	*out = *rule;
	return 0;
}

static int on_bounds(void *ctx, const struct cfi_range *range)
{
	*(struct cfi_range *)ctx = *range;
	return 1; /* its rows are of no interest */
}

int unwind_function__find(const struct elffile *e, uint64_t vaddr, uint64_t *start, uint64_t *end)
{
	struct cfi_range range = {0};
	const struct cfi_ops ops = {.ctx = &range, .range = on_bounds};
	int err = read_description(e, vaddr, &ops);

	*start = range.start;
	*end = range.end;
	return err || (vaddr >= range.start && vaddr < range.end) ? err : -ENOENT;
}
