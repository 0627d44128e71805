// SPDX-License-Identifier: BSD-2-Clause
/*
 * Walks over stacks that hold anything, by rules that say anything: the walker that also runs in
 * the kernel (bpf/unwind.h), each step beside one written without its shortcuts; and the one from
 * outside (walk.c) with a copy of the stack anywhere. The first byte says which.
 */
#include "bpf/unwind.h"
#include "capture/unwind/unwind.h"
#include "fuzz.h"

/* ---- what the walker asks for ---- */

#define STACK 0x7fff0000ull
#define MOST_RULES 32

static struct {
	struct kprof_unwind_rule rules[MOST_RULES];
	size_t nr_rules;
	uint32_t kinds; /* of the mappings, three bits each */
	const uint8_t *stack;
	uint64_t bytes;
} world;

static int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address)
{
	uint64_t at = address - STACK;

	if (at >= world.bytes || bytes > world.bytes - at)
		return -1;
	memcpy(to, world.stack + at, bytes);
	return 0;
}

/* Eight mappings of a page of table each, from 1 MiB on; the stack is no code. */
static int unwind_mapping(kprof_u32 space, kprof_u64 ip, struct kprof_unwind_mapping *m)
{
	uint64_t i = (ip >> KPROF_UNWIND_PAGE_BITS) - 16;

	if (i >= 8)
		return -1;
	*m = (struct kprof_unwind_mapping){.start = ip & ~0xffffull,
					   .end = (ip & ~0xffffull) + 0x10000,
					   .first_page = (uint32_t)i,
					   .nr_pages = 1,
					   .table_page = (uint32_t)i + 16,
					   .kind = world.kinds >> 3 * i & 7};
	return 0;
}

static int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r)
{
	REQUIRE(page < 8);
	if (!world.nr_rules)
		return -1;
	*r = world.rules[(page * 7 + at) % world.nr_rules];
	return 0;
}

/* ---- a step by a rule, word by word ---- */

static bool word(uint64_t address, uint64_t *to)
{
	return !unwind_read(to, sizeof(*to), address);
}

static bool caller_register(uint32_t how, int32_t offset, uint64_t cfa, uint64_t bp,
			    uint64_t *value)
{
	switch (how) {
	case KPROF_UNWIND_SAVED:
		return word(cfa + (uint64_t)(int64_t)offset, value);
	case KPROF_UNWIND_AT_BP:
		return word(bp + (uint64_t)(int64_t)offset, value);
	default: /* the same, or lost */
		return true;
	}
}

/* Where rules are by stack pointer, frame pointer or rbx, what compilers write. */
static bool reference(const struct kprof_unwind_walk *w, const struct kprof_unwind_rule *r,
		      struct kprof_unwind_walk *next)
{
	uint64_t base = r->how == KPROF_UNWIND_SP   ? w->sp
			: r->how == KPROF_UNWIND_BP ? w->bp
						    : w->bx;
	uint64_t cfa = base + (uint64_t)(int64_t)r->cfa;

	*next = *w;
	next->sp = cfa;
	return word(cfa - 8, &next->ip) &&
	       caller_register(r->regs & 3, r->bp, cfa, w->bp, &next->bp) &&
	       caller_register(r->regs >> 2 & 3, r->bx, cfa, w->bp, &next->bx) && cfa > w->sp;
}

static bool is_plain(const struct kprof_unwind_walk *w, const struct kprof_unwind_rule *r)
{
	return r->how == KPROF_UNWIND_SP || (r->how == KPROF_UNWIND_BP && !w->bp_lost) ||
	       (r->how == KPROF_UNWIND_BX && !w->bx_lost);
}

static void check_step(const struct kprof_unwind_walk *before, const struct kprof_unwind_walk *w,
		       int over)
{
	uint64_t ip = before->exact ? before->ip : before->ip - 1;
	struct kprof_unwind_mapping m;
	struct kprof_unwind_walk want;
	struct kprof_unwind_rule r;

	if (before->ip < UNWIND_LOWEST_IP || before->nr == KPROF_UNWIND_MAX_FRAMES ||
	    unwind_mapping(0, ip, &m) || m.kind != KPROF_UNWIND_TABLE ||
	    unwind_rule(m.first_page, (kprof_u16)ip, &r) || !is_plain(before, &r))
		return;
	REQUIRE(reference(before, &r, &want) == !over);
	if (over)
		return;
	REQUIRE(w->ip == want.ip && w->sp == want.sp && !w->exact);
	REQUIRE(w->bp_lost == ((r.regs & 3) == KPROF_UNWIND_LOST ||
			       ((r.regs & 3) == KPROF_UNWIND_SAME && before->bp_lost)));
	REQUIRE(w->bp_lost || w->bp == want.bp);
	REQUIRE(w->bx_lost == ((r.regs >> 2 & 3) == KPROF_UNWIND_LOST ||
			       ((r.regs >> 2 & 3) == KPROF_UNWIND_SAME && before->bx_lost)));
	REQUIRE(w->bx_lost || w->bx == want.bx);
}

static void by_rules(struct fuzz_input in)
{
	struct kprof_unwind_walk w = {.exact = 1, .innermost = 1}, before;
	int over = 0, steps = 0;

	world.kinds = (uint32_t)fuzz_number(&in, 3);
	world.nr_rules = fuzz_number(&in, 1) % (MOST_RULES + 1);
	w.ip = 0x100000 + fuzz_number(&in, 3) % 0x90000;
	for (int i = 0; i < 16; i++)
		w.regs[i] = STACK + fuzz_number(&in, 1) * 8;
	w.sp = w.regs[7];
	w.bp = w.regs[6];
	w.bx = w.regs[3];
	for (size_t i = 0; i < world.nr_rules; i++) {
		struct kprof_unwind_rule *r = &world.rules[i];

		r->how = (uint8_t)(fuzz_number(&in, 1) % 36);
		r->regs = (uint8_t)(fuzz_number(&in, 1) & 15);
		r->cfa = (int16_t)fuzz_number(&in, 2);
		r->bp = (int8_t)fuzz_number(&in, 1) * (r->how & 1 ? 8 : 1);
		r->bx = (int8_t)fuzz_number(&in, 1) * 8;
		r->add = (int8_t)fuzz_number(&in, 1);
	}
	world.stack = in.at;
	world.bytes = in.left;
	for (; !over && steps <= KPROF_UNWIND_MAX_FRAMES; steps++) {
		before = w;
		over = unwind_step(&w);
		REQUIRE(w.nr >= before.nr && w.nr <= before.nr + 1);
		check_step(&before, &w, over);
	}
	REQUIRE(over && w.nr <= KPROF_UNWIND_MAX_FRAMES && w.end < KPROF_UNWIND_NR_ENDS);
}

/* ---- from outside ---- */

#define NR_AREAS 4
#define USER_SPACE ((1ull << 47) - 1) /* no process has memory above */

static void from_outside(struct fuzz_input in)
{
	struct kprof_unwind_mapping mappings[NR_AREAS];
	struct code_area areas[NR_AREAS] = {0};
	struct address_space space = {
		.pid = 0x7fffffff, .mappings = mappings, .areas = areas, .nr = NR_AREAS};
	struct walk_start start = {.ip = fuzz_number(&in, 8)};
	size_t room = fuzz_number(&in, 1) % 33, nr;
	struct walk_frame *frames = calloc(room + 1, sizeof(*frames));
	struct walk_end end;

	REQUIRE(frames);
	start.stack_address = fuzz_number(&in, 8) & USER_SPACE;
	start.only_copy = true; /* there is no process */
	for (size_t i = 0; i < NR_AREAS; i++) {
		uint64_t first = 0x10000 * (i + 1), kind = fuzz_number(&in, 1);

		mappings[i] = (struct kprof_unwind_mapping){.start = first, .end = first + 0x8000};
		areas[i].kind = kind & 1 ? CODE_AREA_SPECIAL : CODE_AREA_JIT;
	}
	for (int i = 0; i < 16; i++)
		start.regs[i] = start.stack_address + fuzz_number(&in, 1);
	if (start.regs[0] % 5 == 0)
		start.regs[6] *= start.regs[1]; /* a frame pointer that points anywhere */
	start.stack = fuzz_rest(&in);
	start.stack_bytes = in.left;
	nr = walk_stack(&space, &start, frames, room, &end);
	REQUIRE(nr <= room && end.how < KPROF_UNWIND_NR_ENDS && !end.missing);
	REQUIRE(!nr || (frames[0].ip == start.ip && frames[0].sp == start.regs[7]));
	for (size_t i = 1; i < nr; i++)
		REQUIRE(frames[i].sp > frames[i - 1].sp && !frames[i].exact);
	free((void *)start.stack);
	free(frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct fuzz_input in = {data, bytes};

	if (fuzz_number(&in, 1) & 1)
		from_outside(in);
	else
		by_rules(in);
	return 0;
}
