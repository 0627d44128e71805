// SPDX-License-Identifier: BSD-2-Clause
/* A file's sections: their headers, and where their content is. */
#include "symbol/elf/priv.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

/* `most`: sections with more bytes are not read. */
static const uint8_t *content(const struct elffile *e, const Elf64_Shdr *section, size_t align,
			      uint64_t most, size_t *bytes)
{
	*bytes = 0;
	/* Only debug information is compressed, and kprof does not read that here. */
	if (section->sh_type == SHT_NOBITS || section->sh_flags & SHF_COMPRESSED ||
	    !section->sh_size || section->sh_size > most || section->sh_offset % align ||
	    !elffile__in_image(e, section->sh_offset, section->sh_size))
		return NULL;
	*bytes = section->sh_size;
	return e->image + section->sh_offset;
}

const void *elffile__content(const struct elffile *e, const Elf64_Shdr *section, size_t align,
			     size_t *bytes)
{
	return content(e, section, align, ELFFILE_NAMES_BYTES_MOST, bytes);
}

static void find_section_names(struct elffile *e, size_t index)
{
	size_t bytes;
	const char *names =
		index < e->nr_sections ? elffile__content(e, &e->sections[index], 1, &bytes) : NULL;

	if (!names || names[bytes - 1])
		return;
	e->section_names = names;
	e->section_names_bytes = bytes;
}

/*
 * Copies the section headers, which may lie unaligned. A file whose headers are damaged or too many
 * has no sections. If their number does not fit the file's header, it is in the first of them
 * (System V ABI, "ELF Header").
 */
int elffile__load_sections(struct elffile *e, const Elf64_Ehdr *h)
{
	size_t nr = h->e_shnum, names = h->e_shstrndx;
	Elf64_Shdr first;

	if (!h->e_shoff || h->e_shentsize != sizeof(first) ||
	    !elffile__in_image(e, h->e_shoff, sizeof(first)))
		return 0;
	memcpy(&first, e->image + h->e_shoff, sizeof(first));
	if (!nr)
		nr = first.sh_size;
	if (names == SHN_XINDEX)
		names = first.sh_link;
	if (nr > ELFFILE_SECTIONS_MOST || !elffile__in_image(e, h->e_shoff, nr * sizeof(first)))
		return 0;
	e->sections = calloc(nr + 1, sizeof(*e->sections));
	if (!e->sections)
		return error_set(-ENOMEM, NULL, "out of memory");
	memcpy(e->sections, e->image + h->e_shoff, nr * sizeof(*e->sections));
	e->nr_sections = nr;
	find_section_names(e, names);
	return 0;
}

/* NULL: there is no section of this name. */
static const Elf64_Shdr *find_section(const struct elffile *e, const char *name)
{
	for (size_t i = 1; e->section_names && i < e->nr_sections; i++) {
		uint32_t at = e->sections[i].sh_name;

		if (at < e->section_names_bytes && !strcmp(e->section_names + at, name))
			return &e->sections[i];
	}
	return NULL;
}

bool elffile__has_section(const struct elffile *e, const char *name)
{
	const Elf64_Shdr *section = find_section(e, name);

	return section && section->sh_type != SHT_NOBITS;
}

bool elffile__in_code_section(const struct elffile *e, uint32_t section, uint64_t vaddr)
{
	const Elf64_Shdr *s = section < e->nr_sections ? &e->sections[section] : NULL;

	return s && s->sh_flags & SHF_EXECINSTR && vaddr - s->sh_addr < s->sh_size;
}

const uint8_t *elffile__section_at(const struct elffile *e, const char *name, size_t *bytes,
				   uint64_t *vaddr)
{
	const Elf64_Shdr *section = find_section(e, name);

	*bytes = 0;
	if (!section)
		return NULL;
	*vaddr = section->sh_addr;
	return content(e, section, 1, ELFFILE_SECTION_BYTES_MOST, bytes);
}

const uint8_t *elffile__section(const struct elffile *e, const char *name, size_t *bytes)
{
	uint64_t vaddr;

	return elffile__section_at(e, name, bytes, &vaddr);
}

bool elffile__needs(const struct elffile *e, bool (*fn)(void *ctx, const char *name), void *ctx)
{
	size_t bytes, names_bytes;
	const uint8_t *dynamic = elffile__section(e, ".dynamic", &bytes);
	const char *names = (const char *)elffile__section(e, ".dynstr", &names_bytes);
	char name[NAME_MAX + 1];
	Elf64_Dyn d;

	if (!dynamic || !names)
		return false;
	if (bytes > ELFFILE_NEEDED_MOST * sizeof(d))
		bytes = ELFFILE_NEEDED_MOST * sizeof(d);
	for (size_t at = 0; at + sizeof(d) <= bytes; at += sizeof(d)) {
		size_t length;

		memcpy(&d, dynamic + at, sizeof(d)); /* it may lie unaligned */
		if (d.d_tag != DT_NEEDED || d.d_un.d_val >= names_bytes)
			continue;
		length = names_bytes - d.d_un.d_val;
		if (length > NAME_MAX)
			length = NAME_MAX;
		length = strnlen(names + d.d_un.d_val, length);
		memcpy(name, names + d.d_un.d_val, length);
		name[length] = '\0';
		if (fn(ctx, name))
			return true;
	}
	return false;
}
