// SPDX-License-Identifier: BSD-2-Clause
/* user/util/utf8.h, held to the C library's own decoder. */
#include "unit.h"

#include <locale.h>
#include <string.h>
#include <wchar.h>

#include "util/utf8.h"

/* glibc's decoder also takes what is above U+10FFFF. */
static size_t by_libc(const char *p, size_t left)
{
	mbstate_t state = {0};
	wchar_t wide;
	size_t len = mbrtowc(&wide, p, left, &state);

	if (len > 4 || wide > 0x10ffff)
		return 0;
	return len ? len : 1;
}

static void lengths_of_any_bytes(void)
{
	static const unsigned char last[] = {0x00, 0x20, 0x7f, 0x80, 0x9f, 0xa0, 0xbf, 0xc0, 0xff};
	size_t wrong = 0;
	char text[4];

	CHECK(setlocale(LC_CTYPE, "C.UTF-8") != NULL);
	for (unsigned int pair = 0; pair < 1 << 16; pair++) {
		for (size_t i = 0; i < sizeof(last) * sizeof(last); i++) {
			text[0] = (char)(pair >> 8);
			text[1] = (char)pair;
			text[2] = (char)last[i / sizeof(last)];
			text[3] = (char)last[i % sizeof(last)];
			wrong += utf8_len(text, 4) != by_libc(text, 4);
		}
		for (size_t left = 1; left < 4; left++)
			wrong += utf8_len(text, left) != by_libc(text, left);
	}
	CHECK_EQ(wrong, 0);
}

static void control_characters_are_not_printable(void)
{
	CHECK_EQ(utf8_printable_len("\x1f", 1), 0);
	CHECK_EQ(utf8_printable_len(" ", 1), 1);
	CHECK_EQ(utf8_printable_len("\x7f", 1), 0);
	CHECK_EQ(utf8_printable_len("\xc2\x9f", 2), 0);
	CHECK_EQ(utf8_printable_len("\xc2\xa0", 2), 2);
	CHECK_EQ(utf8_printable_len("\xc2", 1), 0);
	CHECK_EQ(utf8_printable_len("\xe2\x82\xac", 3), 3);
}

UNIT_MAIN(TEST(lengths_of_any_bytes), TEST(control_characters_are_not_printable))
