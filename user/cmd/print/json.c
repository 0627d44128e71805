// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/print/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>

#include "cmd/print/text.h"

/* Of a valid character: C0, DEL, C1, which a terminal may obey. */
static bool is_control(const char *text)
{
	const unsigned char *t = (const unsigned char *)text;

	return t[0] < 0x20 || t[0] == 0x7f || (t[0] == 0xc2 && t[1] < 0xa0);
}

static void quote(FILE *to, const char *text)
{
	putc('"', to);
	while (*text) {
		size_t bytes = text_utf8(text);

		if (!bytes)
			fputs("\\ufffd", to);
		else if (*text == '"' || *text == '\\')
			fprintf(to, "\\%c", *text);
		else if (is_control(text)) /* U+0080 is C2 80 */
			fprintf(to, "\\u%04x", (unsigned char)text[bytes - 1]);
		else
			fwrite(text, 1, bytes, to);
		text += bytes ? bytes : 1;
	}
	putc('"', to);
}

/* Writes what precedes a value: comma, new line, key. */
static void begin_value(struct json *j, const char *key)
{
	if (j->depth && j->one_line) {
		fputs(j->first ? "" : ", ", j->to);
	} else if (j->depth) {
		fputs(j->first ? "\n" : ",\n", j->to);
		fprintf(j->to, "%*s", j->depth * 2, "");
	}
	j->first = false;
	if (key) {
		quote(j->to, key);
		fputs(": ", j->to);
	}
}

void json_open(struct json *j, const char *key, char bracket)
{
	begin_value(j, key);
	putc(bracket, j->to);
	j->depth++;
	j->first = true;
}

void json_close(struct json *j, char bracket)
{
	j->depth--;
	if (!j->first && !j->one_line)
		fprintf(j->to, "\n%*s", j->depth * 2, "");
	putc(bracket, j->to);
	j->first = false;
	if (!j->depth)
		putc('\n', j->to);
}

void json_string(struct json *j, const char *key, const char *value)
{
	begin_value(j, key);
	quote(j->to, value);
}

void json_uint(struct json *j, const char *key, uint64_t value)
{
	begin_value(j, key);
	fprintf(j->to, "%" PRIu64, value);
}

void json_int(struct json *j, const char *key, int64_t value)
{
	begin_value(j, key);
	fprintf(j->to, "%" PRId64, value);
}

void json_double(struct json *j, const char *key, double value)
{
	begin_value(j, key);
	fprintf(j->to, "%.6f", isfinite(value) ? value : 0.0);
}

void json_bool(struct json *j, const char *key, bool value)
{
	begin_value(j, key);
	fputs(value ? "true" : "false", j->to);
}

void json_null(struct json *j, const char *key)
{
	begin_value(j, key);
	fputs("null", j->to);
}
