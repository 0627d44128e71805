// SPDX-License-Identifier: BSD-2-Clause
/* The files that a process maps, and the probes that are placed in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/marks.h"
#include "capture/session/session.h"
#include "util/error.h"
#include "util/util.h"

/* An empty function that the dynamic linker (glibc's and musl's) calls when its list changes. */
#define LINKER_HOOK "_dl_debug_state"

int target__file(struct kprof_session *s, struct target *t, const struct proc_map *map,
		 struct target_file **out)
{
	struct file *f;
	int err = session__file(s, t, map, &f);

	if (err)
		return err;
	for (size_t i = 0; i < t->nr_files; i++) {
		if (t->files[i].file == f) {
			*out = &t->files[i];
			return 0;
		}
	}
	err = vec_grow((void **)&t->files, &t->cap_files, t->nr_files, sizeof(*t->files));
	if (err)
		return err;
	t->files[t->nr_files] = (struct target_file){.file = f};
	*out = &t->files[t->nr_files++];
	return 0;
}

/* The linker's hook. Not there (static program): libraries are found by looking now and then. */
static void attach_linker(struct kprof_session *s, struct target *t, const struct proc_map *map,
			  const char *path)
{
	struct attach_point point;
	struct elffile_symbol sym;
	struct target_file *tf;

	if (t->linker || s->stopped || target__file(s, t, map, &tf) || !tf->file->elf ||
	    elffile__symbol(tf->file->elf, LINKER_HOOK, &sym))
		return;
	point.offset = elffile__offset(tf->file->elf, sym.vaddr);
	point.cookie = KPROF_COOKIE(KPROF_WIRE_SOURCE_TASKS, 0, 0);
	if (!attacher__attach(s->attacher, ATTACH_MAPS, (pid_t)t->pid, path, &point, 1, &t->links))
		t->linker = true;
}

/* Begins and what sites are known: all of them or none. */
static int place_probes(struct kprof_session *s, struct target *t, struct target_file *tf,
			const char *path)
{
	bool exact = s->opts.children == KPROF_CHILDREN_EXACT;
	struct attach_links *links = exact ? &tf->file->links : &t->links;
	struct file *f = tf->file;
	size_t *done = exact ? f->nr_attached : tf->nr_attached;
	pid_t pid = exact ? -1 : (pid_t)t->pid;
	size_t before = links->nr;
	int err = file__plan(s, t, f);

	for (int i = 0; i < NR_BEGIN_PROGRAMS && !err; i++) {
		const struct attach_point *points = f->points[i].points + done[i];
		size_t nr = f->points[i].nr - done[i];

		err = attacher__attach(s->attacher, (enum attach_program)i, pid, path, points, nr,
				       links);
		if (!err && s->opts.with_stack)
			err = attacher__attach(s->attacher, ATTACH_STACK, pid, path, points, nr,
					       links);
	}
	if (err) {
		attach_links_cut(links, before);
		return err;
	}
	for (int i = 0; i < NR_BEGIN_PROGRAMS; i++)
		done[i] = f->points[i].nr;
	sites__attach(s, t, tf, path);
	return 0;
}

/* A library that is found now may have been there since then. */
static uint64_t unseen_since(const struct target *t)
{
	if (t->dirty_ns)
		return t->dirty_ns;
	return t->looked_ns ? t->looked_ns : t->start_ns;
}

/*
 * Probes cannot be placed in a library. A process that was asked for is refused at the start; later, or
 * in a child, the recording goes on without: from here on it is a gap.
 */
static int without_probes(struct kprof_session *s, struct target *t, struct target_file *tf,
			  int err)
{
	if (!t->child && !s->started)
		return error_set_machine(err, "`kprof check` says what this machine allows",
					 "cannot place probes in %s of process %u: %s",
					 tf->file->name, t->pid, strerror(-err));
	log_warn("`kprof check` says what this machine allows",
		 "cannot place probes in %s of process %u: %s; its events are missing",
		 tf->file->name, t->pid, strerror(-err));
	tf->attached_for = tf->file->by_name | tf->file->embedded;
	tf->lost_ns = unseen_since(t);
	return 0;
}

/* The recording was over before probes could be placed. */
static int too_late(struct kprof_session *s, struct target *t, struct target_file *tf)
{
	int err = file__plan(s, t, tf->file);

	if (err || !file__nr_begins(tf->file))
		return err;
	return account__gap(s, t->pid, tf->file->name,
			    "it was mapped shortly before the recording ended", unseen_since(t),
			    s->end_ns);
}

static int attach_file(struct kprof_session *s, struct target *t, struct target_file *tf,
		       const char *path)
{
	struct file *f = tf->file;
	uint64_t wanted = f->by_name | f->embedded;
	int err;

	if (s->opts.children == KPROF_CHILDREN_EXACT)
		tf->attached_for |= f->attached;
	if (tf->attached_for == wanted)
		return 0;
	if (s->stopped)
		return too_late(s, t, tf);
	err = place_probes(s, t, tf, path);
	if (err == -ESRCH ||
	    err == -ENOENT) { /* gone meanwhile: the process, or the mapping only */
		t->maps_dirty = target__has_ended(t);
		return 0;
	}
	if (err)
		return without_probes(s, t, tf, err);
	tf->attached_for = f->attached = wanted;
	if (s->started && file__nr_begins(f)) {
		log_debug("probes stand in %s of process %u", f->name, t->pid);
		err = account__gap(s, t->pid, f->name,
				   t->forked && !t->looked_ns
					   ? "probes are placed in a forked child "
					     "when its fork is seen"
					   : "probes are placed once a library is mapped",
				   unseen_since(t), clock_mono_ns());
	}
	return err;
}

int target__lost(struct kprof_session *s, const struct target *t, uint64_t until_ns)
{
	int err = 0;

	for (size_t i = 0; i < t->nr_files && !err; i++)
		if (t->files[i].lost_ns)
			err = account__gap(s, t->pid, t->files[i].file->name,
					   "the kernel let no probes be placed",
					   t->files[i].lost_ns, until_ns);
	return err;
}

/* Frameworks (set) that may be linked into any file: what they need beside themselves is mapped. */
static uint64_t embeddable(const struct target *t)
{
	uint64_t set = 0;

	for (size_t i = 0; i < proc_maps__nr(t->maps); i++)
		set |= plan_embedded_with(proc_basename(proc_maps__at(t->maps, i)->path));
	return set;
}

static bool is_code(const struct target *t, const struct proc_map *map)
{
	for (; map; map = proc_maps__next_of_file(t->maps, map))
		if (map->flags & PROC_MAP_EXEC)
			return true;
	return false;
}

/* Does the file contain a library that has rows? The program is always asked, others when there are candidates. */
static bool embeds(struct kprof_session *s, struct target *t, const struct proc_map *map,
		   uint64_t candidates)
{
	struct file *f;

	if (t->exe && !strcmp(map->path, t->exe))
		candidates = PLAN_ALL_FRAMEWORKS;
	if (!candidates || !is_code(t, map) || session__file(s, t, map, &f))
		return false;
	file__look_inside(f, candidates);
	return f->embedded;
}

/* Places what is missing in one of the process's files. */
static int tend_file(struct kprof_session *s, struct target *t, const struct proc_map *map,
		     uint64_t candidates)
{
	const char *name = proc_basename(map->path);
	bool linker = !t->linker && catalog_match("ld-linux* ld-musl* ld-2.* ld.so*", name);
	struct target_file *tf;
	char path[512];
	int err;

	if (!linker && !plan_frameworks_of(name) && !marks__in(s, t, map) &&
	    !embeds(s, t, map, candidates))
		return 0;
	if (proc_map_open_path((pid_t)t->pid, map, path, sizeof(path)))
		return 0;
	if (linker) {
		attach_linker(s, t, map, path);
		return 0;
	}
	err = target__file(s, t, map, &tf);
	if (!err)
		err = marks__attach(s, t, tf, path);
	if (!err && tf->file->by_name | tf->file->embedded)
		err = attach_file(s, t, tf, path);
	return err;
}

int target__tend_files(struct kprof_session *s, struct target *t)
{
	uint64_t candidates = embeddable(t);
	int err = 0;

	for (size_t i = 0; i < proc_maps__nr(t->maps) && !err; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);

		if (map->flags & PROC_MAP_FILE && map == proc_maps__first_of_file(t->maps, map))
			err = tend_file(s, t, map, candidates);
	}
	return err;
}
