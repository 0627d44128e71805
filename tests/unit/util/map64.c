// SPDX-License-Identifier: BSD-2-Clause
/* user/util/map64.c */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/map64.h"
#include "util/util.h"

/* Counts survive growth, zeros go, and the size follows what is left. */
static void counts(void)
{
	struct map64 m = {0};
	size_t cap;

	for (uint64_t i = 0; i < 100000; i++)
		*map64__at(&m, i << 32) = i + 1;
	for (uint64_t i = 0; i < 100000; i++)
		CHECK_EQ(*map64__at(&m, i << 32), i + 1);
	CHECK_EQ(m.used, 100000);
	cap = m.cap;
	for (uint64_t i = 10; i < 100000; i++)
		*map64__at(&m, i << 32) = 0;
	for (uint64_t i = 0; i < 300000; i++)
		*map64__at(&m, i << 32 | 5) = 0;
	CHECK(m.cap < cap);
	for (uint64_t i = 0; i < 10; i++)
		CHECK_EQ(*map64__at(&m, i << 32), i + 1);
	CHECK_EQ(*map64__at(&m, 99ull << 32), 0);
	cap = m.used;
	CHECK_EQ(map64__get(&m, 9ull << 32), 10);
	CHECK_EQ(map64__get(&m, 7), 0);
	CHECK_EQ(m.used, cap);
	map64__free(&m);
	CHECK_EQ(map64__get(&m, 0), 0);
}

#define FACTOR 0xd6e8feb86659fd93ull /* of hash64() */

static uint64_t inverse(uint64_t odd)
{
	uint64_t x = odd;

	for (int i = 0; i < 6; i++)
		x *= 2 - odd * x;
	return x;
}

/* What has this hash64(). */
static uint64_t unhash(uint64_t x)
{
	uint64_t back = inverse(FACTOR);

	x ^= x >> 32;
	x *= back;
	x ^= x >> 32;
	x *= back;
	return x ^ x >> 32;
}

/* The most slots in a row that are taken. */
static size_t longest_run(const struct map64 *m)
{
	size_t longest = 0, run = 0;

	for (size_t i = 0; i < m->cap; i++) {
		run = m->slots[i].tag ? run + 1 : 0;
		longest = run > longest ? run : longest;
	}
	return longest;
}

/* Keys that who knows the hash has chosen, all for one place. */
static void chosen(void)
{
	for (int shift = 0; shift <= 20; shift += 20) {
		struct map64 m = {0};

		for (uint64_t i = 1; i <= 40000; i++) {
			uint64_t tag = unhash(shift ? i << shift : i);

			CHECK_EQ(hash64(tag), shift ? i << shift : i);
			*map64__at(&m, tag - 1) = i;
		}
		CHECK_EQ(m.used, 40000);
		CHECK(longest_run(&m) < 1000);
		map64__free(&m);
	}
}

/* In another process, keys lie elsewhere. */
static void of_this_process(void)
{
	struct map64 m = {0};
	char places[2][65] = {""};

	for (uint64_t i = 0; i < 16; i++)
		*map64__at(&m, i) = i + 1;
	for (size_t i = 0; i < m.cap && i < 64; i++)
		places[0][i] = m.slots[i].tag ? (char)('a' + m.slots[i].tag) : '.';
	map64__free(&m);
	if (getenv("OTHER_PROCESS")) {
		fprintf(stderr, "%s", places[0]);
		_exit(0);
	}
	for (int i = 0; i < 2; i++) {
		FILE *other = popen("OTHER_PROCESS=1 /proc/$PPID/exe 2>&1 >/dev/null", "r");

		CHECK(other && fgets(places[1], sizeof(places[1]), other));
		CHECK(strlen(places[1]) == 64 && strcmp(places[0], places[1]) != 0);
		CHECK(other && !pclose(other));
	}
}

UNIT_MAIN(TEST(counts), TEST(chosen), TEST(of_this_process))
