// SPDX-License-Identifier: BSD-2-Clause
/* user/sink/pickle/pickle.c: bytes as pickletools.py of CPython describes them. */
#include "unit.h"

#include "sink/pickle/pickle.h"

static char written[512];
static size_t nr;

static int take(void *ctx, const void *data, size_t bytes)
{
	CHECK(nr + bytes <= sizeof(written));
	memcpy(written + nr, data, bytes);
	nr += bytes;
	return 0;
}

static void check(struct jsonw *w, const void *expected, size_t bytes)
{
	CHECK_EQ(jsonw__flush(w), 0);
	CHECK_EQ(nr, bytes);
	CHECK(nr == bytes && !memcmp(written, expected, bytes));
	nr = 0;
}

#define WROTE(text) check(&w, text, sizeof(text) - 1)

static void all(void)
{
	struct jsonw w;

	CHECK_EQ(jsonw__init(&w, take, NULL), 0);
	pickle_begin(&w);
	pickle_open_dict(&w);
	pickle_text(&w, "a");
	pickle_open_list(&w);
	pickle_int(&w, 0);
	pickle_int(&w, 255);
	pickle_close_list(&w);
	pickle_remember(&w, 3);
	pickle_text(&w, "b");
	pickle_again(&w, 3);
	pickle_close_dict(&w);
	pickle_end(&w);
	WROTE("\x80\x02}(X\1\0\0\0a](K\0K\xff"
	      "eq\3X\1\0\0\0bh\3u.");
	pickle_int(&w, 256);
	WROTE("J\0\1\0\0");
	pickle_int(&w, INT32_MAX);
	WROTE("J\xff\xff\xff\x7f");
	/* two's complement: one more byte, so that it stays positive */
	pickle_int(&w, 1ull << 31);
	WROTE("\x8a\5\0\0\0\x80\0");
	pickle_int(&w, 0x7f0000000000);
	WROTE("\x8a\6\0\0\0\0\0\x7f");
	pickle_int(&w, 0x800000000000);
	WROTE("\x8a\7\0\0\0\0\0\x80\0");
	pickle_int(&w, INT64_MAX);
	WROTE("\x8a\10\xff\xff\xff\xff\xff\xff\xff\x7f");
	pickle_remember(&w, 256);
	pickle_again(&w, 256);
	WROTE("r\0\1\0\0j\0\1\0\0");
	pickle_text(&w, "\xff");
	WROTE("X\4\0\0\0\\xff");
	pickle_text(&w, "");
	WROTE("X\0\0\0\0");
	jsonw__fini(&w);
}

UNIT_MAIN(TEST(all))
