// SPDX-License-Identifier: BSD-2-Clause
/* What the kernel calls an address, against its own list of symbols, read here line by line. */
#include "capture/unwind/unwind.h"

#include <stdio.h>
#include <unistd.h>

#include "kprof.h"
#include "unit.h"

#define STEP 401 /* symbols of which one is asked for */

struct symbol {
	uint64_t address;
	char type, name[256]; /* with " [module]" */
};

static struct symbol *symbols;
static size_t nr_symbols;

/* False: the kernel shows none. */
static bool read_list(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[1024], module[61];
	size_t cap = 0;

	while (f && fgets(line, sizeof(line), f)) {
		struct symbol s;
		unsigned long long address;
		int words =
			sscanf(line, "%llx %c %180s [%60[^]]", &address, &s.type, s.name, module);

		if (words < 3)
			continue;
		s.address = address;
		if (words == 4)
			snprintf(s.name + strlen(s.name), 70, " [%s]", module);
		if (nr_symbols == cap) {
			cap = cap ? cap * 2 : 65536;
			symbols = realloc(symbols, cap * sizeof(*symbols));
			if (!symbols)
				abort();
		}
		symbols[nr_symbols++] = s;
	}
	if (f)
		fclose(f);
	return nr_symbols && symbols[nr_symbols / 2].address;
}

static bool is_called(uint64_t address, const char *name)
{
	for (size_t i = 0; i < nr_symbols; i++)
		if (symbols[i].address == address && !strcmp(symbols[i].name, name))
			return true;
	return false;
}

/*
 * BPF programs come and go, also of others: what is no longer in the list has no name that could be
 * asked for.
 */
static bool is_still_there(const struct symbol *s)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[1024], name[256];
	unsigned long long address;
	bool found = false;

	while (f && !found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%llx %*c %180s", &address, name) == 2 &&
			address == s->address && !strncmp(name, s->name, strcspn(s->name, " ")) &&
			strlen(name) == strcspn(s->name, " ");
	if (f)
		fclose(f);
	return found;
}

/* Functions' own addresses: of several names of one place any will do. */
static void check_names(struct ksyms *k)
{
	size_t asked = 0, named = 0;
	char name[300];

	for (size_t i = 0; i < nr_symbols; i++) {
		const struct symbol *s = &symbols[i];

		if (!strchr("tT", s->type) || asked++ % STEP)
			continue;
		if (!ksyms__name(k, s->address, name, sizeof(name)))
			continue; /* the end of the text, and what is in pages that are gone */
		if (!is_called(s->address, name) && is_still_there(s)) {
			printf("# %#llx: %s, not %s\n", (unsigned long long)s->address, name,
			       s->name);
			CHECK(!"the same name");
		}
		named++;
	}
	asked = (asked + STEP - 1) / STEP;
	CHECK(asked > 50);
	CHECK(named > asked * 9 / 10);
}

static void asked_and_listed(void)
{
	struct ksyms *k = NULL;
	char name[300];

	if (!read_list()) {
		printf("# the kernel shows no addresses here\n");
		return;
	}
	for (int list = 0; list < 2; list++) {
		CHECK_EQ(ksyms__new(list, &k), 0);
		if (!k)
			return;
		check_names(k);
		CHECK(!ksyms__name(k, 0, name, sizeof(name)));
		CHECK(!ksyms__name(k, 4096, name, sizeof(name)));
		CHECK(!ksyms__name(k, (uint64_t)(uintptr_t)name, name, sizeof(name)));
		CHECK(!ksyms__name(k, UINT64_MAX, name, sizeof(name)));
		ksyms__free(k);
		k = NULL;
	}
	free(symbols);
}

UNIT_MAIN(TEST(asked_and_listed))
