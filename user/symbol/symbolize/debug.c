// SPDX-License-Identifier: BSD-2-Clause
/*
 * Finds separate debug information: by build id (/usr/lib/debug/.build-id/ab/cdef….debug), by name
 * (.gnu_debuglink, in the same directories as gdb), from a server, or, for names only, compressed
 * in the file itself (.gnu_debugdata, "MiniDebugInfo"). A file that is found must have the same
 * build id, or the checksum of the link.
 */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "util/error.h"
#include "util/foreign.h"
#include "util/util.h"

#define MAX_MINI (256u << 20) /* size when unpacked; Fedora's largest have some MB */
#define MAX_MINI_MEMORY (64u << 20)
#define MINI_TIME_NS (10 * NSEC_PER_SEC)
/* Larger files are not summed: a sparse file of a terabyte would take an hour. */
#define MAX_SUMMED (8ull << 30)

/* ---- .gnu_debuglink ---- */

const char *symbol_debuglink__read(const uint8_t *section, size_t bytes, uint32_t *crc)
{
	size_t name = strnlen((const char *)section, bytes), at = (name + 4) & ~(size_t)3;

	if (!name || name > 255 || at + 4 > bytes || memchr(section, '/', name))
		return NULL;
	memcpy(crc, section + at, sizeof(*crc));
	return (const char *)section;
}

static const char *debuglink(const struct elffile *e, uint32_t *crc)
{
	size_t bytes;
	const uint8_t *section = elffile__section(e, ".gnu_debuglink", &bytes);

	return section ? symbol_debuglink__read(section, bytes, crc) : NULL;
}

static bool crc_matches(const struct elffile *e, uint32_t want)
{
	size_t bytes;
	const uint8_t *image = elffile__bytes(e, 0, SIZE_MAX, &bytes);
	uint32_t crc = 0;

	if (bytes > MAX_SUMMED)
		return false;
	for (size_t at = 0; at < bytes;) {
		size_t left = bytes - at;
		uInt n = left < (1u << 30) ? (uInt)left : (1u << 30);

		crc = (uint32_t)crc32(crc, image + at, n);
		at += n;
	}
	return crc == want;
}

static bool belongs(const struct elffile *debug, const struct elffile *e)
{
	uint32_t crc;

	if (*elffile__build_id(e) && *elffile__build_id(debug))
		return !strcmp(elffile__build_id(e), elffile__build_id(debug));
	return debuglink(e, &crc) && crc_matches(debug, crc);
}

/* ---- looking ---- */

/*
 * Tries a path under this root directory, and takes ownership of the string. True: the file exists.
 */
static bool try_path(char *path, const char *root, const struct symbol_file *f,
		     struct symbol_debug_file *out)
{
	/* If the path is the file itself, it has nothing new. */
	bool other = path && (*root || strcmp(path, elffile__path(f->elf)) != 0);
	int fd = other ? open_in_root(root, path, 0) : -1;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st)) {
		out->fd = fd;
		out->path = path;
		out->stamp = hash64((uint64_t)st.st_ino ^ hash64((uint64_t)st.st_size)) ^
			     hash64((uint64_t)st.st_mtim.tv_sec * NSEC_PER_SEC +
				    (uint64_t)st.st_mtim.tv_nsec);
		out->stamp |= 1;
		return true;
	}
	if (fd >= 0)
		close(fd);
	free(path);
	return false;
}

static bool look_under(const struct symbol_file *f, const char *debug_dir, const char *root,
		       struct symbol_debug_file *out)
{
	const char *id = elffile__build_id(f->elf), *slash = strrchr(f->path, '/'), *link;
	int dir = slash ? (int)(slash - f->path) : 0;
	uint32_t crc;

	if (strlen(id) > 2 &&
	    try_path(xasprintf("%s/.build-id/%.2s/%s.debug", debug_dir, id, id + 2), root, f, out))
		return true;
	link = debuglink(f->elf, &crc);
	/* Names like "[vdso]" or "memfd:…" are not paths and have no directory. */
	if (!link || f->path[0] != '/')
		return false;
	return try_path(xasprintf("%.*s/%s", dir, f->path, link), root, f, out) ||
	       try_path(xasprintf("%.*s/.debug/%s", dir, f->path, link), root, f, out) ||
	       try_path(xasprintf("%s%.*s/%s", debug_dir, dir, f->path, link), root, f, out);
}

void symbol_debug__look(const struct symbol_file *f, const struct symbol_config *config,
			struct symbol_debug_file *out)
{
	*out = (struct symbol_debug_file){.fd = -1};
	if (!look_under(f, config->opts.debug_dir, "", out) && *f->root)
		look_under(f, config->opts.debug_dir, f->root, out);
}

/* ---- opening ---- */

static struct elffile *open_checked(const struct symbol_debug_file *found, const struct elffile *of)
{
	struct elffile *e = NULL;

	if (found->fd < 0 || elffile__open_fd(found->fd, found->path, &e))
		return NULL;
	if (belongs(e, of))
		return e;
	elffile__close(e);
	return NULL;
}

struct elffile *symbol_debug__open(struct symbol_file *f, const struct symbol_config *config,
				   struct symbol_debug_file *found)
{
	struct elffile *e = open_checked(found, f->elf);
	uint64_t time_ns = symbol_time_left(config);
	struct symbol_debug_file fetched = {.fd = -1};
	int err;

	if (e || !time_ns || !symbol_debuginfod__configured(&config->opts))
		return e;
	err = symbol_debuginfod__fetch(elffile__build_id(f->elf), time_ns, &fetched.path);
	f->absent = err == -ENOENT;
	f->unanswered = err && err != -ENOENT;
	if (!err)
		fetched.fd = open_in_root("", fetched.path, 0);
	e = open_checked(&fetched, f->elf);
	/* the stamp of the local file found before the server was used */
	fetched.stamp = found->stamp;
	symbol_debug__close(found);
	*found = fetched;
	return e;
}

void symbol_debug__close(struct symbol_debug_file *found)
{
	if (found->fd >= 0)
		close(found->fd);
	free(found->path);
	*found = (struct symbol_debug_file){.fd = -1};
}

/* ---- .gnu_debugdata ---- */

struct packed {
	const uint8_t *bytes;
	size_t nr;
};

/* Runs in the child: unpacks into the pipe. 0: everything was unpacked. */
static int unpack(void *ctx, int fd)
{
	static uint8_t out[64 << 10];
	const struct packed *packed = ctx;
	lzma_stream xz = LZMA_STREAM_INIT;
	lzma_ret ret = LZMA_OK;

	if (lzma_stream_decoder(&xz, MAX_MINI_MEMORY, 0) != LZMA_OK)
		return 1;
	xz.next_in = packed->bytes;
	xz.avail_in = packed->nr;
	while (ret == LZMA_OK) {
		xz.next_out = out;
		xz.avail_out = sizeof(out);
		ret = lzma_code(&xz, LZMA_FINISH);
		if (!write_all(fd, out, (size_t)(xz.next_out - out)))
			return 1;
	}
	return ret == LZMA_STREAM_END ? 0 : 1;
}

/* Copies the child's output to a file in memory. False: it exceeds the limit. */
static bool take(struct symbol_child *c, int to)
{
	static const size_t piece = 64 << 10;
	char *part = malloc(piece);
	size_t total = 0;
	ssize_t n = part ? 1 : -1;

	while (n > 0 && total <= MAX_MINI) {
		n = symbol_child__some(c, part, piece);
		if (n > 0 && write(to, part, (size_t)n) != n)
			n = -ENOSPC;
		total += n > 0 ? (size_t)n : 0;
	}
	free(part);
	return !n;
}

struct elffile *symbol_debug__mini(const struct elffile *e)
{
	struct symbol_child_opts opts = {
		.user = SYMBOL_CHILD_NOBODY, .only_reads = true, .fd = -1, .time_ns = MINI_TIME_NS};
	struct elffile *mini = NULL;
	struct packed packed;
	struct symbol_child c;
	bool whole;
	int fd;

	packed.bytes = elffile__section(e, ".gnu_debugdata", &packed.nr);
	if (!packed.bytes)
		return NULL;
	fd = memfd_create("kprof-debugdata", MFD_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (!symbol_child__start(&c, unpack, &packed, &opts)) {
		whole = take(&c, fd);
		if (symbol_child__end(&c, !whole) || !whole ||
		    elffile__open_fd(fd, "[.gnu_debugdata]", &mini))
			mini = NULL;
	}
	close(fd);
	return mini;
}
