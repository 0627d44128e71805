/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds characters in bytes, as Unicode defines UTF-8: no overlong forms, no surrogates, nothing
 * above U+10FFFF.
 */
#ifndef KPROF_UTIL_UTF8_H
#define KPROF_UTIL_UTF8_H

#include <stddef.h>

size_t utf8_wide_len(const char *p, size_t left); /* utf8_len() of a character that is not ASCII */
/*
 * How many bytes the character at p has, 1 to 4; 0: no valid character begins here, or it is cut
 * short. `left`: the bytes from p on, at least 1.
 */
static inline size_t utf8_len(const char *p, size_t left)
{
	return (unsigned char)*p < 0x80 ? 1 : utf8_wide_len(p, left);
}
/* The same, but also 0 for control characters (C0, DEL, C1). */
size_t utf8_printable_len(const char *p, size_t left);

#endif
