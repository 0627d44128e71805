// SPDX-License-Identifier: BSD-2-Clause
#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char cause[1024], hint_text[1024];
static _Thread_local enum kprof_error_class class;
static kprof_log_fn log_fn;
static void *log_ctx;

int error_set_as(enum kprof_error_class as, int err, const char *hint, const char *fmt, ...)
{
	char text[sizeof(cause)]; /* an argument may point into cause itself */
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(hint_text, sizeof(hint_text), "%s", hint ? hint : "");
	memcpy(cause, text, sizeof(cause));
	class = as;
	return err;
}

int error_prefix(int err, const char *fmt, ...)
{
	char context[512], text[sizeof(cause)];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(context, sizeof(context), fmt, ap);
	va_end(ap);
	if (snprintf(text, sizeof(text), "%s: %s", context, cause) >= 0)
		memcpy(cause, text, sizeof(cause));
	return err;
}

void error_clear(void)
{
	cause[0] = hint_text[0] = '\0';
	class = KPROF_ERROR_NONE;
}

const char *kprof_error_cause(void)
{
	return cause;
}

const char *kprof_error_hint(void)
{
	return hint_text[0] ? hint_text : NULL;
}

enum kprof_error_class kprof_error_class(void)
{
	return class;
}

void kprof_set_log(kprof_log_fn fn, void *ctx)
{
	log_fn = fn;
	log_ctx = ctx;
}

void log_as(enum kprof_log_level level, const char *hint, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	if (!log_fn)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_fn(log_ctx, level, text, hint);
}
