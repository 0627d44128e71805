/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts texts to values. Each function returns false if the text is not valid. */
#ifndef KPROF_CMD_OPTIONS_VALUE_H
#define KPROF_CMD_OPTIONS_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* "5s", "500ms", "2m", "1h", "250us", "1.5" (seconds); at most ten years. */
bool value_duration(const char *text, uint64_t *ns);
/* "4096", "512K", "64M", "1G" (powers of 1024; "MB" and "MiB" too). */
bool value_size(const char *text, uint64_t *bytes);
/* Decimal digits only; the value must be within the limits. */
bool value_uint(const char *text, uint64_t least, uint64_t most, uint64_t *value);
/* "5%", "2.5%", "5": 0 to 1,000,000 percent, as a share. */
bool value_percent(const char *text, double *share);
/* A PID. */
bool value_pid(const char *text, pid_t *pid);

struct value_list {
	char **items; /* each malloc'ed */
	size_t nr;
};

bool value_list_add(struct value_list *list, const char *text, size_t len);
/* Adds the texts between the commas; an empty one is an error. */
bool value_list_split(struct value_list *list, const char *text);
void value_list_free(struct value_list *list);

struct value_pids {
	pid_t *items;
	size_t nr;
};

/* Adds the PIDs between the commas; one that is given twice counts once. */
bool value_pids_split(struct value_pids *pids, const char *text);

#endif
