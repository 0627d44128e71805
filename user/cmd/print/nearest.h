/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_CMD_PRINT_NEAREST_H
#define KPROF_CMD_PRINT_NEAREST_H

#include <stddef.h>

/* The name that was probably meant by a mistyped one; NULL: none is near. */
const char *nearest(const char *typed, const char *const *names, size_t nr);

#endif
