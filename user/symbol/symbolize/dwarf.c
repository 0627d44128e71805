// SPDX-License-Identifier: BSD-2-Clause
/*
 * Source lines and inlined functions, from DWARF 2 to 5 (DWARF 5, sections 2.17, 3.3 and 6.2).
 * Compilation units are walked once, in order; within each, only functions that contain one of the
 * addresses are read.
 *
 * This runs in a process of its own (child.c).
 */
#include "symbol/symbolize/priv.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "util/order.h"

#define MAX_DEPTH 256 /* of nested blocks and functions */

/*
 * The functions around an address: first the function itself, then those inlined, the outermost
 * first.
 */
struct chain {
	Dwarf_Die dies[SYMBOL_MAX_INLINES];
	uint32_t nr;
};

/* An address that is asked for, and lies in the unit. */
struct hit {
	uint64_t vaddr;
	size_t number; /* of its chain */
};

struct hits {
	struct hit *all; /* sorted by vaddr */
	size_t nr;
};

struct reading {
	const struct symbol_file *file;
	Dwarf_Die unit;
	Dwarf_Files *sources;
	size_t nr_sources;
	struct hits hits; /* all of this unit */
	struct chain *chains;
	struct symbol_strings strings;
	int fd;
};

/* ---- finding the functions that contain addresses ---- */

static int compare_hits(const void *a, const void *b)
{
	return order_u64(((const struct hit *)a)->vaddr, ((const struct hit *)b)->vaddr);
}

/* Sorts and removes duplicates, which overlapping ranges cause. */
static void sort_hits(struct hits *h)
{
	size_t nr = 0;

	qsort(h->all, h->nr, sizeof(*h->all), compare_hits);
	for (size_t i = 0; i < h->nr; i++) {
		if (!nr || h->all[nr - 1].vaddr != h->all[i].vaddr)
			h->all[nr++] = h->all[i];
	}
	h->nr = nr;
}

/*
 * The part of `of` that is in the ranges of this entry. Ranges can be in any order: the cold part
 * of a function may come first.
 */
static struct hits hits_inside(Dwarf_Die *die, const struct hits *of)
{
	struct hits in = {0};
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;
	bool sorted = true;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		for (size_t i = ORDER_LOWER(of->all, of->nr, vaddr, start);
		     i < of->nr && of->all[i].vaddr < end; i++) {
			if (!in.all)
				in.all = calloc(of->nr, sizeof(*in.all));
			if (!in.all || in.nr == of->nr)
				break;
			sorted = sorted && (!in.nr || in.all[in.nr - 1].vaddr < of->all[i].vaddr);
			in.all[in.nr++] = of->all[i];
		}
	}
	if (!sorted)
		sort_hits(&in);
	return in;
}

static void enter(struct reading *r, const struct hits *h, Dwarf_Die *die, bool inlined)
{
	for (size_t i = 0; i < h->nr; i++) {
		struct chain *c = &r->chains[h->all[i].number];

		if (!inlined)
			c->nr = 0; /* a nested function is a function of its own */
		if (c->nr < SYMBOL_MAX_INLINES)
			c->dies[c->nr++] = *die;
	}
}

/* Visits an entry's children, and their children, as far as they contain addresses. */
static void descend(struct reading *r, Dwarf_Die *parent, const struct hits *h, unsigned int depth)
{
	Dwarf_Die die;
	struct hits in;

	if (depth > MAX_DEPTH || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);

		switch (tag) {
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
			in = hits_inside(&die, h);
			if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine)
				enter(r, &in, &die, tag == DW_TAG_inlined_subroutine);
			if (in.nr)
				descend(r, &die, &in, depth + 1);
			free(in.all);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_enumeration_type: /* in Rust, all of these can contain functions */
			descend(r, &die, h, depth + 1);
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* ---- names and lines ---- */

static const char *keep(struct reading *r, const char *text)
{
	const char *kept = text ? symbol_strings__add(&r->strings, text, strlen(text)) : NULL;

	return kept ? kept : "";
}

static const char *function_name(struct reading *r, Dwarf_Die *die)
{
	static const unsigned int names[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name,
					     DW_AT_name};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		Dwarf_Attribute attr;
		const char *name = NULL;

		if (dwarf_attr_integrate(die, names[i], &attr))
			name = dwarf_formstring(&attr);
		if (name && *name)
			return keep(r, name);
	}
	return "";
}

static void call_place(struct reading *r, Dwarf_Die *die, struct symbol_line *to)
{
	Dwarf_Attribute attr;
	Dwarf_Word number;

	if (dwarf_attr(die, DW_AT_call_file, &attr) && !dwarf_formudata(&attr, &number) &&
	    r->sources && number < r->nr_sources)
		to->file = keep(r, dwarf_filesrc(r->sources, number, NULL, NULL));
	if (dwarf_attr(die, DW_AT_call_line, &attr) && !dwarf_formudata(&attr, &number) &&
	    number <= INT32_MAX)
		to->line = (uint32_t)number;
}

/*
 * Writes the lines of one address, and returns their number. The function is "" where the unit has
 * no entry for it. 0: there is not even a line.
 */
static uint32_t lines_of(struct reading *r, size_t number, struct symbol_line *to)
{
	struct chain *c = &r->chains[number];
	Dwarf_Line *line = dwarf_getsrc_die(&r->unit, r->hits.all[number].vaddr);
	uint32_t nr = c->nr ? c->nr : 1;
	int lineno = 0;

	for (uint32_t i = 0; i < nr; i++)
		to[i] = (struct symbol_line){.function = "", .file = ""};
	if (line) {
		to[0].file = keep(r, dwarf_linesrc(line, NULL, NULL));
		if (!dwarf_lineno(line, &lineno) && lineno > 0)
			to[0].line = (uint32_t)lineno;
	}
	for (uint32_t i = 0; i < c->nr; i++) {
		Dwarf_Die *die = &c->dies[c->nr - 1 - i];

		to[i].function = function_name(r, die);
		/* the line of the next function is the place where this one was inlined */
		if (i + 1 < c->nr)
			call_place(r, die, &to[i + 1]);
	}
	return c->nr || line ? nr : 0;
}

/* ---- units ---- */

static int write_unit(struct reading *r)
{
	struct symbol_knowns k = {.all = calloc(r->hits.nr, sizeof(*k.all))};
	uint32_t length;
	size_t bytes = 0;
	char *blob;
	bool done;

	for (size_t i = 0; k.all && i < r->hits.nr; i++) {
		struct symbol_line lines[SYMBOL_MAX_INLINES], *kept;
		uint32_t nr = lines_of(r, i, lines);

		if (!nr)
			continue;
		kept = symbol_strings__room(&r->strings, nr * sizeof(*kept));
		if (!kept) {
			free(k.all);
			return -ENOMEM;
		}
		memcpy(kept, lines, nr * sizeof(*kept));
		k.all[k.nr++] = (struct symbol_known){r->hits.all[i].vaddr, kept, nr};
	}
	blob = k.nr ? symbol_blob__pack(&k, 0, &bytes) : NULL;
	length = (uint32_t)bytes;
	done = !k.nr ||
	       (blob && write_all(r->fd, &length, sizeof(length)) && write_all(r->fd, blob, bytes));
	free(blob);
	free(k.all);
	return done ? 0 : -EIO;
}

/*
 * Collects the addresses that are in the unit. A range that is not in code is of a function that
 * the linker has removed.
 */
static void find_hits(struct reading *r, Dwarf_Die *unit)
{
	const struct symbol_file *f = r->file;
	struct hits *h = &r->hits;
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	h->nr = 0;
	while ((at = dwarf_ranges(unit, at, &base, &start, &end)) > 0) {
		size_t i;

		if (start >= end || !elffile__is_code(f->elf, start))
			continue;
		for (i = ORDER_LOWER(f->queries, f->nr_queries, vaddr, start);
		     i < f->nr_queries && f->queries[i].vaddr < end && h->nr < f->nr_queries; i++)
			h->all[h->nr++].vaddr = f->queries[i].vaddr;
	}
	sort_hits(h);
	for (size_t i = 0; i < h->nr; i++)
		h->all[i].number = i;
}

static int read_unit(struct reading *r, Dwarf_Die *unit)
{
	int err = -ENOMEM;

	find_hits(r, unit);
	if (!r->hits.nr)
		return 0;
	r->chains = calloc(r->hits.nr, sizeof(*r->chains));
	r->unit = *unit;
	if (dwarf_getsrcfiles(unit, &r->sources, &r->nr_sources))
		r->sources = NULL;
	if (r->chains) {
		descend(r, unit, &r->hits, 0);
		err = write_unit(r);
	}
	symbol_strings__free(&r->strings);
	free(r->chains);
	return err;
}

/*
 * libelf changes section headers when it unpacks compressed sections. Their pages are replaced by
 * copies, which are this process's own.
 */
static void own_section_headers(uint8_t *image, size_t bytes)
{
	const Elf64_Ehdr *h = (const Elf64_Ehdr *)image;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t from, to, nr;
	void *copy;

	if (bytes < sizeof(*h) || h->e_shoff > bytes - sizeof(Elf64_Shdr))
		return;
	nr = h->e_shnum ? h->e_shnum : ELFFILE_SECTIONS_MOST;
	from = h->e_shoff / page * page;
	to = (h->e_shoff + nr * sizeof(Elf64_Shdr) + page - 1) / page * page;
	if (to > bytes)
		to = bytes;
	copy = malloc(to - from);
	if (!copy)
		return;
	memcpy(copy, image + from, to - from);
	if (mmap(image + from, to - from, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED)
		memcpy(image + from, copy, to - from);
	free(copy);
}

static Dwarf *open_dwarf(const struct elffile *debug, int fd)
{
	Dwarf *dw = NULL;

	elf_version(EV_CURRENT);
	/*
	 * From the descriptor, libdw knows the file's path, and so finds the file to which dwz has
	 * moved common parts.
	 */
	if (fd >= 0)
		dw = dwarf_begin(fd, DWARF_C_READ);
	if (!dw) {
		size_t bytes;
		void *image = (void *)(uintptr_t)elffile__bytes(debug, 0, SIZE_MAX, &bytes);
		Elf *elf;

		own_section_headers(image, bytes);
		elf = elf_memory(image, bytes);

		dw = elf ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	}
	return dw;
}

int symbol_dwarf__write(const struct symbol_file *f, const struct elffile *debug, int debug_fd,
			int fd)
{
	struct reading r = {.file = f, .fd = fd};
	Dwarf *dw = open_dwarf(debug, debug_fd);
	Dwarf_CU *unit = NULL;
	Dwarf_Die die, sub;
	uint8_t type;
	int more = -1, err = 0;

	r.hits.all = calloc(f->nr_queries, sizeof(*r.hits.all));
	if (!dw || !r.hits.all)
		err = -EBADMSG;
	while (!err && (more = dwarf_get_units(dw, unit, &unit, NULL, &type, &die, &sub)) == 0) {
		if (type == DW_UT_skeleton && dwarf_tag(&sub) != DW_TAG_invalid)
			die = sub; /* split DWARF whose other half was found */
		if (dwarf_tag(&die) == DW_TAG_compile_unit)
			err = read_unit(&r, &die);
	}
	free(r.hits.all);
	return err ? err : more < 0 ? -EBADMSG : 0;
}
