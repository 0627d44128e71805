/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the rows of a device runtime's calls are written (x86-64, System V): where arguments lie, and
 * what they are.
 */
#ifndef KPROF_CATALOG_CALLS_H
#define KPROF_CATALOG_CALLS_H

#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "util/util.h"

/*
 * Where an argument lies: the n-th register; the n-th word on the stack; behind a pointer in a
 * register.
 */
#define REG(n)                          \
	{                               \
		.reg = KPROF_REG_ARG##n \
	}
#define STACK(n)                                                \
	{                                                       \
		.reg = KPROF_REG_SP, .deref = 1, .off = 8 * (n) \
	}
#define FIELD(n, at)                                             \
	{                                                        \
		.reg = KPROF_REG_ARG##n, .deref = 1, .off = (at) \
	}

/* What arguments are called, and what they are. The place, a list in braces, comes last. */
#define ARG(key, is, ...)                                                    \
	{                                                                    \
		.name = (key), .kind = CATALOG_ARG_##is, .from = __VA_ARGS__ \
	}
#define BYTES(...) ARG("bytes", BYTES, __VA_ARGS__)
#define WIDTH(...) ARG("width in bytes", UNSIGNED, __VA_ARGS__)
#define HEIGHT(...) ARG("height", UNSIGNED, __VA_ARGS__)
#define DEPTH(...) ARG("depth", UNSIGNED, __VA_ARGS__)
#define SHARED(...) ARG("shared memory", UNSIGNED, __VA_ARGS__)
#define SHARED32(...) ARG("shared memory", UNSIGNED32, __VA_ARGS__)
#define ADDRESS(...) ARG("address", POINTER, __VA_ARGS__)
#define STREAM(...) ARG("stream handle", STREAM, __VA_ARGS__)
#define EVENT(...) ARG("event handle", POINTER, __VA_ARGS__)
#define GRAPH(...) ARG("graph handle", POINTER, __VA_ARGS__)
#define GRAPH_EXEC(...) ARG("graph exec handle", POINTER, __VA_ARGS__)
/* .names: as the runtime numbers the directions of copies. */
#define COPY_KIND(in, ...)                                                                   \
	{                                                                                    \
		.name = "kind", .kind = CATALOG_ARG_ENUM, .names = (in), .from = __VA_ARGS__ \
	}
/* The address of the function that the compiler has put in the host's code for a kernel. */
#define KERNEL_FUNCTION(...)                                                                \
	{                                                                                   \
		.name = "kernel", .kind = CATALOG_ARG_FUNCTION, .strip = "__device_stub__", \
		.from = __VA_ARGS__                                                         \
	}
/* Three 32-bit numbers by value are two registers: x and y in one, z in the next. */
#define DIM3(key, xy, z) ARG(key, DIM3_XY, xy), ARG(key, DIM3_Z, z)
#define DIM3_WORDS(key, x, y, z) ARG(key, DIM3_X, x), ARG(key, DIM3_Y, y), ARG(key, DIM3_Z, z)

#endif
