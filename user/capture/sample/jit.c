// SPDX-License-Identifier: BSD-2-Clause
/*
 * JIT code: hands its unwind tables to the kernel, and finds walks that used tables of other code.
 */
#include "capture/sample/impl.h"

#include "util/error.h"
#include "util/util.h"

/* JIT code is read again when unknown code was met: first soon, then less and less often. */
#define READ_FIRST_NS (50 * NSEC_PER_MSEC)
#define READ_LAST_NS (60 * NSEC_PER_SEC)
/* Reading JIT code takes at most one part in so many of a CPU's time. */
#define READ_SHARE 50

/* ---- reading ---- */

static void place(struct stacks *s, struct jit_code *jit)
{
	struct modules *ms = s->modules;

	for (size_t i = 0; i < jit_code__nr(jit); i++) {
		struct jit_area *a = jit_code__at(jit, i);

		/*
		 * No room for the table, as with JIT code of many processes: the code is walked by
		 * frame pointers.
		 */
		if (a->table && a->first_page == JIT_NOT_PLACED &&
		    unwinder__place(s->unwinder, modules__rules(ms), a->table, true,
				    &a->first_page))
			error_clear();
	}
}

static void wait_to_read(struct stack_target *st, uint64_t begin_ns, bool changed)
{
	uint64_t now_ns = clock_mono_ns(), took_ns = now_ns - begin_ns;

	if (changed || !st->code_wait_ns)
		st->code_wait_ns = READ_FIRST_NS;
	else if (st->code_wait_ns < READ_LAST_NS)
		st->code_wait_ns *= 2;
	if (st->code_wait_ns < took_ns * READ_SHARE)
		st->code_wait_ns = took_ns * READ_SHARE;
	st->code_next_ns = now_ns + st->code_wait_ns;
	st->code_stale = false;
}

bool stacks_jit__is_due(const struct stack_target *st, uint64_t now_ns)
{
	return st->code_stale && now_ns >= st->code_next_ns;
}

int stacks_jit__look(struct stacks *s, struct target *t, uint64_t now_ns)
{
	struct stack_target *st = stacks__of(s, t);
	uint64_t begin_ns;
	int changed;

	if (!stacks_jit__is_due(st, now_ns))
		return 0;
	begin_ns = clock_mono_ns();
	changed = address_space__read_jit_code(st->space) >
		  0; /* code that cannot be read (an error) is tried again */
	wait_to_read(st, begin_ns, changed);
	if (changed) {
		place(s, st->space->jit);
		s->jit_unpublished = true;
	}
	return changed;
}

void stacks_jit__settled(struct stacks *s, struct stack_target *st)
{
	uint32_t first_page;

	while (st->space->jit && jit_code__take_dropped(st->space->jit, &first_page))
		unwinder__drop(s->unwinder, first_page);
}

void stacks_jit__forget(struct stacks *s, struct stack_target *st)
{
	struct jit_code *jit = st->space->jit;

	for (size_t i = 0; jit && i < jit_code__nr(jit); i++)
		if (jit_code__at(jit, i)->first_page != JIT_NOT_PLACED)
			unwinder__drop(s->unwinder, jit_code__at(jit, i)->first_page);
	stacks_jit__settled(s, st);
}

void stacks_jit__published(struct stacks *s)
{
	uint64_t now_ns;

	if (!s->jit_unpublished)
		return;
	s->jit_unpublished = false;
	now_ns = clock_mono_ns();
	for (struct target *t = targets__first(s->opts.targets); t; t = t->hh.next)
		if (stacks__of(s, t) && stacks__of(s, t)->space->jit)
			jit_code__published(stacks__of(s, t)->space->jit, now_ns);
}

/* ---- was it right? ---- */

static bool is_jit(const struct address_space *space, uint64_t ip)
{
	size_t i = address_space__find(space, ip);

	return i != SIZE_MAX && space->areas[i].kind == CODE_AREA_JIT;
}

size_t stacks_jit__doubtful(struct stacks *s, struct target *t, const uint64_t *ips, size_t nr,
			    uint64_t time_ns)
{
	struct stack_target *st = stacks__of(s, t);
	const struct jit_code *jit;

	if (!st || !address_space__has_jit(st->space))
		return nr;
	jit = st->space->jit;
	for (size_t i = 0; i < nr; i++) {
		uint64_t ip = looked_up(ips[i]);

		if (!is_jit(st->space, ip))
			continue;
		if (jit && !jit_code__holds(jit, ip, time_ns)) {
			st->code_stale = true;
			return i;
		}
		st->code_stale |= !jit || !jit_code__knows(jit, ip);
	}
	return nr;
}
