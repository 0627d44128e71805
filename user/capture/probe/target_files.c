// SPDX-License-Identifier: BSD-2-Clause
/* What the probe set knows of one target: the files in which it has probes, or could have. */
#include <errno.h>
#include <stdlib.h>

#include "capture/probe/set_impl.h"
#include "util/util.h"

struct target_probes *probe_set__of(struct probe_set *ps, struct target *t)
{
	if (!t->slot[ps->slot])
		t->slot[ps->slot] = calloc(1, sizeof(struct target_probes));
	return t->slot[ps->slot];
}

int target_file__path(const struct target *t, const struct file *f, char *path, size_t size)
{
	for (size_t i = 0; t->maps && i < proc_maps__nr(t->maps); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);

		if (map->inode == f->key.inode && map->dev == f->key.dev &&
		    !proc_map_open_path((pid_t)t->pid, map, path, size))
			return 0;
	}
	return -ENOENT;
}

int target_probes__file(struct target_probes *tp, struct file *f, struct target_file **out)
{
	int err;

	for (size_t i = 0; i < tp->nr; i++) {
		if (tp->files[i].file == f) {
			*out = &tp->files[i];
			return 0;
		}
	}
	err = vec_grow((void **)&tp->files, &tp->cap, tp->nr, sizeof(*tp->files));
	if (err)
		return err;
	tp->files[tp->nr] = (struct target_file){.file = f};
	*out = &tp->files[tp->nr++];
	return 0;
}
