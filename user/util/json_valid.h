/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef KPROF_UTIL_JSON_VALID_H
#define KPROF_UTIL_JSON_VALID_H

#include <stdbool.h>

/* Whether the text is exactly one JSON value by RFC 8259, in UTF-8, nested at most 64 deep. */
bool json_valid(const char *json);

#endif
