// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds the code of the interpreter's loop, _PyEval_EvalFrameDefault, in an ELF file. Compilers
 * split the function: its rarely executed part is elsewhere. That part has a symbol of its own if
 * the file has a .symtab, but no name in the stripped files of distributions. There, it is
 * recognized because the loop jumps into its middle, which it does with no other function.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/elf/elf.h"
#include "symbol/unwind/unwind.h"
#include "symbol/x86/x86.h"
#include "symbol/python/priv.h"
#include "util/order.h"
#include "util/util.h"

#define EVAL "_PyEval_EvalFrameDefault"
#define TAIL_CALL "_TAIL_CALL_"   /* Python/generated_cases.c.h of 3.14 */
#define MAX_EVAL_BYTES (1u << 20) /* 55 kB in releases; 200 kB without optimization */

/*
 * The functions between a call and the loop, with the releases that have them: Objects/call.c,
 * Python/ceval.c.
 */
static const char *const calls[] = {
	"py_trampoline_evaluator", /* 3.12 -, with -X perf */
	"_PyFunction_Vectorcall",  /* 3.8 - */
	"_PyEval_Vector",          /* 3.10 - */
	"_PyEval_EvalCode",        /* 3.9 */
	"_PyEval_EvalCodeWithName", "_PyFunction_FastCallDict",
	"function_code_fastcall",   "call_function", /* - 3.10 */
};

static void add_range(struct python_elf *p, uint64_t start, uint64_t bytes, enum python_native kind)
{
	if (!bytes || start + bytes < start || p->nr_ranges == PYTHON_MAX_RANGES)
		return;
	for (size_t i = 0; i < p->nr_ranges; i++)
		if (p->ranges[i].start == start)
			return;
	p->ranges[p->nr_ranges++] =
		(struct python_range){.start = start, .end = start + bytes, .kind = kind};
}

/*
 * Whether the symbol is this function or a part of it: name.cold, name.part.0, name.lto_priv.0 and
 * so on; BOLT also writes name/1.
 */
static bool is_piece_of(const char *symbol, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(symbol, name, n) && (!symbol[n] || symbol[n] == '.' || symbol[n] == '/');
}

static int on_symbol(void *ctx, const struct elffile_symbol *s)
{
	struct python_elf *p = ctx;

	if (!s->function)
		return 0;
	if (is_piece_of(s->name, EVAL))
		add_range(p, s->vaddr, s->size, PYTHON_NATIVE_EVAL);
	else if (!strncmp(s->name, TAIL_CALL, strlen(TAIL_CALL)))
		add_range(p, s->vaddr, s->size, PYTHON_NATIVE_HIDE);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (is_piece_of(s->name, calls[i]))
			add_range(p, s->vaddr, s->size, PYTHON_NATIVE_CALL);
	return 0;
}

/* ---- the rarely executed part without a name ---- */

struct jumps {
	uint64_t *to; /* sorted */
	size_t nr, cap;
	struct python_elf *p;
};

/* Called for each function: notes those whose middle is the target of a jump from the loop. */
static void on_function(void *ctx, uint64_t start, uint64_t end)
{
	struct jumps *j = ctx;
	size_t lo = order_find(j->to, j->nr, sizeof(*j->to), 0, start, true);

	if (lo < j->nr && j->to[lo] < end)
		add_range(j->p, start, end - start, PYTHON_NATIVE_EVAL);
}

static int compare_vaddrs(const void *a, const void *b)
{
	return order_u64(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Collects the direct jumps out of the loop. */
static int find_jumps(const uint8_t *code, size_t bytes, uint64_t vaddr, struct jumps *j)
{
	struct code_insn insn;

	for (size_t at = 0; at < bytes; at += insn.length) {
		uint64_t to;

		if (!code_insn_decode(code + at, bytes - at, &insn)) {
			insn.length = 1; /* padding */
			continue;
		}
		if (insn.kind != CODE_JMP && insn.kind != CODE_JCC)
			continue;
		to = vaddr + at + insn.length + (uint64_t)(int64_t)insn.value;
		if (to >= vaddr && to < vaddr + bytes)
			continue;
		if (vec_grow((void **)&j->to, &j->cap, j->nr, sizeof(*j->to)))
			return -ENOMEM;
		j->to[j->nr++] = to;
	}
	return 0;
}

static int find_nameless(struct python_elf *p, const struct elffile *e)
{
	struct jumps jumps = {.p = p};
	struct python_range loop = p->ranges[0];
	const uint8_t *code;
	size_t avail;
	int err;

	code = elffile__bytes(e, elffile__offset(e, loop.start), loop.end - loop.start, &avail);
	if (!code || avail > MAX_EVAL_BYTES)
		return 0;
	err = find_jumps(code, avail, loop.start, &jumps);
	if (!err && jumps.nr) {
		qsort(jumps.to, jumps.nr, sizeof(*jumps.to), compare_vaddrs);
		unwind_functions(e, on_function, &jumps);
	}
	free(jumps.to);
	return err;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct python_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int python_eval_find(struct python_elf *p, const struct elffile *e)
{
	struct elffile_symbol s;
	int err = 0;

	if (elffile__symbol(e, EVAL, &s))
		return -ENOENT;
	add_range(p, s.vaddr, s.size, PYTHON_NATIVE_EVAL);
	if (elffile__has_symtab(e))
		err = elffile__symbols(e, on_symbol, p);
	else
		err = find_nameless(p, e);
	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		if (!elffile__symbol(e, calls[i], &s))
			add_range(p, s.vaddr, s.size, PYTHON_NATIVE_CALL);
	qsort(p->ranges, p->nr_ranges, sizeof(p->ranges[0]), compare_ranges);
	return 0;
}

enum python_native python_elf__native(const struct python_elf *p, uint64_t vaddr)
{
	size_t lo = ORDER_UPTO(p->ranges, p->nr_ranges, start, vaddr);

	return lo && vaddr < p->ranges[lo - 1].end ? p->ranges[lo - 1].kind : PYTHON_NATIVE_OTHER;
}
