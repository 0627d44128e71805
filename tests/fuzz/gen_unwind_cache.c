// SPDX-License-Identifier: BSD-2-Clause
/*
 * The corpus of fuzz_unwind_cache: tables made by hand, small ones and one with every kind of rule.
 */
#include <stdio.h>
#include <stdlib.h>

#include "symbol/unwind/priv.h"

static void write_table(const char *folder, const char *name, size_t nr_pages, size_t nr_each,
			size_t nr_rules)
{
	struct unwind_table t = {.first_page = 3, .nr_pages = nr_pages};
	struct unwind_rules *rules;
	char path[4096], *blob;
	size_t bytes;
	FILE *f;

	t.pages = calloc(nr_pages, sizeof(*t.pages));
	t.rows = calloc(nr_pages * nr_each, sizeof(*t.rows));
	if (!t.pages || !t.rows || unwind_rules__new(&rules))
		abort();
	for (size_t i = 0; i < nr_pages * nr_each; i++) {
		size_t n = i % nr_rules;
		struct kprof_unwind_rule rule = {
			.how = (kprof_u8)(n < 4    ? n
					  : n < 10 ? n + 1
						   : KPROF_UNWIND_REGISTER + n % 16),
			.cfa = (kprof_s32)(8 * n),
			.bp = -16,
			.regs = (kprof_u8)(n % 16),
		};

		t.rows[i].at = (kprof_u16)(i % nr_each * 37);
		t.rows[i].rule = (kprof_u16)unwind_rules__intern(rules, &rule);
		t.pages[i / nr_each].first = (uint32_t)(i / nr_each * nr_each);
		t.pages[i / nr_each].nr++;
		t.nr_rows++;
	}
	blob = unwind_blob__pack(&t, rules, 7, &bytes);
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "wb");
	if (!blob || !f || fwrite(blob, 1, bytes, f) != bytes || fclose(f))
		abort();
	free(blob);
	free(t.pages);
	free(t.rows);
	unwind_rules__free(rules);
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	write_table(argv[1], "one-row", 1, 1, 1);
	write_table(argv[1], "a-page", 1, 40, 7);
	write_table(argv[1], "pages", 5, 30, 30);
	return 0;
}
