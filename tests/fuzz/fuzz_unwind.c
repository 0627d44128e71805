// SPDX-License-Identifier: BSD-2-Clause
/*
 * Any bytes as an ELF file whose unwind table is made: pages and rows in order, and no more of them
 * than the file has room for. And what the file says of return addresses in it: they are in code,
 * and within the function that it describes around them.
 */
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "capture/probe/set_impl.h"
#include "symbol/unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void check(const struct unwind_table *t, struct unwind_rules *rules, size_t file_bytes)
{
	struct kprof_unwind_rule rule;
	size_t next = 0;

	/* Segments may lie over each other in the file, but each has a header there. */
	if (t->counts.text_bytes > file_bytes * (file_bytes / sizeof(Elf32_Phdr)))
		abort();
	for (size_t p = 0; p < t->nr_pages; p++) {
		const struct unwind_page *page = &t->pages[p];

		if (page->nr && page->first != next)
			abort();
		next += page->nr;
		if (next > t->nr_rows)
			abort();
		for (size_t i = page->first + 1; i < next; i++)
			if (t->rows[i].at <= t->rows[i - 1].at)
				abort();
	}
	for (size_t i = 0; i < t->nr_rows; i++)
		if (!unwind_rules__copy(rules, t->rows[i].rule, &rule, 1))
			abort();
	for (uint64_t at = 0; at < t->nr_pages << KPROF_UNWIND_PAGE_BITS; at += 0x33333)
		unwind_table__find(t, (t->first_page << KPROF_UNWIND_PAGE_BITS) + at);
}

static void ask(const struct elffile *e, size_t file_bytes)
{
	size_t checked = 0, left;

	for (size_t at = 0; at <= file_bytes; at += 1 + file_bytes / 256) {
		uint64_t start, end, vaddr = elffile__vaddr(e, at);

		left = return_sites__after_call(e, at, &checked);
		if (!left)
			continue;
		if (!elffile__executable(e, at) ||
		    unwind_function__find(e, vaddr - 1, &start, &end) || start >= vaddr ||
		    end != vaddr + left)
			abort();
	}
}

static void make(const char *path, size_t bytes)
{
	struct unwind_rules *rules = NULL;
	struct unwind_table *table = NULL;
	struct elffile *e;

	if (elffile__open(path, &e))
		return;
	if (!unwind_rules__new(&rules) && !unwind_table__build(e, rules, NULL, &table)) {
		check(table, rules, bytes);
		unwind_table__free(table);
	}
	unwind_rules__free(rules);
	ask(e, bytes);
	elffile__close(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static int fd = -1;
	char path[32];

	if (fd < 0)
		fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, 0) || pwrite(fd, data, bytes, 0) != (ssize_t)bytes)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	make(path, bytes);
	return 0;
}
