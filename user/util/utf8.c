// SPDX-License-Identifier: BSD-2-Clause
#include "util/utf8.h"

#include <stdint.h>

/*
 * The ranges are those of table 3-7 of the Unicode standard, without overlong forms and surrogates.
 */
size_t utf8_wide_len(const char *text, size_t left)
{
	const uint8_t *p = (const uint8_t *)text;
	uint8_t lo = 0x80, hi = 0xbf;
	size_t len;

	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	len = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (left < len || p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < len; i++)
		if (p[i] < 0x80 || p[i] > 0xbf)
			return 0;
	return len;
}

size_t utf8_printable_len(const char *text, size_t left)
{
	const uint8_t *p = (const uint8_t *)text;

	if (p[0] < 0x20 || p[0] == 0x7f || (p[0] == 0xc2 && left > 1 && p[1] < 0xa0))
		return 0;
	return utf8_len(text, left);
}
