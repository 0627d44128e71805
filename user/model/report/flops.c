// SPDX-License-Identifier: BSD-2-Clause
#include "model/report/flops.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "store/store.h"
#include "util/util.h"

#define MAX_DIMS 8
#define MOST_NUMBER 9007199254740992.0 /* 2^53: up to here a double is exact */
#define MOST_KNOWN 65536               /* of each kind; then all are computed anew */

enum kind {
	NONE,
	ELEMENTS,
	PRODUCT,
	ADDED_PRODUCT,
	CONV2D,
	CONVOLUTION,
	CONVOLUTION_BACKWARD,
	ATTENTION,
	ATTENTION_BACKWARD,
	KINDS
};
_Static_assert(KINDS <= FLOPS_KINDS, "kinds of formulas");

#define ATTENTION_ROWS(name)                                                      \
	{"aten::_scaled_dot_product_" name, ATTENTION},                           \
	{                                                                         \
		"aten::_scaled_dot_product_" name "_backward", ATTENTION_BACKWARD \
	}

/* clang-format off */
static const struct {
	const char *name;
	enum kind kind;
} operators[] = {
	{"aten::add", ELEMENTS},
	{"aten::mul", ELEMENTS},
	{"aten::mm", PRODUCT},
	{"aten::bmm", PRODUCT},
	{"aten::addmm", ADDED_PRODUCT},
	{"aten::baddbmm", ADDED_PRODUCT},
	{"aten::conv2d", CONV2D},
	{"aten::convolution", CONVOLUTION},
	{"aten::convolution_backward", CONVOLUTION_BACKWARD},
	ATTENTION_ROWS("flash_attention"),
	ATTENTION_ROWS("flash_attention_for_cpu"),
	ATTENTION_ROWS("efficient_attention"),
	ATTENTION_ROWS("cudnn_attention"),
};
/* clang-format on */

static enum kind kind_of(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(operators); i++)
		if (!strcmp(operators[i].name, name))
			return operators[i].kind;
	return NONE;
}

static enum kind known_kind(struct flops *f, const struct tl_description *d)
{
	while (f->nr < d->id) {
		if (vec_grow((void **)&f->kinds, &f->cap, f->nr, sizeof(*f->kinds)))
			return kind_of(d->name);
		f->kinds[f->nr++] = 0;
	}
	if (!f->kinds[d->id - 1])
		f->kinds[d->id - 1] = (uint8_t)(kind_of(d->name) + 1);
	return (enum kind)(f->kinds[d->id - 1] - 1);
}

/* ---- numbers of a JSON text ---- */

struct numbers {
	uint64_t at[MAX_DIMS];
	int nr; /* -1: it is no list of such numbers */
};

static struct numbers numbers_of(const cJSON *list)
{
	struct numbers n = {.nr = list && cJSON_IsArray(list) ? 0 : -1};
	const cJSON *item = list && !n.nr ? list->child : NULL;

	for (; item; item = item->next) {
		if (n.nr == MAX_DIMS || !cJSON_IsNumber(item) || !(item->valuedouble >= 0) ||
		    item->valuedouble > MOST_NUMBER) {
			n.nr = -1;
			break;
		}
		n.at[n.nr++] = (uint64_t)item->valuedouble;
	}
	return n;
}

/* A value, which is a text: "[1, 1]" or "3". */
static struct numbers value_of(const cJSON *values, int i)
{
	const cJSON *text = cJSON_GetArrayItem(values, i);
	cJSON *parsed = cJSON_IsString(text) ? cJSON_Parse(text->valuestring) : NULL;
	struct numbers n = {.nr = -1};

	if (parsed && cJSON_IsNumber(parsed) && parsed->valuedouble >= 0 &&
	    parsed->valuedouble <= MOST_NUMBER) {
		n.at[0] = (uint64_t)parsed->valuedouble;
		n.nr = 1;
	} else if (cJSON_IsArray(parsed)) {
		n = numbers_of(parsed);
	}
	cJSON_Delete(parsed);
	return n;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	add_capped(&a, b);
	return a;
}

static uint64_t elements_of(const struct numbers *n)
{
	uint64_t product = n->nr < 0 ? 0 : 1;

	for (int i = 0; i < n->nr; i++)
		product = times(product, n->at[i]);
	return product;
}

/* ---- formulas ---- */

struct amount {
	uint64_t flops;
	uint64_t results; /* elements of the results; 0: not known */
};

/* One for each element of the first; the second may have more, or sizes to be stretched to. */
static struct amount of_elements(const cJSON *dims)
{
	struct numbers a = numbers_of(cJSON_GetArrayItem(dims, 0));
	struct numbers b = numbers_of(cJSON_GetArrayItem(dims, 1));
	struct amount amount = {elements_of(&a), a.nr < 0 ? 0 : 1};

	for (int i = 1; i <= a.nr || i <= b.nr; i++) {
		uint64_t one = i <= a.nr ? a.at[a.nr - i] : 1,
			 other = i <= b.nr ? b.at[b.nr - i] : 1;

		amount.results = times(amount.results, one == 1 ? other : one);
	}
	return amount;
}

static struct amount of_product(const cJSON *dims, int first)
{
	struct numbers a = numbers_of(cJSON_GetArrayItem(dims, first));
	struct numbers b = numbers_of(cJSON_GetArrayItem(dims, first + 1));
	struct amount amount = {0};

	if (a.nr < 2 || a.nr != b.nr || a.at[a.nr - 1] != b.at[b.nr - 2])
		return amount;
	amount.flops = times(2, times(elements_of(&a), b.at[b.nr - 1]));
	a.at[a.nr - 1] = b.at[b.nr - 1];
	amount.results = elements_of(&a);
	return amount;
}

/* Sizes of the output: how often the kernel fits. */
static uint64_t fits(uint64_t size, uint64_t padding, uint64_t dilation, uint64_t kernel,
		     uint64_t stride)
{
	unsigned __int128 room = (unsigned __int128)size + 2 * (unsigned __int128)padding;
	unsigned __int128 reach = (unsigned __int128)dilation * (kernel - 1) + 1, fit;

	if (!kernel || !stride || room < reach)
		return 0;
	fit = (room - reach) / stride + 1;
	return fit > UINT64_MAX ? UINT64_MAX : (uint64_t)fit;
}

/* Of a convolution whose kernel is put to so many places: at each, all of the weights are used. */
static uint64_t of_places(uint64_t batch, uint64_t places, const struct numbers *weight)
{
	return times(2, times(times(batch, places), elements_of(weight)));
}

/*
 * convNd and convolution(input, weight, bias, stride, padding, dilation, …): the kernel is put to
 * each place of the output; if it is transposed, to each of the input.
 */
static struct amount of_convolution(const cJSON *dims, const cJSON *values, bool transposed)
{
	struct numbers in = numbers_of(cJSON_GetArrayItem(dims, 0));
	struct numbers weight = numbers_of(cJSON_GetArrayItem(dims, 1));
	struct numbers stride = value_of(values, 3), padding = value_of(values, 4);
	struct numbers dilation = value_of(values, 5);
	struct amount amount = {0};
	uint64_t places = 1;
	int sizes = in.nr - 2;

	if (sizes < 1 || weight.nr != in.nr)
		return amount;
	if (!transposed && (stride.nr != sizes || padding.nr != sizes || dilation.nr != sizes))
		return amount;
	for (int i = 0; i < sizes; i++)
		places =
			times(places, transposed ? in.at[2 + i]
						 : fits(in.at[2 + i], padding.at[i], dilation.at[i],
							weight.at[2 + i], stride.at[i]));
	amount.flops = of_places(in.at[0], places, &weight);
	if (!transposed)
		amount.results = times(times(in.at[0], places), weight.at[0]);
	return amount;
}

static bool is_true(const cJSON *values, int i)
{
	const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(values, i));

	return text && !strcmp(text, "True");
}

/*
 * convolution_backward(grad_output, input, weight, bias_sizes, stride, padding, dilation,
 * transposed, output_padding, groups, output_mask): as much as forwards for each of the gradients
 * of input and weight that is wanted.
 */
static struct amount of_convolution_backward(const cJSON *dims, const cJSON *values)
{
	struct numbers out = numbers_of(cJSON_GetArrayItem(dims, 0));
	struct numbers in = numbers_of(cJSON_GetArrayItem(dims, 1));
	struct numbers weight = numbers_of(cJSON_GetArrayItem(dims, 2));
	const char *mask = cJSON_GetStringValue(cJSON_GetArrayItem(values, 10));
	const struct numbers *over = is_true(values, 7) ? &in : &out;
	struct amount amount = {0};
	bool of_in, of_weight;
	uint64_t places = 1;

	if (in.nr < 3 || out.nr != in.nr || weight.nr != in.nr || !mask)
		return amount;
	of_in = !strncmp(mask, "[True", 5);
	of_weight = !strncmp(mask, "[True, True", 11) || !strncmp(mask, "[False, True", 12);
	for (int i = 2; i < over->nr; i++)
		places = times(places, over->at[i]);
	amount.flops = times((uint64_t)of_in + of_weight, of_places(in.at[0], places, &weight));
	amount.results = plus(of_in ? elements_of(&in) : 0, of_weight ? elements_of(&weight) : 0);
	return amount;
}

/*
 * Attention of a query, a key and a value, [batch, heads, length, size]: two products. Backwards
 * the first one is done again, and four others are.
 */
static struct amount of_attention(const cJSON *dims, int first, bool backward)
{
	struct numbers q = numbers_of(cJSON_GetArrayItem(dims, first));
	struct numbers k = numbers_of(cJSON_GetArrayItem(dims, first + 1));
	struct numbers v = numbers_of(cJSON_GetArrayItem(dims, first + 2));
	uint64_t pairs, of_q, of_v;
	struct amount amount = {0};

	if (q.nr != 4 || k.nr != 4 || v.nr != 4 || q.at[0] != k.at[0] || q.at[0] != v.at[0] ||
	    q.at[3] != k.at[3] || k.at[2] != v.at[2])
		return amount;
	pairs = times(times(q.at[0], q.at[1]), times(q.at[2], k.at[2]));
	of_q = times(2, times(pairs, q.at[3]));
	of_v = times(2, times(pairs, v.at[3]));
	if (backward) {
		amount.flops = plus(times(3, of_q), times(2, of_v));
		amount.results = plus(elements_of(&q), plus(elements_of(&k), elements_of(&v)));
	} else {
		amount.flops = plus(of_q, of_v);
		amount.results = times(times(q.at[0], q.at[1]), times(q.at[2], v.at[3]));
	}
	return amount;
}

static struct amount of_kind(enum kind kind, const cJSON *dims, const cJSON *values)
{
	switch (kind) {
	case ELEMENTS:
		return of_elements(dims);
	case PRODUCT:
		return of_product(dims, 0);
	case ADDED_PRODUCT:
		return of_product(dims, 1);
	case CONV2D:
		if (numbers_of(cJSON_GetArrayItem(dims, 0)).nr != 4)
			break;
		return of_convolution(dims, values, false);
	case CONVOLUTION:
		return of_convolution(dims, values, is_true(values, 6));
	case CONVOLUTION_BACKWARD:
		return of_convolution_backward(dims, values);
	case ATTENTION:
	case ATTENTION_BACKWARD:
		return of_attention(dims, kind == ATTENTION_BACKWARD, kind == ATTENTION_BACKWARD);
	case NONE:
	case KINDS:
		break;
	}
	return (struct amount){0};
}

/*
 * Adds the bytes of a tensor, each once: what has a stride of 0 is the same element again and
 * again. What is no tensor has none. False: they are not known, as of a sparse tensor.
 */
static bool add_bytes(const cJSON *dims, const cJSON *types, const cJSON *strides, int i,
		      uint64_t *bytes)
{
	const char *type = cJSON_GetStringValue(cJSON_GetArrayItem(types, i));
	struct numbers sizes = numbers_of(cJSON_GetArrayItem(dims, i));
	struct numbers steps = numbers_of(cJSON_GetArrayItem(strides, i));

	if (!type || !catalog_element_bytes(type))
		return true;
	for (int n = 0; n < sizes.nr && steps.nr == sizes.nr; n++)
		if (!steps.at[n] && sizes.at[n])
			sizes.at[n] = 1;
	*bytes = plus(*bytes, times(elements_of(&sizes), catalog_element_bytes(type)));
	return steps.nr == sizes.nr;
}

/* The type of the results: of the first tensor that has dimensions, as they decide; "": unknown. */
static const char *type_of(const cJSON *dims, const cJSON *types)
{
	const char *type, *scalar = "";

	for (int i = 0; i < cJSON_GetArraySize(dims); i++) {
		type = cJSON_GetStringValue(cJSON_GetArrayItem(types, i));
		if (!type || !catalog_element_bytes(type))
			continue;
		if (cJSON_GetArraySize(cJSON_GetArrayItem(dims, i)))
			return type;
		scalar = *scalar ? scalar : type;
	}
	return scalar;
}

struct flops_work flops_work_of(const char *name, const struct flops_inputs *in)
{
	cJSON *dims = cJSON_Parse(in->dims), *values = cJSON_Parse(in->values);
	cJSON *types = cJSON_Parse(in->types), *strides = cJSON_Parse(in->strides);
	const char *type = type_of(dims, types);
	struct amount amount = of_kind(kind_of(name), dims, values);
	struct flops_work work = {.flops = amount.flops};
	bool known = true;

	for (int i = 0; i < cJSON_GetArraySize(dims); i++)
		known = add_bytes(dims, types, strides, i, &work.bytes) && known;
	work.bytes = plus(work.bytes, times(amount.results, catalog_element_bytes(type)));
	if (!known)
		work.bytes = 0;
	snprintf(work.type, sizeof(work.type), "%s", type);
	cJSON_Delete(dims);
	cJSON_Delete(values);
	cJSON_Delete(types);
	cJSON_Delete(strides);
	return work;
}

static uint64_t compute(enum kind kind, const char *dims_text, const char *values_text)
{
	cJSON *dims = cJSON_Parse(dims_text), *values = cJSON_Parse(values_text);
	uint64_t flops = of_kind(kind, dims, values).flops;

	cJSON_Delete(dims);
	cJSON_Delete(values);
	return flops;
}

uint64_t flops_of_inputs(const char *name, const char *dims, const char *values)
{
	return compute(kind_of(name), dims, values);
}

static const char *text_of(const struct kprof_capture *t, const struct tl_span *s, const char *key,
			   uint32_t *id)
{
	const struct store_attr *a = timeline__attr(t, s->attrs, s->nr_attrs, key);

	*id = a && a->type == STORE_ATTR_JSON ? (uint32_t)a->value : 0;
	return timeline__string(t, *id);
}

/* Was the first tensor read? What is not known has no sizes, like a tensor of one element. */
static bool is_known(const struct kprof_capture *t, const struct tl_span *s)
{
	static const char unknown[] = "[\"unknown\"";
	uint32_t id;

	return strncmp(text_of(t, s, "Input type", &id), unknown, sizeof(unknown) - 1) != 0;
}

/*
 * Is its work counted where it is called? add(Tensor, Scalar) is done by add(Tensor, Tensor),
 * conv2d by convolution.
 */
static bool is_counted(const struct tl_span *s)
{
	const char *parent = s->parent_what ? s->parent_what->name : "";

	return !strcmp(parent, s->description->name) ||
	       (!strcmp(parent, "aten::conv2d") &&
		!strcmp(s->description->name, "aten::convolution"));
}

uint64_t flops__of(struct flops *f, const struct kprof_capture *t, const struct tl_span *s)
{
	enum kind kind = known_kind(f, s->description);
	uint32_t dims_id, values_id;
	const char *dims, *values;
	uint64_t *known, flops;

	if (kind == NONE || !s->nr_attrs)
		return 0;
	if (is_counted(s))
		return 0;
	dims = text_of(t, s, "Input Dims", &dims_id);
	values = text_of(t, s, "Concrete Inputs", &values_id);
	if (!*dims || !is_known(t, s))
		return 0;
	if (f->known[kind].used > MOST_KNOWN)
		map64__free(&f->known[kind]);
	known = map64__at(&f->known[kind], (uint64_t)dims_id << 32 | values_id);
	if (known && *known)
		return *known - 1;
	flops = compute(kind, dims, values);
	if (known && flops < UINT64_MAX)
		*known = flops + 1;
	return flops;
}

bool flops__counts(struct flops *f, const struct tl_span *s)
{
	return known_kind(f, s->description) != NONE;
}

int flops__work(struct flops *f, const struct kprof_capture *t, const struct tl_span *s,
		const struct flops_work **out)
{
	struct flops_known key = {.description = s->description->id}, *at;
	struct flops_inputs in;

	*out = NULL;
	if (!flops__of(f, t, s))
		return 0;
	if (!f->works)
		f->works = calloc(FLOPS_WORKS, sizeof(*f->works));
	if (!f->works)
		return -ENOMEM;
	in.dims = text_of(t, s, "Input Dims", &key.inputs[0]);
	in.types = text_of(t, s, "Input type", &key.inputs[1]);
	in.strides = text_of(t, s, "Input Strides", &key.inputs[2]);
	in.values = text_of(t, s, "Concrete Inputs", &key.inputs[3]);
	at = &f->works[(key.inputs[0] * 31 + key.inputs[1] + key.inputs[2] * 7 + key.description) %
		       FLOPS_WORKS];
	if (at->description != key.description ||
	    memcmp(at->inputs, key.inputs, sizeof(key.inputs)) != 0) {
		key.work = flops_work_of(s->description->name, &in);
		*at = key;
	}
	*out = &at->work;
	return 0;
}

void flops__free(struct flops *f)
{
	free(f->kinds);
	free(f->works);
	for (size_t i = 0; i < ARRAY_SIZE(f->known); i++)
		map64__free(&f->known[i]);
	*f = (struct flops){0};
}
