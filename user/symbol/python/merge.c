// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where Python frames belong among native ones. Each C eval frame runs a group of Python frames, up
 * to the one for which it was called. Both walks are of the same moment, so that the n-th eval
 * frame runs the n-th group, counted from a side that both have whole.
 */
#include "symbol/python/python.h"

/* The frame after the group that begins here. */
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
 * How many of the innermost eval frames have no group. One is entered before its frame is the
 * thread's, and left after it no longer is; the walk knows it from 3.12 on, before that the numbers
 * show it.
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
	bool replaced =
		false; /* the frame before, which this one has called, was the interpreter's loop */

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
