/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Walking a stack by unwind tables. The same source is compiled for the kernel (BPF) and for user
 * space (tests, `kprof dump`). The file that includes it defines, before or after,
 *
 *   static int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address)
 *   static int unwind_mapping(kprof_u32 space, kprof_u64 ip, struct kprof_unwind_mapping *m)
 *   static int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r)
 *
 * The first reads the target's memory, the others search; each returns 0 when it has read or found
 * something.
 *
 * All results are returned through memory, so that the verifier has few states to look at.
 */
#ifndef KPROF_BPF_UNWIND_H
#define KPROF_BPF_UNWIND_H

#include "kprof/unwind.h"

static int unwind_read(void *to, kprof_u32 bytes, kprof_u64 address);
static int unwind_mapping(kprof_u32 space, kprof_u64 ip, struct kprof_unwind_mapping *m);
static int unwind_rule(kprof_u32 page, kprof_u16 at, struct kprof_unwind_rule *r);

/*
 * x86-64's struct rt_sigframe as its handler's return finds it: registers in ucontext.uc_mcontext
 * at the stack pointer (arch/x86/include/asm/sigframe.h, arch/x86/include/uapi/asm/sigcontext.h).
 */
#define UNWIND_SIGNAL_BP 120
#define UNWIND_SIGNAL_BX 128
#define UNWIND_SIGNAL_SP 160
#define UNWIND_SIGNAL_IP 168

#define UNWIND_LOWEST_IP 4096 /* the first page is never mapped */

static inline int unwind_ended(struct kprof_unwind_walk *w, kprof_u32 how)
{
	w->end = how;
	return 1;
}

/*
 * The caller of a signal handler is the code that was interrupted; all its registers are restored.
 */
static inline int unwind_signal(struct kprof_unwind_walk *w)
{
	kprof_u64 sp = w->sp;

	if (unwind_read(&w->bp, 8, sp + UNWIND_SIGNAL_BP) ||
	    unwind_read(&w->bx, 8, sp + UNWIND_SIGNAL_BX) ||
	    unwind_read(&w->ip, 8, sp + UNWIND_SIGNAL_IP) ||
	    unwind_read(&w->sp, 8, sp + UNWIND_SIGNAL_SP))
		return unwind_ended(w, KPROF_UNWIND_BAD_STACK);
	w->exact = 1;
	w->bp_lost = w->bx_lost = 0;
	return 0;
}

/* Computes the canonical frame address. Returns 0, unless the walk has ended. */
static inline int unwind_cfa(struct kprof_unwind_walk *w, const struct kprof_unwind_rule *r,
			     kprof_u64 *cfa)
{
	kprof_u64 base = w->sp;

	switch (r->how) {
	case KPROF_UNWIND_SP:
	case KPROF_UNWIND_SP_AT:
		break;
	case KPROF_UNWIND_BP:
	case KPROF_UNWIND_BP_AT:
		if (w->bp_lost)
			return unwind_ended(w, KPROF_UNWIND_LOST_REGISTER);
		base = w->bp;
		break;
	case KPROF_UNWIND_BX:
		if (w->bx_lost)
			return unwind_ended(w, KPROF_UNWIND_LOST_REGISTER);
		base = w->bx;
		break;
	case KPROF_UNWIND_PLT:
		/* A slot of .plt is 16 bytes; from its byte 11 on the index has been pushed. */
		*cfa = w->sp + 8 + ((w->ip & 15) >= 11 ? 8 : 0);
		return 0;
	case KPROF_UNWIND_BOTTOM:
		return unwind_ended(w, KPROF_UNWIND_WHOLE);
	case KPROF_UNWIND_NONE:
		return unwind_ended(w, KPROF_UNWIND_NO_RULE);
	default:
		if (r->how < KPROF_UNWIND_REGISTER)
			return unwind_ended(w, KPROF_UNWIND_ODD_RULE);
		if (!w->innermost)
			return unwind_ended(w, KPROF_UNWIND_LOST_REGISTER);
		base = w->regs[(r->how - KPROF_UNWIND_REGISTER) & 15];
	}
	*cfa = base + (kprof_u64)(long long)r->cfa;
	if (r->how != KPROF_UNWIND_BP_AT && r->how != KPROF_UNWIND_SP_AT)
		return 0;
	if (unwind_read(&base, 8, *cfa))
		return unwind_ended(w, KPROF_UNWIND_BAD_STACK);
	*cfa = base + (kprof_u64)(long long)r->add;
	return 0;
}

/* Makes the compiler forget what it knows of the value of this number. */
#ifdef __bpf__
#define UNWIND_FORGET(x) asm volatile("" : "+r"(x))
#else
#define UNWIND_FORGET(x) ((void)(x))
#endif

/*
 * Words below the CFA that are read at once: where compilers put the return address and the
 * registers they save.
 */
#define UNWIND_BLOCK_WORDS 8

/* How many of these words have to be read to get this register; 0: it is not among them. */
static inline kprof_u32 unwind_words_for(kprof_u32 how, kprof_s32 offset)
{
	if (how != KPROF_UNWIND_SAVED || offset > -8 || offset < -8 * UNWIND_BLOCK_WORDS ||
	    offset & 7)
		return 0;
	return (kprof_u32)(-offset) / 8;
}

/*
 * The caller's value of a callee-saved register. `words` words have been read; the last one is
 * right below the CFA. Returns 0, unless the value could not be read.
 */
static inline int unwind_register(struct kprof_unwind_walk *w, kprof_u64 base, kprof_u32 how,
				  kprof_s32 offset, kprof_u32 words, kprof_u64 *value,
				  kprof_u8 *lost)
{
	kprof_u32 at;

	if (how == KPROF_UNWIND_SAME)
		return 0;
	*lost = how == KPROF_UNWIND_LOST;
	if (*lost)
		return 0;
	at = unwind_words_for(how, offset);
	if (!at)
		return unwind_read(value, 8, base + (kprof_u64)(long long)offset);
	*value = w->block[(words - at) & (UNWIND_BLOCK_WORDS - 1)];
	return 0;
}

/* Goes from a frame to its caller by the frame's rule. Returns 0, unless the walk has ended. */
static inline int unwind_apply(struct kprof_unwind_walk *w, const struct kprof_unwind_rule *r)
{
	kprof_u32 how_bp = r->regs & 3, how_bx = r->regs >> 2 & 3, words, more, bytes;
	kprof_u64 cfa = 0, bp = w->bp;

	if (r->how == KPROF_UNWIND_SIGNAL)
		return unwind_signal(w);
	if (unwind_cfa(w, r, &cfa))
		return 1;
	words = unwind_words_for(how_bp, r->bp);
	more = unwind_words_for(how_bx, r->bx);
	if (more > words)
		words = more;
	if (!words)
		words = 1; /* the return address alone */
	bytes = words * 8;
	/*
	 * The verifier of kernel 6.1 does not remember the bound, and the compiler would optimize
	 * the mask away.
	 */
	UNWIND_FORGET(bytes);
	bytes &= 127;
	if (unwind_read(w->block, bytes, cfa - bytes) ||
	    unwind_register(w, how_bp == KPROF_UNWIND_AT_BP ? bp : cfa, how_bp, r->bp, words,
			    &w->bp, &w->bp_lost) ||
	    unwind_register(w, how_bx == KPROF_UNWIND_AT_BP ? bp : cfa, how_bx, r->bx, words,
			    &w->bx, &w->bx_lost))
		return unwind_ended(w, KPROF_UNWIND_BAD_STACK);
	/* Stacks grow down: a caller's frame is above its callee's. */
	if (cfa <= w->sp)
		return unwind_ended(w, KPROF_UNWIND_NO_PROGRESS);
	w->ip = w->block[(words - 1) & (UNWIND_BLOCK_WORDS - 1)];
	w->sp = cfa;
	w->exact = 0;
	return 0;
}

/*
 * JIT code that returns right after its call shows by its instructions where its frame ends.
 * CPython's trampolines for perf do (Python/asm_trampoline.S), which keep no frame pointer in 3.12:
 *   48 83 c4 NN  add $NN, %rsp      or      5d  pop %rbp
 *   c3           ret                        c3  ret
 * 0: found; 1: it is other code; -1: the stack could not be read.
 */
static inline int unwind_by_epilogue(struct kprof_unwind_walk *w)
{
	kprof_u64 code = 0, sp = w->sp;

	if (w->exact || unwind_read(&code, 5, w->ip))
		return 1;
	if ((code & 0xffff) == 0xc35d) {
		if (unwind_read(&w->bp, 8, sp))
			return -1;
		w->bp_lost = 0;
		sp += 8;
	} else if ((code & 0xff80ffffff) == 0xc300c48348) {
		sp += code >> 24 & 0x7f;
	} else {
		return 1;
	}
	if (unwind_read(&w->ip, 8, sp))
		return -1;
	w->sp = sp + 8;
	return 0;
}

/*
 * Code without tables: its epilogue shows where the frame ends, or it keeps frame pointers, or the
 * walk ends here.
 */
static inline int unwind_by_pointer(struct kprof_unwind_walk *w)
{
	int epilogue = unwind_by_epilogue(w);
	kprof_u64 pair[2];

	if (epilogue <= 0)
		return epilogue ? unwind_ended(w, KPROF_UNWIND_BAD_STACK) : 0;
	if (w->bp_lost || w->bp < w->sp)
		return unwind_ended(w, KPROF_UNWIND_NO_PROGRESS);
	if (unwind_read(pair, sizeof(pair), w->bp))
		return unwind_ended(w, KPROF_UNWIND_BAD_STACK);
	w->sp = w->bp + sizeof(pair);
	w->bp = pair[0];
	w->ip = pair[1];
	w->exact = 0;
	return 0;
}

/* Looks the address up in the mapping's table. Returns 0 if there is a rule. */
static inline int unwind_look_up(const struct kprof_unwind_mapping *m, kprof_u64 ip,
				 struct kprof_unwind_rule *r)
{
	kprof_u64 vaddr = ip - m->bias;
	kprof_u32 page = (kprof_u32)(vaddr >> KPROF_UNWIND_PAGE_BITS) - m->table_page;

	if (page >= m->nr_pages)
		return 1;
	return unwind_rule(m->first_page + page, (kprof_u16)vaddr, r) ||
	       r->how == KPROF_UNWIND_NONE;
}

/* Takes one frame. Returns 0 to go on, 1 when the walk has ended; w->end says how. */
static inline int unwind_step(struct kprof_unwind_walk *w)
{
	/*
	 * A call may be the last instruction of a function; its return address then belongs to the
	 * next function.
	 */
	kprof_u64 ip = w->exact ? w->ip : w->ip - 1;
	struct kprof_unwind_mapping *m = &w->mapping; /* callers often lie in the same file */
	struct kprof_unwind_rule r;
	int over, none;

	if (w->ip < UNWIND_LOWEST_IP)
		return unwind_ended(w, w->ip ? KPROF_UNWIND_NO_MAPPING : KPROF_UNWIND_WHOLE);
	if (w->nr >= KPROF_UNWIND_MAX_FRAMES)
		return unwind_ended(w, KPROF_UNWIND_TOO_DEEP);
	w->ips[w->nr & (KPROF_UNWIND_MAX_FRAMES - 1)] = w->ip | (kprof_u64)w->exact
									<< KPROF_UNWIND_EXACT_BIT;
	w->nr++;
	if ((ip < m->start || ip >= m->end) && unwind_mapping(w->space, ip, m))
		return unwind_ended(w, KPROF_UNWIND_NO_MAPPING);
	if (m->kind == KPROF_UNWIND_PENDING || m->kind == KPROF_UNWIND_WITHOUT)
		return unwind_ended(w, m->kind == KPROF_UNWIND_PENDING ? KPROF_UNWIND_NOT_YET
								       : KPROF_UNWIND_NO_TABLE);
	none = m->kind == KPROF_UNWIND_POINTERS || unwind_look_up(m, ip, &r);
	if (none && m->kind == KPROF_UNWIND_TABLE)
		return unwind_ended(w, KPROF_UNWIND_NO_RULE);
	over = none ? unwind_by_pointer(w) : unwind_apply(w, &r);
	w->innermost = 0;
	return over;
}

#endif
