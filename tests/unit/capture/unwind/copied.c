// SPDX-License-Identifier: BSD-2-Clause
/* Walks of copies of this process's own stack, against the C library's backtrace(). */
#include "capture/unwind/copied.h"

#include <execinfo.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "capture/process/process.h"
#include "unit.h"
#include "util/util.h"

#define MOST 64

static struct proc_maps *maps;

/* They stay open: the walkers keep their rules. */
static struct {
	char *path;
	struct elffile *elf;
} opened[16];

static const struct elffile *open_once(const char *path)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(opened) && opened[i].path && strcmp(opened[i].path, path) != 0)
		i++;
	if (i == ARRAY_SIZE(opened))
		return NULL;
	if (!opened[i].path) {
		opened[i].path = strdup(path);
		CHECK_EQ(elffile__open(path, &opened[i].elf), 0);
	}
	return opened[i].elf;
}

static int code_at(void *ctx, uint64_t ip, struct copied_code *out)
{
	const struct proc_map *map = proc_maps__find(maps, ip);
	const struct elffile *elf;

	(void)ctx;
	elf = map && map->flags & PROC_MAP_FILE ? open_once(map->path) : NULL;
	if (!elf)
		return -1;
	out->elf = elf;
	out->start = map->start;
	out->end = map->end;
	out->bias = map->start - elffile__code_vaddr(elf, map->offset);
	return 0;
}

struct seen {
	void *expected[MOST];
	int nr_expected;
	uint64_t slots[MOST], reached, sp;
	size_t nr;
	uint64_t copy[4096];
};

static struct seen seen;

/* bytes: how much of the stack is copied */
static __attribute__((noinline)) void look(struct copied_walker *w, size_t bytes)
{
	uint64_t frame = (uint64_t)__builtin_frame_address(0);
	struct copied_stack stack = {.sp = frame + 8, .bytes = seen.copy, .code = code_at};
	const struct proc_map *map;
	uint64_t top;

	proc_maps__free(maps);
	CHECK_EQ(proc_maps__read(getpid(), &maps), 0);
	map = proc_maps__find(maps, frame);
	top = map ? map->end : 0;
	if (bytes > sizeof(seen.copy))
		bytes = sizeof(seen.copy);
	if (stack.sp + bytes > top)
		bytes = top - stack.sp;
	memcpy(&stack.bp, (const void *)frame, 8);
	/* not memcpy(), which AddressSanitizer lets read nobody's place on the stack */
	CHECK_EQ(process_vm_readv(getpid(), &(struct iovec){seen.copy, bytes}, 1,
				  &(struct iovec){(void *)stack.sp, bytes}, 1, 0),
		 (ssize_t)bytes);
	stack.nr_bytes = bytes;
	seen.sp = stack.sp;
	seen.nr_expected = backtrace(seen.expected, MOST);
	seen.nr = copied_walker__slots(w, &stack, seen.slots, MOST, &seen.reached);
}

static __attribute__((noinline)) void deeper(struct copied_walker *w, int depth, size_t bytes)
{
	volatile char room[300];

	room[0] = (char)depth;
	if (depth)
		deeper(w, depth - 1, bytes);
	else
		look(w, bytes);
	room[1] = room[0];
}

/*
 * backtrace() begins in look(), whose own address is no return address; under AddressSanitizer, in
 * a function that stands in for it.
 */
static void check_slots(void)
{
	size_t first = 0;

	for (size_t i = 0; i < seen.nr && first + i < (size_t)seen.nr_expected; i++) {
		uint64_t ip;

		memcpy(&ip, (const char *)seen.copy + (seen.slots[i] - seen.sp), 8);
		while (!i && first < 3 && ip != (uint64_t)seen.expected[first])
			first++;
		CHECK_EQ(ip, (uint64_t)seen.expected[first + i]);
	}
}

static void whole(void)
{
	struct copied_walker *w;

	CHECK_EQ(copied_walker__new(&w), 0);
	for (int i = 0; i < 2; i++) { /* the second time by the rules that were kept */
		deeper(w, 10, sizeof(seen.copy));
		CHECK(seen.nr >= 12);
		check_slots();
	}
	copied_walker__free(w);
}

/* Of a part of the stack, all slots are known up to where the walk could go. */
static void part(void)
{
	struct copied_walker *w;
	size_t all;

	CHECK_EQ(copied_walker__new(&w), 0);
	deeper(w, 10, sizeof(seen.copy));
	all = seen.nr;
	for (size_t bytes = 0; bytes < 4096; bytes += 8) {
		size_t inside = 0;

		deeper(w, 10, bytes);
		check_slots();
		CHECK(seen.nr <= all);
		CHECK(seen.reached <= seen.sp + bytes);
		for (size_t i = 0; i < seen.nr; i++)
			inside += seen.slots[i] < seen.reached;
		CHECK_EQ(inside, seen.nr);
	}
	copied_walker__free(w);
}

/* Content that no stack has is no harm. */
static void nonsense(void)
{
	struct copied_stack stack = {.bytes = seen.copy, .nr_bytes = 512, .code = code_at};
	struct copied_walker *w;

	CHECK_EQ(copied_walker__new(&w), 0);
	for (uint64_t i = 0; i < 2000; i++) {
		for (size_t k = 0; k < 64; k++)
			seen.copy[k] = k % 3 ? seen.copy[(k * 7 + i) % 512] * (i | 1)
					     : (uint64_t)&copied_walker__slots + i;
		stack.sp = i & 1 ? UINT64_MAX - 256 - i : 0x7f0000000000 + i * 8;
		stack.bp = stack.sp + i % 512;
		CHECK(copied_walker__slots(w, &stack, seen.slots, MOST, &seen.reached) <= MOST);
	}
	copied_walker__free(w);
}

UNIT_MAIN(TEST(whole), TEST(part), TEST(nonsense))
