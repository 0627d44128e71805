// SPDX-License-Identifier: BSD-2-Clause
#include "gpu/pytorch/inputs.h"

/* c10::IValue, in all releases: a value or the address of an object, and a tag. */
struct value {
	union {
		uint64_t word;
		const uint8_t *object;
	};
	uint32_t tag;
};
_Static_assert(sizeof(struct value) == 16, "c10::IValue");

/*
 * Tags. Later releases have more kinds of numbers after INT, so that the tags behind these differ:
 * a bool is followed by a tuple, a string, a blob, a list.
 */
enum { TAG_TENSOR = 1, TAG_DOUBLE = 3, TAG_COMPLEX = 4, TAG_INT = 5 };
#define TAG_BOOL(l) ((uint32_t)(l)->list_tag - 4)

struct row { /* of IValues: a std::vector, or a c10::ArrayRef */
	const struct value *first;
	uint64_t nr;
};

struct writer {
	const struct kprof_agent_layout *layout;
	uint64_t *words;
	size_t nr;
	bool full; /* there was no room for some word: that and later ones are left out */
};

static uint64_t word_at(const uint8_t *object, size_t off)
{
	return *(const uint64_t *)(object + off);
}

static void put(struct writer *w, uint64_t word)
{
	w->full |= w->nr == KPROF_AGENT_INPUTS_WORDS;
	if (!w->full)
		w->words[w->nr++] = word;
}

static void put_words(struct writer *w, const uint64_t *words, uint64_t nr)
{
	for (uint64_t i = 0; i < nr; i++)
		put(w, words[i]);
}

static void put_head(struct writer *w, enum kprof_input_kind kind, uint64_t nr)
{
	if (nr > UINT32_MAX)
		nr = UINT32_MAX;
	put(w, KPROF_INPUT_OF_KIND(kind, KPROF_INPUT_VALUE, nr));
}

/* As bpf/inputs.h does it. */
static void put_tensor(struct writer *w, const uint8_t *impl)
{
	const uint64_t *sizes = impl ? (const uint64_t *)(impl + w->layout->sizes_off) : NULL;
	uint64_t dims = sizes ? sizes[0] : UINT64_MAX;

	if (dims > KPROF_INPUTS_MAX_DIMS) {
		put(w, KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_TENSOR, KPROF_INPUT_UNREADABLE, 0));
		return;
	}
	put_head(w, KPROF_INPUT_IS_TENSOR, dims);
	put(w, word_at(impl, 0));
	put(w, sizes[KPROF_TENSOR_READ_NUMEL]);
	put(w, sizes[KPROF_TENSOR_READ_TYPE] & w->layout->type_mask);
	if (dims > KPROF_TENSOR_INLINE_DIMS) {
		put_words(w, (const uint64_t *)(uintptr_t)sizes[1], 2 * dims);
		return;
	}
	put_words(w, &sizes[1], dims);
	put_words(w, &sizes[1 + KPROF_TENSOR_INLINE_DIMS], dims);
}

static void put_tensors(struct writer *w, struct row list)
{
	put_head(w, KPROF_INPUT_IS_TENSORS, list.nr);
	for (uint64_t i = 0; i < list.nr && list.nr <= KPROF_INPUTS_MAX_LIST; i++)
		put_tensor(w, list.first[i].tag == TAG_TENSOR ? list.first[i].object : NULL);
}

static enum kprof_input_kind number_kind(const struct kprof_agent_layout *l, uint32_t tag)
{
	if (tag == TAG_DOUBLE)
		return KPROF_INPUT_IS_DOUBLE;
	if (tag == TAG_INT)
		return KPROF_INPUT_IS_INT;
	if (tag == TAG_BOOL(l))
		return KPROF_INPUT_IS_BOOL;
	/* complex ones, unsigned ones, and those that are expressions */
	if (tag >= TAG_COMPLEX && tag < TAG_BOOL(l))
		return KPROF_INPUT_IS_NUMBER;
	return KPROF_INPUT_IS_OTHER;
}

static bool is_number(enum kprof_input_kind kind)
{
	return kind >= KPROF_INPUT_IS_DOUBLE && kind <= KPROF_INPUT_IS_BOOL;
}

/* A bool takes a byte of its word; the others are undefined. */
static uint64_t number(enum kprof_input_kind kind, const struct value *v)
{
	return kind == KPROF_INPUT_IS_BOOL ? v->word & 0xff : v->word;
}

/* A list of numbers of one kind, or one that is not shown. */
static void put_list(struct writer *w, struct row list)
{
	enum kprof_input_kind kind =
		list.nr ? number_kind(w->layout, list.first[0].tag) : KPROF_INPUT_IS_INT;

	/* PyTorch's own profiler looks at the first only: if that is no number, nothing is shown */
	for (uint64_t i = 1; i < list.nr && list.nr <= KPROF_INPUTS_MAX_LIST; i++)
		if (list.first[i].tag != list.first[0].tag && kind != KPROF_INPUT_IS_OTHER)
			kind = KPROF_INPUT_IS_UNKNOWN;
	if (!is_number(kind)) {
		put_head(w, kind == KPROF_INPUT_IS_OTHER ? kind : KPROF_INPUT_IS_UNKNOWN, 0);
		return;
	}
	put_head(w, kind - KPROF_INPUT_IS_DOUBLE + KPROF_INPUT_IS_DOUBLES, list.nr);
	for (uint64_t i = 0; i < list.nr && list.nr <= KPROF_INPUTS_MAX_LIST; i++)
		put(w, number(kind, &list.first[i]));
}

static void put_any_list(struct writer *w, const uint8_t *object)
{
	const size_t off = w->layout->list_off;
	uint64_t first = word_at(object, off), end = word_at(object, off + 8);
	const uint8_t *type = (const uint8_t *)(uintptr_t)word_at(object, off + 24);
	struct row list = {(const struct value *)(uintptr_t)first,
			   (end - first) / sizeof(struct value)};

	if (type && *(const uint32_t *)(type + 8) == w->layout->tensor_kind)
		put_tensors(w, list);
	else
		put_list(w, list);
}

static void put_value(struct writer *w, const struct value *v)
{
	enum kprof_input_kind kind = number_kind(w->layout, v->tag);

	if (v->tag == TAG_TENSOR) {
		put_tensor(w, v->object);
	} else if (v->tag == w->layout->list_tag && v->object) {
		put_any_list(w, v->object);
	} else {
		put_head(w, kind, is_number(kind));
		if (is_number(kind))
			put(w, number(kind, v));
	}
}

size_t inputs__read(const struct kprof_agent_layout *l, const void *record, uint64_t *words,
		    bool *any)
{
	const struct row *inputs = (const void *)((const uint8_t *)record + l->inputs_off);
	struct writer w = {.layout = l, .words = words};

	*any = inputs->nr && inputs->first;
	if (!*any || inputs->nr > KPROF_INPUTS_MAX)
		return 0;
	put(&w, inputs->nr);
	for (uint64_t i = 0; i < inputs->nr && !w.full; i++)
		put_value(&w, &inputs->first[i]);
	return w.nr;
}
