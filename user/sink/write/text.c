// SPDX-License-Identifier: BSD-2-Clause
#include "sink/write/write.h"

#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

#define FIRST_WIDE 0x1100 /* Hangul; most characters above it take two columns */

static uint32_t code_point(const uint8_t *p, unsigned int len)
{
	uint32_t code = len == 1 ? p[0] : p[0] & (0xffu >> (len + 1));

	for (unsigned int i = 1; i < len; i++)
		code = code << 6 | (p[i] & 0x3f);
	return code;
}

/*
 * Control characters, marks of text direction, and the two characters that XML can not represent.
 */
static bool shown_as_bytes(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x61c ||
	       (code >= 0x200e && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
	       (code >= 0x2066 && code <= 0x2069) || code == 0xfeff || (code & 0xfffe) == 0xfffe;
}

size_t text_char(const char *p, size_t left, struct text_char *out)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *in = (const uint8_t *)p;
	unsigned int len = (unsigned int)utf8_len(p, left);
	uint32_t code = len ? code_point(in, len) : 0;
	char *to = out->text;

	if (len && !shown_as_bytes(code)) {
		memcpy(to, p, len);
		out->bytes = len;
		out->columns = code >= FIRST_WIDE && (code < 0x2000 || code >= 0x2e80) ? 2 : 1;
	} else {
		for (unsigned int i = 0; i < (len ? len : 1); i++) {
			*to++ = '\\';
			*to++ = 'x';
			*to++ = hex[in[i] >> 4];
			*to++ = hex[in[i] & 15];
		}
		out->bytes = out->columns = (unsigned int)(to - out->text);
	}
	out->text[out->bytes] = '\0';
	return len ? len : 1;
}

void text_plain(struct jsonw *w, const char *bytes, size_t len)
{
	struct text_char c;

	for (size_t used; len; bytes += used, len -= used) {
		used = text_char(bytes, len, &c);
		jsonw__raw(w, c.text, c.bytes);
	}
}

static void put_xml(struct jsonw *w, const struct text_char *c)
{
	switch (c->text[0]) {
	case '&':
		jsonw__text(w, "&amp;");
		return;
	case '<':
		jsonw__text(w, "&lt;");
		return;
	case '>': /* must be escaped in ]]> */
		jsonw__text(w, "&gt;");
		return;
	case '"':
		jsonw__text(w, "&quot;");
		return;
	default:
		jsonw__raw(w, c->text, c->bytes);
	}
}

/* Whether the rest of the name fits into this many columns. Stops as soon as that is known. */
static bool fits(const char *name, size_t left, unsigned int columns)
{
	unsigned int taken = 0;
	struct text_char c;

	for (size_t used; left && taken <= columns; name += used, left -= used) {
		used = text_char(name, left, &c);
		taken += c.columns;
	}
	return taken <= columns;
}

void text_xml(struct jsonw *w, const char *name, unsigned int columns)
{
	size_t left = strlen(name), used;
	bool whole = !columns || fits(name, left, columns);
	unsigned int taken = 0;
	struct text_char c;

	for (; left; name += used, left -= used) {
		used = text_char(name, left, &c);
		if (!whole && taken + c.columns > columns - 1)
			break;
		put_xml(w, &c);
		taken += c.columns;
	}
	if (!whole)
		jsonw__text(w, "…");
}

char *text_copy(const char *name)
{
	size_t left = strlen(name), used;
	struct text_char c;
	char *out = malloc(4 * left + 1), *to = out; /* a byte becomes \xNN at most */

	if (!out)
		return NULL;
	for (; left; name += used, left -= used) {
		used = text_char(name, left, &c);
		to = mempcpy(to, c.text, c.bytes);
	}
	*to = '\0';
	return out;
}
