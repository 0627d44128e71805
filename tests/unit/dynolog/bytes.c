// SPDX-License-Identifier: BSD-2-Clause
/* user/dynolog/{datagram,frame}.c: what is sent, byte by byte, and each way of being malformed. */
#include "unit.h"

#include <errno.h>

#include "dynolog_fixture.h"

static void poll_of_kineto(void)
{
	/* as PyTorch 2.15.0 has sent it, but for the numbers */
	static const char head[] = "\x24\0\0\0\0\0\0\0req";
	static const int32_t pids[] = {1234, 1200, 900, 800, 5};
	char data[128] = {0};
	struct datagram d;

	CHECK_EQ(make_poll(data, 2, 77, pids, 5), 76);
	CHECK(!memcmp(data, head, sizeof(head)));
	CHECK_EQ(datagram_decode(data, 76, &d), 0);
	CHECK(d.is_poll);
	CHECK_EQ(d.takes, 2);
	CHECK_EQ(d.job_id, 77);
	CHECK_EQ(d.nr_pids, 5);
	CHECK(!memcmp(d.pids, pids, sizeof(pids)));
}

static void context(void)
{
	char data[64];
	struct datagram d;

	CHECK_EQ(make_context(data, 3, 42, 77), 56);
	CHECK_EQ(datagram_decode(data, 56, &d), 0);
	CHECK(!d.is_poll);
	CHECK_EQ(d.gpu, 3);
	CHECK_EQ(d.pids[0], 42);
	CHECK_EQ(d.job_id, 77);
}

static void check_changed(size_t at, int64_t value, size_t bytes)
{
	static const int32_t pids[] = {1234, 1200};
	char data[128];
	struct datagram d;
	size_t n = make_poll(data, 2, 0, pids, 2);

	memcpy(data + at, &value, bytes);
	CHECK_EQ(datagram_decode(data, n, &d), -EBADMSG);
}

static void malformed(void)
{
	static const int32_t pids[DATAGRAM_PIDS + 1] = {1234, 1200};
	char data[DATAGRAM_MOST_BYTES + 64] = {0}, endless[64];
	struct datagram d;
	size_t n = make_poll(data, 2, 0, pids, 2);

	for (size_t bytes = 0; bytes < n; bytes++)
		CHECK_EQ(datagram_decode(data, bytes, &d), -EBADMSG);
	CHECK_EQ(datagram_decode(data, n + 1, &d), -EBADMSG);
	for (int64_t size = 0; size < 64; size++)
		if (size != 24)
			check_changed(0, size, 8);
	check_changed(0, -1, 8);
	check_changed(8, 'x', 1);             /* another type */
	check_changed(10, 'q' | 'u' << 8, 2); /* a longer one */
	check_changed(44, 0, 4);              /* nobody */
	check_changed(44, -1, 4);
	check_changed(44, 3, 4); /* more than there are */
	check_changed(44, 0x40000000 + 2, 4);
	check_changed(56, 0, 4);
	check_changed(60, -5, 4);
	memset(endless, 'r', sizeof(endless)); /* a type without an end */
	memset(endless, 0, 8);
	endless[0] = 24;
	CHECK_EQ(datagram_decode(endless, sizeof(endless), &d), -EBADMSG);
	n = make_poll(data, 2, 0, pids, DATAGRAM_PIDS + 1);
	CHECK_EQ(datagram_decode(data, n, &d), -EBADMSG);
	n = make_context(data, 0, 0, 0);
	CHECK_EQ(datagram_decode(data, n, &d), -EBADMSG);
}

/* In pieces of every size. */
static void frames(void)
{
	static const char text[] = "{\"fn\":\"getStatus\"}";
	char data[64];
	int32_t n = sizeof(text) - 1;

	memcpy(data, &n, 4);
	memcpy(data + 4, text, sizeof(text) - 1);
	memset(data + 4 + n, 'x', 5); /* which is not looked at */
	for (size_t piece = 1; piece < 32; piece++) {
		struct frame f = {0};
		size_t at = 0, all = 4 + (size_t)n + 5;
		int state = 0;

		for (; !state && at < all; at += piece)
			state = frame__feed(&f, data + at, piece < all - at ? piece : all - at);
		CHECK_EQ(state, 1);
		CHECK_EQ(f.length, n);
		CHECK_STR(f.data, text);
		frame__free(&f);
	}
}

static void wrong_lengths(void)
{
	static const int32_t lengths[] = {0, -1, INT32_MIN, INT32_MAX, FRAME_MOST_BYTES + 1};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct frame f = {0};

		CHECK_EQ(frame__feed(&f, &lengths[i], 4), -EBADMSG);
		frame__free(&f);
	}
}

/* What is announced and does not come costs nothing. */
static void grows_with_what_comes(void)
{
	int32_t n = FRAME_MOST_BYTES;
	static char some[FRAME_MOST_BYTES];
	struct frame f = {0};

	CHECK_EQ(frame__feed(&f, &n, 4), 0);
	CHECK(f.cap <= 4096);
	CHECK_EQ(frame__feed(&f, some, 5000), 0);
	CHECK(f.cap <= 16384);
	CHECK_EQ(frame__feed(&f, some, sizeof(some)), 1);
	CHECK_EQ(f.have, FRAME_MOST_BYTES);
	CHECK(f.cap <= 2 * FRAME_MOST_BYTES);
	frame__free(&f);
}

UNIT_MAIN(TEST(poll_of_kineto), TEST(context), TEST(malformed), TEST(frames), TEST(wrong_lengths),
	  TEST(grows_with_what_comes))
