// SPDX-License-Identifier: BSD-2-Clause
/*
 * Checks that a text is one valid JSON value (RFC 8259). Captures are untrusted, and no reader
 * opens a trace with one invalid value in it. cJSON accepts too much ("01", control characters,
 * invalid UTF-8).
 */
#include "util/json_valid.h"

#include <stdint.h>
#include <string.h>

#include "util/utf8.h"

#define MAX_DEPTH 64

struct parse {
	const char *p; /* position in the NUL-terminated text; nothing reads past the NUL */
	unsigned int depth;
};

static bool value(struct parse *j);

static void space(struct parse *j)
{
	while (*j->p == ' ' || *j->p == '\t' || *j->p == '\n' || *j->p == '\r')
		j->p++;
}

static bool accept(struct parse *j, char c)
{
	if (*j->p != c)
		return false;
	j->p++;
	return true;
}

static bool word(struct parse *j, const char *text)
{
	size_t len = strlen(text);

	if (strncmp(j->p, text, len))
		return false;
	j->p += len;
	return true;
}

static bool some_digits(struct parse *j)
{
	const char *start = j->p;

	while (*j->p >= '0' && *j->p <= '9')
		j->p++;
	return j->p > start;
}

static bool number(struct parse *j)
{
	accept(j, '-');
	if (!accept(j, '0') && !some_digits(j))
		return false;
	if (accept(j, '.') && !some_digits(j))
		return false;
	if (*j->p == 'e' || *j->p == 'E') {
		j->p++;
		if (!accept(j, '+'))
			accept(j, '-');
		return some_digits(j);
	}
	return true;
}

static bool escape_sequence(struct parse *j)
{
	if (accept(j, 'u')) {
		for (int i = 0; i < 4; i++, j->p++)
			if (!*j->p || !strchr("0123456789abcdefABCDEF", *j->p))
				return false;
		return true;
	}
	if (!*j->p || !strchr("\"\\/bfnrt", *j->p))
		return false;
	j->p++;
	return true;
}

static bool string(struct parse *j)
{
	if (!accept(j, '"'))
		return false;
	while (*j->p != '"') {
		size_t len;

		if ((uint8_t)*j->p < 0x20)
			return false;
		if (accept(j, '\\')) {
			if (!escape_sequence(j))
				return false;
			continue;
		}
		len = utf8_len(j->p, strnlen(j->p, 4));
		if (!len)
			return false;
		j->p += len;
	}
	j->p++;
	return true;
}

/* Parses the rest of an array or object, after its opening bracket. */
static bool members(struct parse *j, bool named, char close)
{
	space(j);
	if (accept(j, close))
		return true;
	do {
		space(j);
		if (named) {
			if (!string(j))
				return false;
			space(j);
			if (!accept(j, ':'))
				return false;
		}
		if (!value(j))
			return false;
	} while (accept(j, ','));
	return accept(j, close);
}

static bool value(struct parse *j)
{
	bool ok;

	space(j);
	if (*j->p == '{' || *j->p == '[') {
		bool named = *j->p++ == '{';

		if (++j->depth > MAX_DEPTH)
			return false;
		ok = members(j, named, named ? '}' : ']');
		j->depth--;
	} else if (*j->p == '"') {
		ok = string(j);
	} else if (*j->p == '-' || (*j->p >= '0' && *j->p <= '9')) {
		ok = number(j);
	} else {
		ok = word(j, "true") || word(j, "false") || word(j, "null");
	}
	space(j);
	return ok;
}

bool json_valid(const char *json)
{
	struct parse j = {.p = json};

	return value(&j) && !*j.p;
}
