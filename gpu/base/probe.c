// SPDX-License-Identifier: BSD-2-Clause
/*
 * The function that hands batches over, and its USDT note (layout: version 3 of sys/sdt.h, as
 * SystemTap's wiki describes it).
 */
#include "gpu/base/probe.h"

#if !defined(__x86_64__)
#error "the agent's probe is written for x86-64"
#endif

/*
 * In assembly: no compiler puts anything before the nop, and the address in the note is the nop's.
 */
__asm__(".pushsection .text\n"
	".balign 16\n"
	".globl kprof_agent_batch\n"
	".protected kprof_agent_batch\n"
	".type kprof_agent_batch, @function\n"
	"kprof_agent_batch:\n"
	".cfi_startproc\n"
	"	.byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	"	ret\n"
	".cfi_endproc\n"
	".size kprof_agent_batch, . - kprof_agent_batch\n"
	".popsection\n"
	".pushsection .note.stapsdt, \"\", @note\n"
	".balign 4\n"
	".4byte 1f - 0f, 3f - 2f, 3\n"
	"0:	.asciz \"stapsdt\"\n"
	"1:	.balign 4\n"
	"2:	.8byte kprof_agent_batch\n"
	".8byte _.stapsdt.base\n"
	".8byte 0\n"
	".asciz \"kprof\"\n"
	".asciz \"agent_batch\"\n"
	".asciz \"8@%rdi 4@%esi\"\n"
	"3:	.balign 4\n"
	".popsection\n"
	".pushsection .stapsdt.base, \"aG\", @progbits, .stapsdt.base, comdat\n"
	".weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n"
	"_.stapsdt.base: .space 1\n"
	".size _.stapsdt.base, 1\n"
	".popsection\n");
