// SPDX-License-Identifier: BSD-2-Clause
#include "sink/pickle/pickle.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"

/* Opcodes: Lib/pickletools.py of CPython. */
#define PROTO "\x80\x02"
#define STOP "."
#define MARK "("
#define EMPTY_DICT "}"
#define SETITEMS "u"
#define EMPTY_LIST "]"
#define APPENDS "e"
#define BININT1 "K"
#define BININT "J"
#define LONG1 "\x8a"
#define BINUNICODE "X"
#define BINPUT "q"
#define BINGET "h"
#define LONG_BINPUT "r"
#define LONG_BINGET "j"

static void with_u32(struct jsonw *w, const char *op, uint32_t v)
{
	v = htole32(v);
	jsonw__text(w, op);
	jsonw__raw(w, (const char *)&v, sizeof(v));
}

void pickle_begin(struct jsonw *w)
{
	jsonw__text(w, PROTO);
}

void pickle_end(struct jsonw *w)
{
	jsonw__text(w, STOP);
}

void pickle_open_dict(struct jsonw *w)
{
	jsonw__text(w, EMPTY_DICT MARK);
}

void pickle_close_dict(struct jsonw *w)
{
	jsonw__text(w, SETITEMS);
}

void pickle_open_list(struct jsonw *w)
{
	jsonw__text(w, EMPTY_LIST MARK);
}

void pickle_close_list(struct jsonw *w)
{
	jsonw__text(w, APPENDS);
}

void pickle_int(struct jsonw *w, uint64_t v)
{
	uint64_t le = htole64(v);
	char bytes = 1;

	if (v <= UINT8_MAX) {
		jsonw__text(w, BININT1);
		jsonw__raw(w, (const char *)&le, 1);
		return;
	}
	if (v <= INT32_MAX) {
		with_u32(w, BININT, (uint32_t)v);
		return;
	}
	/* two's complement, as short as can be: the highest bit is that of the sign */
	while (bytes < (char)sizeof(le) && v >> (bytes * 8 - 1))
		bytes++;
	jsonw__text(w, LONG1);
	jsonw__raw(w, &bytes, 1);
	jsonw__raw(w, (const char *)&le, (size_t)bytes);
}

void pickle_text(struct jsonw *w, const char *text)
{
	char *plain = text_copy(text);
	size_t len;

	if (!plain) {
		if (!w->err)
			w->err = error_set(-ENOMEM, NULL, "no memory for a pickle");
		return;
	}
	len = strlen(plain);
	with_u32(w, BINUNICODE, (uint32_t)len);
	jsonw__raw(w, plain, len);
	free(plain);
}

static void with_number(struct jsonw *w, const char *op, const char *long_op, uint32_t number)
{
	char byte = (char)number;

	if (number > UINT8_MAX) {
		with_u32(w, long_op, number);
		return;
	}
	jsonw__text(w, op);
	jsonw__raw(w, &byte, 1);
}

void pickle_remember(struct jsonw *w, uint32_t number)
{
	with_number(w, BINPUT, LONG_BINPUT, number);
}

void pickle_again(struct jsonw *w, uint32_t number)
{
	with_number(w, BINGET, LONG_BINGET, number);
}
