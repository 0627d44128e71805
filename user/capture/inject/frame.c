// SPDX-License-Identifier: BSD-2-Clause
/*
 * A signal frame as the kernel writes it when it delivers a signal: rt_sigreturn(2) restores from
 * it every register, the vector state and the blocked signals at once. Layout:
 * arch/x86/include/uapi/asm/{sigcontext,ucontext}.h and arch/x86/kernel/signal_64.c.
 */
#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "capture/inject/priv.h"
#include "util/util.h"

#define FRAME_UC_FP_XSTATE 1u
#define FRAME_UC_SIGCONTEXT_SS 2u
#define FRAME_UC_STRICT_RESTORE_SS 4u
/*
 * A mode that sigaltstack(2) does not know: so the kernel leaves the thread's alternate stack as it
 * is.
 */
#define FRAME_SS_NO_MODE 7u

#define XSAVE_LEGACY_BYTES 512 /* FXSAVE area */
#define XSAVE_HEADER_BYTES 64
#define XSAVE_SW_RESERVED 464 /* of the legacy area, for software */
#define XSAVE_PKRU 9
#define XSAVE_ALIGN 64

/*
 * Return values inside the kernel that mean "restart the system call"; include/linux/errno.h.
 * Programs never see them.
 */
#define KERNEL_ERESTARTSYS 512
#define KERNEL_ERESTARTNOINTR 513
#define KERNEL_ERESTARTNOHAND 514
#define KERNEL_ERESTART_RESTARTBLOCK 516

struct frame {
	uint64_t pretcode;
	uint64_t uc_flags, uc_link;
	stack_t stack;
	struct sigcontext context;
	uint64_t mask;
	uint8_t siginfo[128];
};

_Static_assert(offsetof(struct frame, context) == 8 + 40, "sigcontext");
_Static_assert(offsetof(struct frame, mask) == 8 + 40 + 256, "uc_sigmask");

bool remote__in_syscall(const struct remote *r)
{
	int64_t result = (int64_t)r->regs.rax;

	return (int64_t)r->regs.orig_rax >= 0 &&
	       (result == -KERNEL_ERESTARTSYS || result == -KERNEL_ERESTARTNOINTR ||
		result == -KERNEL_ERESTARTNOHAND || result == -KERNEL_ERESTART_RESTARTBLOCK);
}

size_t inject_xstate_bytes(const uint8_t *xstate, size_t bytes, uint64_t *features)
{
	size_t need = XSAVE_LEGACY_BYTES + XSAVE_HEADER_BYTES;
	uint64_t in_use;

	memcpy(&in_use, xstate + XSAVE_LEGACY_BYTES, sizeof(in_use));
	for (unsigned int i = 2; i < 63; i++) {
		uint32_t size, offset, c, d;
		uint64_t bit = 1ull << i;

		if (!(in_use & bit) && i != XSAVE_PKRU)
			continue;
		/*
		 * ptrace and signal frames have the standard format, in which each part has a fixed
		 * place.
		 */
		__cpuid_count(0xd, i, size, offset, c, d);
		if (!size || offset + (size_t)size > bytes) {
			in_use &= ~bit;
			continue;
		}
		/* the kernel keeps this register apart, and may not set its bit */
		if (i == XSAVE_PKRU) {
			uint32_t pkru;

			memcpy(&pkru, xstate + offset, sizeof(pkru));
			if (pkru)
				in_use |= bit;
		}
		if ((in_use & bit) && offset + (size_t)size > need)
			need = offset + (size_t)size;
	}
	/*
	 * Always include the legacy parts: they are in the area whether in use or not, and so is
	 * MXCSR.
	 */
	*features = in_use | 3;
	return need;
}

static void fill_registers(struct frame *f, const struct remote *r)
{
	const struct user_regs_struct *u = &r->regs;
	struct sigcontext *c = &f->context;

	c->r8 = u->r8, c->r9 = u->r9, c->r10 = u->r10, c->r11 = u->r11;
	c->r12 = u->r12, c->r13 = u->r13, c->r14 = u->r14, c->r15 = u->r15;
	c->rdi = u->rdi, c->rsi = u->rsi, c->rbp = u->rbp, c->rbx = u->rbx;
	c->rdx = u->rdx, c->rax = u->rax, c->rcx = u->rcx, c->rsp = u->rsp;
	c->rip = u->rip, c->eflags = u->eflags;
	c->cs = (uint16_t)u->cs, c->__pad0 = (uint16_t)u->ss; /* the kernel's name for it is ss */
	f->mask = r->mask;
	f->stack.ss_flags = FRAME_SS_NO_MODE;
	f->uc_flags = FRAME_UC_FP_XSTATE | FRAME_UC_SIGCONTEXT_SS | FRAME_UC_STRICT_RESTORE_SS;
	if (remote__in_syscall(r)) {
		/*
		 * The system call is restarted from its begin. The frame's value only matters if
		 * kprof dies half way: a relative timeout then begins anew, which is better than an
		 * EINTR that the program does not expect.
		 */
		c->rip -= 2; /* the length of `syscall` */
		c->rax = r->restart_nr;
	}
}

/*
 * From low to high addresses: frame, text, vector state. The memory below the frame stays free for
 * handlers of signals that are not blocked.
 */
int inject_frame_build(const struct remote *r, uint64_t restore_rt, const char *text, uint8_t *out,
		       uint64_t *chain, uint64_t *text_at)
{
	const uint32_t magic2 = FP_XSTATE_MAGIC2;
	struct frame f = {.pretcode = restore_rt};
	struct _fpx_sw_bytes sw = {.magic1 = FP_XSTATE_MAGIC1};
	uint64_t features, fp_at, fp_offset;
	size_t xstate = inject_xstate_bytes(r->xstate, r->xstate_bytes, &features);
	size_t front = sizeof(f) + INJECT_TEXT_BYTES;

	if (front + XSAVE_ALIGN + xstate + sizeof(magic2) > INJECT_FRAME_MAX_BYTES ||
	    strlen(text) >= INJECT_TEXT_BYTES)
		return -E2BIG;
	fp_at = (r->regs.rsp - INJECT_RED_ZONE - xstate - sizeof(magic2)) &
		~(uint64_t)(XSAVE_ALIGN - 1);
	*chain = (fp_at - front) & ~15ull;
	fp_offset = fp_at - *chain;
	*text_at = *chain + sizeof(f);
	fill_registers(&f, r);
	f.context.__fpstate_word = fp_at;
	sw.xstate_bv = features;
	sw.xstate_size = (uint32_t)xstate;
	sw.extended_size = (uint32_t)(xstate + sizeof(magic2));
	memset(out, 0, fp_offset);
	memcpy(out, &f, sizeof(f));
	memcpy(out + sizeof(f), text, strlen(text));
	memcpy(out + fp_offset, r->xstate, xstate);
	memcpy(out + fp_offset + XSAVE_LEGACY_BYTES, &features, sizeof(features));
	memcpy(out + fp_offset + XSAVE_SW_RESERVED, &sw, sizeof(sw));
	memcpy(out + fp_offset + xstate, &magic2, sizeof(magic2));
	return (int)(fp_offset + xstate + sizeof(magic2));
}
