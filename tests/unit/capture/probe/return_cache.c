// SPDX-License-Identifier: BSD-2-Clause
/* Whether an address is believed to be where a call returns to, asked of this program's code. */
#include <unistd.h>

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

UNIT_MAIN(TEST(only_the_end_of_a_call))
