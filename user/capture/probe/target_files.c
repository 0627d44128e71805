// SPDX-License-Identifier: BSD-2-Clause
/* What the probe set knows of one target: the files in which it has probes, or could have. */
#include <stdlib.h>

#include "capture/probe/set_impl.h"
#include "util/util.h"

struct target_probes *probe_set__of(struct probe_set *ps, struct target *t)
{
	if (!t->slot[ps->slot])
		t->slot[ps->slot] = calloc(1, sizeof(struct target_probes));
	return t->slot[ps->slot];
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
