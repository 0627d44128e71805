/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which bytes are characters, as Unicode defines UTF-8: no overlong forms, no surrogates, nothing
 * above U+10FFFF.
 */
#ifndef KPROF_UTIL_UTF8_H
#define KPROF_UTIL_UTF8_H

#include <stddef.h>

size_t utf8_wide_len(const char *p, size_t left); /* of one that is not ASCII */
/* Bytes of the character at p: 1 … 4; 0: none begins here, or it is cut short. left ≥ 1. */
static inline size_t utf8_len(const char *p, size_t left)
{
	return (unsigned char)*p < 0x80 ? 1 : utf8_wide_len(p, left);
}
/* The same, but 0 for control characters (C0, DEL, C1), too. */
size_t utf8_printable_len(const char *p, size_t left);

#endif
