// SPDX-License-Identifier: BSD-2-Clause
/*
 * Places of annotations that applications compiled in (kprof/mark.h), found in the files that
 * targets map.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/set_impl.h"
#include "symbol/elf/elf.h"
#include "util/error.h"
#include "util/util.h"

/* A file's notes may claim any number of places; more than this are not watched. */
#define MAX_PLACES 4096

/* Are events that annotations produce to be recorded? */
static bool wanted(const struct probe_set *ps)
{
	const uint64_t ours = 1ull << KPROF_ACTIVITY_USER_ANNOTATION |
			      1ull << KPROF_ACTIVITY_CPU_INSTANT_EVENT |
			      1ull << KPROF_ACTIVITY_CPU_OP;

	if (ps->opts.filter->only && !(ps->opts.filter->only & KPROF_ONLY_MARK))
		return false;
	return !ps->opts.filter->types || ps->opts.filter->types & ours;
}

struct found {
	struct probe_set *ps;
	struct file *file;
};

static int on_probe(void *ctx, const struct usdt_probe *p)
{
	struct found *found = ctx;
	struct file *f = found->file;
	const struct attach_point point = {
		.offset = p->offset,
		.cookie = KPROF_COOKIE(found->ps->mark_source, 0, 0),
		.semaphore = p->semaphore,
	};

	if (strcmp(p->provider, "kprof") || strcmp(p->name, "mark") || strcmp(p->args, "8@%rdi"))
		return 0;
	if (f->extras[EXTRA_MARKS].points.nr == MAX_PLACES) {
		log_warn(NULL, "%s has more than %d places for annotations; the rest are not seen",
			 f->name, MAX_PLACES);
		return 1;
	}
	return point_list__add(&f->extras[EXTRA_MARKS].points, point);
}

/* Looks for places of annotations in a file, once per file. */
static bool has_marks(struct probe_set *ps, struct file *f)
{
	struct found found = {.ps = ps, .file = f};
	struct extra *marks = &f->extras[EXTRA_MARKS];

	if (marks->known || !f->elf)
		return marks->points.nr > 0;
	marks->known = true;
	if (recorder__source(ps->opts.recorder, "annotations", &ps->mark_source))
		return false;
	usdt_probes(f->elf, on_probe, &found);
	return marks->points.nr > 0;
}

/* Most files can be ruled out without opening them. */
static bool may_have_marks(const struct target *t, const struct proc_map *map)
{
	char path[512];

	return proc_map_open_path((pid_t)t->pid, map, path, sizeof(path)) || usdt_may_be_in(path);
}

bool marks__known(const struct probe_set *ps, const struct file *f)
{
	return !wanted(ps) || (f && f->extras[EXTRA_MARKS].known);
}

bool marks__in(struct probe_set *ps, struct target *t, const struct proc_map *map)
{
	struct extra *marks;
	struct file *f;

	if (!wanted(ps) || probe_files__entry(ps, map, &f))
		return false;
	marks = &f->extras[EXTRA_MARKS];
	if (!marks->known && !f->elf && !may_have_marks(t, map))
		marks->known = true;
	if (marks->known)
		return marks->points.nr > 0;
	return !probe_files__open(ps, t, map, &f) && has_marks(ps, f);
}

int marks__attach(struct probe_set *ps, struct target *t, struct target_file *tf, const char *path)
{
	if (!wanted(ps) || !has_marks(ps, tf->file))
		return 0;
	return extras__attach(ps, t, tf, path, EXTRA_MARKS, ATTACH_MARK, "annotations");
}
