// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files of which the kernel's programs are told that they have their probes in every process that
 * maps them, or need none. A process that maps only such files loses no event, even if it ends
 * before kprof has looked at it (kprof_maps, bpf/tasks.bpf.c).
 */
#include <string.h>
#include <sys/sysmacros.h>

#include "capture/probe/set_impl.h"
#include "catalog/runtime.h"
#include "kprof/agent.h"
#include "util/util.h"

/* Whoever maps the agent, or a runtime that needs it, is to be looked at. */
static bool calls_for_agent(const struct probe_set *ps, const char *name)
{
	const struct catalog_runtime *rt;

	for (size_t i = 0; ps->opts.agent && (rt = catalog_runtime_at(i)); i++)
		if (rt->activities && catalog_match(rt->used, name))
			return true;
	return ps->opts.agent && catalog_match(KPROF_AGENT_LIBRARY, name);
}

/*
 * A program is searched for everything, even if nothing calls for it, and a library only for what
 * the process calls for. The same file may be both: the dynamic linker runs a program by its name.
 */
static bool is_searched(const struct target *t, const char *path, const struct file *f)
{
	if (t->exe && !strcmp(path, t->exe))
		return f && (f->by_name | f->embedded_asked) == PLAN_ALL_FRAMEWORKS;
	return catalog_match("*.so *.so.*", proc_basename(path));
}

static bool has_extras(const struct file *f)
{
	for (int i = 0; i < NR_EXTRAS; i++)
		if (f->extras[i].points.nr)
			return true;
	return false;
}

static bool extras_attached(const struct file *f)
{
	for (int i = 0; i < NR_EXTRAS; i++)
		if (f->extras[i].points.nr && !f->extras[i].attached)
			return false;
	return true;
}

/* Is it known that nothing in the file needs a probe in a single process? NULL: a file unopened. */
static bool is_placed(const struct probe_set *ps, const struct file *f)
{
	if (!marks__known(ps, f) || !functions__known(ps, f) || !f)
		return marks__known(ps, f) && functions__known(ps, f);
	if (f->sharing == FILE_SHARED)
		return f->attached == (f->by_name | f->embedded) && extras_attached(f);
	return !(f->by_name | f->embedded) && !has_extras(f);
}

static void tell(struct probe_set *ps, const struct proc_map *map, const struct file *f)
{
	const char *name = proc_basename(map->path);
	struct kprof_wire_placed placed = {
		.searched = f ? f->by_name | f->embedded_asked : 0,
		.calls_for = plan_embedded_with(name),
	};
	struct kprof_wire_file file = {
		.inode = map->inode,
		.dev = major(map->dev) << 20 | minor(map->dev),
	};
	uint64_t id = hash64_text(hash64(map->inode ^ hash64(map->dev)), name) >> 1;
	uint64_t *told = map64__at(&ps->placed, id), now = hash64(placed.searched) | 1;

	if (!told || *told == now)
		return;
	memcpy(file.name, name, strnlen(name, sizeof(file.name) - 1));
	if (!attacher__placed(ps->opts.attacher, &file, &placed))
		*told = now;
}

void placed__tell(struct probe_set *ps, const struct target *t)
{
	if (ps->opts.children != KPROF_CHILDREN_AUTO && ps->opts.children != KPROF_CHILDREN_EXACT)
		return;
	for (size_t i = 0; i < proc_maps__nr(t->maps); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		const struct file *f;

		if (!(map->flags & PROC_MAP_FILE) || !proc_maps__has_code(t->maps, map) ||
		    map != proc_maps__first_of_file(t->maps, map))
			continue;
		f = probe_files__known(ps, map);
		if (is_searched(t, map->path, f) && is_placed(ps, f) &&
		    !calls_for_agent(ps, proc_basename(map->path)))
			tell(ps, map, f);
	}
}

void placed__forget(struct probe_set *ps)
{
	attacher__forget_placed(ps->opts.attacher);
	map64__free(&ps->placed);
	ps->forgotten_ns = clock_mono_ns();
}

bool probe_set__told_since(const struct probe_set *ps, uint64_t time_ns)
{
	return time_ns > ps->forgotten_ns;
}
