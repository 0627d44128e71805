// SPDX-License-Identifier: BSD-2-Clause
/* A file's segments: where its addresses are in the file, and its build id and interpreter. */
#include "symbol/elf/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

#define ELF_PAGE_BYTES 4096
#define MOST_NOTES (1u << 20) /* bytes of a segment in which a build id is looked for */
#define MOST_SEGMENTS 1024    /* each lookup walks all of them; real files have a dozen */

static int read_headers(struct elffile *e, const Elf64_Ehdr *h)
{
	size_t nr = h->e_phnum;

	if (nr > MOST_SEGMENTS)
		return error_set(-ENOEXEC, NULL, "%s has %zu program headers", e->path, nr);
	if (!nr)
		return 0;
	if (h->e_phentsize != sizeof(Elf64_Phdr) ||
	    !elffile__in_image(e, h->e_phoff, nr * sizeof(Elf64_Phdr)))
		return error_set(-ENOEXEC, NULL, "%s has damaged program headers", e->path);
	e->segments = calloc(nr, sizeof(*e->segments));
	if (!e->segments)
		return error_set(-ENOMEM, NULL, "out of memory");
	for (size_t i = 0; i < nr; i++) {
		Elf64_Phdr *p = &e->segments[e->nr_segments];

		memcpy(p, e->image + h->e_phoff + i * sizeof(*p), sizeof(*p));
		/* A segment that is not within the file cannot be read, and is ignored. */
		if (elffile__in_image(e, p->p_offset, p->p_filesz) &&
		    p->p_vaddr + p->p_filesz >= p->p_vaddr)
			e->nr_segments++;
	}
	return 0;
}

static void keep_build_id(struct elffile *e, const uint8_t *id, size_t bytes)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < bytes; i++) {
		e->build_id[2 * i] = hex[id[i] >> 4];
		e->build_id[2 * i + 1] = hex[id[i] & 15];
	}
	e->build_id[2 * bytes] = '\0';
}

static size_t padded(size_t bytes, size_t align)
{
	return (bytes + align - 1) & ~(align - 1);
}

/* Names are padded to 4 bytes; descriptions, and with them the next note, as the segment is. */
static void read_build_id(struct elffile *e, const Elf64_Phdr *segment)
{
	const uint8_t *notes = e->image + segment->p_offset;
	size_t end = segment->p_filesz < MOST_NOTES ? segment->p_filesz : MOST_NOTES, at = 0;
	size_t align = segment->p_align == 8 ? 8 : 4;

	while (end - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name = at + sizeof(note), desc;

		memcpy(&note, notes + at, sizeof(note));
		if (note.n_namesz > end - name)
			return;
		desc = padded(name + note.n_namesz, align);
		if (desc > end || note.n_descsz > end - desc)
			return;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof("GNU") &&
		    !memcmp(notes + name, "GNU", sizeof("GNU")) &&
		    note.n_descsz <= (sizeof(e->build_id) - 1) / 2) {
			keep_build_id(e, notes + desc, note.n_descsz);
			return;
		}
		at = padded(desc + note.n_descsz, align);
		if (at > end)
			return;
	}
}

static void read_segments(struct elffile *e)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const Elf64_Phdr *p = &e->segments[i];

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

int elffile__load_segments(struct elffile *e, const Elf64_Ehdr *h)
{
	int err = read_headers(e, h);

	if (!err)
		read_segments(e);
	return err;
}

static const Elf64_Phdr *load_at_vaddr(const struct elffile *e, uint64_t vaddr)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && vaddr >= p->p_vaddr && vaddr - p->p_vaddr < p->p_filesz)
			return p;
	}
	return NULL;
}

static const Elf64_Phdr *load_at_offset(const struct elffile *e, uint64_t offset)
{
	for (size_t i = 0; i < e->nr_segments; i++) {
		const Elf64_Phdr *p = &e->segments[i];

		if (p->p_type == PT_LOAD && offset >= p->p_offset &&
		    offset - p->p_offset < p->p_filesz)
			return p;
	}
	return NULL;
}

uint64_t elffile__offset(const struct elffile *e, uint64_t vaddr)
{
	const Elf64_Phdr *p = load_at_vaddr(e, vaddr);

	return p ? vaddr - p->p_vaddr + p->p_offset : UINT64_MAX;
}

uint64_t elffile__left(const struct elffile *e, uint64_t vaddr)
{
	const Elf64_Phdr *p = load_at_vaddr(e, vaddr);

	return p ? p->p_filesz - (vaddr - p->p_vaddr) : 0;
}

uint64_t elffile__vaddr(const struct elffile *e, uint64_t offset)
{
	const Elf64_Phdr *p = load_at_offset(e, offset);

	return p ? offset - p->p_offset + p->p_vaddr : UINT64_MAX;
}

uint64_t elffile__code_vaddr(const struct elffile *e, uint64_t offset)
{
	uint64_t found = UINT64_MAX;

	for (size_t i = 0; i < e->nr_segments; i++) {
		const Elf64_Phdr *p = &e->segments[i];
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
	const Elf64_Phdr *p = load_at_offset(e, offset);

	return p && (p->p_flags & PF_X);
}

bool elffile__is_code(const struct elffile *e, uint64_t vaddr)
{
	uint64_t offset = elffile__offset(e, vaddr);

	return offset != UINT64_MAX && elffile__executable(e, offset);
}
