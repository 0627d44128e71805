/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tables by which stacks are unwound without frame pointers. user/symbol/unwind/unwind.c builds
 * them; bpf/unwind.h walks with them, in the kernel and in user space.
 *
 * A module's text is cut into pages of 64 KiB. A page's rows say from which address on (its low 16
 * bits) which rule holds; a row at 0 always comes first, so that each page can be searched alone.
 * Rules are few and shared by all modules.
 */
#ifndef KPROF_UNWIND_H
#define KPROF_UNWIND_H

#include "kprof/wire.h"

#define KPROF_UNWIND_PAGE_BITS 16
#define KPROF_UNWIND_PAGE_BYTES (1u << KPROF_UNWIND_PAGE_BITS)
#define KPROF_UNWIND_MAX_RULES 8192

/* How the canonical frame address (the stack pointer before the call) is found. */
enum kprof_unwind_cfa {
	KPROF_UNWIND_NONE = 0,  /* the module describes nothing here */
	KPROF_UNWIND_SP = 1,    /* rsp + cfa */
	KPROF_UNWIND_BP = 2,    /* rbp + cfa */
	KPROF_UNWIND_BX = 3,    /* rbx + cfa */
	KPROF_UNWIND_BP_AT = 5, /* *(rbp + cfa) + add: a realigned stack */
	/* *(rsp + cfa) + add: the stack pointer was saved on the stack */
	KPROF_UNWIND_SP_AT = 6,
	/* rsp + 8, or rsp + 16 once the slot has pushed its index: code in .plt */
	KPROF_UNWIND_PLT = 7,
	KPROF_UNWIND_SIGNAL = 8,   /* the frame of a signal: all registers are saved at rsp */
	KPROF_UNWIND_BOTTOM = 9,   /* the thread's first function: it returns nowhere */
	KPROF_UNWIND_UNKNOWN = 10, /* the module describes it in a way that no rule can express */
	/*
	 * 16 + n: the register with DWARF's number n, + cfa. Only in the innermost frame, where the
	 * values of all registers are known.
	 */
	KPROF_UNWIND_REGISTER = 16,
};

/* Where to find the caller's value of a callee-saved register. */
enum kprof_unwind_reg {
	KPROF_UNWIND_SAME = 0,  /* still in the register */
	KPROF_UNWIND_SAVED = 1, /* in memory at CFA + offset */
	/* in memory at rbp + offset, for functions that realign the stack */
	KPROF_UNWIND_AT_BP = 2,
	KPROF_UNWIND_LOST = 3,
};

struct kprof_unwind_rule {
	kprof_s32 cfa; /* bytes */
	kprof_s32 bp;  /* bytes: offset at which the caller's rbp is saved */
	kprof_s32 bx;  /* bytes: offset at which the caller's rbx is saved */
	kprof_s16 add; /* bytes, for BP_AT and SP_AT */
	kprof_u8 how;  /* enum kprof_unwind_cfa */
	kprof_u8 regs; /* enum kprof_unwind_reg: of rbp in bits 0-1, of rbx in bits 2-3 */
};
#define KPROF_UNWIND_REGS(bp, bx) ((kprof_u8)((bp) | (bx) << 2))

struct kprof_unwind_row {
	kprof_u16 at;   /* low 16 bits of the first address that the rule holds for */
	kprof_u16 rule; /* index */
};

/* One executable mapping of a process. The mappings of a process are sorted by start. */
struct kprof_unwind_mapping {
	kprof_u64 start, end; /* addresses; end is the first address after the mapping */
	kprof_u64 bias;       /* difference between an address and its vaddr in the file */
	kprof_u32 first_page; /* index of the first page of the module's table */
	kprof_u32 nr_pages;
	kprof_u32 table_page; /* vaddr >> KPROF_UNWIND_PAGE_BITS of that first page */
	kprof_u32 kind;       /* enum kprof_unwind_kind */
};

enum kprof_unwind_kind {
	KPROF_UNWIND_TABLE = 0,    /* walked by its module's table */
	KPROF_UNWIND_POINTERS = 1, /* walked by frame pointers: JIT code without a table */
	KPROF_UNWIND_PENDING = 2,  /* its table is being built */
	KPROF_UNWIND_WITHOUT = 3,  /* no table: the module is too big, or none could be built */
	/* JIT code, walked by its table where that has a rule, else by frame pointers */
	KPROF_UNWIND_JIT = 4,
};

/* How a walk ended. */
enum kprof_unwind_end {
	KPROF_UNWIND_GOING = 0,      /* it has not ended yet */
	KPROF_UNWIND_WHOLE = 1,      /* it reached the thread's first function */
	KPROF_UNWIND_NO_MAPPING = 2, /* it reached an address outside all known mappings of code */
	KPROF_UNWIND_NOT_YET = 3,    /* the module's table is not built yet */
	KPROF_UNWIND_NO_TABLE = 4,   /* the module has no table */
	KPROF_UNWIND_NO_RULE = 5,    /* the module does not describe this code */
	/* the module describes this code in a way that no rule can express */
	KPROF_UNWIND_ODD_RULE = 6,
	/* the rule needs a register whose value is not known in this frame */
	KPROF_UNWIND_LOST_REGISTER = 7,
	KPROF_UNWIND_BAD_STACK = 8,   /* the stack could not be read */
	KPROF_UNWIND_NO_PROGRESS = 9, /* the caller's frame would lie below its callee's */
	KPROF_UNWIND_TOO_DEEP = 10,   /* more frames than are kept */
	KPROF_UNWIND_NR_ENDS,
};

#define KPROF_UNWIND_MAX_FRAMES 512 /* a stack while PyTorch is imported has 300 */

/*
 * Set in an element of ips[] where the thread was interrupted there, by the sample or by a signal.
 * Where it is clear, the address is one that a call returns to. No user address has this bit
 * itself.
 */
#define KPROF_UNWIND_EXACT_BIT 63

/* The state of a walk, and the frames that it found. */
struct kprof_unwind_walk {
	kprof_u64 ip, sp, bp, bx; /* registers of the frame that comes next */
	kprof_u64 regs[16];       /* registers of the innermost frame, by DWARF's numbers */
	kprof_u32 nr;             /* number of frames in ips[] */
	kprof_u32 end;            /* enum kprof_unwind_end */
	/* ip is where the frame was interrupted, not where a call returns to */
	kprof_u8 exact;
	/* the next frame is the innermost one, so that regs[] holds its registers */
	kprof_u8 innermost;
	kprof_u8 bp_lost, bx_lost;
	kprof_u32 space; /* address space whose mappings are used, for unwind_mapping() */
	/* Used by the walk only. The caller sets mapping.end to 0. */
	kprof_u64 block[8];
	struct kprof_unwind_mapping mapping;
	kprof_u64 ips[KPROF_UNWIND_MAX_FRAMES]; /* KPROF_UNWIND_EXACT_BIT is set where .exact was */
};

/*
 * How these tables are laid out for BPF programs. Rows are kept in shards; all rows of a page are
 * in one shard. The mappings of a process are in an array of their own, which is replaced as a
 * whole.
 */
#define KPROF_UNWIND_SHARD_ROWS (1u << 18)
#define KPROF_UNWIND_MAX_SHARDS 128
/* Pages of modules (enough for 4 GiB of text), and of JIT code. */
#define KPROF_UNWIND_JIT_PAGES (1u << 13) /* at most; and a shard's rows of JIT code */
#define KPROF_UNWIND_MAX_PAGES ((1u << 16) + KPROF_UNWIND_JIT_PAGES)
#define KPROF_UNWIND_MAX_MAPPINGS 8191 /* mappings of a process, at most */
#define KPROF_UNWIND_MAX_SPACES 4096

struct kprof_unwind_page {
	kprof_u32 shard;
	kprof_u32 first, nr; /* the page's rows: index of the first in the shard, and number */
	kprof_u32 pad;
};

/* A process whose stacks are walked. */
struct kprof_stack_process {
	kprof_u32 space; /* number of its address space */
	kprof_u32 pad;
};

_Static_assert(sizeof(struct kprof_unwind_page) == 16, "unwind: page");
_Static_assert(sizeof(struct kprof_unwind_mapping) == 40, "unwind: mapping");
_Static_assert(sizeof(struct kprof_unwind_rule) == 16, "unwind: rule");
_Static_assert(sizeof(struct kprof_unwind_row) == 4, "unwind: row");

#endif
