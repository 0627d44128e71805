// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/calls.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/names/names.h"
#include "util/budget.h"
#include "util/map64.h"
#include "util/util.h"

struct calls {
	struct recorder *recorder;
	struct targets *targets;
	struct probe_set *probes;
	/* slot of a target: struct functions * */
	uint32_t slot;
};

int calls__new(struct recorder *recorder, struct targets *targets, struct probe_set *probes,
	       struct calls **out)
{
	struct calls *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->recorder = recorder;
	c->targets = targets;
	c->probes = probes;
	c->slot = targets__slot(targets);
	*out = c;
	return 0;
}

void calls__free(struct calls *c)
{
	struct target *t, *next;

	if (!c)
		return;
	TARGETS_EACH (c->targets, t, next)
		calls__forget(c, t);
	free(c);
}

/* ---- functions by address ---- */

/*
 * For each kernel, compilers generate a function on the host, whose address is what a launch call
 * is given. Its symbol is the kernel's own name (nvcc), or has a prefix before the plain name
 * (clang) or before the mangled name (nvcc, for some templates). Returns the name to show,
 * malloc'ed. NULL: no memory.
 */
static char *shown_function(const char *symbol, const char *prefix)
{
	char *plain = demangle(symbol);
	char *at = plain && prefix ? strstr(plain, prefix) : NULL;
	char *mangled, *inner;
	size_t len;

	if (!at)
		return plain;
	len = strlen(prefix);
	mangled = xasprintf("_%.*s", (int)strcspn(at + len, "("), at + len);
	inner = mangled && mangled[1] == 'Z' ? demangle(mangled) : NULL;
	if (inner && strcmp(inner, mangled)) {
		free(plain);
		plain = inner;
	} else { /* a plain name, with its scope and parameters: cut out the prefix */
		free(inner);
		memmove(at, at + len, strlen(at + len) + 1);
	}
	free(mangled);
	return plain;
}

/* What is known of a process's functions: kept in its slot. */
struct functions {
	struct map64 names; /* address → string id + 1 */
	struct budget looks;
};
#define MAX_FUNCTIONS 65536

struct lookup {
	uint64_t vaddr;
	char *name; /* malloc'ed; NULL: not found */
};

static int at_address(void *ctx, const struct elffile_symbol *sym)
{
	struct lookup *l = ctx;

	if (sym->vaddr != l->vaddr)
		return 0;
	l->name = strdup(sym->name);
	return 1;
}

/*
 * The string id of the name of the symbol that begins at this address in the process; 0: none. The
 * symbol is usually a function. A kernel's handle may also be a variable, which only a walk over
 * all symbols finds; function_name() does that once per address.
 */
static uint32_t symbol_at(struct calls *c, struct target *t, uint64_t addr, const char *prefix)
{
	const struct proc_map *map = targets__map(c->targets, t, addr);
	struct elffile *elf;
	struct elffile_symbol sym;
	struct lookup l = {0};
	char *shown;
	uint32_t id;

	elf = map && map->flags & PROC_MAP_FILE ? probe_set__elf(c->probes, t, map) : NULL;
	if (!elf)
		return 0;
	l.vaddr = elffile__vaddr(elf, addr - map->start + map->offset);
	if (l.vaddr == UINT64_MAX)
		return 0;
	if (map->flags & PROC_MAP_EXEC) {
		if (!elffile__symbol_at(elf, l.vaddr, &sym) && sym.vaddr == l.vaddr)
			l.name = strdup(sym.name);
	} else {
		elffile__symbols(elf, at_address, &l);
	}
	shown = l.name ? shown_function(l.name, prefix) : NULL;
	id = shown ? recorder__string(c->recorder, shown) : 0;
	free(shown);
	free(l.name);
	return id;
}

static uint32_t function_name(struct calls *c, struct target *t, uint64_t addr, const char *prefix)
{
	struct functions *functions = t->slot[c->slot];
	uint64_t *known;
	uint32_t id;

	if (!functions)
		functions = t->slot[c->slot] = calloc(1, sizeof(*functions));
	known = functions && addr < UINT64_MAX ? map64__at(&functions->names, addr) : NULL;
	if (!known)
		return 0;
	if (*known)
		return (uint32_t)(*known - 1);
	if (functions->names.used > MAX_FUNCTIONS || !budget_left(&functions->looks))
		return 0;
	id = symbol_at(c, t, addr, prefix);
	budget_note(&functions->looks, id, 1);
	*known = (uint64_t)id + 1;
	return id;
}

void calls__forget(struct calls *c, struct target *t)
{
	struct functions *functions = t->slot[c->slot];

	if (!functions)
		return;
	map64__free(&functions->names);
	free(functions);
	t->slot[c->slot] = NULL;
}

/* ---- arguments ---- */

static const char *enum_name(const struct catalog_arg *arg, uint64_t value)
{
	for (uint64_t i = 0; arg->names[i]; i++)
		if (i == value)
			return arg->names[i];
	return NULL;
}

/* Fills in the attribute for one argument. */
static void describe(struct calls *c, struct target *t, const struct catalog_arg *arg,
		     uint64_t value, struct store_attr *attr)
{
	const char *name;
	uint32_t id;

	attr->type = STORE_ATTR_U64;
	attr->value = value;
	switch (arg->kind) {
	case CATALOG_ARG_UNSIGNED32:
		attr->value = (uint32_t)value;
		break;
	case CATALOG_ARG_SIGNED32:
		attr->type = STORE_ATTR_I64;
		attr->value = (uint64_t)(int64_t)(int32_t)value;
		break;
	case CATALOG_ARG_POINTER:
	case CATALOG_ARG_STREAM:
		attr->type = STORE_ATTR_HEX;
		break;
	case CATALOG_ARG_ENUM:
		attr->value = (uint32_t)value;
		name = enum_name(arg, attr->value);
		if (name) {
			attr->type = STORE_ATTR_STRING;
			attr->value = recorder__string(c->recorder, name);
		}
		break;
	case CATALOG_ARG_FUNCTION:
		id = function_name(c, t, value, arg->strip);
		attr->type = id ? STORE_ATTR_STRING : STORE_ATTR_HEX;
		attr->value = id ? id : value;
		break;
	default:
		break;
	}
}

/* A dim3 (x, y, z) is passed in two or three arguments. Returns how many. */
static size_t describe_dim3(const struct catalog_arg *args, const uint64_t *values,
			    struct store_attr *attr)
{
	uint64_t x = values[0] & UINT32_MAX, y, z;
	size_t nr;

	if (args[0].kind == CATALOG_ARG_DIM3_XY) {
		y = values[0] >> 32;
		z = values[1] & UINT32_MAX;
		nr = 2;
	} else {
		y = values[1] & UINT32_MAX;
		z = values[2] & UINT32_MAX;
		nr = 3;
	}
	attr->type = STORE_ATTR_DIM3;
	/*
	 * Devices accept at most 65535 for y and z, so a larger value belongs to a call that fails.
	 */
	attr->value = x | (y < UINT16_MAX ? y : UINT16_MAX) << 32 |
		      (z < UINT16_MAX ? z : UINT16_MAX) << 48;
	return nr;
}

static bool is_dim3(const struct catalog_arg *arg)
{
	return arg->kind == CATALOG_ARG_DIM3_XY || arg->kind == CATALOG_ARG_DIM3_X;
}

int calls__args(struct calls *c, struct target *t, const struct probe *p,
		const struct kprof_wire_begin_args *e, uint64_t span)
{
	const struct catalog_arg *args = p->row->args;
	struct store_attr attrs[KPROF_WIRE_MAX_ARGS];
	uint32_t nr = 0;
	size_t used;

	for (size_t i = 0; i < KPROF_WIRE_MAX_ARGS && i < e->nr && args[i].name; i += used) {
		uint32_t parts;

		attrs[nr].key = p->keys[i];
		used = 1;
		if (is_dim3(&args[i]))
			used = describe_dim3(&args[i], &e->args[i], &attrs[nr]);
		else
			describe(c, t, &args[i], e->args[i], &attrs[nr]);
		parts = (1u << used) - 1;
		if (!(e->faults >> i & parts))
			nr++;
	}
	return recorder__attrs(c->recorder, span, attrs, nr);
}

/* ---- results ---- */

int calls__result(struct calls *c, const struct span_end *end)
{
	const struct probe *p = probe_set__probe(c->probes, end->probe);
	struct record_source *source = recorder__source_at(c->recorder, p->source);
	const struct catalog_result *result = p->row->result;
	struct store_attr attr = {.type = STORE_ATTR_STRING};
	char text[CATALOG_RESULT_BYTES];
	int64_t value;
	int err;

	if (!result) /* the site records results for another function that returns there */
		return 0;
	value = (int32_t)end->result;
	source->answered++;
	if (!value)
		return 1;
	if (catalog_result_text(result, value, text)) {
		attr.key = recorder__string(c->recorder, "error");
		source->failed++;
	} else {
		attr.key = recorder__string(c->recorder, "result");
	}
	attr.value = recorder__string(c->recorder, text);
	err = recorder__attrs(c->recorder, end->number, &attr, 1);
	return err ? err : 1;
}

int calls__account(struct calls *c)
{
	cJSON *calls = cJSON_CreateObject();

	for (uint32_t i = 0; i < recorder__nr_sources(c->recorder); i++) {
		const struct record_source *source = recorder__source_at(c->recorder, i);
		cJSON *one;

		if (!source->answered && !source->folded)
			continue;
		one = cJSON_AddObjectToObject(calls, source->name);
		cJSON_AddNumberToObject(one, "results_seen", (double)source->answered);
		cJSON_AddNumberToObject(one, "failed", (double)source->failed);
		cJSON_AddNumberToObject(one, "folded", (double)source->folded);
	}
	if (calls && calls->child)
		return recorder__meta_value(c->recorder, "calls", calls);
	cJSON_Delete(calls);
	return calls ? 0 : -ENOMEM;
}
