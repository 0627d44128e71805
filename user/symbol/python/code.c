// SPDX-License-Identifier: BSD-2-Clause
/*
 * Reads code objects from the target's memory. The target keeps running, and so nothing that is
 * read is trusted. The formats are described in CPython: Objects/lnotab_notes.txt (up to 3.10),
 * Objects/locations.md or InternalDocs/code_objects.md (from 3.11); strings: PEP 393.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/python/priv.h"

#define MAX_NAME_CHARS 1024
#define MAX_FILE_CHARS 4096
#define MAX_LINES_BYTES (1u << 20)
#define UTF8_BYTES 4 /* most bytes of one character */

#define OB_TYPE 8 /* PyObject.ob_type; a build without a GIL has it at 24 */
#define OB_TYPE_FREE_THREADED 24
#define OB_SIZE 16 /* PyVarObject */
#define OB_SIZE_FREE_THREADED 32

static int read_memory(const struct python_memory *m, void *to, size_t bytes, uint64_t address)
{
	return m->read(m->ctx, to, bytes, address) ? -EFAULT : 0;
}

/* ---- strings ---- */

static char *put_char(char *to, uint32_t c)
{
	/*
	 * Replaces surrogates (from names that were not UTF-8), numbers above Unicode's range, and
	 * NUL, which would end the string.
	 */
	if (!c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff)
		c = 0xfffd;
	if (c < 0x80) {
		*to++ = (char)c;
	} else if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
		*to++ = (char)(0x80 | (c & 0x3f));
	} else if (c < 0x10000) {
		*to++ = (char)(0xe0 | c >> 12);
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	} else {
		*to++ = (char)(0xf0 | c >> 18);
		*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
		*to++ = (char)(0x80 | (c & 0x3f));
	}
	return to;
}

int python_str__read(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		     size_t max_chars, char **out)
{
	uint64_t length = 0;
	uint32_t state = 0, kind;
	uint8_t *raw = NULL;
	char *to;
	int err;

	err = read_memory(m, &length, 8, address + p->str_length);
	if (!err)
		err = read_memory(m, &state, 4, address + p->str_state);
	if (err)
		return err;
	/* bytes per character; the next two bits are: compact, ascii */
	kind = state >> p->str_kind & 7;
	if (!(state >> (p->str_kind + 3) & 1) || (kind != 1 && kind != 2 && kind != 4) ||
	    length > INT64_MAX)
		return -ESTALE;
	if (length > max_chars)
		length = max_chars;
	raw = malloc((size_t)length * kind + 1);
	*out = malloc((size_t)length * UTF8_BYTES + 1);
	err = raw && *out ? 0 : -ENOMEM;
	if (!err && length)
		err = read_memory(
			m, raw, (size_t)length * kind,
			address + (state >> (p->str_kind + 4) & 1 ? p->str_ascii : p->str_compact));
	to = *out;
	for (size_t i = 0; !err && i < length; i++) {
		uint32_t c = 0;

		memcpy(&c, raw + i * kind, kind);
		to = put_char(to, c);
	}
	free(raw);
	if (err) {
		free(*out);
		*out = NULL;
	} else {
		*to = '\0';
	}
	return err;
}

/* Reads the bytes object with a code object's line table. */
static int read_lines(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		      uint8_t **out, size_t *nr)
{
	uint64_t length = 0;
	int err = read_memory(m, &length, 8, address + p->bytes_length);

	if (err)
		return err;
	if (length > MAX_LINES_BYTES)
		return -ESTALE;
	*out = malloc((size_t)length + 1);
	if (!*out)
		return -ENOMEM;
	if (length && read_memory(m, *out, (size_t)length, address + p->bytes_value)) {
		free(*out);
		*out = NULL;
		return -EFAULT;
	}
	*nr = (size_t)length;
	return 0;
}

/* ---- code objects ---- */

/*
 * Whether the code object is one of the interpreter's trampolines between frames (_Py_InitCleanup):
 * those have no instruction of a real function.
 */
static bool is_internal(const struct kprof_python *p, const struct python_memory *m,
			uint64_t address)
{
	bool free_threaded = p->flags & KPROF_PYTHON_FREE_THREADED;
	uint64_t instrs = 0;
	int32_t first = 0;

	if (p->code_traceable == KPROF_PYTHON_NONE ||
	    read_memory(m, &instrs, 8,
			address + (free_threaded ? OB_SIZE_FREE_THREADED : OB_SIZE)) ||
	    read_memory(m, &first, 4, address + p->code_traceable))
		return false;
	return first > 0 && (uint64_t)first >= instrs;
}

static int read_field(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		      uint32_t field, size_t max_chars, char **out)
{
	uint64_t object = 0;
	int err = read_memory(m, &object, 8, address + field);

	/* The interpreter's own static code objects have NULL here. */
	if (!err && !object) {
		*out = strdup("");
		return *out ? 0 : -ENOMEM;
	}
	return err ? err : python_str__read(p, m, object, max_chars, out);
}

int python_code__read(const struct kprof_python *p, const struct python_memory *m, uint64_t address,
		      struct python_code **out)
{
	bool free_threaded = p->flags & KPROF_PYTHON_FREE_THREADED;
	struct python_code *c = calloc(1, sizeof(*c));
	uint64_t type = 0, table = 0;
	int err;

	if (!c)
		return -ENOMEM;
	err = read_memory(m, &type, 8, address + (free_threaded ? OB_TYPE_FREE_THREADED : OB_TYPE));
	if (!err && type != p->code_type)
		err = -ESTALE;
	if (!err)
		err = read_memory(m, &c->firstline, 4, address + p->code_firstlineno);
	if (!err)
		err = read_field(p, m, address,
				 p->code_qualname == KPROF_PYTHON_NONE ? p->code_name
								       : p->code_qualname,
				 MAX_NAME_CHARS, &c->function);
	if (!err)
		err = read_field(p, m, address, p->code_filename, MAX_FILE_CHARS, &c->file);
	if (!err)
		err = read_memory(m, &table, 8, address + p->code_lines);
	if (!err && table)
		err = read_lines(p, m, table, &c->lines, &c->nr_lines);
	c->internal = !err && is_internal(p, m, address);
	c->minor = python_minor(p->version);
	if (err)
		python_code__free(c);
	else
		*out = c;
	return err;
}

void python_code__free(struct python_code *c)
{
	if (!c)
		return;
	free(c->function);
	free(c->file);
	free(c->lines);
	free(c->loops);
	free(c);
}

/* ---- lines ---- */

/* Up to 3.9: pairs of increments of the instruction's offset and of the line. */
static uint32_t line_of_lnotab(const struct python_code *c, uint32_t instr)
{
	uint32_t line = c->firstline;
	uint64_t at = 0;

	for (size_t i = 0; i + 2 <= c->nr_lines; i += 2) {
		at += c->lines[i];
		if (at > instr)
			break;
		line += (uint32_t)(int8_t)c->lines[i + 1];
	}
	return line;
}

/*
 * 3.10: pairs of the size of a range in bytes, and the increment of its line; -128: the range has
 * no line.
 */
static uint32_t line_of_ranges(const struct python_code *c, uint32_t instr)
{
	uint32_t line = c->firstline;
	uint64_t end = 0;

	for (size_t i = 0; i + 2 <= c->nr_lines; i += 2) {
		int8_t delta = (int8_t)c->lines[i + 1];

		end += c->lines[i];
		if (delta != -128)
			line += (uint32_t)delta;
		if (instr < end)
			return delta == -128 ? 0 : line;
	}
	return 0;
}

/* Reads a number with six bits per byte, lowest first; bit 6 is set if more bytes follow. */
static uint32_t read_varint(const struct python_code *c, size_t *at)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; *at < c->nr_lines; shift += 6) {
		uint8_t byte = c->lines[(*at)++];

		if (shift < 32)
			value |= (uint32_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
	}
	return value;
}

static uint32_t read_svarint(const struct python_code *c, size_t *at)
{
	uint32_t value = read_varint(c, at);

	return value & 1 ? 0u - (value >> 1) : value >> 1;
}

/*
 * From 3.11: entries of several bytes. The first byte of an entry has bit 7 set, and contains the
 * entry's form and the number of code units that it covers.
 */
static uint32_t line_of_locations(const struct python_code *c, uint32_t instr)
{
	enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NONE = 15 };
	uint32_t line = c->firstline;
	uint64_t end = 0;
	size_t at = 0;

	while (at < c->nr_lines) {
		uint8_t head = c->lines[at++];
		unsigned int form = head >> 3 & 15;

		end += ((uint64_t)(head & 7) + 1) * 2;
		if (form >= ONE_LINE && form < NO_COLUMNS)
			line += form - ONE_LINE;
		else if (form == NO_COLUMNS || form == LONG)
			line += read_svarint(c, &at);
		if (instr < end)
			return form == NONE ? 0 : line;
		/* Skips the columns. */
		while (at < c->nr_lines && !(c->lines[at] & 0x80))
			at++;
	}
	return 0;
}

uint32_t python_code__line(const struct python_code *c, int32_t instr)
{
	uint32_t line;

	if (instr < 0)
		line = c->firstline;
	else if (c->minor <= 9)
		line = line_of_lnotab(c, (uint32_t)instr);
	else if (c->minor == 10)
		line = line_of_ranges(c, (uint32_t)instr);
	else
		line = line_of_locations(c, (uint32_t)instr);
	return line <= INT32_MAX ? line : 0; /* more: the table is damaged */
}
