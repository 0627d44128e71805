/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of kernel addresses: the kernel is asked for each (bpf/ksym.bpf.c); where it can't be, its
 * list is read.
 */
#ifndef KPROF_CAPTURE_KSYMS_H
#define KPROF_CAPTURE_KSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ksyms;
/* list: without asking. An error is set: the kernel hides its addresses, or has no list. */
int ksyms__new(bool list, struct ksyms **out);
void ksyms__free(struct ksyms *k);
/* "function", or "function [module]", without anything for what has no name: false. */
bool ksyms__name(struct ksyms *k, uint64_t address, char *name, size_t bytes);

#endif
