// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/process/process.h"
#include "symbol/names/names.h"
#include "util/map64.h"
#include "util/util.h"

struct namer {
	struct recorder *recorder;
	struct targets *targets;
	const struct plan_filter *filter;
	/* of a target: struct map64 *, vtable pointer → demangled name of the class */
	uint32_t slot;
	struct map64 names; /* row and text → PACK() */
	uint32_t
		*fixed; /* by probe whose symbol alone is the name: event description; 0: not yet */
	size_t nr_fixed;
};

int namer__new(struct recorder *recorder, struct targets *targets, const struct plan_filter *filter,
	       struct namer **out)
{
	struct namer *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->recorder = recorder;
	n->targets = targets;
	n->filter = filter;
	n->slot = targets__slot(targets);
	*out = n;
	return 0;
}

void namer__free(struct namer *n)
{
	struct target *t, *next;

	if (!n)
		return;
	TARGETS_EACH(n->targets, t, next)
	namer__forget(n, t);
	map64__free(&n->names);
	free(n->fixed);
	free(n);
}

static int describe(struct namer *n, const struct probe *p, const char *name, const char *overload,
		    uint32_t flags, uint32_t *out)
{
	const struct record_description description = {
		.name = recorder__string(n->recorder, name),
		.overload = recorder__string(n->recorder, overload),
		.category = recorder__string(n->recorder, p->row->category),
		.source = p->source,
		.flags = flags,
	};

	return recorder__describe(n->recorder, &description, out);
}

/*
 * The class behind a vtable pointer: vtable[-1] is its typeinfo, whose second word is the mangled
 * name (Itanium C++ ABI, 2.9). Read once per class and process; belongs to the process. NULL:
 * unreadable.
 */
static const char *class_name(struct namer *n, struct target *t, uint64_t vtable)
{
	struct map64 *classes = t->slot[n->slot];
	pid_t pid = (pid_t)t->pid;
	uint64_t typeinfo, name, *known;
	char mangled[1024];
	char *plain;

	if (!classes)
		classes = t->slot[n->slot] = calloc(1, sizeof(*classes));
	known = classes ? map64__at(classes, vtable) : NULL;
	if (!known)
		return NULL;
	if (*known)
		return (const char *)(uintptr_t)*known;
	if (process_read(pid, vtable - 8, &typeinfo, sizeof(typeinfo)) ||
	    process_read(pid, typeinfo + 8, &name, sizeof(name)) ||
	    process_read_string(pid, name, mangled, sizeof(mangled)))
		return NULL;
	/* A leading '*' says that the name is unique by its address; it is no part of it. */
	plain = demangle_type(mangled[0] == '*' ? mangled + 1 : mangled);
	*known = (uint64_t)(uintptr_t)plain;
	return plain;
}

void namer__forget(struct namer *n, struct target *t)
{
	struct map64 *classes = t->slot[n->slot];

	if (!classes)
		return;
	for (size_t i = 0; i < classes->cap; i++)
		free((char *)(uintptr_t)classes->slots[i].value);
	map64__free(classes);
	free(classes);
	t->slot[n->slot] = NULL;
}

/* Without the scope that the row says to drop, and without a generated class's whole path. */
static const char *shorten(const struct catalog_row *row, const char *name)
{
	size_t strip = row->strip ? strlen(row->strip) : 0;
	const char *inner;

	if (!strip || strncmp(name, row->strip, strip))
		return name;
	inner = name + strip;
	if (row->keep_scope && catalog_match(row->keep_scope, name))
		return name;
	for (const char *p = inner; *p; p++) { /* generated::AddmmBackward0 → AddmmBackward0 */
		if (*p == '<' || *p == '(')
			break;
		if (p[0] == ':' && p[1] == ':')
			inner = p + 2;
	}
	return inner;
}

/* The name to show for what was read: the row's format around its short form. malloc'ed. */
static char *shown_name(const struct catalog_row *row, const char *plain)
{
	const char *last = row->last_component ? strrchr(plain, '.') : NULL;
	const char *inner = shorten(row, last ? last + 1 : plain);
	const char *at = row->name ? strstr(row->name, "%s") : NULL;

	if (!at)
		return strdup(row->name ? row->name : inner);
	return xasprintf("%.*s%s%s", (int)(at - row->name), row->name, inner, at + 2);
}

/* First time that this row meets this text. */
static int decide(struct namer *n, const struct probe *p, const char *plain,
		  struct name_result *out)
{
	const struct catalog_row *row = p->row;
	char *name;
	int err = 0;

	*out = (struct name_result){.verdict = NAME_SPAN};
	if (catalog_match(row->range_end_text, plain)) {
		out->verdict = NAME_RANGE_END;
		return 0;
	}
	if (catalog_match(row->ignore_text, plain)) {
		out->verdict = NAME_IGNORE;
		return 0;
	}
	name = shown_name(row, plain);
	if (!name)
		return -ENOMEM;
	if (plan_filter_accepts(n->filter, row->category, name))
		err = describe(n, p, name, "", 0, &out->description);
	else
		out->verdict = NAME_FILTERED;
	free(name);
	return err;
}

static int unnamed(struct namer *n, const struct probe *p, struct name_result *out)
{
	char *name = xasprintf("(unnamed %s)", p->row->source);
	int err = name ? describe(n, p, name, "", KPROF_EVENT_UNNAMED, &out->description) : -ENOMEM;

	free(name);
	out->verdict = NAME_SPAN;
	return err;
}

/*
 * A Python str that is not ASCII. What lies where an ASCII one has its characters is the length of
 * its UTF-8 form and then the pointer to it, once somebody has asked for that form (CPython's
 * PyCompactUnicodeObject): read as characters, one or two odd ones. True when both fit a string
 * that is there, and it is one of that kind.
 */
static bool python_text(const struct target *t, uint64_t addr, char *buf, size_t bytes)
{
	struct {
		uint64_t len, utf8;
	} form;
	bool ascii = true;

	if (process_read((pid_t)t->pid, addr, &form, sizeof(form)) || !form.len ||
	    form.len >= bytes || process_read((pid_t)t->pid, form.utf8, buf, form.len + 1) ||
	    strlen(buf) != form.len)
		return false;
	for (size_t i = 0; i < form.len; i++)
		ascii &= (unsigned char)buf[i] < 0x80;
	return !ascii;
}

/*
 * What names this hit, NULL when nothing could be read. A text wins over a class: Python-defined
 * nodes have both, and are called by their Python class.
 */
static const char *raw_name(struct namer *n, struct target *t, const struct probe *p,
			    const struct name_hit *hit, char *buf, size_t bytes)
{
	if (p->row->layout == CATALOG_LAYOUT_PYUNICODE && hit->text && strlen(hit->text) <= 2 &&
	    python_text(t, hit->text_addr, buf, bytes))
		return buf;
	if (hit->text && hit->text[0])
		return hit->text;
	/* The page was not resident when the probe fired; it is by now, or the process is gone. */
	if (hit->text_addr && !process_read_string((pid_t)t->pid, hit->text_addr, buf, bytes) &&
	    buf[0])
		return buf;
	if (p->row->naming == CATALOG_NAME_VTABLE && hit->value)
		return class_name(n, t, hit->value);
	return NULL;
}

#define MAX_NAMES 131072

/* Names are remembered by row and string: what in the upper bits, verdict + 1 in the lower. */
#define PACK(r) ((uint64_t)(r)->description << 8 | ((uint64_t)(r)->verdict + 1))

/* Of a probe whose symbol alone is the name. */
static int fixed_name(struct namer *n, uint32_t index, const struct probe *p, uint32_t *description)
{
	if (index >= n->nr_fixed) {
		size_t nr = index + 1024;
		uint32_t *bigger = realloc(n->fixed, nr * sizeof(*bigger));

		if (!bigger)
			return -ENOMEM;
		memset(bigger + n->nr_fixed, 0, (nr - n->nr_fixed) * sizeof(*bigger));
		n->fixed = bigger;
		n->nr_fixed = nr;
	}
	if (!n->fixed[index]) {
		int err = describe(n, p, p->name, p->overload, 0, &n->fixed[index]);

		if (err)
			return err;
	}
	*description = n->fixed[index];
	return 0;
}

int namer__resolve(struct namer *n, struct target *t, uint32_t index, const struct probe *p,
		   const struct name_hit *hit, struct name_result *out)
{
	char buf[KPROF_WIRE_TEXT_LONG];
	const char *plain;
	uint64_t key;
	uint64_t *known;
	int err;

	if (p->name) {
		out->verdict = NAME_SPAN;
		return fixed_name(n, index, p, &out->description);
	}
	plain = raw_name(n, t, p, hit, buf, sizeof(buf));
	key = (uint64_t)p->row_id << 32;
	if (plain)
		key |= recorder__string(n->recorder, plain);
	if (n->names.used > MAX_NAMES) /* endless new names: some may get a second description */
		map64__free(&n->names);
	known = map64__at(&n->names, key);
	if (!known)
		return -ENOMEM;
	if (*known) {
		out->verdict = (enum name_verdict)((*known & 0xff) - 1);
		out->description = (uint32_t)(*known >> 8);
		return 0;
	}
	err = plain ? decide(n, p, plain, out) : unnamed(n, p, out);
	if (!err)
		*map64__at(&n->names, key) = PACK(out);
	return err;
}
