// SPDX-License-Identifier: BSD-2-Clause
/* A call's inputs, of objects that look like PyTorch's. tests/shapes.bats has real ones. */
#include "gpu/pytorch/inputs.h"

#include "unit.h"

struct value { /* c10::IValue */
	uint64_t word;
	uint32_t tag, pad;
};

struct type { /* c10::Type */
	uint64_t vtable;
	uint32_t kind;
};

struct list { /* c10::detail::ListImpl */
	uint64_t vtable, references;
	const struct value *begin, *end, *room;
	const struct type *type;
};

struct tensor { /* c10::TensorImpl: sizes, strides, the number of elements, type and flags */
	uint64_t vtable, storage, dims, sizes[5], strides[5], offset, numel, type;
};

static struct { /* at::RecordFunction */
	uint64_t before[3], sequence;
	const struct value *inputs;
	uint64_t nr;
} record;

static const struct kprof_agent_layout layout = {.inputs_off = 32,
						 .sizes_off = 16,
						 .list_off = 16,
						 .list_tag = 14,
						 .tensor_kind = 3,
						 .type_mask = 0xffff};
enum { NONE, TENSOR, STORAGE, DOUBLE, COMPLEX, INT, SYMINT = 7, BOOL = 10, TUPLE, LIST = 14 };

static uint64_t words[KPROF_AGENT_INPUTS_WORDS];
static bool any;

static size_t read_all(const struct value *inputs, uint64_t nr)
{
	record.inputs = inputs;
	record.nr = nr;
	return inputs__read(&layout, &record, words, &any);
}

#define OBJECT(p) ((uint64_t)(uintptr_t)(p))
#define IS(kind, nr) KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_##kind, KPROF_INPUT_VALUE, nr)
#define EXPECT(inputs, ...)                                                          \
	do {                                                                         \
		const uint64_t want_[] = {__VA_ARGS__};                              \
		size_t nr_ = read_all(inputs, sizeof(inputs) / sizeof((inputs)[0])); \
		CHECK_EQ(nr_, sizeof(want_) / sizeof(want_[0]));                     \
		CHECK(!memcmp(words, want_, sizeof(want_)));                         \
	} while (0)

static void tensors(void)
{
	static const uint64_t six[] = {1, 2, 1, 1, 1, 3, 6, 3, 3, 3, 3, 1};
	const struct tensor flat = {.vtable = 70,
				    .dims = 1,
				    .sizes = {4},
				    .strides = {1},
				    .numel = 4,
				    .type = 0xff00000000000006};
	const struct tensor deep = {
		.vtable = 70, .dims = 6, .sizes = {OBJECT(six)}, .numel = 6, .type = 5};
	const struct tensor broken = {.vtable = 70, .dims = 1000};
	const struct value inputs[] = {{OBJECT(&flat), TENSOR, 0},
				       {OBJECT(&deep), TENSOR, 0},
				       {OBJECT(&broken), TENSOR, 0},
				       {0, TENSOR, 0},
				       {0, NONE, 0}};
	const uint64_t unreadable =
		KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_TENSOR, KPROF_INPUT_UNREADABLE, 0);

	EXPECT(inputs, 5, IS(TENSOR, 1), 70, 4, 6, 4, 1, IS(TENSOR, 6), 70, 6, 5, 1, 2, 1, 1, 1, 3,
	       6, 3, 3, 3, 3, 1, unreadable, unreadable, IS(OTHER, 0));
}

static void numbers(void)
{
	const struct value inputs[] = {{7, DOUBLE, 0},  {8, INT, 0},    {0xabcd01, BOOL, 0},
				       {1, COMPLEX, 0}, {1, SYMINT, 0}, {1, STORAGE, 0},
				       {1, TUPLE, 0}};

	EXPECT(inputs, 7, IS(DOUBLE, 1), 7, IS(INT, 1), 8, IS(BOOL, 1), 1, IS(NUMBER, 0),
	       IS(NUMBER, 0), IS(OTHER, 0), IS(OTHER, 0));
}

static void lists(void)
{
	static const struct type of_tensors = {.kind = 3}, of_others = {.kind = 8};
	const struct tensor flat = {
		.vtable = 70, .dims = 1, .sizes = {4}, .strides = {1}, .numel = 4, .type = 6};
	const struct value of_ints[] = {{3, INT, 0}, {4, INT, 0}},
			   mixed[] = {{3, INT, 0}, {4, BOOL, 0}};
	const struct value of_flat[] = {{OBJECT(&flat), TENSOR, 0}},
			   none_first[] = {{0, NONE, 0}, {OBJECT(&flat), TENSOR, 0}};
	static const struct value many[31];
	const struct list ints = {.begin = of_ints, .end = of_ints + 2, .type = &of_others};
	const struct list two_kinds = {.begin = mixed, .end = mixed + 2, .type = &of_others};
	const struct list flats = {.begin = of_flat, .end = of_flat + 1, .type = &of_tensors};
	const struct list optional = {
		.begin = none_first, .end = none_first + 2, .type = &of_others};
	const struct list empty = {.type = &of_others}, no_tensors = {.type = &of_tensors};
	const struct list long_one = {.begin = many, .end = many + 31, .type = &of_tensors};
	const struct value inputs[] = {{OBJECT(&ints), LIST, 0},     {OBJECT(&two_kinds), LIST, 0},
				       {OBJECT(&flats), LIST, 0},    {OBJECT(&optional), LIST, 0},
				       {OBJECT(&empty), LIST, 0},    {OBJECT(&no_tensors), LIST, 0},
				       {OBJECT(&long_one), LIST, 0}, {0, LIST, 0}};

	EXPECT(inputs, 8, IS(INTS, 2), 3, 4, IS(UNKNOWN, 0), IS(TENSORS, 1), IS(TENSOR, 1), 70, 4,
	       6, 4, 1, IS(OTHER, 0), IS(INTS, 0), IS(TENSORS, 0), IS(TENSORS, 31), IS(OTHER, 0));
}

/* What there is no room for is left out; an operator with very many inputs has none. */
static void too_many(void)
{
	static struct value inputs[KPROF_INPUTS_MAX + 1];
	static uint64_t sizes[2 * KPROF_INPUTS_MAX_DIMS];
	const struct tensor deep = {.dims = KPROF_INPUTS_MAX_DIMS, .sizes = {OBJECT(sizes)}};

	for (size_t i = 0; i <= KPROF_INPUTS_MAX; i++)
		inputs[i] = (struct value){OBJECT(&deep), TENSOR, 0};
	CHECK_EQ(read_all(inputs, KPROF_INPUTS_MAX), KPROF_AGENT_INPUTS_WORDS);
	CHECK_EQ(words[0], KPROF_INPUTS_MAX);
	CHECK_EQ(read_all(inputs, KPROF_INPUTS_MAX + 1), 0);
	CHECK(any);
	CHECK_EQ(read_all(inputs, 0), 0);
	CHECK(!any);
	CHECK_EQ(read_all(NULL, 3), 0);
	CHECK(!any);
}

UNIT_MAIN(TEST(tensors), TEST(numbers), TEST(lists), TEST(too_many))
