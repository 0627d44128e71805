// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rules from instructions against the compilers' call frame information, for functions that have
 * both: at every instruction, the same frame or none claimed. KPROF_CODE_FILES=a:b compares more
 * files; KPROF_CODE_SHOW=n shows n places that differ.
 */
#include "symbol/x86/x86.h"

#include <unistd.h>

#include "symbol/x86/state.h"
#include "symbol/unwind/unwind.h"
#include "unit.h"

struct counts {
	uint64_t functions, insns, unknown, same, other, bp_lost, bx_lost;
};

struct comparison {
	const char *path;
	const struct elffile *elf;
	struct unwind_rules *rules;
	struct unwind_table *table;
	struct code_flow *flow;
	struct code_state *states; /* by offset; .nr_slots 255: as before */
	struct kprof_unwind_rule *ours;
	size_t cap, bytes;
	struct counts c;
	size_t nr_rows;
	long show;
};

#define AS_BEFORE 255

static void on_state(void *ctx, uint32_t offset, const struct code_state *s)
{
	struct comparison *c = ctx;

	if (!offset)
		for (size_t i = 0; i < c->bytes; i++)
			c->states[i].nr_slots = AS_BEFORE;
	c->states[offset] = *s;
}

static int on_row(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule)
{
	struct comparison *c = ctx;

	(void)vaddr;
	(void)rule;
	if (!c->nr_rows++)
		c->ours[0] = *rule;
	return 0;
}

/* Where a register of the compiler's rule lies with regard to the CFA, as our state sees it. */
static bool same_cfa(const struct code_state *s, const struct kprof_unwind_rule *theirs,
		     const struct kprof_unwind_rule *ours)
{
	static const uint8_t by_dwarf[CODE_NR] = {0, 2, 1,  3,  6,  7,  5,  4,
						  8, 9, 10, 11, 12, 13, 14, 15};
	unsigned int reg;

	if (ours->how == theirs->how)
		return ours->cfa == theirs->cfa && ours->add == theirs->add;
	switch (theirs->how) {
	case KPROF_UNWIND_SP:
		reg = CODE_SP;
		break;
	case KPROF_UNWIND_BP:
		reg = CODE_BP;
		break;
	case KPROF_UNWIND_BX:
		reg = CODE_BX;
		break;
	case KPROF_UNWIND_BP_AT:
		for (unsigned int i = 0; i < s->nr_slots; i++)
			if (s->slots[i].at.kind == s->reg[CODE_BP].kind &&
			    s->slots[i].at.origin == s->reg[CODE_BP].origin &&
			    s->slots[i].at.offset == s->reg[CODE_BP].offset + theirs->cfa)
				return s->slots[i].holds.kind == CODE_FRAME &&
				       -s->slots[i].holds.offset == theirs->add;
		return false;
	default:
		if (theirs->how < KPROF_UNWIND_REGISTER)
			return false;
		reg = by_dwarf[theirs->how - KPROF_UNWIND_REGISTER];
	}
	return s->reg[reg].kind == CODE_FRAME && -s->reg[reg].offset == theirs->cfa;
}

/* Both right if the register was saved and has its value still. */
static bool same_register(unsigned int ours, int32_t our_offset, unsigned int theirs,
			  int32_t their_offset)
{
	if (ours == KPROF_UNWIND_SAME || ours == KPROF_UNWIND_LOST)
		return true;
	if (ours != theirs)
		return false;
	return our_offset == their_offset;
}

static void compare_at(struct comparison *c, const struct code_state *s, uint64_t vaddr,
		       const char *name)
{
	struct kprof_unwind_rule theirs = unwind_rules__at(c->rules,
							   unwind_table__find(c->table, vaddr)),
				 ours;
	bool cfa, bp, bx;

	code_state_rule(s, &ours);
	if (theirs.how == KPROF_UNWIND_UNKNOWN || theirs.how == KPROF_UNWIND_BOTTOM)
		return;
	c->c.insns++;
	if (ours.how == KPROF_UNWIND_UNKNOWN) {
		c->c.unknown++;
		return;
	}
	cfa = same_cfa(s, &theirs, &ours);
	bp = same_register(ours.regs & 3, ours.bp, theirs.regs & 3, theirs.bp);
	bx = same_register(ours.regs >> 2, ours.bx, theirs.regs >> 2, theirs.bx);
	c->c.bp_lost +=
		(ours.regs & 3) == KPROF_UNWIND_LOST && (theirs.regs & 3) != KPROF_UNWIND_LOST;
	c->c.bx_lost +=
		ours.regs >> 2 == KPROF_UNWIND_LOST && theirs.regs >> 2 != KPROF_UNWIND_LOST;
	if (cfa && bp && bx) {
		c->c.same++;
		return;
	}
	if (c->c.other++ < (uint64_t)c->show)
		printf("# %s %#llx %s: how %u cfa %d regs %#x bp %d bx %d, compiler: how %u cfa %d regs %#x bp %d bx %d\n",
		       c->path, (unsigned long long)vaddr, name, ours.how, ours.cfa, ours.regs,
		       ours.bp, ours.bx, theirs.how, theirs.cfa, theirs.regs, theirs.bp, theirs.bx);
}

static int on_symbol(void *ctx, const struct elffile_symbol *symbol)
{
	struct comparison *c = ctx;
	uint64_t offset = elffile__offset(c->elf, symbol->vaddr);
	struct code_function function = {.vaddr = symbol->vaddr, .bytes = symbol->size};
	struct code_state now = {0};
	struct code_insn insn;
	size_t avail;

	if (!symbol->function || !symbol->size || symbol->size > 1 << 20 ||
	    strstr(symbol->name, ".cold") || !unwind_table__find(c->table, symbol->vaddr) ||
	    offset == UINT64_MAX)
		return 0;
	function.code = elffile__bytes(c->elf, offset, symbol->size, &avail);
	if (!function.code || avail < symbol->size)
		return 0;
	if (symbol->size > c->cap) {
		c->cap = symbol->size * 2;
		c->states = realloc(c->states, c->cap * sizeof(*c->states));
	}
	c->bytes = symbol->size;
	c->nr_rows = 0;
	if (code_flow__run(c->flow, &function, on_row, c))
		return 0;
	c->c.functions++;
	for (size_t at = 0; at < symbol->size; at += insn.length) {
		if (!code_insn_decode(function.code + at, function.bytes - at, &insn))
			insn.length = 1;
		for (size_t i = 0; i < insn.length && at + i < symbol->size; i++)
			if (c->states[at + i].nr_slots != AS_BEFORE)
				now = c->states[at + i];
		/* The whole function was not believed. */
		if (c->ours->how == KPROF_UNWIND_UNKNOWN)
			now.trust = CODE_NOWHERE;
		/* Between functions' parts nobody is. */
		if (insn.kind != CODE_PADDING)
			compare_at(c, &now, symbol->vaddr + at, symbol->name);
	}
	return 0;
}

static void compare(const char *path, struct counts *sum)
{
	struct kprof_unwind_rule row;
	struct comparison c = {.path = path,
			       .ours = &row,
			       .show = getenv("KPROF_CODE_SHOW") ? atol(getenv("KPROF_CODE_SHOW"))
								 : 5};
	struct elffile *e = NULL;

	if (unwind_rules__new(&c.rules) || elffile__open(path, &e) ||
	    unwind_table__build(e, c.rules, NULL, &c.table) || code_flow__new(&c.flow))
		goto out;
	c.elf = e;
	code_flow__watch(c.flow, on_state, &c);
	elffile__symbols(e, on_symbol, &c);
	printf("# %s: %llu functions, %llu instructions: %llu the same, %llu not, %llu not known, rbp lost %llu, rbx lost %llu\n",
	       path, (unsigned long long)c.c.functions, (unsigned long long)c.c.insns,
	       (unsigned long long)c.c.same, (unsigned long long)c.c.other,
	       (unsigned long long)c.c.unknown, (unsigned long long)c.c.bp_lost,
	       (unsigned long long)c.c.bx_lost);
	sum->insns += c.c.insns;
	sum->same += c.c.same;
	sum->other += c.c.other;
	sum->unknown += c.c.unknown;
	sum->bp_lost += c.c.bp_lost;
	sum->bx_lost += c.c.bx_lost;
out:
	code_flow__free(c.flow);
	unwind_table__free(c.table);
	elffile__close(e);
	unwind_rules__free(c.rules);
	free(c.states);
}

static void this_machines_files(void)
{
	static const char *const files[] = {
		"/proc/self/exe",
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	};
	struct counts c = {0};
	char *more = getenv("KPROF_CODE_FILES"), *next;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		compare(files[i], &c);
	while (more && *more) {
		next = strchrnul(more, ':');
		if (*next)
			*next++ = 0;
		compare(more, &c);
		more = next;
	}
	CHECK(c.same > 100000);
	CHECK(c.other * 2000 < c.same);
	CHECK(c.unknown * 20 < c.insns);
}

/* What makes frames of every kind. */
static const char sample[] =
	"#include <stdarg.h>\n"
	"#include <string.h>\n"
	"int ext(int, ...); void use(void *, ...);\n"
	"int leaf(int a, int b) { return a * b + 1; }\n"
	"int many(int a,int b,int c,int d,int e,int f,int g,int h) { return ext(a,b,c,d,e,f,g,h,a,b,c); }\n"
	"int grows(int n) { char room[n]; use(room); return room[n / 2]; }\n"
	"int aligned(int n) { int v[32] __attribute__((aligned(64))); use(v); return v[n & 31]; }\n"
	"int both(int n) { int v[32] __attribute__((aligned(128))); char room[n]; use(v, room);\n"
	"  return v[3] + room[1]; }\n"
	"int early(int *p, int n) { if (!p) return -1; int s = 0; for (int i = 0; i < n; i++) {\n"
	"  if (p[i] < 0) { use(p); return s; } s += ext(p[i], s, n); } return s; }\n"
	"int cases(int n, int m) { switch (n) { case 0: return ext(m); case 1: return ext(m, m) + 1;\n"
	"  case 2: use(&m); return m; case 3: return m * 3; case 4: return ext(1) - m; case 5: use(0);\n"
	"  case 6: return 7 + ext(m, n); case 7: return ext(n * m) * 2; default: return 0; } }\n"
	"int sum(int n, ...) { va_list l; int s = 0; va_start(l, n); while (n--) s += va_arg(l, int);\n"
	"  va_end(l); return s; }\n"
	"struct big { long v[20]; }; struct big give(long a) { struct big b = {{a}}; use(&b); return b; }\n"
	"long take(struct big b, long i) { struct big c = give(b.v[i]); return c.v[i] + ext((int)i); }\n"
	"int rec(int n) { return n < 2 ? 1 : rec(n - 1) + rec(n - 2) * ext(n); }\n"
	"int tail(int n) { return n ? ext(n) : leaf(n, 2); }\n"
	"int main(void) { return 0; }\n"
	"int ext(int a, ...) { return a; } void use(void *p, ...) { (void)p; }\n";

static void compiled(void)
{
	static const char *const compilers[] = {"cc", "gcc", "clang", "clang-14"};
	static const char *const options[] = {"-O0",
					      "-O1",
					      "-O2",
					      "-O3",
					      "-Os",
					      "-O2 -fno-omit-frame-pointer",
					      "-O2 -fcf-protection"};
	char folder[] = "/tmp/kprof-code-XXXXXX", path[64], program[64], command[256];
	struct counts c = {0};
	unsigned int nr = 0;
	FILE *to;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/sample.c", folder);
	snprintf(program, sizeof(program), "%s/sample", folder);
	to = fopen(path, "we");
	CHECK(to != NULL);
	fputs(sample, to);
	fclose(to);
	for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]); i++) {
		for (size_t k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
			snprintf(command, sizeof(command), "%s %s -fno-inline -o %s %s 2>/dev/null",
				 compilers[i], options[k], program, path);
			if (system(command))
				continue;
			compare(program, &c);
			nr++;
		}
	}
	unlink(path);
	unlink(program);
	rmdir(folder);
	/* One compiler there is, as something built this test. */
	CHECK(nr >= sizeof(options) / sizeof(options[0]));
	CHECK_EQ(c.other, 0);
	CHECK_EQ(c.bp_lost, 0);
	CHECK_EQ(c.bx_lost, 0);
	CHECK(c.unknown * 50 < c.insns);
}

UNIT_MAIN(TEST(this_machines_files), TEST(compiled))
