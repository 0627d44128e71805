/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors are values: a function returns 0 or a negative errno, and describes an error with one of
 * these functions. The text is kept per thread; the library's user reads it through
 * kprof_error_cause() and kprof_error_hint() (include/kprof.h). The library itself prints nothing.
 */
#ifndef KPROF_UTIL_ERROR_H
#define KPROF_UTIL_ERROR_H

#include <stddef.h>

#include "kprof.h"

/*
 * Sets the calling thread's error: cause from the format, hint may be NULL. Returns err (a negative
 * errno), so that `return error_set(-ENOENT, "…", …)` reads well. A cause is one sentence without a
 * final full stop; a hint says what to do.
 */
int error_set_as(enum kprof_error_class class, int err, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define error_set(...) error_set_as(KPROF_ERROR_FAILED, __VA_ARGS__)
/* Something that this machine does not allow: permission or a kernel feature (exit code 3). */
#define error_set_machine(...) error_set_as(KPROF_ERROR_MACHINE, __VA_ARGS__)
/* A mistake of the caller: a bad option or argument (exit code 2). */
#define error_set_usage(...) error_set_as(KPROF_ERROR_USAGE, __VA_ARGS__)
/* Put words in front of the cause that is set: "context: cause". Returns err. */
int error_prefix(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void error_clear(void);

/*
 * Messages that a user should see although they are no errors. They go to the callback set by
 * kprof_set_log(), or nowhere. hint may be NULL.
 */
void log_as(enum kprof_log_level level, const char *hint, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
#define log_warn(...) log_as(KPROF_LOG_WARN, __VA_ARGS__)
#define log_info(...) log_as(KPROF_LOG_INFO, NULL, __VA_ARGS__)
#define log_debug(...) log_as(KPROF_LOG_DEBUG, NULL, __VA_ARGS__)

#endif
