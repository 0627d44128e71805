// SPDX-License-Identifier: BSD-2-Clause
/* What was read of a call's arguments, as text. tests/shapes.bats holds it against PyTorch. */
#include "capture/event/inputs_text.h"

#include <errno.h>

#include "unit.h"
#include "util/util.h"

#define VALUE(nr) KPROF_INPUT_HEAD(KPROF_INPUT_VALUE, nr)
#define NONE KPROF_INPUT_HEAD(KPROF_INPUT_NONE, 0)
#define UNREADABLE KPROF_INPUT_HEAD(KPROF_INPUT_UNREADABLE, 0)
#define FLOAT 6
#define FOREIGN (1ull << 60)

enum { PLAIN = 1, SPARSE, UNDEFINED, STRANGE }; /* in the place of vtables */

static const char *class_of(void *ctx, uint64_t vtable)
{
	static const char *const names[] = {
		[PLAIN] = "c10::TensorImpl",
		[SPARSE] = "at::SparseTensorImpl",
		[UNDEFINED] = "c10::UndefinedTensorImpl",
		[STRANGE] = "c10::TensorImpl::Other",
	};

	(void)ctx;
	return vtable < sizeof(names) / sizeof(names[0]) ? names[vtable] : NULL;
}

static struct signature signature_of(const struct signature_argument *arguments, uint8_t nr)
{
	struct signature s = {.nr = nr};

	for (uint8_t i = 0; i < nr; i++) {
		s.arguments[i] = arguments[i];
		s.plan.nr += arguments[i].read != KPROF_INPUT_END;
	}
	return s;
}

static void expect(const struct signature *s, const uint64_t *words, uint32_t nr,
		   const char *const want[INPUTS_KEYS], uint32_t unknown)
{
	struct inputs_text text;
	int err = inputs_text(s, words, nr, class_of, NULL, &text);

	CHECK_EQ(err, 0);
	for (int i = 0; i < INPUTS_KEYS && !err; i++)
		CHECK_STR(text.json[i], want[i]);
	CHECK_EQ(text.unknown, unknown);
	for (int i = 0; i < INPUTS_KEYS; i++)
		free(text.json[i]);
}

#define EXPECT(arguments, words, unknown, ...)                                               \
	do {                                                                                 \
		struct signature s_ =                                                        \
			signature_of(arguments, sizeof(arguments) / sizeof((arguments)[0])); \
		expect(&s_, words, sizeof(words) / sizeof((words)[0]),                       \
		       (const char *const[INPUTS_KEYS]){__VA_ARGS__}, unknown);              \
	} while (0)

static const struct signature_argument tensor[] = {{SIGNATURE_TENSOR, KPROF_INPUT_TENSOR}};

static void tensors(void)
{
	static const uint64_t plain[] = {VALUE(2), PLAIN, 6, FLOAT, 2, 3, 3, 1};
	static const uint64_t sparse[] = {VALUE(2), SPARSE, 6, FLOAT, 2, 3, 3, 1};
	static const uint64_t scalar[] = {VALUE(0), PLAIN, 1, 4};
	static const uint64_t undefined[] = {VALUE(1), UNDEFINED, 0, 99, 0, 1};
	static const uint64_t none[] = {NONE};

	EXPECT(tensor, plain, 0, "[[2, 3]]", "[\"float\"]", "[[3, 1]]", "[\"\"]");
	EXPECT(tensor, sparse, 0, "[[2, 3]]", "[\"float\"]", "[[]]", "[\"\"]");
	EXPECT(tensor, scalar, 0, "[[]]", "[\"long int\"]", "[[]]", "[\"\"]");
	EXPECT(tensor, undefined, 0, "[[]]", "[\"\"]", "[[]]", "[\"\"]");
	EXPECT(tensor, none, 0, "[[]]", "[\"\"]", "[[]]", "[\"\"]");
}

#define UNKNOWN "[[]]", "[\"unknown\"]", "[[]]", "[\"\"]"

static void tensors_that_are_not_believed(void)
{
	static const uint64_t numel[] = {VALUE(2), PLAIN, 7, FLOAT, 2, 3, 3, 1};
	static const uint64_t negative[] = {VALUE(1), PLAIN, -1ull, FLOAT, -1ull, 1};
	static const uint64_t overflow[] = {VALUE(2), PLAIN, 0, FLOAT, 1ull << 62, 4, 1, 1};
	static const uint64_t type[] = {VALUE(0), PLAIN, 1, 999};
	static const uint64_t python[] = {VALUE(0), PLAIN, 1, FLOAT | FOREIGN};
	static const uint64_t class[] = {VALUE(0), STRANGE, 1, FLOAT};
	static const uint64_t no_class[] = {VALUE(0), 77, 1, FLOAT};
	static const uint64_t cut[] = {VALUE(2), PLAIN, 6, FLOAT, 2, 3, 3};
	static const uint64_t huge[] = {VALUE(0xffffffff), PLAIN, 6, FLOAT};
	static const uint64_t unreadable[] = {UNREADABLE};

	EXPECT(tensor, numel, 1, UNKNOWN);
	EXPECT(tensor, negative, 1, UNKNOWN);
	EXPECT(tensor, overflow, 1, UNKNOWN);
	EXPECT(tensor, type, 1, UNKNOWN);
	EXPECT(tensor, python, 1, UNKNOWN);
	EXPECT(tensor, class, 1, UNKNOWN);
	EXPECT(tensor, no_class, 1, UNKNOWN);
	EXPECT(tensor, cut, 1, UNKNOWN);
	EXPECT(tensor, huge, 1, UNKNOWN);
	EXPECT(tensor, unreadable, 1, UNKNOWN);
}

static void lists(void)
{
	static const struct signature_argument two[] = {
		{SIGNATURE_TENSORS, KPROF_INPUT_TENSORS},
		{SIGNATURE_INTS, KPROF_INPUT_NUMBERS},
	};
	static const struct signature_argument each[] = {
		{SIGNATURE_EACH_TENSOR, KPROF_INPUT_TENSOR_VECTOR}};
	static const struct signature_argument doubles[] = {
		{SIGNATURE_DOUBLES, KPROF_INPUT_NUMBERS}};
	static const struct signature_argument syms[] = {{SIGNATURE_SYMINTS, KPROF_INPUT_NUMBERS}};
	static const uint64_t words[] = {VALUE(2), VALUE(1), PLAIN,     2,    FLOAT, 2,
					 1,        VALUE(1), UNDEFINED, 0,    0,     0,
					 1,        VALUE(2), 5,         -6ull};
	static const uint64_t long_ones[] = {VALUE(31), VALUE(31)};
	static const uint64_t vector[] = {VALUE(2), VALUE(0), PLAIN, 1, FLOAT,
					  VALUE(0), SPARSE,   1,     7};
	static const uint64_t numbers[] = {VALUE(2), 0x4004000000000000, 0x4000000000000000};
	static const uint64_t symbolic[] = {VALUE(1), 2ull << 62};

	EXPECT(two, words, 0, "[[[2], []], []]", "[\"TensorList\", \"ScalarList\"]",
	       "[[[1], []], []]", "[\"\", \"[5, -6]\"]");
	EXPECT(two, long_ones, 0, "[[], []]", "[\"TensorList\", \"\"]", "[[], []]", "[\"\", \"\"]");
	EXPECT(each, vector, 0, "[[], []]", "[\"float\", \"double\"]", "[[], []]", "[\"\", \"\"]");
	EXPECT(doubles, numbers, 0, "[[]]", "[\"ScalarList\"]", "[[]]", "[\"[2.5, 2.]\"]");
	EXPECT(syms, symbolic, 1, UNKNOWN);
}

static void numbers(void)
{
	static const struct signature_argument all[] = {
		{SIGNATURE_BOOL, KPROF_INPUT_WORDS},   {SIGNATURE_BYTE, KPROF_INPUT_WORDS},
		{SIGNATURE_DOUBLE, KPROF_INPUT_END},   {SIGNATURE_INT, KPROF_INPUT_WORDS},
		{SIGNATURE_INT, KPROF_INPUT_WORDS},    {SIGNATURE_DOUBLE, KPROF_INPUT_WORDS},
		{SIGNATURE_DOUBLE, KPROF_INPUT_WORDS}, {SIGNATURE_BOOLS_2, KPROF_INPUT_WORDS},
		{SIGNATURE_OTHER, KPROF_INPUT_END},    {SIGNATURE_SYMINT, KPROF_INPUT_MEMORY},
	};
	static const uint64_t words[] = {VALUE(1), 1,    VALUE(1), 0xff,   VALUE(1), 7, NONE,
					 VALUE(0), NONE, VALUE(1), 0x0001, VALUE(1), 9};
	static const struct signature_argument scalars[] = {
		{SIGNATURE_SCALAR, KPROF_INPUT_SCALAR}, {SIGNATURE_SCALAR, KPROF_INPUT_SCALAR},
		{SIGNATURE_SCALAR, KPROF_INPUT_SCALAR}, {SIGNATURE_SCALAR, KPROF_INPUT_SCALAR},
		{SIGNATURE_SCALAR, KPROF_INPUT_SCALAR},
	};
	static const uint64_t values[] = {VALUE(2), 0, 0x3fb999999999999a, /* 0.1 */
					  VALUE(2), 1, -3ull,
					  VALUE(2), 4, 1,
					  VALUE(2), 3, 1, /* a complex number */
					  NONE};
	static const uint64_t short_one[] = {VALUE(1), 0, 0};

	EXPECT(all, words, 2, "[[], [], [], [], [], [], [], [], [], []]",
	       "[\"Scalar\", \"Scalar\", \"Scalar\", \"Scalar\", \"\", \"Scalar\", \"\", "
	       "\"ScalarList\", \"\", \"Scalar\"]",
	       "[[], [], [], [], [], [], [], [], [], []]",
	       "[\"True\", \"-1\", \"\", \"7\", \"\", \"\", \"\", \"[True, False]\", \"\", \"9\"]");
	EXPECT(scalars, values, 1, "[[], [], [], [], []]",
	       "[\"Scalar\", \"Scalar\", \"Scalar\", \"Scalar\", \"\"]", "[[], [], [], [], []]",
	       "[\"0.10000000000000001\", \"-3\", \"True\", \"\", \"\"]");
	struct signature one = signature_of(scalars, 1);
	expect(&one, short_one, 3, (const char *const[INPUTS_KEYS]){UNKNOWN}, 1);
}

/* equal(Tensor, Tensor) -> bool, taken for one that returns a Tensor: the second is then none. */
static void a_wrong_guess(void)
{
	static const struct signature_argument two[] = {{SIGNATURE_TENSOR, KPROF_INPUT_TENSOR},
							{SIGNATURE_TENSOR, KPROF_INPUT_TENSOR}};
	static const uint64_t wrong[] = {VALUE(1), PLAIN, 2, FLOAT, 2, 1, UNREADABLE};
	static const uint64_t right[] = {VALUE(0), PLAIN, 1, FLOAT, VALUE(0), PLAIN, 1, FLOAT};
	struct signature s = signature_of(two, 2);
	struct inputs_text text;

	s.guessed = true;
	CHECK_EQ(inputs_text(&s, wrong, 7, class_of, NULL, &text), -ENODATA);
	expect(&s, right, 8,
	       (const char *const[INPUTS_KEYS]){"[[], []]", "[\"float\", \"float\"]", "[[], []]",
						"[\"\", \"\"]"},
	       0);
}

static void nothing_to_say(void)
{
	static const uint64_t other[] = {VALUE(0), STRANGE, 1, FLOAT};
	struct signature s = signature_of(tensor, 1), empty = {0};
	struct inputs_text text;

	CHECK_EQ(inputs_text(&s, NULL, 0, class_of, NULL, &text), -ENODATA);
	CHECK_EQ(inputs_text(&empty, NULL, 0, class_of, NULL, &text), -ENODATA);
	s.guessed = true; /* the first argument is no tensor: so the guess was wrong */
	CHECK_EQ(inputs_text(&s, other, 4, class_of, NULL, &text), -ENODATA);
}

#define IS(kind, nr) KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_##kind, KPROF_INPUT_VALUE, nr)

/* Words that say themselves what they are. */
static void observed(void)
{
	static const uint64_t words[] = {12,
					 IS(TENSOR, 2),
					 PLAIN,
					 6,
					 FLOAT,
					 2,
					 3,
					 3,
					 1,
					 IS(OTHER, 0),
					 IS(TENSORS, 1),
					 IS(TENSOR, 1),
					 PLAIN,
					 2,
					 FLOAT,
					 2,
					 1,
					 IS(DOUBLE, 1),
					 0x3fe0000000000000,
					 IS(INT, 1),
					 -5ull,
					 IS(BOOL, 1),
					 1,
					 IS(INTS, 2),
					 1,
					 2,
					 IS(DOUBLES, 1),
					 0x3ff0000000000000,
					 IS(BOOLS, 2),
					 0,
					 1,
					 IS(NUMBER, 0),
					 IS(UNKNOWN, 0),
					 IS(INTS, 0)};
	static const char *const want[INPUTS_KEYS] = {
		"[[2, 3], [], [[2]], [], [], [], [], [], [], [], [], []]",
		("[\"float\", \"\", \"TensorList\", \"Scalar\", \"Scalar\", \"Scalar\", "
		 "\"ScalarList\", \"ScalarList\", \"ScalarList\", \"Scalar\", \"unknown\", "
		 "\"ScalarList\"]"),
		"[[3, 1], [], [[1]], [], [], [], [], [], [], [], [], []]",
		("[\"\", \"\", \"\", \"0.5\", \"-5\", \"True\", \"[1, 2]\", \"[1.]\", "
		 "\"[False, True]\", \"\", \"\", \"[]\"]")};
	struct inputs_text text;

	CHECK_EQ(inputs_text_observed(words, ARRAY_SIZE(words), class_of, NULL, &text), 0);
	for (int i = 0; i < INPUTS_KEYS; i++) {
		CHECK_STR(text.json[i], want[i]);
		free(text.json[i]);
	}
	CHECK_EQ(text.unknown, 2);
	CHECK_EQ(text.nr, 12);
	/* cut anywhere: as many inputs, some of them unknown */
	for (uint32_t nr = 1; nr < ARRAY_SIZE(words); nr++) {
		CHECK_EQ(inputs_text_observed(words, nr, class_of, NULL, &text), 0);
		CHECK_EQ(text.nr, 12);
		CHECK(text.unknown > 2 || nr > 31);
		for (int i = 0; i < INPUTS_KEYS; i++)
			free(text.json[i]);
	}
	CHECK_EQ(inputs_text_observed(words, 0, class_of, NULL, &text), -ENODATA);
}

UNIT_MAIN(TEST(tensors), TEST(tensors_that_are_not_believed), TEST(lists), TEST(numbers),
	  TEST(a_wrong_guess), TEST(nothing_to_say), TEST(observed))
