// SPDX-License-Identifier: BSD-2-Clause
/*
 * Code without any description: what is believed must be true. Hand-written, as code generators
 * write it; and the machine's libraries, taken for memory of which nothing is known, from places
 * where no function begins, too: against what their compilers said of them. KPROF_CODE_FILES=a:b
 * compares more files; KPROF_CODE_SHOW=n shows n places that differ.
 */
#include "symbol/unwind/unwind.h"

#include <stdbool.h>

#include "unit.h"

struct found {
	uint64_t start[8], end[8];
	unsigned int nr;
};

static int on_function(void *ctx, uint64_t start, uint64_t end)
{
	struct found *f = ctx;

	if (f->nr < 8) {
		f->start[f->nr] = start;
		f->end[f->nr] = end;
	}
	f->nr++;
	return 0;
}

#define BASE 0x7f0000010000ull

struct one {
	struct unwind_rules *rules;
	struct unwind_table *table;
	struct found found;
};

static void read_code(struct one *o, const void *code, size_t bytes)
{
	struct unwind_jit *m;

	memset(o, 0, sizeof(*o));
	CHECK_EQ(unwind_rules__new(&o->rules), 0);
	CHECK_EQ(unwind_jit__new(o->rules, &m), 0);
	CHECK_EQ(unwind_jit__add(m, code, bytes, BASE, on_function, &o->found), 0);
	CHECK_EQ(unwind_jit__table(m, &o->table), 0);
	CHECK((o->table != NULL) == (o->found.nr > 0));
	unwind_jit__free(m);
}

static struct kprof_unwind_rule rule_at(struct one *o, uint64_t offset)
{
	struct kprof_unwind_rule none = {0};

	return o->table ? unwind_rules__at(o->rules, unwind_table__find(o->table, BASE + offset))
			: none;
}

static void done(struct one *o)
{
	unwind_table__free(o->table);
	unwind_rules__free(o->rules);
}

/* As Xbyak's users write it: rbp is a number like any other. */
static const uint8_t kernel[] = {
	0x53,                         /* 00 push %rbx */
	0x55,                         /* 01 push %rbp */
	0x41, 0x54,                   /* 02 push %r12 */
	0x48, 0x83, 0xec, 0x18,       /* 04 sub $0x18,%rsp */
	0xbd, 0x08, 0x00, 0x00, 0x00, /* 08 mov $8,%ebp */
	0x48, 0x8b, 0x1f,             /* 0d mov (%rdi),%rbx */
	0xff, 0xd6,                   /* 10 call *%rsi */
	0xff, 0xcd,                   /* 12 dec %ebp */
	0x75, 0xf7,                   /* 14 jne 0d */
	0x48, 0x83, 0xc4, 0x18,       /* 16 add $0x18,%rsp */
	0x41, 0x5c,                   /* 1a pop %r12 */
	0x5d,                         /* 1c pop %rbp */
	0x5b,                         /* 1d pop %rbx */
	0xc3,                         /* 1e ret */
};

static void a_kernel(void)
{
	static const struct {
		uint8_t at, cfa, regs;
		int8_t bp, bx;
	} want[] = {
		{0x00, 8, 0, 0, 0},      {0x01, 16, 0, 0, 0},     {0x02, 24, 0, 0, 0},
		{0x04, 32, 0, 0, 0},     {0x08, 56, 0, 0, 0},     {0x0d, 56, 1, -24, 0},
		{0x10, 56, 5, -24, -16}, {0x16, 56, 5, -24, -16}, {0x1a, 32, 5, -24, -16},
		{0x1c, 24, 5, -24, -16}, {0x1d, 16, 4, 0, -16},   {0x1e, 8, 0, 0, 0},
	};
	struct one o;

	read_code(&o, kernel, sizeof(kernel));
	CHECK_EQ(o.found.nr, 1);
	CHECK_EQ(o.found.start[0], BASE);
	CHECK_EQ(o.found.end[0], BASE + sizeof(kernel));
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
		struct kprof_unwind_rule r = rule_at(&o, want[i].at);

		CHECK_EQ(r.how, KPROF_UNWIND_SP);
		CHECK_EQ(r.cfa, want[i].cfa);
		/* Saved and not yet another value: both are true. */
		if (r.regs & 3)
			CHECK_EQ(r.bp, -24);
		else
			CHECK_EQ(want[i].regs & 3, 0);
		if (r.regs >> 2)
			CHECK_EQ(r.bx, -16);
		else
			CHECK_EQ(want[i].regs >> 2, 0);
	}
	CHECK_EQ(rule_at(&o, sizeof(kernel)).how, KPROF_UNWIND_NONE);
	done(&o);
}

/* The kernel with one byte changed. */
static unsigned int functions_with(size_t at, uint8_t byte)
{
	uint8_t code[sizeof(kernel)];
	struct one o;

	memcpy(code, kernel, sizeof(code));
	code[at] = byte;
	read_code(&o, code, sizeof(code));
	done(&o);
	return o.found.nr;
}

static void not_believed(void)
{
	struct one o;

	CHECK_EQ(functions_with(0, 0x53), 1); /* as it is */
	CHECK_EQ(functions_with(0, 0x90), 0); /* returns with another stack pointer */
	CHECK_EQ(functions_with(0x19, 0x10), 0);
	CHECK_EQ(functions_with(0x1c, 0x5e), 0); /* rbp is not the caller's */
	CHECK_EQ(functions_with(0x1d, 0x5e), 0); /* rbx */
	CHECK_EQ(functions_with(0x15, 0x80), 0); /* jumps out, in the midst of its frame */
	CHECK_EQ(functions_with(0x15, 0xf5), 0); /* … into the midst of an instruction */
	CHECK_EQ(functions_with(0x1e, 0x0e), 0); /* no instruction */
	CHECK_EQ(functions_with(0x1e, 0x90), 0); /* no end */
	for (size_t bytes = 0; bytes < sizeof(kernel); bytes++) {
		read_code(&o, kernel, bytes);
		CHECK_EQ(o.found.nr, 0);
		done(&o);
	}
	/* From its midst on. */
	for (size_t from = 1; from < sizeof(kernel) - 1; from++) {
		read_code(&o, kernel + from, sizeof(kernel) - from);
		CHECK_EQ(o.found.nr, 0);
		done(&o);
	}
}

/* Aligned, one behind the other; what comes behind one that is none is not looked at. */
static void several(void)
{
	uint8_t code[5 * 64] = {0};
	struct one o;

	for (size_t i = 0; i < 5; i++)
		memcpy(code + i * 64, kernel, sizeof(kernel));
	memset(code + sizeof(kernel), 0xcc, 64 - sizeof(kernel));
	code[3 * 64] = 0x90;
	read_code(&o, code, sizeof(code));
	CHECK_EQ(o.found.nr, 3);
	CHECK_EQ(o.found.start[2], BASE + 128);
	CHECK_EQ(rule_at(&o, 64 + 0x10).cfa, 56);
	CHECK_EQ(rule_at(&o, 3 * 64 + 0x10).how, KPROF_UNWIND_NONE);
	CHECK_EQ(rule_at(&o, 4 * 64 + 0x10).how, KPROF_UNWIND_NONE);
	done(&o);
}

/* ---- against compilers ---- */

struct counts {
	uint64_t functions, insns, same, other;
};

struct file {
	const char *path;
	struct elffile *elf;
	struct unwind_rules *rules;
	struct unwind_table *theirs;
	struct found found;
	struct counts c;
	long show;
};

/*
 * Where they lead to must be the same place; where ours claims nothing of a register it can't be
 * wrong.
 */
static bool agree(const struct kprof_unwind_rule *a, const struct kprof_unwind_rule *b)
{
	if (a->how == KPROF_UNWIND_UNKNOWN || b->how == KPROF_UNWIND_UNKNOWN)
		return true;
	if (a->how != b->how) /* rsp and rbp may both lead there: nothing to compare with */
		return b->how != KPROF_UNWIND_NONE && b->how != KPROF_UNWIND_BOTTOM;
	return a->cfa == b->cfa;
}

static void compare_piece(struct file *f, uint64_t vaddr, size_t bytes)
{
	struct unwind_table *ours;
	struct unwind_jit *m;
	const uint8_t *code = elffile__bytes(f->elf, elffile__offset(f->elf, vaddr), bytes, &bytes);

	if (!code || unwind_jit__new(f->rules, &m))
		return;
	f->found.nr = 0;
	CHECK_EQ(unwind_jit__add(m, code, bytes, vaddr, on_function, &f->found), 0);
	CHECK_EQ(unwind_jit__table(m, &ours), 0);
	f->c.functions += f->found.nr;
	for (unsigned int i = 0; i < f->found.nr && i < 8; i++) {
		for (uint64_t at = f->found.start[i]; at < f->found.end[i]; at++) {
			struct kprof_unwind_rule a = unwind_rules__at(f->rules,
								      unwind_table__find(ours, at)),
						 b = unwind_rules__at(
							 f->rules,
							 unwind_table__find(f->theirs, at));

			f->c.insns++;
			if (agree(&a, &b))
				f->c.same++;
			else if (f->c.other++ < (uint64_t)f->show)
				printf("# %s %#llx: how %u cfa %d, compiler: how %u cfa %d\n",
				       f->path, (unsigned long long)at, a.how, a.cfa, b.how, b.cfa);
		}
	}
	unwind_table__free(ours);
	unwind_jit__free(m);
}

static void compare_file(const char *path, size_t step, struct counts *sum)
{
	struct file f = {.path = path,
			 .show = getenv("KPROF_CODE_SHOW") ? atol(getenv("KPROF_CODE_SHOW")) : 5};
	uint64_t text, at;
	size_t bytes;

	if (unwind_rules__new(&f.rules) || elffile__open(path, &f.elf) ||
	    unwind_table__build(f.elf, f.rules, NULL, &f.theirs) ||
	    !elffile__section_at(f.elf, ".text", &bytes, &text))
		goto out;
	for (at = text; at < text + bytes; at += step)
		compare_piece(&f, at, text + bytes - at < 16384 ? text + bytes - at : 16384);
	printf("# %s from every %zu bytes: %llu functions believed, of %llu bytes %llu not so\n",
	       path, step, (unsigned long long)f.c.functions, (unsigned long long)f.c.insns,
	       (unsigned long long)f.c.other);
	sum->functions += f.c.functions;
	sum->insns += f.c.insns;
	sum->other += f.c.other;
out:
	unwind_table__free(f.theirs);
	elffile__close(f.elf);
	unwind_rules__free(f.rules);
}

static void from_anywhere(void)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
	};
	char *more = getenv("KPROF_CODE_FILES"), *next;
	struct counts c = {0};

	/* No multiple of what functions are aligned by: most begin in the midst of something. */
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		compare_file(files[i], 1021, &c);
	while (more && *more) {
		next = strchrnul(more, ':');
		if (*next)
			*next++ = 0;
		compare_file(more, 1021, &c);
		more = next;
	}
	CHECK(c.functions > 100);
	CHECK(c.other * 200 < c.insns);
}

UNIT_MAIN(TEST(a_kernel), TEST(not_believed), TEST(several), TEST(from_anywhere))
