// SPDX-License-Identifier: BSD-2-Clause
#include "capture/probe/plan_match.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/runtime.h"
#include "util/util.h"

static uint32_t pair(const char *s, size_t i)
{
	return (uint32_t)(uint8_t)s[i] << 8 | (uint8_t)s[i + 1];
}

static void add_glob(struct sieve *v, const struct glob *g)
{
	uint32_t a, b;

	if (g->prefix < SIEVE_LEN) {
		v->open = true;
		return;
	}
	a = pair(g->text, 3);
	b = pair(g->text, 6);
	v->first[a / 8] |= 1 << a % 8;
	v->second[b / 8] |= 1 << b % 8;
}

void sieve__add(struct sieve *v, const struct matcher *m)
{
	for (size_t i = 0; i < m->nr; i++)
		add_glob(v, &m->globs[i]);
}

bool sieve__passes(const struct sieve *v, const char *symbol)
{
	uint32_t a, b;

	if (v->open)
		return true;
	for (size_t i = 0; i < SIEVE_LEN; i++)
		if (!symbol[i])
			return false;
	a = pair(symbol, 3);
	b = pair(symbol, 6);
	return v->first[a / 8] & 1 << a % 8 && v->second[b / 8] & 1 << b % 8;
}

int matcher__init(struct matcher *m, const struct catalog_row *row, const char *globs)
{
	char *copy = strdup(globs), *save = NULL;
	int err = copy ? 0 : -ENOMEM;

	m->row = row;
	for (char *g = copy ? strtok_r(copy, " ", &save) : NULL; g && !err;
	     g = strtok_r(NULL, " ", &save)) {
		struct glob glob = {.text = strdup(g), .prefix = strcspn(g, "*?[")};

		glob.literal = !g[glob.prefix];
		err = glob.text ? vec_grow((void **)&m->globs, &m->cap, m->nr, sizeof(*m->globs))
				: -ENOMEM;
		if (err)
			free(glob.text);
		else
			m->globs[m->nr++] = glob;
	}
	free(copy);
	return err;
}

void matcher__free(struct matcher *m)
{
	for (size_t i = 0; i < m->nr; i++)
		free(m->globs[i].text);
	free(m->globs);
	m->globs = NULL;
	m->nr = m->cap = 0;
}

static bool glob_matches(const struct glob *g, const struct catalog_row *row, const char *symbol)
{
	size_t k = 0;

	while (k < g->prefix && symbol[k] == g->text[k])
		k++;
	if (k < g->prefix)
		return false;
	if (g->literal)
		return !symbol[g->prefix] ||
		       (row->suffixes && catalog_stem(row->suffixes, symbol) == g->prefix);
	return !fnmatch(g->text, symbol, 0);
}

bool matcher__matches(const struct matcher *m, const char *symbol)
{
	for (size_t i = 0; i < m->nr; i++)
		if (glob_matches(&m->globs[i], m->row, symbol))
			return !m->row->unless || !catalog_match(m->row->unless, symbol);
	return false;
}
