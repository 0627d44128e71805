// SPDX-License-Identifier: BSD-2-Clause
/* Any bytes as a function's code. */
#include <stdlib.h>
#include <string.h>

#include "symbol/x86/x86.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

#define VADDR 0x400000u
#define MOST_BYTES (1u << 16)

struct seen {
	uint64_t next; /* rows come in order, each place once */
	uint64_t end;
};

static int on_row(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule)
{
	struct seen *s = ctx;

	if (vaddr < s->next || vaddr >= s->end || (s->next == VADDR && vaddr != VADDR))
		abort();
	s->next = vaddr + 1;
	if (rule->how > KPROF_UNWIND_REGISTER + 15 || rule->regs >> 4 || !rule->how)
		abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct seen seen = {.next = VADDR, .end = VADDR + bytes};
	struct code_function function = {.vaddr = VADDR, .bytes = bytes};
	struct code_flow *flow;
	uint8_t *copy;

	if (!bytes || bytes > MOST_BYTES)
		return 0;
	/* Of its very size, so that a byte too far is seen. */
	copy = malloc(bytes);
	if (!copy || code_flow__new(&flow)) {
		free(copy);
		return 0;
	}
	memcpy(copy, data, bytes);
	function.code = copy;
	code_flow__run(flow, &function, on_row, &seen);
	/* What a run leaves behind is of no consequence to the next one. */
	seen.next = VADDR;
	if (code_flow__run(flow, &function, on_row, &seen) || seen.next == VADDR)
		abort();
	code_flow__free(flow);
	free(copy);
	return 0;
}
