// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a wait is for, as its stack and its system call tell. Names of functions and files come from
 * the capture, and are compared with those that programs are known to have.
 */
#include <string.h>

#include "catalog/runtime.h"
#include "catalog/waits.h"
#include "model/why/impl.h"
#include "store/store.h"

#define MOST_FRAMES 64

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), bytes = strlen(end);

	return len >= bytes && !strcmp(text + len - bytes, end);
}

static bool begins_with(const char *text, const char *begin)
{
	return !strncmp(text, begin, strlen(begin));
}

static uint32_t python_flags(const struct tl_line *line)
{
	if (strstr(line->file, "/torch/utils/data/") ||
	    (ends_with(line->file, "/queue.py") && ends_with(line->function, "get")) ||
	    (ends_with(line->file, "/multiprocessing/queues.py") &&
	     ends_with(line->function, "get")))
		return STACK_DATA;
	if (strstr(line->file, "/torch/distributed/"))
		return STACK_COLLECTIVE;
	return 0;
}

static uint32_t native_flags(const char *function)
{
	if (catalog_wait_collective(function))
		return STACK_COLLECTIVE;
	if (catalog_wait_message(function))
		return STACK_MESSAGE;
	if (catalog_wait_mutex(function))
		return STACK_MUTEX;
	return strstr(function, "SimpleQueue_get") ? STACK_DATA : 0;
}

/* A lock that Python code takes by itself: not inside of what the library waits by. */
static bool waits_by_library(const struct tl_line *line)
{
	return ends_with(line->file, "/threading.py") || ends_with(line->file, "/queue.py") ||
	       strstr(line->file, "/concurrent/futures/") ||
	       strstr(line->file, "/multiprocessing/");
}

uint32_t why_stack_flags(struct kprof_capture *t, uint32_t stack)
{
	const struct tl_stack *s;
	uint32_t flags = STACK_LOOKED;
	bool innermost = true;

	for (int i = 0; i < MOST_FRAMES && stack && (s = timeline__stack(t, stack)); i++) {
		const struct tl_line *line = &s->frame->lines[0];

		stack = s->parent;
		for (uint32_t k = 0; k < s->frame->nr_lines && s->frame->kind == TL_FRAME_NATIVE;
		     k++)
			flags |= native_flags(line[k].function);
		if (s->frame->kind != TL_FRAME_PYTHON)
			continue;
		flags |= python_flags(line);
		if (innermost && !waits_by_library(line))
			flags |= STACK_OWN_LOCK;
		innermost = false;
	}
	return flags;
}

enum wait_kind why_wait_kind(struct kprof_capture *t, const struct store_record *r, uint32_t flags)
{
	static const struct {
		const char *reason;
		enum wait_kind kind;
	} known[] = {
		{"run queue", WAIT_CPU},       {"GIL", WAIT_GIL},
		{"allocator lock", WAIT_LOCK}, {"sleep", WAIT_SLEEP},
		{"disk", WAIT_DISK},           {"fsync", WAIT_DISK},
		{"sync", WAIT_DISK},           {"msync", WAIT_DISK},
		{"poll", WAIT_EVENTS},         {"select", WAIT_EVENTS},
		{"epoll", WAIT_EVENTS},        {"pipe read", WAIT_STREAM},
		{"socket read", WAIT_STREAM},  {"file lock", WAIT_LOCK},
	};
	const char *reason = timeline__wait_reason(t, r);

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(reason, known[i].reason))
			return known[i].kind;
	if (!strcmp(reason, "futex"))
		return flags & STACK_MUTEX ? WAIT_LOCK : WAIT_HANDOFF;
	if (!strcmp(reason, "Python lock"))
		return flags & STACK_OWN_LOCK && !(flags & STACK_DATA) ? WAIT_LOCK : WAIT_HANDOFF;
	if (catalog_runtime_of_call(reason))
		return WAIT_DEVICE;
	if (r->wait.flags & STORE_WAIT_IO)
		return WAIT_DISK;
	if (!begins_with(reason, "file "))
		return WAIT_OTHER;
	/* A named pipe has a path, too, but a signal ends that wait. */
	return (r->wait.flags & STORE_WAIT_STATE) == STORE_WAIT_BLOCKED ? WAIT_DISK : WAIT_STREAM;
}
