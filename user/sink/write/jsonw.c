// SPDX-License-Identifier: BSD-2-Clause
#include "sink/write/write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/json_valid.h"
#include "util/utf8.h"

#define ESCAPED_BYTES 6 /* the most bytes that one input byte can become: \u001f */

static const char hex[] = "0123456789abcdef";

static const char pairs[] = "0001020304050607080910111213141516171819"
			    "2021222324252627282930313233343536373839"
			    "4041424344454647484950515253545556575859"
			    "6061626364656667686970717273747576777879"
			    "8081828384858687888990919293949596979899";

int jsonw__init(struct jsonw *w, int (*write)(void *ctx, const void *data, size_t bytes), void *ctx)
{
	memset(w, 0, sizeof(*w));
	w->buf = malloc(JSONW_BUFFER_BYTES);
	if (!w->buf)
		return -ENOMEM;
	w->pos = w->buf;
	w->end = w->buf + JSONW_BUFFER_BYTES;
	w->write = write;
	w->ctx = ctx;
	return 0;
}

int jsonw__flush(struct jsonw *w)
{
	if (!w->err && w->pos > w->buf)
		w->err = w->write(w->ctx, w->buf, (size_t)(w->pos - w->buf));
	w->pos = w->buf;
	return w->err;
}

void jsonw__fini(struct jsonw *w)
{
	free(w->buf);
	memset(w, 0, sizeof(*w));
}

void jsonw__raw(struct jsonw *w, const char *data, size_t bytes)
{
	while (bytes) {
		size_t part = bytes < JSONW_BUFFER_BYTES ? bytes : JSONW_BUFFER_BYTES;

		memcpy(jsonw__reserve(w, part), data, part);
		w->pos += part;
		data += part;
		bytes -= part;
	}
}

void jsonw__text(struct jsonw *w, const char *text)
{
	jsonw__raw(w, text, strlen(text));
}

static unsigned int digits(uint64_t v)
{
	static const uint64_t power[] = {
		0,
		10ull,
		100ull,
		1000ull,
		10000ull,
		100000ull,
		1000000ull,
		10000000ull,
		100000000ull,
		1000000000ull,
		10000000000ull,
		100000000000ull,
		1000000000000ull,
		10000000000000ull,
		100000000000000ull,
		1000000000000000ull,
		10000000000000000ull,
		100000000000000000ull,
		1000000000000000000ull,
		10000000000000000000ull,
	};
	/*
	 * log10 is estimated from log2: 1233 / 4096 is just above log10(2); the table corrects it.
	 */
	unsigned int log10 = (64 - (unsigned int)__builtin_clzll(v | 1)) * 1233 >> 12;

	return log10 + (v >= power[log10]);
}

char *jsonw_put_u64(char *p, uint64_t v)
{
	char *end = p + (v ? digits(v) : 1);
	char *at = end;

	while (v >= 100) {
		at -= 2;
		memcpy(at, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	if (v >= 10)
		memcpy(at - 2, pairs + v * 2, 2);
	else
		at[-1] = (char)('0' + v);
	return end;
}

/* Eleven days: below it, doubles of microseconds are less than 0.2 ns wrong. */
#define DOUBLE_NS 1000000000000000ull

/*
 * Whether a reader that takes microseconds as a double and cuts their thousandfold, as Perfetto's
 * does, gets a nanosecond less than the three decimals say. It then takes slices that end together,
 * or that follow each other, for overlapping ones, and drops the second. True for one in a hundred.
 */
static bool cut_too_far(uint64_t abs_ns)
{
	return abs_ns < DOUBLE_NS &&
	       (int64_t)((double)(int64_t)abs_ns / 1000.0 * 1000.0) < (int64_t)abs_ns;
}

char *jsonw_put_us(char *p, int64_t ns)
{
	uint64_t abs_ns = (uint64_t)ns;
	unsigned int rest;

	if (ns < 0) {
		*p++ = '-';
		abs_ns = -abs_ns;
	}
	p = jsonw_put_u64(p, abs_ns / 1000);
	rest = (unsigned int)(abs_ns % 1000);
	*p++ = '.';
	*p++ = (char)('0' + rest / 100);
	memcpy(p, pairs + rest % 100 * 2, 2);
	p += 2;
	if (cut_too_far(abs_ns))
		*p++ = '2';
	return p;
}

void jsonw__u64(struct jsonw *w, uint64_t v)
{
	w->pos = jsonw_put_u64(jsonw__reserve(w, JSONW_INT_BYTES), v);
}

void jsonw__i64(struct jsonw *w, int64_t v)
{
	char *p = jsonw__reserve(w, JSONW_INT_BYTES);

	if (v < 0)
		*p++ = '-';
	w->pos = jsonw_put_u64(p, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void jsonw__us(struct jsonw *w, int64_t ns)
{
	w->pos = jsonw_put_us(jsonw__reserve(w, JSONW_US_BYTES), ns);
}

void jsonw__text_u64(struct jsonw *w, const char *text, uint64_t v)
{
	jsonw__text(w, text);
	jsonw__u64(w, v);
}

void jsonw__text_i64(struct jsonw *w, const char *text, int64_t v)
{
	jsonw__text(w, text);
	jsonw__i64(w, v);
}

void jsonw__text_us(struct jsonw *w, const char *text, int64_t ns)
{
	jsonw__text(w, text);
	jsonw__us(w, ns);
}

void jsonw__text_string(struct jsonw *w, const char *text, const char *value)
{
	jsonw__text(w, text);
	jsonw__string(w, value);
}

/*
 * Writes the character at p, escaped, to out (which has room for ESCAPED_BYTES). *used: bytes read.
 */
static char *escape(char *out, const char *p, size_t left, size_t *used)
{
	size_t len = utf8_len(p, left);
	uint8_t byte = (uint8_t)*p;

	*used = len ? len : 1;
	if (!len || byte < 0x20 || byte == 0x7f) {
		out = mempcpy(out, len ? "\\u00" : "\\\\x", len ? 4 : 3);
		*out++ = hex[byte >> 4];
		*out++ = hex[byte & 15];
		return out;
	}
	if (byte == '"' || byte == '\\')
		*out++ = '\\';
	return mempcpy(out, p, len);
}

void jsonw__string(struct jsonw *w, const char *text)
{
	const char *p = text ? text : "";
	size_t left = strlen(p), used;

	jsonw__raw(w, "\"", 1);
	for (; left; p += used, left -= used)
		w->pos = escape(jsonw__reserve(w, ESCAPED_BYTES), p, left, &used);
	jsonw__raw(w, "\"", 1);
}

char *jsonw_quote(const char *p, size_t len, size_t *out_len)
{
	char *out, *at, *shrunk;
	size_t used;

	if (len > (SIZE_MAX - 3) / ESCAPED_BYTES)
		return NULL;
	out = malloc(len * ESCAPED_BYTES + 3);
	if (!out)
		return NULL;
	at = out;
	*at++ = '"';
	for (; len; p += used, len -= used)
		at = escape(at, p, len, &used);
	*at++ = '"';
	*at = '\0';
	*out_len = (size_t)(at - out);
	shrunk = realloc(out, *out_len + 1);
	return shrunk ? shrunk : out;
}

void jsonw__json(struct jsonw *w, const char *json)
{
	if (json_valid(json))
		jsonw__text(w, json);
	else
		jsonw__string(w, json);
}
