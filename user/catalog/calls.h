/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Macros for the rows of a device runtime's calls (x86-64, System V): where arguments are, and what
 * they are.
 */
#ifndef KPROF_CATALOG_CALLS_H
#define KPROF_CATALOG_CALLS_H

#include "catalog/catalog.h"
#include "catalog/runtime.h"
#include "util/util.h"

/*
 * The place of an argument: the n-th argument register; the n-th word on the stack; a field of the
 * structure that a register points to.
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

/* A call's arguments, each one of the following. */
#define ARGS(...) .args = {__VA_ARGS__}
/* An argument's name, kind and place. The place, a list in braces, comes last. */
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
/* The direction of a copy, which CUDA and HIP number alike. */
static const char *const copy_kinds[] = {"HtoH", "HtoD", "DtoH", "DtoD", "Default", NULL};
#define KIND(...)                                                                                  \
	{                                                                                          \
		.name = "kind", .kind = CATALOG_ARG_ENUM, .names = copy_kinds, .from = __VA_ARGS__ \
	}
/* A kernel as the address of the function that the compiler has put into the host's code for it. */
#define KERNEL_FUNCTION(...)                                                                \
	{                                                                                   \
		.name = "kernel", .kind = CATALOG_ARG_FUNCTION, .strip = "__device_stub__", \
		.from = __VA_ARGS__                                                         \
	}
/*
 * A structure of three 32-bit numbers that is passed by value is in two registers: x and y in the
 * first, z in the second.
 */
#define DIM3(key, xy, z) ARG(key, DIM3_XY, xy), ARG(key, DIM3_Z, z)
#define DIM3_WORDS(key, x, y, z) ARG(key, DIM3_X, x), ARG(key, DIM3_Y, y), ARG(key, DIM3_Z, z)

#endif
