// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/event/steps.h"
#include "capture/process/process.h"
#include "symbol/names/names.h"
#include "util/map64.h"
#include "util/util.h"

/* Of one process: a program that invents classes gets no names for further ones. */
#define MAX_CLASSES 65536

struct classes {
	struct map64 by_vtable; /* pointer → demangled name of the class */
	uint32_t changes;       /* of the mappings that this was read from */
};

struct namer {
	struct recorder *recorder;
	struct targets *targets;
	const struct plan_filter *filter;
	/* slot of a target: struct classes * */
	uint32_t slot;
	struct map64 names;  /* row and string id of the text → PACK() */
	struct steps *steps; /* NULL: nobody asks which events are steps */
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
	demangle_apart();
	*out = n;
	return 0;
}

void namer__free(struct namer *n)
{
	struct target *t, *next;

	if (!n)
		return;
	TARGETS_EACH (n->targets, t, next)
		namer__forget(n, t);
	map64__free(&n->names);
	free(n);
}

void namer__tell(struct namer *n, struct steps *steps)
{
	n->steps = steps;
}

static int describe(struct namer *n, const struct probe *p, const char *name, const char *overload,
		    uint32_t flags, uint32_t *out)
{
	struct store_record r = {
		.type = STORE_DESCRIPTION,
		.description = {.name = recorder__string(n->recorder, name),
				.overload = recorder__string(n->recorder, overload),
				.category = recorder__string(n->recorder, p->row->category),
				.source = p->source,
				.flags = flags},
	};

	int err = recorder__describe(n->recorder, &r, out);

	return err || !n->steps ? err : steps__described(n->steps, *out, p->row->category, name);
}

static void empty(struct classes *c)
{
	for (size_t i = 0; i < c->by_vtable.cap; i++)
		free((char *)(uintptr_t)c->by_vtable.slots[i].value);
	map64__free(&c->by_vtable);
}

/* What is known of the process's classes. NULL: no memory. */
static struct classes *classes_of(const struct namer *n, struct target *t)
{
	struct classes *c = t->slot[n->slot];

	if (!c)
		c = t->slot[n->slot] = calloc(1, sizeof(*c));
	/* where a library was unloaded, another one may have its addresses */
	if (c && c->changes != t->changes)
		empty(c);
	if (c)
		c->changes = t->changes;
	return c;
}

/*
 * vtable[-1] points to the class's typeinfo, whose second word points to the mangled name (Itanium
 * C++ ABI, 2.9). Read once per class and process, as long as the same files are mapped.
 */
const char *namer__class(struct namer *n, struct target *t, uint64_t vtable)
{
	struct classes *c = classes_of(n, t);
	uint64_t typeinfo, name, *known;
	char mangled[1024];
	char *plain;

	known = c && vtable < UINT64_MAX ? map64__at(&c->by_vtable, vtable) : NULL;
	if (!known)
		return NULL;
	if (*known)
		return (const char *)(uintptr_t)*known;
	if (c->by_vtable.used > MAX_CLASSES ||
	    target__read(t, &typeinfo, sizeof(typeinfo), vtable - 8) ||
	    target__read(t, &name, sizeof(name), typeinfo + 8) ||
	    target__read_string(t, name, mangled, sizeof(mangled)))
		return NULL;
	/* A leading '*' is not part of the name: it says that names are compared by address. */
	plain = demangle_type(mangled[0] == '*' ? mangled + 1 : mangled);
	*known = (uint64_t)(uintptr_t)plain;
	return plain;
}

void namer__forget(struct namer *n, struct target *t)
{
	struct classes *c = t->slot[n->slot];

	if (!c)
		return;
	empty(c);
	free(c);
	t->slot[n->slot] = NULL;
}

/* So demanglers say that a class is known in its file only: a matter of releases. */
#define UNNAMED_SCOPE "(anonymous namespace)::"

/* Drops the scope that the row names, and the whole path of a generated class. */
static const char *shorten(const struct catalog_row *row, const char *name)
{
	size_t strip = row->strip ? strlen(row->strip) : 0;
	const char *inner;

	if (!strip || strncmp(name, row->strip, strip))
		return name;
	inner = name + strip;
	if (row->collective && !strncmp(inner, UNNAMED_SCOPE, strlen(UNNAMED_SCOPE)))
		return inner + strlen(UNNAMED_SCOPE);
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

/* The name to show for a text that was read: the row's format around its short form. malloc'ed. */
static char *shown_name(const struct catalog_row *row, const char *plain)
{
	const char *last = row->last_component ? strrchr(plain, '.') : NULL;
	const char *inner = shorten(row, last ? last + 1 : plain);
	const char *at = row->name ? strstr(row->name, "%s") : NULL;

	if (!at)
		return strdup(row->name ? row->name : inner);
	return xasprintf("%.*s%s%s", (int)(at - row->name), row->name, inner, at + 2);
}

/* Decides what a text means to a row, the first time that the row meets this text. */
static int decide(struct namer *n, const struct probe *p, const char *plain,
		  struct name_result *out)
{
	const struct catalog_row *row = p->row;
	char *name;
	int err = 0;

	*out = (struct name_result){.verdict = NAME_SPAN};
	if (catalog_match(row->range_end_text, plain)) {
		/* Without annotations it would end another range, one of torch.compile's. */
		if (plan_filter_wants_annotations(n->filter))
			out->verdict = NAME_RANGE_END;
		else
			out->verdict = NAME_IGNORE;
		return 0;
	}
	if (catalog_match(row->ignore_text, plain)) {
		out->verdict = NAME_IGNORE;
		return 0;
	}
	if (!plan_filter_wants_row(n->filter, row)) {
		out->verdict = NAME_FILTERED;
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
	char *name;
	int err;

	if (!plan_filter_wants_row(n->filter, p->row)) {
		*out = (struct name_result){.verdict = NAME_FILTERED};
		return 0;
	}
	name = xasprintf("(unnamed %s)", p->row->source);
	err = name ? describe(n, p, name, "", KPROF_EVENT_UNNAMED, &out->description) : -ENOMEM;

	free(name);
	out->verdict = NAME_SPAN;
	return err;
}

/*
 * A Python str that is not ASCII. Where an ASCII str has its characters, it has the length of its
 * UTF-8 form and then a pointer to that form, if the form was ever asked for (CPython's
 * PyCompactUnicodeObject). Read as characters, that gives one or two odd ones. Returns true when
 * length and pointer fit a string in the process's memory, and the string is not ASCII.
 */
static bool python_text(struct target *t, uint64_t addr, char *buf, size_t bytes)
{
	struct {
		uint64_t len, utf8;
	} form;
	bool ascii = true;

	if (target__read(t, &form, sizeof(form), addr) || !form.len || form.len >= bytes ||
	    target__read(t, buf, form.len + 1, form.utf8) || strlen(buf) != form.len)
		return false;
	for (size_t i = 0; i < form.len; i++)
		ascii &= (unsigned char)buf[i] < 0x80;
	return !ascii;
}

/*
 * The text that names this hit; NULL when none could be read. A text wins over a class: autograd
 * nodes defined in Python have both, and are called by their Python class.
 */
static const char *raw_name(struct namer *n, struct target *t, const struct probe *p,
			    const struct name_hit *hit, char *buf, size_t bytes)
{
	if (p->row->layout == CATALOG_LAYOUT_PYUNICODE && hit->text && strlen(hit->text) <= 2 &&
	    python_text(t, hit->text_addr, buf, bytes))
		return buf;
	if (hit->text && hit->text[0])
		return hit->text;
	/*
	 * The text's page was not resident when the probe fired. By now it is, or the process is
	 * gone.
	 */
	if (hit->text_addr && !target__read_string(t, hit->text_addr, buf, bytes) && buf[0])
		return buf;
	if (p->row->naming == CATALOG_NAME_VTABLE && hit->value)
		return namer__class(n, t, hit->value);
	return NULL;
}

#define MAX_NAMES 131072

/*
 * Names are remembered by row and string: the event description in the upper bits, verdict + 1 in
 * the lower 8.
 */
#define PACK(r) ((uint64_t)(r)->description << 8 | ((uint64_t)(r)->verdict + 1))

int namer__resolve(struct namer *n, struct target *t, struct probe *p, const struct name_hit *hit,
		   struct name_result *out)
{
	char buf[KPROF_WIRE_TEXT_LONG];
	const char *plain;
	uint64_t key;
	uint64_t *known;
	int err = 0;

	if (p->name) {
		if (n->filter->within && !plan_filter_wants_row(n->filter, p->row)) {
			*out = (struct name_result){.verdict = NAME_FILTERED};
			return 0;
		}
		if (!p->description)
			err = describe(n, p, p->name, p->overload, 0, &p->description);
		*out = (struct name_result){NAME_SPAN, p->description};
		return err;
	}
	plain = raw_name(n, t, p, hit, buf, sizeof(buf));
	key = (uint64_t)p->row_id << 32;
	if (plain)
		key |= recorder__string(n->recorder, plain);
	/* the program invents new names without end: forgotten names get a second description */
	if (n->names.used > MAX_NAMES)
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
