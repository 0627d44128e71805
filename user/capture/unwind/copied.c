// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/copied.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../../bpf/unwind.h"
#include "symbol/unwind/unwind.h"
#include "util/util.h"

#define NR_KEPT 4096

struct copied_walker {
	struct kept {
		const struct elffile *elf; /* NULL: free */
		uint64_t vaddr;
		struct kprof_unwind_rule rule;
	} kept[NR_KEPT];
};

/* Context of the walker's callbacks, which have no argument for it. */
static _Thread_local struct {
	struct copied_walker *walker;
	const struct copied_stack *stack;
	const struct elffile *elf; /* of the mapping that was found last */
	bool beyond;               /* memory above the copy was asked for */
} on;

static int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	uint64_t at = address - on.stack->sp;

	if (at > on.stack->nr_bytes || bytes > on.stack->nr_bytes - at) {
		on.beyond = address >= on.stack->sp;
		return -1;
	}
	memcpy(to, (const char *)on.stack->bytes + at, bytes);
	return 0;
}

static int unwind_mapping(kprof_u32 space, kprof_u64 ip, struct kprof_unwind_mapping *m)
{
	struct copied_code code;

	(void)space;
	if (on.stack->code(on.stack->ctx, ip, &code))
		return -1;
	on.elf = code.elf;
	*m = (struct kprof_unwind_mapping){
		.start = code.start,
		.end = code.end,
		.bias = code.bias,
		.nr_pages = UINT32_MAX, /* a page is the address itself, as there is no table */
		.kind = KPROF_UNWIND_TABLE,
	};
	return 0;
}

static int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r)
{
	uint64_t vaddr = (uint64_t)page << KPROF_UNWIND_PAGE_BITS | at;
	struct kept *k = &on.walker->kept[hash64(vaddr ^ (uintptr_t)on.elf) % NR_KEPT];

	if (k->elf != on.elf || k->vaddr != vaddr) {
		*k = (struct kept){.elf = on.elf, .vaddr = vaddr};
		if (unwind_rule__find(on.elf, vaddr, &k->rule))
			k->rule.how = KPROF_UNWIND_NONE;
	}
	*r = k->rule;
	return 0;
}

int copied_walker__new(struct copied_walker **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void copied_walker__free(struct copied_walker *w)
{
	free(w);
}

void copied_walker__frames(struct copied_walker *w, const struct copied_stack *stack, uint64_t ip,
			   const uint64_t regs[16], struct kprof_unwind_walk *out)
{
	int over = 0;

	on.walker = w;
	on.stack = stack;
	memset(out, 0, sizeof(*out));
	memcpy(out->regs, regs, sizeof(out->regs));
	out->ip = ip;
	out->sp = stack->sp;
	out->bp = stack->bp;
	out->bx = stack->bx;
	out->exact = out->innermost = 1;
	while (!over)
		over = unwind_step(out);
}

size_t copied_walker__slots(struct copied_walker *w, const struct copied_stack *stack,
			    uint64_t *slots, size_t room, uint64_t *reached)
{
	struct kprof_unwind_walk walk = {
		.sp = stack->sp + sizeof(uint64_t), .bp = stack->bp, .bx = stack->bx};
	size_t nr = 0;

	on.walker = w;
	on.stack = stack;
	on.beyond = false;
	*reached = stack->sp;
	if (!room || unwind_read(&walk.ip, sizeof(walk.ip), stack->sp))
		return 0;
	slots[nr++] = stack->sp;
	while (nr < room) {
		walk.nr = 0; /* the walker's own array of frames is not needed */
		if (unwind_step(&walk))
			break;
		/* Where a signal interrupted the caller, no call has pushed a return address. */
		if (!walk.exact)
			slots[nr++] = walk.sp - sizeof(uint64_t);
	}
	/* a frame that extends beyond the copy: what is left of the copy holds no slot */
	*reached = on.beyond ? stack->sp + stack->nr_bytes : walk.sp;
	return nr;
}
