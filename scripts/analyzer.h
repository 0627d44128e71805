/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Included in front of every file that `scripts/lint tidy` checks, and by nothing else. It states
 * facts that the analyzer can not find, since it sees one file at a time and does not follow the
 * links of a hash table. One statement here replaces a NOLINT at every use.
 */
#include <cjson/cJSON.h>
#include <uthash.h>

#include "util/error.h"

/* The error_ functions return the negative errno that they are given. */
#define analyzer__negative(call)                 \
	({                                       \
		int analyzer_err_ = (call);      \
		if (analyzer_err_ >= 0)          \
			__builtin_unreachable(); \
		analyzer_err_;                   \
	})
#ifndef ANALYZER_ERROR_C /* util/error.c defines these functions */
#define error_set_as(...) analyzer__negative((error_set_as)(__VA_ARGS__))
#define error_prefix(...) analyzer__negative((error_prefix)(__VA_ARGS__))
#endif

/* Hashing reads a key byte by byte, which the analyzer can not follow. */
#undef HASH_FUNCTION
#define HASH_FUNCTION(key, bytes, hash) ((hash) = (unsigned int)(bytes))

/* A removed element is not reached again; the links of the others do not matter here. */
#undef HASH_DEL
#define HASH_DEL(head, element) ((head) = (element)->hh.next)

/* What cJSON_IsObject() accepts is not NULL. */
#define cJSON_IsObject(item) ((item) && (cJSON_IsObject)(item))
