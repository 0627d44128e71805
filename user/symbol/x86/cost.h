/* SPDX-License-Identifier: BSD-2-Clause */
/* What cost.c knows of an instruction from its bytes, for site.c. */
#ifndef KPROF_SYMBOL_X86_COST_H
#define KPROF_SYMBOL_X86_COST_H

#include "symbol/x86/x86.h"

bool insn_is_endbr64(const uint8_t *code, size_t bytes);
/* One that the kernel emulates. */
bool insn_is_emulated(const uint8_t *code, size_t bytes);
/* A complete instruction, as long as it says, that a uprobe may be placed on. */
bool insn_is_allowed(const uint8_t *code, size_t length);
/* movs, cmps, stos, lods, scas with a prefix that repeats them. */
bool insn_is_repeated(const uint8_t *code, size_t length);

#endif
