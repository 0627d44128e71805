// SPDX-License-Identifier: BSD-2-Clause
/*
 * A function that was asked for by its name (--within symbol:NAME), in whatever files of targets
 * have one: by the name of its symbol, by that made readable, or as kprof shows it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/probe/set_impl.h"
#include "symbol/names/names.h"
#include "util/error.h"
#include "util/util.h"

#define MAX_PLACES 64 /* in a file: versions of one function */
#define MAX_WORD_BYTES 128

struct seek {
	struct probe_set *ps;
	struct file *file;
	const char *name;
	char word[MAX_WORD_BYTES]; /* what a mangled name must contain; "": nothing */
	int err;
};

static bool in_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/*
 * The function's own word in its readable name: the last one before parameters and template
 * arguments. Compilers write it out in the symbol's name; demangling all of a library takes long.
 */
static void find_word(const char *name, char word[MAX_WORD_BYTES])
{
	static const char unnamed[] = "(anonymous namespace)";
	size_t length;

	word[0] = '\0';
	while (*name && *name != '<' &&
	       (*name != '(' || !strncmp(name, unnamed, strlen(unnamed)))) {
		if (*name == '(') {
			name += strlen(unnamed);
			continue;
		}
		for (length = 0; in_word(name[length]);)
			length++;
		if (!strncmp(name, "operator", strlen("operator"))) /* it has another word there */
			return;
		if (length && length < MAX_WORD_BYTES) {
			memcpy(word, name, length);
			word[length] = '\0';
		}
		name += length ? length : 1;
	}
}

/* Is it the symbol that was asked for? *shown: what it is called then, malloc'ed. */
static bool is_asked(const struct seek *s, const char *symbol, char **shown)
{
	char *demangled;
	bool mangled = !strncmp(symbol, "_Z", 2) || !strncmp(symbol, "_R", 2);
	bool same = !strcmp(symbol, s->name);

	if (!same && (!mangled || !strstr(symbol, s->word)))
		return false;
	demangled = demangle(symbol);
	*shown = demangled ? demangle_short(symbol, demangled) : NULL;
	if (*shown && !same)
		same = !strcmp(demangled, s->name) || !strcmp(*shown, s->name);
	free(demangled);
	if (same && *shown)
		return true;
	free(*shown);
	return false;
}

static int add_probe(struct seek *s, char *name, uint32_t *index)
{
	struct probe_set *ps = s->ps;
	struct probe *probe;
	uint32_t source;
	char *overload;
	int err = recorder__source(ps->opts.recorder, catalog_function.source, &source);

	if (!err && ps->nr >= KPROF_WIRE_MAX_PROBES)
		err = -ENOSPC;
	if (!err)
		err = vec_grow((void **)&ps->probes, &ps->cap, ps->nr, sizeof(*ps->probes));
	overload = err ? NULL : strdup("");
	if (!overload)
		return err ? err : -ENOMEM;
	probe = &ps->probes[ps->nr];
	*probe = (struct probe){
		.row = &catalog_function,
		.row_id = UINT32_MAX,
		.source = source,
		.name = name,
		.overload = overload,
	};
	*index = (uint32_t)ps->nr++;
	return 0;
}

static int add_point(struct seek *s, uint64_t offset, const struct insn_entry *entry, char *name)
{
	struct attach_point point = {.offset = offset + entry->skip_bytes};
	uint32_t index;
	int err = add_probe(s, name, &index);

	if (err) {
		free(name);
		return err;
	}
	point.cookie = KPROF_COOKIE(s->ps->probes[index].source, entry->sp_bias_bytes, index) |
		       KPROF_COOKIE_SPAN | KPROF_COOKIE_MODULES |
		       KPROF_COOKIE_WITHIN(KPROF_WITHIN_FUNCTION, 0);
	s->ps->stats.functions++;
	return point_list__add(&s->file->extras[EXTRA_FUNCTIONS].points, point);
}

static int on_symbol(void *ctx, const struct elffile_symbol *symbol)
{
	struct seek *s = ctx;
	struct file *f = s->file;
	const struct point_list *found = &f->extras[EXTRA_FUNCTIONS].points;
	uint64_t offset = elffile__offset(f->elf, symbol->vaddr);
	struct insn_entry entry;
	const uint8_t *code;
	size_t avail;
	char *name;

	/* reaching an unlikely part of a function that compilers split off is not a call */
	if (!symbol->function || strstr(symbol->name, ".cold") || !is_asked(s, symbol->name, &name))
		return 0;
	code = offset == UINT64_MAX || !elffile__executable(f->elf, offset)
		       ? NULL
		       : elffile__bytes(f->elf, offset, 64, &avail);
	if (code) {
		insn_entry_site(code, symbol->size && symbol->size < avail ? symbol->size : avail,
				&entry);
		for (size_t i = 0; i < found->nr; i++) /* aliases */
			if (found->points[i].offset == offset + entry.skip_bytes)
				code = NULL;
	}
	if (!code || entry.cost == INSN_FORBIDDEN) {
		free(name);
		return 0;
	}
	if (found->nr == MAX_PLACES) {
		log_warn("its whole name, as `nm` shows it",
			 "%s has more than %d functions %s; the rest are not seen", f->name,
			 MAX_PLACES, s->name);
		free(name);
		return 1;
	}
	s->err = add_point(s, offset, &entry, name);
	return s->err;
}

bool functions__known(const struct probe_set *ps, const struct file *f)
{
	return !ps->opts.filter->symbol || (f && f->extras[EXTRA_FUNCTIONS].known);
}

/* Looks for the function in a file, once per file. */
static bool has_functions(struct probe_set *ps, struct file *f)
{
	struct seek s = {.ps = ps, .file = f, .name = ps->opts.filter->symbol};
	struct extra *found = &f->extras[EXTRA_FUNCTIONS];

	if (!found->known && f->elf) {
		found->known = true;
		find_word(s.name, s.word);
		elffile__symbols(f->elf, on_symbol, &s);
		elffile__forget_pages(f->elf);
		if (s.err)
			log_warn(NULL, "%s: %s can't be watched: %s", f->name, s.name,
				 strerror(-s.err));
	}
	return found->points.nr > 0;
}

bool functions__in(struct probe_set *ps, struct target *t, const struct proc_map *map)
{
	struct file *f;

	if (!ps->opts.filter->symbol || !proc_maps__has_code(t->maps, map) ||
	    probe_files__open(ps, t, map, &f))
		return false;
	return has_functions(ps, f);
}

int functions__attach(struct probe_set *ps, struct target *t, struct target_file *tf,
		      const char *path)
{
	const char *name = ps->opts.filter->symbol;

	if (!name || !has_functions(ps, tf->file))
		return 0;
	return extras__attach(ps, t, tf, path, EXTRA_FUNCTIONS, ATTACH_BEGIN, name);
}
