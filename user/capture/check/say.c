// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/check/check.h"

void check_say(struct check *c, enum kprof_check_state state, const char *name, const char *hint,
	       const char *fmt, ...)
{
	struct kprof_check_line line = {.state = state, .name = name, .hint = hint};
	char *detail;
	va_list ap;

	if (c->stopped)
		return;
	va_start(ap, fmt);
	if (vasprintf(&detail, fmt, ap) < 0)
		detail = NULL;
	va_end(ap);
	line.detail = detail;
	c->stopped = detail ? c->fn(c->ctx, &line) : -ENOMEM;
	free(detail);
}
