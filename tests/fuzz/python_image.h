/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An interpreter's memory as fuzz_python.c reads it and gen_python.c writes it: this head, then
 * pieces of memory, each after its address and size (u64, u16).
 */
#ifndef KPROF_TESTS_PYTHON_IMAGE_H
#define KPROF_TESTS_PYTHON_IMAGE_H

#include <stdint.h>

#pragma pack(push, 1)
struct python_image {
	char what; /* 'w': walk the thread's stack; 'n': name the threads */
	uint32_t version;
	uint64_t runtime, code_type, thread;
};
#pragma pack(pop)

#endif
