// SPDX-License-Identifier: BSD-2-Clause
/* Whose a process is that has exited, as a whole or in part. */
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/daemon/daemon.h"

#define USER 20001

static void *stay(void *arg)
{
	pause();
	return arg;
}

/* A process of the user's that exits, or whose first thread does. */
static pid_t begin(bool whole)
{
	pid_t pid = fork();
	pthread_t thread;

	if (pid)
		return pid;
	if (!geteuid() && (setresgid(USER, USER, USER) || setresuid(USER, USER, USER)))
		_exit(1);
	prctl(PR_SET_DUMPABLE, 1); /* as it is of one that has executed a program since */
	if (!whole && !pthread_create(&thread, NULL, stay, NULL))
		pthread_exit(NULL);
	_exit(0);
}

static bool is_zombie(pid_t pid)
{
	char path[64], text[256] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f)
		CHECK(fgets(text, sizeof(text), f) && !fclose(f));
	return strstr(text, ") Z ");
}

static void gone_is_gone(void)
{
	uid_t uid = geteuid() ? geteuid() : USER;
	pid_t pid = begin(true);
	siginfo_t info;

	CHECK(!waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT));
	CHECK(info.si_code == CLD_EXITED && !info.si_status);
	CHECK_EQ(process_check_owner(pid, uid, 0, 0), -ENOENT);
	CHECK_EQ(process_check_owner(pid, uid + 1, 0, 0), -ENOENT);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(process_check_owner(pid, uid, 0, 0), -ENOENT);
}

static void what_lives_on_is_there(void)
{
	uid_t uid = geteuid() ? geteuid() : USER;
	pid_t pid = begin(false);

	alarm(120);
	while (!is_zombie(pid))
		usleep(1000);
	CHECK(process_check_owner(pid, uid, 0, 0) != -ENOENT);
	CHECK_EQ(process_check_owner(pid, uid + 1, 0, 0), -EPERM);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, NULL, 0) == pid);
}

UNIT_MAIN(TEST(gone_is_gone), TEST(what_lives_on_is_there))
