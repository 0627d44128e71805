/* SPDX-License-Identifier: BSD-2-Clause */
/* The inside of kprof why. why.c: its options; page.c prints for people, json.c for programs. */
#ifndef KPROF_CMD_WHY_WHY_H
#define KPROF_CMD_WHY_WHY_H

#include "cmd/options/option.h"
#include "kprof/why.h"

extern const struct command cmd_why;

/* Prints the page. Returns an exit code. */
int why_print_page(const struct kprof_why *w);
void why_print_json(const struct kprof_why *w);

#endif
