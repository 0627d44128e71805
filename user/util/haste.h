/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For moments in which others wait for the calling thread, or what it looks at runs on meanwhile:
 * where all CPUs are busy, it gets one at once. Without the right to it (CAP_SYS_NICE), nothing
 * changes.
 */
#ifndef KPROF_UTIL_HASTE_H
#define KPROF_UTIL_HASTE_H

#include <errno.h>
#include <sys/resource.h>

#define HASTE_NICE (-20)

/*
 * Raises the priority of this thread, and of processes that it starts. Returns what it was. errno
 * stays as it is.
 */
static inline int haste__begin(void)
{
	int nice = getpriority(PRIO_PROCESS, 0), err = errno;

	setpriority(PRIO_PROCESS, 0, HASTE_NICE);
	errno = err;
	return nice;
}

static inline void haste__end(int nice)
{
	setpriority(PRIO_PROCESS, 0, nice);
}

/* For a thread or process that may have been started in haste, and does not need it. */
static inline void haste__drop(void)
{
	if (getpriority(PRIO_PROCESS, 0) == HASTE_NICE)
		setpriority(PRIO_PROCESS, 0, 0);
}

#endif
