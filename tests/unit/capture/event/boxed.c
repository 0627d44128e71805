// SPDX-License-Identifier: BSD-2-Clause
/* user/capture/event/boxed.c: which values of a boxed call are arguments, by schemas in memory. */
#include "capture/event/boxed.h"

#include <string.h>
#include <unistd.h>

#include "capture/process/process.h"
#include "kprof/wire.h"
#include "unit.h"

/* The memory of the process is our own, but for one address. */
static uint64_t missing;
static unsigned int reads;

static int read_own(void *ctx, void *to, size_t bytes, uint64_t address)
{
	(void)ctx;
	reads++;
	if (missing && address <= missing && missing < address + bytes)
		return -1;
	return process_read(getpid(), address, to, bytes);
}

static uint64_t address_of(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* ---- definitions of operators, as libstdc++ lays them out ---- */

#define MOST 8
struct process {
	uint64_t definition[32];
	uint64_t arguments[MOST * 19];
	struct counted {
		uint64_t length, capacity, counter;
		char text[128];
	} texts[2 * MOST];
	uint32_t nr_texts;
};

static void put_string(struct process *p, uint64_t *at, const char *text, bool counted)
{
	struct counted *c = &p->texts[p->nr_texts++];

	c->length = c->capacity = strlen(text);
	strcpy(c->text, text);
	at[0] = address_of(c->text);
	if (counted)
		return;
	at[1] = c->length;
	if (c->length < 16) {
		at[0] = address_of(&at[2]);
		strcpy((char *)&at[2], text);
	}
}

static const char *const names[MOST] = {"self", "other", "a_name_longer_than_16", "x", "y", "z"};

/* flag: a bool is before the schema, not behind it. bytes: of an argument */
static void define(struct process *p, const char *name, uint32_t nr, bool counted, bool flag,
		   uint32_t bytes)
{
	uint32_t words = counted ? 1 : 4, schema = 2 * words + flag;

	*p = (struct process){0};
	for (uint32_t at = 0; at <= schema; at += schema) {
		put_string(p, &p->definition[at], name, counted);
		put_string(p, &p->definition[at + words], "Tensor", counted);
	}
	if (flag)
		p->definition[schema - 1] = 1;
	for (uint32_t i = 0; i < nr; i++)
		put_string(p, &p->arguments[i * bytes / 8], names[i], counted);
	p->definition[schema + 2 * words] = address_of(p->arguments);
	p->definition[schema + 2 * words + 1] = address_of(p->arguments) + nr * bytes;
}

/* ---- records ---- */

static uint64_t words[64];
static uint32_t nr_words;

static void put(uint64_t word)
{
	words[nr_words++] = word;
}

/* A call with a tensor that is no argument, a list of them, a number, and a tensor. */
static void record(const struct process *p, const char *name)
{
	memset(words, 0, sizeof(words));
	words[KPROF_BOXED_NAME_BYTES] = strlen(name) + 1;
	words[KPROF_BOXED_OPERATOR] = address_of(p->definition);
	memcpy(&words[KPROF_BOXED_AT_FIRST], (const char *)p->definition + KPROF_BOXED_FIRST_OFF,
	       24);
	memcpy(&words[KPROF_BOXED_AT_SECOND], (const char *)p->definition + KPROF_BOXED_SECOND_OFF,
	       24);
	words[KPROF_BOXED_VALUES] = 4;
	words[KPROF_BOXED_TENSOR] = 1;
	strcpy((char *)&words[KPROF_BOXED_WORDS], name);
	nr_words = (uint32_t)(KPROF_BOXED_WORDS + (strlen(name) + 8) / 8);
	put(KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_TENSOR, KPROF_INPUT_VALUE, 1));
	for (int i = 0; i < KPROF_TENSOR_WORDS + 2; i++)
		put(100);
	put(KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_TENSORS, KPROF_INPUT_VALUE, 2));
	put(KPROF_INPUT_HEAD(KPROF_INPUT_UNREADABLE, 0));
	put(KPROF_INPUT_HEAD(KPROF_INPUT_VALUE, 0));
	for (int i = 0; i < KPROF_TENSOR_WORDS; i++)
		put(101);
	put(KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_INT, KPROF_INPUT_VALUE, 1));
	put(102);
	put(KPROF_INPUT_OF_KIND(KPROF_INPUT_IS_TENSOR, KPROF_INPUT_VALUE, 0));
	for (int i = 0; i < KPROF_TENSOR_WORDS; i++)
		put(103);
}

static struct boxed_call call(struct boxed_layout *l)
{
	struct boxed_call out;

	boxed_call(l, words, nr_words, read_own, NULL, &out);
	return out;
}

/* ---- tests ---- */

static void every_form(void)
{
	for (int form = 0; form < 4; form++) {
		struct boxed_layout l = {0};
		struct process p;
		struct boxed_call c;

		define(&p, "aten::add", 3, form & 1, form & 2, form & 1 ? 88 : 112);
		record(&p, "aten::add");
		c = call(&l);
		CHECK(c.boxed && c.known);
		CHECK_STR(c.name, "aten::add");
		CHECK_EQ(c.nr, 3);
		CHECK_EQ(l.argument, form & 1 ? 88 : 112);
		CHECK_EQ(KPROF_INPUT_KIND(c.values[0]), KPROF_INPUT_IS_TENSORS);
		CHECK(c.values + c.nr_words == words + nr_words);
		/* what was learnt holds for operators whose names say nothing */
		define(&p, "own::x", 2, form & 1, form & 2, form & 1 ? 88 : 112);
		memset(p.arguments, 0, sizeof(p.arguments));
		record(&p, "own::x");
		reads = 0;
		c = call(&l);
		CHECK(c.known);
		CHECK_EQ(c.nr, 2);
		CHECK_EQ(reads, 0);
		CHECK_EQ(KPROF_INPUT_KIND(c.values[0]), KPROF_INPUT_IS_INT);
		/* the vector is empty, or its size is not one of so many arguments */
		for (int i = 0; i < 2; i++)
			words[l.at + 1] = words[l.at] + i;
		CHECK(!call(&l).known);
		words[l.at + 1] = words[l.at];
		c = call(&l);
		CHECK(c.known);
		CHECK_EQ(c.nr, 0);
		CHECK_EQ(c.nr_words, 0);
	}
}

static bool refused(struct process *p, const char *name)
{
	struct boxed_layout l = {0};
	struct boxed_call c;

	record(p, name);
	c = call(&l);
	CHECK_STR(c.name, name);
	CHECK_EQ(l.argument, 0);
	return !c.known && !c.tensor_argument && l.failures == 1;
}

static void no_proof(void)
{
	struct process p;

	define(&p, "aten::add", 2, false, false, 112);
	p.texts[2].text[0] = 'b'; /* unused: the name is short */
	strcpy((char *)&p.definition[8 + 2], "aten::adb");
	CHECK(refused(&p, "aten::add")); /* another name */
	define(&p, "aten::add", 2, false, false, 112);
	p.definition[8] = address_of("aten::add");
	CHECK(refused(&p, "aten::add")); /* a short name that is elsewhere */
	define(&p, "aten::add", 2, true, false, 72);
	CHECK(refused(&p, "aten::add")); /* arguments that are too small, */
	define(&p, "aten::add", 1, true, false, 160);
	CHECK(refused(&p, "aten::add")); /* too large, */
	define(&p, "aten::add", 2, true, false, 88);
	p.texts[5].text[0] = '\1';
	CHECK(refused(&p, "aten::add")); /* or without a name */
	define(&p, "aten::add", 2, false, true, 112);
	missing = address_of(&p.arguments[14]);
	CHECK(refused(&p, "aten::add"));
	missing = 0;
}

/* However often one without arguments is called first: the next one is learnt from. */
static void no_arguments(void)
{
	struct boxed_layout l = {0};
	struct process p;
	struct boxed_call c;

	define(&p, "own::nothing", 0, false, true, 112);
	record(&p, "own::nothing");
	for (int i = 0; i < 1000; i++)
		CHECK(!call(&l).known);
	CHECK_EQ(l.failures, 0);
	define(&p, "aten::add", 2, false, true, 112);
	record(&p, "aten::add");
	CHECK(call(&l).known);
	define(&p, "own::nothing", 0, false, true, 112);
	record(&p, "own::nothing");
	c = call(&l);
	CHECK(c.known);
	CHECK_EQ(c.nr, 0);
}

/* What the kernel's program could not read at that moment is not taken for no arguments. */
static void not_read(void)
{
	for (int form = 0; form < 4; form++) {
		struct boxed_layout l = {0};
		struct process p;

		define(&p, "aten::add", 2, form & 1, form & 2, 112);
		record(&p, "aten::add");
		CHECK(call(&l).known);
		for (uint32_t i = 0; i < 3; i++)
			words[KPROF_BOXED_AT_FIRST + i] = words[KPROF_BOXED_AT_SECOND + i] = 2 - i;
		CHECK(!call(&l).known);
	}
	words[KPROF_BOXED_VALUES] = UINT64_MAX;
	CHECK(!call(NULL).known);
}

static void given_up(void)
{
	struct boxed_layout l = {0};
	struct process p;

	define(&p, "aten::add", 1, true, false, 160);
	record(&p, "aten::add");
	for (int i = 0; i < 1000; i++)
		CHECK(!call(&l).known);
	reads = 0;
	CHECK(!call(&l).known);
	CHECK_EQ(reads, 0);
}

static void damaged(void)
{
	struct boxed_layout l = {0};
	struct process p;
	struct boxed_call c;

	define(&p, "aten::add", 2, false, false, 112);
	record(&p, "aten::add");
	for (uint32_t nr = 0; nr <= nr_words; nr++) { /* cut anywhere */
		boxed_call(&l, words, nr, read_own, NULL, &c);
		CHECK(!c.known || (c.values >= words && c.values + c.nr_words == words + nr));
		CHECK_EQ(c.name != NULL, nr >= KPROF_BOXED_WORDS + 2);
	}
	words[KPROF_BOXED_NAME_BYTES] = 9; /* no NUL */
	c = call(&l);
	CHECK(!c.name && !c.known);
	words[KPROF_BOXED_NAME_BYTES] = UINT64_MAX;
	CHECK(!call(&l).name);
	record(&p, "aten::add");
	words[KPROF_BOXED_VALUES] = 1; /* fewer than there are arguments */
	c = call(&l);
	CHECK(c.name && !c.known);
	record(&p, "aten::add");
	words[KPROF_BOXED_VALUES] = UINT64_MAX; /* 32 of them follow, as it seems */
	c = call(&l);
	CHECK(c.known);
	CHECK_EQ(c.nr_words, 0);
}

static void all_of_them(void)
{
	struct process p;
	struct boxed_call c;

	define(&p, "forward", 0, false, false, 112);
	record(&p, "forward");
	c = call(NULL);
	CHECK(c.known);
	CHECK_EQ(c.nr, 4);
	words[KPROF_BOXED_VALUES] = KPROF_INPUTS_MAX + 1;
	CHECK(!call(NULL).known);
	words[KPROF_BOXED_VALUES] = (1ull << 32) + 1;
	CHECK(!call(NULL).known);
}

static void sequence_numbers(void)
{
	const uint32_t sure = KPROF_WIRE_F_SEQUENCE | KPROF_WIRE_F_NO_RET,
		       maybe = KPROF_WIRE_F_MAYBE | KPROF_WIRE_F_NO_RET;
	struct boxed_layout l = {0};
	struct process p;
	struct boxed_call c = {0};

	CHECK_EQ(boxed_flags(sure, &c), sure); /* not boxed */
	define(&p, "aten::add", 2, false, false, 112);
	record(&p, "aten::add");
	c = call(&l);
	CHECK_EQ(boxed_flags(sure, &c), sure);
	CHECK_EQ(boxed_flags(maybe, &c), maybe);
	words[KPROF_BOXED_TENSOR] = 3; /* not an argument */
	c = call(&l);
	CHECK_EQ(boxed_flags(sure, &c), maybe);
	define(&p, "own::add", 2, false, false, 112);
	record(&p, "own::add");
	c = call(&l);
	CHECK(c.known && c.tensor_argument);
	CHECK_EQ(boxed_flags(sure, &c), maybe);
	CHECK_EQ(boxed_flags(KPROF_WIRE_F_NO_RET, &c), KPROF_WIRE_F_NO_RET);
}

UNIT_MAIN(TEST(every_form), TEST(no_proof), TEST(no_arguments), TEST(not_read), TEST(given_up),
	  TEST(damaged), TEST(all_of_them), TEST(sequence_numbers))
