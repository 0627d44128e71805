/* SPDX-License-Identifier: BSD-2-Clause */
/* Members of a JSON object, which may be NULL. */
#ifndef KPROF_CMD_PRINT_JSON_GET_H
#define KPROF_CMD_PRINT_JSON_GET_H

#include <cjson/cJSON.h>
#include <stdbool.h>

const char *json_text(const cJSON *o, const char *key); /* NULL: it has no such text */
/* One that is a count in an uint64_t, too; 0: it has no such number. */
double json_number(const cJSON *o, const char *key);
bool json_is_true(const cJSON *o, const char *key);

#endif
