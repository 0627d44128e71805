// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/callers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

enum caller_kind { BY_LINE, BY_NODE };

struct callers {
	UT_hash_handle hh;
	uint32_t row;
	enum caller_kind kind;
	uint64_t ns;
	char *name; /* points into key */
	char *key;  /* NULL once the result owns it */
};

static int no_memory(void)
{
	return error_set(-ENOMEM, NULL, "out of memory for what operators were called from");
}

/*
 * Recognizes the function that executes an autograd node, and finds its class:
 * torch::autograd::generated::AddmmBackward0::apply, torch::autograd::AccumulateGrad::apply.
 */
static bool node_of(const char *function, struct caller *c)
{
	static const char scope[] = "torch::autograd::", apply[] = "::apply";
	const char *end, *begin;

	if (strncmp(function, scope, sizeof(scope) - 1))
		return false;
	end = strstr(function, apply);
	if (!end || end[sizeof(apply) - 1])
		return false;
	begin = end;
	while (begin > function && begin[-1] != ':')
		begin--;
	if (begin == end)
		return false;
	c->node = begin;
	c->node_length = (uint32_t)(end - begin);
	return true;
}

void caller_step(struct caller *c, const struct tl_frame *f)
{
	if (f->kind == TL_FRAME_PYTHON)
		c->python = f;
	for (uint32_t i = f->nr_lines; f->kind == TL_FRAME_NATIVE && i-- > 0;)
		if (f->lines[i].named && node_of(f->lines[i].function, c))
			return;
}

/* Adds ns to the caller of this row, kind and key. Takes ownership of the key. */
static int count(struct callers **all, uint32_t row, enum caller_kind kind, char *key, uint64_t ns)
{
	struct callers *known = NULL;

	if (!key)
		return no_memory();
	HASH_FIND_STR(*all, key, known);
	if (known) {
		free(key);
	} else {
		known = calloc(1, sizeof(*known));
		if (!known) {
			free(key);
			return no_memory();
		}
		known->row = row;
		known->kind = kind;
		known->key = key;
		known->name = strchr(key, ' ') + 1;
		HASH_ADD_KEYPTR(hh, *all, known->key, strlen(known->key), known);
		if (!known->hh.tbl) {
			free(key);
			free(known);
			return no_memory();
		}
	}
	add_capped(&known->ns, ns);
	return 0;
}

int callers__add(struct callers **all, uint32_t row, const struct caller *c, uint64_t ns)
{
	const struct tl_line *line = c->python ? c->python->lines : NULL;
	int err = 0;

	if (line)
		err = count(all, row, BY_LINE,
			    xasprintf("%u.%d %s:%u %s", row, BY_LINE, path_base(line->file),
				      line->line, line->function),
			    ns);
	if (!err && c->node)
		err = count(all, row, BY_NODE,
			    xasprintf("%u.%d %.*s", row, BY_NODE, (int)c->node_length, c->node),
			    ns);
	return err;
}

/*
 * Between two of equal time the name that sorts first wins, since the order in a hash table is
 * arbitrary.
 */
static bool is_more(const struct callers *c, uint64_t ns, const char *name)
{
	return c->ns > ns || (c->ns == ns && strcmp(c->name, name) < 0);
}

int callers__tell(struct callers *all, struct kprof_result *r)
{
	uint64_t *most = calloc(r->nr * 2 + 1, sizeof(*most));
	struct callers *c;

	if (!most)
		return no_memory();
	for (c = all; c; c = c->hh.next) {
		struct kprof_row *row = &r->entries[c->row].row;
		const char **name = c->kind == BY_LINE ? &row->caller : &row->node;
		double *share = c->kind == BY_LINE ? &row->caller_share : &row->node_share;
		uint64_t *ns = &most[(size_t)c->row * 2 + c->kind];

		if (!is_more(c, *ns, *name))
			continue;
		*ns = c->ns;
		*name = c->name;
		*share = row->total_ns ? (double)c->ns / (double)row->total_ns : 0;
	}
	free(most);
	/* The names of these callers, parts of their keys, have to live as long as the result. */
	for (c = all; c; c = c->hh.next) {
		struct kprof_row *row = &r->entries[c->row].row;
		const char **name = c->kind == BY_LINE ? &row->caller : &row->node;

		if (*name != c->name)
			continue;
		if (vec_grow((void **)&r->names, &r->cap_names, r->nr_names, sizeof(*r->names)))
			return no_memory();
		r->names[r->nr_names++] = c->key;
		c->key = NULL;
	}
	return 0;
}

void callers__free(struct callers *all)
{
	struct callers *c, *next;

	HASH_ITER (hh, all, c, next) {
		HASH_DEL(all, c);
		free(c->key);
		free(c);
	}
}
