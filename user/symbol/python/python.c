// SPDX-License-Identifier: BSD-2-Clause
#include "symbol/python/python.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/python/priv.h"
#include "util/error.h"
#include "util/util.h"

#define OLDEST_MINOR 8
#define NEWEST_MINOR 14

/*
 * Finds the release. From 3.11 on the file contains its number. Before, the exported functions
 * tell: each release has added some to the public interface, and none has removed these.
 */
static int find_version(const struct elffile *e, uint32_t *out)
{
	static const struct {
		const char *symbol;
		uint32_t version;
	} added[] = {
		{"PyIter_Send", 0x030a0000},
		{"PyFrame_GetCode", 0x03090000},
		{"PyCode_NewWithPosOnlyArgs", 0x03080000},
		{"PyThread_tss_create", 0x03070000},
		{"PyOS_FSPath", 0x03060000},
	};
	struct elffile_symbol s;

	if (!elffile__symbol(e, "Py_Version", &s)) {
		uint64_t version = 0;
		const uint8_t *bytes;
		size_t avail;

		bytes = elffile__bytes(e, elffile__offset(e, s.vaddr), 8, &avail);
		if (avail < 8)
			return -ENOENT;
		memcpy(&version, bytes, 8);
		if (version >> 32 || version >> 24 != 3)
			return -ENOENT;
		*out = (uint32_t)version;
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(added); i++)
		if (!elffile__symbol(e, added[i].symbol, &s)) {
			*out = added[i].version;
			return 0;
		}
	return -ENOENT;
}

int python_elf__open(const struct elffile *e, struct python_elf **out)
{
	struct elffile_symbol runtime, type;
	struct python_elf *p;
	uint32_t version;
	int err;

	/* A program that uses a shared libpython defines neither symbol itself. */
	if (elffile__symbol(e, "_PyRuntime", &runtime) ||
	    elffile__symbol(e, "PyCode_Type", &type) || find_version(e, &version))
		return -ENOENT;
	if (python_minor(version) < OLDEST_MINOR || python_minor(version) > NEWEST_MINOR)
		return error_set(-ENOTSUP, "Python stacks are read for CPython 3.8 to 3.14",
				 "%s is CPython %u.%u, whose frames kprof does not know",
				 elffile__path(e), version >> 24, python_minor(version));
	p = calloc(1, sizeof(*p));
	if (!p)
		return error_set(-ENOMEM, NULL, "no memory for %s", elffile__path(e));
	p->runtime = runtime.vaddr;
	p->code_type = type.vaddr;
	p->version = version;
	err = python_eval_find(p, e);
	if (err) {
		free(p);
		return err;
	}
	*out = p;
	return 0;
}

void python_elf__free(struct python_elf *p)
{
	free(p);
}

/* ---- a process ---- */

static int not_ready(void)
{
	return error_set(-EAGAIN, NULL, "the process's Python interpreter is not initialized");
}

/* Reads the release's description of its own structures. */
static int describe(const struct python_elf *p, uint64_t runtime, const struct python_memory *m,
		    struct kprof_python *out)
{
	uint64_t words[PYTHON_DEBUG_WORDS];

	if (m->read(m->ctx, words, sizeof(words), runtime))
		return error_set(-EFAULT, NULL, "the memory of the interpreter can't be read");
	if (memcmp(words, PYTHON_DEBUG_COOKIE, 8))
		return not_ready();
	if (words[1] != p->version ||
	    !python_layout_described(python_minor(p->version), words, out))
		return error_set(
			-ENOTSUP, NULL,
			"the interpreter describes its memory in a way that kprof does not know");
	return 0;
}

/*
 * Checks that these offsets lead through the first interpreter and its newest thread. They do not
 * in a build of another kind.
 */
static int check(const struct kprof_python *p, const struct python_memory *m)
{
	uint64_t interp = 0, state = 0, back = 0, prev = 0;

	if (m->read(m->ctx, &interp, 8, p->runtime + p->runtime_interpreters))
		return error_set(-EFAULT, NULL, "the memory of the interpreter can't be read");
	if (!interp)
		return not_ready();
	if (m->read(m->ctx, &state, 8, interp + p->interp_threads))
		goto odd;
	if (!state)
		return not_ready();
	if (m->read(m->ctx, &back, 8, state + p->tstate_interp) ||
	    m->read(m->ctx, &prev, 8, state + p->tstate_prev) || back != interp || prev)
		goto odd;
	return 0;
odd:
	return error_set(-ENOTSUP,
			 "debug builds and patched ones may differ; take native stacks only",
			 "this build of CPython 3.%u keeps its threads where no release does",
			 python_minor(p->version));
}

int python_locate(const struct python_elf *p, uint64_t bias, const struct python_memory *m,
		  struct kprof_python *out)
{
	uint64_t runtime = p->runtime + bias;

	if (!python_layout_table(python_minor(p->version), out)) {
		int err = describe(p, runtime, m, out);

		if (err)
			return err;
	}
	out->runtime = runtime;
	out->code_type = p->code_type + bias;
	out->version = p->version;
	return check(out, m);
}

/*
 * glibc's struct pthread has the thread's id here on x86-64, in every release since 2.4
 * (nptl/descr.h; nptl_db).
 */
#define GLIBC_TID 720

size_t python_threads(const struct kprof_python *p, const struct python_memory *m,
		      struct python_thread *out, size_t room)
{
	uint64_t interp = 0, state, next;
	size_t nr = 0, steps = 0;

	if (m->read(m->ctx, &interp, 8, p->runtime + p->runtime_interpreters))
		return 0;
	for (; interp && nr < room; interp = next) {
		if (m->read(m->ctx, &state, 8, interp + p->interp_threads))
			return nr;
		for (; state && nr < room; state = next) {
			struct python_thread *t = &out[nr];

			t->tstate = state;
			t->tid = 0;
			if (m->read(m->ctx, &t->thread, 8, state + p->tstate_thread) ||
			    m->read(m->ctx, &next, 8, state + p->tstate_next))
				return nr;
			m->read(m->ctx, &t->tid, 4,
				p->tstate_native != KPROF_PYTHON_NONE ? state + p->tstate_native
								      : t->thread + GLIBC_TID);
			nr++;
		}
		/*
		 * A bound on steps: a circular list of interpreters without threads would never
		 * fill the room.
		 */
		if (++steps > KPROF_PYTHON_MAX_INTERPRETERS * 16 ||
		    m->read(m->ctx, &next, 8, interp + p->interp_next))
			return nr;
	}
	return nr;
}
