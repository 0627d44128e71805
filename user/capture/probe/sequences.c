// SPDX-License-Identifier: BSD-2-Clause
/* Where the processes of a recording keep their sequence numbers. */
#include "capture/probe/set_impl.h"
#include "util/error.h"

#include <string.h>

/* The first mapping of a file whose name matches; NULL: there is none. */
static const struct proc_map *map_of(const struct target *t, const char *globs)
{
	for (size_t i = 0; i < proc_maps__nr(t->maps); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);

		if (map->flags & PROC_MAP_FILE && catalog_match(globs, proc_basename(map->path)))
			return map;
	}
	return NULL;
}

/* The programs know how glibc keeps the variables of threads, not how others do. */
#define LIBC "libc.so.6 libc-2.*"

void sequences__tell(struct probe_set *ps, struct target *t, struct target_file *tf,
		     const struct proc_map *map)
{
	struct kprof_wire_sequence wire;
	const struct proc_map *state;
	struct elffile *elf;
	int err;

	if (tf->sequenced || !tf->file->sequence)
		return;
	tf->sequenced = true;
	state = map_of(t, tf->file->sequence_of->state_library);
	elf = state ? probe_set__elf(ps, t, state) : NULL;
	if (!elf || !map_of(t, LIBC)) {
		log_info("process %u: no sequence numbers: not glibc, or only a part of PyTorch",
			 t->pid);
		return;
	}
	err = sequence_of(t, tf->file->sequence, tf->file->elf, map, elf, state, &wire);
	if (!err)
		err = attacher__set_sequence(ps->opts.attacher, t->space, &wire);
	if (err)
		log_info("process %u: no sequence numbers: %s", t->pid, strerror(-err));
}
