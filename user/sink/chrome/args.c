// SPDX-License-Identifier: BSD-2-Clause
/* Writes the args of an event that not every event of its kind has. */
#include "sink/chrome/impl.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

void args_raw(struct args *a, const char *text, size_t len)
{
	jsonw__raw(a->w, text + !a->any, len - !a->any);
	a->any = true;
}

void args_u64(struct args *a, const char *key, uint64_t v)
{
	args_raw(a, key, strlen(key));
	jsonw__u64(a->w, v);
}

void args_string(struct args *a, const char *key, const char *v)
{
	args_raw(a, key, strlen(key));
	jsonw__string(a->w, v);
}

void args_computed(struct chrome *c, struct args *a, const struct trace_arg *list, uint32_t nr)
{
	char text[64];

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t v = list[i].value;
		int len = snprintf(text, sizeof(text), ",\"%s\":", list[i].key);

		args_raw(a, text, (size_t)len);
		if (list[i].type == TRACE_I64) {
			jsonw__i64(a->w, (int64_t)v);
		} else if (list[i].type == TRACE_TIME && v) {
			jsonw__us(a->w, chrome_time(c, v));
		} else if (list[i].type == TRACE_MILLIONTHS) {
			jsonw__u64(a->w, v / 1000000);
			snprintf(text, sizeof(text), ".%06u", (unsigned int)(v % 1000000));
			jsonw__raw(a->w, text, 7);
		} else if (list[i].type == TRACE_JSON) {
			jsonw__text(a->w, (const char *)(uintptr_t)v);
		} else {
			jsonw__u64(a->w, v);
		}
	}
}

/* The text `,"key":` of a string that is a key. */
static int key_of(struct chrome *c, uint32_t string, const char *key, struct fragment **out)
{
	int err = fragment_at(&c->keys, string, out);
	size_t len;
	char *quoted;

	if (err || (*out)->text)
		return err;
	quoted = jsonw_quote(key, strlen(key), &len);
	if (quoted)
		(*out)->text = xasprintf(",%s:", quoted);
	free(quoted);
	if (!(*out)->text)
		return error_set(-ENOMEM, NULL, "no memory for the trace's names");
	(*out)->head = strlen((*out)->text);
	return 0;
}

static void put_double(struct jsonw *w, uint64_t bits)
{
	char text[40];
	double v;

	memcpy(&v, &bits, sizeof(v));
	if (!isfinite(v)) {
		jsonw__text(w, "null");
		return;
	}
	/* all digits of a whole number: counts of the hardware's have more than nine */
	snprintf(text, sizeof(text), v == trunc(v) && fabs(v) < 1e15 ? "%.0f" : "%.9g", v);
	jsonw__text(w, text);
}

static void put_dim3(struct jsonw *w, uint64_t v)
{
	jsonw__text_u64(w, "[", v & UINT32_MAX);
	jsonw__text_u64(w, ",", v >> 32 & UINT16_MAX);
	jsonw__text_u64(w, ",", v >> 48);
	jsonw__text(w, "]");
}

static int put_value(struct chrome *c, const struct store_attr *attr)
{
	struct jsonw *w = &c->w;
	char hex[24];

	switch (attr->type) {
	case STORE_ATTR_U64:
	case STORE_ATTR_COUNT:
		jsonw__u64(w, attr->value);
		break;
	case STORE_ATTR_I64:
		jsonw__i64(w, (int64_t)attr->value);
		break;
	case STORE_ATTR_HEX:
		snprintf(hex, sizeof(hex), "\"0x%llx\"", (unsigned long long)attr->value);
		jsonw__text(w, hex);
		break;
	case STORE_ATTR_STRING:
		jsonw__string(w, timeline__string(c->t, (uint32_t)attr->value));
		break;
	case STORE_ATTR_DOUBLE:
		put_double(w, attr->value);
		break;
	case STORE_ATTR_DIM3:
		put_dim3(w, attr->value);
		break;
	case STORE_ATTR_JSON:
		jsonw__json(w, timeline__string(c->t, (uint32_t)attr->value));
		break;
	case STORE_ATTR_STACK:
		return chrome_call_stack(c, (uint32_t)attr->value);
	default: /* a type of a later minor version of the format */
		jsonw__text(w, "null");
	}
	return 0;
}

int args_attrs(struct chrome *c, struct args *a, const struct store_attr *attrs, uint32_t nr,
	       enum trace_place place)
{
	struct fragment *text;
	int err;

	for (uint32_t i = 0; i < nr; i++) {
		const struct trace_key *key = trace__key(&c->tr, attrs[i].key);
		struct store_attr attr = attrs[i];

		if (key->hidden & place || (attrs[i].type == STORE_ATTR_STACK &&
					    !timeline__stack(c->t, (uint32_t)attrs[i].value)))
			continue;
		err = key_of(c, attrs[i].key, key->name, &text);
		if (err)
			return err;
		args_raw(a, text->text, text->head);
		if (key->zero)
			attr.value = 0;
		err = put_value(c, &attr);
		if (err)
			return err;
	}
	return 0;
}
