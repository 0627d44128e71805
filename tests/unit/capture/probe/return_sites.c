// SPDX-License-Identifier: BSD-2-Clause
/* Which addresses are believed to be where a call returns to. */
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

/* This program's file, and where in it the address lies. */
static struct elffile *own_file(uint64_t ip, uint64_t *offset)
{
	const struct proc_map *map;
	struct proc_maps *maps;
	struct elffile *e;

	CHECK_EQ(proc_maps__read(getpid(), &maps), 0);
	map = proc_maps__find(maps, ip);
	CHECK(map != NULL);
	*offset = ip - map->start + map->offset;
	proc_maps__free(maps);
	CHECK_EQ(elffile__open("/proc/self/exe", &e), 0);
	return e;
}

static void only_the_end_of_a_call(void)
{
	uint64_t offset;
	struct elffile *e = own_file(after_others(3), &offset);
	size_t checked = 0;

	CHECK(return_sites__after_call(e, offset, &checked) > 0);
	CHECK(checked > 0);
	CHECK(checked < 1 << 20);
	for (uint64_t by = 1; by < 5; by++) /* within the call, which has five bytes */
		CHECK(!return_sites__after_call(e, offset - by, &checked));
	CHECK(!return_sites__after_call(e, offset + 1, &checked));
	CHECK(!return_sites__after_call(e, 0, &checked));
	CHECK(!return_sites__after_call(e, 8, &checked));
	CHECK(!return_sites__after_call(e, UINT64_MAX >> 1, &checked));
	CHECK(!return_sites__after_call(e, UINT64_MAX, &checked));
	checked = 32 << 20; /* as much as is decoded of a file */
	CHECK(!return_sites__after_call(e, offset, &checked));
	elffile__close(e);
}

/*
 * A function whose last call does not return, and what lies behind it, which looks like nop. The
 * call is not executed.
 */
void never_returns(void);
__asm__(".text\n.globl never_returns\n.type never_returns, @function\nnever_returns:\n"
	".cfi_startproc\n\tcall abort@PLT\n\tnop\n\tcall abort@PLT\n.cfi_endproc\n"
	"\t.byte 0x90, 0x90, 0x90, 0x90\n"
	".size never_returns, . - never_returns\n");
#define CALL_BYTES 5

static void not_beyond_its_function(void)
{
	uint64_t offset;
	struct elffile *e = own_file((uint64_t)(uintptr_t)never_returns, &offset);
	size_t checked = 0;

	CHECK_EQ(return_sites__after_call(e, offset + CALL_BYTES, &checked), 1 + CALL_BYTES);
	CHECK_EQ(return_sites__after_call(e, offset + 2 * CALL_BYTES + 1, &checked), 0);
	CHECK_EQ(return_sites__after_call(e, offset + 2 * CALL_BYTES + 2, &checked), 0);
	elffile__close(e);
}

UNIT_MAIN(TEST(only_the_end_of_a_call), TEST(not_beyond_its_function))
