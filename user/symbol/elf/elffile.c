// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file itself: mapping, segments, notes, sections. Everything is checked against the mapping's
 * size once, when the file is opened, and read in place afterwards.
 *
 * A file may be cut short while it is mapped, by the target or by a linker that writes in place: what is gone reads as
 * zeros then (util/mapped.h), which no bound here depends on, and elffile__cut() tells.
 */
#include "symbol/elf/elffile_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/util.h"

#define ELF_PAGE_BYTES 4096
#define MOST_SEGMENTS 1024 /* all are looked at for each address; real files have a dozen */

/* The target names it: it may be a FIFO that has no writer, or a device. */
static int open_file(const char *path)
{
	int named = open(path, O_PATH | O_CLOEXEC), fd;

	if (named < 0)
		return error_set(-errno, NULL, "cannot open %s: %s", path, strerror(errno));
	fd = reopen_regular(named);
	close(named);
	if (fd >= 0)
		return fd;
	if (fd == -EINVAL)
		return error_set(-ENOEXEC, NULL, "%s is not an ELF file", path);
	return error_set(fd, NULL, "cannot open %s: %s", path, strerror(-fd));
}

static int open_image(struct elffile *e, int fd, const char *path)
{
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return error_set(-errno, NULL, "cannot read %s: %s", path, strerror(errno));
	e->dev = st.st_dev;
	e->owner = st.st_uid;
	e->inode = st.st_ino;
	e->changed_ns = (uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec;
	e->linked = st.st_nlink;
	if (st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return error_set(-ENOEXEC, NULL, "%s is not an ELF file", path);
	err = mapped__new(fd, (size_t)st.st_size, &e->mapped);
	if (err)
		return error_set(err, NULL, "cannot map %s: %s", path, strerror(-err));
	e->image = mapped__bytes(e->mapped);
	e->image_bytes = (size_t)st.st_size;
	elf_version(EV_CURRENT);
	/* Nothing is written there: only compressed sections would be, and those are not read by it. */
	e->elf = elf_memory((char *)(uintptr_t)e->image, e->image_bytes);
	if (!e->elf)
		return error_set(-ENOEXEC, NULL, "%s cannot be read as ELF: %s", path,
				 elf_errmsg(-1));
	return 0;
}

static int check_header(struct elffile *e)
{
	GElf_Ehdr ehdr;

	if (elf_kind(e->elf) != ELF_K_ELF || !gelf_getehdr(e->elf, &ehdr))
		return error_set(-ENOEXEC, NULL, "%s is not an ELF file", e->path);
	if (ehdr.e_ident[EI_CLASS] != ELFCLASS64 || ehdr.e_ident[EI_DATA] != ELFDATA2LSB ||
	    ehdr.e_machine != EM_X86_64)
		return error_set(-ENOEXEC, "kprof knows x86-64 programs only",
				 "%s is not a file for x86-64", e->path);
	if (ehdr.e_type != ET_EXEC && ehdr.e_type != ET_DYN)
		return error_set(-ENOEXEC, NULL, "%s is neither a program nor a shared library",
				 e->path);
	e->executable = ehdr.e_type == ET_EXEC;
	return 0;
}

/* Whether [offset, offset + bytes) lies in the file. */
static bool in_image(const struct elffile *e, uint64_t offset, uint64_t bytes)
{
	return offset <= e->image_bytes && bytes <= e->image_bytes - offset;
}

static int load_segments(struct elffile *e)
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
		/* What lies outside the file cannot be looked at: as if it were not there. */
		if (in_image(e, p->p_offset, p->p_filesz) && p->p_vaddr + p->p_filesz >= p->p_vaddr)
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
		case PT_DYNAMIC:
			e->has_dynamic = true;
			break;
		default:
			break;
		}
	}
	/* Position-independent programs; also the few libraries that can be run, which does no harm. */
	if (e->interp)
		e->executable = true;
}

int elffile__open_fd(int fd, const char *path, struct elffile **out)
{
	struct elffile *e = calloc(1, sizeof(*e));
	int err;

	*out = NULL;
	if (e)
		e->path = strdup(path);
	if (!e || !e->path) {
		err = error_set(-ENOMEM, NULL, "out of memory");
		goto out;
	}
	err = open_image(e, fd, path);
	if (!err)
		err = check_header(e);
	if (!err)
		err = load_segments(e);
	if (err)
		goto out;
	read_segments(e);
	elffile__find_symbols(e);
	if (elffile__cut(e)) {
		err = error_set(-ESTALE, NULL, "%s was cut short while it was opened", path);
		goto out;
	}
	*out = e;
	e = NULL;
out:
	elffile__close(e);
	return err;
}

int elffile__open(const char *path, struct elffile **out)
{
	int fd = open_file(path), err;

	*out = NULL;
	if (fd < 0)
		return fd;
	err = elffile__open_fd(fd, path, out);
	close(fd);
	return err;
}

void elffile__close(struct elffile *e)
{
	if (!e)
		return;
	elf_end(e->elf);
	mapped__free(e->mapped);
	free(e->index);
	free(e->segments);
	free(e->path);
	free(e);
}

const char *elffile__path(const struct elffile *e)
{
	return e->path;
}

const char *elffile__build_id(const struct elffile *e)
{
	return e->build_id;
}

bool elffile__is_static(const struct elffile *e)
{
	return !e->interp && !e->has_dynamic;
}

const char *elffile__interp(const struct elffile *e)
{
	return e->interp;
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

const uint8_t *elffile__bytes(const struct elffile *e, uint64_t offset, size_t max, size_t *avail)
{
	size_t left;

	if (offset >= e->image_bytes) {
		*avail = 0;
		return NULL;
	}
	left = e->image_bytes - offset;
	*avail = left < max ? left : max;
	return e->image + offset;
}

const uint8_t *elffile__section_at(const struct elffile *e, const char *name, size_t *bytes,
				   uint64_t *vaddr)
{
	Elf_Scn *section = NULL;
	size_t names;

	*bytes = 0;
	if (elf_getshdrstrndx(e->elf, &names) < 0)
		return NULL;
	while ((section = elf_nextscn(e->elf, section))) {
		GElf_Shdr shdr;
		const char *found;

		if (!gelf_getshdr(section, &shdr))
			continue;
		found = elf_strptr(e->elf, names, shdr.sh_name);
		if (!found || strcmp(found, name))
			continue;
		/* Compressed sections (of debug information) are not what kprof reads. */
		if (shdr.sh_type == SHT_NOBITS || (shdr.sh_flags & SHF_COMPRESSED) ||
		    !in_image(e, shdr.sh_offset, shdr.sh_size))
			return NULL;
		*bytes = shdr.sh_size;
		*vaddr = shdr.sh_addr;
		return e->image + shdr.sh_offset;
	}
	return NULL;
}

const uint8_t *elffile__section(const struct elffile *e, const char *name, size_t *bytes)
{
	uint64_t vaddr;

	return elffile__section_at(e, name, bytes, &vaddr);
}

void elffile__forget_pages(const struct elffile *e)
{
	mapped__forget(e->mapped);
}

bool elffile__cut(const struct elffile *e)
{
	return mapped__cut(e->mapped);
}
