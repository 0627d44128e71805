// SPDX-License-Identifier: BSD-2-Clause
/*
 * Demangling with libiberty, at a bounded cost. Its demanglers deliver the text piece by piece and
 * meanwhile allocate only one small buffer, so longjmp() can leave them when the text gets too
 * long. They recurse as deep as the name is long, so long names get a separate stack.
 */
#include "symbol/names/demangle.h"

#include <libiberty/demangle.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_INPUT 1000 /* longer names need more stack than libiberty allows itself by default */

struct job {
	const char *mangled;
	bool type;
	jmp_buf stop;
	char *text;
	size_t nr, cap;
	bool done;
};

static void take(const char *piece, size_t nr, void *opaque)
{
	struct job *j = opaque;

	if (!nr) /* an empty identifier, for which the pointer may be invalid */
		return;
	if (nr > DEMANGLE_OUTPUT_MOST - j->nr)
		longjmp(j->stop, 1);
	if (j->nr + nr >= j->cap) {
		size_t cap = (j->nr + nr + 1) * 2;
		char *more = realloc(j->text, cap);

		if (!more)
			longjmp(j->stop, 1);
		j->text = more;
		j->cap = cap;
	}
	memcpy(j->text + j->nr, piece, nr);
	j->nr += nr;
}

/* Rust's legacy names are C++ names that end in "17h", a hash of 16 digits, and "E". */
static bool may_be_rust(const char *mangled)
{
	return !strncmp(mangled, "_R", 2) || !strncmp(mangled, "__R", 3) || strstr(mangled, "17h");
}

static void parse(struct job *j)
{
	const char *name = j->mangled;
	const int options = DMGL_PARAMS | DMGL_ANSI | (j->type ? DMGL_TYPES : 0) |
			    (strlen(name) > SHORT_INPUT ? DMGL_NO_RECURSE_LIMIT : 0);

	if (setjmp(j->stop))
		return;
	/*
	 * The demangler of Rust's names has a recursion limit of its own, however large the stack
	 * is.
	 */
	j->done =
		!j->type && may_be_rust(name) && rust_demangle_callback(name, DMGL_PARAMS, take, j);
	if (j->done)
		return;
	j->nr = 0;
	j->done = cplus_demangle_v3_callback(name, options, take, j);
}

static void *parse_elsewhere(void *arg)
{
	parse(arg);
	return NULL;
}

static void parse_long(struct job *j)
{
	pthread_attr_t attr;
	pthread_t thread;

	if (pthread_attr_init(&attr))
		return;
	if (!pthread_attr_setstacksize(&attr, DEMANGLE_STACK_BYTES) &&
	    !pthread_create(&thread, &attr, parse_elsewhere, j))
		pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
}

char *demangle_here(const char *mangled, bool type, bool deep)
{
	struct job j = {.mangled = mangled, .type = type};
	size_t bytes = strnlen(mangled, DEMANGLE_INPUT_MOST + 1);

	if (bytes > DEMANGLE_INPUT_MOST)
		return NULL;
	if (bytes > SHORT_INPUT && !deep)
		parse_long(&j);
	else
		parse(&j);
	if (!j.done || !j.nr) {
		free(j.text);
		return NULL;
	}
	j.text[j.nr] = '\0';
	return j.text;
}
