/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ctrl-C and its like while recording. The first asks for the end, the second to skip what
 * takes time, the third ends kprof where it stands (the kernel removes the probes then).
 */
#ifndef KPROF_CMD_RECORD_SIGNALS_H
#define KPROF_CMD_RECORD_SIGNALS_H

#include <signal.h>
#include <stdbool.h>

/* SIGINT, SIGTERM, SIGHUP are counted from now on (unless ignored: nohup), SIGPIPE is ignored. */
void signals_catch(void);
/*
 * Recording is over and what takes time begins: of the signals so far, and one at least, `meant`
 * at most asked for that; any more are to give it up.
 */
void signals_finishing(int meant);
/* What is written to stderr when kprof ends where it stands; kept, not copied. */
void signals_set_last_words(const char *text);

int signals_count(void);
/* The latest signal since the last call that a child has not got by itself; 0: none. */
int signals_take_to_forward(void);
/* True once the finishing is to be given up. */
const volatile bool *signals_given_up(void);

#endif
