// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/walk.h"

#include <string.h>

#include "../../../bpf/unwind.h"

/* Context of the walker's callbacks, which have no argument for it. */
static _Thread_local struct {
	const struct address_space *space;
	const struct walk_start *start;
	struct module *module;          /* module of the mapping that was found last */
	const struct unwind_table *jit; /* table of that mapping if it is JIT code, else NULL */
} on;

static int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	uint64_t at = address - on.start->stack_address;

	if (address >= on.start->stack_address && at < on.start->stack_bytes &&
	    bytes <= on.start->stack_bytes - at) {
		memcpy(to, (const char *)on.start->stack + at, bytes);
		return 0;
	}
	if (on.start->only_copy)
		return -1;
	return process_read(on.space->pid, address, to, bytes);
}

/* unwind_rule() knows the module that was found last. */
static int unwind_mapping(kprof_u32 space, kprof_u64 ip, struct kprof_unwind_mapping *m)
{
	size_t i = address_space__find(on.space, ip);

	if (i == SIZE_MAX)
		return -1;
	address_space__how(on.space, i, true, m);
	on.module = on.space->areas[i].module;
	on.jit = m->kind == KPROF_UNWIND_JIT
			 ? jit_code__area(on.space->jit, m->start, m->end)->table
			 : NULL;
	return 0;
}

static int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r)
{
	const struct unwind_table *t = on.jit ?: module__table(on.module);
	uint64_t vaddr = (t->first_page + page) << KPROF_UNWIND_PAGE_BITS | at;

	*r = unwind_rules__at(modules__rules(on.space->modules), unwind_table__find(t, vaddr));
	return 0;
}

static void begin(struct kprof_unwind_walk *w, const struct walk_start *start)
{
	memset(w, 0, sizeof(*w));
	memcpy(w->regs, start->regs, sizeof(w->regs));
	w->ip = start->ip;
	w->sp = start->regs[7];
	w->bp = start->regs[6];
	w->bx = start->regs[3];
	w->exact = w->innermost = 1;
}

size_t walk_stack(const struct address_space *s, const struct walk_start *start,
		  struct walk_frame *frames, size_t room, struct walk_end *end)
{
	struct kprof_unwind_walk w;
	size_t nr = 0;
	int over = 0;

	on.space = s;
	on.start = start;
	begin(&w, start);
	while (!over && nr < room) {
		struct walk_frame frame = {.ip = w.ip, .sp = w.sp, .exact = w.exact};

		/*
		 * Walks here may be deeper than those in the kernel: the walker's own array of
		 * frames is not needed.
		 */
		w.nr = 0;
		over = unwind_step(&w);
		if (w.nr)
			frames[nr++] = frame;
	}
	end->how = over ? w.end : KPROF_UNWIND_TOO_DEEP;
	end->missing = end->how == KPROF_UNWIND_NOT_YET ? on.module : NULL;
	return nr;
}
