/* SPDX-License-Identifier: BSD-2-Clause */
/* What cost.c knows about an instruction from its bytes, for use by site.c. */
#ifndef KPROF_SYMBOL_X86_COST_H
#define KPROF_SYMBOL_X86_COST_H

#include "symbol/x86/x86.h"

bool insn_is_endbr64(const uint8_t *code, size_t bytes);
/* Whether the kernel emulates the instruction at a uprobe. */
bool insn_is_emulated(const uint8_t *code, size_t bytes);
/* Whether a uprobe may be placed on this complete instruction. */
bool insn_is_allowed(const uint8_t *code, size_t length);
/* Whether it is movs, cmps, stos, lods or scas with a repeat prefix. */
bool insn_is_repeated(const uint8_t *code, size_t length);

#endif
