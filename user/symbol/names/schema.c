// SPDX-License-Identifier: BSD-2-Clause
/*
 * Operator schemas from a library's strings.
 *
 * torchgen names the struct of an operator by the operator's name and overload, joined by '_':
 * add.Tensor becomes at::_ops::add_Tensor. This loses the place of the dot, which is found again in
 * the schema's text. The library registers that text at its start ("add.Tensor(Tensor self, …) ->
 * Tensor"; with "aten::" in front where a kernel or a pass looks the schema up). Compilers may
 * build short texts from immediate operands, so that these are not in the file; but the bare name
 * always is ("aten::softmax"), because the operator's own code looks itself up by it.
 */
#include "symbol/names/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "symbol/elf/elf.h"
#include "util/error.h"

#define NAMESPACE "aten::"
#define NAMESPACE_LEN (sizeof(NAMESPACE) - 1)
#define MAX_NAME 256
#define MAX_SCHEMA 8192
#define MAX_WORDS 262144 /* of each kind: a library has some thousands */

struct schema {
	char *struct_name; /* the key: "add_Tensor" */
	char *name;        /* "aten::add" */
	char *overload;    /* "Tensor" */
	char *text;        /* as in the library */
	bool plain;        /* the text has no namespace, which means it is the registered one */
	UT_hash_handle hh;
	char strings[];
};

/* A name without an overload, or an overload without a name. */
struct word {
	UT_hash_handle hh;
	char text[];
};

struct schemas {
	struct schema *by_struct;
	struct word *names;     /* "aten::softmax" */
	struct word *overloads; /* "Tensor" */
};

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == ':';
}

static bool is_identifier(const char *s, size_t len)
{
	if (!len || (*s >= '0' && *s <= '9'))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '.' || !is_name_char(s[i]) || s[i] == ':')
			return false;
	}
	return true;
}

/*
 * The ')' that closes the '(' at s; NULL: none before end. Default values may contain quoted
 * parentheses.
 */
static const char *closing(const char *s, const char *end)
{
	char quote = 0;
	int depth = 0;

	for (; s < end; s++) {
		if (quote) {
			if (*s == quote)
				quote = 0;
		} else if (*s == '"' || *s == '\'') {
			quote = *s;
		} else if (*s == '(') {
			depth++;
		} else if (*s == ')' && --depth == 0) {
			return s;
		}
	}
	return NULL;
}

/* The parts of a schema's text, as pointers into it. */
struct parts {
	const char *text;
	size_t text_len;
	const char *base, *overload; /* without the namespace */
	size_t base_len, overload_len;
	bool plain;
};

/*
 * Splits a NUL-terminated string whose '(' is at `open`. False: it is not of the form
 * [aten::]NAME[.OVERLOAD](…) -> …
 */
static bool split_schema(const char *text, const char *open, const char *end, struct parts *p)
{
	const char *close, *dot, *name = text;

	p->plain = open - text < (ptrdiff_t)NAMESPACE_LEN ||
		   memcmp(text, NAMESPACE, NAMESPACE_LEN) != 0;
	if (!p->plain)
		name += NAMESPACE_LEN;
	dot = memchr(name, '.', (size_t)(open - name));
	p->text = text;
	p->text_len = (size_t)(end - text);
	p->base = name;
	p->base_len = (size_t)((dot ? dot : open) - name);
	p->overload = dot ? dot + 1 : open;
	p->overload_len = (size_t)(open - p->overload);
	if (!is_identifier(p->base, p->base_len) ||
	    (dot && !is_identifier(p->overload, p->overload_len)))
		return false;
	close = closing(open, end);
	return close && end - close > 5 && !memcmp(close + 1, " -> ", 4);
}

static char *put(char **at, const char *a, size_t a_len, const char *b, size_t b_len)
{
	char *start = *at;

	memcpy(start, a, a_len);
	memcpy(start + a_len, b, b_len);
	start[a_len + b_len] = '\0';
	*at = start + a_len + b_len + 1;
	return start;
}

static struct schema *new_schema(const struct parts *p)
{
	size_t key_len = p->base_len + (p->overload_len ? 1 + p->overload_len : 0);
	struct schema *s;
	char *at;

	s = malloc(sizeof(*s) + key_len + 1 + NAMESPACE_LEN + p->base_len + 1 + p->overload_len +
		   1 + p->text_len + 1);
	if (!s)
		return NULL;
	at = s->strings;
	/* The text contains "NAME.OVERLOAD" already; only the dot has to be changed. */
	s->struct_name = put(&at, p->base, key_len, "", 0);
	if (p->overload_len)
		s->struct_name[p->base_len] = '_';
	s->name = put(&at, NAMESPACE, NAMESPACE_LEN, p->base, p->base_len);
	s->overload = put(&at, p->overload, p->overload_len, "", 0);
	s->text = put(&at, p->text, p->text_len, "", 0);
	s->plain = p->plain;
	return s;
}

/* Adds a word if the set does not have it yet. -ENOMEM. */
static int add_word(struct word **set, const char *text, size_t len)
{
	struct word *w;

	HASH_FIND(hh, *set, text, len, w);
	if (w || HASH_COUNT(*set) >= MAX_WORDS)
		return 0;
	w = malloc(sizeof(*w) + len + 1);
	if (!w)
		return -ENOMEM;
	memcpy(w->text, text, len);
	w->text[len] = '\0';
	HASH_ADD(hh, *set, text, len, w);
	if (!w->hh.tbl) {
		free(w);
		return -ENOMEM;
	}
	return 0;
}

/*
 * Adds a schema. Of several for one struct, the registered text (without a namespace) is kept, else
 * the first one.
 */
static int add_schema(struct schemas *s, const struct parts *p)
{
	struct schema *new, *old;

	if (p->base_len + p->overload_len > MAX_NAME || HASH_COUNT(s->by_struct) >= MAX_WORDS)
		return 0;
	new = new_schema(p);
	if (!new)
		return -ENOMEM;
	HASH_FIND_STR(s->by_struct, new->struct_name, old);
	if (old && (old->plain || !new->plain)) {
		free(new);
		return 0;
	}
	if (old) {
		HASH_DEL(s->by_struct, old);
		free(old);
	}
	HASH_ADD_KEYPTR(hh, s->by_struct, new->struct_name, strlen(new->struct_name), new);
	if (!new->hh.tbl) {
		free(new);
		return -ENOMEM;
	}
	return new->overload[0] ? add_word(&s->overloads, new->overload, strlen(new->overload)) : 0;
}

/* Finds every string that looks like a schema: a name from the string's beginning to a '('. */
static int scan_schemas(struct schemas *s, const char *data, size_t bytes)
{
	const char *end = data + bytes, *open = data;

	while ((open = memchr(open, '(', (size_t)(end - open)))) {
		const char *start = open, *stop;
		struct parts parts;

		while (start > data && open - start <= MAX_NAME && is_name_char(start[-1]))
			start--;
		if (start < open && (start == data || !start[-1])) {
			size_t max = (size_t)(end - start) < MAX_SCHEMA ? (size_t)(end - start)
									: MAX_SCHEMA;

			stop = memchr(start, '\0', max);
			if (stop && split_schema(start, open, stop, &parts)) {
				int err = add_schema(s, &parts);

				if (err)
					return err;
				open = stop;
				continue;
			}
		}
		open++;
	}
	return 0;
}

/* Finds every string that consists of an operator's name only. */
static int scan_names(struct schemas *s, const char *data, size_t bytes)
{
	const char *end = data + bytes, *at = data;

	while ((at = memmem(at, (size_t)(end - at), NAMESPACE, NAMESPACE_LEN))) {
		const char *stop = at + NAMESPACE_LEN;

		while (stop < end && is_name_char(*stop))
			stop++;
		if (stop < end && !*stop && stop - at <= MAX_NAME &&
		    is_identifier(at + NAMESPACE_LEN, (size_t)(stop - at) - NAMESPACE_LEN)) {
			int err = add_word(&s->names, at, (size_t)(stop - at));

			if (err)
				return err;
		}
		at = stop;
	}
	return 0;
}

int schemas__load(const struct elffile *e, struct schemas **out)
{
	struct schemas *s = calloc(1, sizeof(*s));
	const uint8_t *data;
	size_t bytes;
	int err = 0;

	*out = NULL;
	if (!s)
		return error_set(-ENOMEM, NULL, "out of memory");
	data = elffile__section(e, ".rodata", &bytes);
	if (data)
		err = scan_schemas(s, (const char *)data, bytes);
	if (data && !err)
		err = scan_names(s, (const char *)data, bytes);
	if (err) {
		schemas__free(s);
		return error_set(err, NULL, "out of memory");
	}
	*out = s;
	return 0;
}

static const char *find_word(const struct word *set, const char *text, size_t len)
{
	const struct word *w;

	HASH_FIND(hh, set, text, len, w);
	return w ? w->text : NULL;
}

/*
 * Finds an operator without a schema: the longest known name that is followed by an underscore and
 * a known overload, or the whole as a name.
 */
static int find_by_name(const struct schemas *s, const char *struct_name, const char **name,
			const char **overload)
{
	size_t len = strlen(struct_name);
	char full[NAMESPACE_LEN + MAX_NAME + 1] = NAMESPACE;

	if (len > MAX_NAME)
		return -ENOENT;
	memcpy(full + NAMESPACE_LEN, struct_name, len + 1);
	*overload = "";
	*name = find_word(s->names, full, NAMESPACE_LEN + len);
	for (size_t i = len; !*name && i-- > 1;) {
		if (struct_name[i] != '_')
			continue;
		*overload = find_word(s->overloads, struct_name + i + 1, len - i - 1);
		if (*overload)
			*name = find_word(s->names, full, NAMESPACE_LEN + i);
	}
	return *name ? 0 : -ENOENT;
}

int schemas__find(const struct schemas *s, const char *struct_name, const char **name,
		  const char **overload, const char **schema)
{
	const struct schema *found;

	HASH_FIND_STR(s->by_struct, struct_name, found);
	if (!found) {
		*schema = "";
		return find_by_name(s, struct_name, name, overload);
	}
	*name = found->name;
	*overload = found->overload;
	*schema = found->text;
	return 0;
}

static void free_words(struct word **set)
{
	struct word *w, *next;

	HASH_ITER (hh, *set, w, next) {
		HASH_DEL(*set, w);
		free(w);
	}
}

void schemas__free(struct schemas *s)
{
	struct schema *schema, *next;

	if (!s)
		return;
	HASH_ITER (hh, s->by_struct, schema, next) {
		HASH_DEL(s->by_struct, schema);
		free(schema);
	}
	free_words(&s->names);
	free_words(&s->overloads);
	free(s);
}

int schema_struct_name(const char *mangled, char *buf, size_t bytes)
{
	static const char prefix[] = "_ZN2at4_ops";
	char *name;
	unsigned long len;

	if (strncmp(mangled, prefix, sizeof(prefix) - 1))
		return -ENOENT;
	mangled += sizeof(prefix) - 1;
	if (*mangled < '1' || *mangled > '9')
		return -ENOENT;
	len = strtoul(mangled, &name, 10);
	/* The name of a member must follow, beginning with its length. */
	if (len > strlen(name) || name[len] < '1' || name[len] > '9')
		return -ENOENT;
	if (len >= bytes)
		return -ENAMETOOLONG;
	memcpy(buf, name, len);
	buf[len] = '\0';
	return 0;
}
