// SPDX-License-Identifier: BSD-2-Clause
#include "capture/unwind/address_space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

#define VDSO_MAX_BYTES (64u << 10) /* at most; it is two pages in practice */
/* A process may have 65,530 mappings (vm.max_map_count) unless it was allowed more. */
#define SPACE_MAX_MAPPINGS 65536

struct address_space {
	struct modules *modules;
	pid_t pid;
	struct proc_maps *maps; /* the mappings; names of areas point into it */
	uint64_t fingerprint;   /* hash over the executable mappings */
	struct kprof_unwind_mapping *mappings;
	struct code_area *areas;
	size_t nr;
	struct jit_code *jit; /* NULL: no JIT code was read */
};

/* ---- one mapping ---- */

/*
 * Finds the module of the vDSO. All 64-bit processes have the same one, unless they were restored
 *.
 */
static int find_vdso(struct address_space *s, const struct proc_map *map, struct module **out)
{
	size_t bytes = (size_t)(map->end - map->start);
	void *image;
	ssize_t n;
	int err = -EFAULT;

	*out = NULL;
	if (bytes > VDSO_MAX_BYTES)
		return 0;
	image = malloc(bytes);
	if (!image)
		return error_set(-ENOMEM, NULL, "out of memory");
	n = process_read_some(s->pid, map->start, image, bytes);
	if (n == (ssize_t)bytes)
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

/* Fills an address space that is still empty. */
static int fill(struct address_space *s, struct proc_maps *maps, size_t nr)
{
	int err = 0;

	s->maps = maps;
	s->mappings = calloc(nr + 1, sizeof(*s->mappings));
	s->areas = calloc(nr + 1, sizeof(*s->areas));
	if (!s->mappings || !s->areas)
		return error_set(-ENOMEM, NULL, "out of memory");
	for (size_t i = 0; i < proc_maps__nr(maps) && s->nr < nr && !err; i++) {
		const struct proc_map *map = proc_maps__at(maps, i);

		if (map->flags & PROC_MAP_EXEC)
			err = add_area(s, map);
	}
	address_space__settle(s);
	return err;
}

static void empty(struct address_space *s)
{
	free(s->mappings);
	free(s->areas);
	proc_maps__free(s->maps);
	s->mappings = NULL;
	s->areas = NULL;
	s->maps = NULL;
	s->nr = 0;
}

int address_space__refresh(struct address_space *s)
{
	struct address_space before = *s;
	struct proc_maps *maps;
	uint64_t print;
	size_t nr;
	int err;

	err = proc_maps__read(s->pid, &maps);
	if (err)
		return err;
	print = fingerprint(maps, &nr);
	if (s->maps && print == s->fingerprint) {
		proc_maps__free(maps);
		return 0;
	}
	s->maps = NULL;
	s->mappings = NULL;
	s->areas = NULL;
	s->nr = 0;
	err = fill(s, maps, nr < SPACE_MAX_MAPPINGS ? nr : SPACE_MAX_MAPPINGS);
	if (err) {
		empty(s);
		*s = before;
		return err;
	}
	s->fingerprint = print;
	empty(&before);
	return 1;
}

static void settled_jit(const struct address_space *s, struct kprof_unwind_mapping *m)
{
	const struct jit_area *area = s->jit ? jit_code__area(s->jit, m->start, m->end) : NULL;

	m->kind = KPROF_UNWIND_POINTERS;
	if (!area || !area->table || area->first_page == JIT_NOT_PLACED)
		return;
	m->kind = KPROF_UNWIND_JIT;
	m->bias = 0;
	m->first_page = area->first_page;
	m->nr_pages = (uint32_t)area->table->nr_pages;
	m->table_page = (uint32_t)area->table->first_page;
}

/* Sets how a mapping is walked, by the present state of its module. */
static void settled(const struct address_space *s, const struct code_area *area,
		    struct kprof_unwind_mapping *m)
{
	const struct module *module = area->module;

	m->first_page = m->nr_pages = m->table_page = 0;
	m->kind = KPROF_UNWIND_WITHOUT;
	if (area->kind == CODE_AREA_JIT)
		return settled_jit(s, m);
	if (!module)
		return;
	switch (module__state(module)) {
	case MODULE_PENDING:
		m->kind = KPROF_UNWIND_PENDING;
		break;
	case MODULE_READY:
		if (module->first_page == MODULE_NOT_PLACED) {
			m->kind = KPROF_UNWIND_PENDING;
			break;
		}
		m->kind = KPROF_UNWIND_TABLE;
		m->first_page = module->first_page;
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
		struct kprof_unwind_mapping m = s->mappings[i];

		settled(s, &s->areas[i], &m);
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

void address_space__close(struct address_space *s)
{
	if (!s)
		return;
	empty(s);
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

struct jit_code *address_space__jit_code(const struct address_space *s)
{
	return s->jit;
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

pid_t address_space__pid(const struct address_space *s)
{
	return s->pid;
}

struct modules *address_space__modules(const struct address_space *s)
{
	return s->modules;
}

size_t address_space__nr(const struct address_space *s)
{
	return s->nr;
}

const struct kprof_unwind_mapping *address_space__mappings(const struct address_space *s)
{
	return s->mappings;
}

const struct code_area *address_space__areas(const struct address_space *s)
{
	return s->areas;
}

size_t address_space__find(const struct address_space *s, uint64_t ip)
{
	size_t low = 0, high = s->nr;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->mappings[mid].end <= ip)
			low = mid + 1;
		else
			high = mid;
	}
	return low < s->nr && s->mappings[low].start <= ip ? low : SIZE_MAX;
}
