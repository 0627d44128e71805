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
 *   inject_hostile patched         the C library's first `syscall; ret` makes other system calls
 *   for ever
 *   inject_hostile cancelled       a thread with a pending cancellation, which no call that it
 *   makes acts on
 *   inject_hostile unmapping       computes; the munmap(2) of the agent's injector takes three
 *   seconds, by userfaultfd(2)
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
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
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

/* ---- patched ---- */

static void calls_for_ever(void)
{
	for (;;)
		syscall(SYS_getppid);
}

/* Its system calls for this are other copies of the instruction. */
static void patch(void)
{
	uint8_t jump[12] = {0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xe0};
	void (*to)(void) = calls_for_ever;
	unsigned long start, end;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512], *at = NULL;

	memcpy(jump + 2, &to, sizeof(to)); /* mov $to, %rax; jmp *%rax */
	while (!at && maps && fgets(line, sizeof(line), maps))
		if (strstr(line, "r-xp") && strstr(line, "/libc.so.6") &&
		    sscanf(line, "%lx-%lx", &start, &end) == 2)
			at = memmem((void *)start, end - start, "\x0f\x05\xc3", 3);
	if (!at || pwrite(open("/proc/self/mem", O_RDWR), jump, sizeof(jump), (intptr_t)at) !=
			   sizeof(jump))
		die("libc's code");
}

/* ---- cancelled ---- */

static int input_ended(int ms)
{
	struct pollfd input = {.fd = 0, .events = POLLIN};

	return poll(&input, 1, ms) != 0;
}

static atomic_int over, came_through;

static void *sleep_on(void *arg)
{
	const struct timespec nap = {0, 20000000};

	(void)arg;
	while (!over)
		syscall(SYS_nanosleep, &nap, NULL); /* not the C library's nanosleep() */
	came_through = 1;
	pthread_testcancel();
	return NULL;
}

/* The first thread waits where kprof would rather not use it: the other one is tried first. */
static int cancelled(void)
{
	const struct timespec nap = {0, 100000000};
	pthread_t thread;
	void *result;
	sigset_t none;

	sigemptyset(&none);
	sigaddset(&none, SIGUSR1);
	if (pthread_create(&thread, NULL, sleep_on, NULL) || pthread_cancel(thread))
		die("a thread");
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	while (!input_ended(0))
		sigtimedwait(&none, NULL, &nap);
	if (pthread_kill(thread, 0)) {
		fprintf(stderr, "the thread has ended before its time\n");
		return 1;
	}
	over = 1;
	if (pthread_join(thread, &result) || result != PTHREAD_CANCELED || !came_through) {
		fprintf(stderr, "the thread was cancelled before its time\n");
		return 1;
	}
	return 0;
}

/* ---- unmapping ---- */

/* Finds where the injector's memory is writable. */
static int find_region(pid_t pid, struct uffdio_range *range)
{
	char path[32], line[512];
	unsigned long start, end;
	int found = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	while (!found && maps && fgets(line, sizeof(line), maps))
		found = strstr(line, "rw-s") && strstr(line, "memfd:libkprof_agent") &&
			sscanf(line, "%lx-%lx", &start, &end) == 2;
	if (maps)
		fclose(maps);
	if (found)
		*range = (struct uffdio_range){start, end - start};
	return found;
}

/*
 * In a process of its own, which the injector does not stop: the kernel asks it at each munmap. It
 * does not end then: a SIGCHLD would stop the thread before it executes anything of its own.
 */
static void answer_late(int fd, pid_t parent, volatile int *answered)
{
	struct uffdio_register region = {.mode = UFFDIO_REGISTER_MODE_WP};
	struct uffd_msg message;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (!find_region(parent, &region.range))
		usleep(1000);
	if (ioctl(fd, UFFDIO_REGISTER, &region))
		die("UFFDIO_REGISTER");
	poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, -1);
	sleep(3);
	while (read(fd, &message, sizeof(message)) == sizeof(message))
		*answered = 1;
	for (;;)
		pause();
}

/*
 * A number that is in a register and in memory: if the thread is put back to what it was a while
 * ago, they differ.
 */
static int unmapping(void)
{
	struct uffdio_api api = {.api = UFFD_API,
				 .features = UFFD_FEATURE_EVENT_UNMAP |
					     UFFD_FEATURE_WP_HUGETLBFS_SHMEM};
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	volatile int *answered = mmap(NULL, sizeof(*answered), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	atomic_uint_least64_t kept = 0;
	uint64_t number = 0;

	if (fd < 0 || ioctl(fd, UFFDIO_API, &api))
		die("userfaultfd");
	if (answered == MAP_FAILED)
		die("mmap");
	if (!fork())
		answer_late(fd, getppid(), answered);
	close(fd);
	printf("READY %d\n", (int)getpid());
	fflush(stdout);
	do {
		for (int i = 0; i < 10000000; i++, number++) {
			if (atomic_load(&kept) != number) {
				fprintf(stderr, "the thread was put back to an earlier state\n");
				return 1;
			}
			atomic_fetch_add(&kept, 1); /* not from a register */
		}
	} while (!input_ended(0));
	return *answered ? 0 : 1;
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
	} else if (!strcmp(mode, "cancelled")) {
		return cancelled();
	} else if (!strcmp(mode, "unmapping")) {
		return unmapping();
	} else if (!strcmp(mode, "patched")) {
		patch();
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
