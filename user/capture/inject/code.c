// SPDX-License-Identifier: BSD-2-Clause
/*
 * What code is, as far as locks are concerned that the injection takes: of the C library, of the
 * loader, of an allocator, or of something else.
 *
 * An allocator is whatever the loader would take for one: a file, other than the C library, that
 * exports malloc(), calloc() or free(). The names of the usual ones are known besides, as they may
 * consist of more than one file.
 */
#include <errno.h>
#include <string.h>

#include "capture/inject/priv.h"
#include "catalog/catalog.h"
#include "util/error.h"
#include "util/util.h"

static const char libc_names[] = "libc.so.6 libc-2.*.so libdl.so.2 libdl-2.*.so libpthread.so.0 "
				 "libpthread-2.*.so librt.so.1 librt-2.*.so libresolv* libnss_*";
static const char loader_names[] = "ld-linux-x86-64.so* ld-2.*.so";
static const char allocators[] =
	"*jemalloc* *tcmalloc* *mimalloc* *tbbmalloc* *snmalloc* *rpmalloc* *hoard* lib*asan.so* "
	"lib*tsan.so* *clang_rt.*an-*";

static enum inject_code code_of_name(const char *name)
{
	if (catalog_match(libc_names, name))
		return INJECT_CODE_LIBC;
	if (catalog_match(loader_names, name))
		return INJECT_CODE_LOADER;
	if (catalog_match("libgcc_s.so*", name))
		return INJECT_CODE_UNWINDER;
	return catalog_match(allocators, name) ? INJECT_CODE_ALLOCATOR : INJECT_CODE_OTHER;
}

/* What the file exports. Code of which nothing can be known is taken for code in no file. */
static enum inject_code code_of_file(const struct inject_target *t, const struct proc_map *map)
{
	static const char *const exports[] = {"malloc", "calloc", "free"};
	enum inject_code code = INJECT_CODE_OTHER;
	struct elffile *elf;
	char path[512];

	if (proc_map_open_path(t->pid, map, path, sizeof(path)) || elffile__open(path, &elf)) {
		error_clear();
		return INJECT_CODE_UNKNOWN;
	}
	for (size_t i = 0; i < ARRAY_SIZE(exports); i++)
		if (elffile__exports(elf, exports[i]))
			code = INJECT_CODE_ALLOCATOR;
	elffile__close(elf);
	return code;
}

static uint64_t key_of(const struct proc_map *map)
{
	return (map->inode ^ (uint64_t)map->dev << 40) & ~(1ull << 63);
}

int inject_code__learn(struct inject_target *t)
{
	for (size_t i = 0; i < proc_maps__nr(t->maps); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		uint64_t *code;

		if (!(map->flags & PROC_MAP_FILE) || !(map->flags & PROC_MAP_EXEC) ||
		    code_of_name(proc_basename(map->path)) != INJECT_CODE_OTHER)
			continue;
		code = map64__at(&t->code_of_file, key_of(map));
		if (!code)
			return error_set(-ENOMEM, NULL, "out of memory");
		/* A program that has a malloc() of its own is looked at function by function. */
		if (!*code)
			*code = map->inode == t->exe_inode ? INJECT_CODE_OTHER
							   : code_of_file(t, map);
	}
	return 0;
}

enum inject_code inject_code_at(const struct inject_target *t, uint64_t pc)
{
	const struct proc_map *map = proc_maps__find(t->maps, pc);
	enum inject_code code;
	uint64_t learnt;

	if (!map || !(map->flags & PROC_MAP_FILE))
		return map && !strcmp(map->path, "[vdso]") ? INJECT_CODE_OTHER
							   : INJECT_CODE_UNKNOWN;
	code = code_of_name(proc_basename(map->path));
	if (code != INJECT_CODE_OTHER)
		return code;
	learnt = map64__get(&t->code_of_file, key_of(map));
	return learnt ? (enum inject_code)learnt : INJECT_CODE_UNKNOWN;
}
