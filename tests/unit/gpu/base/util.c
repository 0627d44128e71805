// SPDX-License-Identifier: BSD-2-Clause
/* The clock that the agent's times are of. */
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gpu/base/module.h"
#include "gpu/base/util.h"
#include "unit.h"

/*
 * Times are the machine's: also of a process that has made a time namespace for its children, whose
 * own clock goes on as it was, and of these.
 */
static bool is_the_machines(int64_t ahead_ns)
{
	uint64_t before_ns = gpu_clock_ns(CLOCK_MONOTONIC) - (uint64_t)ahead_ns, now_ns;

	gpu_find_clock();
	now_ns = gpu_now_ns();
	return before_ns <= now_ns && now_ns <= gpu_clock_ns(CLOCK_MONOTONIC) - (uint64_t)ahead_ns;
}

static int in_time_namespaces(void)
{
	static const char ahead[] = "monotonic 1000 5";
	int fd, status;
	pid_t pid;

	if (unshare(CLONE_NEWTIME))
		return 77;
	fd = open("/proc/self/timens_offsets", O_WRONLY);
	if (write(fd, ahead, strlen(ahead)) < 0 || !is_the_machines(0))
		return 1;
	pid = fork();
	if (!pid)
		_exit(!is_the_machines(INT64_C(1000000000005)));
	return waitpid(pid, &status, 0) == pid && !status ? 0 : 2;
}

static void time_namespaces(void)
{
	int status = 0;
	pid_t pid = fork();

	if (!pid)
		_exit(in_time_namespaces());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		printf("# skipped: no time namespaces\n");
	else
		CHECK_EQ(status, 0);
	CHECK(is_the_machines(0));
}

UNIT_MAIN(TEST(time_namespaces))
