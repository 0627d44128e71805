// SPDX-License-Identifier: BSD-2-Clause
/*
 * Rows for functions that have a symbol but no description, mostly hand-written assembly. The rows
 * come from the instructions.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/x86/x86.h"
#include "symbol/unwind/priv.h"
#include "util/order.h"
#include "util/pace.h"
#include "util/util.h"

/* A symbol without a size extends to the next one, but not farther than this. */
#define UNSIZED_BYTES (64u << 10)

/*
 * Limit for the bytes of all such functions of a file: ten times that of the largest libraries.
 * Further functions get no rows.
 */
#define MOST_BYTES (256u << 20)

struct function {
	uint64_t start, end; /* end is 0 if not known */
	bool bottom;         /* the entry of the process, which has no caller */
	bool clone;          /* a thread begins in its middle, on a stack of its own */
};

struct finder {
	const struct elffile *elf;
	const struct unwind_gap *gaps;
	size_t nr_gaps;
	const atomic_bool *stop; /* NULL: nothing stops it */
	struct function *functions;
	size_t nr, cap;
};

static const struct unwind_gap *gap_at(const struct finder *f, uint64_t vaddr)
{
	size_t lo = ORDER_UPTO(f->gaps, f->nr_gaps, end, vaddr);

	return lo < f->nr_gaps && f->gaps[lo].start <= vaddr ? &f->gaps[lo] : NULL;
}

/*
 * Whether this is a rarely executed part that the compiler has moved away from its function: when
 * it is entered, the frame is already set up, so it cannot be analysed as a function.
 */
static bool is_cold(const char *name)
{
	return memmem(name, strnlen(name, ELFFILE_NAME_MOST), ".cold", strlen(".cold"));
}

static int on_symbol(void *ctx, const struct elffile_symbol *symbol)
{
	struct finder *f = ctx;
	const struct unwind_gap *gap;
	struct function *to;

	if (f->stop && atomic_load_explicit(f->stop, memory_order_relaxed))
		return -ECANCELED;
	pace_rest();
	if (!symbol->function)
		return 0;
	gap = gap_at(f, symbol->vaddr);
	if (!gap || is_cold(symbol->name))
		return 0;
	if (vec_grow((void **)&f->functions, &f->cap, f->nr, sizeof(*f->functions)))
		return -ENOMEM;
	to = &f->functions[f->nr++];
	*to = (struct function){.start = symbol->vaddr};
	to->bottom = !strcmp(symbol->name, "_start");
	to->clone = !strcmp(symbol->name, "__clone");
	if (symbol->size)
		to->end = symbol->size < gap->end - symbol->vaddr ? symbol->vaddr + symbol->size
								  : gap->end;
	return 0;
}

/* Orders by start; of several functions with one start, the longest comes first. */
static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/* Removes overlaps: further names of a function, and entries within a function. */
static void settle(struct finder *f)
{
	uint64_t end = 0;
	size_t kept = 0;

	qsort(f->functions, f->nr, sizeof(*f->functions), by_start);
	for (size_t i = 0; i < f->nr; i++) {
		struct function now = f->functions[i];
		size_t next = i + 1;

		if (kept && now.start < end)
			continue;
		if (!now.end) {
			now.end = gap_at(f, now.start)->end;
			while (next < f->nr && f->functions[next].start == now.start)
				next++;
			if (next < f->nr && f->functions[next].start < now.end)
				now.end = f->functions[next].start;
			if (now.end - now.start > UNSIZED_BYTES)
				now.end = now.start + UNSIZED_BYTES;
		}
		end = now.end;
		f->functions[kept++] = now;
	}
	f->nr = kept;
}

/*
 * Recognizes "mov $15, %rax (or %eax); syscall": rt_sigreturn, which the C library passes to the
 * kernel as sa_restorer.
 */
bool unwind_code__returns_from_signal(const uint8_t *code, size_t bytes)
{
	static const uint8_t rax[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t eax[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};

	return (bytes >= sizeof(rax) && !memcmp(code, rax, sizeof(rax))) ||
	       (bytes >= sizeof(eax) && !memcmp(code, eax, sizeof(eax)));
}

/* glibc's ld.so has 61 bytes of it, and less in programs. */
#define ENTRY_BYTES 64

bool unwind_code__entry(const struct elffile *e, struct unwind_gap *out)
{
	/* what programs and dynamic linkers begin with; of a library, the entry is any code */
	static const struct {
		size_t bytes;
		uint8_t code[4];
	} begins[] = {
		{3, {0x48, 0x89, 0xe7}}, /* mov %rsp,%rdi: glibc's ld.so */
		{2, {0x31, 0xed}},       /* xor %ebp,%ebp: programs */
		{3, {0x48, 0x31, 0xed}}, /* xor %rbp,%rbp: musl */
	};
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	uint64_t entry = elffile__entry(e), offset = elffile__offset(e, entry);
	size_t bytes;
	const uint8_t *code = entry && elffile__executable(e, offset)
				      ? elffile__bytes(e, offset, ENTRY_BYTES, &bytes)
				      : NULL;

	if (!code)
		return false;
	*out = (struct unwind_gap){.start = entry, .end = entry + bytes};
	if (bytes > sizeof(endbr) && !memcmp(code, endbr, sizeof(endbr))) {
		code += sizeof(endbr);
		bytes -= sizeof(endbr);
	}
	for (size_t i = 0; i < ARRAY_SIZE(begins); i++)
		if (bytes >= begins[i].bytes && !memcmp(code, begins[i].code, begins[i].bytes))
			return true;
	return false;
}

/*
 * For musl's __clone (src/thread/x86_64/clone.s): after the system call, the new thread pops the
 * only word on its stack and makes a call. Analysed as the code of one thread, this would have
 * popped its own return address.
 */
static int clone_row(void *ctx, uint64_t vaddr, const struct kprof_unwind_rule *rule)
{
	static const struct kprof_unwind_rule bottom = {.how = KPROF_UNWIND_BOTTOM};
	const struct cfi_ops *ops = ctx;

	return ops->row(ops->ctx, vaddr,
			rule->how == KPROF_UNWIND_SP && rule->cfa <= 0 ? &bottom : rule);
}

static int emit(struct code_flow *flow, const struct finder *f, const struct function *function,
		const struct cfi_ops *ops)
{
	static const struct kprof_unwind_rule bottom = {.how = KPROF_UNWIND_BOTTOM},
					      signal = {.how = KPROF_UNWIND_SIGNAL},
					      unknown = {.how = KPROF_UNWIND_UNKNOWN};
	uint64_t emitted = function > f->functions ? function[-1].end : 0;
	struct cfi_range range = {.start = function->start, .end = function->end};
	struct code_function code = {.vaddr = function->start};
	size_t most = (size_t)(function->end - function->start);
	bool from_signal;
	int err;

	code.code =
		elffile__bytes(f->elf, elffile__offset(f->elf, function->start), most, &code.bytes);
	if (!code.code)
		return 0;
	range.end = range.start + code.bytes;
	from_signal = unwind_code__returns_from_signal(code.code, code.bytes);
	/*
	 * A signal handler "returns" to the first byte of this function, and for return addresses
	 * the preceding byte is looked up.
	 */
	if (from_signal && emitted < range.start && gap_at(f, range.start - 1))
		range.start--;
	err = ops->range(ops->ctx, &range);
	if (err)
		return err < 0 ? err : 0;
	if (from_signal)
		return ops->row(ops->ctx, range.start, &signal);
	if (function->bottom)
		return ops->row(ops->ctx, range.start, &bottom);
	err = function->clone ? code_flow__run(flow, &code, clone_row, (void *)ops)
			      : code_flow__run(flow, &code, ops->row, ops->ctx);
	/* Without this row, the rule of the preceding function would continue. */
	return err == CODE_FLOW_TOO_BIG ? ops->row(ops->ctx, range.start, &unknown) : err;
}

int unwind_code__read(const struct elffile *e, const struct unwind_gap *gaps, size_t nr,
		      const atomic_bool *stop, const struct cfi_ops *ops)
{
	struct finder f = {.elf = e, .gaps = gaps, .nr_gaps = nr, .stop = stop};
	struct code_flow *flow = NULL;
	uint64_t bytes = 0;
	int err;

	if (!nr)
		return 0;
	err = elffile__symbols(e, on_symbol, &f);
	if (!err && f.nr) {
		settle(&f);
		pace_rest_now();
		err = code_flow__new(&flow);
	}
	for (size_t i = 0; i < f.nr && !err && bytes < MOST_BYTES; i++) {
		bytes += f.functions[i].end - f.functions[i].start;
		err = emit(flow, &f, &f.functions[i], ops);
	}
	code_flow__free(flow);
	free(f.functions);
	return err;
}
