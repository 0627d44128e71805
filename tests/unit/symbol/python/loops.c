// SPDX-License-Identifier: BSD-2-Clause
/* user/symbol/python/loops.c: loops in code that is made up, of each form, and in noise. */
#include "symbol/python/python.h"

#include <stdlib.h>

#include "symbol/python/priv.h"
#include "unit.h"
#include "util/util.h"

/* Which instructions are in a loop: an x each, else a dot. */
static const char *loops(uint32_t minor, const uint8_t *code, uint32_t bytes)
{
	static char out[600];
	struct python_code c = {.minor = minor};

	CHECK_EQ(python_code__find_loops(&c, code, bytes), 0);
	for (uint32_t at = 0; at < bytes; at += 2)
		out[at / 2] = python_code__loop(&c, (int32_t)at) >= 0 ? 'x' : '.';
	out[bytes / 2] = '\0';
	CHECK_EQ(python_code__loop(&c, -1), -1);
	free(c.loops);
	return out;
}

#define LOOPS(minor, ...) \
	loops(minor, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* Up to 3.10 targets are absolute: in bytes, then in instructions. */
static void jumps_backwards(void)
{
	CHECK_STR(LOOPS(9, 1, 0, 93, 4, 1, 0, 113, 2, 1, 0), ".xxx.");
	CHECK_STR(LOOPS(10, 1, 0, 93, 2, 1, 0, 113, 1, 1, 0), ".xxx.");
	/* a jump forward, and one that is conditional */
	CHECK_STR(LOOPS(10, 113, 2, 1, 0, 1, 0, 115, 2, 1, 0), "..xx.");
	/* with a prefix: 0x0100 is too far, 0x0001 is not */
	CHECK_STR(LOOPS(10, 1, 0, 1, 0, 144, 1, 113, 0), "....");
	CHECK_STR(LOOPS(10, 1, 0, 1, 0, 144, 0, 113, 1), ".xxx");
}

/* From 3.11 on, a jump and an instruction that lead to each other. */
static void for_loops(void)
{
	CHECK_STR(LOOPS(11, 1, 0, 93, 2, 1, 0, 140, 3, 1, 0), ".xxx.");
	CHECK_STR(LOOPS(11, 1, 0, 93, 2, 1, 0, 38, 3, 1, 0), ".xxx.");
	/* `continue`, or an `if` at the end of the loop: the last jump is what counts */
	CHECK_STR(LOOPS(11, 93, 3, 140, 2, 1, 0, 140, 4, 1, 0), "xxxx.");
	/* another instruction at the head, or one that leads elsewhere: data like a jump */
	CHECK_STR(LOOPS(11, 1, 0, 94, 2, 1, 0, 140, 3, 1, 0), ".....");
	CHECK_STR(LOOPS(11, 1, 0, 93, 1, 1, 0, 140, 3, 1, 0), ".....");
	CHECK_STR(LOOPS(11, 93, 9, 140, 2), "..");
	CHECK_STR(LOOPS(11, 1, 0, 140, 9), "..");
	CHECK_STR(LOOPS(11, 140, 0, 140, 1), "..");
	/* one unit of data behind FOR_ITER; then behind the jump, too */
	CHECK_STR(LOOPS(12, 1, 0, 62, 2, 0, 0, 1, 0, 140, 4, 4, 0), ".xxxx.");
	CHECK_STR(LOOPS(12, 1, 0, 66, 2, 0, 0, 1, 0, 140, 4, 4, 0), "......");
	CHECK_STR(LOOPS(13, 1, 0, 72, 3, 0, 0, 1, 0, 77, 5, 0, 0, 4, 0), ".xxxx..");
	CHECK_STR(LOOPS(14, 1, 0, 72, 3, 0, 0, 1, 0, 176, 5, 0, 0, 4, 0), ".xxxx..");
	CHECK_STR(LOOPS(14, 1, 0, 72, 2, 0, 0, 1, 0, 176, 5, 0, 0, 4, 0), ".......");
	/* a release that is not known */
	CHECK_STR(LOOPS(15, 1, 0, 72, 3, 0, 0, 1, 0, 77, 5, 0, 0, 4, 0), ".......");
}

/* More than 255 instructions: both have a prefix, which may have become another instruction. */
static void a_long_loop(void)
{
	uint8_t code[2 * 280] = {0};
	const char *found;

	code[4] = 144; /* at 2; FOR_ITER at 3, the jump at 270 */
	code[5] = 1;
	code[6] = 93;
	code[7] = 271 - 4 - 256;
	code[2 * 269] = 34;
	code[2 * 269 + 1] = 1;
	code[2 * 270] = 140;
	code[2 * 270 + 1] = 271 - 2 - 256;
	found = loops(11, code, sizeof(code));
	CHECK_EQ(strspn(found, "."), 2);
	CHECK_EQ(strspn(found + 2, "x"), 269);
	CHECK_EQ(strlen(found), 280);
}

/* Neither a crash nor more than so many. */
static void noise(void)
{
	static uint8_t code[4096];

	for (uint64_t round = 0; round < 200; round++) {
		struct python_code c = {.minor = 8 + (uint32_t)(round % 8)};

		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = round % 3 ? (uint8_t)hash64(round << 32 | i)
					    : (uint8_t)(i % 2 ? hash64(i) % 8 : 113 + round % 28);
		CHECK_EQ(python_code__find_loops(&c, code, sizeof(code) - (uint32_t)(round % 5)),
			 0);
		CHECK(c.nr_loops <= 256);
		for (size_t i = 0; i < c.nr_loops; i++)
			CHECK(c.loops[i].start < c.loops[i].end && c.loops[i].end <= sizeof(code));
		free(c.loops);
	}
}

UNIT_MAIN(TEST(jumps_backwards), TEST(for_loops), TEST(a_long_loop), TEST(noise))
