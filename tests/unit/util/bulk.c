// SPDX-License-Identifier: BSD-2-Clause
/* user/util/bulk.h: more than stays in memory, in any order, and where there is no file for it. */
#include "unit.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/bulk.h"
#include "util/order.h"
#include "util/util.h"

struct item { /* 20 bytes: some lie across two blocks */
	uint32_t key, number, pad[3];
};

#define NR 600000u /* 12 MB */

static uint32_t random_of(uint32_t i)
{
	return (uint32_t)hash64(i + 1ull);
}

/* Bytes of files that this process has mapped in, as the kernel counts them. */
static size_t mapped_bytes(void)
{
	unsigned long size, resident, shared = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	CHECK(f && fscanf(f, "%lu %lu %lu", &size, &resident, &shared) == 3);
	if (f)
		fclose(f);
	return shared * (size_t)sysconf(_SC_PAGESIZE);
}

static void fill(struct bulk *b, uint32_t nr)
{
	for (uint32_t i = (uint32_t)b->nr; i < nr; i++) {
		struct item *item = bulk__push(b);

		if (!item)
			abort();
		*item = (struct item){random_of(i) % (NR / 2), i, {i, i, i}};
	}
}

static void check_filled(const struct bulk *b)
{
	uint32_t wrong = 0;

	for (uint32_t i = 0; i < b->nr; i++) {
		const struct item *item = bulk__at(b, i);

		wrong += item->number != i || item->pad[2] != i ||
			 item->key != random_of(i) % (NR / 2);
	}
	CHECK_EQ(wrong, 0);
}

static int by_key(const void *a, const void *b, void *ctx)
{
	return order_u64(((const struct item *)a)->key, ((const struct item *)b)->key);
}

static void keeps_what_it_unmaps(void)
{
	struct bulk b = {.size = sizeof(struct item)};
	size_t before = mapped_bytes(), most = 0, now;

	fill(&b, NR);
	CHECK(b.window);
	check_filled(&b);
	for (uint32_t i = 0; i < 20000; i++) {
		struct item *item = bulk__at(&b, random_of(i) % NR);

		CHECK_EQ(item->pad[0], item->number);
		item->pad[1] = item->number;
		if (i % 100)
			continue;
		now = mapped_bytes();
		most = now > most ? now : most;
	}
	CHECK(most < before + 2 * BULK_MEMORY_BYTES + (1u << 20));
	check_filled(&b);
	bulk__free(&b);
	CHECK_EQ(b.nr, 0);
}

/* Descriptor of the file without a name, which is the array's. */
static int file_of_bulk(void)
{
	char path[64], to[256];

	for (int fd = 3; fd < 64; fd++) {
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, to, sizeof(to) - 1);
		to[n > 0 ? n : 0] = '\0';
		if (strstr(to, " (deleted)"))
			return fd;
	}
	return -1;
}

/* Has the kernel write the array to the disk and forget it, as it does when memory is short. */
static void forget(const struct bulk *b)
{
	int fd = file_of_bulk();

	madvise(b->data, b->nr * b->size, MADV_DONTNEED);
	CHECK_EQ(fsync(fd), 0);
	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
}

/* Where a file lies in large folios, an access to one page would map in all of the folio. */
static void maps_in_no_large_folios(void)
{
	struct bulk b = {.size = sizeof(struct item)};
	size_t before = mapped_bytes(), most = 0, now, step = (1 << 20) / sizeof(struct item);

	fill(&b, 4 * NR);
	CHECK(b.window);
	forget(&b);
	check_filled(&b);
	for (size_t i = 0; i < b.nr; i += step) {
		((struct item *)bulk__at(&b, i))->number = 1;
		now = mapped_bytes();
		most = now > most ? now : most;
	}
	printf("# at most %zu MB mapped in\n", (most - before) >> 20);
	CHECK(most < before + BULK_MEMORY_BYTES + (2u << 20));
	bulk__free(&b);
}

static void sorts(void)
{
	struct bulk b = {.size = sizeof(struct item)};
	uint32_t wrong = 0;

	fill(&b, NR);
	CHECK_EQ(bulk__sort(&b, 100, NR, by_key, NULL), 0);
	for (uint32_t i = 0; i < 100; i++)
		wrong += ((const struct item *)bulk__at(&b, i))->number != i;
	for (uint32_t i = 101; i < NR; i++) {
		const struct item *last = bulk__at(&b, i - 1), *item = bulk__at(&b, i);

		/* Equal ones keep their order. */
		wrong += last->key > item->key ||
			 (last->key == item->key && last->number >= item->number);
		wrong += item->key != random_of(item->number) % (NR / 2);
	}
	CHECK_EQ(wrong, 0);
	bulk__free(&b);
}

static void sorts_few(void)
{
	for (uint32_t nr = 0; nr < 100; nr++) {
		struct bulk b = {.size = sizeof(struct item)};

		fill(&b, nr);
		CHECK_EQ(bulk__sort(&b, 0, nr, by_key, NULL), 0);
		for (uint32_t i = 1; i < nr; i++)
			CHECK(((struct item *)bulk__at(&b, i - 1))->key <=
			      ((struct item *)bulk__at(&b, i))->key);
		bulk__free(&b);
	}
}

static void stays_in_memory_without_a_directory(void)
{
	struct bulk b = {.size = sizeof(struct item)};
	const char *was = getenv("TMPDIR");
	char *kept = was ? strdup(was) : NULL;

	setenv("TMPDIR", "/nonexistent", 1);
	fill(&b, NR);
	CHECK(!b.window);
	check_filled(&b);
	bulk__free(&b);
	if (kept)
		setenv("TMPDIR", kept, 1);
	else
		unsetenv("TMPDIR");
	free(kept);
}

/* A file may not grow: as on a disk that is full. */
static void goes_back_to_memory(void)
{
	struct bulk b = {.size = sizeof(struct item)};
	struct rlimit limit, was;

	fill(&b, NR);
	CHECK(b.window);
	getrlimit(RLIMIT_FSIZE, &was);
	limit = was;
	limit.rlim_cur = 1000;
	CHECK_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
	fill(&b, 3 * NR);
	CHECK(!b.window);
	check_filled(&b);
	setrlimit(RLIMIT_FSIZE, &was);
	bulk__free(&b);
}

UNIT_MAIN(TEST(keeps_what_it_unmaps), TEST(maps_in_no_large_folios), TEST(sorts), TEST(sorts_few),
	  TEST(stays_in_memory_without_a_directory), TEST(goes_back_to_memory))
