/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Handles Ctrl-C and similar signals while recording. The first asks for the end, the second for
 * skipping what takes time, the third ends kprof at once (the kernel then removes the probes).
 */
#ifndef KPROF_CMD_RECORD_SIGNALS_H
#define KPROF_CMD_RECORD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Before kprof changes what signals do. */
void signals_note_inherited(void);
/*
 * Counts SIGINT, SIGTERM and SIGHUP from now on. A SIGHUP that is ignored stays so
 * (nohup). A SIGINT does not: shells start every background command of a script with it ignored,
 * and then kill -INT could not end the recording.
 */
void signals_catch(void);
/* Signals that were ignored then: bit n - 1 is signal n. A command is to find them so. */
uint64_t signals_inherited(void);
/*
 * Call when recording has ended and lengthy work begins. Of the signals so far, at least 1 and at
 * most `meant` are taken as the request to end; any others ask to give up that work.
 */
void signals_finishing(int meant);
/* Sets what is written to stderr when kprof ends at once; kept, not copied. */
void signals_set_last_words(const char *text);

int signals_count(void);
/* The latest signal since the last call that the child did not get itself; 0: none. */
int signals_take_to_forward(void);
/* Points to true once the work after recording is to be given up. */
const volatile bool *signals_given_up(void);

#endif
