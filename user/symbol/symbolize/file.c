// SPDX-License-Identifier: BSD-2-Clause
/*
 * Resolves one file's addresses: takes answers from the cache, finds the others in the file's
 * tables, and caches those.
 */
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/util.h"

/*
 * For files of at least this size, the memory that a walk through their symbols fills is released
 * afterwards (80 MB for libtorch).
 */
#define FORGET_BYTES (16u << 20)

/* ---- names ---- */

static const char *stub_name(struct symbol_strings *strings, const char *target)
{
	char *text = xasprintf("%s@plt", target);
	const char *name = text ? symbol_strings__add(strings, text, strlen(text)) : NULL;

	free(text);
	return name;
}

/* The name from the symbol tables; "": none. NULL: no memory. */
static const char *name_of(struct symbol_file *f, struct symbol_query *q)
{
	const char *name;

	if (!elffile__is_code(f->elf, q->vaddr))
		return "";
	if (q->stub)
		return stub_name(&f->strings, q->stub);
	name = symbol_query__name(q);
	return name ? symbol_strings__add(&f->strings, name, q->name_bytes) : "";
}

static int keep_name(struct symbol_file *f, struct symbol_query *q, struct symbol_known *known)
{
	struct symbol_line *line = symbol_strings__room(&f->strings, sizeof(*line));
	const char *name = name_of(f, q);

	if (!line || !name)
		return -ENOMEM;
	*line = (struct symbol_line){.function = name, .file = ""};
	*known = (struct symbol_known){.vaddr = q->vaddr, .lines = line, .nr_lines = 1};
	return 0;
}

/*
 * Finds names in the symbol tables of this file, and in those of its debug file if that has more.
 */
static int find_names(struct symbol_file *f, const struct elffile *debug,
		      struct symbol_knowns *names)
{
	bool full = elffile__has_symtab(f->elf), more = debug && elffile__has_symtab(debug);
	struct elffile *mini = full || more ? NULL : symbol_debug__mini(f->elf);
	int err = 0;

	names->all = calloc(f->nr_queries, sizeof(*names->all));
	if (!names->all)
		err = -ENOMEM;
	symbol_table__scan(f->elf, !full, f->queries, f->nr_queries);
	if (!full && more)
		symbol_table__scan(debug, false, f->queries, f->nr_queries);
	if (mini)
		symbol_table__scan(mini, false, f->queries, f->nr_queries);
	symbol_plt__scan(f->elf, f->queries, f->nr_queries);
	for (size_t i = 0; i < f->nr_queries && !err; i++)
		err = keep_name(f, &f->queries[i], &names->all[names->nr++]);
	elffile__close(mini);
	return err;
}

/* ---- lines ---- */

/*
 * Replaces the outermost function's name by the symbol's, which is more precise: it says which
 * variant of a constructor this is, or which part of a function that was split.
 */
static void name_outermost(struct symbol_knowns *lines, const struct symbol_knowns *names)
{
	for (size_t i = 0; i < lines->nr; i++) {
		struct symbol_known *k = &lines->all[i];
		const struct symbol_known *name = symbol_knowns__find(names, k->vaddr);
		/* This line has just been allocated and is not shared yet, so it can be changed. */
		struct symbol_line *outermost = (struct symbol_line *)&k->lines[k->nr_lines - 1];

		if (name && *name->lines->function)
			outermost->function = name->lines->function;
	}
}

/* Finds source lines and inlined functions. debug_fd: the descriptor of `debug`. */
static int find_lines(struct symbol_file *f, const struct elffile *debug, int debug_fd,
		      const struct symbol_config *config, struct symbol_knowns *names)
{
	const struct elffile *in = NULL;
	struct symbol_knowns lines;
	uint64_t time_ns = symbol_time_left(config);
	int err;

	if (elffile__has_section(f->elf, ".debug_info")) {
		in = f->elf;
		debug_fd = -1;
	} else if (debug && elffile__has_section(debug, ".debug_info")) {
		in = debug;
	}
	if (!in)
		return 0;
	if (!time_ns) {
		f->gave_up = true;
		return 0;
	}
	err = symbol_lines__read(f, in, debug_fd, time_ns, &lines);
	if (err && err != -ENOMEM)
		f->gave_up = true;
	name_outermost(&lines, names);
	return symbol_knowns__merge(names, &lines) || err == -ENOMEM ? -ENOMEM : 0;
}

/* ---- the whole file ---- */

/*
 * Identifies what answers depend on besides the build id. A stripped file has the same build id as
 * the whole one. And anybody can write a file with any build id, so that answers from a file of one
 * user or container must not be used for another's.
 */
static uint64_t stamp_of(const struct symbol_file *f, const struct symbol_config *config,
			 const struct symbol_debug_file *separate)
{
	const struct elffile_identity *id = elffile__identity(f->elf);
	uint64_t h = hash64(id->bytes ^ hash64(elffile__table(f->elf, false)->nr));

	h = hash64(h ^ id->owner);
	h = hash64(h ^ id->dev);
	h = hash64(h ^ separate->stamp);
	h = hash64(h ^ (uint64_t)config->opts.lines);
	return hash64(h ^ (uint64_t)symbol_debuginfod__configured(&config->opts) << 1);
}

/* A stamp for answers that are valid for a limited time only. */
static uint64_t dated(uint64_t stamp, const struct symbol_config *config)
{
	return hash64(stamp ^ hash64(clock_real_ns() / config->opts.absent_ns));
}

/* So many symbols are walked sooner than answers are read from the cache and written to it. */
#define WALKED_SYMBOLS 10000

/* Names alone, of a file whose symbols are few, and in it, are found anew each time. */
static bool uses_cache(const struct symbol_file *f, const struct symbol_config *config,
		       const struct symbol_debug_file *separate)
{
	bool full = elffile__has_symtab(f->elf);
	bool elsewhere =
		!full && (separate->fd >= 0 || symbol_debuginfod__configured(&config->opts) ||
			  elffile__has_section(f->elf, ".gnu_debugdata"));

	return config->opts.lines || elsewhere ||
	       elffile__table(f->elf, !full)->nr > WALKED_SYMBOLS;
}

static bool read_cache(struct symbol_file *f, const struct symbol_config *config, uint64_t stamp,
		       struct symbol_knowns *cached)
{
	const char *id = elffile__build_id(f->elf);

	return !symbol_cache__read(config->cache_dir, id, stamp, &f->strings, cached) ||
	       !symbol_cache__read(config->cache_dir, id, dated(stamp, config), &f->strings,
				   cached);
}

/* Removes the queries that are answered. */
static void drop_known(struct symbol_file *f)
{
	size_t nr = 0;

	for (size_t i = 0; i < f->nr_queries; i++) {
		if (!symbol_knowns__find(&f->known, f->queries[i].vaddr))
			f->queries[nr++] = f->queries[i];
	}
	f->nr_cached = f->nr_queries - nr;
	f->nr_queries = nr;
}

/*
 * Writes the answers to the cache. If time was up or a server has not answered, only answers with
 * lines are written, so that the next run looks up the others again.
 */
static void write_cache(struct symbol_file *f, const struct symbol_config *config, uint64_t stamp)
{
	struct symbol_knowns worth = {.all = calloc(f->known.nr + 1, sizeof(*worth.all))};

	for (size_t i = 0; worth.all && i < f->known.nr; i++) {
		if (!(f->gave_up || f->unanswered) || *f->known.all[i].lines->file)
			worth.all[worth.nr++] = f->known.all[i];
	}
	if (worth.all)
		f->cache_written = symbol_cache__write(config->cache_dir, elffile__build_id(f->elf),
						       stamp, &worth);
	free(worth.all);
}

static int answer(struct symbol_file *f, const struct symbol_config *config,
		  struct symbol_debug_file *separate)
{
	bool dwarf = elffile__has_section(f->elf, ".debug_info");
	struct elffile *debug = NULL;
	struct symbol_knowns names = {0};
	int err;

	if (!elffile__has_symtab(f->elf) || (config->opts.lines && !dwarf))
		debug = symbol_debug__open(f, config, separate);
	f->debug_file = debug;
	/*
	 * A server that was not asked for lack of time may have more: answers without lines must
	 * not be cached as if it had none.
	 */
	if (!debug && !dwarf && config->opts.lines &&
	    symbol_debuginfod__configured(&config->opts) && !symbol_time_left(config))
		f->gave_up = true;
	err = find_names(f, debug, &names);
	if (!err && config->opts.lines)
		err = find_lines(f, debug, separate->fd, config, &names);
	if (!err)
		err = symbol_knowns__merge(&f->known, &names);
	free(names.all);
	f->gave_up |= debug && elffile__cut(debug);
	elffile__close(debug);
	return err;
}

int symbol_file__answer(struct symbol_file *f, const struct symbol_config *config)
{
	struct symbol_debug_file separate;
	struct symbol_knowns cached;
	uint64_t stamp;
	bool caches;
	int err = 0;

	f->nr_cached = 0;
	f->gave_up = f->absent = f->unanswered = f->debug_file = f->cache_written = false;
	symbol_debug__look(f, config, &separate);
	stamp = stamp_of(f, config, &separate);
	caches = uses_cache(f, config, &separate);
	if (caches && !f->asked_cache && read_cache(f, config, stamp, &cached)) {
		err = symbol_knowns__merge(&f->known, &cached);
		drop_known(f);
	}
	f->asked_cache = true;
	if (!err && f->nr_queries) {
		err = answer(f, config, &separate);
		if (!err && caches && !elffile__cut(f->elf))
			write_cache(f, config, f->absent ? dated(stamp, config) : stamp);
		if (elffile__identity(f->elf)->bytes > FORGET_BYTES)
			elffile__forget_pages(f->elf);
	}
	symbol_debug__close(&separate);
	return err;
}
