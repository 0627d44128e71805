// SPDX-License-Identifier: BSD-2-Clause
/* Writes an event's annotations, each value in its own type. */
#include "sink/perfetto/impl.h"

#include <stdlib.h>
#include <string.h>

#include "util/json_valid.h"
#include "util/util.h"

/* Adds a value to the packet. NULL: too many, which the limits of the callers exclude. */
static Pf__Annotation *value(struct pftrace *p)
{
	Pf__Annotation *a;

	if (p->nr_values == PF_MAX_VALUES)
		return NULL;
	a = &p->values[p->nr_values++];
	pf__annotation__init(a);
	return a;
}

static Pf__Annotation *annotation(struct pftrace *p, const char *key)
{
	Pf__Annotation *a =
		p->event.n_annotations < PF_MAX_ANNOTATIONS && p->new_keys.nr < PF_MAX_ANNOTATIONS
			? value(p)
			: NULL;
	bool fresh;

	if (!a)
		return NULL;
	a->has_name_iid = true;
	a->name_iid = pf_intern(p, &p->keys, key, &fresh);
	if (fresh) {
		Pf__InternedName *n = &p->new_keys.list[p->new_keys.nr];

		pf__interned_name__init(n);
		n->iid = a->name_iid;
		n->name = pf_text(p, key);
		p->new_keys.at[p->new_keys.nr++] = n;
	}
	p->annotations[p->event.n_annotations++] = a;
	return a;
}

static void set_u64(Pf__Annotation *a, uint64_t v)
{
	a->has_uint_value = true;
	a->uint_value = v;
}

static void set_double(Pf__Annotation *a, double v)
{
	a->has_double_value = true;
	a->double_value = v;
}

void pf_arg_u64(struct pftrace *p, const char *key, uint64_t v)
{
	Pf__Annotation *a = annotation(p, key);

	if (a)
		set_u64(a, v);
}

void pf_arg_bool(struct pftrace *p, const char *key, bool v)
{
	Pf__Annotation *a = annotation(p, key);

	if (a) {
		a->has_bool_value = true;
		a->bool_value = v;
	}
}

/*
 * Sets the value to a string's number. True: the string is new, and new_string() has to write it.
 */
static bool set_iid(struct pftrace *p, Pf__Annotation *a, const void *key)
{
	bool fresh;

	a->has_string_iid = true;
	a->string_iid = pf_intern(p, &p->strings, key, &fresh);
	return fresh;
}

static void new_string(struct pftrace *p, const Pf__Annotation *a, const char *text)
{
	Pf__InternedBytes *b = &p->new_strings.list[p->new_strings.nr];

	pf__interned_bytes__init(b);
	b->iid = a->string_iid;
	b->bytes.data = (uint8_t *)pf_text(p, text);
	b->bytes.len = strlen((char *)b->bytes.data);
	p->new_strings.at[p->new_strings.nr++] = b;
}

static void set_string(struct pftrace *p, Pf__Annotation *a, const char *text)
{
	if (set_iid(p, a, text))
		new_string(p, a, text);
}

/* Adds a stack as a text, as other traces have it. The text of each stack is written once. */
static void set_stack(struct pftrace *p, Pf__Annotation *a, uint32_t stack)
{
	const struct tl_stack *of = timeline__stack(p->t, stack);

	if (of && set_iid(p, a, of))
		new_string(p, a, pf_own(p, trace__stack_text(p->t, stack)));
}

void pf_arg_string(struct pftrace *p, const char *key, const char *text)
{
	Pf__Annotation *a = annotation(p, key);

	if (a)
		set_string(p, a, text);
}

static void set_json(struct pftrace *p, Pf__Annotation *a, const char *json)
{
	if (json_valid(json))
		a->json_value = (char *)json;
	else
		a->string_value = pf_text(p, json);
}

void pf_arg_json(struct pftrace *p, const char *key, const char *json)
{
	Pf__Annotation *a = annotation(p, key);

	if (a)
		set_json(p, a, json);
}

void pf_arg_computed(struct pftrace *p, const struct trace_arg *list, uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		Pf__Annotation *a = annotation(p, list[i].key);

		if (!a)
			return;
		if (list[i].type == TRACE_I64) {
			a->has_int_value = true;
			a->int_value = (int64_t)list[i].value;
		} else if (list[i].type == TRACE_MILLIONTHS) {
			set_double(a, (double)list[i].value / 1e6);
		} else if (list[i].type == TRACE_JSON) {
			a->json_value = pf_text(p, (const char *)(uintptr_t)list[i].value);
		} else { /* a time, by the trace's clock */
			set_u64(a, list[i].value);
		}
	}
}

/* Adds three integers, which are packed into v. */
static void set_dim3(struct pftrace *p, Pf__Annotation *a, uint64_t v)
{
	Pf__Annotation **list = malloc(3 * sizeof(Pf__Annotation *));
	const uint64_t each[3] = {v & UINT32_MAX, v >> 32 & UINT16_MAX, v >> 48};

	list = (Pf__Annotation **)pf_own(p, (char *)list);
	if (p->err)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(each); i++) {
		list[i] = value(p);
		if (!list[i])
			return;
		set_u64(list[i], each[i]);
		a->n_array_values = i + 1;
	}
	a->array_values = list;
}

static void set_value(struct pftrace *p, Pf__Annotation *a, const struct store_attr *attr)
{
	double number;

	switch (attr->type) {
	case STORE_ATTR_U64:
	case STORE_ATTR_COUNT:
		set_u64(a, attr->value);
		break;
	case STORE_ATTR_I64:
		a->has_int_value = true;
		a->int_value = (int64_t)attr->value;
		break;
	case STORE_ATTR_HEX:
		a->has_pointer_value = true;
		a->pointer_value = attr->value;
		break;
	case STORE_ATTR_STRING:
		set_string(p, a, timeline__string(p->t, (uint32_t)attr->value));
		break;
	case STORE_ATTR_DOUBLE:
		memcpy(&number, &attr->value, sizeof(number));
		set_double(a, number);
		break;
	case STORE_ATTR_DIM3:
		set_dim3(p, a, attr->value);
		break;
	case STORE_ATTR_JSON:
		set_json(p, a, timeline__string(p->t, (uint32_t)attr->value));
		break;
	case STORE_ATTR_STACK:
		set_stack(p, a, (uint32_t)attr->value);
		break;
	default: /* a type of a later minor version of the format: no value */
		break;
	}
}

void pf_arg_text(struct pftrace *p, const char *key, const char *text)
{
	Pf__Annotation *a = annotation(p, key);

	if (a)
		a->string_value = pf_text(p, pf_own(p, strdup(text)));
}

void pf_arg_stack(struct pftrace *p, const char *key, uint32_t stack)
{
	Pf__Annotation *a = timeline__stack(p->t, stack) ? annotation(p, key) : NULL;

	if (a)
		set_stack(p, a, stack);
}

void pf_arg_attrs(struct pftrace *p, const struct store_attr *attrs, uint32_t nr,
		  enum trace_place place)
{
	for (uint32_t i = 0; i < nr; i++) {
		const struct trace_key *key = trace__key(&p->tr, attrs[i].key);
		struct store_attr attr = attrs[i];
		Pf__Annotation *a;

		if (key->hidden & place || (attrs[i].type == STORE_ATTR_STACK &&
					    !timeline__stack(p->t, (uint32_t)attrs[i].value)))
			continue;
		a = annotation(p, key->name);
		if (key->zero)
			attr.value = 0;
		if (a)
			set_value(p, a, &attr);
	}
}
