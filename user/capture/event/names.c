// SPDX-License-Identifier: BSD-2-Clause
/* What a hit is called: from the probe alone, from the text read at it, or from an object's class. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "capture/session/session.h"
#include "symbol/symbolize/demangle.h"
#include "util/util.h"

static int new_what(struct kprof_session *s, const struct catalog_row *row, uint32_t source,
		    const char *name, const char *overload, uint32_t flags, uint32_t *out)
{
	struct store_record r = {
		.type = STORE_WHAT,
		.what =
			{
				.id = s->nr_whats + 1,
				.name = store_writer__string(s->store, name, strlen(name)),
				.overload =
					store_writer__string(s->store, overload, strlen(overload)),
				.category = store_writer__string(s->store, row->category,
								 strlen(row->category)),
				.source = source,
				.flags = flags,
			},
	};
	int err = store_writer__put(s->store, &r);

	if (!err)
		*out = ++s->nr_whats;
	return err;
}

static int read_target(const struct target *t, uint64_t addr, void *buf, size_t bytes)
{
	struct iovec local = {buf, bytes};
	struct iovec remote = {(void *)(uintptr_t)addr, bytes};
	ssize_t n = process_vm_readv((pid_t)t->pid, &local, 1, &remote, 1, 0);

	return n == (ssize_t)bytes ? 0 : -EFAULT;
}

/* Page by page up to its end. */
int target__read_string(const struct target *t, uint64_t addr, char *buf, size_t bytes)
{
	size_t done = 0;

	while (done < bytes - 1) {
		size_t chunk = 4096 - ((addr + done) & 4095);
		const char *end;

		if (chunk > bytes - 1 - done)
			chunk = bytes - 1 - done;
		if (read_target(t, addr + done, buf + done, chunk))
			return -EFAULT;
		end = memchr(buf + done, '\0', chunk);
		if (end)
			return 0;
		done += chunk;
	}
	buf[done] = '\0';
	return 0;
}

/*
 * The class behind a vtable pointer: vtable[-1] is its typeinfo, whose second word is the mangled name
 * (Itanium C++ ABI, 2.9). Read once per class and process; belongs to the process. NULL: unreadable.
 */
static const char *class_name(struct target *t, uint64_t vtable)
{
	uint64_t *known = map64__at(&t->vtables, vtable);
	uint64_t typeinfo, name;
	char mangled[1024];
	char *plain;

	if (!known)
		return NULL;
	if (*known)
		return (const char *)(uintptr_t)*known;
	if (read_target(t, vtable - 8, &typeinfo, sizeof(typeinfo)) ||
	    read_target(t, typeinfo + 8, &name, sizeof(name)) ||
	    target__read_string(t, name, mangled, sizeof(mangled)))
		return NULL;
	/* A leading '*' says that the name is unique by its address; it is no part of it. */
	plain = demangle_type(mangled[0] == '*' ? mangled + 1 : mangled);
	*known = (uint64_t)(uintptr_t)plain;
	return plain;
}

void names__forget(struct target *t)
{
	for (size_t i = 0; i < t->vtables.cap; i++)
		free((char *)(uintptr_t)t->vtables.slots[i].value);
	map64__free(&t->vtables);
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
static int decide(struct kprof_session *s, const struct probe *p, const char *plain,
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
	if (plan_filter_accepts(&s->filter, row->category, name))
		err = new_what(s, row, p->source, name, "", 0, &out->what);
	else
		out->verdict = NAME_FILTERED;
	free(name);
	return err;
}

static int unnamed(struct kprof_session *s, const struct probe *p, struct name_result *out)
{
	char *name = xasprintf("(unnamed %s)", p->row->source);
	int err = name ? new_what(s, p->row, p->source, name, "", KPROF_EVENT_UNNAMED, &out->what)
		       : -ENOMEM;

	free(name);
	out->verdict = NAME_SPAN;
	return err;
}

/*
 * A Python str that is not ASCII. What lies where an ASCII one has its characters is the length of its UTF-8 form and
 * then the pointer to it, once somebody has asked for that form (CPython's PyCompactUnicodeObject): read as
 * characters, one or two odd ones. True when both fit a string that is there, and it is one of that kind.
 */
static bool python_text(const struct target *t, uint64_t addr, char *buf, size_t bytes)
{
	struct {
		uint64_t len, utf8;
	} form;
	bool ascii = true;

	if (read_target(t, addr, &form, sizeof(form)) || !form.len || form.len >= bytes ||
	    read_target(t, form.utf8, buf, form.len + 1) || strlen(buf) != form.len)
		return false;
	for (size_t i = 0; i < form.len; i++)
		ascii &= (unsigned char)buf[i] < 0x80;
	return !ascii;
}

/*
 * What names this hit, NULL when nothing could be read. A text wins over a class: Python-defined nodes have
 * both, and are called by their Python class.
 */
static const char *raw_name(struct kprof_session *s, struct target *t, const struct probe *p,
			    const struct name_hit *hit, char *buf, size_t bytes)
{
	if (p->row->layout == CATALOG_LAYOUT_PYUNICODE && hit->text && strlen(hit->text) <= 2 &&
	    python_text(t, hit->text_addr, buf, bytes))
		return buf;
	if (hit->text && hit->text[0])
		return hit->text;
	/* The page was not resident when the probe fired; it is by now, or the process is gone. */
	if (hit->text_addr && !target__read_string(t, hit->text_addr, buf, bytes) && buf[0])
		return buf;
	if (p->row->naming == CATALOG_NAME_VTABLE && hit->value)
		return class_name(t, hit->value);
	return NULL;
}

#define MAX_NAMES 131072

/* Names are remembered by row and string: what in the upper bits, verdict + 1 in the lower. */
#define PACK(r) ((uint64_t)(r)->what << 8 | ((uint64_t)(r)->verdict + 1))

int names__resolve(struct kprof_session *s, struct target *t, uint32_t index,
		   const struct name_hit *hit, struct name_result *out)
{
	struct probe *p = &s->probes[index];
	char buf[KPROF_WIRE_TEXT_LONG];
	const char *plain;
	uint64_t key;
	uint64_t *known;
	int err;

	if (p->name) { /* the symbol alone decides */
		out->verdict = NAME_SPAN;
		err = p->what ? 0
			      : new_what(s, p->row, p->source, p->name, p->overload, 0, &p->what);
		out->what = p->what;
		return err;
	}
	plain = raw_name(s, t, p, hit, buf, sizeof(buf));
	key = (uint64_t)p->row_id << 32;
	if (plain)
		key |= store_writer__string(s->store, plain, strlen(plain));
	if (s->names.used > MAX_NAMES) /* names made anew for ever: they may get a second number */
		map64__free(&s->names);
	known = map64__at(&s->names, key);
	if (!known)
		return -ENOMEM;
	if (*known) {
		out->verdict = (enum name_verdict)((*known & 0xff) - 1);
		out->what = (uint32_t)(*known >> 8);
		return 0;
	}
	err = plain ? decide(s, p, plain, out) : unnamed(s, p, out);
	if (!err)
		*map64__at(&s->names, key) = PACK(out);
	return err;
}
