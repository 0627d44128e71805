// SPDX-License-Identifier: BSD-2-Clause
/*
 * Processes of which it is not plain whether something may be put into them.
 *
 *   inject_modes MODE      prints READY PID, waits until its standard input ends, and says what
 *   became of it
 *
 *   filter-allows     a seccomp filter of 32-bit calls and a few others, as containers have them
 *   filter-kills      one that ends the process at memfd_create()
 *   filter-errno      one by which clone() with pthread_create()'s flags fails
 *   filter-strict     seccomp's first mode
 *   not-dumpable      as a program that changed its user
 *   other-user        runs as nobody
 *   vfork             READY is said by a child that still uses its parent's memory
 *   traced            READY is said when a child traces it
 *   no-files          may open no more files
 *   altstack          waits in a signal handler on a stack of its own
 *   exec              executes itself again and again
 *   exits             ends after some milliseconds
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say_ready(void)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "READY %d\n", (int)getpid());

	if (write(STDOUT_FILENO, text, (size_t)n) != n)
		_exit(1);
}

static void wait_for_end(void)
{
	char c;
	ssize_t n;

	while ((n = read(STDIN_FILENO, &c, 1)) > 0)
		;
	if (n < 0)
		perror("read");
}

static void install(const struct sock_filter *code, unsigned short nr)
{
	const struct sock_fprog program = {nr, (struct sock_filter *)code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("seccomp");
		exit(1);
	}
}

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define IS(value, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then, otherwise)
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, value)

static void filter_that_allows(void)
{
	const struct sock_filter code[] = {
		LOAD(arch),
		IS(AUDIT_ARCH_X86_64, 1, 0),
		RETURN(SECCOMP_RET_KILL_PROCESS),
		LOAD(nr),
		IS(SYS_reboot, 2, 0),
		IS(SYS_kexec_load, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
	};

	install(code, sizeof(code) / sizeof(code[0]));
}

static void filter_of(unsigned int nr, unsigned int verdict)
{
	const struct sock_filter code[] = {LOAD(nr), IS(nr, 0, 1), RETURN(verdict),
					   RETURN(SECCOMP_RET_ALLOW)};

	install(code, sizeof(code) / sizeof(code[0]));
}

static void filter_of_threads(void)
{
	const struct sock_filter code[] = {
		LOAD(nr),
		IS(SYS_clone, 0, 3),
		LOAD(args[0]),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x10000 /* CLONE_THREAD */, 0, 1),
		RETURN(SECCOMP_RET_ERRNO | EPERM),
		RETURN(SECCOMP_RET_ALLOW),
	};

	install(code, sizeof(code) / sizeof(code[0]));
}

static void on_altstack(int signal)
{
	say_ready();
	wait_for_end();
}

static void use_altstack(void)
{
	static char memory[65536];
	const stack_t stack = {.ss_sp = memory, .ss_size = sizeof(memory)};
	struct sigaction action = {.sa_handler = on_altstack, .sa_flags = SA_ONSTACK};

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

static void be_traced(void)
{
	const pid_t self = getpid();
	pid_t child;

	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	child = fork();
	if (!child) {
		if (ptrace(PTRACE_SEIZE, self, NULL, NULL))
			_exit(1);
		printf("READY %d\n", (int)self);
		fflush(stdout);
		wait_for_end();
		_exit(0);
	}
	waitpid(child, NULL, 0);
}

static int run(const char *mode, char **argv)
{
	if (!strcmp(mode, "filter-allows"))
		filter_that_allows();
	else if (!strcmp(mode, "filter-kills"))
		filter_of(SYS_memfd_create, SECCOMP_RET_KILL_PROCESS);
	else if (!strcmp(mode, "filter-errno"))
		filter_of_threads();
	else if (!strcmp(mode, "not-dumpable"))
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	else if (!strcmp(mode, "other-user") && (setgid(65534) || setuid(65534)))
		return 1;
	else if (!strcmp(mode, "no-files"))
		setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, 3});
	else if (!strcmp(mode, "altstack"))
		return use_altstack(), 0;
	else if (!strcmp(mode, "traced"))
		return be_traced(), 0;
	say_ready();
	if (!strcmp(mode, "filter-strict")) {
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
		wait_for_end();
		syscall(SYS_exit, 0);
	}
	if (!strcmp(mode, "exec")) {
		usleep(300);
		execv("/proc/self/exe", argv);
	}
	if (!strcmp(mode, "exits")) {
		usleep(3000);
		return 0;
	}
	wait_for_end();
	printf("{\"ended\": true}\n");
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";

	if (!strcmp(mode, "vfork")) {
		pid_t child = vfork();

		if (!child) {
			say_ready();
			wait_for_end();
			_exit(0);
		}
		return 0;
	}
	return run(mode, argv);
}
