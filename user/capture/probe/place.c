// SPDX-License-Identifier: BSD-2-Clause
/* The files that a process maps, and the probes that are placed in them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/set_impl.h"
#include "util/error.h"
#include "util/util.h"

/*
 * An empty function that the dynamic linker (of glibc and musl) calls when its list of libraries
 * changes.
 */
#define LINKER_HOOK "_dl_debug_state"
/* How long the dynamic linker may take to map what a library needs: it does nothing in between. */
#define LOADING_MOST_NS (10 * NSEC_PER_SEC)

/* The entry in the target's probe set slot for the file of a mapping, added when it is new. */
static int target_file(struct probe_set *ps, struct target *t, const struct proc_map *map,
		       struct target_file **out)
{
	struct target_probes *tp = probe_set__of(ps, t);
	struct file *f;
	int err = tp ? probe_files__open(ps, t, map, &f) : -ENOMEM;

	return err ? err : target_probes__file(tp, f, out);
}

static const struct record_window *window(const struct probe_set *ps)
{
	return recorder__window(ps->opts.recorder);
}

/* Is it where memory is allocated, and not where it is freed? */
static bool allocates(const struct probe_set *ps, const struct attach_point *point)
{
	const struct probe *p = probe_set__probe(ps, KPROF_COOKIE_INDEX(point->cookie));

	return p->row->memory == CATALOG_MEMORY_ALLOCATED ||
	       p->row->memory == CATALOG_MEMORY_REPORTED;
}

/* Has stacks taken where memory is allocated. */
static int place_memory_stacks(struct probe_set *ps, pid_t pid, const char *path,
			       const struct attach_point *points, size_t nr,
			       struct attach_links *links)
{
	struct point_list list = {0};
	int err = 0;

	for (size_t i = 0; i < nr && !err; i++)
		if (allocates(ps, &points[i]))
			err = point_list__add(&list, points[i]);
	if (!err)
		err = attacher__attach(ps->opts.attacher, ATTACH_STACK, pid, path, list.points,
				       list.nr, links);
	free(list.points);
	return err;
}

/* Places all entry probes of a file, or none of them. */
static int place_probes(struct probe_set *ps, struct target *t, struct target_file *tf,
			const char *path)
{
	struct file *f = tf->file;
	struct attach_links *links = sharing__links(ps, t, f);
	size_t *done = target_file__attached(tf);
	pid_t pid = sharing__pid(f, t);
	size_t before = links->nr;
	int err = probe_files__plan(ps, t, f);

	for (int i = 0; i < NR_BEGIN_PROGRAMS && !err && !ps->shed_all; i++) {
		const struct attach_point *points = f->points[i].points + done[i];
		size_t nr = f->points[i].nr - done[i];

		err = attacher__attach(ps->opts.attacher, (enum attach_program)i, pid, path, points,
				       nr, links);
		if (!err && ps->opts.memory_stacks)
			err = place_memory_stacks(ps, pid, path, points, nr, links);
		else if (!err && ps->opts.entry_stacks && !f->no_stacks)
			err = attacher__attach(ps->opts.attacher, ATTACH_STACK, pid, path, points,
					       nr, links);
	}
	if (err) {
		attach_links_cut(links, before);
		return err;
	}
	for (int i = 0; i < NR_BEGIN_PROGRAMS; i++)
		done[i] = f->points[i].nr;
	attach_links_mark(links, before, f);
	return 0;
}

/* A library that is found now may have been mapped since the time that this returns. */
static uint64_t unseen_since(const struct target *t)
{
	if (t->dirty_ns)
		return t->dirty_ns;
	return t->looked_ns ? t->looked_ns : t->start_ns;
}

/*
 * Probes cannot be placed in a library. Before the window opens that is an error, unless the
 * process is a child. Otherwise the recording goes on without these probes, and the capture will
 * have a gap from here on.
 */
static int without_probes(struct probe_set *ps, struct target *t, struct target_file *tf, int err)
{
	if (!t->followed && !window(ps)->open)
		return error_set_machine(err,
					 err == -ETXTBSY
						 ? "--trust-files, if you trust who mounted "
						   "it; kprof sample places no probes"
						 : "`kprof check` says what this machine allows",
					 "cannot place probes in %s of process %u: %s",
					 tf->file->name, t->pid, attacher__why(err));
	log_warn(err == -ETXTBSY ? "--trust-files, if you trust who mounted it"
				 : "`kprof check` says what this machine allows",
		 "cannot place probes in %s of process %u: %s; its events are missing",
		 tf->file->name, t->pid, attacher__why(err));
	tf->attached_for = tf->file->by_name | tf->file->embedded;
	tf->lost_ns = unseen_since(t);
	return 0;
}

/* The mappings are to be read again, and what was mapped is to be given its probes then. */
static void look_again(struct target *t)
{
	if (!t->dirty_ns) {
		t->dirty_ns = unseen_since(t);
		t->unplaced = true;
	}
	t->maps_dirty = true;
}

/*
 * The file could not be opened, or probed. If the process is ending, its mappings are gone: it has
 * not been looked at since they changed, which is a gap once it has ended.
 */
static void unreachable(struct target *t)
{
	if (target__leader_ended(t))
		look_again(t);
}

struct need {
	const struct target *t;
	uint64_t frameworks;
};

static bool maps_one_of(const struct target *t, const char *globs)
{
	for (size_t i = 0; i < proc_maps__nr(t->maps); i++)
		if (catalog_match(globs, proc_basename(proc_maps__at(t->maps, i)->path)))
			return true;
	return false;
}

/* Is it a library of one of the frameworks, and not mapped? */
static bool is_missing(void *ctx, const char *name)
{
	const struct need *need = ctx;

	for (size_t i = 0; catalog_frameworks[i]; i++) {
		const char *const *lib = catalog_frameworks[i]->libraries;

		for (; need->frameworks >> i & 1 && *lib; lib++)
			if (catalog_match(*lib, name) && !maps_one_of(need->t, *lib))
				return true;
	}
	return false;
}

/*
 * The dynamic linker maps the libraries that a file needs after it, before anything of it runs.
 * Which functions are probed, and how, depends on all libraries of a framework.
 */
static bool is_being_loaded(const struct target *t, struct target_file *tf)
{
	struct need need = {.t = t, .frameworks = tf->file->by_name & ~tf->attached_for};
	uint64_t now_ns = clock_mono_ns();

	if (!elffile__needs(tf->file->elf, is_missing, &need))
		return false;
	if (!tf->loading_ns)
		tf->loading_ns = now_ns;
	return now_ns < tf->loading_ns + LOADING_MOST_NS;
}

/* The same; else it may be readable at the next look. Until then its events are missing. */
static void unreadable(struct target *t, struct target_file *tf)
{
	if (target__leader_ended(t))
		unreachable(t);
	else if (!tf->lost_ns)
		tf->lost_ns = unseen_since(t);
}

/* Records that a library was found after the window closed, so that no probes were placed in it. */
static int too_late(struct probe_set *ps, struct target *t, struct target_file *tf)
{
	int err = probe_files__plan(ps, t, tf->file);

	if (err || !file__nr_begins(tf->file))
		return err;
	return recorder__gap(ps->opts.recorder, t->pid, tf->file->name,
			     "it was mapped shortly before the recording ended", unseen_since(t),
			     window(ps)->end_ns);
}

static const char *const shed_reason = "its probes were placed anew, without those that cost most";

/* Why there were no probes in a file for a while. */
static const char *reason(const struct target *t, const struct file *f)
{
	if (f->unshared_ns && t->dirty_ns == f->unshared_ns)
		return "another process used the file much: its probes are placed in targets only";
	if (f->shed_ns && t->dirty_ns == f->shed_ns)
		return shed_reason;
	if (t->forked && !t->looked_ns)
		return f->bystander ? "another process maps the file: probes are placed in a "
				      "forked child when its fork is seen"
				    : "probes are placed in a forked child when its fork is seen";
	return "probes are placed once a library is mapped";
}

/*
 * Another process's look has placed the probes of a SHARED file in this one, too. If they were
 * placed anew, they had been missing here as well.
 */
static int placed_by_another(struct probe_set *ps, const struct target *t, const struct file *f)
{
	uint64_t from_ns = t->looked_ns ? t->looked_ns : t->start_ns;

	if (from_ns < f->shed_ns)
		from_ns = f->shed_ns;
	if (!f->shed_ns || from_ns >= f->placed_ns || !file__nr_begins(f) || ps->shed_all)
		return 0;
	return recorder__gap(ps->opts.recorder, t->pid, f->name, shed_reason, from_ns,
			     f->placed_ns);
}

static int attach_file(struct probe_set *ps, struct target *t, struct target_file *tf,
		       const char *path)
{
	struct file *f = tf->file;
	uint64_t wanted = f->by_name | f->embedded;
	int err;

	if (tf->attached_for == wanted)
		return 0;
	if (f->sharing == FILE_SHARED && f->attached == wanted) {
		tf->attached_for = wanted;
		return placed_by_another(ps, t, f);
	}
	if (window(ps)->closed)
		return too_late(ps, t, tf);
	if (!f->elf) {
		unreadable(t, tf);
		return 0;
	}
	if (is_being_loaded(t, tf)) {
		look_again(t);
		return 0;
	}
	err = place_probes(ps, t, tf, path);
	if (err == -ESRCH || err == -ENOENT) { /* the process is gone, or only the mapping */
		unreachable(t);
		return 0;
	}
	if (err)
		return without_probes(ps, t, tf, err);
	tf->attached_for = f->attached = wanted;
	f->placed_ns = clock_mono_ns();
	if (window(ps)->open && file__nr_begins(f) && !ps->shed_all) {
		log_debug("probes stand in %s of process %u", f->name, t->pid);
		err = recorder__gap(ps->opts.recorder, t->pid, f->name, reason(t, f),
				    tf->lost_ns ? tf->lost_ns : unseen_since(t), clock_mono_ns());
	}
	tf->lost_ns = 0;
	return err;
}

int probe_set__record_lost(struct probe_set *ps, const struct target *t, uint64_t until_ns)
{
	const struct target_probes *tp = probe_set__known(ps, t);
	int err = 0;

	for (size_t i = 0; tp && i < tp->nr && !err; i++)
		if (tp->files[i].lost_ns)
			err = recorder__gap(ps->opts.recorder, t->pid, tp->files[i].file->name,
					    "no probes could be placed in it", tp->files[i].lost_ns,
					    until_ns);
	return err;
}

/*
 * The set of frameworks that may be linked into any file, because the process maps the libraries
 * that they need.
 */
static uint64_t embeddable(const struct target *t)
{
	uint64_t set = 0;

	for (size_t i = 0; i < proc_maps__nr(t->maps); i++)
		set |= plan_embedded_with(proc_basename(proc_maps__at(t->maps, i)->path));
	return set;
}

/*
 * Is a framework's library linked into the file? The program itself is always searched, other files
 * only when there are candidates.
 */
static bool embeds(struct probe_set *ps, struct target *t, const struct proc_map *map,
		   uint64_t candidates)
{
	struct file *f;

	if (t->exe && !strcmp(map->path, t->exe))
		candidates = PLAN_ALL_FRAMEWORKS;
	if (!candidates || !proc_maps__has_code(t->maps, map))
		return false;
	if (probe_files__open(ps, t, map, &f)) {
		unreachable(t);
		return false;
	}
	file__look_inside(f, candidates);
	return f->embedded;
}

/* pid: -1, for every process that maps the file. */
static int attach_own(struct probe_set *ps, struct target *t, struct target_file *tf,
		      const struct proc_map *map, enum attach_program program, const char *symbol,
		      uint64_t cookie, pid_t pid, struct attach_links *links)
{
	struct attach_point point = {.cookie = cookie};
	struct elffile_symbol sym;
	char path[512];
	int err = proc_map_open_path((pid_t)t->pid, map, path, sizeof(path));

	if (err)
		return err;
	if (!tf->file->elf || elffile__symbol(tf->file->elf, symbol, &sym))
		return -ENOEXEC;
	point.offset = elffile__offset(tf->file->elf, sym.vaddr);
	return attacher__attach(ps->opts.attacher, program, pid, path, &point, 1, links);
}

int probe_set__place_own(struct probe_set *ps, struct target *t, const struct proc_map *map,
			 enum attach_program program, const char *symbol, uint64_t cookie)
{
	struct target_file *tf;
	int err = target_file(ps, t, map, &tf);

	if (err || tf->own_probe)
		return err;
	err = attach_own(ps, t, tf, map, program, symbol, cookie, (pid_t)t->pid,
			 &probe_set__of(ps, t)->links);
	tf->own_probe = !err;
	return err;
}

/*
 * Watches the dynamic linker. Where children are to be recorded from their first instruction on,
 * its hook is watched in every process: a child may open a library, and end, before kprof has
 * looked at it. Another process pays for two hits when it starts a program or opens a library.
 */
static void place_hook(struct probe_set *ps, struct target *t, const struct proc_map *map)
{
	const uint64_t cookie = KPROF_COOKIE(KPROF_WIRE_SOURCE_TASKS, 0, 0);
	struct target_file *tf;

	if (ps->opts.children != KPROF_CHILDREN_AUTO && ps->opts.children != KPROF_CHILDREN_EXACT) {
		probe_set__place_own(ps, t, map, ATTACH_MAPS, LINKER_HOOK, cookie);
		return;
	}
	if (target_file(ps, t, map, &tf) || tf->own_probe)
		return;
	tf->own_probe = tf->file->hook.nr || !attach_own(ps, t, tf, map, ATTACH_MAPS, LINKER_HOOK,
							 cookie, -1, &tf->file->hook);
}

/* Of files that were opened as they may embed a framework: its callers are often in the program. */
static bool has_known_returns(struct probe_set *ps, const struct target *t,
			      const struct proc_map *map)
{
	struct file *f = probe_files__known(ps, map);

	if (!f || !f->elf || !proc_maps__has_code(t->maps, map))
		return false;
	return_cache__recall(ps, f);
	return f->nr_learnt;
}

/* Places the missing probes in one file of the process. */
static int place_in_file(struct probe_set *ps, struct target *t, const struct proc_map *map,
			 uint64_t candidates)
{
	const char *name = proc_basename(map->path);
	struct target_file *tf;
	char path[512];
	int err;

	/*
	 * Where the linker has no hook (a static program), new libraries are found when
	 * processes__tend() reads the mappings.
	 */
	if (catalog_match("ld-linux* ld-musl* ld-2.* ld.so*", name) && !window(ps)->closed)
		place_hook(ps, t, map);
	if (!plan_frameworks_of(name) && !marks__in(ps, t, map) && !functions__in(ps, t, map) &&
	    !embeds(ps, t, map, candidates) && !has_known_returns(ps, t, map))
		return 0;
	if (proc_map_open_path((pid_t)t->pid, map, path, sizeof(path))) {
		unreachable(t);
		return 0;
	}
	err = target_file(ps, t, map, &tf);
	if (!err)
		err = marks__attach(ps, t, tf, path);
	if (!err && tf->file->by_name | tf->file->embedded)
		err = attach_file(ps, t, tf, path);
	if (!err) /* the latest probe runs first: one of them may be an operator, too */
		err = functions__attach(ps, t, tf, path);
	if (!err && tf->attached_for && !window(ps)->closed)
		sequences__tell(ps, t, tf, map);
	if (!err && !window(ps)->closed && !tf->told) {
		return_cache__recall(ps, tf->file);
		return_sites__attach(ps, t, tf, path);
		return_cache__tell(ps, t, map, tf->file);
		tf->told = true;
	}
	return err;
}

int probe_set__place(struct probe_set *ps, struct target *t)
{
	uint64_t candidates = embeddable(t);
	int err = 0;

	for (size_t i = 0; i < proc_maps__nr(t->maps) && !err; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);

		if (map->flags & PROC_MAP_FILE && map == proc_maps__first_of_file(t->maps, map))
			err = place_in_file(ps, t, map, candidates);
	}
	if (!err && !window(ps)->closed)
		placed__tell(ps, t);
	return err;
}
