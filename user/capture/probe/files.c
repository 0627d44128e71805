// SPDX-License-Identifier: BSD-2-Clause
/* ELF files that targets map: opened and planned once, no matter how many processes map them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/set_impl.h"
#include "catalog/activity.h"
#include "util/error.h"
#include "util/sandbox.h"
#include "util/util.h"

struct file *probe_files__known(const struct probe_set *ps, const struct proc_map *map)
{
	struct file_key key = {.inode = map->inode, .dev = map->dev};
	struct file *f;

	HASH_FIND(hh, ps->files, &key, sizeof(key), f);
	return f;
}

int probe_files__entry(struct probe_set *ps, const struct proc_map *map, struct file **out)
{
	struct file *f = probe_files__known(ps, map);

	*out = f;
	if (f)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->key = (struct file_key){.inode = map->inode, .dev = map->dev};
	f->name = strdup(proc_basename(map->path));
	if (f->name) {
		f->by_name = plan_frameworks_of(f->name);
		HASH_ADD(hh, ps->files, key, sizeof(f->key), f);
	}
	if (!f->hh.tbl) {
		file__free(f);
		return -ENOMEM;
	}
	*out = f;
	return 0;
}

bool probe_set__fires_in_all(const struct probe_set *ps, const struct proc_map *map)
{
	const struct file *f = probe_files__known(ps, map);

	return f && f->sharing == FILE_SHARED && f->attached;
}

int probe_files__open(struct probe_set *ps, const struct target *t, const struct proc_map *map,
		      struct file **out)
{
	char path[512];
	int err = probe_files__entry(ps, map, out);

	/*
	 * The file is opened through the first process that still maps it. One that is not ELF
	 * stays closed.
	 */
	if (!err && !(*out)->elf && !proc_map_open_path((pid_t)t->pid, map, path, sizeof(path)))
		elffile__open(path, &(*out)->elf);
	return err;
}

int probe_set__reads_frameworks(const struct target *t)
{
	char path[512];
	int err = 0;

	for (size_t i = 0; i < proc_maps__nr(t->maps) && !err; i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		struct elffile *elf = NULL;

		if (!(map->flags & PROC_MAP_FILE) ||
		    map != proc_maps__first_of_file(t->maps, map) ||
		    !plan_frameworks_of(proc_basename(map->path)))
			continue;
		err = proc_map_open_path((pid_t)t->pid, map, path, sizeof(path));
		if (!err && (err = elffile__open(path, &elf)))
			error_set(err, sandbox_lacks_for_files(err),
				  "%s, mapped by process %u, cannot be read: %s", map->path, t->pid,
				  strerror(-err));
		elffile__close(elf);
	}
	return err;
}

void file__free(struct file *f)
{
	attach_links_close(&f->links);
	attach_links_close(&f->hook);
	elffile__close(f->elf);
	free(f->name);
	for (size_t i = 0; i < NR_FILE_PROGRAMS; i++) {
		free(f->points[i].points);
		free(f->given_up[i].points);
	}
	for (int i = 0; i < NR_EXTRAS; i++)
		free(f->extras[i].points.points);
	free(f->learnt);
	free(f->sequence);
	map64__free(&f->returns);
	map64__free(&f->site_at);
	free(f);
}

struct elffile *probe_set__elf(struct probe_set *ps, const struct target *t,
			       const struct proc_map *map)
{
	struct file *f;

	return probe_files__open(ps, t, map, &f) ? NULL : f->elf;
}

enum probe_caller probe_set__caller(struct probe_set *ps, const struct target *t, uint64_t addr,
				    uint64_t framework)
{
	const struct proc_map *map = target__known_map(t, addr);
	const struct file *f = map ? probe_files__known(ps, map) : NULL;

	if (!f || !((f->by_name | f->embedded) & framework))
		return PROBE_CALLER_OTHER;
	return f->by_name & framework ? PROBE_CALLER_FRAMEWORK : PROBE_CALLER_EMBEDDED;
}

/* Collects the process's files to search for layouts: frameworks' libraries and CPython. */
static void layout_files(struct probe_set *ps, struct target *t, struct plan_files *out)
{
	out->nr = 0;
	for (size_t i = 0; i < proc_maps__nr(t->maps) && out->nr < ARRAY_SIZE(out->files); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		const char *name = proc_basename(map->path);
		struct file *f;

		if (!(map->flags & PROC_MAP_FILE) || map != proc_maps__first_of_file(t->maps, map))
			continue;
		if (!plan_has_layouts(name))
			continue;
		if (probe_files__open(ps, t, map, &f) || !f->elf)
			continue;
		out->files[out->nr] = f->elf;
		out->names[out->nr++] = f->name;
	}
}

/*
 * The order in which probes are planned when their number is limited: first the few that say most.
 */
static int rank(const struct plan_probe *p)
{
	if (p->row->naming != CATALOG_NAME_SCHEMA && p->row->naming != CATALOG_NAME_SYMBOL)
		return 0;
	return p->common ? 1 : 2;
}
#define NR_RANKS 3

/*
 * May this one be placed, too? Single uprobes are limited: each is a descriptor and slow to remove.
 * Without those that say what is recorded, nothing would be.
 */
static bool affordable(struct probe_set *ps, const struct plan_probe *p)
{
	if (ps->opts.filter->within && attach_within_cookie(p->row, 0))
		return true;
	if (ps->opts.single && !ps->single_left) {
		ps->stats.single_cut++;
		return false;
	}
	ps->single_left -= ps->opts.single;
	return true;
}

static enum attach_program program_of(const struct plan_probe *p)
{
	if (p->signature)
		return p->signature->boxed ? ATTACH_BEGIN_BOXED : ATTACH_BEGIN_INPUTS;
	if (p->wire.text.reg || p->wire.value.reg)
		return ATTACH_BEGIN_TEXT;
	return p->wire.args[0].reg ? ATTACH_BEGIN_ARGS : ATTACH_BEGIN;
}

/* The set of the activity types in a list of names that are separated by blanks. */
static uint64_t types_in(const char *names)
{
	uint64_t types = 0;

	for (size_t i = 0; names && activity_at(i); i++)
		if (catalog_match(names, activity_at(i)->name))
			types |= 1ull << activity_at(i)->id;
	return types;
}

/* Looks up the string ids of the arguments' names. */
static void intern_keys(struct probe_set *ps, struct probe *probe)
{
	for (size_t i = 0; i < KPROF_WIRE_MAX_ARGS; i++) {
		const char *key = probe->row->args[i].name;

		if (key)
			probe->keys[i] = recorder__string(ps->opts.recorder, key);
	}
}

int point_list__add(struct point_list *list, struct attach_point point)
{
	int err = vec_grow((void **)&list->points, &list->cap, list->nr, sizeof(point));

	if (!err)
		list->points[list->nr++] = point;
	return err;
}

/* Describes the probe to the BPF programs, and adds its place to the points of the file. */
static int add_point(struct probe_set *ps, struct file *f, struct plan_probe *p, uint32_t source,
		     uint32_t annotations)
{
	enum attach_program program = program_of(p);
	const struct attach_point point = {
		.offset = p->offset,
		.cookie = KPROF_COOKIE(source, p->sp_bias_bytes, ps->nr) | p->sequence |
			  (p->row->shape == CATALOG_SPAN ? KPROF_COOKIE_SPAN : 0) |
			  (p->row->memory ? 0 : KPROF_COOKIE_MODULES) |
			  attach_within_cookie(p->row, annotations),
	};
	int err = 0;

	if (program != ATTACH_BEGIN) {
		p->wire.source = source;
		attach_within_value(p->row, &p->wire);
		err = attacher__set_probe(ps->opts.attacher, (uint32_t)ps->nr, &p->wire);
	}
	if (!err && p->signature)
		err = attacher__set_inputs(ps->opts.attacher, (uint32_t)ps->nr,
					   &p->signature->plan);
	if (!err)
		err = point_list__add(&f->points[program], point);
	return err ? error_set(err, NULL, "cannot describe a probe to the kernel: %s",
			       strerror(-err))
		   : 0;
}

/* framework: its index in catalog_frameworks. */
static int add_probe(struct probe_set *ps, struct file *f, size_t framework, struct plan_probe *p)
{
	struct probe *probe;
	uint32_t source;
	int err = recorder__source(ps->opts.recorder, p->row->source, &source);

	if (err)
		return err;
	if (ps->nr >= KPROF_WIRE_MAX_PROBES)
		return error_set(-ENOSPC, "choose fewer with --ops", "more than %d probes",
				 KPROF_WIRE_MAX_PROBES);
	err = vec_grow((void **)&ps->probes, &ps->cap, ps->nr, sizeof(*ps->probes));
	if (!err)
		err = add_point(ps, f, p, source, catalog_frameworks[framework]->annotations);
	if (err)
		return err;
	probe = &ps->probes[ps->nr++];
	*probe = (struct probe){
		.row = p->row,
		.row_id = (uint32_t)(framework << 16) |
			  (uint32_t)(p->row - catalog_frameworks[framework]->rows),
		.source = source,
		.framework = 1ull << framework,
		.group = 1ull << catalog_row_type(p->row),
		.folded_into = types_in(p->row->folded_into),
		.name = p->name,
		.overload = p->overload,
		.signature = p->signature,
		.type_mask = p->type_mask,
		.handles_are_objects = p->handles_are_objects,
	};
	for (size_t i = 0; i < KPROF_WIRE_MAX_ARGS; i++)
		probe->args_read |= (p->wire.args[i].reg != KPROF_REG_NONE) << i;
	/* such rows have a library of their own */
	f->no_stacks = p->row->memory != CATALOG_MEMORY_NONE;
	p->name = p->overload = NULL; /* now owned by the struct probe */
	p->signature = NULL;
	intern_keys(ps, probe);
	return 0;
}

static int plan_one(struct probe_set *ps, const struct plan_files *files, struct file *f,
		    size_t framework)
{
	const struct catalog_framework *fw = catalog_frameworks[framework];
	const char *name = f->by_name >> framework & 1 ? f->name : fw->embedded_as;
	struct plan plan;
	int err = plan_library(fw, f->elf, name, files, ps->opts.filter, &plan);

	if (err)
		return error_prefix(err, "looking for probes in %s", f->name);
	for (size_t i = 0; i < plan.nr_rows; i++)
		if (plan.rows[i].problem)
			log_info("%s: %s", f->name, plan.rows[i].problem);
	if (plan.no_tensors)
		log_warn("`kprof check -v` says what could be recorded of a process",
			 "%s: no shapes, as the layout of tensors could not be learnt from this "
			 "build",
			 f->name);
	if (plan.no_sequence)
		log_warn("`kprof check -v` says what could be recorded of a process",
			 "%s: no sequence numbers, as it could not be learnt from this build where "
			 "it keeps them",
			 f->name);
	ps->stats.unread += plan.unread;
	if (plan.sequence) {
		free(f->sequence);
		f->sequence = plan.sequence;
		f->sequence_of = fw->sequence;
		plan.sequence = NULL; /* now owned by the struct file */
	}
	for (int r = 0; r < NR_RANKS && !err; r++)
		for (size_t i = 0; i < plan.nr && !err; i++)
			if (rank(&plan.probes[i]) == r && affordable(ps, &plan.probes[i]))
				err = add_probe(ps, f, framework, &plan.probes[i]);
	plan_free(&plan);
	return err;
}

int probe_files__plan(struct probe_set *ps, struct target *t, struct file *f)
{
	uint64_t wanted = (f->by_name | f->embedded) & ~f->planned;
	struct plan_files files;
	int err = 0;

	if (!wanted || !f->elf)
		return 0;
	f->planned |= wanted;
	layout_files(ps, t, &files);
	for (size_t i = 0; catalog_frameworks[i] && !err; i++)
		if (wanted >> i & 1)
			err = plan_one(ps, &files, f, i);
	for (size_t i = 0; i < files.nr; i++)
		elffile__forget_pages(files.files[i]);
	return err;
}

void file__look_inside(struct file *f, uint64_t candidates)
{
	candidates &= ~(f->by_name | f->embedded_asked);
	if (!candidates || !f->elf)
		return;
	f->embedded_asked |= candidates;
	f->embedded |= plan_embedded_in(f->elf, candidates);
}

size_t file__nr_begins(const struct file *f)
{
	size_t nr = 0;

	for (size_t i = 0; i < NR_BEGIN_PROGRAMS; i++)
		nr += f->points[i].nr;
	return nr;
}
