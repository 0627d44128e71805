// SPDX-License-Identifier: BSD-2-Clause
/* What a device call was given and what it returned, as attributes of its span. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/session/session.h"
#include "symbol/symbolize/demangle.h"
#include "util/util.h"

static int put_attrs(struct kprof_session *s, uint64_t span, const struct store_attr *attrs,
		     uint32_t nr)
{
	struct store_record r = {
		.type = STORE_ARGS, .args = {.span = span}, .attrs = attrs, .nr_attrs = nr};

	return nr ? store_writer__put(s->store, &r) : 0;
}

static uint32_t intern(struct kprof_session *s, const char *text)
{
	return store_writer__string(s->store, text, strlen(text));
}

/* ---- functions by address ------------------------------------------------------------------------- */

/*
 * Compilers put a function on the host in a kernel's place, and its address is what is launched: of the kernel's own
 * name (nvcc), or with a prefix before the plain name (clang) or before the mangled one (nvcc, for some templates).
 * malloc'ed; NULL: no memory.
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
	} else { /* a plain name, in its scope and with its parameters */
		free(inner);
		memmove(at, at + len, strlen(at + len) + 1);
	}
	free(mangled);
	return plain;
}

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
 * The string id of what begins at this address in the process; 0: nothing that has a name. Usually a function; a
 * kernel's handle may be a variable too, which only a walk over all symbols finds: once per address.
 */
static uint32_t symbol_at(struct kprof_session *s, struct target *t, uint64_t addr,
			  const char *prefix)
{
	const struct proc_map *map = target__map(s, t, addr);
	struct elffile_symbol sym;
	struct lookup l = {0};
	struct file *f;
	char *shown;
	uint32_t id;

	if (!map || !(map->flags & PROC_MAP_FILE) || session__file(s, t, map, &f) || !f->elf)
		return 0;
	l.vaddr = elffile__vaddr(f->elf, addr - map->start + map->offset);
	if (l.vaddr == UINT64_MAX)
		return 0;
	if (map->flags & PROC_MAP_EXEC) {
		if (!elffile__symbol_at(f->elf, l.vaddr, &sym) && sym.vaddr == l.vaddr)
			l.name = strdup(sym.name);
	} else {
		elffile__symbols(f->elf, at_address, &l);
	}
	shown = l.name ? shown_function(l.name, prefix) : NULL;
	id = shown ? intern(s, shown) : 0;
	free(shown);
	free(l.name);
	return id;
}

static uint32_t function_name(struct kprof_session *s, struct target *t, uint64_t addr,
			      const char *prefix)
{
	uint64_t *known = map64__at(&t->functions, addr);
	uint32_t id;

	if (!known)
		return 0;
	if (*known)
		return (uint32_t)(*known - 1);
	id = symbol_at(s, t, addr, prefix);
	*known = (uint64_t)id + 1;
	return id;
}

void calls__forget(struct target *t)
{
	map64__free(&t->functions);
}

/* ---- arguments ------------------------------------------------------------------------------------ */

static const char *enum_name(const struct catalog_arg *arg, uint64_t value)
{
	for (uint64_t i = 0; arg->names[i]; i++)
		if (i == value)
			return arg->names[i];
	return NULL;
}

/* One argument as an attribute. */
static void describe(struct kprof_session *s, struct target *t, const struct catalog_arg *arg,
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
			attr->value = intern(s, name);
		}
		break;
	case CATALOG_ARG_FUNCTION:
		id = function_name(s, t, value, arg->strip);
		attr->type = id ? STORE_ATTR_STRING : STORE_ATTR_HEX;
		attr->value = id ? id : value;
		break;
	default:
		break;
	}
}

/* Three numbers in two or three arguments. Returns how many arguments they are. */
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
	/* A device takes no more than 65535 in y and z: more is a failing call's. */
	attr->value = x | (y < UINT16_MAX ? y : UINT16_MAX) << 32 |
		      (z < UINT16_MAX ? z : UINT16_MAX) << 48;
	return nr;
}

static bool is_dim3(const struct catalog_arg *arg)
{
	return arg->kind == CATALOG_ARG_DIM3_XY || arg->kind == CATALOG_ARG_DIM3_X;
}

int calls__args(struct kprof_session *s, struct target *t, const struct probe *p,
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
			describe(s, t, &args[i], e->args[i], &attrs[nr]);
		parts = (1u << used) - 1;
		if (!(e->faults >> i & parts))
			nr++;
	}
	return put_attrs(s, span, attrs, nr);
}

/* ---- results -------------------------------------------------------------------------------------- */

int calls__result(struct kprof_session *s, const struct span_end *end)
{
	const struct probe *p = &s->probes[end->probe];
	const struct catalog_result *result = p->row->result;
	struct store_attr attr = {.type = STORE_ATTR_STRING};
	const char *name;
	char text[128];
	int64_t value;

	if (!result) /* the site tells it for another caller */
		return 0;
	value = result->is_signed ? (int64_t)(int32_t)end->result : (int64_t)(uint32_t)end->result;
	s->sources[p->source].answered++;
	if (value == result->ok)
		return 0;
	name = result->name(value);
	if (name)
		snprintf(text, sizeof(text), "%s (%lld)", name, (long long)value);
	else
		snprintf(text, sizeof(text), "%lld", (long long)value);
	if (result->answer && value == result->answer) {
		attr.key = intern(s, "result");
	} else {
		attr.key = intern(s, result->key);
		s->sources[p->source].failed++;
	}
	attr.value = intern(s, text);
	return put_attrs(s, end->number, &attr, 1);
}

/* "calls": per source of calls, what became of them beside their spans. */
int calls__account(struct kprof_session *s)
{
	cJSON *calls = cJSON_CreateObject();
	char *text;
	int err;

	for (uint32_t i = 0; i < s->nr_sources; i++) {
		const struct session_source *source = &s->sources[i];
		cJSON *one;

		if (!source->answered && !source->folded)
			continue;
		one = cJSON_AddObjectToObject(calls, source->name);
		cJSON_AddNumberToObject(one, "results_seen", (double)source->answered);
		cJSON_AddNumberToObject(one, "failed", (double)source->failed);
		cJSON_AddNumberToObject(one, "folded", (double)source->folded);
	}
	text = cJSON_PrintUnformatted(calls);
	err = !text ? -ENOMEM : calls->child ? session__meta(s, "calls", text) : 0;
	cJSON_free(text);
	cJSON_Delete(calls);
	return err;
}
