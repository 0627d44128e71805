// SPDX-License-Identifier: BSD-2-Clause
/*
 * Many processes that hardly do anything: each wakes once a second. They end with the first one.
 *
 *     crowd NUMBER
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void wake_now_and_then(useconds_t first_us)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	usleep(first_us); /* not all at once */
	for (;;)
		usleep(999999);
}

int main(int argc, char **argv)
{
	int nr = argc == 2 ? atoi(argv[1]) : 0;

	for (int i = 0; i < nr; i++) {
		pid_t pid = fork();

		if (pid < 0) {
			perror("crowd: fork");
			return 1;
		}
		if (!pid)
			wake_now_and_then(
				(useconds_t)(1000000ull * (unsigned int)i / (unsigned int)nr));
	}
	puts("READY");
	fflush(stdout);
	pause();
	return 0;
}
