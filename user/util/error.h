/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors are values: a function returns 0 or a negative errno, and describes an error with one of
 * these functions. The text is kept per thread; the library's user reads it through
 * kprof_error_cause() and kprof_error_hint() (include/kprof.h). The library itself prints nothing.
 */
#ifndef KPROF_UTIL_ERROR_H
#define KPROF_UTIL_ERROR_H

#include "kprof.h"

/*
 * Set the calling thread's error: cause from the format, hint may be NULL. Returns err (a
 * negative errno), so that `return error_set(-ENOENT, "…", …)` reads well. A cause is one
 * sentence without a final full stop; a hint says what to do.
 */
int error_set(int err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * The same, for something that this machine does not allow: permission or a kernel feature (exit
 * code 3).
 */
int error_set_machine(int err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, for a mistake of the caller: a bad option or argument (exit code 2). */
int error_set_usage(int err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Put words in front of the cause that is set: "context: cause". Returns err. */
int error_prefix(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void error_clear(void);

/*
 * Messages that a user should see although they are no errors. They go to the callback set by
 * kprof_set_log(), or nowhere. hint may be NULL.
 */
void log_warn(const char *hint, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
