// SPDX-License-Identifier: BSD-2-Clause
#include "capture/event/boxed.h"

#include <ctype.h>
#include <string.h>

#include "kprof/wire.h"
#include "util/util.h"

/* Calls for which memory is looked at in vain, before it is given up for the process. */
#define MAX_FAILURES 64

/* ---- strings ---- */

#define MAX_NAME 256

/* What a std::string is in the process. */
enum string_form {
	STRING_SHORT_INSIDE, /* address, length; 16 bytes for a short text, or its capacity */
	STRING_COUNTED,      /* an address; before the text: length, capacity, a counter */
};
#define SHORT_BYTES 16 /* with the final NUL */

static size_t string_bytes(enum string_form form)
{
	return form == STRING_SHORT_INSIDE ? 32 : 8;
}

struct memory {
	boxed_read_fn read;
	void *ctx;
};

/* Reads the string. False: there is none at this address, or it is longer than MAX_NAME - 1. */
static bool read_string(const struct memory *m, enum string_form form, uint64_t at,
			char text[MAX_NAME])
{
	uint64_t head[2], length[2];

	if (m->read(m->ctx, head, string_bytes(form) == 8 ? 8 : 16, at))
		return false;
	if (form == STRING_SHORT_INSIDE) {
		length[0] = head[1];
		if ((length[0] < SHORT_BYTES) != (head[0] == at + 16))
			return false;
	} else if (m->read(m->ctx, length, sizeof(length), head[0] - 24) || length[0] > length[1]) {
		return false;
	}
	return length[0] < MAX_NAME && !m->read(m->ctx, text, length[0] + 1, head[0]) &&
	       strnlen(text, MAX_NAME) == length[0];
}

static bool is_identifier(const char *text)
{
	if (!isalpha((unsigned char)*text) && *text != '_')
		return false;
	while (isalnum((unsigned char)*text) || *text == '_')
		text++;
	return !*text;
}

/* ---- the schema ---- */

/*
 * Where the schema's vector of arguments is in an operator's definition: behind the operator's name
 * (two strings), the flag of PyTorch's own optional, if it is that, and the schema's name. Each is
 * among the three words that are read there.
 */
static const struct form {
	enum string_form string;
	uint16_t schema_off; /* of the schema's name */
	uint16_t at;         /* enum kprof_boxed_word: of the vector behind it */
} forms[] = {
	{STRING_SHORT_INSIDE, 64, KPROF_BOXED_AT_SECOND},
	{STRING_SHORT_INSIDE, 72, KPROF_BOXED_AT_SECOND + 1},
	{STRING_COUNTED, 16, KPROF_BOXED_AT_FIRST},
	{STRING_COUNTED, 24, KPROF_BOXED_AT_FIRST + 1},
};

/* Both are pairs of a name and an overload's name. */
static bool is_same_name(const struct memory *m, enum string_form form, uint64_t a, uint64_t b)
{
	char texts[2][MAX_NAME];

	for (size_t i = 0; i < 2; i++) {
		uint64_t off = i * string_bytes(form);

		if (!read_string(m, form, a + off, texts[0]) ||
		    !read_string(m, form, b + off, texts[1]) || strcmp(texts[0], texts[1]) != 0 ||
		    (!i && !texts[0][0]))
			return false;
	}
	return true;
}

/*
 * The bytes of an argument of all releases so far, by what it consists of: a name, two types, two
 * optionals, an address, two flags. Twice the least is more than the most, so that no multiple of
 * the right number is taken for it.
 */
enum { LEAST_ARGUMENT = 80, MOST_ARGUMENT = 152 };

/* Do arguments of so many bytes, each of which begins with its name, fill the vector? */
static bool are_arguments(const struct memory *m, enum string_form form, uint64_t begin,
			  uint64_t nr, uint64_t bytes)
{
	char name[MAX_NAME];

	for (uint64_t i = 0; i < nr; i++)
		if (!read_string(m, form, begin + i * bytes, name) || !is_identifier(name))
			return false;
	return true;
}

/* The bytes of an argument; 0: these are none. */
static uint16_t argument_bytes(const struct memory *m, enum string_form form, uint64_t begin,
			       uint64_t bytes)
{
	uint16_t found = 0;

	for (uint16_t size = LEAST_ARGUMENT / 2; size <= MOST_ARGUMENT && !found; size += 8)
		if (bytes % size == 0 && bytes / size <= KPROF_INPUTS_MAX &&
		    are_arguments(m, form, begin, bytes / size, size))
			found = size;
	return found >= LEAST_ARGUMENT ? found : 0;
}

/* The vector of arguments at this place of the record. False: there is none, or it is empty. */
static bool vector_at(const uint64_t *words, uint16_t at, uint64_t *begin, uint64_t *bytes)
{
	*begin = words[at];
	*bytes = words[at + 1] - words[at];
	return *begin && words[at + 1] > *begin && *bytes <= KPROF_INPUTS_MAX * MOST_ARGUMENT;
}

static bool learn(struct boxed_layout *l, const struct memory *m, const uint64_t *words)
{
	const uint64_t definition = words[KPROF_BOXED_OPERATOR];
	uint64_t begin, bytes;
	bool looked = false;

	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		const struct form *f = &forms[i];

		/* of an operator without arguments nothing can be learnt */
		if (!vector_at(words, f->at, &begin, &bytes))
			continue;
		looked = true;
		if (!is_same_name(m, f->string, definition, definition + f->schema_off))
			continue;
		l->argument = argument_bytes(m, f->string, begin, bytes);
		l->at = f->at;
		if (l->argument)
			return true;
	}
	l->failures += looked;
	return false;
}

/* The number of the operator's arguments. False: it is not known. */
static bool count_arguments(struct boxed_layout *l, const struct memory *m, const uint64_t *words,
			    uint32_t *nr)
{
	uint64_t begin, bytes;

	if (!l->argument && (l->failures >= MAX_FAILURES || !learn(l, m, words)))
		return false;
	if (words[l->at] == words[l->at + 1]) {
		*nr = 0;
		return words[KPROF_BOXED_OPERATOR] != 0;
	}
	if (!vector_at(words, l->at, &begin, &bytes) || bytes % l->argument)
		return false;
	*nr = (uint32_t)(bytes / l->argument);
	return true;
}

/* ---- values ---- */

/* The words of a tensor whose head says so. */
static uint64_t tensor_words(uint64_t head)
{
	return KPROF_INPUT_STATUS(head) == KPROF_INPUT_VALUE
		       ? KPROF_TENSOR_WORDS + 2ull * KPROF_INPUT_NR(head)
		       : 0;
}

/* Behind the value at `at`; nr at most. */
static uint32_t behind(const uint64_t *words, uint32_t at, uint32_t nr)
{
	uint64_t head = words[at], next = at + 1, elements = KPROF_INPUT_NR(head);

	switch ((enum kprof_input_kind)KPROF_INPUT_KIND(head)) {
	case KPROF_INPUT_IS_TENSOR:
		next += tensor_words(head);
		break;
	case KPROF_INPUT_IS_TENSORS:
		for (uint64_t i = 0; i < elements && elements <= KPROF_INPUTS_MAX_LIST && next < nr;
		     i++)
			next += 1 + tensor_words(words[next]);
		break;
	case KPROF_INPUT_IS_DOUBLE:
	case KPROF_INPUT_IS_INT:
	case KPROF_INPUT_IS_BOOL:
		next++;
		break;
	case KPROF_INPUT_IS_DOUBLES:
	case KPROF_INPUT_IS_INTS:
	case KPROF_INPUT_IS_BOOLS:
		next += elements <= KPROF_INPUTS_MAX_LIST ? elements : 0;
		break;
	default:
		break;
	}
	return next < nr ? (uint32_t)next : nr;
}

/* The name, and where the values begin. False: the record does not hold together. */
static bool split(const uint64_t *words, uint32_t nr, uint32_t *at, const char **name)
{
	uint64_t bytes = nr >= KPROF_BOXED_WORDS ? words[KPROF_BOXED_NAME_BYTES] : UINT64_MAX;

	if (bytes > KPROF_WIRE_TEXT_LONG || (bytes + 7) / 8 > nr - KPROF_BOXED_WORDS)
		return false;
	*name = bytes ? (const char *)&words[KPROF_BOXED_WORDS] : NULL;
	*at = (uint32_t)(KPROF_BOXED_WORDS + (bytes + 7) / 8);
	return !bytes || strnlen(*name, bytes) < bytes;
}

void boxed_call(struct boxed_layout *l, const uint64_t *words, uint32_t nr, boxed_read_fn read,
		void *ctx, struct boxed_call *out)
{
	const struct memory m = {read, ctx};
	uint64_t values, above;
	uint32_t at, arguments;

	*out = (struct boxed_call){.boxed = true};
	if (!split(words, nr, &at, &out->name)) {
		out->name = NULL;
		return;
	}
	values = words[KPROF_BOXED_VALUES];
	above = values < KPROF_INPUTS_MAX ? values : KPROF_INPUTS_MAX;
	if (!l)
		arguments = values < UINT32_MAX ? (uint32_t)values : UINT32_MAX;
	else if (!count_arguments(l, &m, words, &arguments))
		return;
	if (arguments > above)
		return;
	for (uint64_t i = above - arguments; i && at < nr; i--)
		at = behind(words, at, nr);
	out->known = true;
	out->values = &words[at];
	out->nr_words = nr - at;
	out->nr = arguments;
	out->tensor_argument = words[KPROF_BOXED_TENSOR] && words[KPROF_BOXED_TENSOR] <= arguments;
}

uint32_t boxed_flags(uint32_t flags, const struct boxed_call *call)
{
	bool sure = call->tensor_argument && call->name && !strncmp(call->name, "aten::", 6);

	if (!call->boxed || sure || !(flags & KPROF_WIRE_F_SEQUENCE))
		return flags;
	return flags ^ (KPROF_WIRE_F_SEQUENCE | KPROF_WIRE_F_MAYBE);
}
