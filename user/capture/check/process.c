// SPDX-License-Identifier: BSD-2-Clause
/* What a recording session would find and do in a process, without touching the process. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/check/check.h"
#include "capture/probe/probe.h"
#include "capture/process/process.h"
#include "kprof.h"
#include "kprof/agent.h"
#include "kprof/options.h"
#include "util/error.h"
#include "util/util.h"

/* The files of the process that belong to frameworks and to CPython. */
struct view {
	struct proc_maps *maps;
	char *exe; /* NULL: not known */
	struct plan_files files;
	/* by file: the set of frameworks that are linked into it */
	uint64_t embedded[ARRAY_SIZE(((struct plan_files *)0)->files)];
	uint64_t frameworks;                /* set of the frameworks in any of the files */
	const struct catalog_framework *fw; /* the framework that is being reported */
	/* by row of that framework: the sums over all files */
	struct plan_row *rows;
	uint32_t hidden;
	bool sequence, no_sequence;   /* --flow would find sequence numbers, or could not */
	uint32_t with_inputs, unread; /* probes where --shapes would read inputs, or could not */
	struct check *check;
};

/* The set of frameworks that may be linked into this file. */
static uint64_t candidates(const struct view *v, const struct proc_map *map, uint64_t embeddable)
{
	if (v->exe && !strcmp(map->path, v->exe))
		return PLAN_ALL_FRAMEWORKS;
	for (const struct proc_map *m = map; m; m = proc_maps__next_of_file(v->maps, m))
		if (m->flags & PROC_MAP_EXEC)
			return embeddable;
	return 0;
}

static void open_file(struct view *v, pid_t pid, const struct proc_map *map, uint64_t embeddable)
{
	const char *name = proc_basename(map->path);
	uint64_t named = plan_frameworks_of(name), inside = candidates(v, map, embeddable);
	size_t i = v->files.nr;
	char path[512];

	if (!inside && !plan_has_layouts(name))
		return;
	if (proc_map_open_path(pid, map, path, sizeof(path)) ||
	    elffile__open(path, &v->files.files[i]))
		return;
	v->embedded[i] = plan_embedded_in(v->files.files[i], inside & ~named);
	if (!v->embedded[i] && !plan_has_layouts(name)) {
		elffile__close(v->files.files[i]);
		return;
	}
	v->files.names[v->files.nr++] = name;
	v->frameworks |= named | v->embedded[i];
}

static void open_files(struct view *v, pid_t pid)
{
	size_t max = ARRAY_SIZE(v->files.files);
	uint64_t embeddable = 0;

	for (size_t i = 0; i < proc_maps__nr(v->maps); i++)
		embeddable |= plan_embedded_with(proc_basename(proc_maps__at(v->maps, i)->path));
	for (size_t i = 0; i < proc_maps__nr(v->maps) && v->files.nr < max; i++) {
		const struct proc_map *map = proc_maps__at(v->maps, i);

		if (map->flags & PROC_MAP_FILE && map == proc_maps__first_of_file(v->maps, map))
			open_file(v, pid, map, embeddable);
	}
}

static int sum_rows(struct view *v, const char *name, const struct elffile *file)
{
	struct plan_filter all = {.inputs = true, .flow = true, .memory = true};
	struct plan plan;
	int err;

	err = plan_library(v->fw, file, name, &v->files, &all, &plan);
	if (err)
		return err;
	for (size_t i = 0; i < plan.nr_rows; i++) {
		struct plan_row *to = &v->rows[i], *from = &plan.rows[i];

		to->probes += from->probes;
		for (int c = 0; c < 3; c++)
			to->by_cost[c] += from->by_cost[c];
		to->library_matches |= from->library_matches;
		to->not_needed |= from->not_needed;
		if (from->problem)
			to->problem = from->problem;
	}
	v->hidden += plan.hidden;
	v->unread += plan.unread;
	v->sequence |= plan.sequence != NULL;
	v->no_sequence |= plan.no_sequence;
	for (size_t i = 0; i < plan.nr; i++)
		v->with_inputs += plan.probes[i].signature != NULL;
	plan_free(&plan);
	return 0;
}

/* Is nothing lost without this optional row, since another row of the same source has probes? */
static bool covered(const struct view *v, size_t index)
{
	const struct catalog_row *row = &v->fw->rows[index];

	for (size_t i = 0; i < v->fw->nr_rows; i++)
		if (i != index && v->rows[i].probes && row->optional && !row->lost &&
		    !strcmp(v->fw->rows[i].source, row->source))
			return true;
	return false;
}

/*
 * Is there another row of the same source and naming that has probes? For example callBoxed and its
 * clones: only one row of a source says in .lost what is not seen without any of them.
 */
static bool alternative_found(const struct view *v, size_t index)
{
	const struct catalog_row *row = &v->fw->rows[index];

	for (size_t i = 0; i < v->fw->nr_rows; i++)
		if (i != index && v->rows[i].probes && !v->fw->rows[i].lost &&
		    v->fw->rows[i].naming == row->naming &&
		    !strcmp(v->fw->rows[i].source, row->source))
			return true;
	return false;
}

static void say_row(struct view *v, size_t index)
{
	const struct catalog_row *row = &v->fw->rows[index];
	const struct plan_row *sum = &v->rows[index];

	if (sum->not_needed || (!sum->probes && covered(v, index)))
		return;
	if (sum->probes) {
		check_say(v->check, KPROF_CHECK_OK, row->source, NULL,
			  "%u probes on %s (%u emulated, %u single-stepped)", sum->probes,
			  row->symbols, sum->by_cost[INSN_EMULATED], sum->by_cost[INSN_STEPPED]);
		if (sum->problem)
			check_say(v->check, KPROF_CHECK_NOTE, row->source, NULL, "not seen: %s",
				  sum->problem);
	} else if (row->lost && sum->library_matches && !alternative_found(v, index)) {
		check_say(v->check, KPROF_CHECK_MISSING, row->source,
			  "this build of the library has no symbol for it", "not seen: %s",
			  row->lost);
	}
}

static void say_sum(struct view *v)
{
	uint32_t by_cost[3] = {0}, probes = 0;

	for (size_t i = 0; i < v->fw->nr_rows; i++) {
		probes += v->rows[i].probes;
		for (int c = 0; c < 3; c++)
			by_cost[c] += v->rows[i].by_cost[c];
	}
	check_say(v->check, probes ? KPROF_CHECK_OK : KPROF_CHECK_MISSING, "probes",
		  probes ? NULL : "is it a stripped or statically linked build?",
		  "%u would be placed: %u cheap (emulated, under 1 us a hit), %u dear "
		  "(single-stepped, 5 to 11 us)",
		  probes, by_cost[INSN_EMULATED], by_cost[INSN_STEPPED]);
}

static void say_inputs(struct view *v)
{
	if (v->with_inputs)
		check_say(v->check, KPROF_CHECK_OK, "shapes", NULL,
			  "--shapes would show the inputs of %u of %u kinds of calls",
			  v->with_inputs, v->with_inputs + v->unread);
	else if (v->unread)
		check_say(v->check, KPROF_CHECK_MISSING, "shapes", NULL,
			  "--shapes would show none: the layout of tensors could not be learnt "
			  "from this build");
}

static const char *with_observer(uint32_t options)
{
	if (options & KPROF_AGENT_OPT_INPUTS)
		return options & KPROF_AGENT_OPT_SEQUENCE
			       ? ", --shapes and --flow have every call"
			       : ", --shapes has every call, --flow none";
	return options & KPROF_AGENT_OPT_SEQUENCE ? ", --flow has every call, --shapes none"
						  : ", --shapes and --flow have none";
}

/* What its own callbacks would tell, and probes do not. */
static void say_observer(struct view *v)
{
	for (size_t i = 0; i < v->files.nr && v->fw->observer_library; i++) {
		if (!catalog_match(v->fw->observer_library, v->files.names[i]))
			continue;
		if (plan_observable(v->fw, v->files.files[i]))
			check_say(v->check, KPROF_CHECK_OK, "observer", NULL,
				  "--observer would have its own callbacks tell of operators; they "
				  "alone tell of ranges of C++; with it%s",
				  with_observer(plan_observable_more(v->fw, &v->files)));
		else
			check_say(v->check, KPROF_CHECK_MISSING, "observer", NULL,
				  "--observer is refused: the way in which this build takes "
				  "callbacks is not known");
	}
}

/* Appends the names of scopes, with commas in between. */
static void list_scopes(char *to, size_t bytes, uint32_t scopes)
{
	size_t len = 0;

	*to = 0;
	for (size_t i = 0; i < KPROF_SCOPES && len < bytes; i++)
		if (scopes >> i & 1)
			len += (size_t)snprintf(to + len, bytes - len, "%s%s", len ? ", " : "",
						kprof_scope_name(i));
}

static void say_scopes(struct view *v)
{
	char seen[256], rest[256];
	uint32_t scopes = 0;

	for (size_t i = 0; i < v->fw->nr_rows; i++)
		scopes |= v->rows[i].probes ? v->fw->rows[i].scope : 0;
	if (!v->fw->observer_library || !scopes)
		return;
	list_scopes(seen, sizeof(seen), scopes);
	list_scopes(rest, sizeof(rest), ~scopes);
	check_say(v->check, KPROF_CHECK_NOTE, "scopes", NULL,
		  "--scopes: probes see %s; only --observer sees %s", seen, rest);
}

static void say_sequence(struct view *v)
{
	if (v->sequence)
		check_say(v->check, KPROF_CHECK_OK, "flow", NULL,
			  "--flow would show which operator made which autograd node");
	else if (v->no_sequence)
		check_say(v->check, KPROF_CHECK_MISSING, "flow", NULL,
			  "--flow would show nothing: it could not be learnt from this build where "
			  "it keeps sequence numbers");
}

static int sum_files(struct view *v, uint64_t bit)
{
	int err = 0;

	for (size_t i = 0; i < v->files.nr && !err; i++) {
		const char *name = v->files.names[i];

		if (plan_frameworks_of(name) & bit)
			err = sum_rows(v, name, v->files.files[i]);
		else if (v->embedded[i] & bit)
			err = sum_rows(v, v->fw->embedded_as, v->files.files[i]);
	}
	return err;
}

static void say_framework(struct view *v, size_t index, bool verbose)
{
	v->fw = catalog_frameworks[index];
	v->hidden = v->with_inputs = v->unread = 0;
	v->sequence = v->no_sequence = false;
	v->rows = calloc(v->fw->nr_rows, sizeof(*v->rows));
	if (!v->rows) {
		v->check->stopped = -ENOMEM;
		return;
	}
	v->check->stopped = sum_files(v, 1ull << index);
	check_say(v->check, KPROF_CHECK_OK, v->fw->is_runtime ? "runtime" : "framework", NULL, "%s",
		  v->fw->name);
	say_sum(v);
	for (size_t i = 0; i < v->fw->nr_rows && verbose; i++)
		say_row(v, i);
	if (verbose) {
		say_inputs(v);
		say_observer(v);
		say_scopes(v);
		say_sequence(v);
	}
	if (verbose && v->hidden)
		check_say(v->check, KPROF_CHECK_NOTE, "operators", NULL,
			  "%u left out: they never reach the dispatcher, and the framework's own "
			  "profiler does not show them",
			  v->hidden);
	free(v->rows);
}

static void say_none(struct check *c, pid_t pid)
{
	char names[256];

	plan_library_names(names, sizeof(names));
	check_say(
		c, KPROF_CHECK_NOTE, "framework",
		"a library that is loaded later is seen; `kprof list` shows the processes that have one",
		"none found in %d (looked for %s); threads would be recorded", pid, names);
}

int kprof_check_process(pid_t pid, bool verbose, kprof_check_fn fn, void *ctx)
{
	struct check check = {.fn = fn, .ctx = ctx};
	struct view v = {.check = &check};
	struct proc_info info;
	int err;

	error_clear();
	err = proc_info_read(pid, &info);
	if (!err)
		err = proc_maps__read(pid, &v.maps);
	if (err)
		return err;
	if (proc_exe(pid, &v.exe))
		v.exe = NULL;
	open_files(&v, pid);
	if (!v.frameworks)
		say_none(&check, pid);
	for (size_t i = 0; catalog_frameworks[i] && !check.stopped; i++)
		if (v.frameworks >> i & 1)
			say_framework(&v, i, verbose);
	check_agent_process(&check, pid, v.maps);
	for (size_t i = 0; i < v.files.nr; i++)
		elffile__close(v.files.files[i]);
	free(v.exe);
	proc_maps__free(v.maps);
	return check.stopped;
}
