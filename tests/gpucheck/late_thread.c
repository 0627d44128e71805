// SPDX-License-Identifier: BSD-2-Clause
/*
 * To be preloaded: the agent's thread does nothing for its first 300 ms, as where all CPUs are
 * busy.
 */
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int prctl(int option, ...)
{
	const char *name;
	va_list args;

	va_start(args, option);
	name = va_arg(args, const char *);
	va_end(args);
	if (option == PR_SET_NAME && !strcmp(name, "kprof-agent"))
		usleep(300000);
	return (int)syscall(SYS_prctl, option, name, 0, 0, 0);
}
