// SPDX-License-Identifier: BSD-2-Clause
/* System calls made by another process that shares everything with this one, and outlives it. */
#include "capture/probe/attach_helper.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"
#include "util/haste.h"

static void results(void)
{
	long who = attach_helper_call(SYS_getpid, 0, 0, 0);
	char byte = 0;
	int fds[2];

	CHECK(who > 0 && who != getpid());
	CHECK_EQ(kill((pid_t)who, 0), -1);
	errno = 7;
	CHECK_EQ(attach_helper_call(SYS_close, -1, 0, 0), -EBADF);
	CHECK_EQ(errno, 7);
	/* Our descriptors and our memory. */
	CHECK_EQ(pipe(fds), 0);
	CHECK_EQ(attach_helper_call(SYS_write, fds[1], (long)"x", 1), 1);
	CHECK_EQ(attach_helper_call(SYS_read, fds[0], (long)&byte, 1), 1);
	CHECK_EQ(byte, 'x');
	CHECK_EQ(attach_helper_call(SYS_close, fds[0], 0, 0), 0);
	CHECK_EQ(close(fds[0]), -1);
	close(fds[1]);
}

/* The call gets a CPU at once, where this process may have that; afterwards nothing has changed. */
static void in_haste(void)
{
	int before = getpriority(PRIO_PROCESS, 0);
	bool allowed = !setpriority(PRIO_PROCESS, 0, HASTE_NICE);

	CHECK_EQ(setpriority(PRIO_PROCESS, 0, before), 0);
	/* The system call itself gives 20 - nice. */
	CHECK_EQ(attach_helper_call(SYS_getpriority, PRIO_PROCESS, 0, 0),
		 20 - (allowed ? HASTE_NICE : before));
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), before);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Holds a lock for ever, and says that it has it. */
static void *hold(void *arg)
{
	pthread_mutex_lock(&lock);
	if (write(*(int *)arg, "h", 1) != 1)
		_exit(1);
	for (;;)
		pause();
	return NULL;
}

/* The process that this one's main thread has made waits in a call of that number. */
static bool waits_in(pid_t pid, long number)
{
	char path[64];
	long now = -1;
	int child = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	f = fopen(path, "r");
	if (!f || fscanf(f, "%d", &child) != 1)
		child = 0;
	if (f)
		fclose(f);
	snprintf(path, sizeof(path), "/proc/%d/syscall", child);
	f = child ? fopen(path, "r") : NULL;
	if (!f || fscanf(f, "%ld", &now) != 1)
		now = -1;
	if (f)
		fclose(f);
	return now == number;
}

/* Killed in the middle of a call: the call goes on to its end, and nothing is held after it. */
static void outlives(void)
{
	int begun[2], go[2], open[2];
	pthread_t thread;
	char byte;
	pid_t pid;

	CHECK(!pipe(begun) && !pipe(go) && !pipe(open));
	pid = fork();
	if (!pid) {
		close(open[0]);
		close(go[1]);
		if (pthread_create(&thread, NULL, hold, &begun[1]))
			_exit(1);
		/* Goes on when we say so, long after this process's end. */
		attach_helper_call(SYS_read, go[0], (long)&byte, 1);
		_exit(0);
	}
	close(open[1]);
	close(go[0]);
	CHECK_EQ(read(begun[0], &byte, 1), 1);
	while (!waits_in(pid, SYS_read))
		usleep(1000);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(write(go[1], "g", 1), 1);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	/* The last one who had it open has ended. */
	CHECK_EQ(read(open[0], &byte, 1), 0);
	close(open[0]);
	close(go[1]);
	close(begun[0]);
	close(begun[1]);
}

UNIT_MAIN(TEST(results), TEST(in_haste), TEST(outlives))
