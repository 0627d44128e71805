// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where arguments are passed, by the calling convention. That it holds for the operators of whole
 * releases is what tests/shapes.bats shows.
 */
#include <errno.h>

#include "symbol/names/signature.h"
#include "unit.h"

#define OP "_ZN2at4_ops1X4callE"
#define TENSOR "RKNS_6TensorE"

static struct signature parsed(const char *parameters, const char *schema, bool own, int err)
{
	char mangled[512];
	struct signature s;

	snprintf(mangled, sizeof(mangled), OP "%s", parameters);
	CHECK_EQ(signature_parse(mangled, schema, own, &s), err);
	return s;
}

static void expect_read(const struct signature *s, int i, int read, int at, int nr)
{
	CHECK_EQ(s->plan.in[i].read, read);
	CHECK_EQ(s->plan.in[i].at, at);
	CHECK_EQ(s->plan.in[i].nr, nr);
}

/* Of a value: where it is, how large, and where it is said whether it is there, each in bytes. */
static void expect_value(const struct signature *s, int i, int at, int value, int bytes, int flag)
{
	CHECK_EQ(s->plan.in[i].at, at);
	CHECK_EQ(s->plan.in[i].value, value);
	CHECK_EQ(s->plan.in[i].bytes, bytes);
	CHECK_EQ(s->plan.in[i].flag, flag + 1);
}

static void where_the_result_goes(void)
{
	static const struct {
		const char *result;
		int at; /* of the first argument */
	} cases[] = {
		{"Tensor", 1},     {"Tensor(a)", 1},
		{"Tensor(a!)", 0}, {"(Tensor, Tensor)", 1},
		{"Tensor[]", 1},   {"()", 0},
		{"bool", 0},       {"int", 0},
		{"Scalar", 1},     {"SymInt", 1},
		{"ScalarType", 0}, {"(Tensor(a!), Tensor(b!))", 1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char schema[128];
		struct signature s;

		snprintf(schema, sizeof(schema), "x(Tensor self, str mode=\"->\") -> %s",
			 cases[i].result);
		s = parsed(TENSOR, schema, false, 0);
		CHECK_EQ(s.nr, 1);
		CHECK(!s.guessed);
		expect_read(&s, 0, KPROF_INPUT_TENSOR, cases[i].at, 0);
	}
	parsed(TENSOR, "x(Tensor self) -> Storage", false, -ENOENT);
}

static void without_a_schema(void)
{
	struct signature s = parsed(TENSOR, "", false, 0);

	CHECK(s.guessed);
	CHECK_EQ(s.plan.in[0].at, 1);
	s = parsed("RNS_6TensorE", "", false, 0); /* changes what it is given, and returns that */
	CHECK_EQ(s.plan.in[0].at, 0);
	s = parsed(TENSOR "RS2_", "", false, 0); /* … or its last argument */
	CHECK_EQ(s.plan.in[0].at, 0);
	parsed("b", "", false, -ENOENT); /* nothing would show that the guess was wrong */
}

/* add.Tensor: everything in registers. */
static void in_registers(void)
{
	struct signature s = parsed(TENSOR "S4_RKN3c106ScalarE", "add(…) -> Tensor", false, 0);

	CHECK_EQ(s.nr, 3);
	CHECK_EQ(s.plan.nr, 3);
	CHECK_EQ(s.plan.stack_words, 0);
	expect_read(&s, 0, KPROF_INPUT_TENSOR, 1, 0);
	expect_read(&s, 1, KPROF_INPUT_TENSOR, 2, 0);
	expect_read(&s, 2, KPROF_INPUT_SCALAR, 3, 4);
	CHECK_EQ(s.arguments[2].kind, SIGNATURE_SCALAR);
}

/* (Tensor, double, long × 4, ArrayRef<long>, bool): two words that no longer fit go to the stack */
static void rows_move_to_the_stack(void)
{
	struct signature s = parsed(TENSOR "dlllN3c108ArrayRefIlEEbb", "x(…) -> Tensor", false, 0);

	CHECK_EQ(s.nr, 8);
	CHECK_EQ(s.plan.nr, 7); /* the double cannot be read */
	CHECK_EQ(s.arguments[1].read, KPROF_INPUT_END);
	expect_read(&s, 1, KPROF_INPUT_WORDS, 2, 0);
	expect_read(&s, 3, KPROF_INPUT_WORDS, 4, 0);
	expect_read(&s, 4, KPROF_INPUT_NUMBERS, KPROF_INPUTS_REGISTERS, 1);
	expect_read(&s, 5, KPROF_INPUT_WORDS, 5, 0); /* what comes after still has a register */
	expect_read(&s, 6, KPROF_INPUT_WORDS, KPROF_INPUTS_REGISTERS + 2, 0);
	CHECK_EQ(s.plan.stack_words, 3);
}

static void optional_values(void)
{
	struct signature s = parsed(TENSOR "St8optionalIlES5_IdEN3c1016OptionalArrayRefIlEE",
				    "x(…) -> ()", false, 0);

	expect_value(&s, 1, 1, 0, 8, 8);
	expect_value(&s, 2, 3, 0, 0, 0); /* only whether the double is there */
	expect_read(&s, 3, KPROF_INPUT_NUMBERS_IF, KPROF_INPUTS_REGISTERS, 1);
	CHECK_EQ(s.plan.stack_words, 3);

	/* PyTorch's own: the flag comes first, and a row tells by itself that it is not there */
	s = parsed(TENSOR "N3c108optionalIlEENS5_16OptionalArrayRefIlEE", "x(…) -> ()", true, 0);
	expect_value(&s, 1, 1, 8, 8, 0);
	expect_read(&s, 2, KPROF_INPUT_NUMBERS, 3, 1);
	CHECK_EQ(s.plan.stack_words, 0);
}

static void what_is_not_understood(void)
{
	char many[KPROF_INPUTS_MAX + 3];

	parsed(TENSOR "f", "x(…) -> Tensor", false, -ENOENT);
	parsed("no symbol", "x(…) -> Tensor", false, -ENOENT);
	memset(many, 'b', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	parsed(many, "x(…) -> ()", false, -E2BIG);
}

UNIT_MAIN(TEST(where_the_result_goes), TEST(without_a_schema), TEST(in_registers),
	  TEST(rows_move_to_the_stack), TEST(optional_values), TEST(what_is_not_understood))
