/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of kernel addresses. A BPF program looks each up in the kernel (bpf/ksym.bpf.c); where such
 * programs cannot be run, the kernel's list of symbols is read.
 */
#ifndef KPROF_CAPTURE_KSYMS_H
#define KPROF_CAPTURE_KSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ksyms;
/*
 * list: use the list of symbols at once. Fails, with an error, where the kernel hides its addresses
 * or has no list.
 */
int ksyms__new(bool list, struct ksyms **out);
void ksyms__free(struct ksyms *k);
/* Writes "function" or "function [module]". Returns false if the address has no name. */
bool ksyms__name(struct ksyms *k, uint64_t address, char *name, size_t bytes);

#endif
