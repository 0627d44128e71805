// SPDX-License-Identifier: BSD-2-Clause
/* Which addresses are believed to be where a call returns to, and which are kept. */
#include <unistd.h>

#include "capture/probe/return_blob.h"
#include "capture/probe/set_impl.h"
#include "capture/process/process.h"
#include "unit.h"

static __attribute__((noinline)) uint64_t where(void)
{
	return (uint64_t)__builtin_return_address(0);
}

static __attribute__((noinline)) uint64_t after_others(int n)
{
	volatile uint64_t sum = 0;

	for (int i = 0; i < n; i++)
		sum += where();
	return sum ? where() : 0;
}

static void only_the_end_of_a_call(void)
{
	struct proc_maps *maps;
	const struct proc_map *map;
	struct elffile *e;
	size_t budget = 1 << 20;
	uint64_t ip = after_others(3), offset;

	CHECK_EQ(proc_maps__read(getpid(), &maps), 0);
	map = proc_maps__find(maps, ip);
	CHECK(map != NULL);
	CHECK_EQ(elffile__open("/proc/self/exe", &e), 0);
	offset = ip - map->start + map->offset;
	CHECK(return_cache__ends_call(e, offset, &budget));
	CHECK(budget < 1 << 20);
	for (uint64_t by = 1; by < 5; by++) /* within the call, which has five bytes */
		CHECK(!return_cache__ends_call(e, offset - by, &budget));
	CHECK(!return_cache__ends_call(e, offset + 1, &budget));
	CHECK(!return_cache__ends_call(e, 0, &budget));
	CHECK(!return_cache__ends_call(e, 8, &budget));
	CHECK(!return_cache__ends_call(e, UINT64_MAX >> 1, &budget));
	CHECK(!return_cache__ends_call(e, UINT64_MAX, &budget));
	budget = 3;
	CHECK(!return_cache__ends_call(e, offset, &budget));
	elffile__close(e);
	proc_maps__free(maps);
}

/* When there are more than are kept, those go that were not met for longest. */
static void the_latest_are_kept(void)
{
	static struct kept_return all[RETURN_BLOB_MOST];
	const size_t nr = RETURN_BLOB_MOST + 100;
	struct file f = {.learnt = calloc(nr, sizeof(*f.learnt)), .nr_learnt = nr};
	uint32_t wrong = 0;

	if (!f.learnt)
		abort();
	/* The last ten are met now; the others are in the order in which they were kept before. */
	for (size_t i = 0; i < nr; i++) {
		f.learnt[i].code.kind = INSN_RETURN_FOLLOW;
		f.learnt[i].met = i >= nr - 10;
		*map64__at(&f.returns, 1000 + i) = i + 1;
	}
	CHECK_EQ(return_cache__collect(&f, all), RETURN_BLOB_MOST);
	for (size_t i = 0; i < RETURN_BLOB_MOST; i++)
		wrong += all[i].offset != 1000 + (i < 10 ? nr - 10 + i : i - 10);
	CHECK_EQ(wrong, 0);
	free(f.learnt);
	map64__free(&f.returns);
}

UNIT_MAIN(TEST(only_the_end_of_a_call), TEST(the_latest_are_kept))
