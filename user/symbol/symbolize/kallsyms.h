/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of kernel addresses, from /proc/kallsyms: one that was read before privileges are given up, since the kernel shows
 * addresses to none but the privileged (kptr_restrict, CAP_SYSLOG).
 */
#ifndef KPROF_SYMBOL_KALLSYMS_H
#define KPROF_SYMBOL_KALLSYMS_H

#include <stdint.h>

struct kallsyms;

struct kallsyms_symbol {
	const char *name;   /* until kallsyms__free() */
	const char *module; /* without brackets; "": the kernel itself */
	uint64_t address;   /* where it begins */
};

/*
 * path NULL: /proc/kallsyms. -EACCES: the kernel hides the addresses (cause and hint set); -ENOENT: it has no such file;
 * -ENOMEM; -EFBIG.
 */
int kallsyms__load(const char *path, struct kallsyms **out);
void kallsyms__free(struct kallsyms *k);
/* The function that holds an address, up to the next symbol of any kind. 0, -ENOENT. */
int kallsyms__find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out);

#endif
