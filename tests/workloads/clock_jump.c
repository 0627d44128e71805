// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be loaded before libc: a minute and a second more have passed, on the monotonic clock, once
 * the file is there that CLOCK_JUMP names.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static int jumped;
	const char *path = getenv("CLOCK_JUMP");

	if (clock == CLOCK_MONOTONIC && !jumped && path && !access(path, F_OK))
		jumped = 1;
	if (syscall(SYS_clock_gettime, clock, ts))
		return -1;
	if (clock == CLOCK_MONOTONIC && jumped)
		ts->tv_sec += 61;
	return 0;
}
