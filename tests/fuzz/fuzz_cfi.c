// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as call frame information: the first byte says in which of the two formats. */
#include <stdlib.h>
#include <string.h>

#include "symbol/unwind/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define VADDR 0x400000u
#define MOST_CALLS (1u << 22)

struct seen {
	struct cfi_range range;
	uint64_t calls;
};

static int on_range(void *ctx, const struct cfi_range *range)
{
	struct seen *s = ctx;

	if (range->end <= range->start)
		abort();
	s->range = *range;
	return ++s->calls > MOST_CALLS ? -1 : 0;
}

static int on_row(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule)
{
	struct seen *s = ctx;

	if (vaddr < s->range.start || vaddr >= s->range.end)
		abort();
	if (rule->how > KPROF_UNWIND_REGISTER + 15 || rule->regs >> 4)
		abort();
	return ++s->calls > MOST_CALLS ? -1 : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct seen seen = {0};
	struct cfi_ops ops = {.ctx = &seen, .range = on_range, .row = on_row};
	struct cfi_section section = {.vaddr = VADDR};
	struct cfi_stats stats;
	uint8_t *copy;

	if (!bytes)
		return 0;
	/* Of its very size, so that a byte too far is seen. */
	copy = malloc(bytes);
	if (!copy)
		return 0;
	memcpy(copy, data + 1, bytes - 1);
	section.debug_frame = data[0] & 1;
	section.bytes = copy;
	section.size = bytes - 1;
	cfi_read(&section, &ops, &stats);
	free(copy);
	return 0;
}
