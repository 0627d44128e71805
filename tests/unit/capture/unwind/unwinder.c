// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's copy of tables and mappings, read back from its maps. Skipped where BPF programs
 * cannot be loaded.
 */
#include "capture/unwind/unwind.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "capture/probe/attach.h"
#include "capture/features/features.h"
#include "kprof.h"
#include "unit.h"
#include "util/util.h"

static struct attacher *attacher;
static struct unwinder_maps maps;
static struct unwinder *unwinder;
static struct unwind_rules *rules;
static uint64_t max_bytes; /* 0: no limit but that of the maps */

static bool start(void)
{
	struct attacher_opts opts = {.nr_rings = 1, .stacks = true};
	int err;

	if (features_require(true)) {
		printf("# skipped: %s\n", kprof_error_cause());
		return false;
	}
	opts.single = !features_get()->uprobe_multi;
	err = attacher__new(&opts, &attacher);
	CHECK_EQ(err, 0);
	if (err)
		return false;
	attacher__stack_maps(attacher, &maps);
	CHECK_EQ(unwinder__new(&maps, max_bytes, &unwinder), 0);
	CHECK_EQ(unwind_rules__new(&rules), 0);
	return unwinder && rules;
}

static void stop(void)
{
	unwinder__free(unwinder);
	unwind_rules__free(rules);
	attacher__free(attacher);
	attacher = NULL;
	unwinder = NULL;
	rules = NULL;
}

/* A table of pages with so many rows each, whose rule is the page's number. */
static struct unwind_table *made_table(const uint32_t *rows, size_t nr_pages)
{
	struct unwind_table *t = calloc(1, sizeof(*t));

	t->pages = calloc(nr_pages, sizeof(*t->pages));
	t->nr_pages = nr_pages;
	for (size_t i = 0; i < nr_pages; i++) {
		t->pages[i] = (struct unwind_page){(uint32_t)t->nr_rows, rows[i]};
		t->nr_rows += rows[i];
	}
	t->rows = calloc(t->nr_rows + 1, sizeof(*t->rows));
	for (size_t i = 0; i < nr_pages; i++)
		for (uint32_t k = 0; k < rows[i]; k++)
			t->rows[t->pages[i].first + k] =
				(struct kprof_unwind_row){(uint16_t)k, (uint16_t)i};
	return t;
}

/* The rows of a page as the kernel's programs would see them; how many. */
static uint32_t kernel_rows(uint32_t page, struct kprof_unwind_row *rows)
{
	static struct kprof_unwind_row shard[KPROF_UNWIND_SHARD_ROWS];
	struct kprof_unwind_page p;
	uint32_t zero = 0, id;
	int fd;

	if (bpf_map_lookup_elem(maps.pages, &page, &p) || !p.nr)
		return 0;
	if (bpf_map_lookup_elem(maps.shards, &p.shard, &id))
		return 0;
	fd = bpf_map_get_fd_by_id(id);
	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &zero, shard));
	close(fd);
	CHECK(p.first + p.nr <= KPROF_UNWIND_SHARD_ROWS);
	memcpy(rows, shard + p.first, p.nr * sizeof(*rows));
	return p.nr;
}

static void check_page(const struct unwind_table *t, uint32_t first_page, size_t i)
{
	static struct kprof_unwind_row rows[KPROF_UNWIND_PAGE_BYTES];

	CHECK_EQ(kernel_rows(first_page + (uint32_t)i, rows), t->pages[i].nr);
	CHECK(!memcmp(rows, t->rows + t->pages[i].first, t->pages[i].nr * sizeof(*rows)));
}

/* More than a shard holds, with pages that don't fit its end, and empty ones. */
static void tables(void)
{
	static const uint32_t big[] = {60000, 0, 65536, 65536, 65536, 40000, 1, 65536};
	static const uint32_t small[] = {3};
	struct unwind_table *t = made_table(big, ARRAY_SIZE(big)), *u = made_table(small, 1);
	uint32_t first, second;

	if (!start())
		goto out;
	CHECK_EQ(unwinder__place(unwinder, rules, t, false, &first), 0);
	CHECK_EQ(unwinder__place(unwinder, rules, u, false, &second), 0);
	CHECK_EQ(second, first + ARRAY_SIZE(big));
	for (size_t i = 0; i < ARRAY_SIZE(big); i++)
		check_page(t, first, i);
	check_page(u, second, 0);
	CHECK(unwinder__bytes(unwinder) >= t->nr_rows * 4);
	stop();
out:
	unwind_table__free(t);
	unwind_table__free(u);
}

/* Nothing of a table that does not fit is there afterwards, and smaller ones still fit. */
static void too_much(void)
{
	uint32_t *rows = calloc(KPROF_UNWIND_MAX_PAGES + 1, sizeof(*rows)), one = 1, first;
	struct unwind_table *t = made_table(rows, KPROF_UNWIND_MAX_PAGES + 1);
	struct unwind_table *u = made_table(&one, 1);

	if (start()) {
		CHECK_EQ(unwinder__place(unwinder, rules, t, false, &first), -ENOSPC);
		CHECK_EQ(unwinder__place(unwinder, rules, u, false, &first), 0);
		CHECK_EQ(first, 0);
		check_page(u, first, 0);
		stop();
	}
	free(rows);
	unwind_table__free(t);
	unwind_table__free(u);
}

/*
 * JIT code: its tables come and go, and what is given up is used again when no walk
 * can need it.
 */
static void come_and_go(void)
{
	static const uint32_t shape[] = {300, 0, 17};
	struct unwind_table *t = made_table(shape, ARRAY_SIZE(shape));
	struct kprof_unwind_mapping some = {.start = 0x1000, .end = 0x2000};
	uint32_t first, second, third, space = UNWINDER_NO_SPACE, module;

	if (!start())
		goto out;
	CHECK_EQ(unwinder__place(unwinder, rules, t, true, &first), 0);
	CHECK_EQ(unwinder__place(unwinder, rules, t, true, &second), 0);
	CHECK(second != first);
	CHECK_EQ(unwinder__place(unwinder, rules, t, false, &module), 0);
	CHECK(module != first && module != second);
	unwinder__drop(unwinder, first);
	/* The kernel may still walk by it. */
	CHECK_EQ(unwinder__flush(unwinder), 0);
	CHECK_EQ(unwinder__place(unwinder, rules, t, true, &third), 0);
	CHECK(third != first && third != second);
	for (size_t i = 0; i < ARRAY_SIZE(shape); i++) {
		check_page(t, first, i);
		check_page(t, second, i);
		check_page(t, third, i);
		check_page(t, module, i);
	}
	CHECK_EQ(unwinder__set(unwinder, 100, &space, &some, 1), 0);
	CHECK_EQ(unwinder__flush(unwinder), 0);
	CHECK_EQ(unwinder__place(unwinder, rules, t, true, &third), 0);
	CHECK_EQ(third, first);
	/* For ever. */
	for (int i = 0; i < 5000; i++) {
		unwinder__drop(unwinder, third);
		if (i % 100 == 0)
			CHECK_EQ(unwinder__set(unwinder, 100, &space, &some, 1), 0);
		CHECK_EQ(unwinder__flush(unwinder), 0);
		CHECK_EQ(unwinder__place(unwinder, rules, t, true, &third), 0);
	}
	check_page(t, third, 0);
	check_page(t, second, 2);
	stop();
out:
	unwind_table__free(t);
}

static void too_much_made(void)
{
	uint32_t one = 1, first, second;
	struct unwind_table *u = made_table(&one, 1);

	if (start()) {
		CHECK_EQ(unwinder__place(unwinder, rules, u, true, &first), 0);
		for (int i = 1; i < (int)KPROF_UNWIND_JIT_PAGES; i++)
			CHECK_EQ(unwinder__place(unwinder, rules, u, true, &second), 0);
		CHECK_EQ(unwinder__place(unwinder, rules, u, true, &second), -ENOSPC);
		check_page(u, first, 0);
		check_page(u, second, 0);
		stop();
	}
	unwind_table__free(u);
}

/* A limit on the kernel's memory: what is given up makes room, and what stays is not touched. */
static void bounded(void)
{
	static const uint32_t shape[] = {60000, 60000, 60000, 60000}; /* most of a shard */
	struct unwind_table *t = made_table(shape, ARRAY_SIZE(shape));
	uint32_t pages[3], fourth;

	max_bytes = 4u << 20; /* three shards, and less than a shard for the rest */
	if (!start())
		goto out;
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		CHECK_EQ(unwinder__place(unwinder, rules, t, false, &pages[i]), 0);
	CHECK_EQ(unwinder__place(unwinder, rules, t, false, &fourth), -ENOSPC);
	CHECK(unwinder__bytes(unwinder) <= max_bytes);
	for (int round = 0; round < 10; round++) {
		uint32_t old = pages[round % 3];

		unwinder__drop(unwinder, old);
		CHECK_EQ(unwinder__place(unwinder, rules, t, false, &fourth), -ENOSPC);
		CHECK_EQ(unwinder__reuse(unwinder), 0);
		CHECK_EQ(unwinder__place(unwinder, rules, t, false, &pages[round % 3]), 0);
		for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
			check_page(t, pages[i], round % ARRAY_SIZE(shape));
	}
	CHECK(unwinder__bytes(unwinder) <= max_bytes);
	stop();
out:
	max_bytes = 0;
	unwind_table__free(t);
}

/* What a process's walks find in its mappings: element 0 says how many follow. */
static uint64_t kernel_mappings(uint32_t pid, struct kprof_unwind_mapping *to, size_t room)
{
	struct kprof_stack_process process;
	struct kprof_unwind_mapping m;
	uint32_t id, at = 0;
	uint64_t nr;
	int fd;

	if (bpf_map_lookup_elem(maps.processes, &pid, &process) ||
	    bpf_map_lookup_elem(maps.spaces, &process.space, &id))
		return UINT64_MAX;
	fd = bpf_map_get_fd_by_id(id);
	CHECK(fd >= 0 && !bpf_map_lookup_elem(fd, &at, &m));
	nr = m.start;
	for (at = 1; at <= nr && at <= room; at++)
		CHECK(!bpf_map_lookup_elem(fd, &at, &to[at - 1]));
	close(fd);
	return nr;
}

static void processes(void)
{
	struct kprof_unwind_mapping some[] = {
		{.start = 0x1000, .end = 0x2000, .first_page = 7},
		{.start = 0x7000, .end = 0x9000, .bias = 0x100},
		/* [vsyscall]: the search takes addresses for signed */
		{.start = 0xffffffffff600000, .end = 0xffffffffff601000},
	};
	struct kprof_unwind_mapping got[4];
	uint32_t a = UNWINDER_NO_SPACE, b = UNWINDER_NO_SPACE, c = UNWINDER_NO_SPACE;

	if (!start())
		return;
	CHECK_EQ(unwinder__set(unwinder, 100, &a, some, 3), 0);
	CHECK_EQ(unwinder__set(unwinder, 200, &b, some, 1), 0);
	CHECK_EQ(unwinder__flush(unwinder), 0);
	CHECK(a != b && a != UNWINDER_NO_SPACE);
	CHECK_EQ(kernel_mappings(100, got, 4), 2);
	CHECK(!memcmp(got, some, 2 * sizeof(*got)));
	CHECK_EQ(kernel_mappings(200, got, 4), 1);
	/* Replaced as a whole. */
	CHECK_EQ(unwinder__set(unwinder, 100, &a, some + 1, 1), 0);
	CHECK_EQ(unwinder__flush(unwinder), 0);
	CHECK_EQ(kernel_mappings(100, got, 4), 1);
	CHECK(!memcmp(got, some + 1, sizeof(*got)));
	/* A number is used again. */
	unwinder__remove(unwinder, 100, a);
	CHECK_EQ(kernel_mappings(100, got, 4), UINT64_MAX);
	CHECK_EQ(unwinder__set(unwinder, 300, &c, NULL, 0), 0);
	CHECK_EQ(unwinder__flush(unwinder), 0);
	CHECK_EQ(c, a);
	CHECK_EQ(kernel_mappings(300, got, 4), 0);
	CHECK_EQ(kernel_mappings(200, got, 4), 1);
	stop();
}

/* Many at once, some of them gone again before they were handed over. */
static void handed_over_together(void)
{
	struct kprof_unwind_mapping some[] = {{.start = 0x1000, .end = 0x2000},
					      {.start = 0x3000, .end = 0x4000}};
	struct kprof_unwind_mapping got[2];
	uint32_t spaces[200];

	if (!start())
		return;
	for (uint32_t i = 0; i < ARRAY_SIZE(spaces); i++) {
		spaces[i] = UNWINDER_NO_SPACE;
		CHECK_EQ(unwinder__set(unwinder, 1000 + i, &spaces[i], some, 1), 0);
		if (i % 3 == 0)
			CHECK_EQ(unwinder__set(unwinder, 1000 + i, &spaces[i], some, 2), 0);
		if (i % 5 == 0)
			unwinder__remove(unwinder, 1000 + i, spaces[i]);
	}
	CHECK_EQ(unwinder__flush(unwinder), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(spaces); i++)
		CHECK_EQ(kernel_mappings(1000 + i, got, 2), i % 5 == 0   ? UINT64_MAX
							    : i % 3 == 0 ? 2
									 : 1);
	stop();
}

/* More mappings than the search goes through: the last are left out. */
static void many_mappings(void)
{
	size_t nr = KPROF_UNWIND_MAX_MAPPINGS + 5;
	struct kprof_unwind_mapping *all = calloc(nr, sizeof(*all));
	uint32_t space = UNWINDER_NO_SPACE;

	for (size_t i = 0; i < nr; i++)
		all[i].start = (i + 1) << 12;
	if (start()) {
		CHECK_EQ(unwinder__set(unwinder, 100, &space, all, nr), 0);
		CHECK_EQ(unwinder__flush(unwinder), 0);
		CHECK_EQ(kernel_mappings(100, NULL, 0), KPROF_UNWIND_MAX_MAPPINGS);
		stop();
	}
	free(all);
}

UNIT_MAIN(TEST(tables), TEST(too_much), TEST(come_and_go), TEST(too_much_made), TEST(bounded),
	  TEST(processes), TEST(handed_over_together), TEST(many_mappings))
