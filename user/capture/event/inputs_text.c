// SPDX-License-Identifier: BSD-2-Clause
/*
 * Each input is an entry in four lists, as torch.profiler writes them: the sizes of a tensor, its
 * type, its strides, and the value of what is no tensor. An input of which torch.profiler shows
 * nothing has the type "", one that kprof could not read the type "unknown". A number whose value
 * could not be read has the type "Scalar" and no value.
 *
 * The words come from a process that may be hostile, or whose build is laid out differently than it
 * seems: a tensor is believed only if the product of its sizes is its number of elements.
 */
#include "capture/event/inputs_text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "catalog/catalog.h"
#include "util/util.h"

struct writer {
	const struct signature *s; /* NULL: the words say what they are */
	const uint64_t *words;
	uint32_t at, nr;
	inputs_class_fn class_of;
	void *ctx;
	FILE *to[INPUTS_KEYS];
	struct inputs_text *out;
};

/* The next word; 0 behind the last one, as if it could not be read. */
static uint64_t next(struct writer *w)
{
	return w->at < w->nr ? w->words[w->at++] : 0;
}

/* The next `nr` words; NULL: there are not so many. */
static const uint64_t *take(struct writer *w, uint64_t nr)
{
	const uint64_t *words = &w->words[w->at];

	if (nr > w->nr - w->at) {
		w->at = w->nr;
		return NULL;
	}
	w->at += (uint32_t)nr;
	return words;
}

/* ---- one entry of each list ---- */

static void begin_entry(struct writer *w)
{
	if (w->out->nr++)
		for (int i = 0; i < INPUTS_KEYS; i++)
			fputs(", ", w->to[i]);
}

/* An entry without sizes. value: NULL: none. */
static void entry(struct writer *w, const char *type, const char *value)
{
	begin_entry(w);
	fputs("[]", w->to[INPUTS_DIMS]);
	fprintf(w->to[INPUTS_TYPE], "\"%s\"", type);
	fputs("[]", w->to[INPUTS_STRIDES]);
	fprintf(w->to[INPUTS_CONCRETE], "\"%s\"", value ? value : "");
}

static void unknown(struct writer *w)
{
	entry(w, "unknown", NULL);
	w->out->unknown++;
}

/* ---- tensors ---- */

enum tensor_state { TENSOR_UNKNOWN, TENSOR_UNDEFINED, TENSOR_SHOWN };

struct tensor {
	enum tensor_state state;
	const char *type;
	const uint64_t *sizes, *strides; /* strides NULL: it has none */
	uint32_t dims;
};

/* The classes whose objects have their sizes themselves. */
static const struct {
	const char *class; /* a glob */
	enum tensor_state state;
	bool strided;
} classes[] = {
	{"c10::TensorImpl", TENSOR_SHOWN, true},
	{"at::QTensorImpl", TENSOR_SHOWN, true},
	{"at::SparseTensorImpl", TENSOR_SHOWN, false},
	{"at::SparseCsrTensorImpl", TENSOR_SHOWN, false},
	{"at::OpaqueTensorImpl<*", TENSOR_SHOWN, false},
	{"c10::UndefinedTensorImpl", TENSOR_UNDEFINED, false},
	/* torch.profiler shows such a tensor like one that is not there */
	{"at::native::NestedTensorImpl", TENSOR_UNDEFINED, false},
};

static bool is_product(uint64_t numel, const uint64_t *sizes, uint32_t dims)
{
	unsigned __int128 product = 1;

	for (uint32_t i = 0; i < dims; i++) {
		if (sizes[i] > INT64_MAX)
			return false;
		product *= sizes[i];
		if (product > INT64_MAX)
			return false;
	}
	return product == numel;
}

/* Reads a tensor whose head says that it is there. */
static struct tensor tensor_of(struct writer *w, uint32_t dims)
{
	const uint64_t *head = take(w, KPROF_TENSOR_WORDS);
	const uint64_t *sizes = head ? take(w, 2ull * dims) : NULL;
	struct tensor t = {TENSOR_UNKNOWN, NULL, sizes, NULL, dims};
	const char *class;

	if (!sizes)
		return t;
	class = w->class_of(w->ctx, head[KPROF_TENSOR_VTABLE]);
	for (size_t i = 0; class && i < ARRAY_SIZE(classes); i++) {
		if (!catalog_match(classes[i].class, class))
			continue;
		t.state = classes[i].state;
		t.strides = classes[i].strided ? sizes + dims : NULL;
		break;
	}
	t.type = catalog_element_type((uint32_t)(head[KPROF_TENSOR_TYPE] & KPROF_TENSOR_ELEMENTS));
	if (t.state == TENSOR_SHOWN &&
	    (!t.type || head[KPROF_TENSOR_TYPE] & ~KPROF_TENSOR_ELEMENTS ||
	     !is_product(head[KPROF_TENSOR_NUMEL], sizes, dims)))
		t.state = TENSOR_UNKNOWN;
	return t;
}

static void put_numbers(FILE *to, const uint64_t *numbers, uint32_t nr)
{
	putc('[', to);
	for (uint32_t i = 0; i < nr; i++)
		fprintf(to, "%s%" PRId64, i ? ", " : "", (int64_t)numbers[i]);
	putc(']', to);
}

static void tensor_entry(struct writer *w, uint64_t head)
{
	struct tensor t;

	if (KPROF_INPUT_STATUS(head) == KPROF_INPUT_NONE) {
		entry(w, "", NULL);
		return;
	}
	if (KPROF_INPUT_STATUS(head) != KPROF_INPUT_VALUE) {
		unknown(w);
		return;
	}
	t = tensor_of(w, KPROF_INPUT_NR(head));
	if (t.state == TENSOR_UNKNOWN) {
		unknown(w);
	} else if (t.state == TENSOR_UNDEFINED) {
		entry(w, "", NULL);
	} else {
		begin_entry(w);
		put_numbers(w->to[INPUTS_DIMS], t.sizes, t.dims);
		fprintf(w->to[INPUTS_TYPE], "\"%s\"", t.type);
		put_numbers(w->to[INPUTS_STRIDES], t.strides, t.strides ? t.dims : 0);
		fputs("\"\"", w->to[INPUTS_CONCRETE]);
	}
}

/* Reads the tensors of a list. False: one of them is not known. */
static bool read_list(struct writer *w, struct tensor *list, uint32_t nr)
{
	bool known = true;

	for (uint32_t i = 0; i < nr; i++) {
		uint64_t head = next(w);

		list[i] = (struct tensor){.state = TENSOR_UNKNOWN};
		if (KPROF_INPUT_STATUS(head) == KPROF_INPUT_VALUE)
			list[i] = tensor_of(w, KPROF_INPUT_NR(head));
		known = known && list[i].state != TENSOR_UNKNOWN;
	}
	return known;
}

static void list_entry(struct writer *w, uint64_t head)
{
	struct tensor list[KPROF_INPUTS_MAX_LIST];
	uint32_t nr = KPROF_INPUT_NR(head);

	if (KPROF_INPUT_STATUS(head) != KPROF_INPUT_VALUE) {
		unknown(w);
		return;
	}
	if (nr > KPROF_INPUTS_MAX_LIST) {
		entry(w, "TensorList", NULL);
		return;
	}
	if (!read_list(w, list, nr)) {
		unknown(w);
		return;
	}
	begin_entry(w);
	putc('[', w->to[INPUTS_DIMS]);
	putc('[', w->to[INPUTS_STRIDES]);
	for (uint32_t i = 0; i < nr; i++) {
		bool shown = list[i].state == TENSOR_SHOWN;

		if (i) {
			fputs(", ", w->to[INPUTS_DIMS]);
			fputs(", ", w->to[INPUTS_STRIDES]);
		}
		put_numbers(w->to[INPUTS_DIMS], list[i].sizes, shown ? list[i].dims : 0);
		put_numbers(w->to[INPUTS_STRIDES], list[i].strides,
			    list[i].strides ? list[i].dims : 0);
	}
	putc(']', w->to[INPUTS_DIMS]);
	putc(']', w->to[INPUTS_STRIDES]);
	fputs("\"TensorList\"", w->to[INPUTS_TYPE]);
	fputs("\"\"", w->to[INPUTS_CONCRETE]);
}

static void tensor_entries(struct writer *w, uint64_t head)
{
	uint32_t nr = KPROF_INPUT_NR(head);

	if (KPROF_INPUT_STATUS(head) != KPROF_INPUT_VALUE || nr > KPROF_INPUTS_MAX_LIST) {
		unknown(w);
		return;
	}
	for (uint32_t i = 0; i < nr && w->at < w->nr; i++)
		tensor_entry(w, next(w));
}

/* ---- numbers ---- */

#define NUMBER_BYTES 40

static void int_text(char text[NUMBER_BYTES], int64_t v)
{
	snprintf(text, NUMBER_BYTES, "%" PRId64, v);
}

static void bool_text(char text[NUMBER_BYTES], uint64_t v)
{
	snprintf(text, NUMBER_BYTES, "%s", v ? "True" : "False");
}

/* As PyTorch prints one: 17 digits, and "2." for a whole number below 2^63. */
static void double_text(char text[NUMBER_BYTES], uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	if (isfinite(v) && fabs(v) < 0x1p63 && v == (double)(int64_t)v)
		snprintf(text, NUMBER_BYTES, "%" PRId64 ".", (int64_t)v);
	else
		snprintf(text, NUMBER_BYTES, "%.17g", v);
}

/* A c10::SymInt is a number, or an expression: then its highest bits are 10. */
static bool is_symbolic(uint64_t v)
{
	return v >> 62 == 2;
}

/*
 * Kinds of c10::Scalar. The later ones differ by release: 2.3 has got unsigned numbers before
 * complex ones and truth values, and lost optional<>.
 */
enum { SCALAR_DOUBLE = 0, SCALAR_INT = 1, SCALAR_BOOL_BEFORE_2_3 = 3, SCALAR_BOOL = 4 };

/* The value as text; "": it is of another kind. */
static void scalar_text(const struct writer *w, char text[NUMBER_BYTES], uint64_t kind, uint64_t v)
{
	text[0] = '\0';
	if (kind == SCALAR_DOUBLE)
		double_text(text, v);
	else if (kind == SCALAR_INT)
		int_text(text, (int64_t)v);
	else if (kind == (w->s->own_optional ? SCALAR_BOOL_BEFORE_2_3 : SCALAR_BOOL) && v <= 1)
		bool_text(text, v);
}

/* The number of words that the value of an argument has which is no list. */
static uint32_t words_of(enum signature_kind kind)
{
	return kind == SIGNATURE_SCALAR ? 2 : kind != SIGNATURE_DOUBLE;
}

/* A number; its value is "" where that is in a register that cannot be read, or not understood. */
static void number_entry(struct writer *w, enum signature_kind kind, uint64_t head)
{
	char text[NUMBER_BYTES] = "";
	const uint64_t *v = NULL;

	if (KPROF_INPUT_STATUS(head) == KPROF_INPUT_NONE) {
		entry(w, "", NULL);
		return;
	}
	if (KPROF_INPUT_STATUS(head) == KPROF_INPUT_VALUE && KPROF_INPUT_NR(head) == words_of(kind))
		v = take(w, KPROF_INPUT_NR(head));
	if (!v || (kind == SIGNATURE_SYMINT && is_symbolic(v[0]))) {
		unknown(w);
		return;
	}
	switch (kind) {
	case SIGNATURE_DOUBLE:
		break;
	case SIGNATURE_SCALAR:
		scalar_text(w, text, v[0], v[1]);
		break;
	case SIGNATURE_BOOL:
		bool_text(text, v[0]);
		break;
	case SIGNATURE_BYTE:
		int_text(text, (int8_t)v[0]);
		break;
	default:
		int_text(text, (int64_t)v[0]);
		break;
	}
	w->out->unknown += !text[0];
	entry(w, "Scalar", text);
}

/* ---- lists of numbers ---- */

static void begin_numbers(struct writer *w)
{
	begin_entry(w);
	fputs("[]", w->to[INPUTS_DIMS]);
	fputs("[]", w->to[INPUTS_STRIDES]);
	fputs("\"ScalarList\"", w->to[INPUTS_TYPE]);
	fputs("\"[", w->to[INPUTS_CONCRETE]);
}

#define SCALAR_WORDS 4

/* The text of number i of a list. False: its value is not known. */
static bool number_text(const struct writer *w, enum signature_kind kind, const uint64_t *v,
			uint32_t i, char text[NUMBER_BYTES])
{
	if (kind == SIGNATURE_SCALARS) { /* as they are in memory */
		v += i * SCALAR_WORDS;
		scalar_text(w, text, (uint32_t)v[0], v[2]);
		return text[0];
	}
	if (kind == SIGNATURE_DOUBLES)
		double_text(text, v[i]);
	else if (kind == SIGNATURE_BOOL)
		bool_text(text, v[i]);
	else
		int_text(text, (int64_t)v[i]);
	return kind != SIGNATURE_SYMINTS || !is_symbolic(v[i]);
}

static void numbers_entry(struct writer *w, enum signature_kind kind, uint64_t head)
{
	uint32_t nr = KPROF_INPUT_NR(head), words = kind == SIGNATURE_SCALARS ? SCALAR_WORDS : 1;
	char text[NUMBER_BYTES];
	const uint64_t *v;

	if (KPROF_INPUT_STATUS(head) == KPROF_INPUT_NONE || nr > KPROF_INPUTS_MAX_LIST) {
		entry(w, "", NULL);
		return;
	}
	v = KPROF_INPUT_STATUS(head) == KPROF_INPUT_VALUE ? take(w, nr * words) : NULL;
	for (uint32_t i = 0; v && i < nr; i++)
		if (!number_text(w, kind, v, i, text))
			v = NULL;
	if (!v) {
		unknown(w);
		return;
	}
	begin_numbers(w);
	for (uint32_t i = 0; i < nr; i++) {
		number_text(w, kind, v, i, text);
		fprintf(w->to[INPUTS_CONCRETE], "%s%s", i ? ", " : "", text);
	}
	fputs("]\"", w->to[INPUTS_CONCRETE]);
}

static void bools_entry(struct writer *w, uint32_t nr, uint64_t head)
{
	const uint64_t *v = head == KPROF_INPUT_HEAD(KPROF_INPUT_VALUE, 1) ? take(w, 1) : NULL;

	if (!v) {
		unknown(w);
		return;
	}
	begin_numbers(w);
	for (uint32_t i = 0; i < nr; i++)
		fprintf(w->to[INPUTS_CONCRETE], "%s%s", i ? ", " : "",
			*v >> 8 * i & 0xff ? "True" : "False");
	fputs("]\"", w->to[INPUTS_CONCRETE]);
}

/* ---- all arguments ---- */

static void argument(struct writer *w, const struct signature_argument *a)
{
	enum signature_kind kind = (enum signature_kind)a->kind;
	/* what is not read is there, and that is all that is known of it */
	uint64_t head = a->read ? next(w) : KPROF_INPUT_HEAD(KPROF_INPUT_VALUE, 0);

	switch (kind) {
	case SIGNATURE_OTHER:
		entry(w, "", NULL);
		break;
	case SIGNATURE_TENSOR:
		tensor_entry(w, head);
		break;
	case SIGNATURE_TENSORS:
		list_entry(w, head);
		break;
	case SIGNATURE_EACH_TENSOR:
		tensor_entries(w, head);
		break;
	case SIGNATURE_INTS:
	case SIGNATURE_SYMINTS:
	case SIGNATURE_DOUBLES:
	case SIGNATURE_SCALARS:
		numbers_entry(w, kind, head);
		break;
	case SIGNATURE_BOOLS_2:
	case SIGNATURE_BOOLS_3:
	case SIGNATURE_BOOLS_4:
		bools_entry(w, 2 + kind - SIGNATURE_BOOLS_2, head);
		break;
	default:
		number_entry(w, kind, head);
		break;
	}
}

/*
 * How the arguments are passed was guessed: are the first ones tensors, as they were taken to be?
 * If the result is not where it was thought, the last of them is taken for something else.
 */
static bool is_refuted(const struct writer *w)
{
	struct writer at = *w;

	for (uint32_t i = 0; w->s->guessed && i < w->s->nr; i++) {
		uint64_t head;

		if (w->s->arguments[i].read != KPROF_INPUT_TENSOR)
			return false;
		head = next(&at);
		if (KPROF_INPUT_STATUS(head) != KPROF_INPUT_VALUE ||
		    tensor_of(&at, KPROF_INPUT_NR(head)).state == TENSOR_UNKNOWN)
			return true;
	}
	return false;
}

/* ---- what an agent observed ---- */

static void observed_number(struct writer *w, enum kprof_input_kind kind)
{
	const uint64_t *v = take(w, 1);
	char text[NUMBER_BYTES];

	if (!v) {
		unknown(w);
		return;
	}
	if (kind == KPROF_INPUT_IS_DOUBLE)
		double_text(text, *v);
	else if (kind == KPROF_INPUT_IS_INT)
		int_text(text, (int64_t)*v);
	else
		bool_text(text, *v);
	entry(w, "Scalar", text);
}

static void observed(struct writer *w, uint64_t tagged)
{
	enum kprof_input_kind kind = (enum kprof_input_kind)KPROF_INPUT_KIND(tagged);
	uint64_t head = tagged ^ (uint64_t)kind << 48;

	switch (kind) {
	case KPROF_INPUT_IS_OTHER:
		entry(w, "", NULL);
		break;
	case KPROF_INPUT_IS_TENSOR:
		tensor_entry(w, head);
		break;
	case KPROF_INPUT_IS_TENSORS:
		list_entry(w, head);
		break;
	case KPROF_INPUT_IS_DOUBLE:
	case KPROF_INPUT_IS_INT:
	case KPROF_INPUT_IS_BOOL:
		observed_number(w, kind);
		break;
	case KPROF_INPUT_IS_DOUBLES:
		numbers_entry(w, SIGNATURE_DOUBLES, head);
		break;
	case KPROF_INPUT_IS_INTS:
		numbers_entry(w, SIGNATURE_INTS, head);
		break;
	case KPROF_INPUT_IS_BOOLS:
		numbers_entry(w, SIGNATURE_BOOL, head);
		break;
	case KPROF_INPUT_IS_NUMBER:
		entry(w, "Scalar", NULL);
		w->out->unknown++;
		break;
	default:
		unknown(w);
		break;
	}
}

/* ---- all inputs of a call ---- */

static void all(struct writer *w)
{
	uint64_t nr = w->s ? w->s->nr : next(w);

	for (uint64_t i = 0; i < nr && i < KPROF_INPUTS_MAX; i++) {
		if (w->s)
			argument(w, &w->s->arguments[i]);
		else if (w->at < w->nr)
			observed(w, next(w));
		else
			unknown(w);
	}
}

static int write_lists(struct writer *w, struct inputs_text *out)
{
	size_t bytes[INPUTS_KEYS];
	bool failed = false;

	for (int i = 0; i < INPUTS_KEYS; i++) {
		w->to[i] = open_memstream(&out->json[i], &bytes[i]);
		failed = failed || !w->to[i];
	}
	for (int i = 0; i < INPUTS_KEYS && !failed; i++)
		putc('[', w->to[i]);
	if (!failed)
		all(w);
	for (int i = 0; i < INPUTS_KEYS; i++) {
		if (!w->to[i])
			continue;
		putc(']', w->to[i]);
		failed = ferror(w->to[i]) || failed;
		failed = fclose(w->to[i]) || failed;
	}
	if (!failed && out->nr)
		return 0;
	for (int i = 0; i < INPUTS_KEYS; i++) {
		free(out->json[i]);
		out->json[i] = NULL;
	}
	return failed ? -ENOMEM : -ENODATA;
}

int inputs_text(const struct signature *s, const uint64_t *words, uint32_t nr,
		inputs_class_fn class_of, void *ctx, struct inputs_text *out)
{
	struct writer w = {
		.s = s, .words = words, .nr = nr, .class_of = class_of, .ctx = ctx, .out = out};

	*out = (struct inputs_text){0};
	if ((s->plan.nr && !nr) || is_refuted(&w))
		return -ENODATA;
	return write_lists(&w, out);
}

int inputs_text_observed(const uint64_t *words, uint32_t nr, inputs_class_fn class_of, void *ctx,
			 struct inputs_text *out)
{
	struct writer w = {.words = words, .nr = nr, .class_of = class_of, .ctx = ctx, .out = out};

	*out = (struct inputs_text){0};
	return write_lists(&w, out);
}
