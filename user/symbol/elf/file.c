// SPDX-License-Identifier: BSD-2-Clause
/*
 * The file itself: its mapping and its header. Sizes and offsets are checked once, when the file is
 * opened, and the content is read in place afterwards.
 *
 * A file may be truncated while it is mapped, by the target or by a linker that writes in place.
 * What is missing then reads as zeros (util/mapped.h), which no bound in this code depends on;
 * elffile__cut() reports it.
 */
#include "symbol/elf/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/error.h"
#include "util/foreign.h"
#include "util/util.h"

static int open_image(struct elffile *e, int fd, const char *path)
{
	struct stat st;
	int err;

	if (fstat(fd, &st) < 0)
		return error_set(-errno, NULL, "cannot read %s: %s", path, strerror(errno));
	e->identity = (struct elffile_identity){
		.bytes = (uint64_t)st.st_size,
		.dev = st.st_dev,
		.inode = st.st_ino,
		.owner = st.st_uid,
		.changed_ns =
			(uint64_t)st.st_ctim.tv_sec * NSEC_PER_SEC + (uint64_t)st.st_ctim.tv_nsec,
		.linked = st.st_nlink,
	};
	if (st.st_size < (off_t)sizeof(Elf64_Ehdr))
		return error_set(-ENOEXEC, NULL, "%s is not an ELF file", path);
	err = mapped__new(fd, (size_t)st.st_size, &e->mapped);
	if (err)
		return error_set(err, NULL, "cannot map %s: %s", path, strerror(-err));
	e->image = mapped__bytes(e->mapped);
	e->image_bytes = (size_t)st.st_size;
	return 0;
}

static int check_header(struct elffile *e, Elf64_Ehdr *h)
{
	memcpy(h, e->image, sizeof(*h));
	if (memcmp(h->e_ident, ELFMAG, SELFMAG))
		return error_set(-ENOEXEC, NULL, "%s is not an ELF file", e->path);
	if (h->e_ident[EI_CLASS] != ELFCLASS64 || h->e_ident[EI_DATA] != ELFDATA2LSB ||
	    h->e_machine != EM_X86_64)
		return error_set(-ENOEXEC, "kprof knows x86-64 programs only",
				 "%s is not a file for x86-64", e->path);
	if (h->e_type != ET_EXEC && h->e_type != ET_DYN)
		return error_set(-ENOEXEC, NULL, "%s is neither a program nor a shared library",
				 e->path);
	e->executable = h->e_type == ET_EXEC;
	e->entry = h->e_entry;
	return 0;
}

int elffile__open_fd(int fd, const char *path, struct elffile **out)
{
	struct elffile *e = calloc(1, sizeof(*e));
	Elf64_Ehdr header;
	int err;

	*out = NULL;
	if (e)
		e->path = strdup(path);
	err = e && e->path ? open_image(e, fd, path) : error_set(-ENOMEM, NULL, "out of memory");
	if (!err)
		err = check_header(e, &header);
	if (!err)
		err = elffile__load_segments(e, &header);
	if (!err)
		err = elffile__load_sections(e, &header);
	if (!err)
		elffile__find_symbols(e);
	if (!err && elffile__cut(e))
		err = error_set(-ESTALE, NULL, "%s was cut short while it was opened", path);
	if (err)
		elffile__close(e);
	else
		*out = e;
	return err;
}

int elffile__open(const char *path, struct elffile **out)
{
	/* The path comes from the target: it may name a FIFO without a writer, or a device. */
	int fd = open_in_root("", path, 0), err;

	*out = NULL;
	if (fd == -EINVAL)
		return error_set(-ENOEXEC, NULL, "%s is not an ELF file", path);
	if (fd < 0)
		return error_set(fd, NULL, "cannot open %s: %s", path, strerror(-fd));
	err = elffile__open_fd(fd, path, out);
	close(fd);
	return err;
}

uint64_t elffile__entry(const struct elffile *e)
{
	return e->entry;
}

void elffile__close(struct elffile *e)
{
	if (!e)
		return;
	mapped__free(e->mapped);
	free(e->index);
	free(e->segments);
	free(e->sections);
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

const struct elffile_identity *elffile__identity(const struct elffile *e)
{
	return &e->identity;
}

uint64_t elffile__stamp(const struct elffile *e)
{
	const struct elffile_identity *id = &e->identity;
	uint64_t h = hash64(id->bytes);

	h = hash64(h ^ id->changed_ns);
	h = hash64(h ^ id->inode);
	h = hash64(h ^ id->dev);
	return hash64(h ^ id->owner);
}

const char *elffile__interp(const struct elffile *e)
{
	return e->interp;
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

void elffile__forget_pages(const struct elffile *e)
{
	mapped__forget(e->mapped);
}

bool elffile__cut(const struct elffile *e)
{
	return mapped__cut(e->mapped);
}
