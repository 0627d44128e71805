// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/address_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/order.h"
#include "util/util.h"

#define VDSO_MAX_BYTES (64u << 10) /* at most; it is two pages in practice */
/* A process may have 65,530 mappings (vm.max_map_count) unless it was allowed more. */
#define SPACE_MAX_MAPPINGS 65536

/* ---- one mapping ---- */

/*
 * Finds the module of the vDSO. All 64-bit processes have the same one, unless they were restored
 *.
 */
static int find_vdso(struct address_space *s, const struct proc_map *map, struct module **out)
{
	size_t bytes = (size_t)(map->end - map->start);
	void *image;
	int err = -EFAULT;

	*out = NULL;
	if (bytes > VDSO_MAX_BYTES)
		return 0;
	image = malloc(bytes);
	if (!image)
		return error_set(-ENOMEM, NULL, "out of memory");
	if (!process_read(s->pid, map->start, image, bytes))
		err = modules__of_image(s->modules, "[vdso]", image, bytes, out);
	free(image);
	return err == -ENOMEM ? err : 0;
}

static bool named(const struct proc_map *map, const char *name)
{
	return !strncmp(map->path, name, strlen(name));
}

/*
 * Is this mapping the kernel's? "[heap]", "[stack]", "[anon:…]" and mappings without a name are the
 * program's own.
 */
static bool is_special(const struct proc_map *map)
{
	return named(map, "[vsyscall]") || named(map, "[uprobes") || named(map, "[vectors]") ||
	       named(map, "[vdso");
}

static int add_area(struct address_space *s, const struct proc_map *map)
{
	struct code_area *area = &s->areas[s->nr];
	struct kprof_unwind_mapping *m = &s->mappings[s->nr];
	uint64_t vaddr;
	int err = 0;

	memset(area, 0, sizeof(*area));
	memset(m, 0, sizeof(*m));
	m->start = m->bias = map->start;
	m->end = map->end;
	area->name = map->path;
	area->offset = map->offset;
	area->kind = CODE_AREA_JIT;
	if (map->flags & PROC_MAP_FILE) {
		err = modules__of_map(s->modules, s->pid, map, &area->module);
		/*
		 * A file that cannot be opened may well be a library: its code is unknown, not JIT
		 * code.
		 */
		if (!err && (area->module->elf || !area->module->pointers))
			area->kind = CODE_AREA_FILE;
	} else if (named(map, "[vdso]")) {
		err = find_vdso(s, map, &area->module);
		area->kind = area->module ? CODE_AREA_VDSO : CODE_AREA_SPECIAL;
	} else if (is_special(map)) {
		area->kind = CODE_AREA_SPECIAL;
	}
	if (err)
		return err;
	if (area->module && area->module->elf) {
		vaddr = elffile__code_vaddr(area->module->elf, map->offset);
		/*
		 * The program has mapped the file in another way than its segments ask for:
		 * addresses in the mapping have no vaddr.
		 */
		if (vaddr == UINT64_MAX)
			area->kind = CODE_AREA_JIT;
		else
			m->bias = map->start - vaddr;
	}
	s->nr++;
	return 0;
}

/* ---- all mappings ---- */

static uint64_t fingerprint(const struct proc_maps *maps, size_t *nr)
{
	uint64_t h = 0;

	*nr = 0;
	for (size_t i = 0; i < proc_maps__nr(maps); i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		if (!(map->flags & PROC_MAP_EXEC))
			continue;
		h = hash64(h ^ map->start);
		h = hash64(h ^ map->end);
		h = hash64(h ^ map->offset);
		h = hash64(h ^ map->inode);
		h = hash64(h ^ map->dev);
		++*nr;
	}
	return h;
}

/* Fills in the areas and mappings of s->maps, of which there are nr. */
static int fill(struct address_space *s, size_t nr)
{
	int err = 0;

	s->mappings = calloc(nr + 1, sizeof(*s->mappings));
	s->areas = calloc(nr + 1, sizeof(*s->areas));
	if (!s->mappings || !s->areas)
		return error_set(-ENOMEM, NULL, "out of memory");
	for (size_t i = 0; i < proc_maps__nr(s->maps) && s->nr < nr && !err; i++) {
		const struct proc_map *map = proc_maps__at(s->maps, i);

		if (map->flags & PROC_MAP_EXEC)
			err = add_area(s, map);
	}
	address_space__settle(s);
	return err;
}

static void free_arrays(struct address_space *s)
{
	free(s->mappings);
	free(s->areas);
	proc_maps__free(s->maps);
}

int address_space__refresh(struct address_space *s)
{
	struct address_space new = {.modules = s->modules, .pid = s->pid, .jit = s->jit};
	size_t nr;
	int err = proc_maps__read(s->pid, &new.maps);

	if (err)
		return err;
	new.fingerprint = fingerprint(new.maps, &nr);
	if (s->maps && new.fingerprint == s->fingerprint) {
		proc_maps__free(new.maps);
		return 0;
	}
	err = fill(&new, nr < SPACE_MAX_MAPPINGS ? nr : SPACE_MAX_MAPPINGS);
	if (err) {
		free_arrays(&new);
		return err;
	}
	free_arrays(s);
	*s = new;
	return 1;
}

static void how_jit(const struct address_space *s, bool here, struct kprof_unwind_mapping *m)
{
	const struct jit_area *area = s->jit ? jit_code__area(s->jit, m->start, m->end) : NULL;

	m->kind = KPROF_UNWIND_POINTERS;
	if (!area || !area->table || (!here && area->first_page == JIT_NOT_PLACED))
		return;
	m->kind = KPROF_UNWIND_JIT;
	m->bias = 0;
	m->first_page = here ? 0 : area->first_page;
	m->nr_pages = (uint32_t)area->table->nr_pages;
	m->table_page = (uint32_t)area->table->first_page;
}

void address_space__how(const struct address_space *s, size_t i, bool here,
			struct kprof_unwind_mapping *m)
{
	const struct module *module = s->areas[i].module;

	*m = s->mappings[i];
	m->first_page = m->nr_pages = m->table_page = 0;
	m->kind = KPROF_UNWIND_WITHOUT;
	if (s->areas[i].kind == CODE_AREA_JIT)
		return how_jit(s, here, m);
	if (!module)
		return;
	switch (module__state(module)) {
	case MODULE_PENDING:
	case MODULE_PARKED:
		m->kind = KPROF_UNWIND_PENDING;
		break;
	case MODULE_READY:
		m->kind = KPROF_UNWIND_PENDING;
		if (here ? !module__table(module) : module->first_page == MODULE_NOT_PLACED)
			break;
		m->kind = KPROF_UNWIND_TABLE;
		m->first_page = here ? 0 : module->first_page;
		m->nr_pages = module->nr_pages;
		m->table_page = module->table_page;
		break;
	case MODULE_WITHOUT:
		if (module->pointers)
			m->kind = KPROF_UNWIND_POINTERS;
		break;
	}
}

int address_space__settle(struct address_space *s)
{
	int changed = 0;

	for (size_t i = 0; i < s->nr; i++) {
		struct kprof_unwind_mapping m;

		address_space__how(s, i, false, &m);
		if (!memcmp(&m, &s->mappings[i], sizeof(m)))
			continue;
		s->mappings[i] = m;
		changed = 1;
	}
	return changed;
}

int address_space__open(struct modules *ms, pid_t pid, struct address_space **out)
{
	struct address_space *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return error_set(-ENOMEM, NULL, "out of memory");
	s->modules = ms;
	s->pid = pid;
	err = address_space__refresh(s);
	if (err < 0) {
		address_space__close(s);
		return err;
	}
	*out = s;
	return 0;
}

/* Takes out the areas that a later mapping replaces, in whole or in part. */
static void remove_below(struct address_space *s, const struct proc_map *map)
{
	size_t kept = 0;

	for (size_t i = 0; i < s->nr; i++) {
		if (s->mappings[i].end > map->start && s->mappings[i].start < map->end)
			continue;
		s->mappings[kept] = s->mappings[i];
		s->areas[kept++] = s->areas[i];
	}
	s->nr = kept;
}

static void insert_told(struct address_space *s, const struct proc_map *map)
{
	struct module *module = modules__known(s->modules, map->dev, map->inode);
	uint64_t vaddr =
		module && module->elf ? elffile__code_vaddr(module->elf, map->offset) : UINT64_MAX;
	size_t at;

	if (map->end <= map->start)
		return;
	remove_below(s, map);
	at = ORDER_UPTO(s->mappings, s->nr, end, map->start);
	memmove(&s->mappings[at + 1], &s->mappings[at], (s->nr - at) * sizeof(*s->mappings));
	memmove(&s->areas[at + 1], &s->areas[at], (s->nr - at) * sizeof(*s->areas));
	s->mappings[at] = (struct kprof_unwind_mapping){
		.start = map->start, .end = map->end, .bias = map->start - vaddr};
	s->areas[at] = (struct code_area){
		.kind = CODE_AREA_FILE,
		.module = vaddr == UINT64_MAX ? NULL : module,
		.offset = map->offset,
		.name = "",
	};
	s->nr++;
}

int address_space__of_maps(struct modules *ms, const struct proc_map *maps, size_t nr,
			   struct address_space **out)
{
	struct address_space *s = calloc(1, sizeof(*s));

	if (s) {
		s->modules = ms;
		s->mappings = calloc(nr + 1, sizeof(*s->mappings));
		s->areas = calloc(nr + 1, sizeof(*s->areas));
	}
	if (!s || !s->mappings || !s->areas) {
		address_space__close(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < nr; i++)
		insert_told(s, &maps[i]);
	*out = s;
	return 0;
}

void address_space__close(struct address_space *s)
{
	if (!s)
		return;
	free_arrays(s);
	jit_code__free(s->jit);
	free(s);
}

/* ---- JIT code ---- */

bool address_space__has_jit(const struct address_space *s)
{
	for (size_t i = 0; i < s->nr; i++)
		if (s->areas[i].kind == CODE_AREA_JIT)
			return true;
	return false;
}

int address_space__read_jit_code(struct address_space *s)
{
	struct jit_range *ranges;
	size_t nr = 0;
	int err = 0;

	if (!s->jit && !address_space__has_jit(s))
		return 0;
	if (!s->jit)
		err = jit_code__new(modules__rules(s->modules), s->pid, &s->jit);
	if (err)
		return err;
	ranges = calloc(s->nr + 1, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr; i++)
		if (s->areas[i].kind == CODE_AREA_JIT)
			ranges[nr++] = (struct jit_range){s->mappings[i].start, s->mappings[i].end};
	err = jit_code__read(s->jit, ranges, nr);
	free(ranges);
	return err;
}

size_t address_space__find(const struct address_space *s, uint64_t ip)
{
	size_t i = ORDER_UPTO(s->mappings, s->nr, end, ip);

	return i < s->nr && s->mappings[i].start <= ip ? i : SIZE_MAX;
}
