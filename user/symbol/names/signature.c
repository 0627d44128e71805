// SPDX-License-Identifier: BSD-2-Clause
/*
 * How the arguments of a PyTorch operator are passed, from the parameters in its function's mangled
 * name and the result in its schema, by the calling convention of x86-64 (System V ABI, 3.2.3).
 *
 * Of a parameter that is a reference, or an object that cannot be copied as bytes, the argument is
 * an address. Small plain objects are in one or two integer registers, larger ones on the stack.
 * PyTorch has had an optional<> of its own in releases before 2.3, whose flag comes first; an
 * optional row of it was two words, and is three since.
 */
#include "symbol/names/signature.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/names/names.h"
#include "util/util.h"

/* Where an argument is passed. */
enum class {
	ONE,    /* an integer register */
	TWO,    /* two of them */
	THREE,  /* three words on the stack */
	VECTOR, /* a vector register */
	/* an integer register and a vector register, in this order of its words */
	ONE_AND_VECTOR,
	VECTOR_AND_ONE,
};

struct parameter {
	const char *type; /* as demangled */
	enum signature_kind kind;
	enum class class;
	struct kprof_input in; /* without .at */
};

/* clang-format off */
/* What struct kprof_input says: a bool at byte b says whether the value is there. */
#define FLAG(b) ((b) + 1)
#define WORDS(...) {.read = KPROF_INPUT_WORDS, __VA_ARGS__}
#define BYTES(n) WORDS(.bytes = (n))
#define MEMORY(words, ...) {.read = KPROF_INPUT_MEMORY, .nr = (words), .bytes = 8, __VA_ARGS__}
#define SCALAR(words, ...) {.read = KPROF_INPUT_SCALAR, .nr = (words), __VA_ARGS__}
#define NUMBERS(words) {.read = KPROF_INPUT_NUMBERS, .nr = (words)}
#define NUMBERS_IF {.read = KPROF_INPUT_NUMBERS_IF, .nr = 1}
#define READ(how) {.read = KPROF_INPUT_##how}
#define NOT_READ {0}

/* An optional byte: of std::optional<> the flag comes after it, of PyTorch's own before. */
#define OPTIONAL_BYTE(t, kind) \
	{"std::optional<" t ">", SIGNATURE_##kind, ONE, WORDS(.bytes = 1, .flag = FLAG(1))}, \
	{"c10::optional<" t ">", SIGNATURE_##kind, ONE, \
	 WORDS(.value = 1, .bytes = 1, .flag = FLAG(0))}
/* An object of which torch.profiler shows nothing. */
#define OTHER(t, class) {t, SIGNATURE_OTHER, class, NOT_READ}

static const struct parameter parameters[] = {
	{"at::Tensor const&", SIGNATURE_TENSOR, ONE, READ(TENSOR)},
	{"at::Tensor&", SIGNATURE_TENSOR, ONE, READ(TENSOR)},
	{"std::optional<at::Tensor> const&", SIGNATURE_TENSOR, ONE, READ(TENSOR_BEFORE_FLAG)},
	{"c10::optional<at::Tensor> const&", SIGNATURE_TENSOR, ONE, READ(TENSOR_AFTER_FLAG)},
	{"c10::ArrayRef<at::Tensor>", SIGNATURE_TENSORS, TWO, READ(TENSORS)},
	{"c10::IListRef<at::Tensor> const&", SIGNATURE_TENSORS, ONE, READ(TENSOR_LIST_REF)},
	{"bool", SIGNATURE_BOOL, ONE, BYTES(1)},
	{"long", SIGNATURE_INT, ONE, BYTES(8)},
	{"double", SIGNATURE_DOUBLE, VECTOR, NOT_READ},
	{"signed char", SIGNATURE_BYTE, ONE, BYTES(1)},
	{"c10::ScalarType", SIGNATURE_BYTE, ONE, BYTES(1)},
	{"c10::Layout", SIGNATURE_BYTE, ONE, BYTES(1)},
	{"c10::MemoryFormat", SIGNATURE_BYTE, ONE, BYTES(1)},
	{"c10::SymInt", SIGNATURE_SYMINT, ONE, MEMORY(1, .value = 0)},
	{"c10::Scalar const&", SIGNATURE_SCALAR, ONE, SCALAR(4, .value = 0)},
	{"c10::ArrayRef<long>", SIGNATURE_INTS, TWO, NUMBERS(1)},
	{"c10::ArrayRef<c10::SymInt>", SIGNATURE_SYMINTS, TWO, NUMBERS(1)},
	{"c10::ArrayRef<double>", SIGNATURE_DOUBLES, TWO, NUMBERS(1)},
	{"c10::ArrayRef<c10::Scalar>", SIGNATURE_SCALARS, TWO, NUMBERS(4)},
	{"std::array<bool, 2ul>", SIGNATURE_BOOLS_2, ONE, BYTES(2)},
	{"std::array<bool, 3ul>", SIGNATURE_BOOLS_3, ONE, BYTES(3)},
	{"std::array<bool, 4ul>", SIGNATURE_BOOLS_4, ONE, BYTES(4)},

	OPTIONAL_BYTE("bool", BOOL),
	OPTIONAL_BYTE("c10::ScalarType", BYTE),
	OPTIONAL_BYTE("c10::Layout", BYTE),
	OPTIONAL_BYTE("c10::MemoryFormat", BYTE),
	{"std::optional<long>", SIGNATURE_INT, TWO, WORDS(.bytes = 8, .flag = FLAG(8))},
	{"c10::optional<long>", SIGNATURE_INT, TWO, WORDS(.value = 8, .bytes = 8, .flag = FLAG(0))},
	{"std::optional<c10::SymInt>", SIGNATURE_SYMINT, ONE, MEMORY(2, .flag = FLAG(8))},
	{"c10::optional<c10::SymInt>", SIGNATURE_SYMINT, ONE, MEMORY(2, .value = 8, .flag = FLAG(0))},
	{"std::optional<c10::Scalar> const&", SIGNATURE_SCALAR, ONE, SCALAR(5, .flag = FLAG(32))},
	{"c10::optional<c10::Scalar> const&", SIGNATURE_SCALAR, ONE,
	 SCALAR(6, .value = 16, .flag = FLAG(0))},
	/* of these only whether they are there */
	{"std::optional<double>", SIGNATURE_DOUBLE, VECTOR_AND_ONE, WORDS(.flag = FLAG(0))},
	{"c10::optional<double>", SIGNATURE_DOUBLE, ONE_AND_VECTOR, WORDS(.flag = FLAG(0))},
	{"std::optional<c10::ArrayRef<double> >", SIGNATURE_DOUBLES, THREE, NUMBERS_IF},
	{"c10::optional<c10::ArrayRef<double> >", SIGNATURE_DOUBLES, TWO, NUMBERS(1)},

	OTHER("c10::List<std::optional<at::Tensor> > const&", ONE),
	OTHER("c10::List<c10::optional<at::Tensor> > const&", ONE),
	OTHER("c10::Device", ONE),
	OTHER("std::optional<c10::Device>", ONE),
	OTHER("c10::optional<c10::Device>", ONE),
	OTHER("std::optional<at::Generator>", ONE),
	OTHER("c10::optional<at::Generator>", ONE),
	OTHER("at::Dimname", ONE),
	OTHER("c10::Storage", ONE),
	OTHER("c10::Stream", TWO),
	OTHER("c10::ArrayRef<at::Dimname>", TWO),
	OTHER("std::optional<c10::ArrayRef<at::Dimname> >", THREE),
	OTHER("c10::optional<c10::ArrayRef<at::Dimname> >", TWO),
	OTHER("c10::basic_string_view<char>", TWO),
	OTHER("std::basic_string_view<char, std::char_traits<char> >", TWO),
	OTHER("c10::optional<c10::basic_string_view<char> >", THREE),
	OTHER("std::optional<c10::basic_string_view<char> >", THREE),
	OTHER("std::optional<std::basic_string_view<char, std::char_traits<char> > >", THREE),
};

/* An optional row, whose size depends on which optional<> it is made of: std's, PyTorch's own. */
static const struct parameter optional_rows[][2] = {
	{{"c10::OptionalArrayRef<long>", SIGNATURE_INTS, THREE, NUMBERS_IF},
	 {"c10::OptionalArrayRef<long>", SIGNATURE_INTS, TWO, NUMBERS(1)}},
	{{"c10::OptionalArrayRef<c10::SymInt>", SIGNATURE_SYMINTS, THREE, NUMBERS_IF},
	 {"c10::OptionalArrayRef<c10::SymInt>", SIGNATURE_SYMINTS, TWO, NUMBERS(1)}},
};
/* clang-format on */

static const struct parameter *find_parameter(const char *type, size_t len, bool own_optional)
{
	for (size_t i = 0; i < ARRAY_SIZE(parameters); i++)
		if (strlen(parameters[i].type) == len && !memcmp(parameters[i].type, type, len))
			return &parameters[i];
	for (size_t i = 0; i < ARRAY_SIZE(optional_rows); i++)
		if (strlen(optional_rows[i][0].type) == len &&
		    !memcmp(optional_rows[i][0].type, type, len))
			return &optional_rows[i][own_optional];
	return NULL;
}

/* The registers and stack words that the arguments before have taken. */
struct taken {
	uint32_t integers, vectors, stack;
};
#define VECTORS 8

static uint32_t on_stack(struct taken *t, uint32_t words)
{
	t->stack += words;
	return KPROF_INPUTS_REGISTERS + t->stack - words;
}

/*
 * The number of the argument's first word, or of the only one that can be read; of one in a vector
 * register, nothing of use.
 */
static uint32_t take(struct taken *t, const struct parameter *p)
{
	uint32_t words = p->class == TWO ? 2 : 1;

	switch (p->class) {
	case THREE:
		return on_stack(t, 3);
	case VECTOR:
		return t->vectors < VECTORS ? t->vectors++ : on_stack(t, 1);
	case ONE_AND_VECTOR:
	case VECTOR_AND_ONE:
		if (t->vectors == VECTORS || t->integers == KPROF_INPUTS_REGISTERS)
			return on_stack(t, 2) + (p->class == VECTOR_AND_ONE);
		t->vectors++;
		return t->integers++;
	default:
		if (t->integers + words > KPROF_INPUTS_REGISTERS)
			return on_stack(t, words);
		t->integers += words;
		return t->integers - words;
	}
}

static int add(struct signature *s, struct taken *t, const struct parameter *p)
{
	struct kprof_inputs_plan *plan = &s->plan;
	struct kprof_input in = p->in;
	uint32_t at = take(t, p);

	if (s->nr == ARRAY_SIZE(s->arguments))
		return -E2BIG;
	s->arguments[s->nr++] = (struct signature_argument){p->kind, in.read};
	if (!in.read)
		return 0;
	if (plan->nr == KPROF_INPUTS_MAX || at + 3 > KPROF_INPUTS_MAX_WORDS)
		return -E2BIG;
	in.at = (uint8_t)at;
	plan->in[plan->nr++] = in;
	plan->stack_words = (uint8_t)t->stack;
	return 0;
}

/* The end of the type that begins at s: a comma outside of brackets, or the end of the text. */
static const char *type_end(const char *s, const char *end)
{
	int depth = 0;

	for (; s < end && (depth || *s != ','); s++)
		depth += (*s == '<' || *s == '(') - (*s == '>' || *s == ')');
	return s;
}

/*
 * Does the operator return its result in memory, whose address is then its first argument? So it
 * does with every object that cannot be copied as bytes. -ENOENT: that is not known.
 */
static int result_in_memory(const char *schema)
{
	static const char *const plain[] = {"()",         "int",    "bool",   "float",
					    "ScalarType", "Layout", "Device", "QScheme"};
	static const char *const objects[] = {"Scalar", "SymInt", "SymBool", "SymFloat"};
	const char *result = NULL;

	for (const char *at = schema; (at = strstr(at, " -> ")); at += 4)
		result = at + 4;
	if (!result)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++)
		if (!strcmp(result, plain[i]))
			return 0;
	for (size_t i = 0; i < ARRAY_SIZE(objects); i++)
		if (!strcmp(result, objects[i]))
			return 1;
	if (*result == '(' || strchr(result, '['))
		return 1;
	if (strncmp(result, "Tensor", 6))
		return -ENOENT;
	return !strchr(result, '!'); /* of a Tensor that was given, a reference is returned */
}

static int parse_parameters(struct signature *s, struct taken taken, const char *at,
			    const char *end, bool own_optional)
{
	while (++at < end) {
		const char *stop = type_end(at, end);
		const struct parameter *p;
		int err;

		at += strspn(at, " ");
		p = find_parameter(at, (size_t)(stop - at), own_optional);
		err = p ? add(s, &taken, p) : -ENOENT;
		if (err)
			return err;
		at = stop;
	}
	return 0;
}

int signature_parse(const char *mangled, const char *schema, bool own_optional,
		    struct signature *out)
{
	char *plain = demangle(mangled);
	const char *begin = plain ? strchr(plain, '(') : NULL;
	const char *end = begin ? strrchr(begin, ')') : NULL;
	int in_memory = result_in_memory(schema), err = -ENOENT;

	memset(out, 0, sizeof(*out));
	out->own_optional = own_optional;
	/*
	 * Without a schema: most operators return a Tensor, or a reference to one that they were
	 * given to change. Whether that is so is seen at the first argument, if it is a Tensor.
	 */
	if (!*schema && end && !strncmp(begin, "(at::Tensor", strlen("(at::Tensor"))) {
		out->guessed = true;
		in_memory = !strstr(begin, "at::Tensor&");
	}
	if (end && in_memory >= 0) {
		struct taken taken = {.integers = (uint32_t)in_memory};

		err = parse_parameters(out, taken, begin, end, own_optional);
	}
	free(plain);
	return plain ? err : -ENOMEM;
}
