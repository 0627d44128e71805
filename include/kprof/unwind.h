/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables by which stacks are unwound without frame pointers, shared by what compiles them
 * (user/symbol/unwind/unwind.c) and what walks with them (bpf/unwind.h, in the kernel and in
 * tests).
 *
 * A module's text is cut into pages of 64 KiB. A page's rows say from which address on (its low 16
 * bits) which rule holds; a row at 0 always comes first, so that each page stands for itself. Rules
 * are few and shared by all modules.
 */
#ifndef KPROF_UNWIND_H
#define KPROF_UNWIND_H

#include "kprof/wire.h"

#define KPROF_UNWIND_PAGE_BITS 16
#define KPROF_UNWIND_PAGE_BYTES (1u << KPROF_UNWIND_PAGE_BITS)
#define KPROF_UNWIND_MAX_RULES 8192

/* How the canonical frame address (the stack pointer before the call) is found. */
enum kprof_unwind_cfa {
	KPROF_UNWIND_NONE = 0,     /* nothing is known of this code */
	KPROF_UNWIND_SP = 1,       /* rsp + cfa */
	KPROF_UNWIND_BP = 2,       /* rbp + cfa */
	KPROF_UNWIND_BX = 3,       /* rbx + cfa */
	KPROF_UNWIND_BP_AT = 5,    /* *(rbp + cfa) + add: a realigned stack */
	KPROF_UNWIND_SP_AT = 6,    /* *(rsp + cfa) + add: a stack that was changed */
	KPROF_UNWIND_PLT = 7,      /* rsp + 8, and 8 more once the index is pushed: .plt's slots */
	KPROF_UNWIND_SIGNAL = 8,   /* a signal's frame: all registers lie at rsp */
	KPROF_UNWIND_BOTTOM = 9,   /* the thread's first function: it returns nowhere */
	KPROF_UNWIND_UNKNOWN = 10, /* described, in a way that no rule here can say */
	/*
	 * 16 + n: DWARF's register n + cfa; in the innermost frame only, where all registers are
	 * known.
	 */
	KPROF_UNWIND_REGISTER = 16,
};

/* Where the caller's value of a register that calls preserve lies. */
enum kprof_unwind_reg {
	KPROF_UNWIND_SAME = 0,  /* it was not touched */
	KPROF_UNWIND_SAVED = 1, /* at CFA + its offset */
	KPROF_UNWIND_AT_BP = 2, /* at rbp + its offset: beside a realigned stack */
	KPROF_UNWIND_LOST = 3,
};

struct kprof_unwind_rule {
	kprof_s32 cfa; /* bytes */
	kprof_s32 bp;  /* bytes: where the caller's rbp lies */
	kprof_s32 bx;  /* … its rbx */
	kprof_s16 add; /* BP_AT, SP_AT */
	kprof_u8 how;  /* enum kprof_unwind_cfa */
	kprof_u8 regs; /* enum kprof_unwind_reg: of rbp in bits 0-1, of rbx in bits 2-3 */
};
#define KPROF_UNWIND_REGS(bp, bx) ((kprof_u8)((bp) | (bx) << 2))

struct kprof_unwind_row {
	kprof_u16 at;   /* low bits of the first address */
	kprof_u16 rule; /* index */
};

/* A piece of an address space that holds code. Sorted by start within a process. */
struct kprof_unwind_mapping {
	kprof_u64 start, end; /* addresses; end is the first one after it */
	kprof_u64 bias;       /* address - vaddr of the file */
	kprof_u32 first_page; /* of the module's pages, where its table begins */
	kprof_u32 nr_pages;
	kprof_u32 table_page; /* vaddr >> KPROF_UNWIND_PAGE_BITS of that first page */
	kprof_u32 kind;       /* enum kprof_unwind_kind */
};

enum kprof_unwind_kind {
	KPROF_UNWIND_TABLE = 0,    /* by its module's table */
	KPROF_UNWIND_POINTERS = 1, /* by frame pointers: JIT code without a table */
	KPROF_UNWIND_PENDING = 2,  /* its table is being built */
	KPROF_UNWIND_WITHOUT = 3,  /* it has none, and is too big or too odd to get one */
	/* JIT code: by its table where that has a rule, else by frame pointers */
	KPROF_UNWIND_JIT = 4,
};

/* How a walk ended. */
enum kprof_unwind_end {
	KPROF_UNWIND_GOING = 0,      /* it has not */
	KPROF_UNWIND_WHOLE = 1,      /* at the thread's first function */
	KPROF_UNWIND_NO_MAPPING = 2, /* an address in no known mapping of code */
	KPROF_UNWIND_NOT_YET = 3,    /* the module's table is not built yet */
	KPROF_UNWIND_NO_TABLE = 4,   /* the module has none */
	KPROF_UNWIND_NO_RULE = 5,    /* code that its module does not describe */
	KPROF_UNWIND_ODD_RULE = 6,   /* described in a way that no rule can say */
	KPROF_UNWIND_LOST_REGISTER =
		7,                    /* the rule needs a register whose value is not known here */
	KPROF_UNWIND_BAD_STACK = 8,   /* the stack could not be read */
	KPROF_UNWIND_NO_PROGRESS = 9, /* the caller's frame would lie below its callee's */
	KPROF_UNWIND_TOO_DEEP = 10,   /* more frames than are kept */
	KPROF_UNWIND_NR_ENDS,
};

#define KPROF_UNWIND_MAX_FRAMES 512 /* importing PyTorch takes 300 */

/*
 * In ips[]: interrupted there, by the sample or by a signal. Else it is where a call returns to.
 * User addresses lack it.
 */
#define KPROF_UNWIND_EXACT_BIT 63

/* A walk, and what it found. */
struct kprof_unwind_walk {
	kprof_u64 ip, sp, bp, bx; /* of the frame that comes next */
	kprof_u64 regs[16];       /* of the innermost frame, by DWARF's numbers */
	kprof_u32 nr;             /* of ips[] */
	kprof_u32 end;            /* enum kprof_unwind_end */
	kprof_u8 exact;           /* ip is where it was interrupted, not where a call returns to */
	kprof_u8 innermost;       /* regs[] are this frame's */
	kprof_u8 bp_lost, bx_lost;
	kprof_u32 space; /* whose mappings: for unwind_mapping() */
	/* The walk's own. mapping: begin with end 0. */
	kprof_u64 block[8];
	struct kprof_unwind_mapping mapping;
	kprof_u64 ips[KPROF_UNWIND_MAX_FRAMES]; /* KPROF_UNWIND_EXACT_BIT is set where .exact was */
};

/*
 * Where BPF programs find all that. Rows lie in shards, a page's in one of them; a process's
 * mappings in an array of their own, that is replaced as a whole.
 */
#define KPROF_UNWIND_SHARD_ROWS (1u << 18)
#define KPROF_UNWIND_MAX_SHARDS 128
/*
 * Of modules (4 GiB of text), and after them of JIT code, whose tables come and go.
 */
#define KPROF_UNWIND_MODULE_PAGES (1u << 16)
#define KPROF_UNWIND_JIT_PAGES (1u << 13)
#define KPROF_UNWIND_MAX_PAGES (KPROF_UNWIND_MODULE_PAGES + KPROF_UNWIND_JIT_PAGES)
#define KPROF_UNWIND_MAX_MAPPINGS 8191 /* of a process */
#define KPROF_UNWIND_MAX_SPACES 4096

struct kprof_unwind_page {
	kprof_u32 shard;
	kprof_u32 first, nr; /* of the shard's rows */
	kprof_u32 pad;
};

/* A process whose stacks are walked. */
struct kprof_stack_process {
	kprof_u32 space; /* its mappings */
	kprof_u32 pad;
};

_Static_assert(sizeof(struct kprof_unwind_page) == 16, "unwind: page");
_Static_assert(sizeof(struct kprof_unwind_mapping) == 40, "unwind: mapping");
_Static_assert(sizeof(struct kprof_unwind_rule) == 16, "unwind: rule");
_Static_assert(sizeof(struct kprof_unwind_row) == 4, "unwind: row");

#endif
