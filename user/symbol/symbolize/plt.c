// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names stubs of the procedure linkage table. No symbol names them, but the relocation of the slot
 * that they jump through does.
 *
 * A stub has 8 or 16 bytes, with every linker: an optional endbr64, then a jump through a slot of
 * the GOT ("bnd jmp *slot(%rip)" or without bnd). The lazy half of a split table pushes the
 * relocation's number instead (System V ABI for x86-64, section 5.2; its CET extension for
 * .plt.sec).
 */
#include "symbol/symbolize/priv.h"

#include <stdlib.h>
#include <string.h>

#include "util/order.h"

struct stub {
	uint64_t slot; /* vaddr in the GOT */
	struct symbol_query *query;
	bool named;
};

struct stubs {
	struct stub *all; /* sorted by slot */
	size_t nr, left;
};

static int32_t int32_at(const uint8_t *code)
{
	int32_t v;

	memcpy(&v, code, sizeof(v));
	return v;
}

/* Finds a table of relocations by its section's name. NULL: there is none in the file. */
static const Elf64_Rela *relocations(const struct elffile *e, const char *name, size_t *nr)
{
	size_t bytes;
	const uint8_t *section = elffile__section(e, name, &bytes);

	*nr = bytes / sizeof(Elf64_Rela);
	return section && (uintptr_t)section % _Alignof(Elf64_Rela) == 0 ? (const void *)section
									 : NULL;
}

static bool has_endbr(const uint8_t *code, size_t bytes)
{
	return bytes >= 4 && !memcmp(code, "\xf3\x0f\x1e\xfa", 4);
}

/* The vaddr of the slot that the stub jumps through; 0: not recognized. */
static uint64_t slot_of_stub(const struct elffile *e, const uint8_t *code, size_t bytes,
			     uint64_t vaddr)
{
	size_t at = has_endbr(code, bytes) ? 4 : 0;

	if (at < bytes && code[at] == 0xf2) /* bnd */
		at++;
	if (bytes - at >= 6 && code[at] == 0xff && code[at + 1] == 0x25)
		return vaddr + at + 6 + (uint64_t)(int64_t)int32_at(code + at + 2);
	if (bytes - at >= 5 && code[at] == 0x68) { /* push the number of a relocation */
		size_t nr;
		const Elf64_Rela *rela = relocations(e, ".rela.plt", &nr);
		uint32_t number = (uint32_t)int32_at(code + at + 1);

		if (rela && number < nr)
			return rela[number].r_offset;
	}
	return 0;
}

static void add_stubs(const struct elffile *e, const char *section, size_t stub_bytes,
		      struct symbol_query *queries, size_t nr, struct stubs *stubs)
{
	uint64_t start;
	size_t bytes;
	const uint8_t *code = elffile__section_at(e, section, &bytes, &start);

	if (!code)
		return;
	if (has_endbr(code, bytes))
		stub_bytes = 16;
	for (size_t i = ORDER_LOWER(queries, nr, vaddr, start);
	     i < nr && queries[i].vaddr - start < bytes; i++) {
		size_t at = (queries[i].vaddr - start) / stub_bytes * stub_bytes;
		size_t left = bytes - at < stub_bytes ? bytes - at : stub_bytes;
		uint64_t slot = slot_of_stub(e, code + at, left, start + at);

		if (slot)
			stubs->all[stubs->nr++] = (struct stub){.slot = slot, .query = &queries[i]};
	}
}

static int compare_stubs(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static const char *relocated_name(const struct elffile *e, const Elf64_Rela *rela)
{
	const struct elffile_table *t = elffile__table(e, true);
	size_t symbol = ELF64_R_SYM(rela->r_info);
	const Elf64_Sym *sym;

	switch (ELF64_R_TYPE(rela->r_info)) {
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
	case R_X86_64_64:
		break;
	default:
		return NULL;
	}
	if (!symbol || symbol >= t->nr)
		return NULL;
	sym = &t->syms[symbol];
	return sym->st_name && sym->st_name < t->names_bytes ? t->names + sym->st_name : NULL;
}

static void name_stubs(const struct elffile *e, const char *section, struct stubs *stubs)
{
	size_t nr;
	const Elf64_Rela *rela = relocations(e, section, &nr);

	for (size_t i = 0; rela && i < nr && stubs->left; i++) {
		const char *name = relocated_name(e, &rela[i]);
		size_t low = name ? ORDER_LOWER(stubs->all, stubs->nr, slot, rela[i].r_offset) : 0;

		/*
		 * The first relocation of a slot names all stubs of the slot, which are then
		 * skipped: no table makes this loop long.
		 */
		for (; name && low < stubs->nr && stubs->all[low].slot == rela[i].r_offset &&
		       !stubs->all[low].named;
		     low++) {
			stubs->all[low].named = true;
			stubs->all[low].query->stub = name;
			stubs->left--;
		}
	}
}

void symbol_plt__scan(const struct elffile *e, struct symbol_query *queries, size_t nr)
{
	/*
	 * An address is in one section only, unless the file is damaged: this has room for all
	 * three.
	 */
	struct stubs stubs = {.all = calloc(nr ? 3 * nr : 1, sizeof(*stubs.all))};

	if (!stubs.all)
		return;
	add_stubs(e, ".plt", 16, queries, nr, &stubs);
	add_stubs(e, ".plt.sec", 16, queries, nr, &stubs);
	add_stubs(e, ".plt.got", 8, queries, nr, &stubs);
	if (stubs.nr) {
		qsort(stubs.all, stubs.nr, sizeof(*stubs.all), compare_stubs);
		stubs.left = stubs.nr;
		name_stubs(e, ".rela.plt", &stubs);
		name_stubs(e, ".rela.dyn", &stubs);
	}
	free(stubs.all);
}
