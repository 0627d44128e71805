// SPDX-License-Identifier: BSD-2-Clause
/*
 * PyTorch's modules in memory that is hostile: whatever it holds, reading ends, and paths are
 * bounded. Real interpreters are the part of tests/modules.bats.
 */
#include <errno.h>

#include "symbol/python/priv.h"
#include "symbol/python/python.h"
#include "unit.h"
#include "util/utf8.h"
#include "util/util.h"

#define BASE 0x10000ull
#define MOST_READS 100000

static uint64_t noise, reads;

/* Words that are small, or addresses nearby: they lead on, in circles. Some cannot be read. */
static int noisy_read(void *ctx, void *to, size_t bytes, uint64_t address)
{
	uint8_t *out = to;

	reads++;
	if (hash64(address ^ noise) % 4096 == 0)
		return -EFAULT;
	for (size_t i = 0; i < bytes; i++) {
		uint64_t at = address + i, word = hash64((at & 0xfff8) ^ noise);

		word = word & 1 ? word >> 8 & 0x1f : (word & 0xfff8) + BASE;
		out[i] = (uint8_t)(word >> (at & 7) * 8);
	}
	return 0;
}

static const struct python_memory memory = {.read = noisy_read};
static size_t nr_modules;

static int on_module(void *ctx, uint64_t module, const char *path)
{
	size_t length = strlen(path);

	CHECK(module && length && length <= PYTHON_NN_PATH_MOST);
	return ++nr_modules == PYTHON_NN_MOST + 1 ? -1 : 0;
}

static void noise_of_each_release(void)
{
	for (uint32_t i = 0; i < 400; i++) {
		struct kprof_python p;
		uint64_t code = 0;
		char *class;

		CHECK(python_layout_table(8 + i % 5, &p));
		p.version = 0x03000000 | (8 + i % 5) << 16;
		p.runtime = BASE;
		p.code_type = BASE;
		noise = hash64(i + 1);
		reads = 0;
		python_nn__call(&p, &memory, &code);
		CHECK(reads <= MOST_READS + 1);
		class = python_nn__class(&p, &memory, BASE + i * 8);
		CHECK(!class || utf8_printable_len(class, strlen(class)));
		free(class);
		nr_modules = 0;
		reads = 0;
		CHECK_EQ(python_nn__tree(&p, &memory, BASE + i * 16, on_module, NULL), 0);
		CHECK(reads <= 2 * MOST_READS);
	}
}

/* ---- memory that is made up: objects of one class, whose children are what a test says ---- */

#define IMAGE 0x10000000ull
#define OBJECT_BYTES 4096
#define NR_OBJECTS 300
#define CLASS (IMAGE + NR_OBJECTS * OBJECT_BYTES)
#define NR_CHILDREN 4

static uint8_t image[(NR_OBJECTS + 1) * OBJECT_BYTES];

static int image_read(void *ctx, void *to, size_t bytes, uint64_t address)
{
	if (address < IMAGE || bytes > sizeof(image) || address - IMAGE > sizeof(image) - bytes)
		return -EFAULT;
	memcpy(to, image + (address - IMAGE), bytes);
	return 0;
}

static void put(uint64_t address, uint64_t value, size_t bytes)
{
	memcpy(image + (address - IMAGE), &value, bytes);
}

static uint64_t object_at(size_t i)
{
	return IMAGE + i * OBJECT_BYTES;
}

static uint64_t put_str(const struct kprof_python *p, uint64_t at, const char *text)
{
	put(at + p->str_length, strlen(text), 8);
	put(at + p->str_state, (uint64_t)(1 | 1 << 3 | 1 << 4) << p->str_kind, 4);
	memcpy(image + (at + p->str_ascii - IMAGE), text, strlen(text));
	return at;
}

/* A dict of Python 3.10 at this place, with its keys behind it. */
static void put_dict(const struct kprof_python *p, uint64_t at, const uint64_t *keys,
		     const uint64_t *values, size_t nr)
{
	put(at + p->dict_keys, at + 64, 8);
	put(at + 64 + 8, 8, 8);
	put(at + 64 + 32, nr, 8);
	for (size_t i = 0; i < nr; i++) {
		put(at + 64 + 48 + i * 24 + 8, keys[i], 8);
		put(at + 64 + 48 + i * 24 + 16, values[i], 8);
	}
}

static void put_object(const struct kprof_python *p, size_t i, const size_t *children, size_t nr)
{
	uint64_t at = object_at(i), attributes = at + 512, modules = at + 1024;
	uint64_t name = put_str(p, at + 2048, "_modules"), keys[NR_CHILDREN], values[NR_CHILDREN];

	put(at + p->object_type, CLASS, 8);
	put(at + 16, attributes, 8);
	put_dict(p, attributes, &name, &modules, 1);
	for (size_t k = 0; k < nr; k++) {
		const char text[] = {(char)('a' + k), '\0'};

		keys[k] = put_str(p, at + 2304 + k * 128, text);
		values[k] = object_at(children[k]);
	}
	put_dict(p, modules, keys, values, nr);
}

static struct kprof_python start(void)
{
	struct kprof_python p;

	CHECK(python_layout_table(10, &p));
	p.version = 0x030a0000;
	memset(image, 0, sizeof(image));
	put(CLASS + p.type_dictoffset, 16, 8);
	return p;
}

static char paths[NR_OBJECTS][PYTHON_NN_PATH_MOST + 1];

static int keep_path(void *ctx, uint64_t module, const char *path)
{
	char *to = paths[(module - IMAGE) / OBJECT_BYTES];

	CHECK_STR(to, ""); /* each once */
	strcpy(to, path);
	nr_modules++;
	return 0;
}

static size_t tree(const struct kprof_python *p, size_t root)
{
	const struct python_memory made = {.read = image_read};

	memset(paths, 0, sizeof(paths));
	nr_modules = 0;
	CHECK_EQ(python_nn__tree(p, &made, object_at(root), keep_path, NULL), 0);
	return nr_modules;
}

/* In the order of named_modules(); a module in several places has the first path. */
static void shared_and_circular(void)
{
	struct kprof_python p = start();

	put_object(&p, 0, (const size_t[]){1, 2, 0}, 3); /* itself: a circle */
	put_object(&p, 1, (const size_t[]){3, 0}, 2);
	put_object(&p, 2, (const size_t[]){3, 1, 4}, 3);
	put_object(&p, 3, NULL, 0);
	put_object(&p, 4, (const size_t[]){2}, 1);
	CHECK_EQ(tree(&p, 0), 4);
	CHECK_STR(paths[1], "a");
	CHECK_STR(paths[2], "b");
	CHECK_STR(paths[3], "a.a");
	CHECK_STR(paths[4], "b.c");
	CHECK_STR(paths[0], "");
	CHECK_EQ(tree(&p, 4), 4);
	CHECK_STR(paths[3], "a.a");
	CHECK_STR(paths[1], "a.b");
}

static void deep(void)
{
	struct kprof_python p = start();

	for (size_t i = 0; i < NR_OBJECTS; i++)
		put_object(&p, i, (const size_t[]){(i + 1) % NR_OBJECTS}, 1);
	CHECK_EQ(tree(&p, 0), PYTHON_NN_DEEPEST);
	CHECK_EQ(strlen(paths[PYTHON_NN_DEEPEST]), 2 * PYTHON_NN_DEEPEST - 1);
}

/* A child that is None, an address that cannot be read, a key that is no text. */
static void odd_children(void)
{
	struct kprof_python p = start();

	put_object(&p, 0, (const size_t[]){1, 2, 3, 4}, 4);
	put_object(&p, 4, NULL, 0);
	put(object_at(0) + 1024 + 64 + 48 + 16, 0, 8);               /* deleted */
	put(object_at(0) + 1024 + 64 + 48 + 24 + 16, UINT64_MAX, 8); /* not there */
	put(object_at(0) + 1024 + 64 + 48 + 48 + 8, 8, 8);           /* key */
	CHECK_EQ(tree(&p, 0), 1);
	CHECK_STR(paths[4], "d");
}

UNIT_MAIN(TEST(noise_of_each_release), TEST(shared_and_circular), TEST(deep), TEST(odd_children))
