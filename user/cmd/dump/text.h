/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kprof dump prints for people: the main thread first, and threads with equal stacks once.
 */
#ifndef KPROF_CMD_DUMP_TEXT_H
#define KPROF_CMD_DUMP_TEXT_H

#include <stdbool.h>

#include "kprof.h"

struct dump_text;

/* all: each thread is printed by itself. NULL: out of memory. */
struct dump_text *dump_text__new(bool all);
void dump_text__free(struct dump_text *d); /* NULL is fine */
#define DUMP_TEXT_NO_MEMORY 1
/* Prints the process's head before its first thread, and keeps the thread. 0, or the above. */
int dump_text__add(struct dump_text *d, const struct kprof_dump_process *p,
		   const struct kprof_dump_thread *t);
/* Prints the threads of the process that are kept. */
void dump_text__end(struct dump_text *d);

/* "sleeping", "waiting for a CPU" */
const char *dump_text_state(enum kprof_thread_state state);

#endif
