// SPDX-License-Identifier: BSD-2-Clause
/*
 * The cache of unwind tables on disk: BUILDID-STAMP.unw, each a blob (blob.c). The stamp identifies
 * the file, and the kprof that made the table. A build id is not enough: a stripped file has the
 * same one, anybody can write a file with any build id, and libraries without one (OpenBLAS in
 * NumPy's wheels) take longest to analyse. So a table is valid for exactly this file (inode, file
 * system, owner), unchanged since (ctime), and for the same build of kprof, so that a change of the
 * code that makes tables invalidates them by itself.
 */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kprof.h"
#include "util/disk_cache.h"
#include "symbol/unwind/priv.h"
#include "util/util.h"

/* Smaller tables are built as fast as a cached file is read. */
#define WORTH_ROWS 256
/*
 * Files changed more recently are not cached: a second change within the same tick of the file
 * system's clock would not be noticed.
 */
#define SETTLED_NS (2 * NSEC_PER_SEC)
#define NAMELESS "nobuildid"

/* ---- identity of this kprof ---- */

struct own {
	uintptr_t address; /* an address in this object */
	uint64_t hash;
};

static void hash_build_id(struct own *own, const char *notes, size_t bytes)
{
	ElfW(Nhdr) n;

	while (bytes >= sizeof(n)) {
		size_t name, desc;

		memcpy(&n, notes, sizeof(n));
		name = (n.n_namesz + 3) & ~3u;
		desc = (n.n_descsz + 3) & ~3u;
		if (sizeof(n) + name + desc > bytes)
			return;
		for (size_t i = 0; n.n_type == NT_GNU_BUILD_ID && i < n.n_descsz; i++)
			own->hash = hash64(own->hash ^ (uint8_t)notes[sizeof(n) + name + i]);
		notes += sizeof(n) + name + desc;
		bytes -= sizeof(n) + name + desc;
	}
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct own *own = ctx;
	bool here = false;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		here |= p->p_type == PT_LOAD &&
			own->address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz;
	}
	for (size_t i = 0; i < info->dlpi_phnum && here; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_NOTE)
			hash_build_id(own, (const char *)(info->dlpi_addr + p->p_vaddr),
				      p->p_filesz);
	}
	return here;
}

/* A hash of the release number and, if the linker has written one, of this build's build id. */
static uint64_t hash_of_kprof(void)
{
	struct own own = {.address = (uintptr_t)&look_at_object};
	uint64_t version = (uint64_t)KPROF_VERSION_MAJOR << 48 |
			   (uint64_t)KPROF_VERSION_MINOR << 32 | KPROF_VERSION_PATCH << 16 |
			   UNWIND_REVISION;

	own.hash = hash64(version);
	dl_iterate_phdr(look_at_object, &own);
	return own.hash;
}

/* ---- identity of the file ---- */

static uint64_t stamp_of(const struct elffile *e)
{
	return hash64(hash_of_kprof() ^ elffile__stamp(e));
}

static bool file_name(char name[DISK_CACHE_NAME_BYTES], const struct elffile *e, uint64_t stamp)
{
	const char *id = elffile__build_id(e);
	char suffix[32];

	snprintf(suffix, sizeof(suffix), "-%016llx.unw", (unsigned long long)stamp);
	/* A file without a name on the disk cannot be met by another recording. */
	return elffile__identity(e)->linked && disk_cache__name(name, *id ? id : NAMELESS, suffix);
}

static bool write_table(struct unwind_cache *cache, const char *name, uint64_t stamp,
			struct unwind_rules *rules, const struct unwind_table *t)
{
	size_t bytes;
	char *blob = unwind_blob__pack(t, rules, stamp, &bytes);
	bool done = blob &&
		    atomic_fetch_add(&cache->bytes_written, bytes) + bytes <= DISK_CACHE_BOUND &&
		    disk_cache__write(cache->dir, name, blob, bytes);

	free(blob);
	return done;
}

int unwind_table__get(const struct elffile *e, struct unwind_rules *rules, const atomic_bool *stop,
		      struct unwind_cache *cache, struct unwind_table **out)
{
	char name[DISK_CACHE_NAME_BYTES], *blob;
	uint64_t stamp = 0;
	bool cached = cache->dir >= 0;
	size_t bytes;
	int err;

	if (cached) {
		stamp = stamp_of(e);
		cached = file_name(name, e, stamp);
	}
	if (cached && !disk_cache__read(cache->dir, name, UNWIND_BLOB_MAX, &blob, &bytes) &&
	    !unwind_blob__unpack(blob, bytes, stamp, rules, out)) {
		atomic_fetch_add(&cache->nr_read, 1);
		return 0;
	}
	err = unwind_table__build(e, rules, stop, out);
	/*
	 * A table with rows whose rule found no room is not cached: another session may have room.
	 */
	if (!err && cached && (*out)->nr_rows >= WORTH_ROWS && !(*out)->rules_full &&
	    elffile__identity(e)->changed_ns + SETTLED_NS < clock_real_ns() &&
	    write_table(cache, name, stamp, rules, *out))
		atomic_fetch_add(&cache->nr_written, 1);
	return err;
}
