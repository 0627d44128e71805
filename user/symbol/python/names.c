// SPDX-License-Identifier: BSD-2-Clause
/*
 * Names of threads in Python: sys.modules["threading"]._active is a dict of Thread objects by their
 * identifier, which is pthread_self(); the attribute _name of each is the name. The target keeps
 * running, so nothing that is read is trusted: pointers are followed for a bounded number of steps.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/python/objects.h"
#include "util/util.h"

#define MAX_NAME_CHARS 256

/* ---- threads ---- */

/* Opens threading._active of an interpreter. 0: `threading` was not imported. */
static uint64_t active_threads(const struct python_reader *r, uint64_t interp,
			       struct python_dict *d)
{
	uint64_t modules = 0, module, dict = 0;

	if (python_get64(r, interp + r->p->interp_modules, &modules) ||
	    python_dict__open(r, modules, d))
		return 0;
	module = python_dict__find(r, d, "threading", r->m->threading);
	if (!module || python_get64(r, module + r->p->module_dict, &dict) ||
	    python_dict__open(r, dict, d))
		return 0;
	return python_dict__find(r, d, "_active", NULL);
}

/* The name of a Thread object, malloc'ed; NULL: it has none. */
static char *name_of(const struct python_reader *r, uint64_t thread, struct python_dict *d)
{
	uint64_t name =
		python_attributes__open(r, thread, d) ? 0 : python_dict__find(r, d, "_name", NULL);
	char *text = NULL;

	if (!name || python_str__read(r->p, r->m, name, MAX_NAME_CHARS, &text))
		return NULL;
	return text;
}

/* Lists the names of one interpreter's threads. The hash of an identifier is the number itself. */
static size_t interpreter_names(const struct python_reader *r, uint64_t interp,
				struct python_thread_name *out, size_t room)
{
	struct python_dict *active = calloc(2, sizeof(*active)), *d = active ? active + 1 : NULL;
	uint64_t address = active ? active_threads(r, interp, active) : 0;
	struct python_entry e;
	size_t nr = 0;

	if (address && !python_dict__open(r, address, active)) {
		for (uint64_t i = 0; nr < room && python_dict__at(r, active, i, &e) > 0; i++) {
			out[nr].thread = e.hash;
			out[nr].name = e.hash && e.value ? name_of(r, e.value, d) : NULL;
			nr += out[nr].name != NULL;
		}
	}
	free(active);
	return nr;
}

size_t python_thread_names(const struct kprof_python *p, const struct python_memory *m,
			   struct python_thread_name *out, size_t room)
{
	uint32_t left = PYTHON_MAX_READS;
	struct python_page *pages = calloc(PYTHON_NR_PAGES, sizeof(*pages));
	const struct python_reader r = {p, m, &left, pages};
	uint64_t interp = 0;
	size_t nr = 0;

	if (room > KPROF_PYTHON_MAX_THREADS)
		room = KPROF_PYTHON_MAX_THREADS;
	if (python_get64(&r, p->runtime + p->runtime_interpreters, &interp))
		interp = 0;
	for (int i = 0; interp && nr < room && i < KPROF_PYTHON_MAX_INTERPRETERS; i++) {
		nr += interpreter_names(&r, interp, out + nr, room - nr);
		if (python_get64(&r, interp + p->interp_next, &interp))
			break;
	}
	free(pages);
	return nr;
}

const char *python_thread_name(const struct python_thread_name *names, size_t nr, uint64_t thread)
{
	/*
	 * Interpreters are listed newest first; the name that counts is the one in the thread's
	 * oldest interpreter.
	 */
	for (size_t i = nr; i-- > 0;)
		if (names[i].thread == thread)
			return names[i].name;
	return NULL;
}

void python_thread_names__free(struct python_thread_name *names, size_t nr)
{
	for (size_t i = 0; names && i < nr; i++)
		free(names[i].name);
	free(names);
}
