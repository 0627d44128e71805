// SPDX-License-Identifier: BSD-2-Clause
/* Names of Python functions, as Kineto has them. */
#include "sink/trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/error.h"
#include "util/util.h"

/* The path below the folder that Python modules are looked for in, as far as its name tells. */
static const char *short_path(const char *file)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
	const char *at;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		at = strstr(file, folders[i]);
		if (at)
			return at + strlen(folders[i]);
	}
	at = strstr(file, "/lib/python3.");
	if (at)
		at = strchr(at + strlen("/lib/python3."), '/');
	return at ? at + 1 : file;
}

/* The function's own name: of "Linear.forward", "forward". */
static const char *own_name(const char *qualified)
{
	const char *dot = strrchr(qualified, '.');

	return dot && dot[1] ? dot + 1 : qualified;
}

const char *trace__function_name(struct trace *tr, const struct tl_frame *frame)
{
	const struct tl_line *l = frame->lines;
	uint64_t *slot = map64__at(
		&tr->functions,
		hash64_text(hash64_text(frame->first_line, l->file), own_name(l->function)) >> 1);
	char *name;

	if (slot && !*slot) {
		name = xasprintf("%s(%u): %s", short_path(l->file), frame->first_line,
				 own_name(l->function));
		*slot = (uintptr_t)name;
	}
	if (slot && *slot)
		return (const char *)(uintptr_t)*slot;
	error_set(-ENOMEM, NULL, "no memory for the trace's names");
	return NULL;
}

void trace__functions_close(struct trace *tr)
{
	for (size_t i = 0; i < tr->functions.cap; i++)
		free((void *)(uintptr_t)tr->functions.slots[i].value);
	map64__free(&tr->functions);
}
