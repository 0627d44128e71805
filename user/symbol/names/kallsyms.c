// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads /proc/kallsyms: lines "ffffffff81000000 T _text" and "ffffffffc0000000 t name\t[module]",
 * in no order (kernel/kallsyms.c).
 */
#include "symbol/names/names.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

#define MAX_BYTES (128u << 20) /* ten times the size with all modules of a kernel */

struct entry {
	uint64_t address;
	uint32_t name, module; /* offsets in .text */
	uint32_t order;        /* position in the file */
	bool code;
};

struct kallsyms {
	char *text;
	/* by address; of several at one address, the last one is the one to show */
	struct entry *entries;
	size_t nr, cap;
};

/* ---- reading ---- */

/*
 * Whether the symbol can be the end of a function: symbols of code, and those like "_etext", where
 * the code ends.
 */
static bool is_code(char type, const char *name)
{
	static const char *const ends[] = {"_etext", "_einittext", "__entry_text_end", "_end"};

	if (!strchr("tTwW", type))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		if (!strcmp(name, ends[i]))
			return false;
	}
	return true;
}

/* Terminates a word by a NUL and returns what follows it. */
static char *cut(char *word)
{
	word += strcspn(word, " \t");
	if (*word)
		*word++ = '\0';
	return word + strspn(word, " \t");
}

static int add_line(struct kallsyms *k, char *line)
{
	char *type, *name, *module, *end;
	struct entry e = {.order = (uint32_t)k->nr};

	errno = 0;
	e.address = strtoull(line, &end, 16);
	if (errno || end == line || *end != ' ' || !isxdigit((unsigned char)*line))
		return 0;
	type = cut(line);
	name = cut(type);
	module = cut(name);
	cut(module);
	if (!type[0] || type[1] || !*name)
		return 0;
	if (*module == '[')
		module++;
	module[strcspn(module, "]")] = '\0';
	e.name = (uint32_t)(name - k->text);
	e.module = (uint32_t)(module - k->text);
	e.code = is_code(type[0], name);
	if (vec_grow((void **)&k->entries, &k->cap, k->nr, sizeof(e)))
		return error_set(-ENOMEM, NULL, "no memory for the kernel's symbols");
	k->entries[k->nr++] = e;
	return 0;
}

static int parse(struct kallsyms *k)
{
	char *line = k->text, *next;
	int err = 0;

	for (; *line && !err; line = next) {
		next = line + strcspn(line, "\n");
		if (*next)
			*next++ = '\0';
		err = add_line(k, line);
	}
	return err;
}

static size_t underscores(const char *name)
{
	return strspn(name, "_");
}

/*
 * Orders by address. Of several at one address, the one to show comes last: code before data, then
 * fewest underscores, then the first in the file.
 */
static int compare(const void *a, const void *b, void *ctx)
{
	const struct entry *x = a, *y = b;
	const struct kallsyms *k = ctx;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->code != y->code)
		return x->code ? 1 : -1;
	if (underscores(k->text + x->name) != underscores(k->text + y->name))
		return underscores(k->text + x->name) > underscores(k->text + y->name) ? -1 : 1;
	return x->order > y->order ? -1 : x->order < y->order;
}

static int check_shown(const struct kallsyms *k)
{
	for (size_t i = 0; i < k->nr; i++) {
		if (k->entries[i].address)
			return 0;
	}
	return error_set_machine(-EACCES, "run as root, or allow it: sysctl kernel.kptr_restrict=0",
				 "the kernel hides the addresses of its functions");
}

int kallsyms__load(const char *path, struct kallsyms **out)
{
	struct kallsyms *k = calloc(1, sizeof(*k));
	int err;

	*out = NULL;
	if (!k)
		return error_set(-ENOMEM, NULL, "no memory for the kernel's symbols");
	path = path ? path : "/proc/kallsyms";
	err = read_file(path, MAX_BYTES, &k->text, NULL);
	if (err) {
		free(k);
		return error_set(err, NULL, "cannot read %s: %s", path, strerror(-err));
	}
	err = parse(k);
	if (!err)
		err = check_shown(k);
	if (!err && k->nr)
		qsort_r(k->entries, k->nr, sizeof(*k->entries), compare, k);
	if (err)
		kallsyms__free(k);
	else
		*out = k;
	return err;
}

void kallsyms__free(struct kallsyms *k)
{
	if (!k)
		return;
	free(k->entries);
	free(k->text);
	free(k);
}

/* ---- finding ---- */

int kallsyms__find(const struct kallsyms *k, uint64_t address, struct kallsyms_symbol *out)
{
	size_t low = ORDER_UPTO(k->entries, k->nr, address, address);
	const struct entry *e;

	/* The end of the last symbol is not known. */
	if (!low || low == k->nr)
		return -ENOENT;
	e = &k->entries[low - 1];
	/* Per-CPU variables have small numbers as addresses; no code is above them. */
	if (!e->code || !e->address)
		return -ENOENT;
	*out = (struct kallsyms_symbol){k->text + e->name, k->text + e->module, e->address};
	return 0;
}
