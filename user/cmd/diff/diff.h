/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of kprof diff. diff.c: its options; names.c: words; table.c and json.c print.
 */
#ifndef KPROF_CMD_DIFF_DIFF_H
#define KPROF_CMD_DIFF_DIFF_H

#include "cmd/options/option.h"
#include "kprof/diff.h"

extern const struct command cmd_diff;

extern const struct option_choice diff_bys[], diff_pers[];
/* Words for what options choose, for people and for JSON. */
const char *diff_by_name(enum kprof_diff_by by);
const char *diff_per_name(enum kprof_diff_per per);
const char *diff_verdict_name(enum kprof_diff_verdict verdict);

/* Prints at most `most` rows (0: all). Returns an exit code. */
int diff_print_table(const struct kprof_diff *d, size_t most);
void diff_print_json(const struct kprof_diff *d, size_t most);

#endif
