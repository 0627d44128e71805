// SPDX-License-Identifier: BSD-2-Clause
/* ELF files that targets map: opened once, planned once, whichever process maps them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/session/session.h"
#include "symbol/python/python.h"
#include "catalog/activity.h"
#include "util/error.h"
#include "util/util.h"

int session__file_entry(struct kprof_session *s, const struct proc_map *map, struct file **out)
{
	struct file_key key = {.inode = map->inode, .dev = map->dev};
	struct file *f;

	HASH_FIND(hh, s->files, &key, sizeof(key), f);
	*out = f;
	if (f)
		return 0;
	f = calloc(1, sizeof(*f));
	if (!f)
		return -ENOMEM;
	f->key = key;
	f->name = strdup(proc_basename(map->path));
	if (!f->name) {
		free(f);
		return -ENOMEM;
	}
	f->by_name = plan_frameworks_of(f->name);
	HASH_ADD(hh, s->files, key, sizeof(f->key), f);
	if (!f->hh.tbl) {
		free(f->name);
		free(f);
		return -ENOMEM;
	}
	*out = f;
	return 0;
}

int session__file(struct kprof_session *s, const struct target *t, const struct proc_map *map,
		  struct file **out)
{
	char path[512];
	int err = session__file_entry(s, map, out);

	/* Opened by the first process that still has it; a file that is no ELF stays closed. */
	if (!err && !(*out)->elf && !proc_map_open_path((pid_t)t->pid, map, path, sizeof(path)))
		elffile__open(path, &(*out)->elf);
	return err;
}

void file__free(struct file *f)
{
	struct attach_links *links = &f->links;

	attach_links_close(&links, 1);
	python_elf__free(f->python);
	elffile__close(f->elf);
	free(f->name);
	for (size_t i = 0; i < NR_FILE_PROGRAMS; i++)
		free(f->points[i].points);
	free(f->marks);
	free(f->learnt);
	map64__free(&f->returns);
	map64__free(&f->site_at);
	free(f);
}

int session__source(struct kprof_session *s, const char *name, uint32_t *out)
{
	struct store_record r = {.type = STORE_SOURCE};

	for (uint32_t i = 0; i < s->nr_sources; i++)
		if (!strcmp(s->sources[i].name, name)) {
			*out = i;
			return 0;
		}
	if (s->nr_sources == KPROF_WIRE_MAX_SOURCES)
		return error_set(-ENOSPC, NULL, "the catalog has too many sources of events");
	*out = s->nr_sources++;
	r.source.index = *out;
	r.source.name = store_writer__string(s->store, name, strlen(name));
	s->sources[*out] = (struct session_source){.name = name, .string = r.source.name};
	return store_writer__put(s->store, &r);
}

/* Files that layouts are looked for in: the frameworks' own and CPython. */
static void layout_files(struct kprof_session *s, struct target *t, struct plan_files *out)
{
	out->nr = 0;
	for (size_t i = 0; i < proc_maps__nr(t->maps) && out->nr < ARRAY_SIZE(out->files); i++) {
		const struct proc_map *map = proc_maps__at(t->maps, i);
		const char *name = proc_basename(map->path);
		struct file *f;

		if (!(map->flags & PROC_MAP_FILE) || map != proc_maps__first_of_file(t->maps, map))
			continue;
		if (!plan_frameworks_of(name) && !catalog_match("libpython* python*", name))
			continue;
		if (session__file(s, t, map, &f) || !f->elf)
			continue;
		out->files[out->nr] = f->elf;
		out->names[out->nr++] = f->name;
	}
}

/* What comes first where probes are scarce: what is few and tells most. */
static int rank(const struct plan_probe *p)
{
	if (p->row->naming != CATALOG_NAME_SCHEMA && p->row->naming != CATALOG_NAME_SYMBOL)
		return 0;
	return p->common ? 1 : 2;
}
#define NR_RANKS 3

/* Without uprobe_multi every probe is a file descriptor and slow to remove: a bounded number. */
static bool affordable(struct kprof_session *s)
{
	if (s->single && !s->single_left) {
		s->single_cut++;
		return false;
	}
	s->single_left -= s->single;
	return true;
}

static uint32_t row_id(const struct catalog_framework *fw, const struct catalog_row *row)
{
	uint32_t base = 0;

	for (size_t i = 0; catalog_frameworks[i] != fw; i++)
		base += (uint32_t)catalog_frameworks[i]->nr_rows;
	return base + (uint32_t)(row - fw->rows);
}

static enum attach_program program_of(const struct plan_probe *p)
{
	if (p->wire.text.reg || p->wire.value.reg)
		return ATTACH_BEGIN_TEXT;
	return p->wire.args[0].reg ? ATTACH_BEGIN_ARGS : ATTACH_BEGIN;
}

static uint64_t framework_bit(const struct catalog_framework *fw)
{
	size_t i = 0;

	while (catalog_frameworks[i] != fw)
		i++;
	return 1ull << i;
}

/* Bits of the types of activity that are listed, separated by blanks. */
static uint64_t types_in(const char *names)
{
	uint64_t types = 0;

	for (size_t i = 0; names && activity_at(i); i++)
		if (catalog_match(names, activity_at(i)->name))
			types |= 1ull << activity_at(i)->id;
	return types;
}

/* The arguments' keys, as the capture knows them. */
static void intern_keys(struct kprof_session *s, struct probe *probe)
{
	for (size_t i = 0; i < KPROF_WIRE_MAX_ARGS; i++) {
		const char *key = probe->row->args[i].name;

		if (key)
			probe->keys[i] = store_writer__string(s->store, key, strlen(key));
	}
}

/* Makes the probe known to the kernel's programs, and the point where it goes to the file. */
static int add_point(struct kprof_session *s, struct file *f, struct plan_probe *p, uint32_t source)
{
	enum attach_program program = program_of(p);
	struct point_list *list = &f->points[program];
	int err = vec_grow((void **)&list->points, &list->cap, list->nr, sizeof(*list->points));

	if (!err && program != ATTACH_BEGIN) {
		p->wire.source = source;
		err = attacher__set_probe(s->attacher, (uint32_t)s->nr_probes, &p->wire);
	}
	if (err)
		return error_set(err, NULL, "cannot describe a probe to the kernel: %s",
				 strerror(-err));
	list->points[list->nr++] = (struct attach_point){
		.offset = p->offset,
		.cookie = KPROF_COOKIE(source, p->sp_bias_bytes, s->nr_probes),
	};
	return 0;
}

static int add_probe(struct kprof_session *s, struct file *f, const struct catalog_framework *fw,
		     struct plan_probe *p)
{
	struct probe *probe;
	uint32_t source;
	int err = session__source(s, p->row->source, &source);

	if (err)
		return err;
	if (s->nr_probes >= KPROF_WIRE_MAX_PROBES)
		return error_set(-ENOSPC, "choose fewer with --ops", "more than %d probes",
				 KPROF_WIRE_MAX_PROBES);
	err = vec_grow((void **)&s->probes, &s->cap_probes, s->nr_probes, sizeof(*s->probes));
	if (!err)
		err = add_point(s, f, p, source);
	if (err)
		return err;
	probe = &s->probes[s->nr_probes++];
	*probe = (struct probe){
		.row = p->row,
		.row_id = row_id(fw, p->row),
		.source = source,
		.framework = framework_bit(fw),
		.group = 1ull << plan_type_of(p->row),
		.folded_into = types_in(p->row->folded_into),
		.name = p->name,
		.overload = p->overload,
	};
	p->name = p->overload = NULL; /* they are the probe's now */
	intern_keys(s, probe);
	return 0;
}

static int plan_one(struct kprof_session *s, const struct plan_files *files, struct file *f,
		    const struct catalog_framework *fw, const char *name)
{
	struct plan plan;
	int err = plan_library(fw, f->elf, name, files, &s->filter, &plan);

	if (err)
		return error_prefix(err, "looking for probes in %s", f->name);
	for (size_t i = 0; i < plan.nr_rows; i++)
		if (plan.rows[i].problem)
			log_info("%s: %s", f->name, plan.rows[i].problem);
	for (int r = 0; r < NR_RANKS && !err; r++)
		for (size_t i = 0; i < plan.nr && !err; i++)
			if (rank(&plan.probes[i]) == r && affordable(s))
				err = add_probe(s, f, fw, &plan.probes[i]);
	plan_free(&plan);
	return err;
}

int file__plan(struct kprof_session *s, struct target *t, struct file *f)
{
	uint64_t wanted = (f->by_name | f->embedded) & ~f->planned;
	struct plan_files files;
	int err = 0;

	if (!wanted || !f->elf)
		return 0;
	f->planned |= wanted;
	layout_files(s, t, &files);
	for (size_t i = 0; catalog_frameworks[i] && !err; i++) {
		const struct catalog_framework *fw = catalog_frameworks[i];

		if (wanted >> i & 1)
			err = plan_one(s, &files, f, fw,
				       f->by_name >> i & 1 ? f->name : fw->embedded_as);
	}
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
