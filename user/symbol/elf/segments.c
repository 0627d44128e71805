// SPDX-License-Identifier: BSD-2-Clause
/* A file's segments: where its addresses are in the file, and its build id and interpreter. */
#include "symbol/elf/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

#define ELF_PAGE_BYTES 4096
#define MOST_SEGMENTS 1024 /* each lookup walks all of them; real files have a dozen */

static int read_headers(struct elffile *e)
{
	size_t nr;

	if (elf_getphdrnum(e->elf, &nr) < 0)
		return error_set(-ENOEXEC, NULL, "%s has damaged program headers: %s", e->path,
				 elf_errmsg(-1));
	if (nr > MOST_SEGMENTS)
		return error_set(-ENOEXEC, NULL, "%s has %zu program headers", e->path, nr);
	if (!nr)
		return 0;
	e->segments = calloc(nr, sizeof(*e->segments));
	if (!e->segments)
		return error_set(-ENOMEM, NULL, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		GElf_Phdr *p = &e->segments[e->nr_segments];

		if (!gelf_getphdr(e->elf, (int)i, p))
			return error_set(-ENOEXEC, NULL, "%s has damaged program headers: %s",
					 e->path, elf_errmsg(-1));
		/* A segment that is not within the file cannot be read, and is ignored. */
		if (elffile__in_image(e, p->p_offset, p->p_filesz) &&
		    p->p_vaddr + p->p_filesz >= p->p_vaddr)
			e->nr_segments++;
	}
	return 0;
}

static void read_build_id(struct elffile *e, const GElf_Phdr *segment)
{
	Elf_Data *data;
	GElf_Nhdr note;
	size_t at = 0, next, name, desc;

	data = elf_getdata_rawchunk(e->elf, (int64_t)segment->p_offset, segment->p_filesz,
				    segment->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
	while (data && (next = gelf_getnote(data, at, &note, &name, &desc)) > 0) {
		const uint8_t *bytes = data->d_buf;

		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(bytes + name, "GNU", sizeof("GNU")) &&
		    note.n_descsz <= (sizeof(e->build_id) - 1) / 2) {
			for (size_t i = 0; i < note.n_descsz; i++) {
				static const char hex[] = "0123456789abcdef";

				e->build_id[2 * i] = hex[bytes[desc + i] >> 4];
				e->build_id[2 * i + 1] = hex[bytes[desc + i] & 15];
			}
			e->build_id[(size_t)2 * note.n_descsz] = '\0';
			return;
		}
		at = next;
	}
}

static void read_segments(struct elffile *e)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const GElf_Phdr *p = &e->segments[i];

		switch (p->p_type) {
		case PT_NOTE:
			if (!e->build_id[0])
				read_build_id(e, p);
			break;
		case PT_INTERP:
			if (p->p_filesz && !e->image[p->p_offset + p->p_filesz - 1])
				e->interp = (const char *)e->image + p->p_offset;
			break;
		default:
			break;
		}
	}
	/*
	 * This finds position-independent programs. The few libraries that can be run as programs
	 * match, too, which does no harm.
	 */
	if (e->interp)
		e->executable = true;
}

int elffile__load_segments(struct elffile *e)
{
	int err = read_headers(e);

	if (!err)
		read_segments(e);
	return err;
}

static const GElf_Phdr *load_at_vaddr(const struct elffile *e, uint64_t vaddr)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const GElf_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && vaddr >= p->p_vaddr && vaddr - p->p_vaddr < p->p_filesz)
			return p;
	}
	return NULL;
}

static const GElf_Phdr *load_at_offset(const struct elffile *e, uint64_t offset)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const GElf_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && offset >= p->p_offset &&
		    offset - p->p_offset < p->p_filesz)
			return p;
	}
	return NULL;
}

uint64_t elffile__offset(const struct elffile *e, uint64_t vaddr)
{
	const GElf_Phdr *p = load_at_vaddr(e, vaddr);

	return p ? vaddr - p->p_vaddr + p->p_offset : UINT64_MAX;
}

uint64_t elffile__left(const struct elffile *e, uint64_t vaddr)
{
	const GElf_Phdr *p = load_at_vaddr(e, vaddr);

	return p ? p->p_filesz - (vaddr - p->p_vaddr) : 0;
}

uint64_t elffile__vaddr(const struct elffile *e, uint64_t offset)
{
	const GElf_Phdr *p = load_at_offset(e, offset);

	return p ? offset - p->p_offset + p->p_vaddr : UINT64_MAX;
}

uint64_t elffile__code_vaddr(const struct elffile *e, uint64_t offset)
{
	uint64_t found = UINT64_MAX;

	for (size_t i = 0; i < e->nr_segments; i++) {
		const GElf_Phdr *p = &e->segments[i];
		uint64_t page = p->p_offset & ~(uint64_t)(ELF_PAGE_BYTES - 1);

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X) || offset < page ||
		    offset >= p->p_offset + p->p_filesz)
			continue;
		if (offset >= p->p_offset)
			return p->p_vaddr - p->p_offset + offset;
		if (found == UINT64_MAX)
			found = p->p_vaddr - p->p_offset + offset;
	}
	return found;
}

bool elffile__executable(const struct elffile *e, uint64_t offset)
{
	const GElf_Phdr *p = load_at_offset(e, offset);

	return p && (p->p_flags & PF_X);
}

bool elffile__is_code(const struct elffile *e, uint64_t vaddr)
{
	uint64_t offset = elffile__offset(e, vaddr);

	return offset != UINT64_MAX && elffile__executable(e, offset);
}
