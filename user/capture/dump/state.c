// SPDX-License-Identifier: BSD-2-Clause
/* Describes in words what a thread does. */
#include "capture/dump/priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "catalog/syscalls.h"

/* task_struct.__state, include/linux/sched.h */
#define TASK_INTERRUPTIBLE 0x1u
#define TASK_UNINTERRUPTIBLE 0x2u
#define TASK_STOPPED_BITS 0xcu /* __TASK_STOPPED, __TASK_TRACED */
#define TASK_DEAD 0x80u

enum kprof_thread_state dump_state(const struct dump_thread *t)
{
	uint32_t state = t->task.state;

	if (state & TASK_DEAD)
		return KPROF_THREAD_EXITED;
	if (t->status == DUMP_CAUGHT || t->task.flags & KPROF_TASK_ON_CPU)
		return KPROF_THREAD_RUNNING;
	if (state & TASK_STOPPED_BITS)
		return KPROF_THREAD_STOPPED;
	if (state & TASK_INTERRUPTIBLE)
		return KPROF_THREAD_SLEEPING;
	if (state & TASK_UNINTERRUPTIBLE)
		return KPROF_THREAD_BLOCKED;
	return KPROF_THREAD_RUNNABLE;
}

static bool in_call(const struct dump_thread *t)
{
	return (t->status == DUMP_TAKEN || t->task.flags & KPROF_TASK_IN_KERNEL) &&
	       (int64_t)t->task.call >= 0 && !(t->task.flags & KPROF_TASK_KERNEL);
}

const char *dump_call(const struct dump_thread *t)
{
	return in_call(t) ? syscall_name(t->task.call) : NULL;
}

void dump_doing(const struct dump_thread *t, char text[DUMP_TEXT_BYTES])
{
	const char *name = dump_call(t);
	uint64_t first = t->task.regs[5]; /* rdi */

	text[0] = '\0';
	if (!in_call(t))
		return;
	if (!name)
		snprintf(text, DUMP_TEXT_BYTES, "in system call %" PRIu64, t->task.call);
	else if (syscall_first_is_file(t->task.call))
		snprintf(text, DUMP_TEXT_BYTES, "in %s(%d)", name, (int)first);
	else if (!strcmp(name, "futex"))
		snprintf(text, DUMP_TEXT_BYTES, "in %s(%#" PRIx64 ")", name, first);
	else
		snprintf(text, DUMP_TEXT_BYTES, "in %s", name);
}

void dump_end_text(const struct dump_process *p, const struct walk_end *end, uint64_t ip,
		   char text[DUMP_TEXT_BYTES])
{
	static const char *const whys[KPROF_UNWIND_NR_ENDS] = {
		[KPROF_UNWIND_NO_MAPPING] = "the caller of %s is at an address where no code is",
		[KPROF_UNWIND_NOT_YET] = "%s: its unwind table was not built in time",
		[KPROF_UNWIND_NO_TABLE] = "%s has no unwind table",
		[KPROF_UNWIND_NO_RULE] = "%s does not describe this code",
		[KPROF_UNWIND_ODD_RULE] =
			"%s describes this code in a way that kprof cannot follow",
		[KPROF_UNWIND_LOST_REGISTER] =
			"in %s a register is needed that a caller has changed",
		[KPROF_UNWIND_BAD_STACK] = "the stack below %s could not be read",
		[KPROF_UNWIND_NO_PROGRESS] = "in %s: its caller would lie below it on the stack",
		[KPROF_UNWIND_TOO_DEEP] = "deeper than kprof shows, here in %s",
	};
	const struct code_area *area = dump_area(p, ip - 1, NULL);
	const struct module *m = area ? area->module : NULL;
	char where[64];

	text[0] = '\0';
	if (end->how == KPROF_UNWIND_WHOLE || end->how >= KPROF_UNWIND_NR_ENDS || !whys[end->how])
		return;
	if (m)
		snprintf(where, sizeof(where), "%s", proc_basename(m->path));
	else
		snprintf(where, sizeof(where), "%#" PRIx64, ip);
	if (end->how == KPROF_UNWIND_NO_TABLE && m && *module__why(m))
		snprintf(text, DUMP_TEXT_BYTES, "%s has no unwind table: %s", where,
			 module__why(m));
	else
		snprintf(text, DUMP_TEXT_BYTES, whys[end->how], where);
}
