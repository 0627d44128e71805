/* SPDX-License-Identifier: BSD-2-Clause */
/* What demangle.c and demangle_apart.c share. */
#ifndef KPROF_SYMBOL_DEMANGLE_H
#define KPROF_SYMBOL_DEMANGLE_H

#include <stdbool.h>

#define DEMANGLE_INPUT_MOST (64u << 10) /* the longest name in PyTorch has 1.5 kB */
#define DEMANGLE_OUTPUT_MOST (256u << 10)
/* enough for DEMANGLE_INPUT_MOST; pages that are not touched cost nothing */
#define DEMANGLE_STACK_BYTES (128u << 20)

/*
 * The demangled name, malloc'ed. NULL: not a mangled name, or too long. deep: the stack has
 * DEMANGLE_STACK_BYTES already.
 */
char *demangle_here(const char *mangled, bool type, bool deep);

#endif
