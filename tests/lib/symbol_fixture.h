/* SPDX-License-Identifier: BSD-2-Clause */
/* Files made by compilers in a directory of the test's own, and one of them symbolized. */
#ifndef KPROF_TESTS_SYMBOL_FIXTURE_H
#define KPROF_TESTS_SYMBOL_FIXTURE_H

#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/symbolize/symbolize.h"
#include "unit.h"
#include "util/util.h"

static char fixture_dir[] = "/tmp/kprof-symbol-XXXXXX";

/* Runs a command of the shell there; false: it failed. */
__attribute__((format(printf, 1, 2))) static bool shell(const char *fmt, ...)
{
	char *command = NULL, *line;
	va_list ap;
	int status;

	va_start(ap, fmt);
	if (vasprintf(&command, fmt, ap) < 0)
		command = NULL;
	va_end(ap);
	line = xasprintf("cd %s && { %s; } >shell.log 2>&1", fixture_dir, command);
	status = system(line);
	free(line);
	free(command);
	return status == 0;
}

static inline void write_text(const char *name, const char *text)
{
	char *path = xasprintf("%s/%s", fixture_dir, name);
	FILE *f = fopen(path, "w");

	CHECK(f && fputs(text, f) >= 0);
	if (f)
		fclose(f);
	free(path);
}

static void fixture_remove(void)
{
	char *line = xasprintf("rm -rf %s", fixture_dir);

	CHECK_EQ(system(line), 0);
	free(line);
}

static void fixture_make(void)
{
	CHECK(mkdtemp(fixture_dir));
	atexit(fixture_remove);
}

struct looked_up {
	char *path;
	struct elffile *elf;
	struct symbolizer *s;
	uint64_t *vaddrs;
	size_t nr;
	struct symbol_result *results;
	struct symbolizer_stats stats;
	int err;
};

/* Takes the addresses over. name: in the fixture's directory, or an absolute path. */
static struct looked_up look_up(const char *name, const struct symbolizer_opts *opts,
				uint64_t *vaddrs, size_t nr)
{
	struct looked_up l = {.vaddrs = vaddrs, .nr = nr};
	struct symbol_module module = {0};
	struct symbol_request *requests = calloc(nr + 1, sizeof(*requests));
	uint32_t id = 77;

	l.path = name[0] == '/' ? strdup(name) : xasprintf("%s/%s", fixture_dir, name);
	l.results = calloc(nr + 1, sizeof(*l.results));
	CHECK_EQ(elffile__open(l.path, &l.elf), 0);
	CHECK_EQ(symbolizer__new(opts, &l.s), 0);
	module.elf = l.elf;
	module.path = l.path;
	CHECK_EQ(symbolizer__add_module(l.s, &module, &id), 0);
	CHECK_EQ(id, 0);
	for (size_t i = 0; i < nr; i++)
		requests[i] = (struct symbol_request){.module = id, .vaddr = vaddrs[i]};
	l.err = symbolizer__resolve(l.s, requests, nr, l.results);
	l.stats = *symbolizer__stats(l.s);
	free(requests);
	return l;
}

static void looked_up_free(struct looked_up *l)
{
	symbolizer__free(l->s);
	elffile__close(l->elf);
	free(l->results);
	free(l->vaddrs);
	free(l->path);
}

/* Every so many bytes of a section. */
static inline uint64_t *section_addresses(const char *name, const char *section, size_t step,
					  size_t *nr)
{
	char *path = name[0] == '/' ? strdup(name) : xasprintf("%s/%s", fixture_dir, name);
	struct elffile *e = NULL;
	uint64_t *vaddrs = NULL, vaddr;
	size_t bytes;

	*nr = 0;
	CHECK_EQ(elffile__open(path, &e), 0);
	if (e && elffile__section_at(e, section, &bytes, &vaddr)) {
		vaddrs = calloc(bytes / step + 1, sizeof(*vaddrs));
		for (size_t at = 0; at < bytes; at += step)
			vaddrs[(*nr)++] = vaddr + at;
	}
	CHECK(*nr);
	elffile__close(e);
	free(path);
	return vaddrs;
}

/* The same names and lines, address by address. */
static inline bool same_answers(const struct looked_up *a, const struct looked_up *b)
{
	for (size_t i = 0; i < a->nr; i++) {
		if (a->results[i].nr_lines != b->results[i].nr_lines)
			return false;
		for (uint32_t k = 0; k < a->results[i].nr_lines; k++) {
			const struct symbol_line *x = &a->results[i].lines[k];
			const struct symbol_line *y = &b->results[i].lines[k];

			if (strcmp(x->function, y->function) || strcmp(x->file, y->file) ||
			    x->line != y->line)
				return false;
		}
	}
	return a->nr == b->nr;
}

#endif
