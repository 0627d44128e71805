// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes that make it dangerous to put the agent in, for them or for who does it.
 *
 *   inject_hostile swap FILE       as nobody: puts FILE, which it may only read, in the place of
 *   each memfd of the agent's
 *   inject_hostile filter [NR …]   a seccomp filter that kills at each system call that is not
 *   among what is asked of all
 *                                  programs, nor one of these
 *   inject_hostile nproc           as nobody, which has as many processes as it may
 *   inject_hostile loading LIBRARY a thread loads LIBRARY, whose constructor waits until the first
 *   thread says so: when it
 *                                  has slept for a second
 *
 * Says READY and its pid, waits for what it is made for, until its input ends, and ends with 0.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef HOSTILE_LIBRARY
void hostile_wait(void);

__attribute__((constructor)) static void constructor(void)
{
	hostile_wait();
}
#else

#define NOBODY 65534
#define NR(a) (sizeof(a) / sizeof((a)[0]))

static sem_t said;
static int victim;

void hostile_wait(void);
void hostile_wait(void)
{
	sem_wait(&said);
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void become_nobody(void)
{
	if (setgid(NOBODY) || setuid(NOBODY))
		die("setuid");
	prctl(PR_SET_DUMPABLE, 1);
}

static void *swap(void *arg)
{
	char path[64], link[128];

	(void)arg;
	for (;;) {
		for (int fd = victim + 1; fd < victim + 4; fd++) {
			ssize_t n;

			snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
			n = readlink(path, link, sizeof(link) - 1);
			link[n > 0 ? n : 0] = '\0';
			if (strstr(link, "memfd:libkprof_agent"))
				dup2(victim, fd);
		}
	}
	return NULL;
}

static void *load(void *library)
{
	if (!dlopen(library, RTLD_NOW)) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return NULL;
}

static void filter(int nr_more, char **more)
{
	static const int common[] = {
		SYS_memfd_create,
		SYS_mmap,
		SYS_mprotect,
		SYS_munmap,
		SYS_openat,
		SYS_read,
		SYS_pread64,
		SYS_newfstatat,
		SYS_close,
		SYS_ftruncate,
		SYS_brk,
		SYS_futex,
		SYS_rt_sigprocmask,
		SYS_rt_sigreturn,
		SYS_sched_yield,
		SYS_clone,
		SYS_write,
		SYS_set_robust_list,
		SYS_exit,
		SYS_clock_gettime,
		SYS_poll,
		SYS_exit_group,
		SYS_restart_syscall,
	};
	struct sock_filter code[128];
	struct sock_fprog program = {0, code};

	code[program.len++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							   offsetof(struct seccomp_data, nr));
	for (int i = 0; i < (int)NR(common) + nr_more; i++) {
		int nr = i < (int)NR(common) ? common[i] : atoi(more[i - (int)NR(common)]);

		code[program.len++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 1);
		code[program.len++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	code[program.len++] =
		(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		die("seccomp");
}

int main(int argc, char **argv)
{
	const struct rlimit one = {1, 1};
	const char *mode = argc > 1 ? argv[1] : "";
	struct pollfd input = {.fd = 0, .events = POLLIN};
	struct timespec second = {1, 0};
	pthread_t thread;

	sem_init(&said, 0, 0);
	if (!strcmp(mode, "swap") && argc == 3) {
		victim = open(argv[2], O_RDONLY);
		become_nobody();
		if (victim < 0 || open(argv[2], O_RDWR) >= 0 ||
		    pthread_create(&thread, NULL, swap, NULL))
			die(argv[2]);
	} else if (!strcmp(mode, "nproc")) {
		setrlimit(RLIMIT_NPROC, &one);
		become_nobody();
	} else if (!strcmp(mode, "loading") && argc == 3) {
		pthread_create(&thread, NULL, load, argv[2]);
	} else if (strcmp(mode, "filter") != 0) {
		return 2;
	}
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	if (!strcmp(mode, "filter"))
		filter(argc - 2, argv + 2);
	if (!strcmp(mode, "loading")) {
		while (nanosleep(&second, &second))
			;
		sem_post(&said);
		pthread_join(thread, NULL);
	}
	poll(&input, 1, -1);
	return 0;
}
#endif
