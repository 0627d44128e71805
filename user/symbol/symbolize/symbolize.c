// SPDX-License-Identifier: BSD-2-Clause
/* Sorts the requests by file, reads the files in parallel, and distributes the answers. */
#include "util/disk_cache.h"
#include "symbol/symbolize/priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"
#include "util/foreign.h"
#include "util/sandbox.h"
#include "util/util.h"

#define DEFAULT_TIME_NS (20 * NSEC_PER_SEC)
#define DEFAULT_ABSENT_NS (24 * 3600 * NSEC_PER_SEC)
#define MAX_THREADS 64

struct symbolizer {
	struct symbol_config config;
	struct symbol_file **files;
	size_t nr_files, cap_files;
	struct symbolizer_stats stats;

	/* Used while addresses are resolved. */
	pthread_mutex_t lock;
	size_t next_file;
	uint64_t done, total;
	int err;
	bool wrote; /* something was written to the cache */
};

/* A request, to be sorted by file and address. */
struct lookup {
	uint64_t vaddr;
	uint32_t file;
	size_t number;
};

static const struct symbol_line unknown_line = {.function = "", .file = ""};

/* ---- the object ---- */

int symbolizer__new(const struct symbolizer_opts *opts, struct symbolizer **out)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	struct symbolizer_opts *o;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	*out = NULL;
	if (!s)
		return error_set(-ENOMEM, NULL, "no memory for symbols");
	pthread_mutex_init(&s->lock, NULL);
	o = &s->config.opts;
	*o = *opts;
	if (!o->cache_bound_bytes)
		o->cache_bound_bytes = DISK_CACHE_BOUND;
	if (!o->module_time_ns)
		o->module_time_ns = DEFAULT_TIME_NS;
	if (!o->absent_ns)
		o->absent_ns = DEFAULT_ABSENT_NS;
	if (!o->debug_dir)
		o->debug_dir = "/usr/lib/debug";
	if (!o->threads)
		o->threads = cpus > 0 ? (unsigned int)cpus : 1;
	if (o->threads > MAX_THREADS)
		o->threads = MAX_THREADS;
	s->config.cache_dir = disk_cache__open(o->cache_dir);
	*out = s;
	return 0;
}

static void file_free(struct symbol_file *f)
{
	if (!f)
		return;
	symbol_strings__free(&f->strings);
	free(f->known.all);
	free(f->queries);
	free(f->path);
	free(f->root);
	free(f);
}

void symbolizer__free(struct symbolizer *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nr_files; i++)
		file_free(s->files[i]);
	if (s->config.cache_dir >= 0)
		close(s->config.cache_dir);
	pthread_mutex_destroy(&s->lock);
	free(s->files);
	free(s);
}

int symbolizer__add_module(struct symbolizer *s, const struct symbol_module *module, uint32_t *id)
{
	struct symbol_file *f = calloc(1, sizeof(*f));

	if (f) {
		f->elf = module->elf;
		f->path = strdup(module->path ? module->path : elffile__path(module->elf));
		f->root = strdup(module->root ? module->root : "");
	}
	if (!f || !f->path || !f->root ||
	    vec_grow((void **)&s->files, &s->cap_files, s->nr_files,
		     sizeof(struct symbol_file *))) {
		file_free(f);
		return error_set(-ENOMEM, NULL, "no memory for symbols");
	}
	*id = (uint32_t)s->nr_files;
	s->files[s->nr_files++] = f;
	return 0;
}

const struct symbolizer_stats *symbolizer__stats(const struct symbolizer *s)
{
	return &s->stats;
}

/* ---- resolving ---- */

static int compare_lookups(const void *a, const void *b)
{
	const struct lookup *x = a, *y = b;

	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* Adds queries for the addresses of a file that are not known yet. */
static int add_queries(struct symbolizer *s, const struct lookup *asked, size_t nr)
{
	struct symbol_file *f = s->files[asked->file];

	free(f->queries);
	f->nr_queries = 0;
	f->queries = calloc(nr, sizeof(*f->queries));
	if (!f->queries)
		return -ENOMEM;
	for (size_t i = 0; i < nr; i++) {
		if ((i && asked[i].vaddr == asked[i - 1].vaddr) ||
		    symbol_knowns__find(&f->known, asked[i].vaddr))
			continue;
		f->queries[f->nr_queries++].vaddr = asked[i].vaddr;
	}
	f->nr_asked = f->nr_queries;
	s->total += f->nr_queries;
	return 0;
}

/* The requests that can be looked up, sorted by file and address. */
static struct lookup *sort_requests(const struct symbolizer *s,
				    const struct symbol_request *requests, size_t nr,
				    size_t *nr_asked)
{
	struct lookup *asked = reallocarray(NULL, nr ? nr : 1, sizeof(*asked));

	*nr_asked = 0;
	for (size_t i = 0; asked && i < nr; i++) {
		const struct symbol_request *r = &requests[i];

		if (r->module < s->nr_files)
			asked[(*nr_asked)++] =
				(struct lookup){.vaddr = r->vaddr - (r->return_address && r->vaddr),
						.file = r->module,
						.number = i};
	}
	if (asked)
		qsort(asked, *nr_asked, sizeof(*asked), compare_lookups);
	return asked;
}

static void file_done(struct symbolizer *s, struct symbol_file *f)
{
	const struct symbolizer_opts *o = &s->config.opts;

	s->done += f->nr_asked;
	s->stats.modules++;
	s->stats.cached += f->nr_cached;
	s->stats.gave_up += f->gave_up;
	s->stats.debug_files += f->debug_file;
	s->wrote |= f->cache_written;
	if (f->err && !s->err)
		s->err = f->err;
	if (!s->err && o->progress && o->progress(o->ctx, s->done, s->total))
		s->err = -ECANCELED;
}

static void *work(void *arg)
{
	struct symbolizer *s = arg;

	pthread_mutex_lock(&s->lock);
	while (s->next_file < s->nr_files && !s->err) {
		struct symbol_file *f = s->files[s->next_file++];

		if (!f->nr_queries)
			continue;
		pthread_mutex_unlock(&s->lock);
		f->err = symbol_file__answer(f, &s->config);
		pthread_mutex_lock(&s->lock);
		file_done(s, f);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void run_workers(struct symbolizer *s)
{
	pthread_t threads[MAX_THREADS];
	size_t nr_jobs = 0;
	unsigned int started = 0;

	for (size_t i = 0; i < s->nr_files; i++)
		nr_jobs += s->files[i]->nr_queries > 0;
	/* This thread works, too. If further threads cannot be started, fewer do the work. */
	while (started + 1 < s->config.opts.threads && started + 1 < nr_jobs &&
	       pthread_create(&threads[started], NULL, work, s) == 0)
		started++;
	work(s);
	while (started)
		pthread_join(threads[--started], NULL);
}

static void say_who_was_silent(const struct symbolizer *s)
{
	const char *path = NULL;
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_files; i++) {
		if (!s->files[i]->nr_asked || !s->files[i]->unanswered)
			continue;
		nr++;
		if (!path)
			path = s->files[i]->path;
	}
	if (nr)
		log_warn(
			"they are asked again the next time; DEBUGINFOD_URLS= asks none",
			"the servers of DEBUGINFOD_URLS did not answer for %zu file%s (%s%s): names and lines may be missing",
			nr, nr > 1 ? "s" : "", path, nr > 1 ? ", …" : "");
}

/* Logs from the caller's thread, as kprof_set_log() promises. */
static void log_missing(const struct symbolizer *s)
{
	bool unconfined = false;

	foreign_tell();
	for (size_t i = 0; i < s->nr_files; i++) {
		unconfined |= s->files[i]->nr_asked && s->files[i]->unconfined;
		if (s->files[i]->nr_asked && s->files[i]->gave_up && !s->files[i]->unconfined)
			log_warn(
				"its functions are named by their symbols",
				"the debug information of %s takes too long to read, or is damaged: lines are missing",
				s->files[i]->path);
	}
	if (unconfined)
		log_warn(
			sandbox_lacks_for_users()
				?: "it needs system call filters (seccomp), and in containers the user nobody",
			"lines are missing: what reads debug information could not be confined");
	if (symbol_debuginfod__missing())
		log_warn("install it (Debian: libdebuginfod1)",
			 "no debug files from servers: there is no libdebuginfod.so.1");
	else
		say_who_was_silent(s);
}

static void hand_out(struct symbolizer *s, const struct lookup *asked, size_t nr,
		     struct symbol_result *results)
{
	for (size_t i = 0; i < nr; i++) {
		const struct symbol_known *k =
			symbol_knowns__find(&s->files[asked[i].file]->known, asked[i].vaddr);

		if (k)
			results[asked[i].number] = (struct symbol_result){k->lines, k->nr_lines};
	}
}

int symbolizer__resolve(struct symbolizer *s, const struct symbol_request *requests, size_t nr,
			struct symbol_result *results)
{
	struct lookup *asked;
	size_t nr_asked;

	for (size_t i = 0; i < nr; i++)
		results[i] = (struct symbol_result){&unknown_line, 1};
	s->err = 0;
	s->next_file = 0;
	s->done = s->total = 0;
	s->config.deadline_ns = s->config.opts.total_time_ns
					? clock_mono_ns() + s->config.opts.total_time_ns
					: UINT64_MAX;
	asked = sort_requests(s, requests, nr, &nr_asked);
	if (!asked)
		return error_set(-ENOMEM, NULL, "no memory for symbols");
	for (size_t i = 0, end; i < nr_asked && !s->err; i = end) {
		for (end = i; end < nr_asked && asked[end].file == asked[i].file; end++)
			;
		s->err = add_queries(s, &asked[i], end - i);
	}
	if (!s->err)
		run_workers(s);
	log_missing(s);
	if (s->wrote && !s->config.opts.keep_cache)
		disk_cache__trim(s->config.cache_dir, s->config.opts.cache_bound_bytes);
	s->wrote = false;
	for (size_t i = 0; i < s->nr_files; i++) {
		free(s->files[i]->queries);
		s->files[i]->queries = NULL;
		s->files[i]->nr_queries = s->files[i]->nr_asked = 0;
	}
	hand_out(s, asked, nr_asked, results);
	s->stats.addresses += nr;
	for (size_t i = 0; i < nr; i++)
		s->stats.unknown += !results[i].lines->function[0];
	free(asked);
	if (s->err == -ENOMEM)
		error_set(-ENOMEM, NULL, "no memory for symbols");
	return s->err;
}
