// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of Python's threads in memory that is made up: each form that dicts and attributes have in
 * some release, and memory that is hostile. Real interpreters are tests/python.bats' part.
 */
#include <errno.h>

#include "symbol/python/python.h"
#include "symbol/python/priv.h"
#include "unit.h"
#include "util/util.h"

#define BASE 0x10000ull
#define MAX_READS 100000

static uint8_t image[1 << 16]; /* at BASE */
static uint64_t noise;         /* not 0: every address can be read, and holds anything */
static uint64_t reads;

static int fake_read(void *ctx, void *to, size_t bytes, uint64_t address)
{
	uint8_t *out = to;

	reads++;
	if (noise) {
		if (hash64(address ^ noise) % 4096 == 0)
			return -EFAULT;
		for (size_t i = 0; i < bytes; i += 8 - ((address + i) & 7)) {
			/* Words that are small, or addresses nearby: they lead on. */
			uint64_t word = hash64(((address + i) & 0xfff8) ^ noise),
				 part = 8 - ((address + i) & 7);

			word = word & 1 ? word >> 8 & 0xff : (word & 0xfff8) + BASE;
			word >>= ((address + i) & 7) * 8;
			memcpy(out + i, &word, part < bytes - i ? part : bytes - i);
		}
		return 0;
	}
	if (address < BASE || bytes > sizeof(image) || address - BASE > sizeof(image) - bytes)
		return -EFAULT;
	memcpy(to, image + (address - BASE), bytes);
	return 0;
}

static const struct python_memory memory = {.read = fake_read};

static uint64_t used; /* of the image */

static uint64_t make(size_t bytes)
{
	uint64_t at = BASE + used;

	used += (bytes + 15) & ~15ull;
	if (used > sizeof(image))
		abort();
	return at;
}

static void put(uint64_t address, uint64_t value, size_t bytes)
{
	memcpy(image + (address - BASE), &value, bytes);
}

static uint64_t make_str(const struct kprof_python *p, const char *text)
{
	uint64_t at = make(p->str_ascii + strlen(text) + 1);

	put(at + p->str_length, strlen(text), 8);
	put(at + p->str_state, (uint64_t)(1 | 1 << 3 | 1 << 4) << p->str_kind, 4);
	memcpy(image + (at + p->str_ascii - BASE), text, strlen(text));
	return at;
}

/* Room for nr entries, as the release has it; kind: of 3.11 and later. */
static uint64_t make_keys(const struct kprof_python *p, uint64_t nr, uint8_t kind,
			  uint64_t *entries)
{
	bool old = python_minor(p->version) <= 10;
	size_t index = old ? 16 : 64;
	uint64_t at = make(40 + index + (nr + 1) * 24);

	if (old) {
		put(at + 8, index, 8);
		put(at + 32, nr, 8);
	} else {
		put(at + 8, 6, 1);
		put(at + 9, 6, 1);
		put(at + 10, kind, 1);
		put(at + 24, nr, 8);
	}
	*entries = at + (old ? 40 : 32) + index;
	return at;
}

struct item {
	uint64_t hash, key, value;
};

enum { GENERAL, UNICODE, SPLIT };

static uint64_t make_dict(const struct kprof_python *p, const struct item *items, size_t nr,
			  uint8_t kind)
{
	bool plain = kind == GENERAL || python_minor(p->version) <= 10;
	uint64_t at = make(p->dict_values + 8), entries;

	put(at + p->dict_keys, make_keys(p, nr, kind, &entries), 8);
	for (size_t i = 0; i < nr; i++) {
		if (plain) {
			put(entries, items[i].hash, 8);
			entries += 8;
		}
		put(entries, items[i].key, 8);
		put(entries + 8, items[i].value, 8);
		entries += 16;
	}
	return at;
}

static struct kprof_python layout(uint32_t minor)
{
	struct kprof_python p;

	if (!python_layout_table(minor, &p)) {
		CHECK(python_layout_table(12, &p));
		p.type_keys = 896;
	}
	p.runtime = BASE;
	p.version = 0x03000000 | minor << 16;
	return p;
}

/* A type whose instances have the attributes x, _name, y, and their values. */
struct class
{
	uint64_t type, values;
};

#define BASIC_SIZE 32

static struct class make_class(const struct kprof_python *p, uint64_t flags, uint64_t name)
{
	struct class c = {.type = make(1024)};
	const uint64_t keys[] = {make_str(p, "x"), make_str(p, "_name"), make_str(p, "y")};
	uint64_t entries, at;

	put(c.type + p->type_flags, flags, 8);
	put(c.type + p->type_basicsize, BASIC_SIZE, 8);
	put(c.type + p->type_dictoffset, 16, 8);
	if (p->type_keys == KPROF_PYTHON_NONE)
		return c;
	put(c.type + p->type_keys, make_keys(p, 3, SPLIT, &entries), 8);
	for (size_t i = 0; i < 3; i++)
		put(entries + i * 16, keys[i], 8);
	c.values = make(64);
	at = c.values;
	if (python_minor(p->version) >= 13) {
		put(at, 0x01000003u, 4); /* capacity 3, valid */
		at += 8;
	}
	put(at + 8, name, 8);
	return c;
}

enum form { BY_DICT, BY_VALUES };

/* A Thread: where the release has its attributes, in this form. */
static uint64_t make_thread(const struct kprof_python *p, const char *text, enum form form)
{
	uint64_t name = make_str(p, text), front = make(128), object = front + 32, dict;
	const struct item items[] = {{1, make_str(p, "_names"), 1},
				     {2, make_str(p, "_name"), name}};
	uint32_t minor = python_minor(p->version);
	struct class c;

	dict = make_dict(p, items, 2, UNICODE);
	c = make_class(p, minor >= 11 ? 1 << 4 | (minor >= 13 ? 1 << 2 : 0) : 0, name);
	put(object + p->object_type, c.type, 8);
	if (minor <= 10)
		put(object + 16, dict, 8);
	else if (form == BY_DICT)
		put(object - p->managed_dict, dict, 8);
	else if (minor == 11)
		put(object - 32, c.values, 8);
	else if (minor == 12)
		put(object - 24, c.values - 1, 8);
	else
		memcpy(image + (object + BASIC_SIZE - BASE), image + (c.values - BASE), 32);
	return object;
}

/* sys.modules with threading in it, whose _active has these. */
static void make_process(const struct kprof_python *p, const struct item *active, size_t nr)
{
	uint64_t module = make(64), interp = make(1024), modules;
	struct item globals[] = {
		{1, make_str(p, "_activ"), 3},
		{2, make_str(p, "_active"), make_dict(p, active, nr, GENERAL)},
	};
	struct item names[] = {
		{1, make_str(p, "sys"), 3}, {2, 0, 0}, {3, make_str(p, "threading"), module}};

	put(module + p->module_dict, make_dict(p, globals, 2, UNICODE), 8);
	modules = make_dict(p, names, 3, UNICODE);
	put(p->runtime + p->runtime_interpreters, interp, 8);
	put(interp + p->interp_modules, modules, 8);
}

static void start(void)
{
	memset(image, 0, sizeof(image));
	used = 2048; /* the runtime */
}

static void test_forms(void)
{
	for (uint32_t minor = 8; minor <= 14; minor++) {
		struct kprof_python p = layout(minor);
		struct python_thread_name *names = calloc(8, sizeof(*names));
		struct item active[4];
		size_t nr;

		start();
		active[0] = (struct item){77, 1, make_thread(&p, "worker 1", BY_DICT)};
		active[1] = (struct item){78, 1, 0}; /* deleted */
		active[2] = (struct item){79, 1, make_thread(&p, "worker 2", BY_VALUES)};
		active[3] = (struct item){80, 1, BASE + (1 << 20)}; /* not readable */
		make_process(&p, active, 4);
		nr = python_thread_names(&p, &memory, names, 8);
		CHECK_EQ(nr, 2);
		CHECK(python_thread_name(names, nr, 77) &&
		      !strcmp(python_thread_name(names, nr, 77), "worker 1"));
		CHECK(python_thread_name(names, nr, 79) &&
		      !strcmp(python_thread_name(names, nr, 79), "worker 2"));
		CHECK(!python_thread_name(names, nr, 78));
		python_thread_names__free(names, nr);
		names = calloc(1, sizeof(*names));
		CHECK_EQ(python_thread_names(&p, &memory, names, 1), 1);
		python_thread_names__free(names, 1);
	}
}

/*
 * Values at an object's end are not what counts once they are given up; nor do fewer values have
 * more names.
 */
static void test_given_up(void)
{
	struct kprof_python p = layout(13);
	struct python_thread_name name;
	uint64_t thread;

	for (int i = 0; i < 3; i++) {
		start();
		thread = make_thread(&p, "inline", BY_VALUES);
		if (i == 1)
			put(thread + BASIC_SIZE + 3, 0, 1);
		if (i == 2)
			put(thread + BASIC_SIZE, 1, 1);
		make_process(&p, &(struct item){77, 1, thread}, 1);
		CHECK_EQ(python_thread_names(&p, &memory, &name, 1), i == 0);
		if (i == 0)
			free(name.name);
	}
}

/* Many modules before the one that is looked for: entries are read some at a time. */
static void test_long_dicts(void)
{
	struct kprof_python p = layout(12);
	struct python_thread_name names[200];
	struct item active[200];
	uint64_t thread;
	size_t nr;

	start();
	thread = make_thread(&p, "one of many", BY_DICT);
	for (size_t i = 0; i < 200; i++)
		active[i] = (struct item){i + 1, 1, i % 3 ? thread : 0};
	make_process(&p, active, 200);
	nr = python_thread_names(&p, &memory, names, 200);
	CHECK_EQ(nr, 133);
	for (size_t i = 0; i < nr; i++) {
		CHECK(names[i].thread % 3 != 1);
		free(names[i].name);
	}
}

/* The number of threads with names, and how many reads they took. */
static size_t count(const struct kprof_python *p, const struct python_memory *m)
{
	struct python_thread_name name;
	size_t nr;

	reads = 0;
	nr = python_thread_names(p, m, &name, 1);
	if (nr)
		free(name.name);
	return nr;
}

/* The place of the module is remembered, and is not believed. */
static void test_place(void)
{
	struct kprof_python p = layout(12);
	uint32_t place = 0;
	struct python_memory m = {.read = fake_read, .threading = &place};
	struct item active = {77, 1, 0};

	start();
	active.value = make_thread(&p, "worker", BY_DICT);
	make_process(&p, &active, 1);
	CHECK_EQ(count(&p, &m), 1);
	CHECK_EQ(place, 2);
	CHECK_EQ(count(&p, &m), 1);
	for (uint32_t wrong = 0; wrong < 5; wrong++) {
		place = wrong;
		CHECK_EQ(count(&p, &m), 1);
		CHECK_EQ(place, 2);
	}
	place = UINT32_MAX;
	CHECK_EQ(count(&p, &m), 1);
	CHECK_EQ(place, 2);
}

/* What lies near each other is read together: many objects lie in few pages. */
static void test_pages(void)
{
	enum { MANY = 40 };
	struct kprof_python p = layout(12);
	struct item active[MANY];
	struct python_thread_name names[MANY];
	uint64_t thread;
	size_t nr;

	start();
	thread = make_thread(&p, "one of many", BY_DICT);
	for (size_t i = 0; i < MANY; i++)
		active[i] = (struct item){i + 1, 1, thread};
	make_process(&p, active, MANY);
	reads = 0;
	nr = python_thread_names(&p, &memory, names, MANY);
	CHECK_EQ(nr, MANY);
	/* three for each name, and the pages */
	CHECK(reads < 3 * MANY + sizeof(image) / 4096 + 10);
	for (size_t i = 0; i < nr; i++)
		free(names[i].name);
}

static void test_nothing(void)
{
	struct kprof_python p = layout(11);
	struct python_thread_name name;

	start();
	CHECK_EQ(python_thread_names(&p, &memory, &name, 1), 0);
	make_process(&p, NULL, 0);
	CHECK_EQ(python_thread_names(&p, &memory, &name, 1), 0);
}

/*
 * Interpreters, dicts and threads that lead in circles: an end is found, by a bounded number of
 * reads.
 */
static void test_hostile(void)
{
	static struct python_thread_name names[KPROF_PYTHON_MAX_THREADS];
	uint64_t most = 0;

	for (uint64_t seed = 1; seed <= 300; seed++) {
		struct kprof_python p = layout(8 + (uint32_t)(seed % 7));
		size_t nr;

		noise = hash64(seed);
		reads = 0;
		nr = python_thread_names(&p, &memory, names, ARRAY_SIZE(names));
		CHECK(nr <= ARRAY_SIZE(names));
		for (size_t i = 0; i < nr; i++)
			free(names[i].name);
		most = reads > most ? reads : most;
	}
	noise = 0;
	CHECK(most > 100);
	CHECK(most <= MAX_READS + 4ull * KPROF_PYTHON_MAX_THREADS);
}

/*
 * A process that has what it needs, one word of it changed: a thread that is its own dict, sizes
 * that are huge.
 */
static void test_damaged(void)
{
	static uint8_t whole[sizeof(image)];
	struct python_thread_name names[8];
	uint64_t wrong = 0;

	for (uint32_t minor = 8; minor <= 14; minor++) {
		struct kprof_python p = layout(minor);
		struct item active[2];

		start();
		active[0] = (struct item){77, 1, make_thread(&p, "worker 1", BY_DICT)};
		active[1] = (struct item){79, 1, make_thread(&p, "worker 2", BY_VALUES)};
		make_process(&p, active, 2);
		memcpy(whole, image, sizeof(image));
		for (uint64_t at = BASE; at < BASE + used; at += 8) {
			size_t nr;

			put(at, hash64(at + minor) & 1 ? ~0ull : BASE + (hash64(at) & 0x3ff8), 8);
			reads = 0;
			nr = python_thread_names(&p, &memory, names, 8);
			CHECK(reads <= MAX_READS + 64);
			wrong += nr != 2;
			for (size_t i = 0; i < nr; i++)
				free(names[i].name);
			memcpy(image, whole, sizeof(image));
		}
	}
	CHECK(wrong > 100);
}

UNIT_MAIN(TEST(test_forms), TEST(test_given_up), TEST(test_long_dicts), TEST(test_place),
	  TEST(test_pages), TEST(test_nothing), TEST(test_hostile), TEST(test_damaged))
