// SPDX-License-Identifier: BSD-2-Clause
/* The files of a target from which it is learnt what an agent can read there. */
#include "capture/probe/observer_layout.h"

#include "capture/probe/probe.h"

#define MAX_FILES 8

/* The files of the target that belong to this framework's way of being observed. */
static void open_files(struct probe_set *ps, const struct target *t,
		       const struct catalog_framework *fw, struct elffile *files[MAX_FILES],
		       const char *names[MAX_FILES], size_t *nr)
{
	const struct proc_map *last = NULL;

	*nr = 0;
	for (size_t i = 0; i < proc_maps__nr(t->maps) && *nr < MAX_FILES; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		const char *name = proc_basename(map->path);

		if (!(map->flags & PROC_MAP_FILE) || !(map->flags & PROC_MAP_EXEC) ||
		    (last && last->dev == map->dev && last->inode == map->inode) ||
		    (!catalog_match(fw->observer_library, name) &&
		     !catalog_match(fw->tensor_library, name)))
			continue;
		last = map;
		files[*nr] = probe_set__elf(ps, t, map);
		names[*nr] = name;
		*nr += files[*nr] != NULL;
	}
}

uint32_t probe_set__observer_layout(struct probe_set *ps, const struct target *t,
				    struct kprof_agent_layout *out)
{
	struct elffile *files[MAX_FILES];
	const char *names[MAX_FILES];
	uint32_t known = 0;

	*out = (struct kprof_agent_layout){0};
	for (size_t i = 0; t->maps && catalog_frameworks[i] && !known; i++) {
		struct layout_env env = {.files = files, .names = names};

		if (!catalog_frameworks[i]->observer_library)
			continue;
		open_files(ps, t, catalog_frameworks[i], files, names, &env.nr);
		known = observer_layout(catalog_frameworks[i], &env, out);
	}
	return known;
}
