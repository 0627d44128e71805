// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/print/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t decode(const char *text, uint32_t *code)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *t = (const unsigned char *)text;
	size_t bytes = t[0] < 0x80 ? 1 : t[0] < 0xe0 ? 2 : t[0] < 0xf0 ? 3 : 4;

	*code = t[0];
	if (bytes == 1)
		return t[0] != 0;
	if (t[0] < 0xc2 || t[0] > 0xf4)
		return 0;
	*code = t[0] & (0x7fu >> bytes);
	for (size_t i = 1; i < bytes; i++) {
		if ((t[i] & 0xc0) != 0x80) /* counts the final NUL too */
			return 0;
		*code = *code << 6 | (t[i] & 0x3f);
	}
	if (*code < least[bytes] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return bytes;
}

size_t text_utf8(const char *text)
{
	uint32_t code;

	return decode(text, &code);
}

/* Characters that change the direction of what follows: a name could look like another. */
static bool changes_direction(uint32_t code)
{
	return code == 0x61c || code == 0x200e || code == 0x200f ||
	       (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

/*
 * Length of the character at text, in bytes, if it may go to a terminal: no control character (C0,
 * DEL, C1), and none that changes the direction. Else 0.
 */
static size_t harmless(const char *text)
{
	uint32_t code;
	size_t bytes = decode(text, &code);

	return code < 0x20 || (code >= 0x7f && code < 0xa0) || changes_direction(code) ? 0 : bytes;
}

/*
 * Converts the character at text to what may go to a terminal, in out; returns its length in text.
 */
static size_t printable(char out[5], const char *text)
{
	size_t bytes = harmless(text);

	if (!bytes) {
		sprintf(out, "\\x%02x", (unsigned char)*text);
		return 1;
	}
	memcpy(out, text, bytes);
	out[bytes] = '\0';
	return bytes;
}

void text_defuse(char *text)
{
	while (*text) {
		size_t bytes = harmless(text);

		if (!bytes)
			*text = '?';
		text += bytes ? bytes : 1;
	}
}

void text_print(FILE *to, const char *text)
{
	char character[5];

	while (*text) {
		text += printable(character, text);
		fputs(character, to);
	}
}

char *text_printable(const char *text)
{
	char *out = malloc(strlen(text) * 4 + 1), *at = out;

	if (!out)
		return NULL;
	*at = '\0';
	while (*text) {
		text += printable(at, text);
		at += strlen(at);
	}
	return out;
}

const char *text_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

uint64_t text_hash(const char *text)
{
	uint64_t hash = 14695981039346656037u; /* FNV-1a */

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return hash;
}

size_t text_columns(const char *text)
{
	size_t columns = 0;

	for (; *text; text++)
		columns += ((unsigned char)*text & 0xc0) != 0x80;
	return columns;
}

const char *text_time(char buf[TEXT_NUMBER_BYTES], uint64_t ns)
{
	if (ns < 1000)
		snprintf(buf, TEXT_NUMBER_BYTES, "%" PRIu64 "ns", ns);
	else if (ns < 1000000)
		snprintf(buf, TEXT_NUMBER_BYTES, "%.3fus", (double)ns / 1e3);
	else if (ns < 1000000000)
		snprintf(buf, TEXT_NUMBER_BYTES, "%.3fms", (double)ns / 1e6);
	else
		snprintf(buf, TEXT_NUMBER_BYTES, "%.3fs", (double)ns / 1e9);
	return buf;
}

const char *text_bytes(char buf[TEXT_NUMBER_BYTES], uint64_t bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, TEXT_NUMBER_BYTES, "%.*f %s", unit ? 1 : 0, value, units[unit]);
	return buf;
}
