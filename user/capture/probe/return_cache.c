// SPDX-License-Identifier: BSD-2-Clause
/*
 * Return addresses are facts of a file: those that a recording has met are kept on disk, and the
 * next one places their sites together with the file's entry probes, so that ends are exact from
 * the first event on.
 *
 * Only the addresses are kept; what the code there does is found anew (return_sites.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "capture/probe/return_blob.h"
#include "capture/probe/set_impl.h"
#include "util/disk_cache.h"
#include "util/util.h"

static int cache_dir(struct probe_set *ps)
{
	if (!ps->cache_known)
		ps->cache_dir = disk_cache__open(NULL);
	ps->cache_known = true;
	return ps->cache_dir;
}

static bool name_of(const struct file *f, char name[DISK_CACHE_NAME_BYTES], uint64_t *stamp)
{
	char suffix[32];

	*stamp = elffile__stamp(f->elf);
	snprintf(suffix, sizeof(suffix), "-%016llx.ret", (unsigned long long)*stamp);
	return elffile__identity(f->elf)->linked &&
	       disk_cache__name(name, elffile__build_id(f->elf), suffix);
}

static void learn_kept(struct probe_set *ps, struct file *f, const struct kept_return *all,
		       size_t nr)
{
	struct file_return *r;

	for (size_t i = 0; i < nr; i++)
		return_sites__learn_code(ps, f, all[i].offset, all[i].result, &r);
	f->nr_recalled = f->nr_learnt;
}

/*
 * Most of what was learnt of a framework's files is where its operators return to. Where those are
 * not probed, sites there would cost as much as ever, for nothing.
 */
static bool is_of_use(const struct probe_set *ps)
{
	return !ps->opts.filter->observed && !ps->opts.filter->only;
}

void return_cache__recall(struct probe_set *ps, struct file *f)
{
	char name[DISK_CACHE_NAME_BYTES], *blob;
	struct kept_return *all;
	size_t bytes, nr;
	uint64_t stamp;

	/* Each single uprobe costs a descriptor, and a millisecond. */
	if (f->recalled || ps->opts.single || !is_of_use(ps) || !f->elf)
		return;
	f->recalled = true;
	if (cache_dir(ps) < 0 || !name_of(f, name, &stamp) ||
	    disk_cache__read(cache_dir(ps), name, RETURN_BLOB_MAX_BYTES, &blob, &bytes))
		return;
	all = calloc(RETURN_BLOB_MOST, sizeof(*all));
	if (all && !return_blob__unpack(blob, bytes, stamp, all, &nr))
		learn_kept(ps, f, all, nr);
	free(all);
	free(blob);
}

/* Tells the BPF programs what is known of an address of the process. */
static void tell(struct probe_set *ps, struct target *t, uint64_t addr, const struct file_return *r)
{
	if (r->site)
		attacher__sited(ps->opts.attacher, t->space, addr);
	else if (r->code.kind == INSN_RETURN_FOLLOW)
		followed__add(ps, t, addr, &r->code);
}

void return_cache__tell(struct probe_set *ps, struct target *t, const struct proc_map *map,
			const struct file *f)
{
	for (; map && f->nr_learnt; map = proc_maps__next_of_file(t->maps, map)) {
		if (!(map->flags & PROC_MAP_EXEC))
			continue;
		for (size_t i = 0; i < f->returns.cap; i++) {
			const struct map64_slot *s = &f->returns.slots[i];
			uint64_t offset = s->tag - 1;

			if (s->tag && s->value && offset >= map->offset &&
			    offset - map->offset < map->end - map->start)
				tell(ps, t, map->start + offset - map->offset,
				     &f->learnt[s->value - 1]);
		}
	}
}

size_t return_cache__collect(const struct file *f, struct kept_return *all)
{
	uint64_t *offsets = calloc(f->nr_learnt + 1, sizeof(*offsets));
	size_t nr = 0;

	for (size_t i = 0; i < f->returns.cap && offsets; i++)
		if (f->returns.slots[i].value)
			offsets[f->returns.slots[i].value - 1] = f->returns.slots[i].tag - 1;
	for (int met = 1; met >= 0 && offsets; met--) {
		for (size_t i = 0; i < f->nr_learnt && nr < RETURN_BLOB_MOST; i++) {
			const struct file_return *r = &f->learnt[i];

			if (r->met != met || r->code.kind == INSN_RETURN_NONE)
				continue;
			all[nr++] = (struct kept_return){
				.offset = offsets[i],
				.result = r->site && map64__get(&f->site_at, r->site_offset) & 1,
			};
		}
	}
	free(offsets);
	return nr;
}

static bool remember(struct probe_set *ps, const struct file *f, struct kept_return *all)
{
	char name[DISK_CACHE_NAME_BYTES], *blob;
	size_t nr = return_cache__collect(f, all), bytes;
	uint64_t stamp;
	bool done;

	if (!nr || elffile__cut(f->elf) || !name_of(f, name, &stamp))
		return false;
	blob = return_blob__pack(all, nr, stamp, &bytes);
	done = blob && disk_cache__write(cache_dir(ps), name, blob, bytes);
	free(blob);
	return done;
}

void probe_set__remember(struct probe_set *ps)
{
	struct kept_return *all;
	bool written = false;

	if (!is_of_use(ps)) /* what was not recalled would be lost */
		return;
	all = calloc(RETURN_BLOB_MOST, sizeof(*all));
	for (const struct file *f = ps->files; f && all; f = f->hh.next)
		if (f->elf && f->nr_learnt > f->nr_recalled)
			written |= remember(ps, f, all);
	if (written)
		disk_cache__trim(cache_dir(ps), DISK_CACHE_BOUND);
	free(all);
}
