/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SIMULATED CUDA, FOR TESTS: what truly happened, as JSON lines in $KPROF_SIM_TRUTH.PID.jsonl.
 * Written through a shared mapping, so that a line once written stays, however the process dies;
 * what follows the last line of a file whose process was killed is NUL bytes.
 */
#ifndef SIM_TRUTH_H
#define SIM_TRUTH_H

#include <stdarg.h>
#include <stdbool.h>

bool truth__on(void);
void truth__open(void); /* again in a child */
void truth__close(void);
/* A line; without the newline. Nothing when there is no file. */
void truth__say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void truth__vsay(const char *fmt, va_list args);
/* For names: `in` with quotes, backslashes and controls escaped, cut to fit. */
const char *truth__escape(char *out, unsigned long size, const char *in);

#endif
