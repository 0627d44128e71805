// SPDX-License-Identifier: BSD-2-Clause
/*
 * PyTorch's modules as objects of Python: which code their calls run, what class one has, and where
 * it is in the tree that begins at another. The target runs on meanwhile; nothing that is read is
 * trusted.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/python/objects.h"
#include "util/map64.h"
#include "util/utf8.h"
#include "util/util.h"

#define MAX_NAME_CHARS 128
#define MAX_CLASS_BYTES 256
#define CO_VARARGS 4
#define CO_VARKEYWORDS 8

/* Readers of one question: allocated, since a dict and the pages are large. */
struct question {
	struct python_reader r;
	uint32_t left;
	struct python_dict d;
	struct python_page pages[PYTHON_NR_PAGES];
};

static struct question *ask(const struct kprof_python *p, const struct python_memory *m)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->left = PYTHON_MAX_READS;
	q->r = (struct python_reader){.p = p, .m = m, .left = &q->left, .pages = q->pages};
	return q;
}

/* ---- the call ---- */

static uint64_t find_in(struct question *q, uint64_t dict, const char *key, uint32_t *place)
{
	return python_dict__open(&q->r, dict, &q->d) ? 0
						     : python_dict__find(&q->r, &q->d, key, place);
}

/* The class torch.nn.Module; 0: it was not imported. */
static uint64_t module_class(struct question *q)
{
	const struct kprof_python *p = q->r.p;
	uint64_t interp = 0, modules = 0, module, dict = 0;

	if (python_get64(&q->r, p->runtime + p->runtime_interpreters, &interp) || !interp ||
	    python_get64(&q->r, interp + p->interp_modules, &modules))
		return 0;
	module = find_in(q, modules, "torch.nn.modules.module", NULL);
	if (!module || python_get64(&q->r, module + p->module_dict, &dict))
		return 0;
	return find_in(q, dict, "Module", NULL);
}

static int call_of(struct question *q, uint64_t *code)
{
	const struct kprof_python *p = q->r.p;
	uint64_t class = module_class(q), dict = 0, function, type = 0;
	uint32_t arguments[3] = {0}, flags = 0;

	if (!class || python_get64(&q->r, class + p->type_dict, &dict))
		return -ENOENT;
	function = find_in(q, dict, "__call__", NULL);
	if (!function)
		return -ENOENT;
	if (python_get64(&q->r, function + p->function_code, code) ||
	    python_get64(&q->r, *code + p->object_type, &type) || type != p->code_type ||
	    python_get(&q->r, arguments, sizeof(arguments), *code + p->code_argcount) ||
	    python_get(&q->r, &flags, sizeof(flags), *code + p->code_flags) || arguments[0] != 1 ||
	    arguments[2] ||
	    (flags & (CO_VARARGS | CO_VARKEYWORDS)) != (CO_VARARGS | CO_VARKEYWORDS))
		return -ENOTSUP;
	return 0;
}

int python_nn__call(const struct kprof_python *p, const struct python_memory *m, uint64_t *code)
{
	struct question *q = ask(p, m);
	int err = q ? call_of(q, code) : -ENOMEM;

	free(q);
	return err;
}

/* ---- classes ---- */

char *python_nn__class(const struct kprof_python *p, const struct python_memory *m, uint64_t type)
{
	struct question *q = ask(p, m);
	char name[MAX_CLASS_BYTES + 1] = "";
	uint64_t at = 0;
	size_t nr = 0;

	if (!q)
		return NULL;
	if (!python_get64(&q->r, type + p->type_name, &at) && at)
		while (nr < MAX_CLASS_BYTES && !python_get(&q->r, name + nr, 1, at + nr) &&
		       name[nr])
			nr++;
	free(q);
	name[nr] = '\0';
	for (size_t i = 0, len; i < nr; i += len) {
		len = utf8_printable_len(name + i, nr - i);
		if (!len)
			return NULL;
	}
	return nr && nr < MAX_CLASS_BYTES ? strdup(name) : NULL;
}

/* ---- the tree ---- */

struct level {
	struct python_dict children;
	uint64_t next; /* entry of it */
	size_t length; /* of the path of the module whose children these are */
};

struct tree {
	struct question *q;
	struct level *levels;
	size_t nr_levels, nr;
	struct map64 seen;
	char path[PYTHON_NN_PATH_MOST + 1];
	int (*fn)(void *ctx, uint64_t module, const char *path);
	void *ctx;
};

/* Opens the module's dict of children; one that has none of its own has no further level. */
static void descend(struct tree *t, uint64_t module, size_t length)
{
	struct level *to = &t->levels[t->nr_levels];
	uint64_t children;

	if (t->nr_levels == PYTHON_NN_DEEPEST ||
	    python_attributes__open(&t->q->r, module, &t->q->d))
		return;
	children = python_dict__find(&t->q->r, &t->q->d, "_modules", NULL);
	if (!children || python_dict__open(&t->q->r, children, &to->children))
		return;
	to->next = 0;
	to->length = length;
	t->nr_levels++;
}

/* Appends a child's name to the path. Returns the new length; 0: it has no name, or a long one. */
static size_t put_name(struct tree *t, size_t length, uint64_t key)
{
	char *name = NULL;
	size_t bytes, dot = length ? 1 : 0;

	if (python_str__read(t->q->r.p, t->q->r.m, key, MAX_NAME_CHARS, &name))
		return 0;
	bytes = strlen(name);
	if (!bytes || length + dot + bytes > PYTHON_NN_PATH_MOST) {
		length = 0;
	} else {
		if (dot)
			t->path[length] = '.';
		memcpy(t->path + length + dot, name, bytes + 1);
		length += dot + bytes;
	}
	free(name);
	return length;
}

static int child(struct tree *t, size_t above, const struct python_entry *e)
{
	uint64_t *seen;
	size_t length;
	int err;

	if (!e->key || !e->value || e->value == UINT64_MAX || map64__get(&t->seen, e->value))
		return 0;
	length = put_name(t, above, e->key);
	if (!length)
		return 0;
	seen = map64__at(&t->seen, e->value);
	if (!seen)
		return -ENOMEM;
	*seen = 1;
	t->nr++;
	err = t->fn(t->ctx, e->value, t->path);
	if (!err)
		descend(t, e->value, length);
	return err;
}

static int walk(struct tree *t, uint64_t root)
{
	struct python_entry e;
	uint64_t *seen = map64__at(&t->seen, root);
	int err = 0;

	if (!seen)
		return -ENOMEM;
	*seen = 1;
	descend(t, root, 0);
	while (t->nr_levels && !err && t->nr < PYTHON_NN_MOST) {
		struct level *l = &t->levels[t->nr_levels - 1];

		if (python_dict__at(&t->q->r, &l->children, l->next++, &e) <= 0)
			t->nr_levels--;
		else
			err = child(t, l->length, &e);
	}
	return err;
}

int python_nn__tree(const struct kprof_python *p, const struct python_memory *m, uint64_t module,
		    int (*fn)(void *ctx, uint64_t module, const char *path), void *ctx)
{
	struct tree *t = calloc(1, sizeof(*t));
	int err = -ENOMEM;

	if (t) {
		t->q = ask(p, m);
		t->levels = calloc(PYTHON_NN_DEEPEST, sizeof(*t->levels));
		t->fn = fn;
		t->ctx = ctx;
		if (t->q && t->levels)
			err = walk(t, module);
		map64__free(&t->seen);
		free(t->levels);
		free(t->q);
	}
	free(t);
	return err;
}
