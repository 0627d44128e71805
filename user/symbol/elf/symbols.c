// SPDX-License-Identifier: BSD-2-Clause
/*
 * The symbols of an elffile: walking them, and finding them by name and by address.
 *
 * The tables are walked in place. PyTorch's libraries
 * have half a million symbols with 75 MB of names, so names are not touched before they are needed.
 * Every name table ends in a NUL, which is checked once, so every offset within it is a string.
 */
#include "symbol/elf/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/order.h"

#define VERSYM_HIDDEN 0x8000 /* not the default version of the symbol */
/*
 * A linker makes chains of a handful of symbols. In a hostile file one chain, and one symbol that
 * covers all others, would make each lookup walk the whole table.
 */
#define MOST_CHAIN 256
#define MOST_STEPS 4096

static void load_table(struct elffile *e, const Elf64_Shdr *section, struct elffile_table *out)
{
	const char *names, *last;
	const void *syms;
	size_t bytes, names_bytes;

	if (section->sh_entsize != sizeof(Elf64_Sym) || out->nr ||
	    section->sh_link >= e->nr_sections)
		return;
	syms = elffile__content(e, section, _Alignof(Elf64_Sym), &bytes);
	names = elffile__content(e, &e->sections[section->sh_link], 1, &names_bytes);
	if (!syms || !names)
		return;
	last = memrchr(names, '\0', names_bytes);
	if (!last)
		return;
	out->syms = syms;
	out->nr = bytes / sizeof(Elf64_Sym);
	if (out->nr > ELFFILE_SYMBOLS_MOST)
		out->nr = ELFFILE_SYMBOLS_MOST;
	out->names = names;
	out->names_bytes = (size_t)(last - names) + 1;
}

/*
 * .gnu.hash: four words (buckets, first symbol hashed, words of the bloom filter, its shift), the
 * filter in 64-bit words, the buckets, a chain word per hashed symbol. The filter only saves time
 * when a name is absent; it is not used here.
 */
static void load_gnu_hash(const struct elffile *e, const Elf64_Shdr *section,
			  struct elf_gnu_hash *out)
{
	size_t bytes, words, filter_words;
	const uint32_t *word = elffile__content(e, section, _Alignof(uint32_t), &bytes);

	words = bytes / sizeof(*word);
	if (!word || words < 4)
		return;
	filter_words = (size_t)word[2] * 2;
	if (filter_words > words - 4 || word[0] > words - 4 - filter_words)
		return;
	out->nr_buckets = word[0];
	out->first_symbol = word[1];
	out->buckets = word + 4 + filter_words;
	out->chain = out->buckets + out->nr_buckets;
	out->nr_chain = (uint32_t)(words - 4 - filter_words - out->nr_buckets);
}

void elffile__find_symbols(struct elffile *e)
{
	const uint16_t *versions = NULL;
	size_t versions_bytes = 0;

	for (size_t i = 1; i < e->nr_sections; i++) {
		const Elf64_Shdr *section = &e->sections[i];

		switch (section->sh_type) {
		case SHT_SYMTAB:
			load_table(e, section, &e->full);
			break;
		case SHT_DYNSYM:
			load_table(e, section, &e->dyn);
			break;
		case SHT_GNU_HASH:
			load_gnu_hash(e, section, &e->hash);
			break;
		case SHT_GNU_verdef:
			e->defines_versions = true;
			break;
		case SHT_GNU_versym:
			versions =
				elffile__content(e, section, _Alignof(uint16_t), &versions_bytes);
			break;
		default:
			break;
		}
	}
	if (versions_bytes / sizeof(*versions) >= e->dyn.nr)
		e->versions = versions;
}

const struct elffile_table *elffile__table(const struct elffile *e, bool dynamic)
{
	return dynamic ? &e->dyn : &e->full;
}

bool elffile__has_symtab(const struct elffile *e)
{
	return e->full.nr > 0;
}

static const char *symbol_name(const struct elffile_table *t, const Elf64_Sym *sym)
{
	return sym->st_name < t->names_bytes ? t->names + sym->st_name : "";
}

/* Whether the symbol is defined at an address in this file. */
static bool is_defined(const Elf64_Sym *sym)
{
	switch (ELF64_ST_TYPE(sym->st_info)) {
	case STT_SECTION:
	case STT_FILE:
	case STT_TLS: /* an offset into each thread's block, not an address */
		return false;
	default:
		return sym->st_name && sym->st_shndx != SHN_UNDEF && sym->st_shndx != SHN_ABS &&
		       sym->st_shndx != SHN_COMMON;
	}
}

static bool is_function(const Elf64_Sym *sym)
{
	unsigned int type = ELF64_ST_TYPE(sym->st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (const unsigned char *p = (const unsigned char *)name; *p; p++)
		h = h * 33 + *p;
	return h;
}

/*
 * Finds the default version of a name, or else any version. NULL: .dynsym does not define the name.
 */
static const Elf64_Sym *dynsym_by_hash(const struct elffile *e, const char *name)
{
	const struct elf_gnu_hash *t = &e->hash;
	const Elf64_Sym *found = NULL;
	uint32_t hash = gnu_hash(name), at, end;

	at = t->buckets[hash % t->nr_buckets];
	if (at < t->first_symbol)
		return NULL;
	end = at < UINT32_MAX - MOST_CHAIN ? at + MOST_CHAIN : UINT32_MAX;
	for (; at < end && at < e->dyn.nr && at - t->first_symbol < t->nr_chain; at++) {
		uint32_t link = t->chain[at - t->first_symbol];
		const Elf64_Sym *sym = &e->dyn.syms[at];

		/* The chain's last word has bit 0 set; the other bits are the hash. */
		if ((link | 1) == (hash | 1) && is_defined(sym) &&
		    !strcmp(symbol_name(&e->dyn, sym), name)) {
			if (!e->versions || !(e->versions[at] & VERSYM_HIDDEN))
				return sym;
			if (!found)
				found = sym;
		}
		if (link & 1)
			break;
	}
	return found;
}

static const Elf64_Sym *table_by_name(const struct elffile_table *t, const char *name)
{
	for (size_t i = 0; i < t->nr; i++) {
		if (is_defined(&t->syms[i]) && !strcmp(symbol_name(t, &t->syms[i]), name))
			return &t->syms[i];
	}
	return NULL;
}

static const Elf64_Sym *dynsym_by_name(const struct elffile *e, const char *name)
{
	return e->hash.nr_buckets ? dynsym_by_hash(e, name) : table_by_name(&e->dyn, name);
}

static const struct elffile_table *walked_table(const struct elffile *e)
{
	return e->full.nr ? &e->full : &e->dyn;
}

/*
 * Whether a symbol of .symtab is missing in .dynsym. For a shared library, binding and visibility
 * decide: a linker exports every global symbol that is not hidden. A program exports only a few, so
 * its symbols are looked up.
 */
static bool is_local(const struct elffile *e, const Elf64_Sym *sym, const char *name)
{
	unsigned int visibility = ELF64_ST_VISIBILITY(sym->st_other);

	if (ELF64_ST_BIND(sym->st_info) == STB_LOCAL || visibility == STV_HIDDEN ||
	    visibility == STV_INTERNAL || !e->dyn.nr ||
	    strnlen(name, ELFFILE_NAME_MOST) == ELFFILE_NAME_MOST)
		return true;
	/* Without a hash table, this would be a walk for each symbol. */
	if (!e->hash.nr_buckets && e->dyn.nr > MOST_STEPS)
		return true;
	return e->executable && !dynsym_by_name(e, name);
}

/*
 * Fills `out` from a symbol. In .symtab, versioned names contain the version ("memcpy@@GLIBC_2.14",
 * and "stdout@GLIBC_2.2.5" in programs); buf receives the name without it, if there is room.
 */
static void describe(const struct elffile *e, const struct elffile_table *t, const Elf64_Sym *sym,
		     char *buf, size_t buf_bytes, struct elffile_symbol *out)
{
	out->name = symbol_name(t, sym);
	out->vaddr = sym->st_value;
	out->size = sym->st_size;
	out->function = is_function(sym);
	out->local = false;
	if (t == &e->dyn)
		return;
	if ((e->defines_versions || e->executable) && ELF64_ST_BIND(sym->st_info) != STB_LOCAL) {
		const char *version = memchr(out->name, '@', strnlen(out->name, buf_bytes));
		size_t len = version ? (size_t)(version - out->name) : 0;

		if (version && len && len < buf_bytes) {
			memcpy(buf, out->name, len);
			buf[len] = '\0';
			out->name = buf;
		}
	}
	out->local = is_local(e, sym, out->name);
}

int elffile__symbols(const struct elffile *e, int (*fn)(void *ctx, const struct elffile_symbol *s),
		     void *ctx)
{
	const struct elffile_table *t = walked_table(e);
	struct elffile_symbol symbol;
	char buf[256];

	for (size_t i = 0; i < t->nr; i++) {
		int err;

		if (!is_defined(&t->syms[i]))
			continue;
		describe(e, t, &t->syms[i], buf, sizeof(buf), &symbol);
		err = fn(ctx, &symbol);
		if (err)
			return err;
	}
	return 0;
}

bool elffile__exports(const struct elffile *e, const char *name)
{
	const Elf64_Sym *sym = dynsym_by_name(e, name);

	return sym && is_function(sym);
}

int elffile__symbol(const struct elffile *e, const char *name, struct elffile_symbol *out)
{
	const Elf64_Sym *sym = dynsym_by_name(e, name);
	const struct elffile_table *t = &e->dyn;

	if (!sym) {
		t = &e->full;
		sym = table_by_name(t, name);
	}
	if (!sym)
		return -ENOENT;
	describe(e, t, sym, NULL, 0, out);
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct elf_index_entry *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->symbol < y->symbol ? -1 : x->symbol > y->symbol;
}

static int build_index(struct elffile *e)
{
	const struct elffile_table *t = walked_table(e);
	uint64_t max_end = 0;
	size_t nr = 0;

	for (size_t i = 0; i < t->nr; i++)
		nr += is_defined(&t->syms[i]) && is_function(&t->syms[i]);
	e->index = calloc(nr + 1, sizeof(*e->index));
	if (!e->index)
		return error_set(-ENOMEM, NULL, "out of memory");
	for (size_t i = 0; i < t->nr; i++) {
		if (is_defined(&t->syms[i]) && is_function(&t->syms[i]))
			e->index[e->nr_index++] = (struct elf_index_entry){
				.vaddr = t->syms[i].st_value, .symbol = (uint32_t)i};
	}
	qsort(e->index, e->nr_index, sizeof(*e->index), compare_entries);
	for (size_t i = 0; i < e->nr_index; i++) {
		const Elf64_Sym *sym = &t->syms[e->index[i].symbol];
		uint64_t end = sym->st_value + sym->st_size;

		if (end >= sym->st_value && end > max_end)
			max_end = end;
		e->index[i].max_end = max_end;
	}
	return 0;
}

/*
 * Finds the innermost symbol that covers the address, and among several at one place the one that
 * is not local. A symbol without a size (assembly) extends to the next symbol.
 */
int elffile__symbol_at(struct elffile *e, uint64_t vaddr, struct elffile_symbol *out)
{
	const struct elffile_table *t = walked_table(e);
	const Elf64_Sym *found = NULL;
	size_t upto, end, i;

	if (!e->index) {
		int err = build_index(e);

		if (err)
			return err;
	}
	upto = ORDER_UPTO(e->index, e->nr_index, vaddr, vaddr);
	end = upto > MOST_STEPS ? upto - MOST_STEPS : 0;
	for (i = upto; i-- > end;) {
		const Elf64_Sym *sym = &t->syms[e->index[i].symbol];
		bool last = e->index[i].vaddr == e->index[upto - 1].vaddr;

		if (found && sym->st_value != found->st_value)
			break;
		if (vaddr - sym->st_value < sym->st_size || (!sym->st_size && last)) {
			if (!found || ELF64_ST_BIND(found->st_info) == STB_LOCAL ||
			    ELF64_ST_BIND(sym->st_info) != STB_LOCAL)
				found = sym;
		} else if (!found && !last && e->index[i].max_end <= vaddr) {
			break;
		}
	}
	/* An address outside of all segments belongs to no symbol, even to one without a size. */
	if (!found || elffile__offset(e, vaddr) == UINT64_MAX)
		return -ENOENT;
	describe(e, t, found, e->name_at, sizeof(e->name_at), out);
	return 0;
}
