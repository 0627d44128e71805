/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes JSON, always valid UTF-8: an invalid byte becomes U+FFFD. */
#ifndef KPROF_CMD_PRINT_JSON_H
#define KPROF_CMD_PRINT_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json {
	FILE *to;
	bool one_line; /* instead of a value a line, indented */
	int depth;
	bool first; /* nothing has been written yet in the innermost object or array */
};

/* key: the key in the enclosing object; NULL inside an array and at the top. */
void json_open(struct json *j, const char *key, char bracket); /* '{' or '[' */
void json_close(struct json *j, char bracket);                 /* '}' or ']' */
void json_string(struct json *j, const char *key, const char *value);
void json_uint(struct json *j, const char *key, uint64_t value);
void json_int(struct json *j, const char *key, int64_t value);
void json_double(struct json *j, const char *key, double value);
void json_bool(struct json *j, const char *key, bool value);
void json_null(struct json *j, const char *key);

#endif
