// SPDX-License-Identifier: BSD-2-Clause
/*
 * Merges Python frames with native ones. Each native eval frame runs a group of Python frames, up
 * to the one that it was called for. Both walks are of the same moment, so the n-th eval frame runs
 * the n-th group, counted from an end of the stack that both walks have reached.
 */
#include "symbol/python/python.h"

/* The index of the first frame after the group that begins at `at`. */
static size_t group_end(const struct python_stacks *s, size_t at)
{
	while (at < s->nr_frames)
		if (s->frames[at++].flags & (KPROF_PYTHON_ENTRY | KPROF_PYTHON_LAST))
			break;
	return at;
}

static size_t count_groups(const struct python_stacks *s)
{
	size_t nr = 0;

	for (size_t at = 0; at < s->nr_frames; at = group_end(s, at))
		nr++;
	return nr;
}

static size_t count_evals(const struct python_stacks *s)
{
	size_t nr = 0;

	for (size_t i = 0; i < s->nr_native; i++)
		nr += s->native(s->ctx, i) == PYTHON_NATIVE_EVAL;
	return nr;
}

/*
 * How many of the innermost eval frames have no group yet or any more: the loop is entered before
 * its Python frame is linked to the thread, and left after it is unlinked. From 3.12 on the walk
 * sees this; before, the numbers of groups and eval frames tell.
 */
static size_t bare_evals(const struct python_stacks *s)
{
	size_t groups, evals;

	if (s->native_whole && !(s->flags & (KPROF_PYTHON_CUT | KPROF_PYTHON_BAD))) {
		groups = count_groups(s);
		evals = count_evals(s);
		return evals > groups ? evals - groups : 0;
	}
	return s->flags & KPROF_PYTHON_BARE_EVAL ? 1 : 0;
}

size_t python_interleave(const struct python_stacks *s, struct python_merged *out)
{
	size_t bare = bare_evals(s), next = 0, nr = 0;
	/* the previous frame, which this one has called, was in the interpreter's loop */
	bool replaced = false;

	for (size_t i = 0; i < s->nr_native; i++) {
		enum python_native kind = s->native(s->ctx, i);
		size_t end;

		if (kind == PYTHON_NATIVE_HIDE || (kind == PYTHON_NATIVE_CALL && replaced))
			continue;
		replaced = kind == PYTHON_NATIVE_EVAL && !bare && next < s->nr_frames;
		if (!replaced) {
			bare -= kind == PYTHON_NATIVE_EVAL && bare;
			out[nr++] = (struct python_merged){.index = (uint32_t)i};
			continue;
		}
		for (end = group_end(s, next); next < end; next++)
			out[nr++] = (struct python_merged){.python = true, .index = (uint32_t)next};
	}
	for (; next < s->nr_frames; next++)
		out[nr++] = (struct python_merged){.python = true, .index = (uint32_t)next};
	return nr;
}
