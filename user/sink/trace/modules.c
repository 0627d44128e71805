// SPDX-License-Identifier: BSD-2-Clause
/* The calls of PyTorch's modules that an operator is in, as Kineto writes those of TorchScript. */
#include "sink/trace/trace.h"

#include <string.h>

/* What the module is called below the one around it: the rest of its path, if that begins there. */
static const char *name_below(const struct tl_nn *nn, const struct tl_nn *outer)
{
	size_t len = outer ? strlen(outer->path) : 0;

	if (!outer)
		return "TOP";
	if (!*nn->path)
		return nn->name;
	if (!len)
		return strcmp(nn->outermost, outer->name) ? nn->name : nn->path;
	if (!strcmp(nn->outermost, outer->outermost) && !strncmp(nn->path, outer->path, len) &&
	    nn->path[len] == '.')
		return nn->path + len + 1;
	return nn->path;
}

static size_t put(char *text, size_t at, const char *what)
{
	size_t len = strlen(what);

	if (at + len >= TRACE_MODULES_BYTES)
		return TRACE_MODULES_BYTES;
	memcpy(text + at, what, len + 1);
	return at + len;
}

bool trace__modules(const struct tl_span *s, char text[TRACE_MODULES_BYTES])
{
	const struct tl_nn *outer = NULL;
	size_t at = 0;

	for (uint32_t i = 0; i < s->nr_modules; i++) {
		size_t begin = at;

		if (outer)
			at = put(text, at, ".");
		at = put(text, at, name_below(s->modules[i], outer));
		at = put(text, at, "(");
		at = put(text, at, s->modules[i]->class_name);
		at = put(text, at, ")::forward");
		if (at == TRACE_MODULES_BYTES) { /* what is further in does not fit */
			text[begin] = '\0';
			break;
		}
		outer = s->modules[i];
	}
	return s->nr_modules && *text;
}
